/* SPDX-License-Identifier: BSD-3-Clause */
/* See cost.h. */
#include "checker/models/cost.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "scenarios/stores.h"
#include "faultinject/random_source.h"

/* The store under a built-in workload, for close_explorer(); NULL: that cannot be. */
static struct explorer *open_explorer(struct setup *s, const struct tm_store *store,
				      const char *workload, bool tree)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct explore_limits limits = explore_default;
	const char *expected;
	limits.no_tree = !tree;
	setup_init(s, store);
	if (ex && !workload_named(workload, &s->w, &expected) && !setup_finish(s) &&
	    !explore_open(ex, s, &limits) && !ex->worlds.unloaded)
		return ex;
	setup_free(s);
	free(ex);
	return NULL;
}

static void close_explorer(struct setup *s, struct explorer *ex)
{
	explore_close(ex);
	setup_free(s);
	free(ex);
}

/* *seconds of so many runs with their power failures. As explore_run(). */
static int explore_runs(struct explorer *ex, unsigned runs, double *seconds)
{
	struct random_source source = {0};
	double start = clock_seconds();
	int error = 0;
	for (unsigned i = 1; i <= runs && !error; i++) {
		random_start(&source, i, 6);
		error = explore_run(ex, &source.source, &source.taken);
	}
	deviations_free(&source.taken);
	*seconds = clock_seconds() - start;
	return error;
}

int cost_of_states(const struct tm_store *store, const char *workload, unsigned runs,
		   struct state_cost *out)
{
	struct setup s[3];
	struct explorer *ex = open_explorer(&s[0], store, workload, true);
	struct explorer *plain = ex ? open_explorer(&s[1], store, workload, false) : NULL;
	struct explorer *timed = plain ? open_explorer(&s[2], store, workload, true) : NULL;
	int error = timed ? 0 : -EIO;
	double unused;
	if (timed) {
		memset(out, 0, sizeof(*out));
		error = explore_runs(ex, runs, &out->seconds);
		if (!error)
			error = explore_runs(plain, runs, &out->no_tree);
		out->recalled = ex->recall.recalled;
		out->learnt = ex->recall.learnt;
		out->rests = ex->recall.rest.recalled;
		out->counts = ex->counts;
		out->led = ex->recall.led;
		out->cuts = ex->recall.cuts_learnt;
		recall_count(&ex->recall, &out->tree);
		timed->phases = &out->phases;
		out->phases.since = clock_seconds();
		if (!error)
			error = explore_runs(timed, runs, &unused);
		close_explorer(&s[2], timed);
	}
	if (plain)
		close_explorer(&s[1], plain);
	if (ex)
		close_explorer(&s[0], ex);
	return error;
}
