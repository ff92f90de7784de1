/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TEXT_TEXT_H
#define TM_TEXT_TEXT_H
/*
 * Line-oriented text, and one way to say what is wrong with it. Traces, tables, lists of
 * operations, pools' headers and rules of faults are read with it.
 *
 * The input is in memory, may be written to, and has a NUL after its last byte. A line is cut off
 * where it is, words are cut off from a line. The reader of a format takes lines and words; at the
 * first that is wrong it returns text_wrong(), which keeps the line's number and a sentence: what
 * was found, and what was expected.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where an input is wrong. The message has no newline. */
struct input_error {
	unsigned line;	 /* from 1; 0: the input as a whole */
	unsigned column; /* from 1; 0: the line as a whole */
	char message[200];
};

/* What makes a noun many. */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Fill it; a message that is too long ends in "...". Returns -EINVAL. */
int input_wrong(struct input_error *error, unsigned line, unsigned column, const char *fmt,
		va_list ap) __attribute__((format(printf, 4, 0)));

/* The place after an input's name: ":12", ":12:3"; "": the input as a whole. */
struct input_place {
	char text[24];
};
struct input_place input_place(const struct input_error *error);

struct text {
	struct input_error *error;
	char *at, *end; /* what has not been taken yet */
	unsigned line;	/* number of the latest line, from 1 */
	size_t len;	/* its bytes; there may be NULs among them */
	bool ended;	/* a newline ends it */
	size_t max;	/* bytes that a line may have; 0: any number */
	bool ascii;	/* text_rows() checks the bytes: text_check_bytes() with comments */
};

/* Start at the first line of `len` bytes. */
void text_start(struct text *t, char *bytes, size_t len, struct input_error *error);
/* The next line, without its newline and a carriage return before that. 1: there is one; 0: the
 * input has ended; -EINVAL: it is longer than t->max. */
int text_line(struct text *t, char **line);
/* Is every byte of the latest line printable ASCII, a blank, or, from `comment` on, UTF-8?
 * `comment` NULL: there is none. 0 or -EINVAL. */
int text_check_bytes(struct text *t, const char *line, const char *comment);
/* Says what is wrong with the latest line. Returns -EINVAL. */
int text_wrong(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * A table has a row on each line; blank lines, and those that begin with '#', are skipped. Each
 * row, without blanks before it, goes to row(), until that returns something else than 0. Returns
 * that, or what text_line() and text_check_bytes() found.
 */
typedef int text_row(struct text *t, char *line, void *arg);
int text_rows(struct text *t, text_row *row, void *arg);

/*
 * All of a file, at most max + 1 bytes (so that the caller sees that there are more than max), to
 * be freed. NULL: *rc is -ENOMEM or what reading said, and *error says so, too.
 */
char *text_read(FILE *in, size_t max, size_t *len, struct input_error *error, int *rc);
/* The same by its name. What cannot be opened is told by *rc alone. */
char *text_read_path(const char *path, size_t max, size_t *len, struct input_error *error, int *rc);

/* What the statements print to the stream `out`, to be freed; NULL without memory. */
#define TEXT_PRINTED(out, ...)                             \
	({                                                 \
		char *text_ = NULL;                        \
		size_t len_;                               \
		FILE *out = open_memstream(&text_, &len_); \
		if (out) {                                 \
			__VA_ARGS__;                       \
			fclose(out);                       \
		}                                          \
		text_;                                     \
	})

/* The comments ('#') and blank lines that a text begins with, to be freed; NULL without memory. */
char *text_head(const char *bytes);

/* --- parts of a line --- */

/* What comes after the blanks (spaces and tabs) here. */
char *text_skip_blanks(const char *at);
/* The next word, up to a blank; "" at the end. *rest moves past it. */
char *text_word(char **rest);
/* Up to the next `separator`, without the blanks around it. *more: there was a separator. */
char *text_part(char **rest, char separator, bool *more);
/* Cut "name=value" in two: the value; NULL: it has no '='. */
char *text_value(char *pair);
/* Does the text begin with digits? What follows the number; NULL: none, or it is above max. */
const char *text_digits(const char *text, uint64_t max, uint64_t *out);
/* A copy with one blank between words and none around them, to be freed. NULL without memory. */
char *text_tidy(const char *line);
/* Is the whole text a decimal number from min to max? */
bool text_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* A part of the input for a message: in quotes, printable, and at most TEXT_SHOWN bytes of it. */
#define TEXT_SHOWN 40
struct text_shown {
	char text[TEXT_SHOWN + 6];
};
struct text_shown text_show(const char *text);
struct text_shown text_show_part(const char *text, size_t len);

/* --- lines "name value" in a fixed order --- */

/* Take the next line if it is "name value" with its newline: the value. NULL: it is not. */
char *text_field_if(struct text *t, const char *name);
/* The same, but anything else is an error: "expected ...". */
char *text_field(struct text *t, const char *name, const char *expected);
/* The value is a number from min to max. 0 or -EINVAL. */
int text_field_number(struct text *t, const char *name, uint64_t min, uint64_t max,
		      const char *expected, uint64_t *out);

/* --- lists of words, separated by single spaces: "on off" --- */

/* The i-th word and its length; NULL: the list has no more. */
const char *word_list_at(const char *list, unsigned i, size_t *len);
unsigned word_list_count(const char *list);
/* The place of a word in the list; -1: it is not there. */
int word_list_find(const char *list, const char *word);

#endif
