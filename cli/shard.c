/* SPDX-License-Identifier: BSD-3-Clause */
/* See shard.h. */
#include "cli/shard.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>
#include "checker/campaign/driver.h"
#include "cli/cli.h"
#include "core/text/text.h"
#include "scenarios/stores.h"

#define BLOCK	  ((size_t)1 << 16)
#define HASH_TEXT 33 /* bytes */

/* What is known comes from here: `tidemark merge`. */
static struct results *merged;
static bool missing;

/* --- whose results they are --- */

/* 0 or -errno. */
static int hash_file(const char *path, char text[HASH_TEXT])
{
	XXH3_state_t *state = XXH3_createState();
	char *block = malloc(BLOCK);
	FILE *in = fopen(path, "re");
	int error = !state || !block ? -ENOMEM : in ? 0 : -errno;
	if (!error) {
		size_t n;
		XXH3_128bits_reset(state);
		while ((n = fread(block, 1, BLOCK, in)))
			XXH3_128bits_update(state, block, n);
		error = ferror(in) ? -EIO : 0;
		XXH128_hash_t hash = XXH3_128bits_digest(state);
		snprintf(text, HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high64,
			 (unsigned long long)hash.low64);
	}
	if (in)
		fclose(in);
	free(block);
	XXH3_freeState(state);
	return error;
}

static int add_word(json_t *list, const char *word)
{
	return json_array_append_new(list, json_string(word))
		       ? fail(EXIT_USAGE,
			      "\"%.60s\": what is not UTF-8 cannot be written to a file of results",
			      word)
		       : 0;
}

/* If the word names a file, what is in it decides, too. */
static int add_file(json_t *files, const char *word)
{
	struct stat st;
	char hash[HASH_TEXT];
	if (stat(word, &st) || !S_ISREG(st.st_mode))
		return 0;
	int error = hash_file(word, hash);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", word, strerror(-error));
	return json_object_set_new(files, word, json_string(hash))
		       ? fail(EXIT_INTERNAL, "out of memory")
		       : 0;
}

static int add_words(json_t *list, json_t *files, char *const *word)
{
	int status = 0;
	for (; *word && !status; word++) {
		/* A store that was loaded stands there by its name. */
		const struct tm_store *store = store_find(*word);
		const char *path = store ? store_path(store) : NULL;
		const char *value = **word == '-' ? strchr(*word, '=') : NULL;
		status = add_word(list, path ? path : *word);
		if (!status && (path || value || **word != '-'))
			status = add_file(files, path ? path : value ? value + 1 : *word);
	}
	return status;
}

/* What decides the results: this program, and what it is asked for. 0, or the status after a
 * message; *campaign is the caller's in any case. */
static int describe(json_t **campaign)
{
	const struct options_given *given = options_given();
	json_t *options = json_array(), *words = json_array(), *files = json_object();
	char build[HASH_TEXT];
	int error = hash_file("/proc/self/exe", build);
	*campaign = json_pack("{s:s, s:s, s:o, s:o, s:o}", "build", error ? "" : build, "command",
			      given->command, "options", options, "words", words, "files", files);
	if (error || !*campaign)
		return fail(EXIT_INTERNAL, "/proc/self/exe: %s", strerror(error ? -error : ENOMEM));
	int status = add_words(options, files, given->option[OPTION_DECIDES]);
	return status ? status : add_words(words, files, given->word);
}

/* The words of the call, and those of its options that say what is written. 0, or the status after
 * a message; *shown is the caller's in any case. */
static int describe_shown(json_t **shown)
{
	json_t *options = json_array(), *called = json_array();
	int status = 0;
	*shown = json_pack("{s:o, s:o}", "options", options, "called", called);
	if (!*shown)
		return fail(EXIT_INTERNAL, "out of memory");
	for (char *const *w = options_given()->option[OPTION_SHOWS]; *w && !status; w++)
		status = add_word(options, *w);
	for (char *const *w = arguments; *w && !status; w++) {
		bool option = !strncmp(*w, "--shard", 7) || !strncmp(*w, "--results", 9);
		if (!option)
			status = add_word(called, *w);
		else if (!strchr(*w, '=') && w[1])
			w++;
	}
	return status;
}

/* --- merging --- */

void shard_merge(struct results *r)
{
	merged = r;
}

bool shard_is_missing(void)
{
	return missing;
}

/* A word that one list has and the other has not; or NULL. */
static const char *odd_word(const json_t *list, const json_t *other)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!json_equal(json_array_get(list, i), json_array_get(other, i)))
			return json_string_value(json_array_get(list, i));
	return NULL;
}

static const char *odd_file(json_t *files, const json_t *others)
{
	const char *path;
	json_t *hash;
	json_object_foreach(files, path, hash)
	{
		if (!json_equal(hash, json_object_get(others, path)))
			return path;
	}
	return NULL;
}

/* Is what is merged of the campaign that is run? 0, or the status after a message. */
static int compare_merged(json_t *campaign)
{
	const struct results_file *f = merged->file;
	while (!f->about)
		f++;
	json_t *files = json_object_get(f->campaign, "files");
	if (json_equal(f->campaign, campaign))
		return 0;
	if (!json_equal(json_object_get(f->campaign, "build"), json_object_get(campaign, "build")))
		return fail(EXIT_USAGE, "%s: the results of another build of tidemark", f->path);
	const char *word = odd_word(json_object_get(campaign, "options"),
				    json_object_get(f->campaign, "options"));
	if (word)
		return fail(EXIT_USAGE,
			    "merge: %.80s: expected options of what is written, not of what is run",
			    word);
	word = odd_file(json_object_get(campaign, "files"), files);
	if (!word)
		word = odd_file(files, json_object_get(campaign, "files"));
	return fail(EXIT_USAGE, "%s: %s%s", f->path,
		    word ? word : "not the results of this command",
		    word ? " has changed since" : "");
}

/* --- a campaign --- */

static struct results kept;
static char kept_path[96];

bool shard_is_asked(const struct shard_request *q)
{
	return q->shard || q->results;
}

bool shard_is_part(const struct shard_request *q)
{
	return q->shard != NULL;
}

/* "I/N" */
static int read_shard(const char *text, unsigned *shard, unsigned *shards)
{
	char part[40];
	uint64_t i, n;
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : sizeof(part);
	snprintf(part, sizeof(part), "%.*s", (int)(len < sizeof(part) ? len : 0), text);
	if (!slash || !text_number(slash + 1, 1, RESULTS_SHARDS, &n) ||
	    !text_number(part, 0, n - 1, &i))
		return fail(EXIT_USAGE, "--shard: \"%.40s\"; expected I/N, with I from 0 to N - 1",
			    text);
	*shard = (unsigned)i;
	*shards = (unsigned)n;
	return 0;
}

/* Where a shard's results are if nothing is said. */
static void usual_path(const char *command, unsigned shard, unsigned shards, char *path, size_t n)
{
	snprintf(path, n, "%s-%u-of-%u.results", command, shard, shards);
}

static int open_file(const struct shard_request *q, json_t *campaign)
{
	unsigned shard = 0, shards = 1;
	int status = q->shard ? read_shard(q->shard, &shard, &shards) : 0;
	json_t *shown = NULL;
	if (!status)
		status = describe_shown(&shown);
	usual_path(options_given()->command, shard, shards, kept_path, sizeof(kept_path));
	if (!status && q->results)
		status = check_output("--results", q->results, OUTPUT_IN_PLACE);
	if (!status && results_open_shard(&kept, q->results ? q->results : kept_path, campaign,
					  shown, shard, shards))
		status = fail(EXIT_USAGE, "%s", kept.why);
	if (!status && kept.files && kept.file[0].damaged)
		fail(0, "%s: damaged at byte %llu; what came after it is done again",
		     kept.file[0].path, (unsigned long long)kept.file[0].damaged);
	json_decref(shown);
	return status;
}

int shard_begin(const struct shard_request *q, struct results **r)
{
	json_t *campaign = NULL;
	*r = NULL;
	if (!merged && !shard_is_asked(q))
		return 0;
	if (merged && shard_is_asked(q))
		return fail(EXIT_USAGE, "merge: expected no --shard and no --results");
	int status = describe(&campaign);
	if (!status)
		status = merged ? compare_merged(campaign) : open_file(q, campaign);
	json_decref(campaign);
	*r = status ? NULL : merged ? merged : &kept;
	return status;
}

static int end_part(const struct shard_request *q, int error)
{
	const struct results_file *f = &kept.file[0];
	if (!kept.packed) /* not begun */
		return fail(EXIT_INTERNAL, "%s", driver_error(error));
	/* A unit that could not run is a result, too. */
	if (kept.missing && (!error || error == -EINTR))
		return fail(EXIT_UNSURE,
			    "shard %s: left off; %u unit%s missing, which the same command does",
			    q->shard, kept.missing, kept.missing == 1 ? " is" : "s are");
	if (kept.missing)
		return fail(EXIT_INTERNAL, "shard %s: %s", q->shard, driver_error(error));
	printf("shard %s is done: %s", q->shard, f->path);
	if (kept.known)
		printf(", which had %u of its units already", kept.known);
	putchar('\n');
	return EXIT_HELD;
}

int shard_end(const struct shard_request *q, int error)
{
	const struct results *r = merged ? merged : &kept;
	if (!merged && !shard_is_asked(q))
		return -1;
	if (r->why[0])
		return fail(EXIT_USAGE, "%s", r->why);
	if (shard_is_part(q))
		return end_part(q, error);
	missing = merged && merged->missing;
	return -1;
}
