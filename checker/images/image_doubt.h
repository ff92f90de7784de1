/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_DOUBT_H
#define TM_CHECKER_IMAGES_IMAGE_DOUBT_H
/*
 * What was not seen (pm_log.unseen) may mean that images are no verdict:
 *
 *	flushes	Where caches are lost, what was durable, and when, is not known, and neither is in
 *		which order things were stored, as flushes are where stores are noticed. All images
 *		are in doubt.
 *	fences	There are only more images than there can be. A bad one is in doubt if it has lost
 *		what was flushed, which an unseen fence may have waited for.
 *	names	Which names and which lengths of files a power failure leaves is not judged; until
 *		the first of them has changed nothing is in doubt.
 *
 * So may what was noticed late:
 *
 *	order	An image is bad without a store that may have come before, and good with it
 *		(pm_order.h).
 *
 * And so may a checker that is not deterministic:
 *
 *	checker	It has said different things of one image.
 */
struct pm_log;
struct images_options;
struct images_result;
struct image_cause;

enum image_doubt {
	DOUBT_NONE,
	DOUBT_FLUSHES,
	DOUBT_FENCES,
	DOUBT_NAMES,
	DOUBT_ORDER,
	DOUBT_CHECKER
};

/* Why an image, or those of a cause, may not tell. */
enum image_doubt image_doubt(const struct pm_log *log, const struct images_options *o,
			     const struct image_cause *c);
/* Set the doubt of each cause, and that of all: a cause without a doubt leaves none. */
void images_doubt(const struct pm_log *log, const struct images_options *o,
		  struct images_result *result);

#endif
