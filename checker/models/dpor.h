/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_DPOR_H
#define TM_CHECKER_MODELS_DPOR_H
/*
 * All runs of a small program that differ in an order that matters. orders.c opens with how.
 */
#include "core/rt/sim.h"

#define DPOR_PROCS  128 /* chains of a program */
#define DPOR_EVENTS 512 /* of a run */

struct dpor_state;
struct dpor_event;

/* What an event of a run did; memory is told by its place, the others have none. */
enum dpor_touch_kind {
	DPOR_READ,
	DPOR_WRITE,
	DPOR_GROW,   /* more can be left by a power failure from now on */
	DPOR_SHRINK, /* less */
	DPOR_LEARN,  /* a thread learns something that is asked about together with what is left */
	DPOR_KINDS
};
struct dpor_touch {
	uint64_t where;
	uint32_t len; /* bytes */
	uint16_t event;
	uint8_t kind; /* enum dpor_touch_kind */
};

struct dpor {
	struct sim *sim;
	struct scheduler scheduler; /* for sim_set_scheduler(), once what comes before the program
				       has been done */
	struct source source;	    /* for sim_reset(), or when the scheduler is set */
	bool whole;		    /* leave out nothing: for tests */
	uint64_t max_runs;
	/* Something was touched. Says what it was with dpor_touch(). */
	void (*touched)(void *arg, enum touch what, uint64_t where, uint64_t len);
	/* After an event of new runs that grew, shrank or learnt; and before the first event. */
	void (*after)(void *arg);
	/* NULL, or: an event of this chain begins. */
	void (*begins)(void *arg, uint64_t chain);
	void *arg;

	/* results */
	uint64_t runs;	  /* to their end: those that turned out to be known are not counted */
	uint64_t tried;	  /* all */
	bool complete;	  /* everything was tried */
	bool known;	  /* the run that has just ended only reorders what was seen */
	bool failed;	  /* out of memory */
	unsigned longest; /* events of a run */

	/* private */
	bool in_event, first_seen;
	unsigned depth, replay; /* events so far; of which so many are those of the run before, the
				   last one anew */
	uint64_t chain[DPOR_PROCS];
	unsigned procs;
	struct dpor_state *state;
	struct dpor_event *event;
	struct dpor_touch *touch; /* of all events of the run */
	unsigned touches, touch_room;
	struct dpor_touch *slept; /* of what sleeps */
	unsigned slepts, slept_room;
	struct {
		uint64_t thing;
		int event;
	} * gift;
	unsigned gifts, gift_room;
	struct {
		uint8_t proc;
		int event;
	} * enabled;
	unsigned enableds, enabled_room;
	unsigned choices; /* asked in the current event */
	struct dpor_state *kept;
	unsigned kept_depth;
	bool again;
};

/* Zero but for sim, whole, max_runs, touched, after, arg. -ENOMEM. To be closed in any case. */
int dpor_open(struct dpor *o);
void dpor_close(struct dpor *o);
/* Run the program as often as it takes. `run` does one run, from the beginning to the end, under
 * o->scheduler, and then calls dpor_settle(), while all is as the last event left it. Then o->known
 * says whether the run was new. */
void dpor_search(struct dpor *o, void (*run)(void *arg));
void dpor_settle(struct dpor *o);
/* Keep what has happened so far in this run (in place of what was kept). */
void dpor_keep(struct dpor *o);
/* Run so far once more, behind dpor_search(). */
void dpor_again(struct dpor *o, void (*run)(void *arg));
/* What a person has to follow: events, and how often another chain goes on. */
unsigned dpor_length(const struct dpor *o);
/* For `touched`, and for what the simulation does not know. */
void dpor_touch(struct dpor *o, enum dpor_touch_kind kind, uint64_t where, uint64_t len);

#endif
