/* SPDX-License-Identifier: BSD-3-Clause */
/* See announcements.h. */
#include "checker/logs/announcements.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/record/announcement.h"
#include "core/rt/arena.h"
#include "core/text/text.h"
#include "core/tidemark.h"

/* --- words --- */

struct words words_take(struct words *from)
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

int announcements_key(const struct announcements *a, struct words name)
{
	return (int)pm_log_find_source(&a->text, name.at, name.len) - 1;
}

/* "KEY VALUE" in a->line. Its length, or 0 without memory. */
static size_t make_pair(struct announcements *a, unsigned key, struct words value)
{
	struct words name = a->key[key].name;
	size_t len = name.len + 1 + value.len;
	if (!ARRAY_RESERVE(a->line, 0, len, a->line_room))
		return 0;
	memcpy(a->line, name.at, name.len);
	a->line[name.len] = ' ';
	memcpy(a->line + name.len + 1, value.at, value.len);
	return len;
}

uint32_t announcements_value(struct announcements *a, unsigned key, struct words value)
{
	size_t len = make_pair(a, key, value);
	if (!len)
		arena_exhausted();
	return pm_log_find_source(&a->pair, a->line, len);
}

/* The same of one that may be new; 0 without memory. */
static uint32_t note_value(struct announcements *a, unsigned key, struct words value)
{
	size_t len = make_pair(a, key, value);
	uint32_t number = len ? pm_log_source(&a->pair, a->line, len) : 0;
	if (!number || number < a->values)
		return number;
	a->values = number;
	if (!ARRAY_RESERVE(a->value, a->values, 1, a->value_room))
		return 0;
	a->value[a->values++] = (struct announced_value){(int32_t)a->key[key].values++, NO_OP,
							 NO_OP};
	return number;
}

static uint32_t note_key(struct announcements *a, struct words name)
{
	uint32_t number = pm_log_source(&a->text, name.at, name.len);
	if (!number || number <= a->keys)
		return number;
	if (!ARRAY_RESERVE(a->key, a->keys, 1, a->key_room))
		return 0;
	a->key[a->keys++] = (struct announced_key){.name = name};
	return number;
}

size_t announcements_size(const struct announcements *a, size_t first)
{
	size_t n = 1;
	while (first + n < a->ops && a->op[first + n].joined)
		n++;
	return n;
}

/* --- reading --- */

struct reading {
	struct announcements *a;
	size_t most_ops, most_keys;
	char *why;
	size_t room;
};

__attribute__((format(printf, 4, 5))) static int wrong(const struct reading *r, size_t call,
						       int error, const char *expected, ...)
{
	const struct pm_log *log = r->a->log;
	const struct pm_call *c = &log->call[call];
	va_list ap;
	int len = snprintf(r->why, r->room,
			   "%s %zu, %s by client %llu, %s: ", c->line ? "line" : "announcement",
			   c->line ? c->line : call + 1, c->returns ? "an answer" : "an operation",
			   (unsigned long long)c->client, text_show(log->source[c->words]).text);
	va_start(ap, expected);
	if (len >= 0 && (size_t)len < r->room)
		vsnprintf(r->why + len, r->room - (size_t)len, expected, ap);
	va_end(ap);
	return error;
}

static struct words words_of(const struct announcements *a, size_t call)
{
	const char *text = a->log->source[a->log->call[call].words];
	return (struct words){text, strlen(text)};
}

/* It writes its value. */
static void note_writer(struct announcements *a, struct announcement *op)
{
	struct announced_value *v = &a->value[op->value];
	uint32_t number = (uint32_t)a->ops;
	assert(v->first == NO_OP || v->last < number);
	a->key[op->key].alike |= v->first != NO_OP || op->kind == REGISTER_CAS;
	if (v->first == NO_OP)
		v->first = number;
	else
		a->op[v->last].next = number;
	v->last = number;
}

/* An operation, whose kind is known. */
static int add(const struct reading *r, struct announcement op, struct words name,
	       struct words value, struct words old)
{
	struct announcements *a = r->a;
	bool writes = op.kind == REGISTER_PUT || op.kind == REGISTER_CAS;
	if (a->ops == r->most_ops)
		return wrong(r, op.call, -EFBIG, "there are more than %zu operations", r->most_ops);
	op.key = note_key(a, name) - 1;
	if (a->keys > r->most_keys)
		return wrong(r, op.call, -EFBIG, "there are more than %zu keys", r->most_keys);
	if (op.key == NO_OP || (writes && !(op.value = note_value(a, op.key, value))) ||
	    (op.kind == REGISTER_CAS && !(op.old = note_value(a, op.key, old))) ||
	    !ARRAY_RESERVE(a->op, a->ops, 1, a->op_room))
		return -ENOMEM;
	if (writes)
		note_writer(a, &op);
	struct announced_key *key = &a->key[op.key];
	if (key->ops++)
		a->op[key->last].sibling = (uint32_t)a->ops;
	else
		key->first = (uint32_t)a->ops;
	key->last = (uint32_t)a->ops;
	if (!op.joined)
		a->of[op.call] = (uint32_t)a->ops;
	a->op[a->ops++] = op;
	return 0;
}

/* "txn get KEY put KEY VALUE ...": values are words here. */
static int take_txn(const struct reading *r, size_t call, struct words rest)
{
	unsigned n = 0;
	int error = 0;
	bool good = rest.len > 0;
	for (; rest.len && n < TM_TXN_OPS && good && !error; n++) {
		struct words verb = words_take(&rest), name = words_take(&rest);
		bool put = is(verb, "put");
		struct words value = put ? words_take(&rest) : (struct words){"", 1};
		struct announcement op = {.call = (uint32_t)call,
					  .answer = NO_OP,
					  .next = NO_OP,
					  .txn = true,
					  .joined = n > 0,
					  .kind = put ? REGISTER_PUT : REGISTER_GET};
		good = name.len && value.len && (put || is(verb, "get"));
		if (good)
			error = add(r, op, name, value, (struct words){"", 0});
	}
	r->a->transactions = true;
	if (error || (good && !rest.len))
		return error;
	return wrong(r, call, -EINVAL,
		     "expected txn and at most %d of get KEY and put KEY VALUE, values without "
		     "blanks",
		     TM_TXN_OPS);
}

static int take_call(const struct reading *r, size_t call)
{
	static const struct {
		const char *verb;
		uint8_t kind;
	} verbs[] = {{"put", REGISTER_PUT},
		     {"get", REGISTER_GET},
		     {"del", REGISTER_DEL},
		     {"cas", REGISTER_CAS}};
	struct words rest = words_of(r->a, call), verb = words_take(&rest);
	struct announcement op = {.call = (uint32_t)call, .answer = NO_OP, .next = NO_OP};
	unsigned v = 0;
	if (is(verb, "txn"))
		return take_txn(r, call, rest);
	while (v < 4 && !is(verb, verbs[v].verb))
		v++;
	op.kind = v < 4 ? verbs[v].kind : 0;
	struct words name = words_take(&rest);
	struct words old = op.kind == REGISTER_CAS ? words_take(&rest) : (struct words){"", 1};
	bool writes = op.kind == REGISTER_PUT || op.kind == REGISTER_CAS;
	if (v == 4 || !name.len || !old.len || writes != (rest.len > 0))
		return wrong(r, call, -EINVAL,
			     "expected put KEY VALUE, get KEY, del KEY or cas KEY OLD NEW");
	return add(r, op, name, rest, old);
}

/* The operation that a client has begun last, if it has no answer yet. */
static struct announcement *find_open(struct announcements *a, uint64_t client)
{
	for (size_t i = a->ops; i-- > 0;)
		if (a->log->call[a->op[i].call].client == client && !a->op[i].joined)
			return a->op[i].answer == NO_OP ? &a->op[i] : NULL;
	return NULL;
}

/* "ok", with "value VALUE" or "absent" for each GET, or "aborted". */
static int take_txn_answer(const struct reading *r, size_t call, struct announcement *op,
			   struct words verb, struct words rest)
{
	const size_t n = announcements_size(r->a, (size_t)(op - r->a->op));
	bool ok = is(verb, "ok"), aborted = is(verb, "aborted"), error = is(verb, "error");
	bool good = ok || aborted || error;
	for (size_t i = 0; i < n && good; i++, op++) {
		op->answer = (uint32_t)call;
		op->answered = ok;
		op->aborted = aborted;
		op->error = error ? -EIO : 0;
		if (!ok || op->kind != REGISTER_GET)
			continue;
		struct words what = words_take(&rest), value;
		good = is(what, "absent") || is(what, "value");
		if (!is(what, "value"))
			continue;
		value = words_take(&rest);
		good = value.len > 0;
		if (good && !(op->value = note_value(r->a, op->key, value)))
			return -ENOMEM;
	}
	if (good && (error || !rest.len))
		return 0;
	return wrong(r, call, -EINVAL,
		     "expected ok and, for each get, value VALUE or absent; or aborted; or error "
		     "WORDS");
}

static int take_answer(const struct reading *r, size_t call)
{
	static const char *const expected[] = {
		[REGISTER_PUT] = "expected ok or error WORDS",
		[REGISTER_GET] = "expected value VALUE, absent or error WORDS",
		[REGISTER_DEL] = "expected ok, absent or error WORDS",
		[REGISTER_CAS] = "expected ok, failed or error WORDS"};
	struct announcements *a = r->a;
	struct words rest = words_of(a, call), verb = words_take(&rest);
	struct announcement *op = find_open(a, a->log->call[call].client);
	if (!op)
		return wrong(r, call, -EINVAL, "this client has no operation that is not answered");
	bool get = op->kind == REGISTER_GET, cas = op->kind == REGISTER_CAS;
	assert(op->call < call && op->answer == NO_OP);
	op->answer = (uint32_t)call;
	a->of[call] = (uint32_t)(op - a->op);
	if (op->txn)
		return take_txn_answer(r, call, op, verb, rest);
	if (is(verb, "error")) {
		op->error = -EIO;
		return 0;
	}
	op->answered = true;
	op->failed = cas && is(verb, "failed");
	if (get && is(verb, "value"))
		return (op->value = note_value(a, op->key, rest)) ? 0 : -ENOMEM;
	if (op->failed || (!get && is(verb, "ok")) ||
	    ((get || op->kind == REGISTER_DEL) && is(verb, "absent")))
		return 0;
	return wrong(r, call, -EINVAL, "%s", expected[op->kind]);
}

int announcements_read(struct announcements *a, const struct pm_log *log, size_t most_ops,
		       size_t most_keys, char *why, size_t n)
{
	const struct reading r = {a, most_ops, most_keys, why, n};
	*a = (struct announcements){
		.log = log, .of = calloc(log->calls + 1, sizeof(*a->of)), .until = SIZE_MAX};
	int error = !a->of || pm_log_open(&a->text) || pm_log_open(&a->pair) ? -ENOMEM : 0;
	for (size_t i = 0; i < log->calls && !error; i++)
		error = log->call[i].returns ? take_answer(&r, i) : take_call(&r, i);
	if (error == -ENOMEM)
		snprintf(why, n, "%s", strerror(ENOMEM));
	if (error || a->ops)
		return error;
	snprintf(why, n, "no client announced an operation (tidemark/record.h)");
	return -ENODATA;
}

void announcements_free(struct announcements *a)
{
	pm_log_close(&a->text);
	pm_log_close(&a->pair);
	free(a->op);
	free(a->key);
	free(a->value);
	free(a->of);
	free(a->line);
}

/* --- a history by itself --- */

int history_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error)
{
	struct text t;
	char *line;
	int more, rc = 0;
	text_start(&t, bytes, len, error);
	while (!rc && (more = text_line(&t, &line)) > 0) {
		struct announcement_line l;
		if (!t.len)
			continue;
		if (memchr(line, 0, t.len) || !announcement_parse(line, t.len, &l))
			return text_wrong(&t,
					  "%s; expected CLIENT call OPERATION or CLIENT "
					  "return ANSWER",
					  text_show(line).text);
		rc = pm_log_add_call(log, l.client, l.returns, l.words, l.len, t.line);
	}
	return rc ? rc : more;
}

/* --- as a register --- */

bool announcements_known(const struct announcements *a, uint32_t call)
{
	return call != NO_OP && announced_by(&a->log->call[call], a->until);
}

uint32_t announcements_writer(const struct announcements *a, uint32_t op, uint32_t limit)
{
	for (; op != NO_OP && a->op[op].call < limit; op = a->op[op].next)
		if (announcements_known(a, a->op[op].call) &&
		    !(a->op[op].failed && announcements_known(a, a->op[op].answer)))
			return op;
	return NO_OP;
}

static int32_t number_of(const struct announcements *a, uint32_t value)
{
	return value ? a->value[value].number : REGISTER_ABSENT;
}

struct register_op *announcements_register(const struct announcements *a, unsigned key, unsigned *n)
{
	struct register_op *out = calloc(a->key[key].ops, sizeof(*out));
	if (!out)
		arena_exhausted();
	uint32_t at = a->key[key].first;
	*n = 0;
	for (unsigned i = 0; i < a->key[key].ops; i++, at = a->op[at].sibling) {
		const struct announcement *op = &a->op[at];
		const uint32_t part = op->joined ? at - a->of[op->call] : 0;
		bool answered = op->answered && !op->left_out && announcements_known(a, op->answer);
		if (!announcements_known(a, op->call))
			continue;
		out[(*n)++] = (struct register_op){
			.kind = op->kind,
			.answered = answered,
			.failed = op->failed && answered,
			.value = number_of(a, op->value),
			.old = op->kind == REGISTER_CAS ? number_of(a, op->old) : 0,
			.begun = op->call * TM_TXN_OPS + part,
			.ended = op->answer * TM_TXN_OPS + part,
			.name = at};
	}
	return out;
}

bool announcements_explained(const struct announcements *a, unsigned key,
			     struct announced_fault *fault)
{
	unsigned n, lost = 0;
	struct register_op *op = announcements_register(a, key, &n);
	enum register_result result = register_judge(op, n, &lost);
	*fault = (struct announced_fault){
		.contract = TM_LIN, .unsure = result == REGISTER_FULL, .key = key};
	if (result == REGISTER_NONE) {
		fault->lost = op[lost].name;
		fault->ops = register_shrink(op, n);
		assert(fault->ops > 0 && fault->ops <= n);
		fault->op = calloc(fault->ops, sizeof(*fault->op));
		if (!fault->op)
			arena_exhausted();
		for (unsigned i = 0; i < fault->ops; i++)
			fault->op[i] = op[i].name;
	}
	free(op);
	return result == REGISTER_FITS;
}
