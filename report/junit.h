/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_JUNIT_H
#define TM_REPORT_JUNIT_H
/* Results as JUnit XML, for continuous integration. */
#include <stdbool.h>

#define JUNIT_MARK "<testsuites name=\"tidemark\"" /* in such a file's beginning */

struct junit_case {
	char *suite, *name;
	char *failure; /* its first line is the message; NULL: passed, or skipped */
	char *skipped; /* why it was not run; NULL: it was */
	double took;   /* the suite, in seconds; 0: not measured */
};

/* Starts as all zeros, ends in junit_free(). */
struct junit {
	struct junit_case *test;
	unsigned tests, room;
	double seconds; /* of everything; 0: not measured */
	bool no_memory; /* something is missing; junit_save() says so */
};

/* Add a test case. Cases of one suite stand together. fmt NULL: it passed. */
void junit_add(struct junit *j, const char *suite, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Add one that was not run. */
void junit_skip(struct junit *j, const char *suite, const char *name, const char *why);
/* How many seconds the latest suite took. */
void junit_took(struct junit *j, double seconds);
/* 0 or -errno, as save_file(). */
int junit_save(const struct junit *j, const char *path);
void junit_free(struct junit *j);

#endif
