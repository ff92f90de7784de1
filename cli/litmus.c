/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark litmus: all that can come out of litmus tests, and whether their conditions hold.
 *
 * A unit of work is a test under one hardware. Processes share the units; the verdicts come
 * back through the pool's pipe, and what has no fixed length (outcomes, witnesses) through a file
 * in memory in which each unit has a place of its own. Units are printed in the order of the
 * command line, each as soon as those before it are.
 */
#include "report/litmus_report.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "checker/explore/driver.h"
#include "cli/arguments.h"
#include "cli/cli.h"

#define PLACE_BYTES (1ull << 32) /* of a unit, in the file; what is not written takes no memory */

/* --- the command line --- */

/* NAME=VALUE of the hardware: 0, or the status behind a message. */
static int check_knob(const struct litmus_job *job, const char *text)
{
	struct hardware scratch = hardware_default;
	size_t len = strcspn(text, "=");
	const char *expected = NULL;
	struct nearest n;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	nearest_init(&n, name);
	for (unsigned k = 0; hardware_knob(k)->name; k++)
		nearest_try(&n, hardware_knob(k)->name);
	if (!text[len] || !len)
		return fail(EXIT_USAGE, "--knob: \"%.60s\"; expected NAME=VALUE", text);
	if (hardware_find(name) < 0)
		return fail(EXIT_USAGE,
			    "the hardware has no knob \"%.40s\"%s (tidemark list knobs)", name,
			    n.hint);
	if (hardware_switch(&scratch, text, &expected))
		return fail(EXIT_USAGE, "knob \"%.60s\": expected one of: %s", text, expected);
	for (unsigned i = 0; i < job->knobs; i++)
		if (!strncmp(job->knob[i], text, len + 1))
			return fail(EXIT_USAGE, "--knob: %s twice; expected once", name);
	if (job->knobs == LITMUS_KNOBS)
		return fail(EXIT_USAGE, "more than %d knobs", LITMUS_KNOBS);
	return 0;
}

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	struct litmus_job *job = into;
	(void)row;
	if (check_knob(job, text))
		return false;
	job->knob[job->knobs++] = text;
	return true;
}

#define JOB(member) OPTION_FIELD(struct litmus_job, member)

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
	{"json", "FILE", "the results for machines", JOB(json_path)},
	{"junit", "FILE", "the results as JUnit XML, a test case for each condition",
	 JOB(junit_path)},
	{"quiet", NULL, "a line for each test", JOB(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"litmus", "FILE... [OPTION...]",
	"Runs litmus tests: each in every interleaving, with the power failing at every moment if "
	"a condition asks for it. Prints all outcomes and which condition holds. docs/litmus.md "
	"says how to write a test. FILE: a test; a folder, for its *.litmus; - for standard input.",
	rows,
	"0 all conditions hold, 1 some do not, 2 usage or bad input (all other files are run), 3 "
	"could not tell (--runs), 70 internal error"};

/* -1: go on; else the exit status, behind a message or the help. */
static int parse(struct litmus_job *job, int argc, char **argv)
{
	int status = options_read(&options, job, argc, argv);
	if (status >= 0)
		return status;
	if (job->configs && job->witness)
		return fail(EXIT_USAGE, "--configs prints verdicts only; expected no --witness");
	if ((job->json_path && check_output("--json", job->json_path)) ||
	    (job->junit_path && check_output("--junit", job->junit_path)))
		return EXIT_USAGE;
	if (optind == argc)
		return fail(EXIT_USAGE,
			    "litmus: expected a FILE, a folder or - (tidemark litmus --help)");
	return -1;
}

/* --- units --- */

struct answer {
	int error;
	struct {
		bool satisfied, violated, holds;
		uint64_t witness; /* bytes, with the NUL; 0: none */
	} condition[LITMUS_CONDITIONS];
	uint64_t runs, blocked;
	bool complete, done;
	unsigned final, crash; /* outcomes */
};

struct units {
	struct litmus_job *job;
	struct answer *answer;
	unsigned per_test, tests, printed; /* tests that are printed */
	int file;
	int status;
};

/* The hardware of a unit; *own: that which the test and the user ask for. */
static struct hardware unit_hardware(const struct litmus_job *job, const struct litmus_test *test,
				     unsigned config, bool *own)
{
	struct hardware hw = test->hw;
	const char *expected;
	for (unsigned k = 0; k < job->knobs; k++)
		hardware_switch(&hw, job->knob[k], &expected);
	uint8_t domain = hw.domain;
	bool ddio = hw.ddio;
	if (job->configs) {
		hw.domain = (uint8_t)(config / 2);
		hw.ddio = config % 2 == 0;
	}
	*own = hw.domain == domain && hw.ddio == ddio;
	return hw;
}

static bool write_place(const struct units *u, unsigned unit, uint64_t *at, const void *data,
			size_t len)
{
	const char *from = data;
	while (len) {
		ssize_t n = pwrite(u->file, from, len, (off_t)(unit * PLACE_BYTES + *at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		len -= (size_t)n;
		*at += (uint64_t)n;
	}
	return true;
}

static bool read_place(const struct units *u, unsigned unit, uint64_t *at, void *data, size_t len)
{
	char *to = data;
	while (len) {
		ssize_t n = pread(u->file, to, len, (off_t)(unit * PLACE_BYTES + *at));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
		*at += (uint64_t)n;
	}
	return true;
}

static void say(void *out, const char *line)
{
	fprintf(out, "%s\n", line);
}

/* The run that decides condition c, behind what is in the file already: bytes, or -errno. */
static int64_t write_witness(const struct units *u, unsigned unit, uint64_t *at,
			     const struct litmus_test *test, unsigned c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	int error = litmus_witness(test, &u->job->limits, c, say, out);
	if (fclose(out) && !error)
		error = -ENOMEM;
	if (!error && !write_place(u, unit, at, text, len + 1))
		error = -ENOSPC;
	free(text);
	return error ? error : (int64_t)len + 1;
}

static int write_result(const struct units *u, unsigned unit, const struct litmus_case *run,
			struct answer *a)
{
	const struct litmus_result *r = &run->result;
	uint64_t at = 0;
	a->runs = r->runs;
	a->blocked = r->blocked;
	a->complete = r->complete;
	a->final = r->final.n;
	a->crash = r->crash.n;
	if (!write_place(u, unit, &at, r->final.outcome, r->final.n * sizeof(*r->final.outcome)) ||
	    !write_place(u, unit, &at, r->crash.outcome, r->crash.n * sizeof(*r->crash.outcome)))
		return -ENOSPC;
	for (unsigned c = 0; c < run->file->test->conditions; c++) {
		a->condition[c].satisfied = r->condition[c].satisfied;
		a->condition[c].violated = r->condition[c].violated;
		a->condition[c].holds = r->condition[c].holds;
		if (!u->job->witness || !litmus_decided(run, c))
			continue;
		int64_t len = write_witness(u, unit, &at, run->file->test, c);
		if (len < 0 && len != -ENOENT)
			return (int)len;
		a->condition[c].witness = len > 0 ? (uint64_t)len : 0;
	}
	return 0;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct units *u = arg;
	struct answer *a = result;
	struct litmus_case run = {.file = &u->job->file[unit / u->per_test]};
	/* This process has the test for itself. */
	struct hardware own = run.file->test->hw;
	run.file->test->hw = unit_hardware(u->job, run.file->test, unit % u->per_test, &run.own);
	a->error = litmus_run(run.file->test, &u->job->limits, &run.result);
	if (!a->error)
		a->error = write_result(u, unit, &run, a);
	run.file->test->hw = own;
	litmus_result_free(&run.result);
}

static bool read_outcomes(const struct units *u, unsigned unit, uint64_t *at,
			  struct litmus_outcomes *o, unsigned n)
{
	size_t len = n * sizeof(*o->outcome);
	o->outcome = malloc(len ? len : 1);
	o->n = o->room = n;
	return o->outcome && read_place(u, unit, at, o->outcome, len);
}

/* 0, or the status behind a message. */
static int read_result(const struct units *u, unsigned unit, struct litmus_case *run)
{
	const struct answer *a = &u->answer[unit];
	struct litmus_result *r = &run->result;
	uint64_t at = 0;
	run->file = &u->job->file[unit / u->per_test];
	run->hw = unit_hardware(u->job, run->file->test, unit % u->per_test, &run->own);
	if (a->error)
		return fail(EXIT_INTERNAL, "%s: %s", run->file->path, strerror(-a->error));
	r->runs = a->runs;
	r->blocked = a->blocked;
	r->complete = a->complete;
	bool good = read_outcomes(u, unit, &at, &r->final, a->final) &&
		    read_outcomes(u, unit, &at, &r->crash, a->crash);
	for (unsigned c = 0; c < run->file->test->conditions && good; c++) {
		r->condition[c].satisfied = a->condition[c].satisfied;
		r->condition[c].violated = a->condition[c].violated;
		r->condition[c].holds = a->condition[c].holds;
		if (!a->condition[c].witness)
			continue;
		run->witness[c] = malloc(a->condition[c].witness);
		good = run->witness[c] &&
		       read_place(u, unit, &at, run->witness[c], a->condition[c].witness);
	}
	return good ? 0 : fail(EXIT_INTERNAL, "out of memory");
}

/* Print a test all of whose units are done. */
static void print_test(struct units *u, unsigned test)
{
	struct litmus_case run[LITMUS_CONFIGS] = {{.own = false}};
	for (unsigned i = 0; i < u->per_test && !u->status; i++)
		u->status = read_result(u, test * u->per_test + i, &run[i]);
	if (!u->status)
		litmus_report(u->job, run, u->per_test);
	for (unsigned i = 0; i < u->per_test; i++) {
		litmus_result_free(&run[i].result);
		for (unsigned c = 0; c < LITMUS_CONDITIONS; c++)
			free(run[i].witness[c]);
	}
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct units *u = arg;
	u->answer[unit] = *(const struct answer *)result;
	u->answer[unit].done = true;
	progress_line(NULL);
	for (; u->printed < u->tests; u->printed++) {
		for (unsigned i = 0; i < u->per_test; i++)
			if (!u->answer[u->printed * u->per_test + i].done) {
				if (!u->job->quiet)
					progress_line("%u of %u tests", u->printed, u->tests);
				return;
			}
		print_test(u, u->printed);
	}
}

/* The processes are gone. Which test it was is not known, but it has no result. */
static int run_failed(const struct units *u, int error)
{
	unsigned unit = 0;
	if (error != -ECHILD)
		return fail(EXIT_INTERNAL, "litmus: %s", strerror(-error));
	while (unit + 1 < u->tests * u->per_test && u->answer[unit].done)
		unit++;
	return fail(EXIT_INTERNAL,
		    "litmus: a worker process died; the first test without a result is %s",
		    u->job->file[unit / u->per_test].path);
}

/* 0, or the status behind a message. */
static int run_tests(struct litmus_job *job)
{
	struct units u = {
		.job = job, .tests = job->files, .per_test = job->configs ? LITMUS_CONFIGS : 1};
	struct driver driver = {.units = u.tests * u.per_test,
				.jobs = job->jobs,
				.result_bytes = sizeof(struct answer),
				.work = work,
				.take = take,
				.arg = &u};
	u.answer = calloc(driver.units ? driver.units : 1, sizeof(*u.answer));
	u.file = memfd_create("litmus", MFD_CLOEXEC);
	int error = u.file < 0 ? -errno : u.answer ? 0 : -ENOMEM;
	if (!error && driver.units)
		error = driver_run(&driver);
	progress_line(NULL);
	if (error)
		u.status = run_failed(&u, error);
	if (u.file >= 0)
		close(u.file);
	free(u.answer);
	return u.status;
}

static int exit_status(const struct litmus_job *job)
{
	if (job->bads)
		return EXIT_USAGE;
	if (job->count[VERDICT_FAILS])
		return EXIT_BROKEN;
	return job->count[VERDICT_UNSURE] ? EXIT_UNSURE : EXIT_HELD;
}

/* The files are read: go on. */
static int run_job(struct litmus_job *job)
{
	if (job->list) {
		litmus_list(job);
		return job->bads ? EXIT_USAGE : 0;
	}
	litmus_report_bad(job);
	int status = run_tests(job);
	if (!status) {
		litmus_summary(job);
		if (job->json_path)
			status = saved(job->json_path, litmus_json(job, job->json_path));
		if (!status && job->junit_path)
			status = saved(job->junit_path, junit_save(&job->junit, job->junit_path));
	}
	return status ? status : exit_status(job);
}

int litmus_main(int argc, char **argv)
{
	struct litmus_job job = {
		.limits = litmus_default, .jobs = arguments_jobs(), .json = json_array()};
	int status = parse(&job, argc, argv);
	if (status < 0) {
		status = 0;
		for (; optind < argc && !status; optind++)
			status = litmus_read(&job, argv[optind]);
		if (!status)
			status = run_job(&job);
	}
	litmus_files_free(&job);
	json_decref(job.json);
	junit_free(&job.junit);
	return status;
}
