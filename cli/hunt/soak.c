/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark soak: random hardware and workloads for as long as one likes. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include "checker/campaign/driver.h"
#include "checker/judge/names.h"
#include "checker/trace/wrong.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "core/clock.h"
#include "report/output.h"
#include "report/hunt/hunt_report.h"

#define LINES	   20	/* of memory and speed, in the whole time */
#define OUT_MAX	   1000 /* bytes of the folder's name */
#define TRACE_NAME (OUT_MAX + 80)
#define NO_LIMIT   UINT32_MAX

struct answer {
	int error;
	struct soak_result result;
};

struct request {
	struct soak_options options;
	bool timed; /* --time was given */
	uint64_t first;
	unsigned rounds;
	const char *out;
	struct leave_off leave_off; /* seconds 0: until the rounds are done */
	/* results */
	double start, next_line;
	struct soak_totals totals;
	int error;
	char why[sizeof(((struct soak_result *)0)->text)]; /* after -ENOTRECOVERABLE */
};

/* --- options --- */

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	struct request *k = into;
	(void)row;
	return !hardware_knob_add(k->options.knob, &k->options.knobs, SOAK_KNOBS, text);
}

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"time", "T", "for so long: 90s, 30m, 8h (=)", REQUEST(leave_off.seconds),
	 .given = offsetof(struct request, timed)},
	{"rounds", "N", "stop after so many rounds; alone, without a limit of time",
	 REQUEST(rounds), 1, NO_LIMIT},
	{"seed", "N", "of everything that is drawn (=)", REQUEST(options.seed), 0, UINT32_MAX},
	{"first", "N",
	 "begin with this round (=): a round depends on its number and the seed alone",
	 REQUEST(first), 0, UINT32_MAX},
	{"knob", "NAME=VALUE", "a knob of the hardware is not drawn, but so; may be repeated",
	 OPTION_CALL(take_knob)},
	{"jobs", "N", "processes (one for each core)", REQUEST(leave_off.how.jobs), 1, 256,
	 .use = OPTION_WORKS},
	{"out", "DIR", "where traces go (=)", REQUEST(out), .use = OPTION_SHOWS},
	{"quiet", NULL, "no lines on the way", REQUEST(leave_off.quiet), .letter = 'q',
	 .use = OPTION_SHOWS},
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
		k->leave_off.seconds = 0;
	return -1;
}

/* --- rounds --- */

static double elapsed(const struct request *k)
{
	return clock_seconds() - k->start;
}

static void trace_name(const struct request *k, uint64_t round, const struct soak_result *r,
		       char name[TRACE_NAME])
{
	snprintf(name, TRACE_NAME, "%s/soak-%" PRIu64 "-%" PRIu64 "-%s-%s.trace", k->out,
		 k->options.seed, round, r->store, contract_name(r->contract));
}

/* Run a round, and write the trace of what breaks. 0 or -errno. */
static int run_round(const struct request *k, uint64_t round, struct soak_result *out)
{
	char name[TRACE_NAME];
	struct setup s;
	struct deviations path = {0};
	int error = soak_round(&k->options, round, &s, &path, out);
	if (error == -ENOTRECOVERABLE)
		wrong_save(&s, &path, out->text, out->text, sizeof(out->text));
	if (!error && out->contract < TM_CONTRACTS) {
		trace_name(k, round, out, name);
		driver_hold(SIG_BLOCK);
		error = save_trace(name, &s, &path, (int)out->contract, out->text);
		driver_hold(SIG_UNBLOCK);
	}
	deviations_free(&path);
	setup_free(&s);
	return error;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct request *k = arg;
	struct answer *a = result;
	a->error = run_round(k, k->first + unit, &a->result);
}

static void note_error(struct request *k, int error, const struct soak_result *r)
{
	k->error = k->error ? k->error : error;
	if (error != -ENOTRECOVERABLE)
		return;
	memcpy(k->why, r->text, sizeof(k->why));
	signals_set_stop(true);
}

static void take_unit(void *arg, unsigned unit, const void *result)
{
	struct request *k = arg;
	const struct answer *a = result;
	char name[TRACE_NAME];
	if (a->error) {
		note_error(k, a->error, &a->result);
		return;
	}
	double now = elapsed(k);
	double part = k->leave_off.seconds > 0 ? now / k->leave_off.seconds
					       : (double)(k->totals.rounds + 1) / k->rounds;
	soak_add(&k->totals, &a->result, part);
	if (a->result.contract < TM_CONTRACTS && !k->error) {
		trace_name(k, k->first + unit, &a->result, name);
		soak_print_broken(&k->options, k->first + unit, &a->result, name);
	}
	if (!k->leave_off.quiet && part >= k->next_line) {
		soak_print_line(&k->totals, now);
		k->next_line += 1.0 / LINES;
	}
}

/* It has no end of its own: an interruption is one as good as that of the time. */
static int run_soak(struct request *k)
{
	int status = leave_off_begin(&k->leave_off);
	struct driver driver = {.units = k->rounds,
				.how = k->leave_off.how,
				.result_bytes = sizeof(struct answer),
				.work = work,
				.take = take_unit,
				.arg = k};
	_Static_assert(sizeof(struct answer) <= DRIVER_RESULT_MAX, "a result is one message");
	if (status)
		return status;
	driver.how.progress = NULL;
	k->start = clock_seconds();
	int error = driver_run(&driver);
	if (!error || error == -EINTR)
		error = k->error;
	if (error)
		return fail(EXIT_INTERNAL, "soak: %s", k->why[0] ? k->why : driver_error(error));
	soak_print_summary(&k->totals, elapsed(k));
	return k->totals.broken || soak_grows(&k->totals) ? EXIT_BROKEN : EXIT_HELD;
}

int soak_main(int argc, char **argv)
{
	struct request k = {.options.seed = 1,
			    .rounds = NO_LIMIT,
			    .leave_off = {.seconds = 30 * 60, .how.jobs = arguments_jobs()},
			    .out = "traces",
			    .next_line = 1.0 / LINES};
	int status = parse(&k, argc, argv);
	if (status >= 0)
		return status;
	status = leave_off_check(&k.leave_off, k.out);
	return status ? status : run_soak(&k);
}
