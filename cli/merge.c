/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark merge: the report of a campaign that was run in shards. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/shard.h"
#include "core/text/text.h"

#define TOLD 8 /* commands for shards that are missing, at most */

static const struct option_row rows[] = {OPTION_END};

static const struct options options = {
	"merge", "FILE... [OPTION...]",
	"Prints the report of a campaign whose shards were run apart (--shard), as if one machine "
	"had run all of it. A FILE has the results of a shard, or what there is of them; their "
	"order does not matter. Options are those of the campaign's command that say what is "
	"written (--json, --out, ...); those that the shards were given count as well.",
	rows,
	"that of the campaign's command; 2 usage or bad input, 3 shards are missing, or not "
	"complete: the report is of what is there"};

/* Those that call shard_begin(). */
static const char *const commands[] = {"crashtest", "taxonomy", "claims", "mutants", "images"};

/* --- the campaign's command --- */

static bool is_strings(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!json_is_string(json_array_get(list, i)))
			return false;
	return json_is_array(list);
}

static const struct results_file *first_begun(const struct results *r)
{
	for (unsigned i = 0; i < r->files; i++)
		if (r->file[i].about)
			return &r->file[i];
	return NULL;
}

static char **add_all(char **to, const json_t *list)
{
	/* Nobody writes to them. */
	for (size_t i = 0; i < json_array_size(list); i++)
		*to++ = (char *)(uintptr_t)json_string_value(json_array_get(list, i));
	return to;
}

/* The words of the call that has these results: the campaign's, and those that say what is
 * written, the last ones from `more` on. *n of them; NULL: they are none, or there is no memory. */
static char **words_of(const struct results_file *f, char **more, int *n)
{
	const json_t *name = json_object_get(f->campaign, "command");
	const json_t *option = json_object_get(f->campaign, "options");
	const json_t *word = json_object_get(f->campaign, "words");
	const json_t *shown = json_object_get(f->shown, "options");
	unsigned extra = 0, i = 0;
	while (i < sizeof(commands) / sizeof(commands[0]) &&
	       (!json_is_string(name) || strcmp(commands[i], json_string_value(name)) != 0))
		i++;
	if (i == sizeof(commands) / sizeof(commands[0]) || !is_strings(option) ||
	    !is_strings(word) || !is_strings(shown))
		return NULL;
	while (more[extra])
		extra++;
	char **all = calloc(json_array_size(option) + json_array_size(shown) +
				    json_array_size(word) + extra + 4,
			    sizeof(*all));
	char **to = all;
	if (!all)
		return NULL;
	*to++ = (char *)(uintptr_t)commands[i];
	to = add_all(to, option);
	to = add_all(to, shown);
	while (*more)
		*to++ = *more++;
	*to++ = (char *)(uintptr_t) "--";
	to = add_all(to, word);
	*n = (int)(to - all);
	return all;
}

/* --- what is missing --- */

static void write_list(FILE *out, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		putc(' ', out);
		write_word(out, json_string_value(json_array_get(list, i)));
	}
}

/* The command that does what is missing of a shard, and nothing else. */
static void write_command(FILE *out, const struct results *r, unsigned shard, unsigned shards)
{
	const struct results_file *f = first_begun(r), *own = NULL;
	const json_t *word = json_object_get(f->campaign, "words");
	for (unsigned i = 0; i < r->files; i++)
		if (r->file[i].about && r->file[i].shard == shard && r->file[i].shards == shards)
			own = &r->file[i];
	fprintf(out, "%s %s", program, json_string_value(json_object_get(f->campaign, "command")));
	write_list(out, json_object_get(f->campaign, "options"));
	write_list(out, json_object_get(f->shown, "options"));
	fprintf(out, " --shard %u/%u", shard, shards);
	if (own) {
		fputs(" --results ", out);
		write_word(out, own->path);
	}
	if (json_array_size(word)) {
		fputs(" --", out);
		write_list(out, word);
	}
}

/* "0,3-5,9", as sbatch --array takes it. Returns how many there are. */
static unsigned write_numbers(FILE *out, const struct results *r, unsigned shards)
{
	unsigned n = 0;
	for (unsigned i = 0, end; i < shards; i = end + 1) {
		for (end = i; end < shards && results_lacks(r, end, shards); end++)
			n++;
		if (end == i)
			continue;
		fprintf(out, "%s%u", n > end - i ? "," : "", i);
		if (end > i + 1)
			fprintf(out, "-%u", end - 1);
	}
	return n;
}

static void tell_missing(const struct results *r)
{
	const unsigned shards = first_begun(r)->shards;
	unsigned n = 0;
	char *text = TEXT_PRINTED(out, n = write_numbers(out, r, shards));
	if (text)
		fail(0, "%u of %u unit%s %s missing, of %u of %u shard%s: %s", r->missing, r->units,
		     plural(r->units), r->missing == 1 ? "is" : "are", n, shards, plural(shards),
		     text);
	free(text);
	for (unsigned i = 0, told = 0; i < shards && told < TOLD; i++) {
		if (!results_lacks(r, i, shards))
			continue;
		told++;
		text = TEXT_PRINTED(out, write_command(out, r, i, shards));
		if (text)
			fail(0, "to run shard %u: %s", i, text);
		free(text);
	}
}

/* --- the whole --- */

static int read_files(struct results *r, char **path)
{
	for (; *path && (**path != '-' || !(*path)[1]); path++) {
		note_input(*path);
		if (results_read(r, *path))
			return fail(EXIT_USAGE, "%s", r->why);
		if (r->file[r->files - 1].damaged)
			fail(0, "%s: damaged at byte %llu; what comes after it is not used", *path,
			     (unsigned long long)r->file[r->files - 1].damaged);
	}
	if (!r->files)
		return fail(EXIT_USAGE, "merge: %.40s: expected a FILE before any option",
			    *path ? *path : "no file is named");
	return first_begun(r) ? 0 : fail(EXIT_UNSURE, "%s: no results yet", r->file[0].path);
}

static int run_merge(struct results *r, char **more)
{
	const struct results_file *f = first_begun(r);
	const json_t *called = json_object_get(f->shown, "called");
	int argc = 0;
	char **words = words_of(f, more, &argc), **before = arguments;
	if (!words || !is_strings(called))
		return fail(EXIT_USAGE, "%s: results that this tidemark does not read", f->path);
	/* A report may name the call that it is of. */
	arguments = calloc(json_array_size(called) + 1, sizeof(*arguments));
	if (!arguments)
		return fail(EXIT_INTERNAL, "out of memory");
	add_all(arguments, called);
	shard_merge(r);
	optind = 0; /* getopt_long() begins anew */
	int status = run_command(argc, words);
	if (shard_is_missing()) {
		tell_missing(r);
		status = status == EXIT_HELD ? EXIT_UNSURE : status;
	}
	free(arguments);
	arguments = before;
	free(words);
	return status;
}

int merge_main(int argc, char **argv)
{
	struct results r;
	/* Other options are the campaign's, and it is known once a file is read. */
	bool early = argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--help") != 0;
	int status = early ? -1 : options_read_leading(&options, NULL, argc, argv);
	if (status >= 0)
		return status;
	argv += early ? 1 : optind;
	results_open(&r);
	status = read_files(&r, argv);
	if (!status)
		status = run_merge(&r, argv + r.files);
	results_close(&r);
	return status;
}
