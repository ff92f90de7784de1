/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_JUNIT_H
#define TM_REPORT_JUNIT_H
/* Results as JUnit XML, for continuous integration. */
#include <stdbool.h>

#define JUNIT_MARK "<testsuites name=\"tidemark\"" /* in such a file's beginning */

enum junit_result {
	JUNIT_PASSED,
	JUNIT_FAILED,
	JUNIT_SKIPPED, /* nobody can tell */
	JUNIT_ERROR,   /* there is no result */
	JUNIT_RESULTS
};

struct junit_case {
	enum junit_result result;
	char *suite, *name;
	char *text;  /* why, its first line is the message; passed: NULL */
	double took; /* the suite, in seconds; 0: not measured */
};

/* Starts as all zeros, ends in junit_free(). */
struct junit {
	struct junit_case *test;
	unsigned tests, room;
	double seconds; /* of everything; 0: not measured */
	char *verdict;	/* a property of the first suite, to be freed; NULL: none */
	bool no_memory; /* something is missing; junit_save() says so */
};

/* Add a test case. Cases of one suite stand together. fmt NULL: it passed. */
void junit_add(struct junit *j, enum junit_result result, const char *suite, const char *name,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* How many seconds the latest suite took. */
void junit_took(struct junit *j, double seconds);
/* 0 or -errno, as save_file(). */
int junit_save(const struct junit *j, const char *path);
void junit_free(struct junit *j);

#endif
