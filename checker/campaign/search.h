/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAMPAIGN_SEARCH_H
#define TM_CHECKER_CAMPAIGN_SEARCH_H
/*
 * Systematic search: every run of a workload with at most so many preemptions and
 * faults, but for those that only reorder independent steps. search.c opens with how.
 */
#include "checker/explore/explore.h"
#include "faultinject/systematic.h"

struct search_limits {
	unsigned preemptions, faults; /* together at most SYSTEMATIC_BOUND */
	uint64_t runs;		      /* stop after so many */
	bool whole;		      /* tests: no reduction */
	unsigned places;	      /* where one of several servers fails: */
#define PLACE_SHRINKS 1u	      /* before its images get fewer */
#define PLACE_LEAVES  2u	      /* before a packet leaves it */
#define PLACE_CONFIG  4u	      /* before it changes the configuration */
#define PLACE_ASKS    8u	      /* before it asks for it: it may be cut off */
#define PLACE_END     16u	      /* at the last step */
#define PLACES_ALL    31u
#define PLACE_ANY     32u /* tests: at each step */
	/* Does the order matter? Tests put other answers in its place. */
	bool (*depends)(const struct footprint *others, const struct log_touch *touch);
};
extern const struct search_limits search_default;

/* The run of a list, whose further deviations are tried. */
struct search_level {
	struct run_log log;
	struct footprint others; /* touched by others during the delay that is tried now */
	/* Marks of the level's run, after its last deviation; positions are points of the log. */
	struct marks marks;
	struct mark *from; /* where that run itself went on; NULL: it was made whole */
	unsigned taken;	   /* deviations before `from` */
	uint32_t emptied;  /* explore_emptied() when the marks were made */
};

struct search {
	struct explorer *ex;
	struct search_limits limits;
	bool complete;				 /* everything within the bounds was tried */
	struct deviations failing[TM_CONTRACTS]; /* the first run that broke it */
	/* private */
	struct systematic_source source;
	struct deviations list; /* of the run that is on */
	unsigned delays;	/* of these, so many are delays until quiescence */
	struct search_level level[SYSTEMATIC_DEPTH + 1]; /* by the length of the list */
	bool seen[TM_CONTRACTS], failed;
	int error; /* explore_run_from() */
};

/* Search. The explorer is open, and new or restarted. 0, -ENOMEM, or explore_run(); to be closed in
 * any case. */
int search_run(struct search *s, struct explorer *ex, const struct search_limits *limits);
void search_close(struct search *s);

#endif
