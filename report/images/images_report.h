/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_IMAGES_REPORT_H
#define TM_REPORT_IMAGES_REPORT_H
/* What came of the crash images of a log, as text, JSON and JUnit XML. */
#include "checker/images/images.h"
#include "report/junit.h"

struct images_report {
	const struct pm_log *log;
	const char *name; /* of the log */
	const struct images_options *options;
	const struct images_result *result;
	char *const *words; /* the command, for replaying; NULL after them */
};

/* What there is in the log. */
void images_print_log(FILE *out, const struct images_report *r);
/* "the store of 8 bytes at /tmp/pool+0x40" */
void images_print_event(FILE *out, const struct pm_log *log, uint32_t event);
/* Where in the program: its frames, one a line. */
void images_print_source(FILE *out, const struct pm_log *log, const struct pm_event *e,
			 unsigned indent);
void images_print(FILE *out, const struct images_report *r);
/* One image, and what became of it. */
void images_print_one(FILE *out, const struct images_report *r, const struct image_cause *c);
/* A test case for each cause; without any, one that passes. */
void images_junit(const struct images_report *r, struct junit *j);
/* The results for machines: 0 or -errno, as save_file(). */
int images_json(const struct images_report *r, const char *path);

#endif
