/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_CONCLUSION_H
#define TM_REPORT_CONCLUSION_H
/*
 * What the results of a command come to: a sentence and the exit status. Each command makes it in
 * one place, from its results. The last line of the text, the first of a page and the tree of
 * results (tree.h) have it from there, and none of them has a sentence of its own.
 */
#include <stdio.h>

enum {
	EXIT_HELD,
	EXIT_BROKEN,
	EXIT_USAGE,
	EXIT_UNSURE,
	EXIT_FIXED,
	EXIT_INTERNAL = 70,
	EXIT_SKIPPED = 77,
	EXIT_SIGNAL = 128 /* and the signal's number */
};

#define CONCLUSION_TEXT 4096

struct conclusion {
	int status;
	char text[CONCLUSION_TEXT];
};

void conclude(struct conclusion *c, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Words after those that are there. */
void conclusion_add(struct conclusion *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* What was done is a part: "at SIGINT", "3 of 5 bugs are done". A good conclusion becomes that the
 * part alone is good. */
void conclusion_left_off(struct conclusion *c, const char *why, const char *part);

/* --- where it is said --- */

/* The last line of the text. */
void conclusion_print(const struct conclusion *c);

#endif
