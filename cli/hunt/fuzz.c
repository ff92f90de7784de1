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
#include "checker/hunt/fuzz_session.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "core/clock.h"
#include "report/hunt/hunt_report.h"
#include "report/output.h"
#include "core/text/text.h"

#define DEFAULT_SECONDS 60
#define DEFAULT_REGRESS "tests/traces"

struct fuzzing {
	const struct arguments *a;
	struct fuzz_session session;
	struct fuzz_report report;
	double seconds;		     /* of each store; 0: runs are counted */
	struct driver_bounds bounds; /* of the store's turn */
	bool stopped, unaccepted;
};

static const struct option_row rows[] = {
	{.help = "what is tested"},
	ROW_VARIANT,
	ROW_KNOB,
	{"regress", "DIR", "the traces that are run again (tests/traces, if there is one)",
	 ARGUMENT(regress)},
	{.help = "how much"},
	{"time", "TIME", "for each store: 90s, 2m, 1h (=)",
	 ARGUMENT_GIVEN(seconds, 0, 0, seconds_given)},
	ROW_RUNS("runs for each store; without --time the same seed gives the same results, on "
		 "whatever machine"),
	ROW_SEED("of the changes (=)"),
	OPTION_JOBS(struct arguments, leave_off.how.jobs),
	{.help = "what is written"},
	{"corpus", "DIR", "inputs are read from DIR/STORE, and new ones written there",
	 ARGUMENT(corpus)},
	ROW_OUT,
	ROW_NO_TRACES,
	ROWS_RESULTS,
	OPTION_QUIET(struct arguments, leave_off.quiet),
	OPTION_END};

static const struct options options = {
	"fuzz", "[STORE...] [OPTION...]",
	"Runs the traces that are known again, then drives stores with inputs that it changes for "
	"as long as new states turn up. Without a STORE: those of the default campaign that have "
	"the knobs that are named; with --variant, all stores that have it.",
	rows,
	"0 nothing breaks unexpectedly, 1 something does, or a trace gives another verdict than it "
	"records, 2 usage or bad input, 70 internal error"};

/* --- files --- */

/* Not what a process that was killed has left. */
static int is_plain_file(const struct dirent *e)
{
	return e->d_name[0] != '.' && !strstr(e->d_name, ".tmp.");
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 6 && !strcmp(e->d_name + n - 6, ".trace");
}

/* In the order of their names, until one returns a status that is not 0. */
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
	struct fuzz_session *s = arg;
	struct trace t;
	int status = read_trace(path, &t, false);
	if (status)
		return status;
	int error = fuzz_session_rerun(s, &t, path);
	trace_free(&t);
	return error ? fail(EXIT_INTERNAL, "%s: %s", path, driver_error(error)) : 0;
}

/* A trace of an earlier session. One that cannot be read is not ours, and no error. */
static int learn_trace(void *arg, const char *path)
{
	struct fuzz_session *s = arg;
	struct trace t;
	if (fuzz_session_has(s, path) || read_trace(path, &t, false))
		return 0;
	int error = fuzz_session_learn(s, &t, path, false);
	trace_free(&t);
	return error < 0 ? no_memory() : 0;
}

/* Run the traces of --regress again, say how that went, and know those of --out. */
static int rerun_traces(struct fuzz_session *s, const struct arguments *a)
{
	const char *dir = a->regress ? a->regress : DEFAULT_REGRESS;
	struct stat st;
	int status = 0;
	if (a->regress || (!stat(dir, &st) && S_ISDIR(st.st_mode)))
		status = each_file(dir, is_trace, rerun_trace, s);
	if (!status && !a->no_traces)
		status = each_file(a->out, is_trace, learn_trace, s);
	if (!status)
		fuzz_report_reruns(s, dir);
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
	struct fuzz_turn *t = arg;
	struct fuzz *f = &t->fuzz;
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

/* Those from number *saved_inputs on. */
static int save_corpus(const char *dir, struct fuzz_turn *t, unsigned *saved_inputs)
{
	const struct fuzz *f = &t->fuzz;
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

/* *dir: the store's folder, to be freed; NULL: no corpus was asked for. Its inputs are seeds. */
static int open_corpus(const struct arguments *a, struct fuzz_turn *t, char **dir)
{
	*dir = NULL;
	if (!a->corpus)
		return 0;
	if (asprintf(dir, "%s/%s", a->corpus, t->config->store->name) < 0) {
		*dir = NULL;
		return no_memory();
	}
	int status = check_folder("--corpus", *dir, true);
	return status ? status : each_file(*dir, is_plain_file, load_input, t);
}

/* --- one store --- */

static int save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run)
{
	const struct fuzzing *f = t->arg;
	const char *dir = f->a->out;
	char tail[24];
	if (f->a->no_traces)
		return 0;
	uint64_t hash = XXH3_64bits_withSeed(k->fingerprint.part,
					     k->fingerprint.parts * sizeof(k->fingerprint.part[0]),
					     k->fingerprint.cleans);
	snprintf(tail, sizeof(tail), "-%08x", (unsigned)(hash >> 32));
	int error = trace_path(t->config, k->fingerprint.contract, dir, tail, &k->trace);
	if (!error)
		error = save_trace(k->trace, &run->setup, &run->path, (int)k->fingerprint.contract,
				   k->text);
	if (error)
		snprintf(t->why, sizeof(t->why), "%s: %s", k->trace ? k->trace : dir,
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
	const uint64_t runs = t->fuzz.options.runs - t->fuzz.counts.runs;
	double left = f->bounds.until - clock_seconds();
	char text[32];
	if (f->bounds.until > 0)
		snprintf(text, sizeof(text), "%.0f s", left > 0 ? left : 0);
	else
		snprintf(text, sizeof(text), "%" PRIu64 " run%s", runs, plural(runs));
	progress_line("%s: %" PRIu64 " run%s, %" PRIu64 " state%s, %u input%s, %" PRIu64
		      " feature%s, %u new failure%s, %s left",
		      t->config->store->name, t->fuzz.counts.runs, plural(t->fuzz.counts.runs),
		      t->fuzz.counts.states, plural(t->fuzz.counts.states), t->fuzz.inputs,
		      plural(t->fuzz.inputs), t->fuzz.features, plural(t->fuzz.features), t->fresh,
		      plural(t->fresh), text);
}

static int round_failed(const struct fuzz_turn *t, int error)
{
	bool ours = error == -ENOMEM || error == -EIO || error == -ENOTRECOVERABLE;
	return fail(ours ? EXIT_INTERNAL : EXIT_USAGE, "%s", t->why[0] ? t->why : strerror(-error));
}

static int run_rounds(struct fuzzing *f, struct fuzz_turn *t, const char *corpus)
{
	unsigned saved_inputs = 0;
	int status = 0;
	while (!status && fuzz_more(&t->fuzz)) {
		if (!f->a->leave_off.quiet)
			show_progress(f, t);
		int error = fuzz_turn_round(t);
		status = error ? round_failed(t, error) : save_corpus(corpus, t, &saved_inputs);
	}
	progress_line(NULL);
	f->stopped = *f->bounds.stop;
	return status;
}

static int fuzz_store(struct fuzzing *f, const struct campaign_config *config)
{
	const struct arguments *a = f->a;
	struct fuzz_turn t = {.session = &f->session,
			      .config = config,
			      .save = save_case,
			      .shrinking = a->leave_off.quiet ? NULL : show_shrinking,
			      .arg = f,
			      .start = clock_seconds()};
	f->bounds = (struct driver_bounds){.stop = signals_stop(),
					   .until = f->seconds > 0 ? t.start + f->seconds : 0};
	struct fuzz_options o = {.seed = a->options.seed,
				 .runs = a->runs_given ? a->options.runs : UINT64_MAX,
				 .how = {.jobs = a->leave_off.how.jobs, .bounds = &f->bounds},
				 .wanted = expect_watched(config->store, config->name)};
	char *corpus = NULL;
	int status = fuzz_turn_begin(&t, &o) ? no_memory() : 0;
	if (!status)
		status = open_corpus(a, &t, &corpus);
	if (!status) {
		status = run_rounds(f, &t, corpus);
		fuzz_report_turn(&f->report, &t);
	}
	f->unaccepted |= t.unaccepted != 0;
	free(corpus);
	fuzz_turn_end(&t);
	return status;
}

/* --- the whole --- */

static int run_fuzz(const struct arguments *a, const struct campaign *c)
{
	struct fuzzing f = {.a = a};
	f.report.session = &f.session;
	outputs_begin();
	f.seconds = a->runs_given && !a->seconds_given ? 0 : a->seconds;
	int status = rerun_traces(&f.session, a);
	for (unsigned i = 0; i < c->configs && !status && !f.stopped; i++)
		status = fuzz_store(&f, &c->config[i]);
	fuzz_conclude(&f.report, f.unaccepted || f.session.rerun_failures, f.stopped);
	json_t *all = fuzz_tree(&f.report, a->options.seed, f.stopped);
	if (!status) {
		status = outputs_write(json_incref(all), &f.report.conclusion);
		conclusion_print(&f.report.conclusion);
	}
	json_decref(all);
	fuzz_session_free(&f.session);
	return status ? status : f.report.conclusion.status;
}

int fuzz_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces",
			      .seconds = DEFAULT_SECONDS,
			      .options = campaign_default,
			      .one_config = true};
	struct campaign c = {0};
	a.leave_off.how.jobs = arguments_jobs();
	int status = arguments_read(&options, &a, argc, argv);
	if (status >= 0)
		return status;
	if (expect_mistake())
		return fail(EXIT_INTERNAL, "%s", expect_mistake());
	status = arguments_configs(&a, &c);
	if (!status)
		status = arguments_check_outputs(&a);
	if (!status)
		status = run_fuzz(&a, &c);
	campaign_free(&c);
	return status;
}
