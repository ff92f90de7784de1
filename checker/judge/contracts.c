/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The judge: epoch by epoch, key by key, with a memory of the closed epochs.
 *
 * To *close* an epoch is to judge it and to learn from it: which values each key may
 * have now (DUR), the order of versions and who observed them (MONO, KEEP), the latest
 * acknowledged DEL (NORES). judge_prepare() closes all epochs but the last, and
 * judge_recovered() judges the last one without learning. contracts_judge() is the
 * two in a row.
 *
 * The last epoch is judged in one of two ways. After a power failure with nothing but
 * GETs, each GET is a look-up (judge_reads). Otherwise the epoch's events are linked
 * up by key (link_events) and followed in their order (judge_events). RDA and NORES,
 * which need no more than the stream of events, are judged here.
 *
 * --- The contracts ---
 *
 * Words. An *epoch* is the time between two power failures; epoch 0 comes before the
 * first. An update (PUT, DEL) that returned without error is *acknowledged* and took
 * effect between its invocation and its return. Any other update is *optional*: it
 * took effect at some time after its invocation, before the next power failure, or
 * never. A GET *counts* if it returned without error either absence or the value of
 * a PUT of its own key. The *cluster* of a PUT is itself and the GETs that count and
 * returned its value; the cluster of a DEL is itself alone.
 *
 *   RDA    broken by a GET that returned bytes of no PUT, or another key's PUT. Such
 *          a GET does not count for anything else.
 *   LIN    per key, epoch 0 is linearizable as a register with a delete.
 *   DUR    durable linearizability: per key the whole history is, power failures
 *          included. What one epoch leaves possible is what the next starts with.
 *          Broken wherever LIN is broken, crash or not. Also broken by a GET of an epoch
 *          after the first that fails unexplained (OK), or never returns, if what the
 *          earlier epochs leave possible for its key is some value and not absence, and no
 *          DEL of the key was invoked in its epoch before: what must be there cannot be read.
 *   BUF    buffered durable linearizability over the first power failure: epoch 0 is
 *          linearizable also if every key that is read after the failure is read, with
 *          the same answer, at one common moment T before it. The recovered value of a
 *          key is the answer of its first GET that returned before any update of the
 *          key was invoked in that epoch. Later power failures are not judged for BUF.
 *          DUR holds => BUF holds => LIN holds.
 *   MONO   broken by a GET after a power failure whose answer must precede a value that
 *          a GET returned in an earlier epoch. Only observed values count: to see
 *          absence, and later the deleted value, is a matter of NORES and DUR.
 *   KEEP   likewise with the version that was durable and current at the last failure; also
 *          broken by a GET of its key that never returns, where not-found would break it.
 *   NORES  broken by a GET that returned the value of a PUT, though (a) an operation of
 *          the PUT's cluster returned before an acknowledged DEL was invoked, and that
 *          DEL returned before the GET was invoked; or (b) the PUT had returned with an
 *          error before the GET was invoked.
 *   ATOM   broken by a transaction that read, or the GETs that name the keys' recovered values
 *          (BUF) that read, what transaction W wrote to one key, and of another one to which W
 *          wrote a value that must precede W's: by the order in time, as one transaction read
 *          from the other, or by what this reader has read of other keys. What precedes W's value
 *          is also an earlier update of W itself. Also broken by a GET that returned, of one key of
 *          W, a value that must precede W's by time and reading, after a GET of the same epoch
 *          returned, before it was invoked, what W wrote to another key.
 *   SSER   strict serializability: one order of all transactions of epoch 0, each between its
 *          invocation and its return, explains the answers of all GETs of those that were not
 *          aborted; an aborted one is not in it. Where no transaction has several operations, that
 *          is LIN of all keys, and neither is judged. "Not found" counts for both only of keys
 *          that are never deleted. transactions.h: how.
 *   FENCE  broken by a GET that returned the value of a PUT all of whose client's messages, at
 *          least one, had reached servers that were left out of the configuration, if a message of
 *          the GET reached a member, or it came after a later power failure. Not if one of these
 *          servers has become a member again since: as such it may do what it was asked for.
 *   OK     broken by an operation that returned with an error which nothing explains that was
 *          injected (history_op.unexplained). The recorder of the history knows that. Connecting, a
 *          cleaning and what proves life are in no history: the world judges these
 *          (world_result.ok_broken).
 *
 * Must precede. In a linearization a cluster is contiguous. So cluster A comes before B in every
 * one if an operation of A returned before one of B was invoked, and by transitivity. One kind of
 * evidence is left out where acknowledged is not visible (history.ack_visible is false): that
 * update A was acknowledged before a GET of B was invoked. Such a GET may just not see A yet; that
 * breaks LIN, and MONO and KEEP judge what a power failure adds. Looked at are all epochs before
 * the GET's. Where A must precede B and B must precede A, the history is not linearizable, and
 * neither is claimed. The closure is taken for keys with at most 64 updates; beyond, the direct
 * relation stands alone. It is sound, not complete: an order forced in another way is missed. An
 * answer "absent" is the initial absence, which precedes everything, or some DEL: it is older than
 * x only if each of its candidates is.
 *
 * verdict.op and .against, the pair that proves it: RDA the GET and the foreign PUT;
 * LIN and DUR the first GET that fits no order, and the latest operation that it
 * misses; BUF a GET, and an earlier one that shares no moment with it, or what it
 * misses itself; MONO the GET after and the GET before; KEEP the GET and the lower bound;
 * NORES the GET and the DEL or failed PUT; FENCE the GET and the PUT; ATOM the GET of the older
 * value, and W's update; SSER the latest GET of a cycle, and what it misses or should not have
 * read; OK the operation that failed, alone.
 */
#include <string.h>
#include "checker/judge/contract.h"
#include "checker/judge/names.h"
#include "checker/judge/transactions.h"

void judge_reset(struct judge *j)
{
	j->ready = false;
	j->search = NULL;
}

static void forget(struct judge *j, const struct history *h)
{
	assert(h->keys <= HISTORY_KEYS && h->ops <= HISTORY_OPS);
	j->ready = false; /* a store's model may end the simulation on the way */
	j->epoch = 0;
	j->from = 0;
	j->sser_known = false;
	j->times_known = j->times_absent_known = 0;
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		j->base[c] = (struct verdict){.op = -1, .against = -1};
	for (unsigned i = 0; i < (j->search ? 1 : h->keys); i++)
		j->key[i] = (struct judge_key){.first_event = -1,
					       .epoch0_event = -1,
					       .first_update = -1,
					       .last_update = -1,
					       .last_del = -1,
					       .mono_absent = NOT_KNOWN,
					       .missed_absent.op = NOT_KNOWN,
					       .generation = 1,
					       .absent = true};
	for (unsigned i = 0; i < h->ops; i++)
		j->fact[i].possible = 0;
}

/* Link the events of the epoch at hand by key. Returns the end of its operations. */
static unsigned link_events(struct judge *j, const struct history *h)
{
	unsigned to = j->from;

	j->start = j->epoch ? h->crash_at[j->epoch - 1] + 1 : 0;
	j->end = j->epoch < h->epoch ? h->crash_at[j->epoch] : h->clock;
	assert(j->start <= j->end && j->end <= h->clock);
	for (; to < h->ops && h->op[to].epoch == j->epoch; to++) {
		j->at[h->op[to].invoked] = to;
		if (h->op[to].returned >= 0)
			j->at[h->op[to].returned] = to;
	}
	if (j->search)
		return to;
	for (unsigned key = 0; key < h->keys; key++)
		j->key[key].first_event = -1;
	for (int32_t pos = j->end - 1; pos >= j->start; pos--) {
		struct judge_key *k = &j->key[h->op[j->at[pos]].key];

		assert(h->op[j->at[pos]].invoked == pos || h->op[j->at[pos]].returned == pos);
		j->next[pos] = k->first_event;
		k->first_event = pos;
	}
	if (j->epoch == 0)
		for (unsigned key = 0; key < h->keys; key++)
			j->key[key].epoch0_event = j->key[key].first_event;
	return to;
}

/* MONO and KEEP of a GET whose value is from before the epoch. */
static void judge_old_value(struct judge *j, const struct history *h, int get,
			    const int32_t *lower_bound, struct verdict *out)
{
	const struct history_op *o = &h->op[get];
	assert(o->kind == HISTORY_GET && o->epoch == j->epoch && j->epoch > 0);
	int against = order_mono(j, h, o->key, o->value);

	if (against >= 0)
		verdict_break(&out[TM_MONO], get, against);
	if (!lower_bound || lower_bound[o->key] < 0 || lower_bound[o->key] == o->value)
		return;
	assert(h->op[lower_bound[o->key]].kind != HISTORY_GET);
	if (order_older(j, h, o->key, o->value, lower_bound[o->key]))
		verdict_break(&out[TM_KEEP], get, lower_bound[o->key]);
}

/* NORES, at the invocation of a GET that returns a PUT's value: `returned`, where the
 * first operation of its cluster did; `del`, the last acknowledged DEL so far. */
static void judge_gone(const struct history *h, int get, int32_t returned, int del,
		       struct verdict *out)
{
	const struct history_op *o = &h->op[get], *put = &h->op[o->value];

	assert(o->kind == HISTORY_GET && put->kind == HISTORY_PUT && put->key == o->key);
	assert(del < 0 || acknowledged(&h->op[del], NEVER));
	if (del >= 0 && returned < h->op[del].invoked)
		verdict_break(&out[TM_NORES], get, del);
	else if (put->error != 0 && put->returned < o->invoked)
		verdict_break(&out[TM_NORES], get, o->value);
}

/* RDA. true: the GET counts for the other contracts. */
static bool judge_answer(const struct history *h, int get, struct verdict *out)
{
	const struct history_op *o = &h->op[get];

	if (o->returned < 0 || o->error != 0)
		return false;
	if (value_fits(h, o))
		return true;
	verdict_break(&out[TM_RDA], get, o->value >= 0 ? o->value : -1);
	return false;
}

/* OK, and what it means for DUR and KEEP that a GET fails, or never returns. `dels`: a DEL of the
 * key was invoked in the epoch before. */
static void judge_error(struct judge *j, const struct history *h, int op, bool dels,
			const int32_t *lower_bound, struct verdict *out)
{
	const struct history_op *o = &h->op[op];
	const struct judge_key *k = &j->key[o->key];

	if (!o->unexplained)
		return;
	assert(o->error != 0);
	if (o->returned >= 0)
		verdict_break(&out[TM_OK], op, -1);
	if (o->kind != HISTORY_GET || !j->epoch || dels)
		return;
	if (!k->absent && !k->lost && !k->unsure)
		lin_break(&out[TM_DUR], op, lin_missed(h, op));
	if (o->returned < 0 && lower_bound && lower_bound[o->key] >= 0 &&
	    h->op[lower_bound[o->key]].kind == HISTORY_PUT &&
	    order_older(j, h, o->key, VALUE_ABSENT, lower_bound[o->key]))
		verdict_break(&out[TM_KEEP], op, lower_bound[o->key]);
}

/* judge_fact.epoch_return of each value that the key's events name: what earlier epochs saw. */
static void start_epoch_returns(struct judge *j, const struct history *h, const struct judge_key *k)
{
	for (int pos = k->first_event; pos >= 0; pos = j->next[pos]) {
		int op = j->at[pos];
		const struct history_op *o = &h->op[op];
		struct judge_fact *f = o->value >= 0 ? &j->fact[o->value] : NULL;

		if (f && pos == o->invoked)
			f->epoch_return = h->op[o->value].epoch < j->epoch ? f->first_return
									   : NEVER;
	}
}

/* Follow one key through the epoch: everything but LIN, DUR and BUF. Returns the GET
 * that names the value with which the epoch started, or -1. */
static int judge_events(struct judge *j, const struct history *h, const struct judge_key *k,
			const int32_t *lower_bound, struct verdict *out)
{
	int recovered = -1, del = k->last_del;
	bool updates = false, dels = false;

	start_epoch_returns(j, h, k);
	for (int pos = k->first_event; pos >= 0; pos = j->next[pos]) {
		int op = j->at[pos];
		const struct history_op *o = &h->op[op];
		struct judge_fact *f = o->value >= 0 ? &j->fact[o->value] : NULL;
		bool invoked = pos == o->invoked, old = !f || h->op[o->value].epoch < j->epoch;

		if (!invoked || o->returned < 0)
			judge_error(j, h, op, dels, lower_bound, out);
		if (o->kind != HISTORY_GET) {
			updates |= invoked;
			dels |= invoked && o->kind == HISTORY_DEL;
			if (invoked || o->error != 0)
				continue;
			if (f && pos < f->epoch_return)
				f->epoch_return = pos;
			if (!f && (del < 0 || o->invoked > h->op[del].invoked))
				del = op;
			continue;
		}
		if (!judge_answer(h, op, out))
			continue;
		if (invoked) {
			if (f)
				judge_gone(h, op, f->epoch_return, del, out);
			continue;
		}
		if (f && pos < f->epoch_return)
			f->epoch_return = pos;
		if (j->epoch > 0 && old && (f || !dels))
			judge_old_value(j, h, op, lower_bound, out);
		if (old && !updates && (recovered < 0 || op < recovered))
			recovered = op;
	}
	return recovered;
}

/* The epoch at hand, whatever happened in it. Returns the end of its operations. */
static unsigned judge_epoch(struct judge *j, const struct history *h, bool learn,
			    const int32_t *lower_bound, struct verdict *out)
{
	unsigned to = link_events(j, h);
	int16_t recovered[HISTORY_KEYS];

	assert(j->epoch <= h->epoch && j->from <= to && to <= h->ops);
	for (unsigned key = 0; key < h->keys && !j->search; key++) {
		recovered[key] = judge_events(j, h, &j->key[key], lower_bound, out);
		assert(recovered[key] < (int)to);
	}
	lin_judge(j, h, j->search ? NULL : recovered, learn, out);
	return to;
}

void judge_prepare(struct judge *j, const struct history *h)
{
	if (j->ready && j->hash == h->hash && j->ops == h->ops && j->clock == h->clock)
		return;
	forget(j, h);
	while (j->epoch < h->epoch) {
		unsigned to = judge_epoch(j, h, true, NULL, j->base);

		if (!j->search)
			order_learn(j, h, j->from);
		assert(to >= j->from);
		j->from = to;
		j->epoch++;
	}
	assert(j->epoch == h->epoch && j->from <= h->ops);
	j->hash = h->hash;
	j->ops = h->ops;
	j->clock = h->clock;
	j->ready = true;
}

static struct judge_missed missed(struct judge *j, const struct history *h, int get)
{
	const struct history_op *o = &h->op[get];
	struct judge_missed *memory = o->value >= 0 ? &j->fact[o->value].missed
						    : &j->key[o->key].missed_absent;

	if (memory->op == NOT_KNOWN)
		*memory = lin_missed(h, get);
	return *memory;
}

/* The last epoch, if a power failure came before it and only GETs are in it. */
static void judge_reads(struct judge *j, const struct history *h, unsigned want,
			const int32_t *lower_bound, struct verdict *out)
{
	int16_t first[HISTORY_KEYS];
	bool fits = true;

	assert(j->epoch > 0 && j->epoch == h->epoch);
	for (unsigned key = 0; key < h->keys; key++)
		first[key] = -1;
	for (unsigned i = j->from; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		const struct judge_key *k = &j->key[o->key];

		assert(o->kind == HISTORY_GET && o->epoch == j->epoch);
		judge_error(j, h, i, false, lower_bound, out);
		if (!judge_answer(h, i, out))
			continue;
		if (o->value >= 0)
			judge_gone(h, i, j->fact[o->value].first_return, k->last_del, out);
		judge_old_value(j, h, i, lower_bound, out);
		if (first[o->key] < 0) {
			bool possible = o->value >= 0 ? j->fact[o->value].possible == k->generation
						      : k->absent;

			first[o->key] = i;
			out[TM_DUR].unsure |= k->unsure;
			fits &= possible && !k->unsure;
			if (!possible && !k->lost && !k->unsure)
				lin_break(&out[TM_DUR], i, missed(j, h, i));
		} else if (o->value != h->op[first[o->key]].value && !k->lost && !k->unsure) {
			verdict_break(&out[TM_DUR], i, first[o->key]);
		}
	}
	if (!fits && want & TM_BIT(TM_BUF) && j->epoch == 1 && !out[TM_BUF].broken)
		buf_judge(j, h, first, &out[TM_BUF]);
}

static void judge_transactions(struct judge *j, const struct history *h, unsigned want,
			       struct verdict *out)
{
	if (!(want & (TM_BIT(TM_ATOM) | TM_BIT(TM_SSER))) || !transactions_in(h))
		return;
	if (want & TM_BIT(TM_SSER)) {
		if (!j->sser_known)
			transactions_sser(h, &j->base[TM_SSER], NULL);
		j->sser_known = j->epoch > 0;
		out[TM_SSER] = j->base[TM_SSER];
	}
	if (want & TM_BIT(TM_ATOM))
		transactions_atom(h, &out[TM_ATOM], NULL);
}

static void judge_fence(const struct history *h, struct verdict *out)
{
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		if (!get_counts(h, o, NEVER) || o->value < 0)
			continue;
		const struct history_op *put = &h->op[o->value];
		if (put->outside && !put->inside && !(put->outside & h->readmitted) &&
		    (o->inside || o->epoch > put->epoch))
			verdict_break(out, (int)i, o->value);
	}
}

void judge_recovered(struct judge *j, const struct history *h, unsigned want,
		     const int32_t *lower_bound, struct verdict out[TM_CONTRACTS])
{
	struct verdict all[TM_CONTRACTS];
	bool reads = j->epoch > 0 && !j->search;

	assert(j->ready && j->epoch == h->epoch);
	assert(j->ops <= h->ops && j->clock <= h->clock); /* the history has only grown */
	memcpy(all, j->base, sizeof(all));
	for (unsigned i = j->from; i < h->ops; i++)
		reads &= h->op[i].kind == HISTORY_GET;
	if (reads)
		judge_reads(j, h, want, lower_bound, all);
	else
		judge_epoch(j, h, false, lower_bound, all);
	judge_transactions(j, h, want, all);
	if (want & TM_BIT(TM_FENCE))
		judge_fence(h, &all[TM_FENCE]);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (want & CONTRACTS_OF_HISTORY & TM_BIT(c))
			out[c] = all[c];
}

void contracts_judge(const struct history *h, unsigned want, const int32_t *lower_bound,
		     struct verdict out[TM_CONTRACTS])
{
	struct judge j;

	judge_reset(&j);
	judge_prepare(&j, h);
	judge_recovered(&j, h, want, lower_bound, out);
}
