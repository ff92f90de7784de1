/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_STOPS_H
#define TM_FAULTINJECT_STOPS_H
/*
 * Where tasks could be stopped in the plain run, and which of these steps a run stops at.
 *
 * A bug between two steps of a long piece of work (a cleaning, a repair) shows only if the
 * task stands still there for as long as others need for whole operations. Delays drawn at
 * random are seldom at that step, seldom that long, and then the others are often done before.
 * So the plain run is recorded, and a run in so many stops one task at one of the recorded
 * steps until the others have done all they can. Successive runs take steps that are
 * spread evenly over the whole work, however many runs there are.
 *
 * In other runs something dies at such a step, mostly the server's process.
 *
 * Most of these runs hold another client before that: at the beginning of one of its
 * operations, or in the middle of one. It goes on just when the task stops.
 */
#include "faultinject/sources.h"

enum stop_group {
	STOPS_SERVER,	    /* a task of the server stores, flushes, fences, posts or polls */
	STOPS_SERVER_LOADS, /* it loads */
	STOPS_CLIENT,	    /* a client's task does any of these */
	STOPS_BEGIN,	    /* a client's operation begins */
	STOP_GROUPS
};

struct stop_point {
	uint64_t key, who; /* of the choice point; of the actor's name */
	uint32_t a, b;
};

/* The steps of one run, in their order. */
struct stops {
	struct source source; /* records them */
	struct {
		struct stop_point *point;
		unsigned n, room;
	} group[STOP_GROUPS];
	bool failed; /* out of memory */
};
void stops_record(struct stops *stops);
void stops_free(struct stops *stops);

/* Let r, which has been started, stop where the nth run that stops does. Nothing changes if the
 * recorded run has no such step. */
void stops_choose(const struct stops *stops, uint64_t nth, struct random_source *r);
/* The same of a step at which something dies, the server's process or a client, in the nth run that
 * has one. */
void stops_kill(const struct stops *stops, uint64_t nth, struct random_source *r);

#endif
