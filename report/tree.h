/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TREE_H
#define TM_REPORT_TREE_H
/*
 * The results of a command as one tree, a JSON object, which the command fills. It has fields of
 * its own, and those from which formats are made:
 *
 *   status, verdict  the conclusion (conclusion.h)
 *   seconds          how long all of it took
 *   test_cases       what passed and what failed (tree_case())
 *   contracts        name and meaning of each contract that is judged
 *   findings         what needs attention, with its line of source (findings.h)
 *
 * JSON is the tree itself. Each other format is a function of the tree in a file of its own, and a
 * row of the table in cli/output.c: a command names none of them where it writes.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include "core/text/text.h"
#include "report/conclusion.h"

enum case_result {
	CASE_PASSED,
	CASE_FAILED,
	CASE_SKIPPED, /* it could not be told */
	CASE_ERROR,   /* there is no result */
	CASE_RESULTS
};

/* A text that may be no UTF-8, such as the name of a file; NULL: "". Texts of the tree have it as
 * it is, in files what is not ASCII is "?" then. */
json_t *json_text(const char *text);
/* What was printed, which is freed: a string, or one for each line. */
json_t *json_of(char *text);
json_t *json_lines(char *text);
#define JSON_PRINTED(out, ...) json_of(TEXT_PRINTED(out, __VA_ARGS__))
/* Names and meanings of these contracts (TM_BIT()s). */
json_t *tree_contracts(unsigned contracts);
/* A copy without such texts, to be freed. */
json_t *tree_for_file(const json_t *tree);
/* The string of an object's field; "": it has none. */
const char *tree_text(const json_t *object, const char *field);

/* Add a case. Cases of one suite stand together. fmt: why, its first line is a message; NULL: it
 * passed. */
void tree_case(json_t *all, enum case_result result, const char *suite, const char *name,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The conclusion, if there is one, and the program's version. 0 or -ENOMEM. */
int tree_end(json_t *all, const struct conclusion *c);

/* --- formats, for save_file() --- */

/* Such files' beginnings have these. */
#define JUNIT_MARK "<testsuites name=\"tidemark\""

#define PAGE_MARK                                                   \
	"<!doctype html>\n<html lang=en><head><meta charset=utf-8>" \
	"<meta name=generator content=tidemark>"

int tree_write_json(FILE *out, const void *tree);
/* One page that needs nothing else (report/page). */
int tree_write_page(FILE *out, const void *tree);
/* JUnit XML, for continuous integration: test cases, and a case for a verdict that none of them
 * shows. */
int tree_write_junit(FILE *out, const void *tree);
/* SARIF 2.1.0, for code scanning: findings. */
int tree_write_sarif(FILE *out, const void *tree);
/* Findings as commands of a GitHub workflow, an error at each place. */
int tree_write_annotations(FILE *out, const void *tree);

#endif
