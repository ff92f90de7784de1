/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_SENTENCE_H
#define TM_CHECKER_EXPLORE_SENTENCE_H
/* What the clients saw, in words. */
#include "checker/judge/history.h"
#include "checker/world/setup.h"

/* One operation and what came of it: "client 12's PUT k1 was acknowledged", "a reader after
 * recovery read c1.put2". */
void sentence_op(const struct setup *s, const struct history *h, int op, char *buf, size_t n);
/* The two observations of a verdict: "...; then ..." */
void sentence_print(const struct setup *s, const struct history *h, const struct verdict *v,
		    char *buf, size_t n);
/* FENCE is broken: who read what an outsider did. */
void sentence_fence(const struct setup *s, const struct history *h, const struct verdict *v,
		    char *buf, size_t n);
/* ATOM or SSER is broken: which transaction read what of whom, around the cycle. */
void sentence_cycle(const struct setup *s, const struct history *h, enum tm_contract contract,
		    char *buf, size_t n);

#endif
