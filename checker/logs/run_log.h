/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_RUN_LOG_H
#define TM_CHECKER_LOGS_RUN_LOG_H
/*
 * A run of a store in the simulation as a log: what happened to the server's PM until the power
 * failed first. What becomes durable without a fence of the CPU's, as by an RDMA FLUSH, is in it as
 * msync() of the line; that a client's operation has returned is an acknowledgement.
 */
#include "checker/logs/pm_log.h"
#include "checker/logs/pm_replay.h"
#include "checker/trace/replay.h"
#include "checker/world/where.h"

struct pm_run_log {
	struct pm_log log;
	struct pm_replay replay; /* what the log says until now */
	struct pmem *pm;
	struct where *where; /* for the places of stores; NULL: none are wanted */
	unsigned machine;
	int error;
};

/* An audience for replay() that fills `r`, whose pool is called `name`. 0 or -ENOMEM;
 * pm_run_log_close() in any case. */
int pm_run_log_open(struct pm_run_log *r, const char *name, struct where *where,
		    struct replay_audience *audience);
void pm_run_log_close(struct pm_run_log *r);

#endif
