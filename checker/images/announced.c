/* SPDX-License-Identifier: BSD-3-Clause */
/* See announced.h. */
#include "checker/images/announced.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "core/text/text.h"

#define OPS (HISTORY_OPS - HISTORY_KEYS) /* the rest is for what is read after the failure */
/* Contracts ask when an operation was under way, not whose it was. */
#define SOMEBODY 1
#define READER	 2 /* after the power failure */

/* Part of a text. */
struct words {
	const char *at;
	size_t len;
};

struct operation {
	uint8_t kind; /* enum history_kind */
	uint8_t key;
	struct words value;	   /* of a PUT */
	size_t call, answer;	   /* of pm_log.call; the answer's is NONE where there is none */
	int16_t error;		   /* of the answer: -EIO for "error" */
	bool found;		   /* of a GET: it returned ... */
	struct words answer_value; /* ... this */
};
#define NONE SIZE_MAX

struct announced {
	const struct pm_log *log;
	unsigned want;
	struct words key[HISTORY_KEYS];
	unsigned keys;
	struct operation op[OPS];
	unsigned ops;
	uint16_t of[2 * OPS]; /* by pm_log.call: the operation */
	/* The history up to the event `at`, and what the judge knows of it. */
	bool prepared;
	size_t at;
	struct history h;
	struct history_mark end;
	struct judge judge;
	char *why;
	size_t why_room;
};

/* --- what is announced --- */

__attribute__((format(printf, 3, 4))) static int wrong(const struct announced *a, size_t call,
						       const char *expected, ...)
{
	const struct pm_call *c = &a->log->call[call];
	va_list ap;
	int len = snprintf(a->why, a->why_room,
			   "announcement %zu, %s by client %llu, \"%s\": ", call + 1,
			   c->returns ? "an answer" : "an operation", (unsigned long long)c->client,
			   text_show(a->log->source[c->words]).text);
	va_start(ap, expected);
	if (len >= 0 && (size_t)len < a->why_room)
		vsnprintf(a->why + len, a->why_room - (size_t)len, expected, ap);
	va_end(ap);
	return -EINVAL;
}

static bool equal(struct words x, struct words y)
{
	return x.len == y.len && !memcmp(x.at, y.at, x.len);
}

/* Takes the first word off; what follows a single space is left. */
static struct words take_word(struct words *from)
{
	const char *space = memchr(from->at, ' ', from->len);
	struct words word = {from->at, space ? (size_t)(space - from->at) : from->len};
	size_t used = word.len + (space != NULL);
	from->at += used;
	from->len -= used;
	return word;
}

static bool is(struct words w, const char *name)
{
	return w.len == strlen(name) && !memcmp(w.at, name, w.len);
}

static struct words words_of(const struct announced *a, size_t call)
{
	const char *text = a->log->source[a->log->call[call].words];
	return (struct words){text, strlen(text)};
}

/* -1: no client has named it. */
static int find_key(const struct announced *a, struct words name)
{
	for (unsigned k = 0; k < a->keys; k++)
		if (equal(a->key[k], name))
			return (int)k;
	return -1;
}

/* The PUT of this key and value. VALUE_FOREIGN: there is none. */
static int find_put(const struct announced *a, unsigned key, struct words value)
{
	for (unsigned i = 0; i < a->ops; i++)
		if (a->op[i].kind == HISTORY_PUT && a->op[i].key == key &&
		    equal(a->op[i].value, value))
			return (int)i;
	return VALUE_FOREIGN;
}

static int take_call(struct announced *a, size_t call)
{
	static const char expected[] = "expected put KEY VALUE, get KEY or del KEY";
	struct words rest = words_of(a, call), verb = take_word(&rest), name = take_word(&rest);
	struct operation op = {.call = call, .answer = NONE, .value = rest};
	bool put = is(verb, "put");
	if (!name.len || (!put && !is(verb, "get") && !is(verb, "del")) || put != (rest.len > 0))
		return wrong(a, call, expected);
	if (a->ops == OPS)
		return wrong(a, call, "there are more than %d operations", OPS);
	int key = find_key(a, name);
	if (key < 0 && a->keys == HISTORY_KEYS)
		return wrong(a, call, "there are more than %d keys", HISTORY_KEYS);
	if (key < 0)
		a->key[key = (int)a->keys++] = name;
	if (put && find_put(a, (unsigned)key, rest) >= 0)
		return wrong(a, call, "expected a value that no other put of this key has");
	op.kind = put ? HISTORY_PUT : is(verb, "get") ? HISTORY_GET : HISTORY_DEL;
	op.key = (uint8_t)key;
	a->of[call] = (uint16_t)a->ops;
	a->op[a->ops++] = op;
	return 0;
}

/* The operation that a client has begun last, if it has no answer yet. */
static struct operation *find_open(struct announced *a, uint64_t client)
{
	for (unsigned i = a->ops; i-- > 0;)
		if (a->log->call[a->op[i].call].client == client)
			return a->op[i].answer == NONE ? &a->op[i] : NULL;
	return NULL;
}

static int take_answer(struct announced *a, size_t call)
{
	struct words rest = words_of(a, call), verb = take_word(&rest);
	struct operation *op = find_open(a, a->log->call[call].client);
	if (!op)
		return wrong(a, call, "this client has no operation that is not answered");
	bool get = op->kind == HISTORY_GET;
	op->answer = call;
	a->of[call] = (uint16_t)(op - a->op);
	if (is(verb, "error"))
		op->error = -EIO;
	else if (get && is(verb, "value"))
		op->found = true;
	else if (!(is(verb, "absent") && op->kind != HISTORY_PUT) && !(is(verb, "ok") && !get))
		return wrong(a, call, "expected %s",
			     get ? "value VALUE, absent or error WORDS" : "ok or error WORDS");
	op->answer_value = rest;
	return 0;
}

int announced_open(struct announced **out, const struct pm_log *log, unsigned want, char *why,
		   size_t n)
{
	struct announced *a = calloc(1, sizeof(*a));
	int error = a ? 0 : -ENOMEM;
	snprintf(why, n, "%s",
		 a ? "no client announced an operation (tidemark/record.h)" : strerror(ENOMEM));
	if (a) {
		a->log = log;
		a->want = want;
		a->why = why;
		a->why_room = n;
	}
	for (size_t i = 0; i < log->calls && !error; i++)
		error = log->call[i].returns ? take_answer(a, i) : take_call(a, i);
	if (!error && !a->ops)
		error = -ENODATA;
	if (error) {
		free(a);
		return error;
	}
	*out = a;
	return 0;
}

void announced_close(struct announced *a)
{
	free(a);
}

/* --- up to a power failure --- */

static int32_t answered_value(const struct announced *a, const struct operation *op)
{
	if (op->kind != HISTORY_GET || !op->found)
		return VALUE_ABSENT;
	return find_put(a, op->key, op->answer_value);
}

/* Had an operation begun, or been answered, before event `at`? */
static bool has_begun(const struct pm_call *c, size_t at)
{
	return c->returns ? c->event < at : c->event <= at;
}

/* Operations are invoked in the order in which they are kept: they have the same numbers here as
 * there. */
static void make_history(struct announced *a, size_t at)
{
	const struct pm_log *log = a->log;
	history_reset(&a->h, a->keys);
	for (size_t i = 0; i < log->calls; i++) {
		const struct pm_call *c = &log->call[i];
		const struct operation *op = &a->op[a->of[i]];
		if (!has_begun(c, at))
			break;
		if (c->returns) {
			history_return(&a->h, a->of[i], op->error, answered_value(a, op));
			if (op->error)
				history_unexplained(&a->h, a->of[i]);
		} else {
			history_invoke(&a->h, SOMEBODY, (enum history_kind)op->kind, op->key);
		}
	}
	history_crash(&a->h);
	judge_reset(&a->judge);
	judge_prepare(&a->judge, &a->h);
	a->end = history_mark(&a->h);
	a->at = at;
	a->prepared = true;
}

/* --- after it --- */

static int read_line(const struct announced *a, struct words line, int32_t *shown)
{
	struct words rest = line, name = take_word(&rest);
	if (!name.len || memchr(line.at, 0, line.len))
		return -EINVAL;
	int key = find_key(a, name);
	if (key >= 0)
		shown[key] = name.len == line.len ? VALUE_ABSENT : find_put(a, (unsigned)key, rest);
	return 0;
}

static int read_text(const struct announced *a, struct words text, int32_t *shown)
{
	int error = 0;
	for (unsigned k = 0; k < a->keys; k++)
		shown[k] = VALUE_ABSENT;
	while (text.len && !error) {
		const char *newline = memchr(text.at, '\n', text.len);
		struct words line = {text.at, newline ? (size_t)(newline - text.at) : text.len};
		size_t used = line.len + (newline != NULL);
		if (line.len)
			error = read_line(a, line, shown);
		text.at += used;
		text.len -= used;
	}
	return error;
}

/* A PUT that had not begun when the power failed is no PUT of this history. */
static int32_t begun(const struct announced *a, int32_t value)
{
	return value >= (int32_t)a->end.ops ? VALUE_FOREIGN : value;
}

int announced_judge(struct announced *a, size_t at, const char *text, size_t len,
		    struct announced_break *broken)
{
	int32_t shown[HISTORY_KEYS];
	struct verdict v[TM_CONTRACTS] = {{0}};
	if (read_text(a, (struct words){text, len}, shown))
		return -EINVAL;
	if (!a->prepared || a->at != at)
		make_history(a, at);
	for (unsigned k = 0; k < a->keys; k++) {
		int get = history_invoke(&a->h, READER, HISTORY_GET, k);
		history_return(&a->h, get, 0, begun(a, shown[k]));
	}
	judge_recovered(&a->judge, &a->h, a->want, NULL, v);
	unsigned c = 0;
	while (c < TM_CONTRACTS && !(a->want & TM_BIT(c) && v[c].broken))
		c++;
	if (c < TM_CONTRACTS) {
		int op = v[c].op;
		bool after = op >= (int)a->end.ops;
		int key = op < 0 ? 0 : a->h.op[op].key;
		*broken = (struct announced_break){.contract = (uint8_t)c,
						   .key = (uint8_t)key,
						   .shown = (int16_t)begun(a, shown[key]),
						   .op = (int16_t)(after ? -1 : op),
						   .against = v[c].against};
	}
	history_rewind(&a->h, &a->end);
	return c < TM_CONTRACTS;
}

/* --- in words --- */

static const char *text_of(const struct announced *a, size_t call)
{
	return a->log->source[a->log->call[call].words];
}

bool announced_operation(const struct announced *a, size_t at, const struct announced_break *broken,
			 unsigned n, struct announced_operation *out)
{
	const struct pm_call *call = a->log->call;
	if (n >= a->ops || !has_begun(&call[a->op[n].call], at))
		return false;
	const struct operation *op = &a->op[n];
	bool answered = op->answer != NONE && has_begun(&call[op->answer], at);
	*out = (struct announced_operation){.client = call[op->call].client,
					    .call = text_of(a, op->call),
					    .answer = answered ? text_of(a, op->answer) : NULL};
	if (broken)
		out->named = (int)n == broken->op || (int)n == broken->against ||
			     (broken->op < 0 && (int)n == broken->shown);
	return true;
}

void announced_words(const struct announced *a, const struct announced_break *b, char *out,
		     size_t n)
{
	const struct operation *op = b->op >= 0 ? &a->op[b->op] : NULL;
	struct words key = a->key[b->key];
	FILE *to = fmemopen(out, n, "w");
	if (!to)
		return;
	fprintf(to, "%s: ", contract_name((enum tm_contract)b->contract));
	if (op)
		fprintf(to, "%s of client %llu was answered \"%s\"",
			text_show(text_of(a, op->call)).text,
			(unsigned long long)a->log->call[op->call].client,
			op->answer == NONE ? "" : text_show(text_of(a, op->answer)).text);
	else if (b->shown == VALUE_ABSENT)
		fprintf(to, "%.*s is absent", (int)key.len, key.at);
	else if (b->shown == VALUE_FOREIGN)
		fprintf(to, "%.*s has a value that nobody had put", (int)key.len, key.at);
	else
		fprintf(to, "%.*s has the value of %s", (int)key.len, key.at,
			text_show(text_of(a, a->op[b->shown].call)).text);
	if (b->against >= 0) {
		const struct operation *other = &a->op[b->against];
		fprintf(to, "; %s of client %llu had %s", text_show(text_of(a, other->call)).text,
			(unsigned long long)a->log->call[other->call].client,
			other->answer == NONE ? "begun" : "been answered");
	}
	fclose(to);
}
