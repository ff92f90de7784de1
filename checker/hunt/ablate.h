/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_ABLATE_H
#define TM_CHECKER_HUNT_ABLATE_H
/*
 * What each flush, fence, wait and comparison of a store is good for: it is taken away, one place
 * at a time, and the campaign shows what breaks without it, or that nothing does. ablate.c opens
 * with how.
 */
#include "checker/campaign/campaign.h"
#include "checker/hunt/ablate_list.h"

#define ABLATE_LANES 16 /* kinds of hardware at most */
#define ABLATE_FILE  256

struct ablate_options {
	uint64_t seed, runs, states; /* of each workload, as of a campaign; other hardware gets a
				      * share of it */
	bool only_base;		     /* look at no other hardware */
	const char *place;	     /* only places with this in their names; NULL: all */
	const char *out;	     /* where traces go; NULL: none are written */
	struct driver_how how;
};
extern const struct ablate_options ablate_default;

/* What became of a store without one place. */
struct ablate_result {
	bool reached; /* by any workload, under any hardware that was looked at */
	bool broken;
	unsigned lane;	   /* where it broke first: 0 is the hardware that was asked for */
	uint32_t lanes;	   /* bits: broken under these; lane 0 alone, if it is there */
	unsigned contract; /* of the first failure; TM_CONTRACTS: an operation fails */
	unsigned workload;
	unsigned operations, deviations; /* of its smallest trace */
	char text[300];
	char trace[ABLATE_FILE]; /* "": none was written */
	uint64_t runs, states;	 /* of the whole search */
	int error;
	char why[WORLDS_WHY];
};

struct ablated {
	struct place place;
	bool done; /* all that is to be known of it */
	struct ablate_result result;
	struct ablate_result rare;    /* of the campaign that the list names, if it names one */
	const struct ablate_row *row; /* what the store's list says of it; NULL: nothing */
	bool surprise; /* the list says otherwise, or nothing of what breaks nothing */
};

/* A campaign of one process, without anything or without one place. */
struct ablation {
	struct ablate_options options;
	const struct campaign_config *base;
	struct workload *workload; /* the caller's */
	unsigned workloads;
	/* results */
	struct campaign_config lane[ABLATE_LANES];
	unsigned lanes;
	struct ablated *place;
	unsigned places;
	struct ablate_clean *clean; /* by lane and workload */
	struct ablate_list list;
	unsigned vanished;    /* rows of the list for which there is no place */
	unsigned surprises;   /* places, and such rows */
	unsigned undone;      /* places that are not among them, as it was stopped early */
	char why[WORLDS_WHY]; /* after an error, or "" */
};

/*
 * Take away each place of the base's store. 0 or -errno: -EIO (the store cannot run a workload,
 * a->why says so), -ENOENT (no debug information), -EILSEQ (a mistake in the list), or as
 * driver_run(); -EINTR: stopped early, with only the places that are done. ablate_free() in any
 * case.
 */
int ablate_run(struct ablation *a);
void ablate_free(struct ablation *a);
/* Does the workload reach the place, under this kind of hardware? */
bool ablate_reaches(const struct ablation *a, unsigned lane, unsigned workload, unsigned place);
/* The place that a row of the list is about; NULL: there is none. */
const struct ablated *ablate_list_place(const struct ablation *a, const struct ablate_row *row);

#endif
