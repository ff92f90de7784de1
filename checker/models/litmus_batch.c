/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running litmus tests. A unit of work is a test under one hardware. The verdicts come back as
 * the driver's results; what has no fixed length (outcomes, witnesses) through a file in memory in
 * which each unit has a place of its own.
 */
#include "checker/models/litmus_batch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "checker/campaign/driver.h"

#define PLACE_BYTES (1ull << 32) /* of a unit, in the file; what is not written takes no memory */

bool litmus_decided(const struct litmus_case *run, unsigned condition)
{
	bool violated = run->file->test->condition[condition].quantifier == LITMUS_FORALL;
	return violated ? run->result.condition[condition].violated
			: run->result.condition[condition].satisfied;
}

enum litmus_verdict litmus_judge(const struct litmus_case *run, unsigned condition)
{
	if (!run->result.complete && !litmus_decided(run, condition))
		return VERDICT_UNSURE;
	return run->result.condition[condition].holds ? VERDICT_HOLDS : VERDICT_FAILS;
}

bool litmus_stronger(const struct litmus_test *test, const struct hardware *hw)
{
	for (unsigned t = 0; t < test->threads && !hw->nt_buffered; t++)
		for (unsigned s = 0; s < test->thread[t].statements; s++)
			if (test->thread[t].statement[s].op == LITMUS_NT)
				return true;
	return false;
}

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
	struct litmus_batch *job;
	struct answer *answer;
	unsigned per_test, tests, finished; /* tests, in their order */
	int file;
	int error;
};

/* The hardware of a unit; *own: that which the test and the user ask for. Without `configs` the
 * second one is the same with x86's own non-temporal stores. */
static struct hardware unit_hardware(const struct litmus_batch *job, const struct litmus_test *test,
				     unsigned config, bool *own)
{
	struct hardware hw = test->hw;
	const char *expected;
	for (unsigned k = 0; k < job->knobs; k++)
		hardware_switch(&hw, job->knob[k], &expected);
	uint8_t domain = hw.domain;
	uint8_t ddio = hw.ddio;
	if (job->configs) {
		hw.domain = (uint8_t)(config / 2);
		hw.ddio = config % 2 == 0 ? DDIO_ON : DDIO_OFF;
	}
	*own = hw.domain == domain && hw.ddio == ddio && (job->configs || !config);
	hw.nt_buffered |= !*own && !job->configs;
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

static void write_line(void *out, const char *line)
{
	fprintf(out, "%s\n", line);
}

/* The run that decides condition c, after what is in the file already: bytes, or -errno. */
static int64_t write_witness(const struct units *u, unsigned unit, uint64_t *at,
			     const struct litmus_test *test, unsigned c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	int error = litmus_witness(test, &u->job->limits, c, write_line, out);
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
		if (!u->job->witness || !run->own || !litmus_decided(run, c))
			continue;
		int64_t len = write_witness(u, unit, &at, run->file->test, c);
		if (len < 0 && len != -ENOENT)
			return (int)len;
		a->condition[c].witness = len > 0 ? (uint64_t)len : 0;
	}
	return 0;
}

/* Number of runs of a test. */
static unsigned runs_of(const struct units *u, unsigned test)
{
	bool own;
	const struct litmus_test *t = u->job->file[test].test;
	if (u->job->configs)
		return LITMUS_CONFIGS;
	struct hardware hw = unit_hardware(u->job, t, 0, &own);
	return litmus_stronger(t, &hw) ? 2 : 1;
}

static void work(void *arg, unsigned unit, void *result)
{
	const struct units *u = arg;
	struct answer *a = result;
	struct litmus_case run = {.file = &u->job->file[unit / u->per_test]};
	if (unit % u->per_test >= runs_of(u, unit / u->per_test))
		return;
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

static int read_result(const struct units *u, unsigned unit, struct litmus_case *run)
{
	const struct answer *a = &u->answer[unit];
	struct litmus_result *r = &run->result;
	uint64_t at = 0;
	run->file = &u->job->file[unit / u->per_test];
	run->hw = unit_hardware(u->job, run->file->test, unit % u->per_test, &run->own);
	if (a->error) {
		u->job->failed = run->file->path;
		return a->error;
	}
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
	return good ? 0 : -ENOMEM;
}

/* All units of the test are done. */
static void finish_test(struct units *u, unsigned test)
{
	struct litmus_case run[LITMUS_CONFIGS] = {{.own = false}};
	unsigned runs = runs_of(u, test);
	for (unsigned i = 0; i < runs && !u->error; i++)
		u->error = read_result(u, test * u->per_test + i, &run[i]);
	if (!u->error)
		u->job->done(u->job->arg, run, runs);
	for (unsigned i = 0; i < runs; i++) {
		litmus_result_free(&run[i].result);
		for (unsigned c = 0; c < LITMUS_CONDITIONS; c++)
			free(run[i].witness[c]);
	}
}

static bool test_is_done(const struct units *u, unsigned test)
{
	for (unsigned i = 0; i < u->per_test; i++)
		if (!u->answer[test * u->per_test + i].done)
			return false;
	return true;
}

static void take_result(void *arg, unsigned unit, const void *result)
{
	struct units *u = arg;
	u->answer[unit] = *(const struct answer *)result;
	u->answer[unit].done = true;
	for (; u->finished < u->tests && test_is_done(u, u->finished); u->finished++)
		finish_test(u, u->finished);
	if (u->finished < u->tests && u->job->progress)
		u->job->progress(u->job->arg, u->finished);
}

/* Left off: tests that are done and wait for one before them. */
static void finish_others(struct units *u)
{
	for (unsigned test = u->finished; test < u->tests; test++)
		if (test_is_done(u, test))
			finish_test(u, test);
}

/* It is not known which test killed a process, but it has no result. */
static void name_unfinished(const struct units *u)
{
	unsigned unit = 0;
	while (unit + 1 < u->tests * u->per_test && u->answer[unit].done)
		unit++;
	u->job->failed = u->job->file[unit / u->per_test].path;
}

int litmus_batch_run(struct litmus_batch *b)
{
	struct units u = {.job = b, .tests = b->files};
	for (unsigned test = 0; test < b->files; test++)
		u.per_test = runs_of(&u, test) > u.per_test ? runs_of(&u, test) : u.per_test;
	struct driver driver = {.units = u.tests * u.per_test,
				.how = {.jobs = b->jobs, .bounds = b->bounds},
				.result_bytes = sizeof(struct answer),
				.work = work,
				.take = take_result,
				.arg = &u};
	_Static_assert(sizeof(struct answer) <= DRIVER_RESULT_MAX, "a result is one message");
	u.answer = calloc(driver.units ? driver.units : 1, sizeof(*u.answer));
	u.file = memfd_create("litmus", MFD_CLOEXEC);
	int error = u.file < 0 ? -errno : u.answer ? 0 : -ENOMEM;
	if (!error && driver.units)
		error = driver_run(&driver);
	if (error == -EINTR)
		finish_others(&u);
	if (error == -ECHILD)
		name_unfinished(&u);
	if (u.file >= 0)
		close(u.file);
	free(u.answer);
	return error && error != -EINTR ? error : u.error ? u.error : error;
}
