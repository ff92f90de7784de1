/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_VERDICTS_H
#define TM_CHECKER_EXPLORE_VERDICTS_H
/* Judging an explorer's history: by what holds of any key and value, or by what the store says of
 * its own operations. */
#include "checker/explore/explore.h"

/* Learn everything before the last power failure; `machine`: how many there were. */
void verdicts_prepare(struct explorer *ex, unsigned machine);
/* Judge the history, as judge_recovered(). */
void verdicts_find(struct explorer *ex, unsigned machine, unsigned want, const int32_t *lower_bound,
		   struct verdict out[TM_CONTRACTS]);
/* What a verdict says, one line. */
void verdicts_say(const struct explorer *ex, unsigned contract, const struct verdict *v, char *buf,
		  size_t n);

#endif
