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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/array.h"
#include "checker/judge/history.h"
#include "core/rt/snapshot.h"

#define TAG_INVOKE	(UINT64_C(1) << 60)
#define TAG_RETURN	(UINT64_C(2) << 60)
#define TAG_CRASH	(UINT64_C(3) << 60)
#define TAG_UNEXPLAINED (UINT64_C(4) << 60)
#define TAG_DETAIL	(UINT64_C(5) << 60)
#define TAG_ANSWER	(UINT64_C(6) << 60)
#define TAG_JOINED	(UINT64_C(7) << 60)
#define TAG_ABORTED	(UINT64_C(8) << 60)
#define TAG_SERVER	(UINT64_C(9) << 60)
#define TAG_OUTSIDE	(UINT64_C(10) << 60)

#define SHOWN 12 /* bytes of an answer, where it is put into words */

/* The value of a CALL that has answered: below VALUE_*. */
#define ANSWERED(hash) (-16 - (int32_t)((hash)&0x3fffffff))

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
	h->failed_at = h->lost_at = INT32_MAX;
	h->readmitted = 0;
	h->keys = keys;
	h->answers = 0;
	h->ack_visible = true;
	h->hash = hash_add(UINT64_C(0x7469646561726b), keys);
}

int history_keep_details(struct history *h)
{
	if (!h->detail)
		h->detail = calloc(HISTORY_OPS, sizeof(*h->detail));
	return h->detail ? 0 : -ENOMEM;
}

void history_free(struct history *h)
{
	if (!h)
		return;
	free(h->detail);
	free(h->answer);
	free(h);
}

void history_exchange(struct history *h, struct snapshot *s)
{
	assert(!h->epoch || s->takes);
	SNAPSHOT_EXCHANGE(s, h->ops);
	SNAPSHOT_EXCHANGE(s, h->answers);
	SNAPSHOT_EXCHANGE(s, h->clock);
	SNAPSHOT_EXCHANGE(s, h->epoch);
	SNAPSHOT_EXCHANGE(s, h->failed_at);
	SNAPSHOT_EXCHANGE(s, h->lost_at);
	SNAPSHOT_EXCHANGE(s, h->readmitted);
	SNAPSHOT_EXCHANGE(s, h->hash);
	SNAPSHOT_EXCHANGE(s, h->ack_visible);
	snapshot_exchange(s, h->op, h->ops * sizeof(*h->op));
	snapshot_exchange(s, h->detail, h->detail ? h->ops * sizeof(*h->detail) : 0);
	snapshot_exchange(s, h->answer, h->answers);
}

int history_invoke_detailed(struct history *h, unsigned client, enum history_kind kind,
			    unsigned key, const struct history_detail *detail)
{
	int op = history_invoke(h, client, kind, key);

	assert(h->detail);
	if (op < 0)
		return op;
	struct history_detail *d = &h->detail[op];
	uint64_t words[] = {(uint64_t)detail->call << 48 | (uint64_t)detail->key[0] << 32 |
				    (uint64_t)detail->key[1] << 16 | detail->key[2],
			    (uint64_t)detail->value.client << 32 |
				    (uint64_t)detail->value.nth << 16 | detail->value.key,
			    (uint64_t)detail->value.same << 32 | detail->value.len};
	*d = *detail;
	d->answered = false;
	d->answer = d->len = 0;
	h->hash = hash_add(h->hash, TAG_DETAIL ^ XXH3_64bits(words, sizeof(words)));
	return op;
}

int history_answer(struct history *h, int op, const void *bytes, size_t len)
{
	assert(op >= 0 && (unsigned)op < h->ops && h->detail);
	if (!ARRAY_RESERVE(h->answer, h->answers, len, h->answers_room))
		return -ENOMEM;
	if (len)
		memcpy(h->answer + h->answers, bytes, len);
	h->detail[op].answered = true;
	h->detail[op].answer = h->answers;
	h->detail[op].len = (uint32_t)len;
	h->answers += (uint32_t)len;
	uint64_t hash = XXH3_64bits_withSeed(bytes, len, len);
	h->hash = hash_add(h->hash, TAG_ANSWER ^ hash >> 4);
	if (h->op[op].kind == HISTORY_CALL)
		h->op[op].value = ANSWERED(hash);
	return 0;
}

int history_invoke(struct history *h, unsigned client, enum history_kind kind, unsigned key)
{
	struct history_op *o = &h->op[h->ops];

	assert((key < h->keys || kind == HISTORY_CALL) && client <= UINT8_MAX);
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
	o->unexplained = o->joined = o->aborted = o->inside = false;
	o->outside = 0;
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

void history_join(struct history *h, int op)
{
	struct history_op *o = &h->op[op];

	assert(op > 0 && (unsigned)op == h->ops - 1 && o->returned < 0);
	assert(o[-1].client == o->client && o[-1].returned < 0 && o[-1].epoch == o->epoch);
	o->joined = true;
	h->hash = hash_add(h->hash, TAG_JOINED | (uint64_t)op);
}

void history_aborted(struct history *h, int op)
{
	struct history_op *o = &h->op[op];

	assert(op >= 0 && (unsigned)op < h->ops && o->error < 0);
	assert(o->returned == h->clock - 1 && !o->unexplained && !o->aborted);
	o->aborted = true;
	h->hash = hash_add(h->hash, TAG_ABORTED | (uint64_t)op);
}

void history_unexplained(struct history *h, int op)
{
	struct history_op *o = &h->op[op];

	assert(op >= 0 && (unsigned)op < h->ops && o->error < 0);
	assert(o->returned == h->clock - 1 && !o->unexplained);
	o->unexplained = true;
	h->hash = hash_add(h->hash, TAG_UNEXPLAINED | (uint64_t)op);
}

void history_never_returns(struct history *h, int op)
{
	struct history_op *o = &h->op[op];

	assert(op >= 0 && (unsigned)op < h->ops && o->kind == HISTORY_GET);
	assert(o->returned < 0 && o->epoch == h->epoch && !o->unexplained);
	o->error = -ETIMEDOUT;
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

void history_server_fails(struct history *h, bool lost)
{
	assert(!h->epoch);
	if (h->failed_at > h->clock)
		h->failed_at = h->clock;
	if (lost && h->lost_at > h->clock)
		h->lost_at = h->clock;
	h->hash = hash_add(h->hash, TAG_SERVER | lost);
}

/* One of an operation's transaction. */
static void reaches(struct history *h, int op, unsigned server, bool member)
{
	struct history_op *o = &h->op[op];
	if (member ? o->inside : o->outside >> server & 1)
		return;
	o->inside |= member;
	o->outside |= (uint8_t)(!member << server);
	if (!member)
		h->hash = hash_add(h->hash, TAG_OUTSIDE | (uint64_t)op << 8 | server);
}

void history_reaches(struct history *h, int op, unsigned server, bool member)
{
	assert(op >= 0 && (unsigned)op < h->ops && server < 4);
	while (h->op[op].joined)
		op--;
	do
		reaches(h, op++, server, member);
	while ((unsigned)op < h->ops && h->op[op].joined);
}

struct history_mark history_mark(const struct history *h)
{
	return (struct history_mark){.ops = h->ops,
				     .answers = h->answers,
				     .clock = h->clock,
				     .epoch = h->epoch,
				     .hash = h->hash};
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
		h->op[i].unexplained = h->op[i].aborted = false;
		if (h->op[i].kind == HISTORY_GET || h->op[i].kind == HISTORY_CALL)
			h->op[i].value = VALUE_UNKNOWN;
		if (h->detail)
			h->detail[i].answered = false;
	}
	h->ops = mark->ops;
	h->answers = mark->answers;
	h->clock = mark->clock;
	h->epoch = mark->epoch;
	h->hash = mark->hash;
}

bool verdict_nothing(const struct verdict *v, const struct history *h)
{
	return v->op >= 0 && h->op[v->op].kind == HISTORY_GET && h->op[v->op].value == VALUE_ABSENT;
}

void history_show_answer(const struct history *h, int op, char *buf, size_t n)
{
	const struct history_detail *d = &h->detail[op];
	const uint8_t *bytes = h->answer + d->answer;
	size_t shown = d->len < SHOWN ? d->len : SHOWN, at = 0;
	bool text = shown > 0;

	for (size_t i = 0; i < shown; i++)
		text &= bytes[i] >= ' ' && bytes[i] < 0x7f;
	if (!d->len) {
		snprintf(buf, n, "nothing");
		return;
	}
	at += (size_t)snprintf(buf, n, text ? "\"" : "%u bytes", d->len);
	for (size_t i = 0; i < shown && at < n; i++)
		at += (size_t)snprintf(buf + at, n - at, text ? "%c" : " %02x", bytes[i]);
	if (at < n)
		snprintf(buf + at, n - at, "%s%s", shown < d->len ? "..." : "", text ? "\"" : "");
}
