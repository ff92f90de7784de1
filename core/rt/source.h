/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SOURCE_H
#define TM_RT_SOURCE_H
/*
 * A source answers all choices of a run (choose.h). Whatever explores runs is one: random_source.h
 * and trace_source.h, systematic.h and bytes.h in faultinject/, crash images and partial-order
 * reduction in checker/. Its owner embeds it as the first member, and sets it with sim_source().
 *
 * answer() is called at each choice point, in the order of the run, and says which of the n ways
 * is taken: below n, or one of those beyond it that choice_allows(). 0 is the plain way. It must
 * depend on nothing but the points and answers so far and the source's own state, else no trace
 * repeats the run.
 */
#include "core/rt/choose.h"
#include "core/rt/scheduler.h"

struct source {
	unsigned (*answer)(struct source *source, const struct choice_point *at, unsigned n);
	/* So many points of each kind are answered with 0 without being asked: keeps the hot path
	 * short. UINT32_MAX: all. */
	uint32_t skip[CHOICE_KINDS];
	/* Wants to be asked before an operation begins. A choice with n == 1: none but the
	 * delays that no clock ends. */
	bool begins;
	/* Wants to be asked before an atomic access to memory that is not PM. Likewise n == 1. */
	bool atomics;
	/* NULL, or wants to know what is touched, and by whom: a task, or NULL (a NIC). */
	void (*touched)(struct source *source, const struct actor *who, enum touch what,
			uint64_t where, uint64_t len);
};

#endif
