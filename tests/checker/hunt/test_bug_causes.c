/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cause that is told of a seeded bug is the bug. Each bug of a store is looked for as `tidemark
 * mutants` does, its failure is shrunk, and the cause is asked for. It must name a switch of the
 * variant, and the place where it is asked for must be in a function whose source asks for that
 * switch. Where that is, is read from the source, and not from what the cause's search knows.
 *
 * Most who read a cause have no switch: so what else it says is scored, too. It is right if it
 * names a place in such a function, or blames a flush that is missing and that the store makes
 * without the bug; half right if it names a place in a file that has such a function; misleading if
 * it names places, and none of those. That is scored of all facts; and, more strictly, of the first
 * place that is read, and of the first three: the sentence is read first. The shares are kept by
 * the last test.
 *
 * test_bug_causes FOLDER: the tree's top. With BUG_CAUSES=table in the environment: all bugs, and a
 * line for each; with BUG_CAUSES=whole what is told of each, too. With BUG_TRACES=FOLDER each bug's
 * trace is kept there, and what is there is not looked for: so another way to explain is soon
 * judged.
 */
#include <dirent.h>
#include <regex.h>
#include <sys/mman.h>
#include "checker/hunt/mutants.h"
#include "checker/judge/names.h"
#include "checker/cause/cause.h"
#include "scenarios/stores.h"
#include "tests/checker/hunt/soon.h"

#define PATTERN 400
#define LINES	4000 /* of a source */

/* At least, and at most; of all bugs, and of those that are looked for without a table. */
#define RIGHT_PERCENT	   65
#define MISLEADING_PERCENT 3
#define FIRST_PERCENT	   41 /* right at the first place */
#define THREE_PERCENT	   48 /* within the first three */

static struct mutant mutant[MUTANTS_MAX];
static unsigned mutants;
static const char *top = ".";
static const char *kept; /* the folder of traces, or NULL */
static bool table, whole;

/* What is told of a bug, the switch apart. */
enum score { SCORE_NONE, SCORE_MISLEADING, SCORE_HALF, SCORE_RIGHT, SCORES };
static const char *const scores[SCORES] = {"none", "misleading", "half", "right"};
enum reach { REACH_ALL, REACH_FIRST, REACH_THREE, REACHES }; /* which places count */
static const char *const reaches[REACHES] = {"all", "first", "three"};
static unsigned (*scored)[SCORES]; /* how many of each; shared by the tests' processes */

/* --- the store's sources --- */

struct source_file {
	char path[400]; /* from the tree's top */
	char *text[LINES];
	unsigned lines;
};

static struct source_file file[64];
static unsigned files;

static void read_source(const char *folder, const char *name)
{
	char path[1024], line[1024];
	struct source_file *f = &file[files++];
	ck_assert_uint_le(files, 64);
	snprintf(f->path, sizeof(f->path), "%.100s/%.200s", folder, name);
	snprintf(path, sizeof(path), "%s/%s", top, f->path);
	FILE *in = fopen(path, "r");
	ck_assert_ptr_nonnull(in);
	for (f->lines = 0; fgets(line, sizeof(line), in); f->lines++) {
		ck_assert_uint_lt(f->lines, LINES);
		f->text[f->lines] = strdup(line);
	}
	fclose(in);
}

static void read_folder(const char *folder)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", top, folder);
	DIR *dir = opendir(path);
	ck_assert_msg(dir != NULL, "no folder %s", path);
	for (struct dirent *e; (e = readdir(dir)) != NULL;)
		if (strlen(e->d_name) > 2 && strstr(".c.h", e->d_name + strlen(e->d_name) - 2))
			read_source(folder, e->d_name);
	closedir(dir);
}

/* And what the stores share: it has flags for bugs that a store sets. */
static void read_store(const char *store)
{
	char folder[128];
	snprintf(folder, sizeof(folder), "core/stores/%s", store);
	read_folder(folder);
	read_folder("core/stores");
}

static void forget_store(void)
{
	for (; files; files--)
		for (unsigned i = 0; i < file[files - 1].lines; i++)
			free(file[files - 1].text[i]);
}

/* The line in which the function around `line` begins, or -1. */
static int function_at(const struct source_file *f, int line)
{
	for (int i = line; i >= 0; i--) {
		const char *t = f->text[i];
		if (i < line && *t == '}')
			return -1;
		if ((*t == '_' || (*t >= 'a' && *t <= 'z')) && strchr(t, '(') && !strchr(t, ';'))
			return i;
	}
	return -1;
}

/* --- where a switch is asked for --- */

struct asked {
	const struct source_file *file;
	int function;
};

static struct asked asked[256];
static unsigned askeds;

static bool matches(const char *pattern, const char *text, char *group, size_t n)
{
	regex_t regex;
	regmatch_t at[2];
	ck_assert_msg(!regcomp(&regex, pattern, REG_EXTENDED), "%s", pattern);
	bool found = !regexec(&regex, text, 2, at, 0);
	if (found && group)
		snprintf(group, n, "%.*s", (int)(at[1].rm_eo - at[1].rm_so), text + at[1].rm_so);
	regfree(&regex);
	return found;
}

static void add_asked(const struct source_file *f, int function)
{
	for (unsigned i = 0; i < askeds; i++)
		if (asked[i].file == f && asked[i].function == function)
			return;
	ck_assert_uint_lt(askeds, 256);
	asked[askeds++] = (struct asked){f, function};
}

/* What the stores share has flags of its own (`enum kv_lacks`), which a store sets for its bugs. Is
 * one set in the line, or in the next, after the pattern's match? */
static bool sets_flag(const struct source_file *f, unsigned line, const char *pattern, char *flag,
		      size_t n)
{
	char after[PATTERN + 40], two[2 * PATTERN];
	regmatch_t at[4];
	regex_t regex;
	snprintf(after, sizeof(after), "(%s)[^A-Z]*(KV_LACKS_[A-Z]+)", pattern);
	snprintf(two, sizeof(two), "%.300s%.300s", f->text[line],
		 line + 1 < f->lines ? f->text[line + 1] : "");
	ck_assert_msg(!regcomp(&regex, after, REG_EXTENDED), "%s", after);
	bool found = !regexec(&regex, two, 4, at, 0);
	if (found) {
		const regmatch_t *last = &at[regex.re_nsub];
		snprintf(flag, n, "%.*s", (int)(last->rm_eo - last->rm_so), two + last->rm_so);
	}
	regfree(&regex);
	return found;
}

static void find_asked(const char *pattern, unsigned deep)
{
	for (unsigned k = 0; k < files; k++)
		for (unsigned i = 0; i < file[k].lines; i++) {
			char copy[64];
			int begins;
			if (!matches(pattern, file[k].text[i], NULL, 0))
				continue;
			begins = function_at(&file[k], (int)i);
			if (begins < 0)
				continue;
			add_asked(&file[k], begins);
			char flag[64];
			if (deep && sets_flag(&file[k], i, pattern, flag, sizeof(flag)))
				find_asked(flag, 0);
			/* What is computed from it and kept counts as the switch, too. */
			if (deep && matches("(->|\\.)([a-z_]+) = ", file[k].text[i], NULL, 0) &&
			    matches("[>.]([a-z_]+) = ", file[k].text[i], copy, sizeof(copy))) {
				char next[PATTERN];
				snprintf(next, sizeof(next), "(->|\\.)%s\\>", copy);
				find_asked(next, deep - 1);
			}
		}
}

static void upper(const char *word, char *buf, size_t n)
{
	size_t i = 0;
	for (; word[i] && i + 1 < n; i++)
		buf[i] = (char)(word[i] >= 'a' && word[i] <= 'z' ? word[i] - 32 : word[i]);
	buf[i] = '\0';
}

/* "name=value" */
static void find_switch(const char *name)
{
	char pattern[PATTERN], knob[64], loud[64];
	snprintf(knob, sizeof(knob), "%.*s", (int)strcspn(name, "="), name);
	askeds = 0;
	if (!strcmp(knob, "bug")) {
		upper(name + 4, loud, sizeof(loud));
		snprintf(pattern, sizeof(pattern),
			 "\\<(EF_BUG|BUG|RL)_%s\\>|\\<BUG_%s\\>|has_bug\\([^,]*, %s\\)", loud,
			 name + 4, name + 4);
		find_asked(pattern, 1);
		return;
	}
	upper(knob, loud, sizeof(loud));
	snprintf(pattern, sizeof(pattern),
		 "(knobs\\([^()]*\\)->|knobs?->|knobs?\\.|knob->)%s\\>|knob\\[%s\\]", knob, loud);
	find_asked(pattern, 1);
}

/* "core/stores/erda/client.c:291": is that in a function that asks? Or in its file? */
static enum score score_of_place(const char *place)
{
	char path[400];
	enum score score = SCORE_MISLEADING;
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(place, ":"), place);
	int line = place[strcspn(place, ":")] ? atoi(place + strcspn(place, ":") + 1) : 0;
	for (unsigned i = 0; i < askeds && line; i++) {
		if (strcmp(asked[i].file->path, path) != 0 || line > (int)asked[i].file->lines)
			continue;
		if (function_at(asked[i].file, line - 1) == asked[i].function)
			return SCORE_RIGHT;
		score = SCORE_HALF;
	}
	return score;
}

static bool is_asked_at(const char *place)
{
	return score_of_place(place) == SCORE_RIGHT;
}

/* --- what is told --- */

#define PLACES 256 /* of one bug, at most */

struct told {
	bool found;
	char path[500]; /* where its trace is to be kept; "": nowhere */
	enum score score[REACHES];
	unsigned places;
	char place[PLACES][120]; /* in the order of reading */
	struct cause cause;
};

static bool is_new_place(struct told *told, const char *place)
{
	char name[sizeof(told->place[0])];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(place, " ,;)"), place);
	for (unsigned i = 0; i < told->places; i++)
		if (!strcmp(told->place[i], name))
			return false;
	ck_assert_uint_lt(told->places, PLACES);
	strcpy(told->place[told->places++], name);
	return true;
}

/* Score the places that a text names; the sentence counts for the strict scores only, as all that
 * it says is a fact, too. */
static void score_text(struct told *told, const char *text, size_t len, bool sentence)
{
	const char *end = text + len;
	for (; (text = strstr(text, "core/stores/")) != NULL && text < end; text++) {
		enum score score = score_of_place(text);
		const bool is_new = is_new_place(told, text);
		for (enum reach r = 0; r < REACHES; r++) {
			if (r == REACH_ALL ? sentence
					   : !is_new || told->places > (r == REACH_FIRST ? 1 : 3))
				continue;
			told->score[r] = score > told->score[r] ? score : told->score[r];
		}
	}
}

/* What is told of the switch does not count. */
static void score_cause(struct told *told)
{
	static const char by_switch[] = " It takes the switch ";
	const struct cause *c = &told->cause;
	const char *end = strstr(c->sentence, by_switch);
	score_text(told, c->sentence, end ? (size_t)(end - c->sentence) : strlen(c->sentence),
		   true);
	for (unsigned k = 0; k < c->facts; k++)
		if (!strstr(c->fact[k], "the switch ") && strncmp(c->fact[k], "with ", 5))
			score_text(told, c->fact[k], strlen(c->fact[k]), false);
}

/* --- one bug --- */

static void tell(void *arg, struct setup *setup, const struct deviations *list, unsigned contract)
{
	struct told *told = arg;
	struct explorer *ex = malloc(sizeof(*ex));
	struct event_log log = {0};
	struct replay_outcome *out = malloc(sizeof(*out));
	const struct trace t = {.setup = *setup, .deviations = *list, .contract = (int)contract};
	const struct replay_audience audience = event_log_audience(&log, list);
	struct where *where = where_new();
	ck_assert(ex && out && where);
	if (told->path[0])
		ck_assert_int_eq(trace_save(told->path, setup, list, t.contract, NULL), 0);
	ck_assert_int_eq(replay_begin(ex, setup, (int)contract, list), 0);
	ck_assert_int_eq(replay(ex, list, contract == TM_KEEP, &audience, out), 0);
	ck_assert_int_eq(cause_find(ex, &t, &log, out, where, &told->cause), 0);
	explore_close(ex);
	event_log_free(&log);
	where_free(where);
	free(out);
	free(ex);
	told->found = true;
}

/* Find the bug, by its trace if that is kept. Returns the contract that it breaks. */
static unsigned find_bug(const struct mutant *m, struct told *told)
{
	struct mutant_options o = mutant_default;
	struct mutant_result r;
	struct input_error error;
	struct trace t;
	if (kept)
		snprintf(told->path, sizeof(told->path), "%.300s/%s-%s.trace", kept, m->part,
			 m->name);
	if (kept && !trace_read(told->path, &t, store_find, &error)) {
		const unsigned contract = (unsigned)t.contract;
		told->path[0] = '\0';
		tell(told, &t.setup, &t.deviations, contract);
		trace_free(&t);
		return contract;
	}
	o.shrunk = tell;
	o.arg = told;
	ck_assert_int_eq(mutant_search(m, &o, &r), 0);
	is_found_soon(m, &r);
	ck_assert_msg(told->found, "%s %s: no shrunk failure", m->part, m->name);
	return r.contract;
}

/* Is the bug told, and its place right? Where the variant has no knob "bug", all of its switches
 * are the bug. `text`: what is told. */
static bool is_right(const struct mutant *m, struct told *told, char *text, size_t n)
{
	const struct cause *c = &told->cause;
	const bool by_knob = strstr(m->variant->knobs, "bug=");
	bool right = true, bug = !by_knob;
	snprintf(text, n, "no switch");
	for (unsigned i = 0; i < c->switches; i++) {
		const struct cause_switch *made = &c->made[i];
		bool is_bug = !by_knob || !strncmp(made->name, "bug=", 4);
		find_switch(made->name);
		ck_assert_msg(!is_bug || askeds > 0, "%s %s: no source asks for %s", m->part,
			      m->name, made->name);
		told->places = 0;
		if (is_bug)
			score_cause(told);
		for (enum reach r = 0; r < REACHES; r++)
			if (is_bug && made->flushes && c->kind == CAUSE_LOST)
				told->score[r] = SCORE_RIGHT;
		right &= !is_bug || is_asked_at(made->where) || is_asked_at(made->made);
		bug |= is_bug;
		size_t used = i ? strlen(text) : 0;
		snprintf(text + used, n - used, "%s%s at %s (%s)%s%s", i ? ", " : "", made->name,
			 made->where, made->function, made->made[0] ? " from " : "", made->made);
	}
	for (enum reach r = 0; r < REACHES; r++) {
		/* Who names no cause does not mislead. */
		if (c->kind == CAUSE_NONE && told->score[r] == SCORE_MISLEADING)
			told->score[r] = SCORE_NONE;
		scored[r][told->score[r]]++;
	}
	return right && bug && c->switches;
}

TESTS(cause_is_the_bug, mutants)
{
	const struct mutant *m = &mutant[_i];
	static struct told told;
	char text[600];

	if (m->kind != MUTANT_STORE || (!table && !its_cause_is_told(m, _i)))
		return;
	memset(&told, 0, sizeof(told));
	const char *contract = contract_name(find_bug(m, &told));
	read_store(m->part);
	bool right = is_right(m, &told, text, sizeof(text));
	forget_store();
	if (table)
		printf("%-10s %-26s %-5s %s %s %s %s %s\n", m->part, m->name, contract,
		       scores[told.score[REACH_ALL]], scores[told.score[REACH_FIRST]],
		       scores[told.score[REACH_THREE]], right ? "right" : "WRONG", text);
	for (unsigned k = 0; k < askeds && table; k++)
		printf("      @ %s:%d\n", asked[k].file->path, asked[k].function + 1);
	for (unsigned i = 0; i < told.cause.facts && whole; i++)
		printf("      . %s\n", told.cause.fact[i]);
	if (whole)
		printf("      = %s\n", told.cause.sentence);
	fflush(stdout);
	ck_assert_msg(right, "%s %s, %s: %s; %s", m->part, m->name, contract, text,
		      told.cause.sentence);
}

TEST(places_are_told)
{
	unsigned n = 0;
	const unsigned *all = scored[REACH_ALL], *first = scored[REACH_FIRST],
		       *three = scored[REACH_THREE];
	for (unsigned i = 0; i < SCORES; i++)
		n += all[i];
	for (enum reach r = 0; r < REACHES && table; r++)
		for (unsigned i = 0; i < SCORES; i++)
			printf("%s: %s %u of %u\n", reaches[r], scores[i], scored[r][i], n);
	ck_assert_msg(all[SCORE_RIGHT] * 100 >= n * RIGHT_PERCENT, "%u of %u are right",
		      all[SCORE_RIGHT], n);
	ck_assert_msg(all[SCORE_MISLEADING] * 100 <= n * MISLEADING_PERCENT, "%u of %u mislead",
		      all[SCORE_MISLEADING], n);
	ck_assert_msg(first[SCORE_RIGHT] * 100 >= n * FIRST_PERCENT,
		      "%u of %u are right at the first place", first[SCORE_RIGHT], n);
	ck_assert_msg(three[SCORE_RIGHT] * 100 >= n * THREE_PERCENT,
		      "%u of %u are right within three places", three[SCORE_RIGHT], n);
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("BUG_CAUSES");

	if (argc == 2)
		top = argv[1];
	whole = wanted && !strcmp(wanted, "whole");
	table = whole || (wanted && !strcmp(wanted, "table"));
	kept = getenv("BUG_TRACES");
	scored = mmap(NULL, REACHES * sizeof(*scored), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (scored == MAP_FAILED)
		return 1;
	mutants = mutants_list(mutant);
	return run_suite(listed_suite(NULL, NULL));
}
