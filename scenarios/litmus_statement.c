/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of litmus tests: statements. A table has, for each word that may begin one, the
 * operation and the function that reads the rest.
 */
#include <stdio.h>
#include <string.h>
#include "core/rnic/opcode.h"
#include "scenarios/litmus_lex.h"

/* --- operands --- */

static struct litmus_expr read_expr(struct litmus_reader *r)
{
	struct litmus_expr e = {0};
	if (litmus_is_register(&r->token)) {
		e.has_reg = true;
		e.reg = litmus_register(r);
		if (litmus_take(r, "+"))
			e.number = litmus_number(r, "a number", 0, UINT64_MAX);
	} else if (r->token.kind == TOKEN_NUMBER) {
		e.number = litmus_number(r, "a number", 0, UINT64_MAX);
	} else {
		litmus_expected(r, "a number or a register");
	}
	return e;
}

static unsigned own_host(const struct litmus_reader *r)
{
	return r->test->thread[r->thread].host;
}

/* The host at the other end of a queue pair that has an end here. */
static unsigned peer_host(const struct litmus_reader *r, unsigned qp)
{
	const uint8_t *host = r->test->qp[qp].host;
	return host[host[0] == own_host(r)];
}

/* x, x[i] or x[i..j]; of a host. *whole: no words are named. */
static struct litmus_range read_words(struct litmus_reader *r, unsigned host, bool *whole)
{
	const struct litmus_test *test = r->test;
	struct token t = r->token;
	struct litmus_range range = {.location = litmus_location(r)};
	const struct litmus_location *l = &test->location[range.location];
	range.words = l->words;
	if (!r->status && l->host != host)
		litmus_wrong(r, &t, "%s is on host %s; expected a location of host %s", l->name,
			     test->host[l->host], test->host[host]);
	*whole = !litmus_take(r, "[");
	if (*whole || r->status)
		return range;
	range.first = (uint16_t)litmus_number(r, "a word", 0, l->words - 1u);
	range.words = 1;
	if (litmus_take(r, ".."))
		range.words = (uint16_t)(litmus_number(r, "a word", range.first, l->words - 1u) -
					 range.first + 1);
	litmus_need(r, "]");
	return range;
}

static struct litmus_range read_range(struct litmus_reader *r, unsigned host)
{
	bool whole;
	return read_words(r, host, &whole);
}

/* One word: x is x[0]. */
static struct litmus_range read_word(struct litmus_reader *r, unsigned host)
{
	struct token t = r->token;
	bool whole;
	struct litmus_range range = read_words(r, host, &whole);
	if (!whole && range.words != 1)
		litmus_wrong(r, &t, "%u words; expected one", range.words);
	range.words = 1;
	return range;
}

/* Take a queue pair that has an end on the thread's host. */
static void read_qp(struct litmus_reader *r, struct litmus_statement *s)
{
	const struct litmus_test *test = r->test;
	struct litmus_text known = {""};
	struct token t = r->token;
	unsigned host = own_host(r), q = 0;
	while (q < test->qps && !litmus_is(&t, test->qp[q].name))
		q++;
	if (q < test->qps && (test->qp[q].host[0] == host || test->qp[q].host[1] == host)) {
		s->qp = (uint8_t)q;
		litmus_next(r);
		return;
	}
	for (unsigned i = 0; i < test->qps; i++)
		if (test->qp[i].host[0] == host || test->qp[i].host[1] == host)
			litmus_list_add(&known, test->qp[i].name);
	litmus_wrong(r, &t, "%s; expected a queue pair with an end on host %s%s%s",
		     litmus_show(&t).text, test->host[host],
		     known.text[0] ? ": " : ", but there is none", known.text);
}

/* Local words, or a value in the request itself. */
static void read_source(struct litmus_reader *r, struct litmus_statement *s, bool one_word)
{
	s->inlined = r->token.kind == TOKEN_NUMBER || litmus_is_register(&r->token);
	if (s->inlined)
		s->expr = read_expr(r);
	else if (r->token.kind != TOKEN_WORD)
		litmus_expected(r, "a location, a number or a register");
	else
		s->from = one_word ? read_word(r, own_host(r)) : read_range(r, own_host(r));
}

/* --- what follows the word --- */

static void read_nothing(struct litmus_reader *r, struct litmus_statement *s)
{
	(void)r;
	(void)s;
}

/* await WORD = EXPR */
static void read_await(struct litmus_reader *r, struct litmus_statement *s)
{
	s->from = read_word(r, own_host(r));
	litmus_need(r, "=");
	s->expr = read_expr(r);
}

/* nt WORD = EXPR */
static void read_nt(struct litmus_reader *r, struct litmus_statement *s)
{
	s->to = read_word(r, own_host(r));
	litmus_need(r, "=");
	s->expr = read_expr(r);
}

/* copy RANGE <- RANGE */
static void read_copy(struct litmus_reader *r, struct litmus_statement *s)
{
	s->to = read_range(r, own_host(r));
	litmus_need(r, "<-");
	struct token from = r->token;
	s->from = read_range(r, own_host(r));
	if (s->from.words != s->to.words)
		litmus_wrong(r, &from, "%s: %u words for %u; expected ranges of the same length",
			     litmus_show(&from).text, s->from.words, s->to.words);
}

/* clwb RANGE */
static void read_lines(struct litmus_reader *r, struct litmus_statement *s)
{
	s->from = read_range(r, own_host(r));
}

/* REG = faa WORD EXPR; cas has two */
static void read_locked(struct litmus_reader *r, struct litmus_statement *s)
{
	s->from = read_word(r, own_host(r));
	s->expr = read_expr(r);
	if (s->op == LITMUS_CAS)
		s->expr2 = read_expr(r);
}

static void read_immediate(struct litmus_reader *r, struct litmus_statement *s)
{
	if (operations[s->wr].with & WITH_IMM && r->token.kind == TOKEN_NUMBER)
		s->imm = (uint32_t)litmus_number(r, "an immediate value", 0, UINT32_MAX);
}

/* put q REMOTE <- LOCAL|EXPR; putimm [NUMBER] */
static void read_put(struct litmus_reader *r, struct litmus_statement *s)
{
	bool whole;
	read_qp(r, s);
	struct token to = r->token;
	s->to = read_words(r, peer_host(r, s->qp), &whole);
	litmus_need(r, "<-");
	struct token from = r->token;
	read_source(r, s, false);
	if (s->inlined && whole)
		s->to.words = 1;
	if (s->inlined && s->to.words != 1)
		litmus_wrong(r, &to, "%u words for one value; expected one word", s->to.words);
	if (!s->inlined && s->from.words != s->to.words)
		litmus_wrong(r, &from, "%s: %u of %u words; expected ranges of the same length",
			     litmus_show(&from).text, s->from.words, s->to.words);
	read_immediate(r, s);
}

/* get q LOCAL <- REMOTE */
static void read_get(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->to = read_range(r, own_host(r));
	litmus_need(r, "<-");
	struct token from = r->token;
	s->from = read_range(r, peer_host(r, s->qp));
	if (s->from.words != s->to.words)
		litmus_wrong(r, &from, "%s: %u words for %u; expected ranges of the same length",
			     litmus_show(&from).text, s->from.words, s->to.words);
}

/* send q LOCAL|EXPR */
static void read_send(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	read_source(r, s, false);
}

/* faa q LOCAL <- REMOTE EXPR; cas has two */
static void read_remote_locked(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->to = read_word(r, own_host(r));
	litmus_need(r, "<-");
	s->from = read_word(r, peer_host(r, s->qp));
	s->expr = read_expr(r);
	if (operations[s->wr].with & WITH_COMPARE)
		s->expr2 = read_expr(r);
}

/* awrite q REMOTE <- LOCAL|EXPR */
static void read_awrite(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->to = read_word(r, peer_host(r, s->qp));
	litmus_need(r, "<-");
	read_source(r, s, true);
}

/* flush q REMOTE|all [global|persistent] */
static void read_flush(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->all = litmus_take(r, "all");
	if (!s->all)
		s->to = read_range(r, peer_host(r, s->qp));
	s->persistent = !litmus_take(r, "global");
	if (s->persistent)
		litmus_take(r, "persistent");
}

/* commit q REMOTE; commitimm [NUMBER] */
static void read_commit(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->to = read_range(r, peer_host(r, s->qp));
	read_immediate(r, s);
}

/* commitput q REMOTE <- LOCAL|EXPR */
static void read_commit_payload(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->to = read_range(r, peer_host(r, s->qp));
	litmus_need(r, "<-");
	read_source(r, s, true);
}

/* poll q */
static void read_poll(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
}

/* recv q [LOCAL] */
static void read_recv(struct litmus_reader *r, struct litmus_statement *s)
{
	read_qp(r, s);
	s->has_to = r->token.kind == TOKEN_WORD;
	if (s->has_to)
		s->to = read_range(r, own_host(r));
}

/* --- statements --- */

enum form_place {
	ALONE = 1, /* begins a statement */
	ASSIGN = 2 /* comes after REG = */
};

static const struct form {
	const char *word;
	uint8_t op, place;
	void (*read)(struct litmus_reader *r, struct litmus_statement *s);
} forms[] = {
	{"nt", LITMUS_NT, ALONE, read_nt},
	{"copy", LITMUS_COPY, ALONE, read_copy},
	{"await", LITMUS_AWAIT, ALONE, read_await},
	{"mfence", LITMUS_MFENCE, ALONE, read_nothing},
	{"sfence", LITMUS_SFENCE, ALONE, read_nothing},
	{"lfence", LITMUS_LFENCE, ALONE, read_nothing},
	{"clflush", LITMUS_CLFLUSH, ALONE, read_lines},
	{"clflushopt", LITMUS_CLFLUSHOPT, ALONE, read_lines},
	{"clwb", LITMUS_CLWB, ALONE, read_lines},
	{"xchg", LITMUS_XCHG, ASSIGN, read_locked},
	{"cas", LITMUS_CAS, ASSIGN, read_locked},
	{"faa", LITMUS_FAA, ASSIGN, read_locked},
	{"poll", LITMUS_POLL, ALONE | ASSIGN, read_poll},
	{"recv", LITMUS_RECV, ALONE | ASSIGN, read_recv},
};

/* A work request has the word that its operation has, and the operands of its class. */
static void (*const request_reader[CLASS_COUNT])(struct litmus_reader *r,
						 struct litmus_statement *s) = {
	[CLASS_WRITE] = read_put,	    [CLASS_READ] = read_get,
	[CLASS_SEND] = read_send,	    [CLASS_ATOMIC] = read_remote_locked,
	[CLASS_ATOMIC_WRITE] = read_awrite, [CLASS_FLUSH] = read_flush,
	[CLASS_COMMIT] = read_commit,	    [CLASS_COMMIT_PAYLOAD] = read_commit_payload,
};

static const struct operation *find_request(const struct token *t)
{
	for (unsigned i = 0; i < OPERATIONS; i++)
		if (operations[i].litmus && litmus_is(t, operations[i].litmus))
			return &operations[i];
	return NULL;
}

static const struct form *find_form(const struct token *t, unsigned places)
{
	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if ((forms[i].place & places) == places && litmus_is(t, forms[i].word))
			return &forms[i];
	return NULL;
}

bool litmus_statement_word(const struct token *t)
{
	return find_form(t, ALONE) || find_form(t, ASSIGN) || find_request(t) ||
	       litmus_is(t, "if") || litmus_is(t, "fenced") || litmus_is(t, "unsignaled");
}

static void read_form(struct litmus_reader *r, struct litmus_statement *s, const struct form *form)
{
	s->op = form->op;
	litmus_next(r);
	form->read(r, s);
}

static void read_request(struct litmus_reader *r, struct litmus_statement *s,
			 const struct operation *request)
{
	s->op = LITMUS_REQUEST;
	s->wr = (uint8_t)(request - operations);
	litmus_next(r);
	request_reader[request->class](r, s);
}

/* REG = ... */
static void read_assignment(struct litmus_reader *r, struct litmus_statement *s)
{
	s->has_reg = true;
	s->reg = litmus_register(r);
	litmus_need(r, "=");
	const struct form *form = find_form(&r->token, ASSIGN);
	if (form) {
		read_form(r, s, form);
	} else if (litmus_statement_word(&r->token)) {
		litmus_expected(r,
				"xchg, cas, faa, poll, recv, a location, a number or a register");
	} else if (r->token.kind == TOKEN_WORD && !litmus_is_register(&r->token)) {
		s->op = LITMUS_LOAD;
		s->from = read_word(r, own_host(r));
	} else {
		s->op = LITMUS_SET;
		s->expr = read_expr(r);
	}
}

/* It is no word of a statement, and no location either. */
static void expect_statement(struct litmus_reader *r)
{
	char text[160] = "";
	size_t n = 0;
	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]) && n < sizeof(text); i++)
		if (forms[i].place & ALONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s, ", forms[i].word);
	if (n < sizeof(text))
		snprintf(text + n, sizeof(text) - n, "a request such as put, or ");
	litmus_no_location(r, text);
}

/* WORD = EXPR */
static void read_store(struct litmus_reader *r, struct litmus_statement *s)
{
	s->op = LITMUS_STORE;
	s->to = read_word(r, own_host(r));
	litmus_need(r, "=");
	s->expr = read_expr(r);
}

static void read_guard(struct litmus_reader *r, struct litmus_statement *s)
{
	s->guarded = litmus_take(r, "if");
	if (!s->guarded)
		return;
	s->guard_reg = litmus_register(r);
	s->guard_equal = litmus_take(r, "=");
	if (!s->guard_equal && !litmus_take(r, "!="))
		litmus_expected(r, "= or !=");
	s->guard_number = litmus_number(r, "a number", 0, UINT64_MAX);
	if (litmus_is(&r->token, "if"))
		litmus_expected(r, "one `if` in a statement");
}

static void expect_request(struct litmus_reader *r)
{
	char text[160];
	size_t n = (size_t)snprintf(text, sizeof(text), "a request after the prefix");
	const char *before = ": ";
	for (unsigned i = 0; i < OPERATIONS && n < sizeof(text); i++) {
		if (!operations[i].litmus)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", before,
				      operations[i].litmus);
		before = ", ";
	}
	litmus_expected(r, text);
}

/* A prefix that comes twice is a mistake. */
static void read_prefixes(struct litmus_reader *r, struct litmus_statement *s)
{
	for (bool *flag = &s->fenced; flag;) {
		flag = litmus_is(&r->token, "fenced")	    ? &s->fenced
		       : litmus_is(&r->token, "unsignaled") ? &s->unsignaled
							    : NULL;
		if (flag && *flag)
			litmus_expected(r, "the prefix once");
		if (!flag)
			break;
		*flag = true;
		litmus_next(r);
	}
	if ((s->fenced || s->unsignaled) && !find_request(&r->token))
		expect_request(r);
}

static void read_body(struct litmus_reader *r, struct litmus_statement *s)
{
	read_prefixes(r, s);
	const struct operation *request = find_request(&r->token);
	const struct form *form = find_form(&r->token, ALONE);
	if (request)
		read_request(r, s, request);
	else if (form)
		read_form(r, s, form);
	else if (find_form(&r->token, ASSIGN))
		litmus_expected(r, "a register and = before it");
	else if (litmus_is_register(&r->token))
		read_assignment(r, s);
	else if (r->token.kind == TOKEN_WORD && litmus_is_location(r))
		read_store(r, s);
	else if (r->token.kind == TOKEN_WORD)
		expect_statement(r);
	else
		litmus_expected(r, "a statement");
}

void litmus_read_statement(struct litmus_reader *r)
{
	struct litmus_thread *thread = &r->test->thread[r->thread];
	const char *from = r->token.text;
	if (thread->statements == LITMUS_STATEMENTS) {
		litmus_wrong(r, &r->token, "more than %d statements of P%u", LITMUS_STATEMENTS,
			     r->thread);
		return;
	}
	struct litmus_statement *s = &thread->statement[thread->statements++];
	s->line = r->token.line;
	s->column = r->token.column;
	read_guard(r, s);
	read_body(r, s);
	litmus_copy(r, from, s->text, sizeof(s->text));
}
