/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_REGRESS_H
#define TM_CHECKER_TRACE_REGRESS_H
/* Does a trace still give the verdict that it records? */
#include "checker/trace/trace.h"

/*
 * 0: it does; 1: it does not, and `why` says in one sentence what is different; or
 * -ENOMEM or -ENOTRECOVERABLE (explore_run()). "broken none" is the verdict of a run that breaks no
 * promise of its store.
 */
int regress(struct trace *t, char *why, size_t n);

#endif
