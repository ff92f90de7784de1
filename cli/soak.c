/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark soak: random hardware and workloads for as long as one likes. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "checker/explore/driver.h"
#include "checker/judge/names.h"
#include "checker/explore/clock.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/output.h"
#include "report/hunt/soak_report.h"

#define LINES	 20   /* of memory and speed, in the whole time */
#define OUT_MAX	 1000 /* bytes of the folder's name */
#define NO_LIMIT UINT32_MAX

struct answer {
	int error;
	char trace[OUT_MAX + 80];
	struct soak_result result;
};

struct request {
	struct soak_options options;
	bool timed; /* --time was given */
	uint64_t first;
	unsigned rounds, jobs;
	double seconds; /* 0: until the rounds are done */
	const char *out;
	bool quiet;
	/* results */
	double start, next_line;
	struct soak_totals totals;
	int error;
};

/* --- options --- */

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	struct request *k = into;
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

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"time", "T", "for so long: 90s, 30m, 8h (=)", REQUEST(seconds),
	 .given = offsetof(struct request, timed)},
	{"rounds", "N", "stop after so many rounds; alone, without a limit of time",
	 REQUEST(rounds), 1, NO_LIMIT},
	{"seed", "N", "of everything that is drawn (=)", REQUEST(options.seed), 0, UINT32_MAX},
	{"first", "N",
	 "begin with this round (=): a round depends on its number and the seed alone",
	 REQUEST(first), 0, UINT32_MAX},
	{"knob", "NAME=VALUE", "a knob of the hardware is not drawn, but so; may be repeated",
	 OPTION_CALL(take_knob)},
	{"jobs", "N", "processes (one for each core)", REQUEST(jobs), 1, 256},
	{"out", "DIR", "where traces go (=)", REQUEST(out)},
	{"quiet", NULL, "no lines on the way", REQUEST(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"soak", "[OPTION...]",
	"Runs the stores of the default campaign under random hardware and random workloads, round "
	"after round. Whatever breaks that should hold is shrunk and written as a trace.",
	rows,
	"0 all holds and memory does not grow, 1 not so, 2 usage or bad input, 70 internal error"};

static int parse(struct request *k, int argc, char **argv)
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

/* --- rounds --- */

static double elapsed(const struct request *k)
{
	return clock_seconds() - k->start;
}

static bool more(void *arg)
{
	const struct request *k = arg;
	return k->seconds <= 0 || elapsed(k) < k->seconds;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct request *k = arg;
	struct answer *a = result;
	struct setup s;
	struct deviations path = {0};
	uint64_t round = k->first + unit;
	a->error = soak_round(&k->options, round, &s, &path, &a->result);
	if (!a->error && a->result.contract < TM_CONTRACTS) {
		snprintf(a->trace, sizeof(a->trace), "%s/soak-%" PRIu64 "-%" PRIu64 "-%s-%s.trace",
			 k->out, k->options.seed, round, a->result.store,
			 contract_name(a->result.contract));
		a->error = save_trace(a->trace, &s, &path, (int)a->result.contract, a->result.text);
	}
	deviations_free(&path);
	setup_free(&s);
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct request *k = arg;
	const struct answer *a = result;
	if (a->error) {
		k->error = k->error ? k->error : a->error;
		return;
	}
	double now = elapsed(k);
	double part = k->seconds > 0 ? now / k->seconds
				     : (double)(k->totals.rounds + 1) / k->rounds;
	soak_add(&k->totals, &a->result, part);
	if (a->result.contract < TM_CONTRACTS)
		soak_print_broken(&k->options, k->first + unit, &a->result, a->trace);
	if (!k->quiet && part >= k->next_line) {
		soak_print_line(&k->totals, now);
		k->next_line += 1.0 / LINES;
	}
}

int soak_main(int argc, char **argv)
{
	struct request k = {.options.seed = 1,
			    .rounds = NO_LIMIT,
			    .jobs = arguments_jobs(),
			    .seconds = 30 * 60,
			    .out = "traces",
			    .next_line = 1.0 / LINES};
	int status = parse(&k, argc, argv);
	if (status >= 0)
		return status;
	bool made = false;
	status = check_folder("--out", k.out, &made);
	if (status)
		return status;
	struct driver driver = {.units = k.rounds,
				.jobs = k.jobs,
				.result_bytes = sizeof(struct answer),
				.work = work,
				.take = take,
				.more = more,
				.arg = &k};
	_Static_assert(sizeof(struct answer) <= DRIVER_RESULT_MAX, "a result is one message");
	k.start = clock_seconds();
	/* It has no end of its own: an interruption is one as good as that of the time. */
	const struct driver_bounds bounds = {.stop = signals_stop()};
	driver.bounds = &bounds;
	int error = driver_run(&driver);
	if (!error || error == -EINTR)
		error = k.error;
	if (made)
		rmdir(k.out); /* unless there is a trace in it */
	if (error)
		return fail(EXIT_INTERNAL, "soak: %s", driver_error(error));
	soak_print_summary(&k.totals, elapsed(&k));
	return k.totals.broken || soak_grows(&k.totals) ? EXIT_BROKEN : EXIT_HELD;
}
