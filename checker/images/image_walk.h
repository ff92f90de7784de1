/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_WALK_H
#define TM_CHECKER_IMAGES_IMAGE_WALK_H
/*
 * A walk through the images of a log, in the order of their numbers.
 *
 * It goes through the log several times: first come the images of each cut that are likely to tell
 * most, then some more of each, then all others. So however early it ends, it has been everywhere.
 */
#include "checker/images/image_choice.h"
#include "checker/images/images.h"
#include "checker/logs/pm_order.h"

struct image_walk {
	const struct pm_log *log;
	const struct images_options *o;
	struct pm_replay replay;
	struct image_choice choice;
	struct image_files files;
	struct visited *visited;
	uint64_t *whole_hash; /* by dirty line: pm_replay_hash() of all that is in flight on it */
	unsigned whole_room;
	const uint8_t *sections; /* NULL: none are asked for */
	struct pm_order order;
	bool with_files, in_cut;
	unsigned pass;		/* of pass_most */
	uint64_t cuts, bounded; /* of one pass */
	uint64_t skipped;	/* cuts that are in no section which is checked */
	uint64_t number;	/* of the image that stands there */
	uint64_t next;		/* of the next new one */
	int error;
};

/* With files in a new folder `name` below `folder`, unless that is NULL. 0 or -errno; close it in
 * any case. */
int image_walk_open(struct image_walk *w, const struct pm_log *log, const struct images_options *o,
		    const char *folder, const char *name);
void image_walk_close(struct image_walk *w);
/* The next image that none before was equal to: w->choice.left. False: there is none, or w->error.
 */
bool image_walk_next(struct image_walk *w);
/* An image of those that are left at this place waits; or is judged. 0 or -errno. */
int image_walk_wait(struct image_walk *w, const unsigned *left);
int image_walk_judge(struct image_walk *w, struct image_judge *judge, const unsigned *left,
		     struct image_verdict *verdict);
/* Where the order of stores matters, and is not known: for image_walk_late(). 0 or -errno. */
int image_walk_order(struct image_walk *w);
/* Of a bad image: is it good if stores have come before that stand later? *late is the last of
 * them, and one more; 0: it is bad in any order. `judge` NULL: any order might be good. */
int image_walk_late(struct image_walk *w, struct image_judge *judge, const unsigned *left,
		    uint32_t *late);

/* Seconds that are left of those that it may take; 0: they are not counted. */
double images_time_left(const struct images_options *o);
/* They are over, or somebody has interrupted it. */
bool images_left_off(const struct images_options *o);

#endif
