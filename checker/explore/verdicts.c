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

void verdicts_find(struct explorer *ex, unsigned machine, unsigned want, const int32_t *lower_bound,
		   struct verdict out[TM_CONTRACTS])
{
	const struct history *h = ex->worlds.history;
	if (!ex->setup->own)
		judge_recovered(&ex->judge[machine], h, want, lower_bound, out);
	if (ex->own)
		own_judge_recovered(ex->own, &ex->judge[machine], h, want, out);
}

void verdicts_say(const struct explorer *ex, unsigned contract, const struct verdict *v, char *buf,
		  size_t n)
{
	if (contract == TM_OWN)
		snprintf(buf, n, "%s", own_judge_why(ex->own));
	else if (contract == TM_ATOM || contract == TM_SSER)
		sentence_cycle(ex->setup, ex->worlds.history, contract, buf, n);
	else
		sentence_print(ex->setup, ex->worlds.history, v, buf, n);
}
