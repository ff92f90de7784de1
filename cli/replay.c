/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark replay: tell traces, and say whether their contract still breaks. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/story.h"

static void help(void)
{
	puts("usage: tidemark replay [OPTION...] FILE...\n"
	     "Tells each trace step by step; - is standard input.\n\n"
	     "  -q, --quiet  the verdict only\n"
	     "  --brief      without single stores, flushes, fences and posted requests\n"
	     "  --repeat N   replay N times, and fail if two of them differ\n"
	     "  --help       this text\n\n"
	     "exit status: 1 the contract breaks as the trace says, 4 it does not any more, 0 the trace "
	     "says\n"
	     "\"broken none\" and no promise is broken, 2 not a good trace, 70 internal error");
}

static void verdict_line(const struct trace *t, const char *path, int status, bool repeated)
{
	const char *name = t->contract < 0 ? "" : contract_name((enum tm_contract)t->contract);
	printf("%s: ", path);
	if (status == EXIT_FIXED)
		printf("fixed: %s is not broken any more", name);
	else if (t->contract < 0)
		printf("names no broken contract; %s",
		       status == EXIT_BROKEN ? "but a promise is broken" : "no promise is broken");
	else
		printf("broken %s", name);
	puts(repeated ? ", every time" : "");
}

/* What the outcome means for the exit. */
static int judge(const struct trace *t, const struct replay_outcome *out)
{
	if (t->contract >= 0)
		return out->verdict[t->contract].broken ? EXIT_BROKEN : EXIT_FIXED;
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken && t->setup.store->promises & TM_BIT(c))
			return EXIT_BROKEN;
	return EXIT_HELD;
}

/* The explorer is open. */
static int replay_open(struct explorer *ex, struct trace *t, const char *path, struct story *story,
		       uint64_t *hash, struct replay_outcome *out)
{
	struct replay_audience audience = story ? story_audience(story) : (struct replay_audience){0};
	struct deviation_names names = {t->setup.region, t->setup.regions};
	char text[256];
	if (story)
		story_begin(story);
	int error = replay(ex, &t->deviations, t->contract == TM_KEEP, story ? &audience : NULL, out);
	fflush(stdout);
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", path, strerror(-error));
	if (out->unused) {
		deviation_print(out->unused, &names, text, sizeof(text));
		return fail(EXIT_USAGE,
			    "%s:%u: this deviation does not apply, the run never comes to such a point: %s",
			    path, out->unused->line, text);
	}
	if (story)
		story_verdict(story, out);
	*hash = out->hash;
	return judge(t, out);
}

static int replay_once(struct trace *t, const char *path, struct story *story, uint64_t *hash)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *out = malloc(sizeof(*out));
	int status, error = ex && out ? explore_open(ex, &t->setup, &explore_default) : -ENOMEM;
	if (error) {
		status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE,
			      "%s: the store cannot run this workload: %s", path,
			      error == -EIO ? ex->worlds.world[0].result.why : strerror(-error));
	} else {
		status = replay_open(ex, t, path, story, hash, out);
		explore_close(ex);
	}
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
	if (!strcmp(path, "-"))
		path = "standard input";
	struct story story = {.trace = &t, .brief = brief, .where = quiet ? NULL : where_new()};
	status = replay_once(&t, path, quiet ? NULL : &story, &first);
	for (unsigned i = 1; i < repeat && status != EXIT_USAGE && status != EXIT_INTERNAL; i++) {
		int again = replay_once(&t, path, NULL, &hash);
		if (again != status || hash != first)
			status = fail(EXIT_INTERNAL, "%s: replay %u differs from the first", path, i + 1);
	}
	if (status != EXIT_USAGE && status != EXIT_INTERNAL)
		verdict_line(&t, path, status, repeat > 1);
	story_free(&story);
	trace_free(&t);
	return status;
}

static int bad_option(const char *word)
{
	static const char *const options[] = {"--help", "--brief", "--repeat", NULL};
	struct nearest n;
	nearest_init(&n, word);
	for (unsigned i = 0; options[i]; i++)
		nearest_try(&n, options[i]);
	return fail(EXIT_USAGE, "replay: unknown option \"%.40s\"%s (tidemark replay --help)", word, n.hint);
}

int replay_main(int argc, char **argv)
{
	bool quiet = false, brief = false, fixed = false, broken = false;
	unsigned long long repeat = 1;
	int files = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			help();
			return 0;
		}
		if (!strcmp(argv[i], "-q") || !strcmp(argv[i], "--quiet")) {
			quiet = true;
		} else if (!strcmp(argv[i], "--brief")) {
			brief = true;
		} else if (!strcmp(argv[i], "--repeat")) {
			if (i + 1 == argc)
				return fail(EXIT_USAGE, "replay: --repeat wants a number");
			if (!number_option("--repeat", argv[++i], 1, 1000000, &repeat))
				return EXIT_USAGE;
		} else if (argv[i][0] == '-' && argv[i][1]) {
			return bad_option(argv[i]);
		} else {
			argv[++files] = argv[i]; /* options may stand behind files */
		}
	}
	for (int i = 1; i <= files; i++) {
		int status = replay_file(argv[i], quiet, brief, (unsigned)repeat);
		if (status == EXIT_USAGE || status == EXIT_INTERNAL)
			return status;
		broken |= status == EXIT_BROKEN;
		fixed |= status == EXIT_FIXED;
	}
	if (!files)
		return fail(EXIT_USAGE, "replay: no trace named (tidemark replay --help)");
	return broken ? EXIT_BROKEN : fixed ? EXIT_FIXED : EXIT_HELD;
}
