/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LIN, DUR and BUF of one epoch, whatever searches: contract_search.c, key by key, or a store's
 * model, to which all is one part. A part that fits no order, or for which the search had no room,
 * is left out of later epochs.
 *
 * Linearizability is closed under prefixes, and an update's return alone never breaks
 * it. So a key that fits no order has a first GET whose return leaves none: found by
 * bisection over the position at which the history is cut off. Only broken ones pay.
 */
#include "checker/judge/contract.h"

static int first_misfit(struct judge *j, const struct history *h, unsigned key)
{
	int32_t fits = j->key[key].first_event,
		cut = h->clock; /* a search to `cut` fits no order */

	assert(fits >= 0 && fits < cut);
	while (cut - fits > 1) {
		int32_t mid = fits + (cut - fits) / 2;

		if (search_epoch(j, h, key, mid, false) == SEARCH_NONE)
			cut = mid;
		else
			fits = mid;
	}
	/* The event at `fits` is the one, if no search on the way ran out of room. */
	for (int pos = j->key[key].first_event; pos >= 0; pos = j->next[pos])
		if (pos >= fits && h->op[j->at[pos]].returned == pos &&
		    get_counts(h, &h->op[j->at[pos]], NEVER))
			return j->at[pos];
	assert(!"a key without a GET fits every order");
	return -1;
}

static void judge_part(struct judge *j, const struct history *h, unsigned part, bool learn,
		       struct verdict *out)
{
	struct judge_key *k = &j->key[part];
	enum search_result result;
	struct judge_missed missed = {.op = -1};
	int op;

	if (k->lost || k->unsure)
		return;
	result = j->search ? j->search(j, h, false, learn, &op)
			   : search_epoch(j, h, part, NEVER, learn);
	if (learn) {
		k->lost = result == SEARCH_NONE;
		k->unsure = result == SEARCH_FULL;
	}
	out[TM_DUR].unsure |= result == SEARCH_FULL;
	out[TM_LIN].unsure |= result == SEARCH_FULL && j->epoch == 0;
	if (result != SEARCH_NONE)
		return;
	if (!j->search) {
		op = first_misfit(j, h, part);
		assert(h->op[op].key == part && h->op[op].kind == HISTORY_GET);
		missed = lin_missed(h, op);
	}
	lin_break(&out[TM_DUR], op, missed);
	if (j->epoch == 0)
		lin_break(&out[TM_LIN], op, missed);
}

void lin_judge(struct judge *j, const struct history *h, const int16_t *get, bool learn,
	       struct verdict *out)
{
	struct verdict *buf = &out[TM_BUF];
	enum search_result result;
	int op;

	assert(!j->search == !!get);
	for (unsigned part = 0; part < (j->search ? 1 : h->keys); part++)
		judge_part(j, h, part, learn, out);
	if (j->epoch == 0)
		*buf = out[TM_LIN];
	if (j->epoch != 1 || buf->broken)
		return;
	if (!j->search) {
		buf_judge(j, h, get, buf);
	} else if (!buf->unsure) { /* else not all moments are known */
		result = j->search(j, h, true, false, &op);
		buf->unsure = result == SEARCH_FULL;
		if (result == SEARCH_NONE)
			verdict_break(buf, op, -1);
	}
}

/* What the GET should have known of: the latest acknowledged update, or else GET, of
 * another value that was invoked after the returned one had taken effect; if it found nothing, or
 * failed, after the last DELETE, or `ever`. */
static int missed(const struct history *h, int get, bool ever)
{
	const struct history_op *g = &h->op[get];
	int32_t since = g->value < 0 ? -1 : NEVER;
	int update = -1, read = -1, other = -1;

	assert(get >= 0 && (unsigned)get < h->ops && g->kind == HISTORY_GET);
	for (unsigned i = 0; i < h->ops && h->op[i].invoked < g->invoked; i++) {
		const struct history_op *o = &h->op[i];
		bool counts = o->key == g->key &&
			      (acknowledged(o, g->invoked) || get_counts(h, o, g->invoked));

		if (counts && o->value == g->value &&
		    (g->value < 0 ? !ever && o->kind == HISTORY_DEL && o->returned > since
				  : o->returned < since))
			since = o->returned;
	}
	for (unsigned i = 0; i < h->ops && h->op[i].invoked < g->invoked; i++) {
		const struct history_op *o = &h->op[i];

		if (o->key != g->key || o->value == g->value)
			continue;
		if (acknowledged(o, g->invoked))
			*(o->invoked > since ? &update : &other) = i;
		else if (get_counts(h, o, g->invoked))
			*(o->invoked > since ? &read : &other) = i;
	}
	return update >= 0 ? update : read >= 0 ? read : other;
}

struct judge_missed lin_missed(const struct history *h, int get)
{
	struct judge_missed m = {.op = (int16_t)missed(h, get, false)};
	if (h->op[get].value < 0)
		m.blamed = (int16_t)(missed(h, get, true) + 1);
	return m;
}
