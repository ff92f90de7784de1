/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LIN and DUR: one key of one epoch, judged by the search of contract_search.c.
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

void lin_judge(struct judge *j, const struct history *h, unsigned key, bool learn,
	       struct verdict *out)
{
	struct judge_key *k = &j->key[key];
	enum search_result result;
	int get;

	assert(key < h->keys);
	if (k->lost || k->unsure)
		return;
	result = search_epoch(j, h, key, NEVER, learn);
	if (learn) {
		k->lost = result == SEARCH_NONE;
		k->unsure = result == SEARCH_FULL;
	}
	out[TM_DUR].unsure |= result == SEARCH_FULL;
	out[TM_LIN].unsure |= result == SEARCH_FULL && j->epoch == 0;
	if (result != SEARCH_NONE)
		return;
	get = first_misfit(j, h, key);
	assert(h->op[get].key == key && h->op[get].kind == HISTORY_GET);
	lin_break(&out[TM_DUR], get, lin_missed(h, get));
	if (j->epoch == 0)
		lin_break(&out[TM_LIN], get, lin_missed(h, get));
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
