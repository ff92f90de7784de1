/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_MUTANTS_RUN_H
#define TM_CHECKER_HUNT_MUTANTS_RUN_H
/* The search for all seeded bugs, or for those that are named, with the controls on which they
 * rest. */
#include "checker/explore/driver.h"
#include "checker/hunt/mutants.h"

struct mutants_run {
	struct mutant_options options;
	unsigned jobs;
	driver_shows *progress; /* NULL: not wanted */
	/* NULL, or: a bug was not found, or a control breaks. */
	void (*failed)(void *failed_arg);
	void *failed_arg;
	const struct driver_bounds *bounds; /* NULL: none */
	/* chosen: bugs before controls */
	struct mutant mutant[MUTANTS_MAX];
	unsigned mutants;
	/* results */
	struct mutant_answer {
		int error;
		struct mutant_result result;
	} answer[MUTANTS_MAX];
	bool done[MUTANTS_MAX];
	unsigned searched; /* mutants that are done */
	unsigned missed;   /* bugs that were not found */
	unsigned untold;   /* bugs that break only what breaks without them, too */
	unsigned dirty;	   /* controls that broke */
	unsigned unsure;   /* bugs of stores whose trace was not shrunk, or did not replay */
};

/* Choose the mutants of these names, which are those of bugs or of parts; none: all. Of these only
 * `variant`s with any of the given names, and with r->options.knob only those of stores that have
 * the knobs. 0, or -ENOENT with *unknown, the first name or variant that no bug has. */
int mutants_choose(struct mutants_run *r, char *const *name, unsigned names,
		   const char *const *variant, unsigned variants, const char **unknown);
/* Look for all of them. 0 or -errno; -EINTR: stopped early, with the results of what is done; -EIO:
 * mutant r->mutant[*failed] could not be run. */
int mutants_search(struct mutants_run *r, unsigned *failed);

#endif
