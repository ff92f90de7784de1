/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark replay: tell traces, and say whether their contract still breaks. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/story.h"
#include "scenarios/stores.h"

static void help(void)
{
	puts("usage: tidemark replay [-q] [--brief] [--repeat N] FILE...\n"
	     "Tells each trace step by step.\n\n"
	     "  -q          the verdict only\n"
	     "  --brief     without single stores and posted requests\n"
	     "  --repeat N  replay N times, and fail if two of them differ\n\n"
	     "exit status: 1 the contract breaks as the trace says, 4 it does not any more, 2 not a good trace");
}

int read_trace(const char *path, struct trace *t)
{
	struct input_error where = {0};
	int error = trace_read(path, t, store_find, &where);
	if (!error)
		return 0;
	if (where.line)
		return fail(EXIT_USAGE, "%s:%u: %s", path, where.line, where.message);
	return fail(EXIT_USAGE, "%s: %s", path, where.message[0] ? where.message : strerror(-error));
}

static int replay_once(struct trace *t, const char *path, struct story *story, uint64_t *hash)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *out = malloc(sizeof(*out));
	struct replay_audience audience = story ? story_audience(story) : (struct replay_audience){0};
	struct deviation_names names = {t->setup.region, t->setup.regions};
	int status;
	if (!ex || !out)
		return fail(EXIT_INTERNAL, "out of memory");
	int error = explore_open(ex, &t->setup, &explore_default);
	if (error)
		return fail(EXIT_USAGE, "%s: the store cannot run this workload: %s", path,
			    error == -EIO ? ex->worlds.world[0].result.why : strerror(-error));
	if (story)
		story_begin(story);
	error = replay(ex, &t->deviations, t->contract == TM_KEEP, story ? &audience : NULL, out);
	if (error) {
		status = fail(EXIT_INTERNAL, "%s: %s", path, strerror(-error));
	} else if (out->unused) {
		char text[256];
		deviation_print(out->unused, &names, text, sizeof(text));
		fflush(stdout);
		status = fail(EXIT_USAGE, "%s:%u: this deviation does not apply, the run never comes to such a point: %s", path,
			      out->unused->line, text);
	} else {
		if (story)
			story_verdict(story, out);
		status = t->contract >= 0 && out->verdict[t->contract].broken ? EXIT_BROKEN : EXIT_FIXED;
		*hash = out->hash;
	}
	explore_close(ex);
	free(ex);
	free(out);
	return status;
}

static int replay_file(const char *path, bool quiet, bool brief, unsigned repeat)
{
	struct trace t;
	uint64_t first = 0, hash = 0;
	int status = read_trace(path, &t);
	if (status)
		return status;
	struct story story = {.trace = &t, .brief = brief, .where = quiet ? NULL : where_new()};
	status = replay_once(&t, path, quiet ? NULL : &story, &first);
	for (unsigned i = 1; i < repeat && status != EXIT_USAGE && status != EXIT_INTERNAL; i++) {
		int again = replay_once(&t, path, NULL, &hash);
		if (again != status || hash != first)
			status = fail(EXIT_INTERNAL, "%s: replay %u differs from the first", path, i + 1);
	}
	if (status == EXIT_BROKEN || status == EXIT_FIXED)
		printf("%s: %s%s%s\n", path, status == EXIT_FIXED ? "fixed" : "broken ",
		       status == EXIT_FIXED ? "" : contract_name((enum tm_contract)t.contract), repeat > 1 ? ", every time" : "");
	where_free(story.where);
	trace_free(&t);
	return status;
}

int replay_main(int argc, char **argv)
{
	bool quiet = false, brief = false;
	unsigned long long repeat = 1;
	int worst = EXIT_FIXED, files = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			help();
			return 0;
		}
		if (!strcmp(argv[i], "-q")) {
			quiet = true;
		} else if (!strcmp(argv[i], "--brief")) {
			brief = true;
		} else if (!strcmp(argv[i], "--repeat")) {
			if (i + 1 == argc || !number_option("--repeat", argv[++i], 1, 1000000, &repeat))
				return i + 1 == argc ? fail(EXIT_USAGE, "replay: --repeat wants a number") : EXIT_USAGE;
		} else if (argv[i][0] == '-' && argv[i][1]) {
			return fail(EXIT_USAGE, "replay: unknown option \"%.40s\" (tidemark replay --help)", argv[i]);
		} else {
			files++;
			int status = replay_file(argv[i], quiet, brief, (unsigned)repeat);
			if (status == EXIT_USAGE || status == EXIT_INTERNAL)
				return status;
			if (status == EXIT_BROKEN)
				worst = EXIT_BROKEN;
		}
	}
	return files ? worst : fail(EXIT_USAGE, "replay: no trace named (tidemark replay --help)");
}
