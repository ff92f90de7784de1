/* SPDX-License-Identifier: BSD-3-Clause */
/* See fuzz_files.h. */
#include "cli/hunt/fuzz_files.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "cli/cli.h"
#include "report/hunt/hunt_report.h"
#include "report/output.h"
#include "core/text/text.h"

#define DEFAULT_REGRESS "tests/traces"

/* --- a store's turn --- */

int fuzz_begin(struct fuzz_turn *t, const struct arguments *a, uint64_t seed, double until,
	       struct driver_bounds *bounds)
{
	*bounds = (struct driver_bounds){.stop = signals_stop(), .until = until};
	struct fuzz_options o = {.seed = seed,
				 .runs = a->runs_given ? a->options.runs : UINT64_MAX,
				 .how = {.jobs = a->leave_off.how.jobs, .bounds = bounds},
				 .wanted = expect_watched(t->config->store, t->config->name)};
	return fuzz_turn_begin(t, &o) ? no_memory() : 0;
}

void fuzz_show_shrinking(const struct fuzz_turn *t, unsigned contract)
{
	progress_line("%s: shrinking a case that breaks %s", t->config->store->name,
		      contract_name(contract));
}

void fuzz_progress(const struct fuzz_turn *t, const char *else_said)
{
	progress_line(
		"%s: %" PRIu64 " run%s, %" PRIu64 " state%s, %u input%s, %" PRIu64 " feature%s%s",
		t->config->store->name, t->fuzz.counts.runs, plural(t->fuzz.counts.runs),
		t->fuzz.counts.states, plural(t->fuzz.counts.states), t->fuzz.inputs,
		plural(t->fuzz.inputs), t->fuzz.features, plural(t->fuzz.features), else_said);
}

/* --- files --- */

int is_left_over(const struct dirent *e)
{
	return e->d_name[0] != '.' && strstr(e->d_name, ".tmp.") != NULL;
}

int is_plain_file(const struct dirent *e)
{
	return e->d_name[0] != '.' && !is_left_over(e);
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);
	return e->d_name[0] != '.' && n > 6 && !strcmp(e->d_name + n - 6, ".trace");
}

int each_file(const char *dir, int (*filter)(const struct dirent *),
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

int fuzz_fail(const struct fuzz_turn *t, int error)
{
	bool ours = error == -ENOMEM || error == -EIO || error == -ENOTRECOVERABLE;
	return fail(ours ? EXIT_INTERNAL : EXIT_USAGE, "%s", t->why[0] ? t->why : strerror(-error));
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
	int error = fuzz_session_learn(s, &t, path, false, false);
	trace_free(&t);
	return error < 0 ? no_memory() : 0;
}

int fuzz_rerun_traces(struct fuzz_session *s, const struct arguments *a)
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

/* --- what is found --- */

int fuzz_save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run,
		   const char *dir)
{
	char tail[24];
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

int fuzz_save_corpus(const char *dir, struct fuzz_turn *t, unsigned *saved_inputs)
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

int fuzz_open_corpus(const struct arguments *a, struct fuzz_turn *t, char **dir)
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
