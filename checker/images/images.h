/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGES_H
#define TM_CHECKER_IMAGES_IMAGES_H
/*
 * The crash images of a log: each different one is made once, judged, and what is wrong is grouped
 * by its cause.
 *
 * An image has a number, by the order in which the replay first comes to it: the same log, model
 * and bound give the same numbers, however many processes judge them.
 *
 * The cause of a bad image is what was lost: which stores and landings, by their places in the
 * program, had not reached the media; and the event before which the power failed where nothing was
 * lost; what then goes wrong in the same way elsewhere, and is told so by the checker, is one
 * cause. An image without a known cause is judged again: if it is not bad in the same way then, the
 * checker is not deterministic, and it counts for nothing. Of a bad image without a known cause,
 * lines that were lost are given back one by one as long as it stays bad in the same way. A bad
 * image that has lost all of what a known cause says, and more, counts as one of that cause.
 */
#include <stdio.h>
#include "checker/campaign/driver.h"
#include "checker/images/image_doubt.h"
#include "checker/seat/image_judge.h"
#include "checker/logs/pm_sections.h"

#define IMAGE_CAUSES 200 /* that are told apart */
#define IMAGE_PARTS  32	 /* of a cause */

struct images_options {
	struct hardware hw; /* this, and `kill`: as of pm_replay */
	bool kill;
	unsigned most; /* images of a cut */
	unsigned jobs;
	const struct driver_bounds *bounds; /* NULL: none */
	bool part; /* these bounds are of a part of the images: they are judged, and no causes are
		    * looked for */
	/* Which cuts are checked, and how: at none with NO_CHECK, with everything in flight left
	 * with DO_CHECK, else all images of each. NULL: all images of all cuts. */
	const uint8_t *sections; /* pm_sections() */
	struct image_checker checker;
	void (*progress)(void *arg, const struct driver_progress *at);
	void *progress_arg;
};

/* A part of what was lost. */
struct image_part {
	uint32_t event; /* the first that was lost, of those with this place in the program */
	uint32_t lost;	/* how many lines of it */
};

struct image_cause {
	struct image_part part[IMAGE_PARTS];
	unsigned parts;
	size_t at; /* the power failed before this event; for images that have lost nothing */
	struct image_verdict verdict;
	uint64_t images; /* how many show it */
	/* The smallest image, which may be smaller than the first: of the lines in flight there,
	 * ... */
	struct image_line {
		uint64_t line;
		unsigned file;
		uint32_t left, versions; /* left: as of pm_replay_content() */
		uint32_t event;		 /* the first that was lost, or is not whole */
	} * line;
	unsigned lines; /* ... those with something lost */
	unsigned dirty; /* all that were in flight */
	unsigned long acked;
	uint32_t mark;
	uint32_t late; /* with this event, less one, and others before it that may have come earlier
			* than they stand, these images are good; 0: there are none */
	enum image_doubt doubt;
	bool unsteady;	       /* this image was judged again, and not in the same way */
	char said[IMAGE_SAID]; /* what the checker printed of it first */
	size_t last;	       /* `at` of the latest image that was counted by what went wrong */
	uint64_t places;       /* of a cause that has lost nothing: where the power failed else */
};

struct images_result {
	uint64_t cuts,
		bounded;  /* places where the power fails; ... with more images than are tried */
	uint64_t skipped; /* such places where no section is checked */
	uint64_t images;  /* different ones; -EINTR before they were counted: so many of them */
	uint64_t judged;  /* of them */
	bool rough;	  /* causes were not made smaller by giving lines back: -EINTR came first */
	uint64_t bad;
	struct image_cause *cause; /* the one with the smallest image number first */
	unsigned causes;
	uint64_t untold; /* bad images beyond IMAGE_CAUSES */
	uint64_t
		unsteady; /* images that were bad, and not in the same way when judged again, ... */
	struct image_cause first_unsteady; /* ... the first of them, as it was first */
	struct image_verdict then;	   /* ... and was then */
	double seconds;			   /* of the judging */
	struct image_way way;
	enum image_doubt doubt; /* nobody can tell: there is no cause without a doubt, ... */
};

/* 0, or -errno with a sentence in *why. -EINTR: it was left off (the bounds), and *result is what
 * had been found. */
int images_search(const struct pm_log *log, const struct images_options *o,
		  struct images_result *result, char *why, size_t n);
/* This process ends now, in the midst of images_search() or images_one(): the processes end, and
 * the folder of the images is removed. A signal's handler may do this. */
void images_drop(void);
void images_result_free(struct images_result *result);

/*
 * An image in words: "EVENT:FILE+OFFSET=LEFT,...". The power fails before this event, from 0; this
 * is left of each of these lines (pm_replay_content()), and of all others all.
 */
void image_spec_print(FILE *out, const struct image_cause *c);
/* Make such an image, judge it, and leave its files in the new folder `folder`, if that is not
 * NULL. -EINVAL: the log has no such image, and *why says what was expected. */
int images_one(const struct pm_log *log, const struct images_options *o, const char *spec,
	       const char *folder, struct image_cause *out, char *why, size_t n);

#endif
