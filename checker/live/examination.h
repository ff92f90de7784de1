/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_EXAMINATION_H
#define TM_CHECKER_LIVE_EXAMINATION_H
/* What examine.c and examine_words.c share: the state of one examination. */
#include "checker/live/examine.h"
#include "checker/live/reboot.h"

/* One subset of the lines in flight, and what its keys read after recovery. */
struct image {
	struct exam_subset subset;
	struct key_state *shown; /* by index of the key */
	struct rebooted rebooted;
};

struct examination {
	const struct cut *cut;
	struct exam *out;
	uint32_t first;
	const struct recording_op **op;	 /* up to the boot that was cut: by key, boot, time */
	const struct recording_op **put; /* PUTs by id */
	size_t ops, puts;
	uint32_t *key;
	unsigned *from; /* index of the key's first operation in `op`; one more at the end */
	unsigned keys;
	struct image *image; /* [0]: what happened */
	unsigned images;
	struct image *reading; /* the image that is being read */
	uint8_t *pool;
	struct recorded_history *history; /* of the key that is being judged */
};

/* --- findings in words (examine_words.c) --- */

/* Count the key in `b`, and describe it if it is the first. `shown`: what it reads in the image. */
void exam_note_break(struct exam_break *b, const struct examination *w, unsigned key,
		     const struct verdict *v, const struct image *image,
		     const struct key_state *shown);
/* Describe an operation that failed for no reason. */
void exam_note_error(struct exam_break *b, const struct examination *w,
		     const struct recording_op *op);
/* Count a key that cannot be judged (w->history->trouble says why), and describe the first. */
void exam_note_not_judged(struct examination *w, unsigned key);

#endif
