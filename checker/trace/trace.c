/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading traces; docs/trace-format.md is the format, trace_write.c writes them.
 *
 * People edit traces, and files get damaged, so everything is checked. The file is read whole (its
 * size is limited) and taken line by line. A line is a keyword and the rest; a table says for each
 * keyword which function reads it, where in the order of lines it belongs, and whether it may occur
 * twice. The order matters: a variant sets knobs, which later lines change; keys are numbered in
 * the order in which they are named; and lines of PM are named by the store's regions, whose sizes
 * follow from knobs and workload. So the first line after the workload finishes the setup. A
 * deviation is checked as far as possible without running anything: what it names exists, and no
 * two deviations name the same point. Whether the run passes that point, only the run can tell.
 *
 * The first mistake ends the reading. The error message shows the offending text shortened and
 * printable.
 */
#include "checker/trace/trace.h"
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/history.h"
#include "checker/live/crash_bundle.h"
#include "scenarios/stores.h"

#define POWER_FAILURES SETUP_POWER_FAILURES

/* Places in the order of lines. */
enum stage {
	STAGE_VERSION,
	STAGE_STORE,
	STAGE_BUILD,
	STAGE_VARIANT,
	STAGE_KNOB,
	STAGE_KEYS,
	STAGE_CLIENT,
	STAGE_DEVIATE,
	STAGE_END
};

#define KEYWORDS     10
#define BUILD_DIGITS 16
#define OPENS	     64 /* times that a client connects, at most */

struct trace_reader {
	struct trace *t;
	trace_find_store *find_store;
	struct text text;
	unsigned stage;	     /* of the latest line */
	const char *keyword; /* of the latest line */
	bool finished;	     /* setup_finish() was called */
	/* The lines that said it, 0: none yet. */
	unsigned keyword_line[KEYWORDS];
	unsigned knob_line[TM_MAX_KNOBS];
	unsigned client_line[TM_MAX_CLIENTS + 1];
	unsigned workload_line, own_line; /* own: where a server has hardware of its own */
	unsigned without_line[PLACES_WITHOUT];
	struct place_list places; /* once a line needs them */
	/* The deviations' points by name, and where those of the latest machine begin. */
	uint64_t key[TRACE_DEVIATIONS];
	unsigned machine_first, powers;
};

/* The next pair of "name=value name=value". 1: there is one; 0: the end; -EINVAL. */
static int next_pair(struct trace_reader *r, char **rest, char **name, char **value)
{
	*name = text_word(rest);
	if (!**name)
		return 0;
	*value = text_value(*name);
	return *value ? 1 : text_wrong(&r->text, "%s; expected NAME=VALUE", text_show(*name).text);
}

static int read_store(struct trace_reader *r, char *rest)
{
	const char *name = text_word(&rest), *object = text_skip_blanks(rest);
	char why[STORE_OBJECT_WHY];
	const struct tm_store *store = r->find_store(name);
	/* It may have been loaded from another place. */
	if (*object && !store_is_path(object))
		return text_wrong(&r->text,
				  "%s after the store; expected the path of a shared "
				  "object, NAME.so",
				  text_show(object).text);
	if (*object && !(store && store_path(store))) {
		store = store_load(object, why);
		if (!store)
			return text_wrong(
				&r->text,
				"%s; if it is elsewhere, name it besides: tidemark replay FILE "
				"PATH/NAME.so",
				why);
		if (strcmp(store->name, name) != 0)
			return text_wrong(&r->text, "%s has the store %s; expected %s", object,
					  store->name, text_show(name).text);
	}
	if (!store)
		return text_wrong(&r->text,
				  "store %s; expected one of those that `tidemark list` shows",
				  text_show(name).text);
	setup_init(&r->t->setup, store);
	snprintf(r->t->setup.w.name, sizeof(r->t->setup.w.name), "trace");
	return 0;
}

/* The build of a store that is part of the program is not compared: it has none of its own. */
static int read_build(struct trace_reader *r, char *rest)
{
	const struct tm_store *store = r->t->setup.store;
	char *end;
	uint64_t build = strtoull(rest, &end, 16);
	if (end != rest + BUILD_DIGITS || strspn(rest, "0123456789abcdef") != BUILD_DIGITS || *end)
		return text_wrong(&r->text, "build %s; expected %d digits of a hexadecimal number",
				  text_show(rest).text, BUILD_DIGITS);
	r->t->anew = store_path(store) && build != store_build(store);
	return 0;
}

static int read_variant(struct trace_reader *r, char *rest)
{
	struct setup *s = &r->t->setup;
	if (strlen(rest) >= sizeof(s->variant) || setup_variant(s, rest))
		return text_wrong(
			&r->text,
			"variant %s; expected one of %s's that `tidemark list` shows, or default",
			text_show(rest).text, s->store->name);
	return 0;
}

static int read_config(struct trace_reader *r, char *rest)
{
	uint64_t seen = 0;
	char *name, *value;
	int rc;

	while ((rc = next_pair(r, &rest, &name, &value)) > 0) {
		const char *expected = NULL;
		const int k = hardware_name_number(name);
		if (k < 0) {
			setup_hardware(&r->t->setup, name, value, &expected);
			return text_wrong(&r->text, "config %s; expected one of: %s",
					  text_show(name).text, expected);
		}
		if (seen >> k & 1)
			return text_wrong(&r->text, "config %s twice; expected once", name);
		seen |= 1ull << k;
		r->own_line = hardware_knob_server(name) ? r->text.line : r->own_line;
		if (setup_hardware(&r->t->setup, name, value, &expected))
			return text_wrong(&r->text, "config %s=%s; expected one of: %s", name,
					  text_show(value).text, expected);
	}
	return rc;
}

static int read_knob(struct trace_reader *r, char *rest)
{
	struct setup *s = &r->t->setup;
	char *name, *value;
	int rc;

	while ((rc = next_pair(r, &rest, &name, &value)) > 0) {
		const char *expected = NULL;
		unsigned k = 0;
		while (s->store->knobs[k].name && strcmp(s->store->knobs[k].name, name) != 0)
			k++;
		if (!s->store->knobs[k].name)
			return text_wrong(
				&r->text,
				"knob %s; expected one of %s's that `tidemark list` shows",
				text_show(name).text, s->store->name);
		if (r->knob_line[k])
			return text_wrong(&r->text, "knob %s twice; the first is on line %u", name,
					  r->knob_line[k]);
		r->knob_line[k] = r->text.line;
		if (setup_knob(s, name, value, &expected))
			return text_wrong(&r->text, "knob %s=%s; expected one of: %s", name,
					  text_show(value).text, expected);
	}
	return rc;
}

/* "erda/log.c:log_take:pmem_persist" */
static int read_without(struct trace_reader *r, char *rest)
{
	struct setup *s = &r->t->setup;
	int rc = r->places.n ? 0 : places_find(&r->places);
	if (rc)
		return rc == -ENOMEM ? rc
				     : text_wrong(&r->text,
						  "without: this program has no debug information; "
						  "expected it, to find the place");
	for (unsigned i = 0; i < s->without.n; i++)
		if (!strcmp(s->without_name[i], rest))
			return text_wrong(&r->text, "without %s twice; the first is on line %u",
					  text_show(rest).text, r->without_line[i]);
	const struct place *place = places_named(&r->places, rest);
	if (!place)
		return text_wrong(&r->text,
				  "without %s: there is no such place (any more); expected one of "
				  "those that `tidemark ablate %s` shows",
				  text_show(rest).text, s->store->name);
	if (setup_without(s, place))
		return text_wrong(&r->text, "without more than %d places", PLACES_WITHOUT);
	r->without_line[s->without.n - 1] = r->text.line;
	return 0;
}

static int workload_wrong(struct trace_reader *r, int rc, const char *what, const char *expected)
{
	if (rc == -ENOMEM || !rc)
		return rc;
	return text_wrong(&r->text, "%s; expected %s", what, expected);
}

static int read_keys(struct trace_reader *r, char *rest)
{
	const char *expected = NULL;
	char what[80];
	snprintf(what, sizeof(what), "keys %s", text_show(rest).text);
	r->workload_line = r->text.line;
	int rc = workload_parse_keys(&r->t->setup.w, rest, &expected);
	return workload_wrong(r, rc, what, expected);
}

/* "1: put k1 96, get k1": one client's program. */
static int read_client(struct trace_reader *r, char *rest)
{
	const char *expected = NULL;
	char what[80];
	uint64_t client = 0;
	const char *program = text_digits(rest, TM_MAX_CLIENTS, &client);

	if (!program || *program != ':' || *rest == '0')
		return text_wrong(&r->text,
				  "client %s; expected \"client N: OPERATIONS\", N from 1 to %d",
				  text_show(rest).text, TM_MAX_CLIENTS);
	if (r->client_line[client])
		return text_wrong(&r->text, "client %u twice; the first is on line %u",
				  (unsigned)client, r->client_line[client]);
	r->client_line[client] = r->workload_line = r->text.line;
	program = text_skip_blanks(program + 1);
	snprintf(what, sizeof(what), "client %u: %s", (unsigned)client, text_show(program).text);
	int rc = workload_parse_client(&r->t->setup.w, (unsigned)client, program, &expected);
	return workload_wrong(r, rc, what, expected);
}

/* A history has room for the run, and after each power failure for reading all keys, a life, and
 * reading them again. */
static int check_workload(struct trace_reader *r)
{
	const struct workload *w = &r->t->setup.w;
	unsigned ops = workload_ops(w) + SETUP_READ_OPS(w);

	if (!w->clients)
		return text_wrong(
			&r->text,
			"%s without a client; expected a line such as \"client 1: put k1 96\"",
			r->keyword);
	r->text.line = r->workload_line;
	if (!w->keys && !w->calls)
		return text_wrong(&r->text, "a workload without keys; expected at least one");
	if (w->keys + workload_looks(w) > SETUP_LOOKS)
		return text_wrong(
			&r->text, "%u keys%s; expected at most %d", w->keys + workload_looks(w),
			w->calls ? " and operations that look at a store" : "", SETUP_LOOKS);
	char expected[WORKLOAD_EXPECTED];
	int rc = workload_check(w, r->t->setup.store, expected);
	if (rc == -EINVAL)
		return text_wrong(&r->text, "%s", expected);
	for (unsigned k = 0; k < w->keys; k++)
		ops += w->key[k].loaded >= 0;
	if (ops > HISTORY_OPS)
		return text_wrong(&r->text,
				  "%u operations, those of loading and of reading back included; "
				  "expected at most %d",
				  ops, HISTORY_OPS);
	return 0;
}

static int finish(struct trace_reader *r)
{
	unsigned line = r->text.line;
	int rc = check_workload(r);
	if (rc)
		return rc;
	r->text.line = r->own_line;
	if (!setup_has_servers(&r->t->setup))
		return text_wrong(&r->text, "a knob of server %u; expected one that the store has",
				  hardware_servers(&r->t->setup.hw));
	rc = setup_finish(&r->t->setup);
	if (rc == -EFBIG)
		return text_wrong(
			&r->text,
			"the store would need %zu bytes of PM; expected a smaller workload",
			r->t->setup.pm_len);
	if (rc)
		return rc;
	r->finished = true;
	r->text.line = line;
	return 0;
}

/* --- deviations --- */

/* Is there such an operation? After a power failure other clients read all keys, and live on. */
static bool op_exists(const struct workload *w, struct op_label op)
{
	unsigned n = 0;

	if (!op.kind)
		return true;
	if (op.client > w->clients + LIFE_CLIENTS)
		return false;
	if (op.kind == OP_OPEN)
		return op.nth >= 1 && op.nth <= OPENS;
	if (op.client > w->clients)
		return op.nth <=
		       LIFE_ROUNDS + (op.kind == OP_GET ? 2 * w->keys
				      : op.kind == OP_CALL
					      ? 2 * workload_looks(w) + LIFE_OPS + TM_CALL_TYPES
					      : 0);
	for (unsigned i = 0; i < w->client[op.client - 1].ops; i++)
		n += w->client[op.client - 1].op[i].kind == op.kind;
	return op.nth <= n;
}

/* "c1", "c1/qp2", "server", "server2", "server/verifier"; "": none. */
static bool actor_exists(const struct setup *s, const char *who)
{
	const struct workload *w = &s->w;
	if (!*who ||
	    (s->servers > 1 && *who == 's' && who[1] > '0' && who[1] <= (char)('0' + s->servers)))
		return true;
	if (!strncmp(who, "server", 6)) {
		who += 6;
		who += *who >= '2' && *who < '1' + SERVER_LIVES;
		return !*who || (*who == '/' && who[1]);
	}
	for (unsigned c = 1; c <= w->clients + LIFE_CLIENTS; c++) {
		char name[8];
		int len = snprintf(name, sizeof(name), "c%u", c);
		if (!strncmp(who, name, (size_t)len) &&
		    (!who[len] || (who[len] == '/' && who[len + 1])))
			return true;
	}
	return false;
}

static int check_names(struct trace_reader *r, const struct deviation *d)
{
	const struct setup *s = &r->t->setup;
	char op[32];

	if (d->kind == CHOICE_LINE) {
		if (d->a >= s->pm_len / LINE)
			return text_wrong(
				&r->text,
				"line 0x%llx is outside of the pool; expected less than 0x%zx",
				(unsigned long long)d->a * LINE, s->pm_len);
		if (d->b > PMEM_HOST_FAILED && s->servers > 1)
			return 0;
		if (d->b > POWER_FAILURES || d->b > r->powers)
			return text_wrong(&r->text,
					  "a line of power failure %u; expected after that power "
					  "failure (of %u so far)",
					  d->b, r->powers);
		return 0;
	}
	if (!actor_exists(s, d->who))
		return text_wrong(&r->text,
				  "%s is not in this trace; expected \"c1\" to \"c%u\", \"server\" "
				  "or \"-\"",
				  text_show(d->who).text, s->w.clients + LIFE_CLIENTS);
	if (!op_exists(&s->w, d->op)) {
		op_label_print(d->op, 1, op, sizeof(op));
		return text_wrong(
			&r->text,
			"%s is no operation of this trace; expected one of the clients' lines", op);
	}
	const unsigned death = choice_delay(d->kind, d->answer),
		       server = delay_befalls_one(death) ? death_server(death) : 0;
	if (delay_befalls_one(death) && (s->servers == 1 || server >= s->servers))
		return text_wrong(&r->text, "server %u of a store that has %u; expected %s",
				  server + 1, s->servers,
				  s->servers == 1 ? "\"server dies\"" : "one of these");
	if (d->kind == CHOICE_CRASH && r->powers == POWER_FAILURES)
		return text_wrong(&r->text, "a power failure more than %d; expected at most %d",
				  POWER_FAILURES, POWER_FAILURES);
	return 0;
}

/* A point can be named once on each machine; the name of a line says whose it is. */
static int check_twice(struct trace_reader *r, const struct deviation *d)
{
	const struct deviations *list = &r->t->deviations;
	uint64_t key = deviation_key(d);

	assert(list->n < TRACE_DEVIATIONS);
	r->key[list->n] = key;
	for (unsigned i = d->kind == CHOICE_LINE ? 0 : r->machine_first; i < list->n; i++)
		if (r->key[i] == key && list->d[i].kind == d->kind)
			return text_wrong(&r->text,
					  "deviates twice at one point; the first is on line %u",
					  list->d[i].line);
	return 0;
}

/* Words are separated by one blank. */
static void squeeze(char *text)
{
	char *out = text;
	for (char *p = text; *p; p++) {
		bool blank = *p == ' ' || *p == '\t';
		if (!blank || (out > text && out[-1] != ' '))
			*out++ = blank ? ' ' : *p;
	}
	*out = '\0';
}

static int read_deviate(struct trace_reader *r, char *rest)
{
	struct trace *t = r->t;
	struct deviation_names names = {t->setup.region, t->setup.regions};
	const char *expected = NULL;
	struct deviation d;

	squeeze(rest);
	if (t->deviations.n == TRACE_DEVIATIONS)
		return text_wrong(&r->text, "more than %d deviations", TRACE_DEVIATIONS);
	if (deviation_parse(&d, &names, rest, &expected))
		return text_wrong(&r->text, "%s; expected %s", text_show(rest).text, expected);
	d.line = r->text.line;
	int rc = check_names(r, &d);
	if (!rc)
		rc = check_twice(r, &d);
	if (!rc)
		rc = deviations_add(&t->deviations, &d);
	if (!rc && d.kind == CHOICE_CRASH) {
		r->powers++;
		r->machine_first = t->deviations.n;
	}
	return rc;
}

/* "MONO: client 2 read ...", or "none". */
static int read_broken(struct trace_reader *r, char *rest)
{
	size_t len = strcspn(rest, ": \t");
	char *text = text_skip_blanks(rest + len);
	char name[8] = "";

	if (len < sizeof(name))
		memcpy(name, rest, len);
	r->t->contract = strcmp(name, "none") ? contract_parse(name) : -1;
	if (strcmp(name, "none") && r->t->contract < 0)
		return text_wrong(&r->text, "contract %s; expected one of: %s none",
				  text_show_part(rest, len).text, contract_names());
	if (*text && *text != ':')
		return text_wrong(&r->text, "%s after %s; expected \": \" and a sentence",
				  text_show(text).text, name);
	if (*text)
		text = text_skip_blanks(text + 1);
	snprintf(r->t->verdict, sizeof(r->t->verdict), "%s", text);
	return 0;
}

/* --- lines --- */

static const struct keyword {
	const char *word;
	int (*read)(struct trace_reader *r, char *rest);
	enum stage stage;
	bool once;
} keywords[KEYWORDS] = {
	{"store", read_store, STAGE_STORE, true},
	{"build", read_build, STAGE_BUILD, true},
	{"variant", read_variant, STAGE_VARIANT, true},
	{"config", read_config, STAGE_KNOB, true},
	{"knob", read_knob, STAGE_KNOB, false},
	{"without", read_without, STAGE_KNOB, false},
	{"keys", read_keys, STAGE_KEYS, true},
	{"client", read_client, STAGE_CLIENT, false},
	{"deviate", read_deviate, STAGE_DEVIATE, false},
	{"broken", read_broken, STAGE_END, true},
};

/* Where a line may be. */
static int check_place(struct trace_reader *r, const struct keyword *k)
{
	unsigned *first = &r->keyword_line[k - keywords];

	if (k->once && *first)
		return text_wrong(&r->text, "a second '%s' line; the first is line %u", k->word,
				  *first);
	if (r->stage == STAGE_END)
		return text_wrong(&r->text, "'%s' after 'broken'; expected nothing more", k->word);
	if (r->stage == STAGE_VERSION && k->stage != STAGE_STORE)
		return text_wrong(&r->text, "'%s' before 'store'; expected \"store NAME\" first",
				  k->word);
	if (k->stage < r->stage)
		return text_wrong(&r->text, "'%s' after '%s'; expected before it", k->word,
				  r->keyword);
	if (!*first)
		*first = r->text.line;
	r->stage = k->stage;
	r->keyword = k->word;
	return 0;
}

static int read_version(struct trace_reader *r, const char *text, size_t len)
{
	size_t magic = strlen(TRACE_MAGIC);
	char right[32];

	snprintf(right, sizeof(right), TRACE_MAGIC " %d", TRACE_VERSION);
	if (len == strlen(right) && !memcmp(text, right, len))
		return 0;
	if (len > magic && !memcmp(text, TRACE_MAGIC " ", magic + 1)) {
		if (text_check_bytes(&r->text, text, NULL))
			return -EINVAL;
		return text_wrong(&r->text, "%s: this program reads version %d",
				  text_show_part(text, len).text, TRACE_VERSION);
	}
	return text_wrong(&r->text, "not a trace: the first line is %s; expected \"%s\"",
			  text_show_part(text, len).text, right);
}

/* The line begins with its keyword. */
static int read_keyword(struct trace_reader *r, char *text)
{
	int rc;
	size_t word = strcspn(text, " \t");
	char *rest = text_skip_blanks(text + word);

	for (const struct keyword *k = keywords; k < keywords + KEYWORDS; k++) {
		if (strlen(k->word) != word || memcmp(text, k->word, word) != 0)
			continue;
		rc = check_place(r, k);
		if (!rc && k->stage >= STAGE_DEVIATE && !r->finished)
			rc = finish(r);
		if (!rc && !*rest && k->stage != STAGE_KEYS)
			return text_wrong(&r->text, "nothing after '%s'", k->word);
		return rc ? rc : k->read(r, rest);
	}
	return text_wrong(
		&r->text,
		"%s; expected store, build, variant, config, knob, without, keys, client, "
		"deviate or broken",
		text_show_part(text, word).text);
}

static int read_line(struct trace_reader *r, char *line)
{
	size_t len = r->text.len;
	char *begin = text_skip_blanks(line);

	if (r->text.line > 1 && text_check_bytes(&r->text, line, *begin == '#' ? begin : NULL))
		return -EINVAL;
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	if (r->text.line == 1)
		return read_version(r, line, len);
	line[len] = '\0';
	return *begin && *begin != '#' ? read_keyword(r, begin) : 0;
}

/* The whole file; it may be more than can be a trace. */
static int read_lines(struct trace_reader *r, char *text, size_t len, struct input_error *err)
{
	char *line;
	int rc = 0;

	text_start(&r->text, text, len, err);
	r->text.max = TRACE_LINE_MAX;
	while (!rc && (rc = text_line(&r->text, &line)) > 0) {
		if (!r->text.ended && len > TRACE_FILE_MAX)
			break;
		if (!r->text.ended && r->text.line > 1)
			return text_wrong(
				&r->text,
				"truncated: the last line has no end; expected a newline");
		rc = read_line(r, line);
	}
	if (rc < 0)
		return rc;
	if (len > TRACE_FILE_MAX) {
		r->text.line = 0;
		return text_wrong(&r->text, "more than %d bytes; expected a trace", TRACE_FILE_MAX);
	}
	if (!len)
		return text_wrong(&r->text, "an empty file; expected \"%s %d\"", TRACE_MAGIC,
				  TRACE_VERSION);
	if (r->stage != STAGE_END)
		return text_wrong(&r->text, "truncated: no \"broken\" line at the end");
	return 0;
}

static int read_run(struct trace *t, char *text, size_t len, trace_find_store *find_store,
		    struct input_error *err)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->t = t;
	r->find_store = find_store;
	int rc = read_lines(r, text, len, err);
	places_free(&r->places);
	free(r);
	return rc;
}

/* All of a file of which this is the beginning; NULL: *rc. */
static char *read_rest(FILE *in, char *text, size_t *len, struct input_error *err, int *rc)
{
	size_t more;
	char *rest = text_read(in, CRASH_BUNDLE_MAX, &more, err, rc);
	char *all = rest ? realloc(text, *len + more + 1) : NULL;
	if (all)
		memcpy(all + *len, rest, more + 1);
	else
		free(text);
	if (rest && !all)
		*rc = -ENOMEM;
	*len += more;
	free(rest);
	return all;
}

static int read_cut(struct trace *t, char *text, size_t len, struct input_error *err)
{
	t->cut = calloc(1, sizeof(*t->cut));
	return t->cut ? crash_bundle_read(t->cut, text, len, err) : -ENOMEM;
}

int trace_read_any(FILE *in, struct trace *t, trace_find_store *find_store, struct input_error *err)
{
	size_t len;
	int rc = 0;

	memset(t, 0, sizeof(*t));
	memset(err, 0, sizeof(*err));
	t->contract = -1;
	char *text = text_read(in, TRACE_FILE_MAX, &len, err, &rc);
	bool cut = text && crash_bundle_begins(text);
	if (cut && len > TRACE_FILE_MAX)
		text = read_rest(in, text, &len, err, &rc);
	if (text)
		rc = cut ? read_cut(t, text, len, err) : read_run(t, text, len, find_store, err);
	if (rc == -ENOMEM)
		snprintf(err->message, sizeof(err->message), "not enough memory");
	free(text);
	if (rc == -EINVAL) {
		size_t said = strlen(err->message);
		snprintf(err->message + said, sizeof(err->message) - said, "%s",
			 trace_anew(t).text);
	}
	if (rc)
		trace_free(t);
	return rc;
}

int trace_read_file(FILE *in, struct trace *t, trace_find_store *find_store,
		    struct input_error *err)
{
	int rc = trace_read_any(in, t, find_store, err);
	if (rc || !t->cut)
		return rc;
	trace_free(t);
	snprintf(err->message, sizeof(err->message),
		 "a power cut of a live server; expected a trace of a run");
	return -EINVAL;
}

struct trace_anew trace_anew(const struct trace *t)
{
	struct trace_anew a = {""};
	if (t->anew)
		snprintf(a.text, sizeof(a.text),
			 "; %.180s was built anew since the trace was recorded",
			 store_path(t->setup.store));
	return a;
}

int trace_read(const char *path, struct trace *t, trace_find_store *find_store,
	       struct input_error *err)
{
	FILE *in = fopen(path, "re");
	if (!in) {
		int error = errno;
		memset(t, 0, sizeof(*t));
		memset(err, 0, sizeof(*err));
		snprintf(err->message, sizeof(err->message), "cannot be opened: %s",
			 strerror(error));
		return -error;
	}
	int rc = trace_read_file(in, t, find_store, err);
	fclose(in);
	return rc;
}

void trace_free(struct trace *t)
{
	setup_free(&t->setup);
	deviations_free(&t->deviations);
	if (t->cut)
		cut_free(&t->cut->cut);
	free(t->cut);
	memset(t, 0, sizeof(*t));
	t->contract = -1;
}
