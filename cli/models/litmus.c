/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark litmus: all that can come out of litmus tests, and whether their conditions hold. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/models/litmus_files.h"
#include "core/clock.h"
#include "core/text/text.h"

/* --- the command line --- */

/* What was asked for, and when to leave off. */
struct request {
	struct litmus_job job;
	struct leave_off leave_off;
};

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	struct litmus_job *job = &((struct request *)into)->job;
	(void)row;
	return !hardware_knob_add(job->knob, &job->knobs, LITMUS_KNOBS, text);
}

#define JOB(member) OPTION_FIELD(struct request, job.member)

static const struct option_row rows[] = {
	{"knob", "NAME=VALUE",
	 "a knob of the hardware (tidemark list knobs), set after those of the test; may be "
	 "repeated",
	 OPTION_CALL(take_knob)},
	{"configs", NULL,
	 "each test in all three domains, with ddio on and off: a row for each condition, * marks "
	 "the test's own hardware",
	 JOB(configs)},
	{"witness", NULL, "show the run that decides a condition, where one does", JOB(witness)},
	{"list", NULL, "names and documentation only, nothing is run", JOB(list)},
	{"runs", "N", "give up a test after so many runs", JOB(limits.runs), 1, UINT64_MAX / 2},
	{"whole", NULL,
	 "every interleaving, also those that differ in the order of steps that do not touch each "
	 "other; much slower, to check the search",
	 JOB(limits.whole)},
	{"jobs", "N", "processes (one for each core); the output does not depend on it", JOB(jobs),
	 1, 256},
	ROWS_RESULTS,
	ROW_TIME(struct request, leave_off),
	ROW_FAIL_FAST(struct request, leave_off,
		      "leave off at the first test of which a condition does not hold"),
	{"quiet", NULL, "a line for each test", JOB(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"litmus", "FILE... [OPTION...]",
	"Runs litmus tests: each in every interleaving, with the power failing at every moment if "
	"a condition asks for it. Prints all outcomes and which condition holds. docs/litmus.md "
	"says how to write a test. FILE: a test; a folder, for its *.litmus; - for standard input.",
	rows,
	"0 all conditions hold, 1 some do not, 2 usage or bad input (all other files are run), 3 "
	"could not tell (--runs, --time), 70 internal error, " STATUS_LEFT_OFF};

/* -1: go on; else the exit status, after a message or the help. */
static int parse(struct request *r, int argc, char **argv)
{
	const struct litmus_job *job = &r->job;
	int status = options_read(&options, r, argc, argv);
	if (status >= 0)
		return status;
	if (job->configs && job->witness)
		return fail(EXIT_USAGE, "--configs prints verdicts only; expected no --witness");
	for (int i = optind; i < argc; i++)
		note_input(argv[i]);
	if (results_check())
		return EXIT_USAGE;
	if (optind == argc)
		return fail(EXIT_USAGE,
			    "litmus: expected a FILE, a folder or - (tidemark litmus --help)");
	return -1;
}

/* --- running --- */

static void test_done(void *arg, const struct litmus_case *run, unsigned runs)
{
	struct request *r = arg;
	progress_line(NULL);
	litmus_report(&r->job, run, runs);
	output_flush();
	if (r->job.count[VERDICT_FAILS])
		leave_off_found(&r->leave_off);
}

static void show_progress(void *arg, unsigned tests)
{
	const struct request *r = arg;
	progress_line("%u of %u test%s", tests, r->job.files, plural(r->job.files));
}

/* 0, or the status after a message. */
static int run_tests(struct request *r)
{
	struct litmus_job *job = &r->job;
	struct litmus_batch batch = {.file = job->file,
				     .files = job->files,
				     .jobs = job->jobs,
				     .knob = job->knob,
				     .knobs = job->knobs,
				     .limits = job->limits,
				     .configs = job->configs,
				     .witness = job->witness,
				     .done = test_done,
				     .progress = job->quiet ? NULL : show_progress,
				     .arg = r,
				     .bounds = &r->leave_off.bounds};
	leave_off_begin(&r->leave_off);
	int error = litmus_batch_run(&batch);
	leave_off_end(&r->leave_off, &error);
	if (error == -ECHILD)
		return fail(EXIT_INTERNAL,
			    "litmus: a worker process died; the first test without a result is %s",
			    batch.failed);
	return error ? fail(EXIT_INTERNAL, "%s: %s", batch.failed ? batch.failed : "litmus",
			    strerror(-error))
		     : 0;
}

/* The files are read: go on. */
static int run_job(struct request *r)
{
	struct litmus_job *job = &r->job;
	struct conclusion end;
	if (job->list) {
		litmus_list(job);
		return job->bads ? EXIT_USAGE : 0;
	}
	const double started = clock_seconds();
	int status = run_tests(r);
	if (!status) {
		json_t *all = litmus_tree(job);
		litmus_conclude(job, &end);
		leave_off_conclude(&r->leave_off, &end, job->done, job->files, "tests are done");
		json_object_set_new(all, "seconds", json_real(clock_seconds() - started));
		status = leave_off_tell(&r->leave_off, &end, all, "litmus_summary", 0);
	}
	return leave_off_status(&r->leave_off, status);
}

int litmus_main(int argc, char **argv)
{
	struct request r = {.job = {.limits = litmus_default,
				    .jobs = arguments_jobs(),
				    .tree = json_pack("{s:[]}", "tests")}};
	int status = parse(&r, argc, argv);
	if (status < 0) {
		status = 0;
		for (; optind < argc && !status; optind++)
			status = litmus_read(&r.job, argv[optind]);
		if (!status)
			status = run_job(&r);
	}
	litmus_files_free(&r.job);
	json_decref(r.job.tree);
	return status;
}
