/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark soak: random hardware and workloads for as long as one likes. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "checker/judge/names.h"
#include "checker/explore/pool.h"
#include "checker/hunt/soak.h"
#include "checker/trace/trace.h"
#include "cli/arguments.h"
#include "cli/cli.h"

#define LINES 20 /* of memory and speed, in the whole time */
#define GROWTH_KIB                                                                                 \
	(32 * 1024)   /* of a process: more than that over its first fifth, and by half, is a leak \
		       * \ */
#define OUT_MAX	 1000 /* bytes of the folder's name */
#define NO_LIMIT UINT32_MAX

struct answer {
	int error;
	char trace[OUT_MAX + 80];
	struct soak_result result;
};

struct soak {
	struct soak_options options;
	bool timed; /* --time was given */
	uint64_t first;
	unsigned rounds, jobs;
	double seconds; /* 0: until the rounds are done */
	const char *out;
	bool quiet;
	/* results */
	struct timespec start;
	double next_line;
	uint64_t done, states, runs, points, unsure;
	uint64_t rss_kib, early_kib, late_kib,
		peak_kib; /* the largest of all processes: now, in the first
			     fifth, in the last one, ever */
	unsigned broken;
	int error;
};

static double elapsed(const struct soak *k)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - k->start.tv_sec) + (double)(t.tv_nsec - k->start.tv_nsec) * 1e-9;
}

static bool more(void *arg)
{
	const struct soak *k = arg;
	return k->seconds <= 0 || elapsed(k) < k->seconds;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct soak *k = arg;
	struct answer *a = result;
	struct setup s;
	struct deviations path = {0};
	uint64_t round = k->first + unit;
	a->error = soak_round(&k->options, round, &s, &path, &a->result);
	if (!a->error && a->result.contract < TM_CONTRACTS) {
		snprintf(a->trace, sizeof(a->trace), "%s/soak-%" PRIu64 "-%" PRIu64 "-%s-%s.trace",
			 k->out, k->options.seed, round, a->result.store,
			 contract_name(a->result.contract));
		a->error = trace_save(a->trace, &s, &path, (int)a->result.contract, a->result.text);
	}
	deviations_free(&path);
	setup_free(&s);
}

static void print_line(const struct soak *k, double now)
{
	printf("%6.0f s  %8" PRIu64 " rounds  %10" PRIu64
	       " states  %7.0f states/s  memory of a process: "
	       "%.1f MiB, at most %.1f\n",
	       now, k->done, k->states, (double)k->states / (now > 0 ? now : 1),
	       (double)k->rss_kib / 1024, (double)k->peak_kib / 1024);
	fflush(stdout);
}

static void print_broken(const struct soak *k, uint64_t round, const struct answer *a)
{
	const struct soak_result *r = &a->result;
	printf("%s BROKEN in round %" PRIu64 ": %s (%s), workload %s\n       %s\n       ",
	       contract_name(r->contract), round, r->store,
	       r->hardware[0] ? r->hardware : "default hardware", r->workload, r->text);
	print_replay(a->trace);
	printf("   (%u operations, %u deviations)\n       again: ", r->operations, r->deviations);
	print_word(program);
	printf(" soak --seed %" PRIu64 " --first %" PRIu64 " --rounds 1", k->options.seed, round);
	for (unsigned i = 0; i < k->options.knobs; i++)
		printf(" --knob %s", k->options.knob[i]);
	putchar('\n');
	fflush(stdout);
}

/* How far the soaking is, from 0 to 1. */
static double progress_of(const struct soak *k, double now)
{
	return k->seconds > 0 ? now / k->seconds : (double)k->done / k->rounds;
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct soak *k = arg;
	const struct answer *a = result;
	const struct soak_result *r = &a->result;
	double now = elapsed(k), part;
	if (a->error) {
		k->error = k->error ? k->error : a->error;
		return;
	}
	k->done++;
	k->states += r->counts.states;
	k->runs += r->counts.runs;
	k->points += r->counts.points - r->counts.points_seen;
	k->unsure += r->counts.unsure;
	part = progress_of(k, now);
	k->rss_kib = r->rss_kib;
	k->peak_kib = r->peak_kib > k->peak_kib ? r->peak_kib : k->peak_kib;
	if (part < 0.2 && r->rss_kib > k->early_kib)
		k->early_kib = r->rss_kib;
	if (part > 0.8 && r->rss_kib > k->late_kib)
		k->late_kib = r->rss_kib;
	if (r->contract < TM_CONTRACTS) {
		k->broken++;
		print_broken(k, k->first + unit, a);
	}
	if (!k->quiet && part >= k->next_line) {
		print_line(k, now);
		k->next_line += 1.0 / LINES;
	}
}

static int print_summary(const struct soak *k)
{
	bool grows = k->late_kib > k->early_kib + k->early_kib / 2 &&
		     k->late_kib > k->early_kib + GROWTH_KIB;
	print_line(k, elapsed(k));
	printf("%" PRIu64 " runs, the power failed at %" PRIu64 " points", k->runs, k->points);
	if (k->unsure)
		printf("; %" PRIu64 " histories were too concurrent and are not judged", k->unsure);
	printf("\nmemory of a process in the first fifth at most %.1f MiB, in the last fifth %.1f "
	       "MiB: %s\n",
	       (double)k->early_kib / 1024, (double)k->late_kib / 1024,
	       grows ? "IT GROWS" : "flat");
	if (k->broken)
		printf("%u rounds BROKE what should hold\n", k->broken);
	else
		puts("Nothing broke that should hold.");
	return k->broken || grows ? EXIT_BROKEN : EXIT_HELD;
}

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	struct soak *k = into;
	struct hardware scratch = hardware_default;
	const char *expected;
	(void)row;
	if (hardware_switch(&scratch, text, &expected)) {
		fail(EXIT_USAGE, "soak: --knob \"%.40s\"; expected one of: %s", text, expected);
		return false;
	}
	if (k->options.knobs == SOAK_KNOBS) {
		fail(EXIT_USAGE, "soak: more than %d knobs", SOAK_KNOBS);
		return false;
	}
	k->options.knob[k->options.knobs++] = text;
	return true;
}

#define SOAK(member) OPTION_FIELD(struct soak, member)

static const struct option_row rows[] = {
	{"time", "T", "for so long: 90s, 30m, 8h (30m)", SOAK(seconds),
	 .given = offsetof(struct soak, timed)},
	{"rounds", "N", "stop after so many rounds; alone, without a limit of time", SOAK(rounds),
	 1, NO_LIMIT},
	{"seed", "N", "of everything that is drawn (1)", SOAK(options.seed), 0, UINT32_MAX},
	{"first", "N",
	 "begin with this round (0): a round depends on its number and the seed alone", SOAK(first),
	 0, UINT32_MAX},
	{"knob", "NAME=VALUE", "a knob of the hardware is not drawn, but so; may be repeated",
	 OPTION_CALL(take_knob)},
	{"jobs", "N", "processes (one for each core)", SOAK(jobs), 1, 256},
	{"out", "DIR", "where traces go (traces)", SOAK(out)},
	{"quiet", NULL, "no lines on the way", SOAK(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"soak", "[OPTION...]",
	"Runs the stores of the default campaign under random hardware and random workloads, round "
	"after round. Whatever breaks that should hold is shrunk and written as a trace.",
	rows,
	"0 all holds and memory does not grow, 1 not so, 2 usage or bad input, 70 internal error"};

static int parse(struct soak *k, int argc, char **argv)
{
	int status = options_read(&options, k, argc, argv);
	if (status < 0)
		status = options_end(&options, argc, argv);
	if (status >= 0)
		return status;
	if (strlen(k->out) > OUT_MAX)
		return fail(EXIT_USAGE, "--out: a name of more than %d bytes", OUT_MAX);
	if (k->rounds != NO_LIMIT && !k->timed)
		k->seconds = 0;
	return -1;
}

int soak_main(int argc, char **argv)
{
	struct soak k = {.options.seed = 1,
			 .rounds = NO_LIMIT,
			 .jobs = arguments_jobs(),
			 .seconds = 30 * 60,
			 .out = "traces"};
	int status = parse(&k, argc, argv);
	if (status >= 0)
		return status;
	bool made = false;
	status = check_folder("--out", k.out, &made);
	if (status)
		return status;
	struct pool pool = {.units = k.rounds,
			    .jobs = k.jobs,
			    .result_bytes = sizeof(struct answer),
			    .work = work,
			    .take = take,
			    .more = more,
			    .arg = &k};
	clock_gettime(CLOCK_MONOTONIC, &k.start);
	k.next_line = 1.0 / LINES;
	int error = pool_run(&pool);
	if (!error)
		error = k.error;
	if (made)
		rmdir(k.out); /* unless there is a trace in it */
	if (error)
		return fail(EXIT_INTERNAL, "soak: %s",
			    error == -ECHILD ? "a worker process died" : strerror(-error));
	return print_summary(&k);
}
