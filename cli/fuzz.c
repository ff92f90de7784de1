/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark fuzz: rerun the traces that are known, then fuzz each store; shrink what
 * breaks unexpectedly, and write a trace of each case whose fingerprint is new.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "checker/explore/clock.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/fuzz_report.h"
#include "report/output.h"

#define DEFAULT_SECONDS 60
#define DEFAULT_REGRESS "tests/traces"

struct fuzzing {
	const struct arguments *a;
	struct fuzz_session session;
	struct fuzz_report report;
	double seconds; /* of each store; 0: runs are counted */
	bool stopped, unaccepted;
};

static const struct option_row rows[] = {
	{.help = "what is tested"},
	ROW_VARIANT,
	ROW_KNOB,
	{"regress", "DIR", "the traces that are run again (tests/traces, if there is one)",
	 ARGUMENT(regress)},
	{.help = "how much"},
	{"time", "TIME", "for each store: 90s, 2m, 1h (60s)", ARGUMENT(seconds)},
	ROW_RUNS("runs for each store; without --time the same seed gives the same results, on "
		 "whatever machine"),
	ROW_SEED("of the changes (1)"),
	OPTION_JOBS(struct arguments, options.jobs),
	{.help = "what is written"},
	{"corpus", "DIR", "inputs are read from DIR/STORE, and new ones written there",
	 ARGUMENT(corpus)},
	ROW_OUT,
	ROW_NO_TRACES,
	ROW_JSON("the results for machines"),
	ROW_JUNIT("the results as JUnit XML"),
	OPTION_QUIET(struct arguments, quiet),
	OPTION_END};

static const struct options options = {
	"fuzz", "[STORE...] [OPTION...]",
	"Runs the traces that are known again, then drives stores with inputs that it changes for "
	"as long as new states turn up. Without a STORE: those of the default campaign; or all "
	"that have the variants and knobs that are named.",
	rows,
	"0 nothing breaks unexpectedly, 1 something does, or a trace gives another verdict than it "
	"records, 2 usage or bad input, 70 internal error"};

static struct fuzz *volatile running;

static void interrupted(int sig)
{
	(void)sig;
	if (running)
		fuzz_stop(running);
}

static int no_memory(void)
{
	return fail(EXIT_INTERNAL, "out of memory");
}

/* --- folders --- */

static int is_plain(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 6 && !strcmp(e->d_name + n - 6, ".trace");
}

/* `each` with every file of the folder, in the order of their names. 0, or the first status of
 * `each` that is not 0. */
static int each_file(const char *dir, int (*filter)(const struct dirent *),
		     int (*each)(void *arg, const char *path), void *arg)
{
	struct dirent **list;
	int n = scandir(dir, &list, filter, alphasort), status = 0;
	if (n < 0)
		return fail(EXIT_USAGE, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path;
		if (!status && asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0) {
			status = no_memory();
		} else if (!status) {
			status = each(arg, path);
			free(path);
		}
		free(list[i]);
	}
	free(list);
	return status;
}

static int rerun_trace(void *arg, const char *path)
{
	struct fuzzing *f = arg;
	struct trace t;
	int status = read_trace(path, &t);
	if (status)
		return status;
	int error = fuzz_session_rerun(&f->session, &t, path);
	trace_free(&t);
	return error ? no_memory() : 0;
}

/* A trace of an earlier session. One that cannot be read is not ours, and no error. */
static int learn_trace(void *arg, const char *path)
{
	struct fuzzing *f = arg;
	struct trace t;
	if (fuzz_session_has(&f->session, path) || read_trace(path, &t))
		return 0;
	int error = fuzz_session_learn(&f->session, &t, path);
	trace_free(&t);
	return error ? no_memory() : 0;
}

static int rerun_all(struct fuzzing *f)
{
	const char *dir = f->a->regress ? f->a->regress : DEFAULT_REGRESS;
	struct stat st;
	int status = 0;
	if (f->a->regress || (!stat(dir, &st) && S_ISDIR(st.st_mode)))
		status = each_file(dir, is_trace, rerun_trace, f);
	if (!status && !f->a->no_traces)
		status = each_file(f->a->out, is_trace, learn_trace, f);
	if (!status)
		fuzz_report_reruns(&f->session, dir);
	return status;
}

/* --- the corpus on disk --- */

/* Bytes of the file, or 0 with *why it is not an input. */
static size_t read_input(const char *path, uint8_t bytes[FUZZ_INPUT_MAX + 1], const char **why)
{
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		*why = "not a file";
		return 0;
	}
	FILE *in = fopen(path, "re");
	if (!in) {
		*why = strerror(errno);
		return 0;
	}
	size_t n = fread(bytes, 1, FUZZ_INPUT_MAX + 1, in);
	*why = ferror(in)	    ? strerror(errno)
	       : !n		    ? "empty"
	       : n > FUZZ_INPUT_MAX ? "too long for an input"
				    : NULL;
	fclose(in);
	return *why ? 0 : n;
}

static int load_input(void *arg, const char *path)
{
	struct fuzz *f = arg;
	uint8_t bytes[FUZZ_INPUT_MAX + 1];
	const char *why;
	size_t n = read_input(path, bytes, &why);
	if (!n)
		fail(0, "%s: %s; left out of the corpus", path, why);
	else if (fuzz_seed(f, bytes, n))
		return no_memory();
	return 0;
}

static int write_input(FILE *out, const void *arg)
{
	const struct fuzz_input *input = arg;
	return fwrite(input->bytes, 1, input->n, out) == input->n ? 0 : -EIO;
}

/* The inputs from number *saved on. 0, or the status after a message. */
static int save_corpus(const char *dir, const struct fuzz *f, unsigned *saved_inputs)
{
	int status = 0;
	for (; dir && *saved_inputs < f->inputs && !status; ++*saved_inputs) {
		const struct fuzz_input *input = &f->corpus[*saved_inputs];
		char *path;
		if (asprintf(&path, "%s/%016" PRIx64, dir,
			     (uint64_t)XXH3_64bits(input->bytes, input->n)) < 0)
			return no_memory();
		status = access(path, F_OK) ? saved(path, save_file(path, write_input, input)) : 0;
		free(path);
	}
	return status;
}

/* *dir: the store's folder, to be freed; NULL: no corpus was asked for. */
static int open_corpus(const struct arguments *a, struct fuzz_turn *t, char **dir)
{
	bool made;
	*dir = NULL;
	if (!a->corpus)
		return 0;
	if (asprintf(dir, "%s/%s", a->corpus, t->config->store->name) < 0) {
		*dir = NULL;
		return no_memory();
	}
	int status = check_folder("--corpus", *dir, &made);
	return status ? status : each_file(*dir, is_plain, load_input, &t->fuzz);
}

/* --- one store --- */

static int save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run)
{
	const struct fuzzing *f = t->arg;
	char tail[24];
	uint64_t hash = XXH3_64bits_withSeed(k->fingerprint.part,
					     k->fingerprint.parts * sizeof(k->fingerprint.part[0]),
					     k->fingerprint.cleans);
	if (f->a->no_traces)
		return 0;
	snprintf(tail, sizeof(tail), "-%08x", (unsigned)(hash >> 32));
	int error = trace_path(t->config, k->fingerprint.contract, f->a->out, tail, &k->trace);
	if (!error)
		error = save_trace(k->trace, &run->setup, &run->path, (int)k->fingerprint.contract,
				   k->text);
	if (error)
		snprintf(t->why, sizeof(t->why), "%s: %s", k->trace ? k->trace : f->a->out,
			 strerror(-error));
	return error;
}

static void show_shrinking(const struct fuzz_turn *t, unsigned contract)
{
	progress_line("%s: shrinking a case that breaks %s", t->config->store->name,
		      contract_name(contract));
}

static void show_progress(const struct fuzzing *f, const struct fuzz_turn *t)
{
	double spent = clock_seconds() - t->start;
	char left[48] = "";
	if (f->seconds > 0)
		snprintf(left, sizeof(left), "%.0f s left",
			 f->seconds > spent ? f->seconds - spent : 0);
	else
		snprintf(left, sizeof(left), "%" PRIu64 " runs left",
			 t->fuzz.options.runs - t->fuzz.counts.runs);
	progress_line("%s: %" PRIu64 " runs, %" PRIu64 " states, %u inputs, %" PRIu64
		      " features, %u new failures, %s",
		      t->config->store->name, t->fuzz.counts.runs, t->fuzz.counts.states,
		      t->fuzz.inputs, t->fuzz.features, t->fresh, left);
}

static int run_rounds(struct fuzzing *f, struct fuzz_turn *t, const char *corpus)
{
	unsigned saved_inputs = 0;
	int status = 0;
	running = &t->fuzz;
	signals_catch(interrupted);
	while (!status && fuzz_more(&t->fuzz)) {
		if (!f->a->quiet)
			show_progress(f, t);
		int error = fuzz_turn_round(t);
		if (error)
			status = fail(error == -ENOMEM || error == -EIO ? EXIT_INTERNAL
									: EXIT_USAGE,
				      "%s", t->why[0] ? t->why : strerror(-error));
		if (!status)
			status = save_corpus(corpus, &t->fuzz, &saved_inputs);
	}
	progress_line(NULL);
	f->stopped = fuzz_stopped(&t->fuzz);
	running = NULL;
	signals_catch(NULL);
	return status;
}

static int fuzz_store(struct fuzzing *f, const struct campaign_config *cfg)
{
	const struct arguments *a = f->a;
	struct fuzz_turn t = {.session = &f->session,
			      .config = cfg,
			      .save = save_case,
			      .shrinking = a->quiet ? NULL : show_shrinking,
			      .arg = f,
			      .start = clock_seconds()};
	struct fuzz_options o = {.seed = a->options.seed,
				 .runs = a->runs_given ? a->options.runs : UINT64_MAX,
				 .deadline = f->seconds > 0 ? t.start + f->seconds : 0,
				 .jobs = a->options.jobs,
				 .wanted = expect_watched(cfg->store, cfg->name)};
	char *corpus;
	if (fuzz_turn_begin(&t, &o))
		return no_memory();
	int status = open_corpus(a, &t, &corpus);
	if (!status) {
		status = run_rounds(f, &t, corpus);
		if (fuzz_report_turn(&f->report, &t) && !status)
			status = no_memory();
	}
	f->unaccepted |= t.unaccepted != 0;
	free(corpus);
	fuzz_turn_end(&t);
	return status;
}

/* --- the whole --- */

static int save_results(struct fuzzing *f)
{
	const struct arguments *a = f->a;
	int status = 0;
	if (a->json)
		status = saved(a->json,
			       fuzz_report_json(&f->report, a->options.seed, f->stopped, a->json));
	if (!status && a->junit)
		status = saved(a->junit, fuzz_report_junit(&f->report, a->junit));
	return status;
}

static int run(const struct arguments *a, const struct campaign *c)
{
	struct fuzzing f = {.a = a};
	f.report.session = &f.session;
	f.seconds = a->seconds > 0 ? a->seconds : a->runs_given ? 0 : DEFAULT_SECONDS;
	int status = rerun_all(&f);
	for (unsigned i = 0; i < c->configs && !status && !f.stopped; i++)
		status = fuzz_store(&f, &c->config[i]);
	if (!status)
		status = save_results(&f);
	bool failed = f.unaccepted || f.session.rerun_failures;
	fuzz_report_free(&f.report);
	fuzz_session_free(&f.session);
	return status ? status : failed ? EXIT_BROKEN : EXIT_HELD;
}

int fuzz_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces", .options = campaign_default, .one_config = true};
	struct campaign c = {0};
	bool made = false;
	a.options.jobs = arguments_jobs();
	int status = arguments_read(&options, &a, argc, argv);
	if (status >= 0)
		return status;
	if (expect_mistake())
		return fail(EXIT_INTERNAL, "%s", expect_mistake());
	status = arguments_configs(&a, &c);
	if (!status)
		status = arguments_check_outputs(&a, &made);
	if (!status)
		status = run(&a, &c);
	if (made)
		rmdir(a.out); /* unless there is a trace in it */
	campaign_free(&c);
	return status;
}
