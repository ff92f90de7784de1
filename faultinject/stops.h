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
 * In other runs something dies at such a step, mostly the server's process. Where a client's
 * process does, the server mostly stops at a step at which it works for that client's operation: so
 * the client may have come back before the server is done with what it wanted before.
 *
 * Most of these runs hold another client before that, or two: at the beginning of one of its
 * operations, or in the middle of one. It goes on just when the task stops.
 *
 * Two tasks meet where both touch a line of memory and one of them writes it, and where one
 * sends what the other waits for. If a server's task was stopped, often what was held stops
 * as well, at a step of the same operation where tasks meet, and the first task goes on from there.
 * So the one may stand between a load and its compare-and-swap while the other does what makes it
 * fail, and work that could begin only because the first one stood still is itself cut in
 * the middle. At such a step of its own the client may also die.
 *
 * What the plain run says of a later phase of a long work is not so any more when it was
 * stopped in an earlier one: the work has more to do then, and its steps other names. So some runs
 * that stop it once are recorded in their turn, from there on, with the next operation held
 * as well: and others stop it again, at what it does then, and let that operation in.
 */
#include "faultinject/random_source.h"

/* What can happen: the power of all servers fails; a process or a client's machine dies; something
 * happens to one of several servers. */
enum happening {
	HAPPENS_ALL = 1,
	HAPPENS_DEATH = 2,
	HAPPENS_POWER = 4, /* it loses its power, and has it again */
	HAPPENS_LOST = 8,
	HAPPENS_CUT = 16, /* it is cut off from the configuration service */
	HAPPENS_TO_ONE = HAPPENS_POWER | HAPPENS_LOST | HAPPENS_CUT,
	HAPPENINGS = HAPPENS_ALL | HAPPENS_DEATH | HAPPENS_TO_ONE,
};

enum stop_group {
	STOPS_SERVER,	    /* a task of the server stores, flushes, fences, posts or polls */
	STOPS_SERVER_LOADS, /* it loads */
	STOPS_CLIENT,	    /* a client's task does any of these */
	STOPS_BEGIN,	    /* a client's operation begins */
	STOPS_MEET,	    /* other steps but loads, at which a task meets another */
	STOP_GROUPS
};

struct stop_point {
	uint64_t key, who; /* of the choice point; of the actor's name */
	uint32_t a, b;
	struct op_label op; /* for which it works */
	uint32_t line;	    /* of PM, which it touches first, + 1; 0: none */
	bool server;	    /* a task of the server's */
};

#define STOPS_FIRST 3 /* an operation is held, a task stops, the next operation is held */

/* Which tasks touched a line of PM. */
struct stop_line {
	uint32_t line; /* + 1; 0: not used */
	bool shared, written;
	uint64_t who;
};
#define STOP_LINES 1024 /* a power of two; in further lines no two tasks meet */

/* The steps of one run, in their order. */
struct stops {
	struct source source; /* records them */
	struct stop_points {
		struct stop_point *point;
		unsigned n, room;
	} group[STOP_GROUPS];
	struct stop_point *last; /* whose line is not known yet, or NULL */
	struct stop_line line[STOP_LINES];
	unsigned lines;
	unsigned servers; /* of a store that has several, else 0 */
	/* enum happening: what the store promises something of; and what is wanted. */
	unsigned may, wanted;
	bool failed; /* out of memory */
	/* A recorded run that is stopped itself: how. What comes before is not recorded. */
	struct {
		struct stop_point at;
		unsigned k;
		bool taken;
	} first[STOPS_FIRST];
	unsigned firsts;
	unsigned from;	 /* which of `first` the record begins with */
	unsigned begins; /* the operation that is this many-th to begin after the stop is held */
};
/* Does anything happen to one of several servers? */
bool stops_servers_fail(const struct stops *stops);
void stops_record(struct stops *stops);
/* The run is over: find out where tasks meet. */
void stops_recorded(struct stops *stops);
void stops_free(struct stops *stops);

/* Record a run that holds an operation, stops a task that works for no one's operation (or, if the
 * server has none, one that does), and holds another operation then; all drawn. False: the recorded
 * run has no such task or operation. */
bool stops_record_stopped(struct stops *stops, const struct stops *plain, uint64_t seed);
/* Let r, which has been started, do the same, and stop at a step of that record; the nth run that
 * does. */
void stops_again(const struct stops *stops, uint64_t nth, struct random_source *r);

/* Where there are several servers: record a run in which something happens to one of them, drawn;
 * and let r do the same, and another thing happen, at a step of that record. */
bool stops_record_event(struct stops *stops, const struct stops *plain, uint64_t seed);
void stops_event_again(const struct stops *stops, uint64_t nth, struct random_source *r);

/* Let r, which has been started, stop where the nth run that stops does. Nothing changes if the
 * recorded run has no such step. */
void stops_choose(const struct stops *stops, uint64_t nth, struct random_source *r);
/* The same of a step at which something dies, the server's process or a client, in the nth run that
 * has one. */
void stops_kill(const struct stops *stops, uint64_t nth, struct random_source *r);

/* In half of the runs that are about a time (random_durations()): let one operation begin about so
 * late. */
void stops_begin_late(const struct stops *stops, struct random_source *r);

#endif
