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
	const char *from;	       /* what the power fails from on; NULL: the start */
	const char *left_off;	       /* "at SIGINT": the result is not of all images; or NULL */
	/* What clients announced, and what their answers alone contradict. */
	const struct announcements *said;
	const struct announced_fault *fault;
	unsigned faults;
	unsigned contracts; /* TM_BIT()s of those that judge */
	char *const *words; /* the command, for replaying; NULL after them */
	struct conclusion conclusion;
};

/* Of a file that in the end was not as recorded in so many bytes: what that means. */
void images_print_unseen(FILE *out, uint64_t bytes);
/* That the order of some stores is not known, and how it would be. `told`: a program told of each
 * of its own. */
void images_print_unordered(FILE *out, bool told);
/* "the store of 8 bytes at /tmp/pool+0x40" */
void images_print_event(FILE *out, const struct pm_log *log, uint32_t event);
/* What the result comes to, if it is of all images. */
void images_conclude(const struct images_report *r, struct conclusion *c);
/* For text_print(), "images" or, of one image, "images_one", and, with the scenes, for
 * outputs_write(): with a case for each cause; without any, one that passes. NULL: no memory. */
json_t *images_tree(const struct images_report *r);
/* Add what a page shows of each cause besides (images_shown.c); without how fast it was. */
void images_add_scenes(const struct images_report *r, json_t *tree);

#endif
