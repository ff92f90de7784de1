/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark bench: what the simulator costs, printed side by side. With --server: live_bench.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include "checker/campaign/driver.h"
#include "checker/models/cost.h"
#include "cli/cli.h"
#include "scenarios/stores.h"

/* What the time is spent with, and how much of it for one. */
static void print_phases(const char *store, const char *workload, const struct explore_phases *p)
{
	static const char *const name[PHASES] = {
		"runs", "points", "walks", "misses", "second failures", "lives", "judging"};
	double all = 0;
	for (unsigned i = 0; i < PHASES; i++)
		all += p->seconds[i];
	printf("%-9s %-12s", store, workload);
	for (unsigned i = 0; i < PHASES; i++)
		printf("%s %s %.0f %%, %.0f ns each", i ? ";" : "", name[i],
		       100 * p->seconds[i] / all,
		       p->times[i] ? 1e9 * p->seconds[i] / (double)p->times[i] : 0);
	putchar('\n');
}

/* 0 or -errno. */
static int bench_states(const struct tm_store *store, const char *workload)
{
	struct state_cost cost;
	int error = cost_of_states(store, workload, 3000, &cost);
	if (error)
		return error;
	const struct explore_counts *n = &cost.counts;
	double states = (double)n->states;
	printf("%-9s %-12s %8" PRIu64 " states  %8.0f states/s  %6.2f us each, of which %5.2f us "
	       "the runs themselves; %4.1f M events/s; %.0f %% of %" PRIu64
	       " points repeated an earlier one\n",
	       store->name, workload, n->states, states / cost.seconds, cost.seconds * 1e6 / states,
	       cost.phases.seconds[PHASE_RUN] * 1e6 / states,
	       (double)n->events / cost.seconds * 1e-6,
	       100.0 * (double)n->points_seen / (double)n->points, n->points);
	printf("%-9s %-12s without the tree of recoveries %8.0f states/s; with it %2.0f %% of the "
	       "images that were read were known, and of %2.0f %% what comes after recovery; of "
	       "%.0f %% of those in which the power failed again the way was known; %" PRIu64
	       " nodes, %.1f MiB\n",
	       store->name, workload, states / cost.no_tree,
	       100.0 * (double)cost.recalled / (double)(cost.recalled + cost.learnt),
	       100.0 * (double)cost.rests / (double)(cost.recalled + cost.learnt),
	       100.0 * (double)cost.led / (double)(cost.led + cost.cuts + !cost.cuts),
	       cost.tree.nodes, (double)cost.tree.bytes / (1 << 20));
	print_phases(store->name, workload, &cost.phases);
	return 0;
}

int bench_main(int argc, char **argv)
{
	struct rusage use;
	if (argc > 1)
		return live_bench_main(argc, argv);
	for (unsigned i = 0; stores[i]; i++) {
		int error = bench_states(stores[i], "w1r2-w2r1");
		error = error ? error : bench_states(stores[i], "w-w-r");
		if (error == -ENOTRECOVERABLE)
			return fail(EXIT_INTERNAL, "bench: %s: %s", stores[i]->name,
				    driver_error(error));
		if (error)
			fail(EXIT_INTERNAL, "bench: %s cannot run its workloads", stores[i]->name);
	}
	getrusage(RUSAGE_SELF, &use);
	printf("peak memory %.0f MiB\n", (double)use.ru_maxrss / 1024);
	return 0;
}
