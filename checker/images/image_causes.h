/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_CAUSES_H
#define TM_CHECKER_IMAGES_IMAGE_CAUSES_H
/* What was lost where images are bad, and what of that must not be: see images.h. */
#include "checker/images/image_walk.h"

/* What this image has lost: c->part, c->at. */
void image_cause_parts(const struct image_walk *w, const unsigned *left, struct image_cause *c);
/* Keep the image itself: c->line and what is beside it. 0 or -ENOMEM. */
int image_cause_keep(const struct image_walk *w, const unsigned *left, struct image_cause *c);
/* The causes of all images that are bad by these verdicts, in result->cause, which has room for
 * them. 0, or -errno with a sentence in *why. */
int image_causes_find(const struct pm_log *log, const struct images_options *o, const char *folder,
		      uint64_t images, const struct image_verdict *verdict,
		      struct images_result *result, char *why, size_t n);

#endif
