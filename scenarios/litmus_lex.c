/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests: from bytes to tokens, and errors.
 *
 * A file may come from any source, so nothing about it is trusted: every byte is looked at, and
 * what is shown of it in a message is shortened. Columns count characters: in comments and strings
 * there may be UTF-8.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "scenarios/litmus_lex.h"

#define SHOWN 24 /* characters of a token in a message */

static const char *const signs[] = {"<-", "->", "/\\", "\\/", "!=", "..", "{", "}", "(", ")",
				    "[",  "]",	";",   ",",   "@",  "=",  "|", ":", "+", "~"};

#define SIGNS (sizeof(signs) / sizeof(signs[0]))

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool begins_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool in_word(char c)
{
	return begins_word(c) || is_digit(c) || c == '.';
}

static bool in_title(char c)
{
	return in_word(c) || c == '+' || c == '-';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool ahead(const struct litmus_reader *r, const char *text)
{
	size_t len = strlen(text);
	return (size_t)(r->end - r->at) >= len && !memcmp(r->at, text, len);
}

/* --- errors --- */

void litmus_wrong(struct litmus_reader *r, const struct token *at, const char *fmt, ...)
{
	va_list ap;
	if (r->status)
		return;
	va_start(ap, fmt);
	r->status = input_wrong(r->error, at->line, at->column, fmt, ap);
	va_end(ap);
	r->token.kind = TOKEN_END;
}

struct litmus_text litmus_show(const struct token *t)
{
	struct litmus_text s;
	if (t->kind == TOKEN_END)
		snprintf(s.text, sizeof(s.text), "the end of the file");
	else if (t->kind == TOKEN_STRING)
		snprintf(s.text, sizeof(s.text), "a string");
	else
		snprintf(s.text, sizeof(s.text), "'%.*s%s'", t->len < SHOWN ? (int)t->len : SHOWN,
			 t->text, t->len > SHOWN ? "..." : "");
	return s;
}

void litmus_list_add(struct litmus_text *list, const char *name)
{
	size_t at = strlen(list->text), room = sizeof(list->text) - at;
	const char *comma = at ? ", " : "";
	if (at >= 3 && !strcmp(list->text + at - 3, "..."))
		return;
	if (strlen(comma) + strlen(name) + strlen(", ...") < room)
		snprintf(list->text + at, room, "%s%s", comma, name);
	else
		snprintf(list->text + at, room, "%s...", comma);
}

void litmus_expected(struct litmus_reader *r, const char *what)
{
	litmus_wrong(r, &r->token, "%s; expected %s", litmus_show(&r->token).text, what);
}

/* --- bytes --- */

static void step(struct litmus_reader *r)
{
	unsigned char c = (unsigned char)*r->at++;
	if (c == '\n') {
		r->line++;
		r->column = 1;
	} else {
		r->column += (c & 0xc0) != 0x80; /* not of a byte within a character */
	}
}

static struct token token_here(const struct litmus_reader *r)
{
	return (struct token){.text = r->at, .line = r->line, .column = r->column};
}

/* In comments and strings. */
static void step_text(struct litmus_reader *r)
{
	unsigned char c = (unsigned char)*r->at;
	struct token here = token_here(r);
	if ((c < ' ' && !is_blank((char)c)) || c == 0x7f)
		litmus_wrong(r, &here, "byte 0x%02x; expected text", c);
	else
		step(r);
}

/* Up to and with `close`, which says how the comment or string ends. */
static void skip_to(struct litmus_reader *r, const char *close, const char *what)
{
	struct token here = token_here(r);
	step(r);
	if (*close == '*')
		step(r);
	while (!r->status && !ahead(r, close)) {
		if (r->at == r->end)
			litmus_wrong(r, &here, "%s without end; expected %s", what, close);
		else
			step_text(r);
	}
	for (size_t i = 0; i < strlen(close) && !r->status; i++)
		step(r);
}

static void skip_blanks(struct litmus_reader *r)
{
	while (r->at < r->end && !r->status) {
		if (ahead(r, "(*"))
			skip_to(r, "*)", "a comment");
		else if (ahead(r, "//"))
			while (r->at < r->end && *r->at != '\n' && !r->status)
				step_text(r);
		else if (is_blank(*r->at))
			step(r);
		else
			return;
	}
}

/* --- tokens --- */

static void lex_number(struct litmus_reader *r, struct token *t)
{
	bool hex = ahead(r, "0x") || ahead(r, "0X"), any = !hex, large = false;
	unsigned base = hex ? 16 : 10;
	t->kind = TOKEN_NUMBER;
	for (unsigned skip = hex ? 2 : 0; skip; skip--)
		step(r);
	for (; r->at < r->end; any = true) {
		char c = *r->at;
		unsigned digit = is_digit(c)		? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
				 : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
							: 16;
		if (digit >= base)
			break;
		large |= t->number > (UINT64_MAX - digit) / base;
		t->number = t->number * base + digit;
		step(r);
	}
	while (r->at < r->end && (begins_word(*r->at) || is_digit(*r->at))) {
		any = false;
		step(r);
	}
	t->len = (size_t)(r->at - t->text);
	if (!any)
		litmus_wrong(r, t, "%s; expected a number, decimal or 0x and hexadecimal",
			     litmus_show(t).text);
	if (large)
		litmus_wrong(r, t, "%s is too large; expected a number of at most 64 bits",
			     litmus_show(t).text);
}

static void lex_word(struct litmus_reader *r, struct token *t, bool (*in)(char c))
{
	t->kind = TOKEN_WORD;
	while (r->at < r->end && in(*r->at))
		step(r);
	t->len = (size_t)(r->at - t->text);
}

static void lex_string(struct litmus_reader *r, struct token *t)
{
	t->kind = TOKEN_STRING;
	t->text++;
	skip_to(r, "\"", "a string");
	if (!r->status)
		t->len = (size_t)(r->at - 1 - t->text);
}

static void lex_sign(struct litmus_reader *r, struct token *t)
{
	unsigned char c = (unsigned char)*r->at;
	for (unsigned i = 0; i < SIGNS; i++) {
		if (!ahead(r, signs[i]))
			continue;
		t->kind = TOKEN_SIGN;
		t->len = strlen(signs[i]);
		for (size_t k = 0; k < t->len; k++)
			step(r);
		return;
	}
	if (c > ' ' && c < 0x7f)
		litmus_wrong(r, t, "'%c'; expected a word, a number or a sign of the language", c);
	else
		litmus_wrong(r, t, "byte 0x%02x; expected ASCII outside of comments and strings",
			     c);
}

/* Words consist of what `in` says and begin with what `begins` says. */
static void lex(struct litmus_reader *r, bool (*begins)(char c), bool (*in)(char c))
{
	r->taken = r->at;
	if (r->status)
		return;
	skip_blanks(r);
	struct token t = token_here(r);
	if (r->status || r->at == r->end)
		t.kind = TOKEN_END;
	else if (begins(*r->at))
		lex_word(r, &t, in);
	else if (is_digit(*r->at))
		lex_number(r, &t);
	else if (*r->at == '"')
		lex_string(r, &t);
	else
		lex_sign(r, &t);
	if (r->status)
		t.kind = TOKEN_END;
	r->token = t;
}

void litmus_next(struct litmus_reader *r)
{
	lex(r, begins_word, in_word);
}

void litmus_next_title(struct litmus_reader *r)
{
	lex(r, in_title, in_title);
}

/* --- taking them --- */

bool litmus_is(const struct token *t, const char *text)
{
	return (t->kind == TOKEN_WORD || t->kind == TOKEN_SIGN) && t->len == strlen(text) &&
	       !memcmp(t->text, text, t->len);
}

bool litmus_take(struct litmus_reader *r, const char *text)
{
	if (!litmus_is(&r->token, text))
		return false;
	litmus_next(r);
	return true;
}

void litmus_need(struct litmus_reader *r, const char *text)
{
	if (!litmus_take(r, text))
		litmus_expected(r, text);
}

uint64_t litmus_number(struct litmus_reader *r, const char *what, uint64_t lo, uint64_t hi)
{
	struct token t = r->token;
	if (t.kind != TOKEN_NUMBER)
		litmus_expected(r, what);
	else if (t.number < lo || t.number > hi)
		litmus_wrong(r, &t, "%s; expected %s from %" PRIu64 " to %" PRIu64,
			     litmus_show(&t).text, what, lo, hi);
	else
		litmus_next(r);
	return r->status ? lo : t.number;
}

static bool is_numbered(const struct token *t, char letter)
{
	if (t->kind != TOKEN_WORD || t->len < 2 || t->text[0] != letter)
		return false;
	for (size_t i = 1; i < t->len; i++)
		if (!is_digit(t->text[i]))
			return false;
	return true;
}

bool litmus_is_register(const struct token *t)
{
	return is_numbered(t, 'r');
}

bool litmus_is_thread(const struct token *t)
{
	return is_numbered(t, 'P');
}

uint8_t litmus_register(struct litmus_reader *r)
{
	const struct token *t = &r->token;
	unsigned number = 0;
	bool good = litmus_is_register(t) && t->len <= 3 && (t->text[1] != '0' || t->len == 2);
	for (size_t i = 1; i < t->len && good; i++)
		number = number * 10 + (unsigned)(t->text[i] - '0');
	if (!good || number >= LITMUS_REGISTERS) {
		litmus_expected(r, "a register, r0 to r15");
		return 0;
	}
	litmus_next(r);
	return (uint8_t)number;
}

void litmus_copy(const struct litmus_reader *r, const char *from, char *buf, size_t n)
{
	struct litmus_reader copy = {.at = from, .end = r->taken, .status = r->status};
	size_t at = 0;
	for (; copy.at < copy.end && at + 1 < n && !copy.status; at++) {
		const char *before = copy.at;
		skip_blanks(&copy);
		buf[at] = copy.at == before ? *copy.at++ : ' ';
	}
	buf[at] = '\0';
}
