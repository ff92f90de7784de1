/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_DPOR_H
#define TM_CHECKER_MODELS_DPOR_H
/*
 * Dynamic partial order reduction: all runs of a small program, but for those that only reorder
 * independent events. dpor.c opens with how.
 */
#include "core/rt/sim.h"

#define DPOR_PROCS  128 /* processes of a program */
#define DPOR_EVENTS 512 /* of a run */

struct dpor_state;
struct dpor_event;

/* What an event of a run did. A read and a write have a place in memory, the others have none. */
enum dpor_touch_kind {
	DPOR_READ,
	DPOR_WRITE,
	DPOR_GROW,   /* a power failure can leave more from now on */
	DPOR_SHRINK, /* it can leave less */
	DPOR_LEARN,  /* a register changes that is asked about together with what can be left */
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
	struct scheduler scheduler; /* for sim_set_scheduler(), when the program itself begins */
	struct source source;	    /* for sim_reset(), or when the scheduler is set */
	bool whole;		    /* no reduction: for tests */
	uint64_t max_runs;
	/* The simulation touched something. The callee says with dpor_touch() what it was. */
	void (*touched)(void *arg, enum touch what, uint64_t where, uint64_t len);
	/* Before the first event, and after each new one that had a DPOR_GROW, SHRINK or LEARN. */
	void (*after)(void *arg);
	/* An event of this process begins. May be NULL. */
	void (*begins)(void *arg, uint64_t process);
	void *arg;

	/* results */
	uint64_t runs;	  /* without the redundant ones */
	uint64_t tried;	  /* with them */
	bool complete;	  /* everything was tried */
	bool redundant;	  /* the run that has just ended only reorders an earlier one */
	bool failed;	  /* out of memory */
	unsigned longest; /* events of a run */

	/* private */
	bool in_event, first_seen;
	unsigned depth;	 /* events so far */
	unsigned replay; /* the first so many are those of the run before, the last of them new */
	uint64_t process[DPOR_PROCS]; /* as the scheduler names them: its chains */
	unsigned procs;
	struct dpor_state *state;
	struct dpor_event *event;
	struct dpor_touch *touch; /* of all events of the run */
	unsigned touches, touch_room;
	struct dpor_touch *sleep_touch; /* of the processes that sleep */
	unsigned sleep_touches, sleep_touch_room;
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
	struct dpor_state *saved;
	unsigned saved_depth;
	bool rerun;
};

/* The caller has set sim, whole, max_runs, touched, after, begins and arg; all else is zero. 0 or
 * -ENOMEM; to be closed in any case. */
int dpor_open(struct dpor *o);
void dpor_close(struct dpor *o);
/*
 * Run the program as often as it takes. `run` does one run, from its beginning to its end, under
 * o->scheduler. Then, before it changes anything, it calls dpor_end_event() for the last event;
 * after that, o->redundant says whether the run is one of those that need not be looked at.
 */
void dpor_search(struct dpor *o, void (*run)(void *arg));
void dpor_end_event(struct dpor *o);
/* Remember this run so far, in place of the one remembered before. */
void dpor_save(struct dpor *o);
/* After dpor_search(): repeat the run that dpor_save() remembered, as far as it had come. */
void dpor_rerun(struct dpor *o, void (*run)(void *arg));
/* What there is to read in a run: its events, and each switch to another process. */
unsigned dpor_length(const struct dpor *o);
/* The event that is on did this: for `touched`, and for what the simulation does not see. */
void dpor_touch(struct dpor *o, enum dpor_touch_kind kind, uint64_t where, uint64_t len);

#endif
