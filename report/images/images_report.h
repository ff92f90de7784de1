/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_IMAGES_REPORT_H
#define TM_REPORT_IMAGES_REPORT_H
/* What came of the crash images of a log, as text and as a tree. */
#include "checker/images/images.h"
#include "report/tree.h"

struct images_report {
	const struct pm_log *log;
	const char *name; /* of the log */
	const struct images_options *options;
	const struct images_result *result;
	const struct image_cause *one; /* --image: what became of it; there is no result */
	const char *left_off;	       /* "at SIGINT": the result is not of all images; or NULL */
	/* What clients announced, and what their answers alone contradict. */
	const struct announcements *said;
	const struct announced_fault *fault;
	unsigned faults;
	unsigned contracts; /* TM_BIT()s of those that judge */
	char *const *words; /* the command, for replaying; NULL after them */
	struct conclusion conclusion;
};

/* Of a log that has no end. */
const char *images_why_no_end(const struct pm_log *log);
/* Of a file that in the end was not as recorded in so many bytes: what that means. */
void images_print_unseen(FILE *out, uint64_t bytes);
/* That the order of some stores is not known, and how it would be. `told`: a program told of each
 * of its own. */
void images_print_unordered(FILE *out, bool told);
/* "could not tell: ...", without a newline, and what can. */
void images_print_doubt(FILE *out, const struct images_report *r, enum image_doubt doubt);
/* Stores of several words that were noticed: which of these came first is not known. */
uint64_t images_unordered(const struct pm_log *log, bool *told);
/* "the store of 8 bytes at /tmp/pool+0x40" */
void images_print_event(FILE *out, const struct pm_log *log, uint32_t event);
/* What the result comes to, if it is of all images. */
void images_conclude(const struct images_report *r, struct conclusion *c);
void images_print(FILE *out, const struct images_report *r);
/* One image, and what became of it. */
void images_print_one(FILE *out, const struct images_report *r, const struct image_cause *c);
/* For outputs_write(): with a case for each cause; without any, one that passes. NULL: no memory,
 * or a name that is not UTF-8. */
json_t *images_tree(const struct images_report *r);

/* What was printed, which is freed: a string, or one for each line. */
json_t *json_of(char *text);
json_t *json_lines(char *text);
#define JSON_PRINTED(out, ...) json_of(TEXT_PRINTED(out, __VA_ARGS__))
/* What the program has or does that was not seen. */
json_t *images_not_seen(const struct pm_log *log);

/* --- what the text and the page share --- */

/* "domain=dmp ddio=on", and what else is not at its default. */
void images_print_hardware(const struct images_options *o, char *buf, size_t n);
/* "2 stores, 1 fence" */
void images_print_counts(FILE *out, const struct pm_log *log);
/* "the power failed before the fence by main (a.c:5), event 4; of 2 lines in flight 1 is not whole"
 */
void images_print_moment(FILE *out, const struct images_report *r, const struct image_cause *c);
/* The command, without what it writes and in how many processes; `spec`: with --image SPEC; or
 * NULL. */
void images_print_command(FILE *out, const struct images_report *r, const char *spec);
/* The same for this image. */
void images_print_again(FILE *out, const struct images_report *r, const struct image_cause *c);
/* Before a verdict: "in doubt: ", or nothing. */
const char *images_doubt_words(const struct image_cause *c);
/* What else is to be said of all images, a line each. */
void images_print_remarks(FILE *out, const struct images_report *r);

#endif
