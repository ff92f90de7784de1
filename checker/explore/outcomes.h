/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_OUTCOMES_H
#define TM_CHECKER_EXPLORE_OUTCOMES_H
/*
 * The set of distinct outcomes of an exploration: what clients and readers know in
 * the end. Two searches that should find the same are compared by it (tests).
 */
#include "checker/judge/history.h"

struct outcomes;
/* `by_point`: an outcome belongs to the point at which the power failed first. NULL: out of
 * memory. */
struct outcomes *outcomes_new(bool by_point);
void outcomes_free(struct outcomes *o);
void outcomes_clear(struct outcomes *o);
/*
 * The history as it is after `failures` power failures (at most 3) and their readers. `point`: the
 * first failure's. after_return[e]: the e-th failure came right after a return. Such a failure
 * stands for those just before the return, too, unless by_point: their images are among its own,
 * and an operation that has not returned forbids less.
 */
void outcomes_add(struct outcomes *o, const struct history *h, unsigned failures,
		  const bool *after_return, uint64_t point);
/* Their number, and a hash over all of them. */
uint64_t outcomes_count(const struct outcomes *o);
uint64_t outcomes_hash(const struct outcomes *o);

#endif
