/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_SYSTEMATIC_H
#define TM_FAULTINJECT_SYSTEMATIC_H
/*
 * The source of a systematic search: one run under a few given deviations, and what
 * the search needs to know of it. systematic.c opens with how.
 */
#include "faultinject/deviation.h"

#define SYSTEMATIC_BOUND 4			/* preemptions and faults of one run at most */
#define SYSTEMATIC_DEPTH (SYSTEMATIC_BOUND + 8) /* with lines of servers that have lost power */

/* What was touched, as a set. */
#define FOOTPRINT_ROOM 4096
struct footprint {
	struct {
		uint64_t what; /* a line of PM, or eight bytes of DRAM */
		uint32_t age;  /* == the footprint's: in the set */
		bool write;
	} slot[FOOTPRINT_ROOM];
	uint32_t age, used;
	bool power;    /* the power could fail */
	bool pm_write; /* images got more */
	bool commit;   /* images got fewer */
};
void footprint_clear(struct footprint *f);

/* An access, in the order of the run. */
#define TOUCH_POWER (TOUCH_LEAVES + 1) /* beside enum touch: the power could fail here */
struct log_touch {
	const struct actor *who; /* a task; NULL: a NIC. Only to be compared */
	uint8_t what;		 /* enum touch, or TOUCH_POWER */
	uint8_t server;		 /* whose task it is; SIM_SERVERS: no server's */
	uint64_t where, len;
};

/* A point at which the run could have gone differently. */
struct log_point {
	struct deviation d; /* its answer is 0 */
	const struct actor *who;
	uint64_t chain;	  /* points of one chain follow each other, as steps of a task do */
	int before;	  /* the chain's point before this one, -1: none */
	uint32_t touches; /* of the log, that came before it */
	uint64_t now;	  /* ns */
	bool delayed;	  /* something was delayed and could have been let go here */
	/* Servers, as bits, for which this is the last step before something that others learn of
	 * them, or that their images lose; and for which it may matter whether they are cut off. */
	uint8_t power, cut;
};

struct run_log {
	struct log_point *point;
	struct log_touch *touch;
	unsigned points, point_room, touches, touch_room;
	bool lines_only; /* nothing else is wanted: points of CHOICE_LINE */
};
void run_log_free(struct run_log *log);

#define NOT_LOGGED UINT32_MAX

struct systematic_source {
	struct source source;
	const struct deviations *list; /* to be taken, in this order */
	uint64_t key[SYSTEMATIC_DEPTH];
	struct deviations taken;
	/* What was touched during the list's i-th delay until quiescence (faults and orders
	 * delay nothing and do not count); NULL: not wanted. */
	struct footprint *window[SYSTEMATIC_BOUND];
	struct run_log *log; /* what came after the last deviation; NULL: not wanted */
	uint32_t logged;     /* points of the log; NOT_LOGGED: it has not begun */
	bool failed;	     /* out of memory */
};
/* Begin a run. The list has at most SYSTEMATIC_DEPTH entries; taken keeps its memory from run to
 * run. */
void systematic_start(struct systematic_source *s, const struct deviations *list);
/* After that: the run goes on from where so many of them have been taken. What was touched until
 * then is in the windows already. */
void systematic_go_on(struct systematic_source *s, unsigned taken);

/* Does it matter whether touch `t` of a log of what is delayed comes before or after all of f? */
bool footprint_depends(const struct footprint *f, const struct log_touch *t);
void footprint_add(struct footprint *f, const struct log_touch *t);

#endif
