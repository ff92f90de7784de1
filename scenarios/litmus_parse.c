/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of litmus tests: header, locations and queue pairs, the table of threads.
 * docs/litmus.md has the grammar; statements are read in litmus_statement.c, conditions in
 * litmus_condition.c.
 *
 * A function for each rule of the grammar. Names are looked up at once, so that an error
 * points at the name, and what is in the test is always in range.
 *
 * Locations lie in one pool, each at the start of a line, in the order of the file. One that is
 * `after` another gets the first words that are free in its line.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/hardware/hardware.h"
#include "scenarios/litmus_lex.h"

#define WORD	   sizeof(uint64_t)
#define LINE_WORDS (LINE / WORD)

/* --- names --- */

/* Copy a name; false after an error. */
static bool keep_name(struct litmus_reader *r, const struct token *t, char *buf, size_t n)
{
	if (t->len >= n) {
		litmus_wrong(r, t, "%s has %zu characters; expected at most %zu",
			     litmus_show(t).text, t->len, n - 1);
		return false;
	}
	memcpy(buf, t->text, t->len);
	buf[t->len] = '\0';
	return true;
}

static struct token take_word(struct litmus_reader *r, const char *what)
{
	struct token t = r->token;
	if (t.kind == TOKEN_WORD)
		litmus_next(r);
	else
		litmus_expected(r, what);
	return t;
}

static int find_location(const struct litmus_test *test, const struct token *t)
{
	for (unsigned i = 0; i < test->locations; i++)
		if (litmus_is(t, test->location[i].name))
			return (int)i;
	return -1;
}

bool litmus_is_location(const struct litmus_reader *r)
{
	return find_location(r->test, &r->token) >= 0;
}

void litmus_no_location(struct litmus_reader *r, const char *others)
{
	const struct litmus_test *test = r->test;
	struct litmus_text known = {""};
	struct token t = r->token;
	for (unsigned i = 0; i < test->locations; i++)
		litmus_list_add(&known, test->location[i].name);
	litmus_wrong(r, &t, "%s; expected %sa location%s%s", litmus_show(&t).text, others,
		     test->locations ? ": " : ", but there are none", known.text);
}

uint8_t litmus_location(struct litmus_reader *r)
{
	int found = find_location(r->test, &r->token);
	if (found < 0) {
		litmus_no_location(r, "");
		return 0;
	}
	litmus_next(r);
	return (uint8_t)found;
}

/* Take a name of a host, which may be its first. */
static uint8_t take_host(struct litmus_reader *r, bool behind_at)
{
	struct litmus_test *test = r->test;
	struct token t = take_word(r, "a host");
	unsigned h = 0;
	while (h < test->hosts && !litmus_is(&t, test->host[h]))
		h++;
	if (r->status)
		return 0;
	if (h == LITMUS_HOSTS) {
		litmus_wrong(r, &t, "more than %d hosts", LITMUS_HOSTS);
		return 0;
	}
	if (h == test->hosts) {
		test->hosts += keep_name(r, &t, test->host[h], LITMUS_NAME);
		r->qp_host[h] = t;
	}
	if (behind_at)
		r->qp_host[h].kind = TOKEN_END;
	return (uint8_t)h;
}

/* Words that would make statements and conditions ambiguous. */
static bool is_reserved(const struct token *t)
{
	static const char *const words[] = {"dram",   "qp",	    "after", "all", "fails",
					    "global", "persistent", "crash", "true"};
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (litmus_is(t, words[i]))
			return true;
	return litmus_is_register(t) || litmus_is_thread(t) || litmus_statement_word(t) ||
	       litmus_condition_word(t);
}

/* Take the new name of a location or queue pair. */
static void take_new_name(struct litmus_reader *r, const char *what, char *buf)
{
	const struct litmus_test *test = r->test;
	struct token t = r->token;
	bool known = find_location(test, &t) >= 0;
	for (unsigned i = 0; i < test->qps; i++)
		known |= litmus_is(&t, test->qp[i].name);
	if (t.kind != TOKEN_WORD)
		litmus_expected(r, what);
	else if (is_reserved(&t))
		litmus_wrong(r, &t, "%s is a word of the language; expected another name",
			     litmus_show(&t).text);
	else if (known)
		litmus_wrong(r, &t, "%s twice; expected a name for one thing",
			     litmus_show(&t).text);
	else if (keep_name(r, &t, buf, LITMUS_NAME))
		litmus_next(r);
}

/* --- header --- */

static void read_doc(struct litmus_reader *r)
{
	const struct token *t = &r->token;
	size_t n = 0;
	if (t->kind != TOKEN_STRING)
		return;
	char *doc = malloc(t->len + 1);
	if (!doc) {
		litmus_wrong(r, t, "out of memory");
		r->status = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < t->len; i++) {
		char c = t->text[i] == '\n' || t->text[i] == '\t' || t->text[i] == '\r'
				 ? ' '
				 : t->text[i];
		if (c != ' ' || (n && doc[n - 1] != ' '))
			doc[n++] = c;
	}
	n -= n && doc[n - 1] == ' ';
	doc[n] = '\0';
	r->test->doc = doc;
	litmus_next(r);
}

/* The knobs that this file has set already are one bit each in *set. */
static void read_knob(struct litmus_reader *r, uint64_t *set)
{
	struct token name = take_word(r, "a knob of the hardware");
	char knob[64], value[64];
	const char *expected = NULL;
	litmus_need(r, "=");
	struct token t = r->token;
	if (t.kind != TOKEN_WORD && t.kind != TOKEN_NUMBER)
		litmus_expected(r, "the value of a knob");
	if (r->status || !keep_name(r, &name, knob, sizeof(knob)) ||
	    !keep_name(r, &t, value, sizeof(value)))
		return;
	int k = hardware_find(knob);
	assert(k < 64);
	if (k < 0) {
		hardware_set(&r->test->hw, knob, value, &expected);
		litmus_wrong(r, &name, "no knob %s; expected one of: %s", litmus_show(&name).text,
			     expected);
	} else if (*set & 1ull << k) {
		litmus_wrong(r, &name, "%s twice; expected once", knob);
	} else if (hardware_set(&r->test->hw, knob, value, &expected)) {
		litmus_wrong(r, &t, "%s for %s; expected one of: %s", litmus_show(&t).text, knob,
			     expected);
	}
	*set |= k < 0 ? 0 : 1ull << k;
	litmus_next(r);
}

static void read_header(struct litmus_reader *r)
{
	uint64_t set = 0;
	if (!litmus_is(&r->token, "litmus")) {
		litmus_expected(r, "litmus, and the name of the test");
		return;
	}
	litmus_next_title(r);
	struct token t = r->token;
	if (t.kind != TOKEN_WORD)
		litmus_expected(r, "the name of the test");
	else if (keep_name(r, &t, r->test->name, sizeof(r->test->name)))
		litmus_next(r);
	read_doc(r);
	while (litmus_take(r, "config"))
		do
			read_knob(r, &set);
		while (r->token.kind == TOKEN_WORD && !litmus_is(&r->token, "config"));
}

/* --- locations and queue pairs --- */

/* Place `l`, the newest location, alone or right after location `after`. */
static void place(struct litmus_reader *r, struct litmus_location *l)
{
	struct litmus_test *test = r->test;
	l->off = test->pool_bytes;
	test->pool_bytes += (uint32_t)((l->words + LINE_WORDS - 1) / LINE_WORDS * LINE);
}

static void place_after(struct litmus_reader *r, struct litmus_location *l)
{
	const struct litmus_test *test = r->test;
	struct token t = r->token;
	const struct litmus_location *first = &test->location[litmus_location(r)];
	uint32_t end = first->off + first->words * (uint32_t)WORD, line_end;
	if (r->status)
		return;
	if (first->host != l->host || first->dram != l->dram) {
		litmus_wrong(r, &t,
			     "%s is in %s of host %s; expected a location in the same memory as %s",
			     litmus_show(&t).text, first->dram ? "DRAM" : "PM",
			     test->host[first->host], l->name);
		return;
	}
	line_end = (end - 1) / LINE * LINE + LINE;
	for (unsigned i = 0; i < test->locations; i++) {
		uint32_t other = test->location[i].off + test->location[i].words * (uint32_t)WORD;
		if (other > end && other <= line_end)
			end = other;
	}
	if (end + l->words * WORD > line_end)
		litmus_wrong(r, &t,
			     "the line of %s has room for %zu more words; expected at least %u",
			     litmus_show(&t).text, (line_end - end) / WORD, l->words);
	l->off = end;
}

static void read_values(struct litmus_reader *r, struct litmus_location *l)
{
	unsigned n = 0;
	struct token t;
	do {
		t = r->token;
		if (n == l->words) {
			litmus_wrong(r, &t, "more values than words of %s; expected %u", l->name,
				     l->words);
			return;
		}
		l->initial[n++] = litmus_number(r, "a number", 0, UINT64_MAX);
	} while (litmus_take(r, ","));
	if (n == 1)
		for (; n < l->words; n++)
			l->initial[n] = l->initial[0];
	if (n < l->words)
		litmus_expected(r, "as many values as words, or one for all");
}

/* x[16]@B = 0 after y */
static void read_location(struct litmus_reader *r, bool dram)
{
	struct litmus_test *test = r->test;
	struct litmus_location *l = &test->location[test->locations];
	if (test->locations == LITMUS_LOCATIONS) {
		litmus_wrong(r, &r->token, "more than %d locations", LITMUS_LOCATIONS);
		return;
	}
	take_new_name(r, dram ? "the name of a location" : "a location, dram, qp, fails or }",
		      l->name);
	l->dram = dram;
	l->words = 1;
	if (litmus_take(r, "[")) {
		l->words = (uint16_t)litmus_number(r, "a number of words", 1, LITMUS_WORDS);
		litmus_need(r, "]");
	}
	litmus_need(r, "@");
	l->host = take_host(r, true);
	if (litmus_take(r, "="))
		read_values(r, l);
	if (litmus_take(r, "after"))
		place_after(r, l);
	else
		place(r, l);
	test->locations++;
}

/* qp q A B */
static void read_qp(struct litmus_reader *r)
{
	struct litmus_test *test = r->test;
	struct litmus_qp *q = &test->qp[test->qps];
	if (test->qps == LITMUS_QPS) {
		litmus_wrong(r, &r->token, "more than %d queue pairs", LITMUS_QPS);
		return;
	}
	take_new_name(r, "the name of a queue pair", q->name);
	q->host[0] = take_host(r, false);
	struct token t = r->token;
	q->host[1] = take_host(r, false);
	if (q->host[0] == q->host[1])
		litmus_wrong(r, &t, "%s twice; expected another host at the other end",
			     litmus_show(&t).text);
	test->qps++;
}

/* fails B */
static void read_fails(struct litmus_reader *r)
{
	struct token t = r->token;
	if (r->test->one_fails)
		litmus_wrong(r, &t, "fails twice; expected one host that fails alone");
	r->test->fails = take_host(r, false);
	r->test->one_fails = true;
}

static void read_init(struct litmus_reader *r)
{
	if (!litmus_take(r, "{"))
		litmus_expected(r, r->test->doc ? "config or {" : "a string, config or {");
	while (!r->status && !litmus_take(r, "}")) {
		if (litmus_take(r, "qp"))
			read_qp(r);
		else if (litmus_take(r, "fails"))
			read_fails(r);
		else
			read_location(r, litmus_take(r, "dram"));
		if (!litmus_is(&r->token, "}"))
			litmus_need(r, ";");
	}
}

/* --- the table --- */

/* P0@A */
static void read_thread(struct litmus_reader *r)
{
	struct litmus_test *test = r->test;
	char name[16];
	if (test->threads == LITMUS_THREADS) {
		litmus_wrong(r, &r->token, "more than %d threads", LITMUS_THREADS);
		return;
	}
	snprintf(name, sizeof(name), "P%u", test->threads);
	litmus_need(r, name);
	litmus_need(r, "@");
	test->thread[test->threads++].host = take_host(r, true);
}

static void read_row(struct litmus_reader *r)
{
	unsigned threads = r->test->threads;
	for (r->thread = 0; r->thread < threads && !r->status; r->thread++) {
		bool last = r->thread + 1 == threads;
		if (!litmus_is(&r->token, "|") && !litmus_is(&r->token, ";"))
			litmus_read_statement(r);
		if (litmus_is(&r->token, last ? "|" : ";"))
			litmus_wrong(r, &r->token, "%s columns than threads; expected %u",
				     last ? "more" : "fewer", threads);
		if (!litmus_take(r, last ? ";" : "|"))
			litmus_expected(r, last ? "; at the end of the row"
						: "| at the end of the cell");
	}
}

static void read_table(struct litmus_reader *r)
{
	do
		read_thread(r);
	while (litmus_take(r, "|"));
	if (!litmus_take(r, ";"))
		litmus_expected(r, "| and the next thread, or ; at the end of the row");
	while (r->token.kind != TOKEN_END && !litmus_condition_word(&r->token))
		read_row(r);
}

/* --- */

/* Every host of a queue pair is one that has a location or a thread. */
static void check_hosts(struct litmus_reader *r)
{
	for (unsigned h = 0; h < r->test->hosts; h++)
		if (r->qp_host[h].kind != TOKEN_END)
			litmus_wrong(r, &r->qp_host[h],
				     "host %s has neither a location nor a thread; expected @%s "
				     "somewhere",
				     r->test->host[h], r->test->host[h]);
}

int litmus_parse(struct litmus_test *test, const char *text, size_t len, struct input_error *error)
{
	struct litmus_reader r = {.test = test,
				  .at = text,
				  .end = text + len,
				  .line = 1,
				  .column = 1,
				  .error = error};
	memset(test, 0, sizeof(*test));
	memset(error, 0, sizeof(*error));
	test->hw = hardware_default;
	test->hw.store_buffer = LITMUS_STORE_BUFFER;
	litmus_next(&r);
	read_header(&r);
	read_init(&r);
	read_table(&r);
	check_hosts(&r);
	litmus_read_conditions(&r);
	if (!test->pool_bytes)
		test->pool_bytes = LINE; /* a region of memory is never empty */
	return r.status;
}

void litmus_free(struct litmus_test *test)
{
	free(test->doc);
	test->doc = NULL;
}
