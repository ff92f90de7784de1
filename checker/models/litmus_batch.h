/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_LITMUS_BATCH_H
#define TM_CHECKER_MODELS_LITMUS_BATCH_H
/*
 * Many litmus tests, each under one hardware or under each of several. Processes share the work;
 * the tests are done in their order, each as soon as those before it are.
 */
#include "checker/models/litmus.h"

#define LITMUS_CONFIGS 6 /* domains, with ddio on and off */

enum litmus_verdict { VERDICT_HOLDS, VERDICT_FAILS, VERDICT_UNSURE };

struct litmus_file {
	char *path;
	struct litmus_test *test;
};

/* A test under one hardware. */
struct litmus_case {
	const struct litmus_file *file;
	struct hardware hw;
	bool own; /* the hardware that the test and the user ask for */
	struct litmus_result result;
	char *witness[LITMUS_CONDITIONS]; /* lines, or NULL */
};

struct litmus_batch {
	struct litmus_file *file;
	unsigned files, jobs;
	const char *const *knob; /* "name=value", set after those of the test */
	unsigned knobs;
	struct litmus_limits limits;
	bool configs; /* each test under all LITMUS_CONFIGS */
	bool witness; /* find the runs that decide conditions */
	/* A test is done: its runs. Of LITMUS_CONFIGS, or one; and where the hardware is stronger
	 * than x86 (litmus_stronger()) a second one, with x86's own non-temporal stores. */
	void (*done)(void *arg, const struct litmus_case *run, unsigned runs);
	/* Called when so many tests are done; may be NULL. */
	void (*progress)(void *arg, unsigned tests);
	void *arg;
	const struct driver_bounds *bounds; /* NULL: none */
	const char *failed;		    /* after an error: the path of the test, or NULL */
};

/* 0 or -errno; -EINTR: stopped early, after done() of all tests that are; -ECHILD: a process died;
 * b->failed is the first test without a result. */
int litmus_batch_run(struct litmus_batch *b);

enum litmus_verdict litmus_judge(const struct litmus_case *run, unsigned condition);
/* Are non-temporal stores of the test kept in order by this hardware, as x86 does not keep them? */
bool litmus_stronger(const struct litmus_test *test, const struct hardware *hw);
/* Does one outcome decide it, so that there is a run to show? */
bool litmus_decided(const struct litmus_case *run, unsigned condition);

#endif
