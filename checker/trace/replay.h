/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_REPLAY_H
#define TM_CHECKER_TRACE_REPLAY_H
/*
 * Replaying one run: the workload with a given list of deviations, power failures and surviving
 * lines included.
 */
#include "checker/explore/explore.h"
#include "faultinject/trace_source.h"

struct replay_outcome {
	/* .broken for LIVE and FSCK too; not for a break whose cause is known, where
	 * setup.unknown_only says so. */
	struct verdict verdict[TM_CONTRACTS];
	char text[TM_CONTRACTS][300];	  /* of those that are broken */
	struct blame blame[TM_CONTRACTS]; /* likewise, of the contracts of setup.unknown_only */
	const struct deviation *unused; /* the first deviation that did not apply, NULL: all did */
	bool only_lines_unused;		/* those that did not are all of lines, which were durable
					 * when the power failed, or were not touched afterwards */
	unsigned failures;		/* power failures that happened */
	bool unstarted; /* the load phase failed, or the filling, and nothing else was run */
	uint64_t hash;	/* of all events */
};

/* Receives the events of a replay; see sim_tracer. `machine`: 0 the run, 1.. after each power
 * failure. */
struct replay_audience {
	sim_tracer *tracer;
	void (*machine_starts)(void *arg, struct explorer *ex, unsigned machine);
	void (*ends)(void *arg); /* the last machine has stopped */
	void *arg;
	/* NULL, or is called at each step of machine `probed` after which the power could fail. */
	world_observer *probe;
	void *probe_arg;
	unsigned probed;
	/* NULL, or is told of each step of a task, and of each choice of a kind that deviates. */
	trace_asked *asked;
	void *asked_arg;
};

/* On which machine the list's deviation i happens. */
unsigned replay_machine(const struct deviations *list, unsigned i);
/* May it be that the contract breaks when the store is filled (explore_limits.fill)? */
bool replay_fills(int contract, const struct deviations *list);
/* explore_open() for replay(), to see again how the contract (-1: none is named) breaks. */
int replay_begin(struct explorer *ex, struct setup *s, int contract, const struct deviations *list);
/* After replay(): it said nothing of the list, for the store does not get through the load phase:
 * the text for OK. */
bool replay_cannot_run(int contract, const struct deviations *list,
		       const struct replay_outcome *out);
/*
 * `list` in the order of a trace: the run's deviations, the power failure, the lines
 * it left, the deviations of recovery, the second power failure, ... `keep`: find out
 * which versions were durable (KEEP is judged; costs an exploration of the run's
 * power failures). audience: NULL for none. 0, -ENOMEM, or with
 * `keep` explore_run().
 */
int replay(struct explorer *ex, const struct deviations *list, bool keep,
	   const struct replay_audience *audience, struct replay_outcome *out);

/* What decides on one machine. */
struct replay_part {
	struct source *source;
	bool cut; /* its recovery is cut by a power failure, so that it need not prove that it works
		   */
	const struct deviations *list; /* what it answers other than plainly, or NULL: not known */
};
/* The same from any sources, as long as the power fails. For KEEP the caller has set
 * ex->lower_bound; *out starts as zeros. */
void replay_sources(struct explorer *ex, const struct replay_part part[WORLDS],
		    const struct replay_audience *audience, struct replay_outcome *out);

#endif
