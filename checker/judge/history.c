/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recording a history.
 *
 * The hash is a chain over the events in their order: an invocation adds (client,
 * kind, key), a return (operation, error, value), a power failure itself. Positions
 * and indices follow from the order, so equal hashes mean equal histories, up to
 * collisions of 64 bits.
 *
 * A rewind costs as much as what it forgets. Only when an operation from before the
 * mark returned after it are all operations looked at, to take those returns back.
 */
#include <assert.h>
#include <errno.h>
#include "checker/judge/history.h"

#define TAG_INVOKE	(UINT64_C(1) << 60)
#define TAG_RETURN	(UINT64_C(2) << 60)
#define TAG_CRASH	(UINT64_C(3) << 60)
#define TAG_UNEXPLAINED (UINT64_C(4) << 60)

static uint64_t hash_add(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

void history_reset(struct history *h, unsigned keys)
{
	assert(keys <= HISTORY_KEYS);
	h->ops = 0;
	h->clock = 0;
	h->epoch = 0;
	h->keys = keys;
	h->ack_visible = true;
	h->hash = hash_add(UINT64_C(0x7469646561726b), keys);
}

int history_invoke(struct history *h, unsigned client, enum history_kind kind, unsigned key)
{
	struct history_op *o = &h->op[h->ops];

	assert(key < h->keys && client <= UINT8_MAX);
	assert(h->clock < HISTORY_EVENTS);
	if (h->ops == HISTORY_OPS)
		return -ENOSPC;
	o->kind = kind;
	o->client = client;
	o->key = key;
	o->value = kind == HISTORY_PUT	 ? (int32_t)h->ops
		   : kind == HISTORY_DEL ? VALUE_ABSENT
					 : VALUE_UNKNOWN;
	o->invoked = h->clock++;
	o->returned = -1;
	o->error = 0;
	o->unexplained = false;
	o->epoch = h->epoch;
	h->hash = hash_add(h->hash,
			   TAG_INVOKE | (uint64_t)client << 40 | (uint64_t)kind << 32 | key);
	return h->ops++;
}

void history_return(struct history *h, int op, int error, int32_t value)
{
	struct history_op *o = &h->op[op];

	assert(op >= 0 && (unsigned)op < h->ops && error <= 0 && error >= INT16_MIN);
	assert(o->returned == -1 && o->epoch == h->epoch);
	if (o->kind == HISTORY_GET && error == 0) {
		assert(value == VALUE_ABSENT || value == VALUE_FOREIGN ||
		       (value >= 0 && (unsigned)value < h->ops &&
			h->op[value].kind == HISTORY_PUT));
		o->value = value;
	}
	o->returned = h->clock++;
	o->error = error;
	h->hash = hash_add(h->hash, TAG_RETURN | (uint64_t)op << 48 |
					    (uint64_t)(uint16_t)error << 32 | (uint32_t)o->value);
}

void history_unexplained(struct history *h, int op)
{
	struct history_op *o = &h->op[op];

	assert(op >= 0 && (unsigned)op < h->ops && o->error < 0);
	assert(o->returned == h->clock - 1 && !o->unexplained);
	o->unexplained = true;
	h->hash = hash_add(h->hash, TAG_UNEXPLAINED | (uint64_t)op);
}

void history_crash(struct history *h)
{
	assert(h->epoch < HISTORY_CRASHES && h->clock < HISTORY_EVENTS);
	assert(!h->epoch || h->crash_at[h->epoch - 1] < h->clock);
	h->crash_at[h->epoch++] = h->clock++;
	h->hash = hash_add(h->hash, TAG_CRASH);
}

struct history_mark history_mark(const struct history *h)
{
	return (struct history_mark){
		.ops = h->ops, .clock = h->clock, .epoch = h->epoch, .hash = h->hash};
}

void history_rewind(struct history *h, const struct history_mark *mark)
{
	int32_t events = h->clock - mark->clock; /* of these, not by operations that go */

	assert(mark->ops <= h->ops && mark->clock <= h->clock && mark->epoch <= h->epoch);
	events -= h->epoch - mark->epoch;
	for (unsigned i = mark->ops; i < h->ops; i++)
		events -= h->op[i].returned >= 0 ? 2 : 1;
	assert(events >= 0);
	for (unsigned i = mark->ops; events > 0; events--) {
		do
			assert(i > 0);
		while (h->op[--i].returned < mark->clock);
		h->op[i].returned = -1;
		h->op[i].error = 0;
		h->op[i].unexplained = false;
		if (h->op[i].kind == HISTORY_GET)
			h->op[i].value = VALUE_UNKNOWN;
	}
	h->ops = mark->ops;
	h->clock = mark->clock;
	h->epoch = mark->epoch;
	h->hash = mark->hash;
}

bool verdict_nothing(const struct verdict *v, const struct history *h)
{
	return v->op >= 0 && h->op[v->op].kind == HISTORY_GET && h->op[v->op].value == VALUE_ABSENT;
}
