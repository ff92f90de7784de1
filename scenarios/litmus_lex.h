/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_SCENARIOS_LITMUS_LEX_H
#define TM_SCENARIOS_LITMUS_LEX_H
/*
 * Between the files that read litmus tests: tokens, errors, names.
 *
 * The first error ends the reading: it is kept, and from then on every token is TOKEN_END. So a
 * function that reads goes on as if nothing had happened, and every loop that ends at the end
 * of the file ends.
 */
#include "scenarios/litmus.h"

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	const char *text; /* in the file; of a string, without its quotation marks */
	size_t len;
	unsigned line, column;
	uint64_t number;
};

struct litmus_reader {
	struct litmus_test *test;
	const char *at, *end; /* what is left of the file */
	unsigned line, column;
	struct token token;		    /* the next one */
	const char *taken;		    /* where the last one ended */
	unsigned thread;		    /* whose statement is read */
	unsigned depth;			    /* of the formula */
	bool crash, memory;		    /* this condition names such places */
	struct token qp_host[LITMUS_HOSTS]; /* where a queue pair names the host; TOKEN_END: after
					       an @, too */
	struct input_error *error;
	int status; /* 0; -EINVAL, -ENOMEM */
};

/* --- litmus_lex.c --- */

/* Take a token. */
void litmus_next(struct litmus_reader *r);
/* The name of a test has more signs than other words: take `litmus`, and read one of those. */
void litmus_next_title(struct litmus_reader *r);
bool litmus_is(const struct token *t, const char *text);
/* Take this sign or word if it is the next token. */
bool litmus_take(struct litmus_reader *r, const char *text);
/* The same, or an error. */
void litmus_need(struct litmus_reader *r, const char *text);
/* An error at this token. */
void litmus_wrong(struct litmus_reader *r, const struct token *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* An error at the next token: what was expected in its place. */
void litmus_expected(struct litmus_reader *r, const char *what);
/* Take a number from lo to hi. */
uint64_t litmus_number(struct litmus_reader *r, const char *what, uint64_t lo, uint64_t hi);
/* Take a register: its number. */
uint8_t litmus_register(struct litmus_reader *r);
/* A word that looks like a register, r and digits; like a thread, P and digits. */
bool litmus_is_register(const struct token *t);
bool litmus_is_thread(const struct token *t);
/* All that was taken since `from`, blanks made one, without comments. */
void litmus_copy(const struct litmus_reader *r, const char *from, char *buf, size_t n);

/* Tokens in messages, and lists of what there is. */
struct litmus_text {
	char text[100];
};
struct litmus_text litmus_show(const struct token *t);
void litmus_list_add(struct litmus_text *list, const char *name);

/* --- litmus_statement.c --- */

/* Take a statement of r->thread. */
void litmus_read_statement(struct litmus_reader *r);
/* Does the word begin or qualify a statement? */
bool litmus_statement_word(const struct token *t);

/* --- litmus_condition.c --- */

void litmus_read_conditions(struct litmus_reader *r);
/* Does a condition or an `observe` begin with this token? */
bool litmus_condition_word(const struct token *t);

/* --- litmus_parse.c --- */

/* Take a name of a location: its number. */
uint8_t litmus_location(struct litmus_reader *r);
bool litmus_is_location(const struct litmus_reader *r);
/* Fail: this is no location, nor one of `others`, text that goes before "a location". */
void litmus_no_location(struct litmus_reader *r, const char *others);

#endif
