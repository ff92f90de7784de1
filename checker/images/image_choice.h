/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_CHOICE_H
#define TM_CHECKER_IMAGES_IMAGE_CHOICE_H
/*
 * The images of one cut, those that are likely to tell something first: all that is in flight is
 * left; nothing is; one line is cut (line_torn), as many as half of what is tried; one line is
 * missing; one line alone is there; what one place of the program stored is missing; the moments
 * since the last cut. Then all others, if there are not too many, or a sample. The same image may
 * come more than once.
 *
 * An image is a number for each dirty line: what is left of it (pm_replay_content()).
 */
#include "checker/logs/pm_replay.h"
#include "core/pmem/crash.h"

/* With more versions a line is only cut at random: there are too many pairs of them. */
#define CUT_VERSIONS 32

struct image_choice {
	const struct pm_replay *replay;
	unsigned most;	 /* images of a cut */
	unsigned limit;	 /* so many of them come now: set by the user */
	unsigned *left;	 /* by dirty line: the image */
	unsigned *whole; /* by dirty line: its versions */
	unsigned *count; /* by dirty line: the latest cut that was made of it; the image, of all */
	unsigned room, lines; /* room: of the three together */
	unsigned phase, i, j;
	unsigned given; /* images until now */
	bool all;	/* there are at most `most` */
	bool bounded;	/* some were left out */
	bool one;	/* only the image with everything in flight: set by the user after begin */
	uint64_t random;
	struct pmem_content history[CUT_VERSIONS + 1]; /* of a line that is cut: its versions */
	uint32_t *source; /* of the phase by source: those of the versions, each once */
	unsigned sources, source_room;
};

/* `most`: images that are tried of a cut. */
void image_choice_init(struct image_choice *c, const struct pm_replay *replay, unsigned most);
void image_choice_free(struct image_choice *c);
/* The replay stands at a cut. 0 or -ENOMEM. */
int image_choice_begin(struct image_choice *c);
/* The next image: c->left. False: that was all. */
bool image_choice_next(struct image_choice *c);

#endif
