/* SPDX-License-Identifier: BSD-3-Clause */
/* See verdicts.h. */
#include "checker/explore/verdicts.h"
#include <stdio.h>
#include "checker/explore/sentence.h"

void verdicts_prepare(struct explorer *ex, unsigned machine)
{
	const struct history *h = ex->worlds.history;
	if (ex->own)
		own_judge_prepare(ex->own, &ex->judge[machine], h);
	if (!ex->setup->own)
		judge_prepare(&ex->judge[machine], h);
}

/* What GETs miss after a server of several has failed is not against LIN. */
static void name_durability(const struct history *h, struct verdict out[TM_CONTRACTS])
{
	static const struct verdict none = {.op = -1, .against = -1};
	struct verdict *dur = &out[TM_DUR], *lin = &out[TM_LIN], *buf = &out[TM_BUF];
	const int32_t returned = dur->broken ? h->op[dur->op].returned : 0;
	if (lin->broken && h->op[lin->op].returned >= h->failed_at)
		*lin = none;
	if (buf->broken && !h->op[buf->op].epoch && h->op[buf->op].returned >= h->failed_at)
		*buf = none;
	if (dur->broken && (returned < 0 || returned >= h->lost_at) && h->lost_at < INT32_MAX) {
		out[TM_DURN] = *dur;
		*dur = none;
	}
}

void verdicts_find(struct explorer *ex, unsigned machine, unsigned want, const int32_t *lower_bound,
		   struct verdict out[TM_CONTRACTS])
{
	struct history *h = ex->worlds.history;
	const bool several = ex->setup->servers > 1;
	h->readmitted = sim_readmitted(ex->worlds.world[0].sim);
	if (several)
		want |= TM_BIT(TM_LIN) | TM_BIT(TM_DUR);
	if (!ex->setup->own)
		judge_recovered(&ex->judge[machine], h, want, lower_bound, out);
	if (ex->own)
		own_judge_recovered(ex->own, &ex->judge[machine], h, want, out);
	if (several)
		name_durability(h, out);
}

void verdicts_say(const struct explorer *ex, unsigned contract, const struct verdict *v, char *buf,
		  size_t n)
{
	if (contract == TM_OWN)
		snprintf(buf, n, "%s", own_judge_why(ex->own));
	else if (contract == TM_FENCE)
		sentence_fence(ex->setup, ex->worlds.history, v, buf, n);
	else if (contract == TM_ATOM || contract == TM_SSER)
		sentence_cycle(ex->setup, ex->worlds.history, contract, buf, n);
	else
		sentence_print(ex->setup, ex->worlds.history, v, buf, n);
}
