/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_EXPLORE_H
#define TM_CHECKER_EXPLORE_EXPLORE_H
/*
 * Crash exploration: one run of a workload, and at each point where the power can
 * fail, every image that can be left (or as many as the bounds allow), recovery,
 * reading back, judging. explore.c opens with how.
 */
#include "checker/judge/contracts.h"
#include "checker/world/own_judge.h"
#include "checker/explore/cuts.h"
#include "checker/explore/outcomes.h"
#include "checker/explore/phase.h"
#include "checker/recall/shared.h"
#include "checker/explore/failure_modes.h"
#include "checker/explore/frequency.h"
#include "checker/explore/prefix.h"
#include "checker/explore/strange.h"
#include "checker/world/world.h"
#include "core/rt/source.h"

struct explore_limits {
	unsigned images_per_point; /* beyond, images are sampled and the point counts as bounded */
	unsigned nested_every;	   /* recovery itself is cut in one of so many images, and where it
				    * takes other steps than before; 0: never */
	bool nested_half;	   /* and only while that makes no more than half of the states */
	unsigned life_every;	   /* the machine lives on in one of so many images; 0: never */
	unsigned life_percent;	   /* and only while that makes no more of the states; 0: always */
	uint64_t states;	   /* stop after so many */
	bool no_tree; /* every image is run, even if its outcome is known, and every run from its
		       * beginning */
	size_t tree_bytes; /* the most that known outcomes may take */
	bool share_tree;   /* what is known is kept for the next explorer (recall/shared.h) */
	bool fill;	   /* it is tried first whether the store has the room that it needs */
	enum tree_mutant tree_mutant;
	enum checkpoint_mutant checkpoint_mutant;
	bool no_crash; /* the power never fails: what breaks while it holds is found sooner */
	bool eager; /* tests: decide every line in flight before recovery, not at its first touch */
	bool anywhere; /* tests: the power fails at each step, not only where it matters */
};
extern const struct explore_limits explore_default;

struct explore_counts {
	uint64_t runs, events; /* simulated runs of the workload; events in all worlds */
	uint64_t points;       /* where the power could fail */
	uint64_t points_seen;  /* of these: equal to an earlier one, and skipped */
	uint64_t states;       /* crash images recovered, read back and judged */
	uint64_t nested_points, nested_states; /* of these: the power failed again in recovery */
	uint64_t lives,
		life_states;	 /* images that lived on; these, and what the power left of them */
	uint64_t points_bounded; /* not all images were tried */
	uint64_t unsure;	 /* histories that a search gave up on */
	uint64_t spared;	 /* systematic search: delays that only reorder independent steps */
	uint64_t starts; /* that failed: load phases, fillings, what comes before the workload */
};

/* Add each count. */
void explore_counts_add(struct explore_counts *to, const struct explore_counts *from);
/* Number of places of which explorer.broken[contract] counts those that broke it: the runs and the
 * crash states in which it is judged, and the failed starts. `parts`: which of these there are, as
 * bits 1, 2 and 4. */
uint64_t explore_judged(const struct explore_counts *counts, unsigned servers, unsigned contract,
			unsigned *parts);

/* A broken contract and how to get there. */
struct failure {
	bool found;
	uint64_t run;		      /* number of the run, from 0 */
	struct deviations deviations; /* in order: of the run, the power failure, lines, ... */
	char text[300];
};

#define EXPLORE_RECOVERIES 4096 /* kinds of recoveries that are told apart */

struct explorer {
	struct setup *setup;
	struct worlds worlds;
	struct explore_limits limits;
	struct explore_counts counts;
	uint64_t first;	      /* number of the first run, where others were left out */
	char why[WORLDS_WHY]; /* worlds.unloaded or .unfilled: what the store could not do */
	/* Found: what came of an image is not what the tree of recoveries says, or a run that went
	 * on from a checkpoint is not what it is from its beginning; the run that is on was given
	 * up. */
	struct failure wrong;
	struct failure failure[TM_CONTRACTS];	  /* the first of each */
	struct failure_modes modes[TM_CONTRACTS]; /* the first of each mode */
	uint64_t broken[TM_CONTRACTS];		  /* as explore_judged() */
	struct strange strange[TM_CONTRACTS];	  /* of these, without a known cause */
	struct frequency frequency;		  /* and those with one, by cause */
	/* Plans of how machines live, [machine]; NULL: as the limits say. */
	const struct life_plan *plan;
	/* When there have been so many states the rest of a run has no power failures; 0: no such
	 * bound. */
	uint64_t run_states;
	bool few_images;  /* of each point of this run: it has not many states left */
	unsigned stop_at; /* TM_BIT()s: a run ends when one of these is found broken */
	/* Called with each image once it is judged, with its history and its result; where it was
	 * known what comes of it, its machine has not run. May be NULL. */
	void (*image_done)(void *arg, const struct explorer *ex, unsigned machine);
	void *image_done_arg;
	struct explore_phases *phases;	/* the caller's, where time is measured; or NULL */
	struct cuts *cuts;		/* likewise, where it is noted what was cut */
	struct deviations path[WORLDS]; /* the power failure and the lines of each world above 0 */
	uint64_t point;			/* where the first power failure is: images and history */
	/* private */
	struct judge *judge;	    /* one per world */
	struct own_judge *own;	    /* NULL: the store has nothing to say */
	struct image_source *image; /* likewise: the search of the images it boots from */
	struct recall recall;
	uint64_t recall_key;	     /* shared_key(); 0: it is not shared */
	uint64_t images;	     /* number of the point whose images are at hand */
	struct tree_leaf *leaf;	     /* of the image at hand, if it was only read */
	struct explorer_led {	     /* by machine: */
		bool on;	     /* it is led along a known course */
		bool stops;	     /* it has to stop there */
		bool drew;	     /* at the last place it was drawn whether the power fails */
		uint64_t places;     /* where its power could have failed until now */
		uint64_t stop_after; /* a run stops there; 0: nowhere */
	} led[WORLDS];
	struct visited *visited;
	int32_t lower_bound[HISTORY_KEYS]; /* KEEP: as contracts_judge() */
	const struct deviations *taken;	   /* by the run that is on */
	uint64_t recovery_seen[EXPLORE_RECOVERIES / 64];
	/* Runs that begin like the plain one go on from a mark of it. */
	struct prefix *prefix; /* NULL: each run is made from its beginning */
	struct {
		bool done, no_crash; /* it is recorded; where the power does not fail */
		uint32_t emptied;    /* explore_emptied() then */
		uint64_t at;	     /* it is, again, when there were so many runs */
	} record;
	uint64_t resumed;    /* runs that went on from a mark */
	uint64_t repeated;   /* runs that were made before, and so were not made: world 0 and its
			      * history are still those of an earlier one */
	bool run_whole;	     /* the run that is on, or was last, looked at all of its points */
	bool run_clean;	     /* and the one that was last broke nothing but images */
	uint64_t run_points; /* of the run that is on, of machine 0, until now */
	uint64_t run_events; /* of the run that was last made */
	/* Marks of the run that is on, if it is marked, and how far it is. */
	struct marks *marks;
	bool mark_once;		   /* the first moment is enough */
	const uint32_t *position;  /* NO_POSITION: it is not to be marked now */
	struct outcomes *outcomes; /* NULL: not collected */
	/* The load phase has failed, or the server or a client does not start: in each run alike,
	 * for until then no source is asked. So there are no more runs. */
	bool unstarted;
	bool living; /* the power failure at hand is within a life, or after one */
	bool stopped;
};

/* 0 or -errno; nothing is open then. `setup` stays the caller's. If the store does not get through
 * the load phase (ex->worlds.unloaded), or has not the room that it needs, the first run breaks OK;
 * in the former case there are no others. */
int explore_open(struct explorer *ex, struct setup *setup, const struct explore_limits *limits);
void explore_close(struct explorer *ex);
/* Forget what was seen and found; keep the worlds. */
void explore_restart(struct explorer *ex);
/* Tests: from now on collect ex->outcomes, anew. 0 or -ENOMEM. */
int explore_collect_outcomes(struct explorer *ex, bool by_point);
/* One run under a source whose deviations are collected in `taken`, with all its power failures.
 * 0; -ENOTRECOVERABLE: see ex->wrong. Then nothing that was found is worth anything, and the
 * program ends. */
int explore_run(struct explorer *ex, struct source *source, const struct deviations *taken)
	__attribute__((warn_unused_result));
/* The same from a mark of an earlier run on, which was the same until then; NULL: from the
 * beginning. While ex->marks is set, the run is marked itself. */
int explore_run_from(struct explorer *ex, struct mark *from, struct source *source,
		     const struct deviations *taken) __attribute__((warn_unused_result));
/* How often the set of points that were met was emptied. Marks made before that are of no use. */
uint32_t explore_emptied(const struct explorer *ex);
/* KEEP's durable lower bound before anything was done: what the load phase put. */
void explore_lower_bound(struct explorer *ex);
/* Would the budget allow another run? */
bool explore_more(const struct explorer *ex);

#endif
