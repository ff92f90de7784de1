/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MONO and KEEP: the order of versions that every linearization has.
 *
 * Per update of a closed epoch three positions are kept: where the first operation of
 * its cluster returned, where the first GET of it returned, and where the last GET of
 * it was invoked. A must precede B if something of A returned before B itself was
 * invoked, or if a GET had returned A before a GET that returned B was invoked. An update
 * that was not seen to take effect, neither by its return nor by a GET, precedes nothing. The
 * closure is a row of bits per update, made when it is first asked for.
 */
#include "checker/judge/contract.h"

#define CLOSED_UPDATES 64

static void add_update(struct judge *j, const struct history *h, int op)
{
	struct judge_key *k = &j->key[h->op[op].key];
	struct judge_fact *f = &j->fact[op];

	assert(h->op[op].kind != HISTORY_GET && h->op[op].epoch == j->epoch);
	assert(k->last_update < op);
	f->first_return = acknowledged(&h->op[op], NEVER) ? h->op[op].returned : NEVER;
	f->first_read = NEVER;
	f->last_read_invoke = -1;
	f->observer = -1;
	f->next = -1;
	f->number = k->updates++ % CLOSED_UPDATES;
	if (k->last_update >= 0)
		j->fact[k->last_update].next = op;
	else
		k->first_update = op;
	k->last_update = op;
	if (h->op[op].kind == HISTORY_PUT)
		return;
	k->dels++;
	if (acknowledged(&h->op[op], NEVER))
		k->last_del = op;
}

/* Close the epoch whose operations start at `from`. */
void order_learn(struct judge *j, const struct history *h, unsigned from)
{
	unsigned to = from;

	assert(from <= h->ops && j->epoch < h->epoch); /* the epoch is over */
	for (; to < h->ops && h->op[to].epoch == j->epoch; to++)
		if (h->op[to].kind != HISTORY_GET)
			add_update(j, h, to);
	for (unsigned i = from; i < to; i++) {
		const struct history_op *o = &h->op[i];
		struct judge_fact *f;

		if (!get_counts(h, o, NEVER) || o->value < 0)
			continue;
		f = &j->fact[o->value];
		if (o->returned < f->first_return)
			f->first_return = o->returned;
		if (o->returned < f->first_read)
			f->first_read = o->returned;
		if (o->invoked > f->last_read_invoke)
			f->last_read_invoke = o->invoked;
		f->observer = i;
		assert(f->first_return <= f->first_read && f->last_read_invoke < h->clock);
	}
	for (unsigned i = 0; i < to; i++)
		j->fact[i].mono = j->fact[i].missed.op = NOT_KNOWN;
	for (unsigned key = 0; key < h->keys; key++) {
		j->key[key].closed = false;
		j->key[key].mono_absent = j->key[key].missed_absent.op = NOT_KNOWN;
	}
}

static bool precedes_directly(const struct judge *j, const struct history *h, int a, int b)
{
	const struct judge_fact *first = &j->fact[a], *second = &j->fact[b];

	if (a == b)
		return false;
	return first->first_return < h->op[b].invoked ||
	       first->first_read < second->last_read_invoke ||
	       (h->ack_visible && first->first_return < second->last_read_invoke);
}

static void close_key(struct judge *j, const struct history *h, struct judge_key *k)
{
	assert(k->updates <= CLOSED_UPDATES && !k->closed);
	assert(!k->updates == (k->first_update < 0));
	for (int a = k->first_update; a >= 0; a = j->fact[a].next) {
		j->fact[a].precedes = 0;
		for (int b = k->first_update; b >= 0; b = j->fact[b].next)
			if (precedes_directly(j, h, a, b))
				j->fact[a].precedes |= UINT64_C(1) << j->fact[b].number;
	}
	for (int via = k->first_update; via >= 0; via = j->fact[via].next)
		for (int a = k->first_update; a >= 0; a = j->fact[a].next)
			if (j->fact[a].precedes >> j->fact[via].number & 1)
				j->fact[a].precedes |= j->fact[via].precedes;
	k->closed = true;
}

/* a, b: updates of the key in closed epochs. */
static bool must_precede(struct judge *j, const struct history *h, struct judge_key *k, int a,
			 int b)
{
	assert(h->op[a].key == h->op[b].key);
	assert(h->op[a].epoch < j->epoch && h->op[b].epoch < j->epoch);
	if (k->updates > CLOSED_UPDATES)
		return precedes_directly(j, h, a, b) && !precedes_directly(j, h, b, a);
	if (!k->closed)
		close_key(j, h, k);
	return a != b && j->fact[a].precedes >> j->fact[b].number & 1 &&
	       !(j->fact[b].precedes >> j->fact[a].number & 1);
}

/* Must `value` (of a closed epoch, or absence) precede the update `than`? */
bool order_older(struct judge *j, const struct history *h, unsigned key, int32_t value, int than)
{
	struct judge_key *k = &j->key[key];

	assert(h->op[than].key == key && h->op[than].epoch < j->epoch);
	if (value >= 0)
		return must_precede(j, h, k, value, than);
	if (k->dels == 0)
		return true;
	for (int i = k->first_update; i >= 0; i = j->fact[i].next)
		if (h->op[i].kind == HISTORY_DEL && !must_precede(j, h, k, i, than))
			return false;
	return true;
}

/* The GET of a closed epoch after which `value` must not come back, or -1. */
int order_mono(struct judge *j, const struct history *h, unsigned key, int32_t value)
{
	int16_t *memory = value >= 0 ? &j->fact[value].mono : &j->key[key].mono_absent;
	int against = -1;

	assert(key < h->keys && (value < 0 || h->op[value].key == key));
	if (*memory != NOT_KNOWN)
		return *memory;
	for (int r = j->key[key].first_update; r >= 0; r = j->fact[r].next)
		if (j->fact[r].observer > against && order_older(j, h, key, value, r))
			against = j->fact[r].observer;
	assert(against < 0 || h->op[against].epoch < j->epoch);
	return *memory = against;
}
