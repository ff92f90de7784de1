/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading the files of claims, which the assembler puts into the program. A line is a word that
 * says what it is, and the rest; names, numbers and sentences point into copies of the texts.
 */
#include "checker/hunt/claims.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/embed.h"
#include "checker/judge/names.h"
#include "scenarios/stores.h"

#define PASS_RUNS  1000 /* budgets, where a case names none */
#define COUNT_RUNS 500
#define KNOB_RUNS  100
#define MAX_RUNS   99999999

EMBED(tm_claims_text, TM_CLAIMS_FILE);

struct reader {
	struct claims *c;
	struct text text;
	const char *file;
	struct claim *claim; /* to which the lines belong; NULL: none yet */
};

/* The reader of a sort of line; `rest`: what follows the word that says which. */
typedef int line_reader(struct reader *r, char *rest);

#define WRONG(...) text_wrong(&r->text, __VA_ARGS__)

/* --- workload NAME : KEYS : CLIENT : CLIENT ... --- */

static int read_workload(struct reader *r, char *rest)
{
	struct claims *c = r->c;
	const char *expected = "enough memory";
	bool more;
	const char *name = text_part(&rest, ':', &more);
	if (!*name || strpbrk(name, " \t") || !more)
		return WRONG("expected \"workload NAME : KEYS : CLIENT...\", the name one word");
	for (unsigned i = 0; i < c->workloads; i++)
		if (!strcmp(c->workload[i].name, name))
			return WRONG("workload %.40s twice", name);
	if (!ARRAY_ROOM_FOR_ONE(c->workload, c->workloads))
		return -ENOMEM;
	struct workload *w = &c->workload[c->workloads++];
	memset(w, 0, sizeof(*w));
	if (strlen(name) >= sizeof(w->name))
		return WRONG("a name of at most %zu bytes expected", sizeof(w->name) - 1);
	strcpy(w->name, name);
	int error = workload_parse_keys(w, text_part(&rest, ':', &more), &expected);
	for (unsigned client = 1; more && !error; client++) {
		if (client > TM_MAX_CLIENTS)
			return WRONG("at most %d clients expected", TM_MAX_CLIENTS);
		error = workload_parse_client(w, client, text_part(&rest, ':', &more), &expected);
	}
	if (error == -ENOMEM)
		return error;
	return error || !w->clients ? WRONG("workload %.40s: expected %.90s", name, expected) : 0;
}

/* --- case VERDICT CONTRACT,... STORE[/VARIANT,...] [NAME=VALUE]... : WORKLOAD... [: RUNS] --- */

static int read_contracts(struct reader *r, char *list, struct claim_case *test)
{
	char *save = NULL;
	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		int contract = contract_parse(one);
		if (contract < 0)
			return WRONG("\"%.40s\": expected contracts of %s", one, contract_names());
		test->contracts |= TM_BIT(contract);
	}
	return test->contracts ? 0 : WRONG("expected contracts of %s", contract_names());
}

static int read_verdict(struct reader *r, char *rest[1], struct claim_case *test)
{
	static const unsigned runs[] = {PASS_RUNS, CLAIM_FAIL_RUNS, COUNT_RUNS};
	const char *name = text_word(rest);
	int kind = word_list_find("pass fail count", name);
	if (kind < 0)
		return WRONG("\"%.40s\": expected pass, fail or count", name);
	test->kind = (enum claim_kind)kind;
	test->runs = runs[kind];
	return read_contracts(r, text_word(rest), test);
}

/* A knob that is not the store's: how the case is run. */
static bool own_switch(struct claim_case *test, const char *knob)
{
	bool *without = !strcmp(knob, "crash=off")    ? &test->no_crash
			: !strcmp(knob, "lives=off")  ? &test->no_lives
			: !strcmp(knob, "deaths=off") ? &test->no_deaths
						      : NULL;
	if (without) {
		*without = true;
		return true;
	}
	int end = 0; /* "2" or "1+1" */
	if (!strcmp(knob, "events=2"))
		return test->two_events = true;
	if (sscanf(knob, "search=%1u%n+%1u%n", &test->preemptions, &end, &test->faults, &end) < 1 ||
	    knob[end])
		return false;
	test->search = test->preemptions + test->faults <= SYSTEMATIC_BOUND;
	return test->search;
}

static int read_switches(struct reader *r, char *rest, struct claim_case *test)
{
	struct campaign_config *cfg = &test->config;
	struct setup *s = &cfg->setup;
	for (char *knob; *(knob = text_word(&rest));) {
		const char *expected = "NAME=VALUE";
		char *equals = strchr(knob, '=');
		size_t len = strlen(cfg->name);
		if (len + strlen(knob) + 2 > sizeof(cfg->name))
			return WRONG("too many switches");
		snprintf(cfg->name + len, sizeof(cfg->name) - len, "%s%s", len ? " " : "", knob);
		if (own_switch(test, knob))
			continue;
		snprintf(test->last, sizeof(test->last), "%s", knob);
		test->without = *s;
		if (equals)
			*equals = '\0';
		if (!equals || setup_knob(s, knob, equals + 1, &expected))
			return WRONG("%s: switch \"%.40s\": expected %.80s", cfg->store->name, knob,
				     expected);
	}
	if (!cfg->name[0])
		strcpy(cfg->name, "default");
	return 0;
}

static int read_store(struct reader *r, char *rest, struct claim_case *test)
{
	struct campaign_config *cfg = &test->config;
	char *name = text_word(&rest), *variant = strchr(name, '/');
	if (variant)
		*variant++ = '\0';
	else
		variant = "default";
	cfg->store = store_find(name);
	cfg->share.one_in = 1;
	if (!cfg->store)
		return WRONG("\"%.40s\": expected a store", name);
	setup_init(&cfg->setup, cfg->store);
	if (strlen(variant) >= sizeof(cfg->variant) || setup_variant(&cfg->setup, variant))
		return WRONG("\"%.40s\": expected a variant of %s", variant, cfg->store->name);
	strcpy(cfg->variant, variant);
	return read_switches(r, rest, test);
}

/* One that is built in; of those that the store has besides, only transactions. */
static int named_workload(const struct tm_store *store, const char *name, struct workload *w,
			  const char **expected)
{
	for (unsigned i = 0; store->txn && !workload_of_store(store, i, w, expected); i++) {
		if (!strcmp(w->name, name))
			return 0;
		workload_free(w);
	}
	return workload_named(name, w, expected);
}

static int read_workloads(struct reader *r, char *rest, struct claim_case *test)
{
	for (char *name; *(name = text_word(&rest));) {
		const char *expected = NULL;
		const struct workload *own = NULL;
		if (!ARRAY_ROOM_FOR_ONE(test->workload, test->workloads))
			return -ENOMEM;
		struct workload *w = &test->workload[test->workloads];
		for (unsigned i = 0; i < r->c->workloads; i++)
			if (!strcmp(r->c->workload[i].name, name))
				own = &r->c->workload[i];
		int error = own ? workload_copy(w, own)
				: named_workload(test->config.store, name, w, &expected);
		if (error == -ENOMEM)
			return error;
		if (error)
			return WRONG("workload \"%.40s\": expected %.90s", name, expected);
		test->workloads++;
		if (workload_cleans(w) && !test->config.store->clean)
			return WRONG("workload %.40s: %s cleans no log", name,
				     test->config.store->name);
	}
	return test->workloads ? 0 : WRONG("expected workloads after the first \":\"");
}

/* STORE[/VARIANT] [NAME=VALUE]... : WORKLOAD... [: RUNS] */
static int read_test(struct reader *r, struct claim_case *test, char *rest)
{
	bool more, runs;
	int error = read_store(r, text_part(&rest, ':', &more), test);
	if (!error)
		error = read_workloads(r, text_part(&rest, ':', &runs), test);
	if (!error && runs) {
		const char *text = text_part(&rest, ':', &more);
		uint64_t number = 0;
		if (!text_number(text, 1, MAX_RUNS, &number) || more)
			error = WRONG("\"%.40s\": expected a number of runs after the second \":\"",
				      text);
		test->runs = (unsigned)number;
	}
	return error;
}

static int read_one_case(struct reader *r, char *rest)
{
	struct claim *claim = r->claim;
	if (!ARRAY_ROOM_FOR_ONE(claim->test, claim->tests))
		return -ENOMEM;
	struct claim_case *test = &claim->test[claim->tests++];
	memset(test, 0, sizeof(*test));
	test->file = r->file;
	test->line = r->text.line;
	int error = read_verdict(r, &rest, test);
	return error ? error : read_test(r, test, rest);
}

/* Of several variants: a case of each. */
static int read_case(struct reader *r, char *rest)
{
	int store = 0, error = 0;
	sscanf(rest, "%*s%*s %n", &store);
	const char *end = rest + store + strcspn(rest + store, " ");
	const char *variant = memchr(rest + store, '/', (size_t)(end - rest - store));
	if (!variant || !memchr(variant, ',', (size_t)(end - variant)))
		return read_one_case(r, rest);
	const int before = (int)(++variant - rest);
	for (size_t len; variant <= end && !error; variant += len + 1) {
		char *one;
		len = strcspn(variant, ", ");
		if (asprintf(&one, "%.*s%.*s%s", before, rest, (int)len, variant, end) < 0)
			return -ENOMEM;
		error = read_one_case(r, one);
		free(one);
	}
	return error;
}

/* --- knob breaks|cures CONTRACT,... STORE[/VARIANT] [NAME=VALUE]... NAME=VALUE : WORKLOAD... [:
 * RUNS] --- */

static bool of_hardware(const char *knob)
{
	struct hardware hw = hardware_default;
	const char *expected;
	return !hardware_switch(&hw, knob, &expected);
}

static int read_sides(struct reader *r, char *rest, struct claim_knob *k)
{
	struct claim_case *test = &k->test;
	test->kind = CLAIM_FAIL;
	test->file = r->file;
	test->line = r->text.line;
	test->runs = KNOB_RUNS;
	int error = read_contracts(r, text_word(&rest), test);
	if (!error)
		error = read_test(r, test, rest);
	if (error)
		return error;
	snprintf(k->knob, sizeof(k->knob), "%s", test->last);
	k->store = of_hardware(k->knob) ? NULL : test->config.store;
	return *k->knob ? 0 : WRONG("expected a switch: the last one is what the line is about");
}

static int read_knob(struct reader *r, char *rest)
{
	struct claims *c = r->c;
	const char *name = text_word(&rest);
	int kind = word_list_find("breaks cures", name);
	if (!ARRAY_ROOM_FOR_ONE(c->knob, c->knobs))
		return -ENOMEM;
	if (kind < 0)
		return WRONG("\"%.40s\": expected breaks or cures", name);
	struct claim_knob *k = &c->knob[c->knobs++];
	*k = (struct claim_knob){
		.kind = (enum knob_kind)kind, .file = r->file, .line = r->text.line};
	return read_sides(r, rest, k);
}

/* --- the file --- */

/* A claim; or, in another file than its own, more cases of it. */
static int read_claim(struct reader *r, char *rest)
{
	struct claims *c = r->c;
	const char *id = text_word(&rest);
	if (!*id || *text_word(&rest))
		return WRONG("expected \"claim ID\", the ID one word");
	const struct claim *found = claim_find(c, id);
	if (found && found->file == r->file)
		return WRONG("claim %.40s twice", id);
	if (found) {
		r->claim = &c->claim[found - c->claim];
		return 0;
	}
	if (!ARRAY_ROOM_FOR_ONE(c->claim, c->claims))
		return -ENOMEM;
	r->claim = &c->claim[c->claims++];
	*r->claim = (struct claim){.id = id, .file = r->file, .line = r->text.line};
	return 0;
}

/* Is there a claim at all, and is each complete? */
static int check_claims(struct reader *r)
{
	const struct claims *c = r->c;
	for (unsigned i = 0; i < c->claims; i++) {
		const struct claim *claim = &c->claim[i];
		r->file = claim->file;
		r->text.line = claim->line;
		if (!claim->source || !claim->says || (!claim->tests && !claim->open))
			return WRONG("claim %.40s: expected source, says, and at least one "
				     "case or open",
				     claim->id);
	}
	r->text.line = 0; /* the file as a whole */
	return c->claims ? 0 : WRONG("expected at least one claim");
}

static int read_sentence(struct reader *r, const char *what, const char **to, char *rest)
{
	rest = text_skip_blanks(rest);
	if (*to)
		return WRONG("%s twice in one claim", what);
	if (!*rest)
		return WRONG("expected a sentence after %s", what);
	*to = rest;
	return 0;
}

static int read_line(struct text *t, char *line, void *reader)
{
	static const struct {
		const char *what;
		line_reader *read; /* NULL: a sentence of a claim, */
		size_t field;	   /* which goes there */
	} sorts[] = {
		{"workload", read_workload, 0},
		{"knob", read_knob, 0},
		{"claim", read_claim, 0},
		{"case", read_case, 0},
		{"source", NULL, offsetof(struct claim, source)},
		{"says", NULL, offsetof(struct claim, says)},
		{"note", NULL, offsetof(struct claim, note)},
		{"open", NULL, offsetof(struct claim, open)},
	};
	struct reader *r = reader;
	const char *what = text_word(&line);
	unsigned i = 0;
	while (i < 8 && strcmp(what, sorts[i].what))
		i++;
	if (i == 8)
		return text_wrong(t,
				  "\"%.40s\": expected claim, source, says, case, note, open, "
				  "workload or knob",
				  what);
	if (i >= 3 && !r->claim)
		return text_wrong(t, "%s: expected a claim above it", what);
	return sorts[i].read
		       ? sorts[i].read(r, line)
		       : read_sentence(r, what, (const char **)((char *)r->claim + sorts[i].field),
				       line);
}

static int read_file(struct reader *r, const char *file, const char *text)
{
	struct claims *c = r->c;
	char *copy = strdup(text);
	int error = copy && ARRAY_ROOM_FOR_ONE(c->text, c->texts) ? 0 : -ENOMEM;
	if (error) {
		free(copy);
		return error;
	}
	c->text[c->texts++] = copy;
	r->file = file;
	r->claim = NULL;
	text_start(&r->text, copy, strlen(copy), r->text.error);
	return text_rows(&r->text, read_line, r);
}

static int read_files(struct reader *r)
{
	int error = read_file(r, "core/stores/claims.txt", tm_claims_text);
	for (unsigned i = 0; stores[i] && !error; i++) {
		struct store_file file = store_file(stores[i], STORE_CLAIMS);
		error = read_file(r, file.path, file.text);
	}
	return error;
}

int claims_read(struct claims *c, const char *text, struct claims_error *where)
{
	struct reader r = {.c = c, .text.error = &where->text};
	memset(c, 0, sizeof(*c));
	memset(where, 0, sizeof(*where));
	int error = text ? read_file(&r, "claims.txt", text) : read_files(&r);
	if (!error)
		error = check_claims(&r);
	where->file = r.file;
	if (error)
		claims_free(c);
	return error;
}

static void free_case(struct claim_case *test)
{
	for (unsigned w = 0; w < test->workloads; w++)
		workload_free(&test->workload[w]);
	free(test->workload);
}

void claims_free(struct claims *c)
{
	for (unsigned i = 0; i < c->claims; i++) {
		for (unsigned k = 0; k < c->claim[i].tests; k++)
			free_case(&c->claim[i].test[k]);
		free(c->claim[i].test);
	}
	for (unsigned k = 0; k < c->knobs; k++)
		free_case(&c->knob[k].test);
	for (unsigned w = 0; w < c->workloads; w++)
		workload_free(&c->workload[w]);
	free(c->claim);
	free(c->knob);
	free(c->workload);
	for (unsigned t = 0; t < c->texts; t++)
		free(c->text[t]);
	free(c->text);
	memset(c, 0, sizeof(*c));
}

const struct claim *claim_find(const struct claims *c, const char *id)
{
	for (unsigned i = 0; i < c->claims; i++)
		if (!strcmp(c->claim[i].id, id))
			return &c->claim[i];
	return NULL;
}
