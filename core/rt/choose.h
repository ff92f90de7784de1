/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_CHOOSE_H
#define TM_RT_CHOOSE_H
/*
 * Everything that can go differently in a simulation is one call of sim_choose().
 *
 * Answer 0 always means the plain thing: run on, deliver, land in order, no
 * fault. A choice point says what kind of choice it is, whose it is, and where
 * in that one's own program; it is turned into words only when an answer other
 * than 0 (a deviation) is recorded or printed. The identity of a point never
 * contains a global step count, so a deviation still names the same point after
 * the store was rebuilt, or after another deviation was taken away.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/rt/fails.h"

/* clang-format off */
/*
 * Kinds of choices. Answer 0, then the others; then what a, b and c of the choice
 * point say. "Delayed" is for choice_delay_ns(k), or as DELAY_QUIESCENCE says.
 *
 *	STEP	a task's next step: run on; delayed first; or something dies there (DEATH_SERVER and
 *		so on). a: enum step_kind, b: number of that kind
 *	PACKET	a packet on the link: enum packet_answer. a: message, b: packet, c: transmission
 *	LAND	NIC data about to become visible: now; delayed. a: message, b: packet, c: line
 *	ORDER	which line lands next (dma_order): the first of those that could; the (k + 1)th. a:
 *		message, b: packet that is the first of its queue, c: how often this was asked of
 *		it. Or, ORDER_FETCHED in c: which READ fetches its next line, of the first one in
 *		the queue and those after it
 *	FETCH	the responder's next line of an RDMA READ, or an atomic, FLUSH, ATOMIC WRITE: now;
 *		delayed. a: message, b: packet, c: line
 *	DRAIN	DDIO off, a visible line on its way to PM: soon; delayed. a: message, b: packet, c: line
 *	EVICT	after an operation's return the cache writes back: nothing; 1 every dirty line; k
 *		the (k - 1)th
 *	CRASH	the power: holds; fails. a: enum crash_place, b and c: which one, per place
 *	LINE	after a power failure, which version of a line survived: the newest; others as
 *		pmem_line_answers() says. a: line, b: number of the power failure
 *	BUFFER	a store on its way to memory: at once; delayed in its CPU's store buffer, with all
 *		after it. a: number of the task's STEP_STORE
 *	FAIL	a call that can fail: does what it should; fails. a: enum fail_point, b: number of the
 *		task's calls there
 *	LIFE	what a client of a machine that has recovered does next, when all keys have been read:
 *		nothing; an operation, as faultinject/life.h says. a: the round
 *	CLOCK	the clock of a machine whose clocks may differ (sim_set_clocks()): as the slowest
 *		ones; ahead
 *
 * A row: the name; the kind's class in the records of faultinject/bytes.h, or NO_RECORD; and what
 * is not zero of its struct choice_traits. Its words are in faultinject/words.c. A new kind comes
 * last, for its number is part of the names of points, and has a salt, so that seeds and traces
 * say what they said before. Classes from 16 to 30 are free; inputs that fuzzers have kept mean
 * the same only if the new kind takes none of them.
 */
#define CHOICES(X) \
	X(STEP, 0, .delay = 1, .forever = true, .mean = {10, 30, 100, 300}) \
	X(PACKET, 6, .fuzzed = 3, .delay = PACKET_DELAY, .faults = PACKET_DUPLICATE, .mean = {4, 10, 30, 100}) \
	X(LAND, 7, .fuzzed = 2, .delay = 1, .chain = UINT32_MAX, .mean = {2, 5, 10, 30}) \
	X(ORDER, 8, .fuzzed = 1, .reorders = true, .counted = true, .mean = {1, 2, 4, 8}) \
	X(FETCH, 9, .fuzzed = 1, .delay = 1, .chain = FETCH_LINE, .mean = {2, 5, 10, 30}) \
	X(DRAIN, 10, .fuzzed = 1, .delay = 1, .mean = {1, 2, 5, 10}) \
	X(EVICT, 11, .fuzzed = 1, .usual = 1, .counted = true, .unsearched = true, .mean = {1, 2, 4, 8}) \
	X(CRASH, 12, .power = true) \
	X(LINE, 13, .power = true) \
	X(BUFFER, NO_RECORD, .delay = 1, .salt = 0x5709e6, .mean = {3, 10, 30, 100}) \
	X(FAIL, 31, .fuzzed = 1, .faults = 1, .salt = 0xfa115, .mean = {3, 10, 30, 100}) \
	X(LIFE, NO_RECORD, .power = true, .unsearched = true, .salt = 0x11fe) \
	X(CLOCK, NO_RECORD, .faults = 1, .salt = 0xc10c4, .mean = {1, 1, 2, 2})
/* clang-format on */
#define NO_RECORD     255
#define FETCH_LINE    0x7fffffu /* of a FETCH's c; above it: a copy of the request, and its tries */
#define ORDER_FETCHED (1u << 31) /* of an ORDER's c: READs; the bits below it as a FETCH's */

enum choice_kind {
#define X(name, ...) CHOICE_##name,
	CHOICES(X)
#undef X
		CHOICE_KINDS
};

/* What the sources, the search and the shrinker have to know of a kind. */
struct choice_traits {
	/* Which answers there are. */
	uint8_t delay;	/* the answer "delay 1"; longer delays follow it. 0: it has none */
	uint8_t faults; /* answers 1 to this are faults, of which a search takes few */
	bool forever;	/* so is a delay for ever, which only a client's task has: it is dead */
	bool reorders;	/* answer k: the k-th of those that wait comes first */
	bool counted;	/* answer k - 1 is plainer than k: so a trace is shrunk */
	bool power;	/* the power, what it leaves and what comes after: the explorer answers */
	/* Systematic search: points that differ in these bits of c only follow each other, and
	 * their delays reorder independent steps; or it does not try the kind at all. */
	uint32_t chain;
	bool unsearched;
	/* Random: a run draws one of these as the mean number of points from one deviation to the
	 * next; 0: none. From its own stream of numbers, if it has a salt. `usual`, if not 0, is
	 * half of the answers. */
	uint32_t mean[4];
	uint64_t salt;
	uint8_t usual;
	/* Weight of this kind among the fuzzer's records; all steps together weigh 10. */
	uint8_t fuzzed;
};
extern const struct choice_traits choice_traits[CHOICE_KINDS];

/* What a task does at a step: each kind is counted alone, so that a compiler that loads once more
 * renumbers loads only. */
enum step_kind {
	STEP_STORE,
	STEP_LOAD,
	STEP_FLUSH,
	STEP_FENCE,
	STEP_POST,
	STEP_POLL,
	STEP_BEGIN,  /* a client's operation is about to begin: no other task knows of it yet */
	STEP_LOCK,   /* a thread locks, unlocks, waits, signals: core/rt/threads/threads.h */
	STEP_ATOMIC, /* an atomic access to memory that is not PM, which tasks of its host share */
	STEP_KINDS
};

/* What a link can do to a packet. */
enum packet_answer {
	PACKET_DELIVER,
	PACKET_LOSE,
	PACKET_DUPLICATE,
	PACKET_DELAY /* + k: delayed for choice_delay_ns(k + 1), not for ever */
};

/* Where the power can fail. Between these places the set of possible images
 * only grows and no client learns anything, so a failure there is one of these
 * (docs/model.md, "Where the power fails"). */
enum crash_place {
	CRASH_AFTER_RETURN, /* a client's operation has returned */
	CRASH_BEFORE_FENCE, /* flushed lines are about to be durable for sure. b: the actor's
			     * n-th */
	CRASH_BEFORE_STORE, /* a store in a domain where visible is durable. b: the actor's n-th */
	CRASH_BEFORE_LAND,  /* likewise NIC data. b: message c: packet * 65536 + line */
	CRASH_BEFORE_DRAIN, /* NIC data about to leave the integrated-I/O buffers. b, c: as above */
	CRASH_BEFORE_EVICT, /* dirty lines about to be written back */
	CRASH_AT_END,	    /* every client has finished */
	CRASH_ANYWHERE,	    /* tests only: at each step and event. b: the actor's n-th */
	CRASH_BEFORE_LEAVE, /* an entry of a store buffer makes something durable. b: the actor's
			       n-th */
	CRASH_PLACES
};

/* Length of the k-th delay, nanoseconds; k from 1 to DELAYS, or from DELAY_NS on. The longest
 * stands for a task that never runs again. */
#define DELAYS	      9
#define DELAY_FOREVER DELAYS
#define DELAY_5MS     7 /* longer than anything takes, shorter than any timeout */
uint64_t choice_delay_ns(unsigned k);

/*
 * Two delays that no clock ends. A task or packet that is delayed until quiescence goes on
 * when the others have done all they can: several of them one after the other, in the order
 * in which they were delayed. A switch delays in the same way, and what was delayed so before
 * goes on now. They can be answered wherever a delay can be, and are not counted among the n
 * answers of a choice: sources that draw an answer do not draw these.
 */
#define DELAY_QUIESCENCE (DELAYS + 1)
#define DELAY_SWITCH	 (DELAYS + 2)
/*
 * What can die at a task's step, besides its client by a delay for ever; these, too, are not
 * counted among the n answers. A process that dies leaves its NIC to the kernel, which closes the
 * queue pairs and regions a little later; of a machine that dies, the NIC is gone at once.
 *
 *	SERVER the server's process, at any task's step. Its memory and its caches live, clients
 *		stay, and a new process recovers the pool and serves it. No more than SERVER_LIVES
 *	PROCESS	the task's own process, a client's
 *	MACHINE	the task's own machine, a client's
 *	ONE	what happens to one of several servers: DEATH_ONE + event * SIM_SERVERS + its number
 */
#define DEATH_SERVER  (DELAYS + 3)
#define DEATH_PROCESS (DELAYS + 4)
#define DEATH_MACHINE (DELAYS + 5)
#define DEATH_ONE     (DELAYS + 6)
#define SERVER_LIVES  4 /* processes of the server in one run, one after the other */
#define SIM_SERVERS   4 /* at most */
/*
 * What can happen to one of several servers. Its machine loses its power: what its PM holds is
 * decided line by line (CHOICE_LINE). Or it goes on, and so does its NIC, but the configuration
 * service (core/rt/config.h) neither hears it nor is heard. A row: how long that lasts, ns, 0: for
 * ever; and how it is told. A lease ends after RT_LEASE_NS.
 */
#define SERVER_EVENTS(X)                                                                    \
	X(POWER, 100000, "loses power", "a server loses its power")                         \
	X(LOST, 0, "is lost", "a server is lost")                                           \
	X(POWER_BRIEFLY, 20000, "loses power briefly", "a server loses its power briefly")  \
	X(POWER_LONG, 2000000, "loses power for long", "a server loses its power for long") \
	X(CUT, 300000, "is cut off", "a server is cut off from the configuration service")  \
	X(CUT_BRIEFLY, 20000, "is cut off briefly",                                         \
	  "a server is cut off from the configuration service briefly")                     \
	X(CUT_FOR_EVER, 0, "is cut off for ever",                                           \
	  "a server is cut off from the configuration service for ever")
enum server_event {
#define X(name, ...) SERVER_##name,
	SERVER_EVENTS(X)
#undef X
		SERVER_EVENTS_END
};
#define DEATHS_END (DEATH_ONE + SERVER_EVENTS_END * SIM_SERVERS)
/* Is it the death of something, or what happens to one of several servers? */
static inline bool delay_kills(unsigned k)
{
	return k >= DEATH_SERVER && k < DEATHS_END;
}
static inline bool delay_befalls_one(unsigned k)
{
	return k >= DEATH_ONE && k < DEATHS_END;
}
/*
 * And a delay of any other length, for stores that measure time (core/rt/durations.h): it lasts k -
 * DELAY_NS nanoseconds. It is not counted among the n answers either.
 */
#define DELAY_NS (1u << 30)
#define DELAY_NS_MOST \
	(DELAY_NS - 16) /* 1.07 s; an answer is a little more than its k, and an int */
/* The k of a delay of so many ns, from 1 to DELAY_NS_MOST. */
unsigned delay_of_ns(uint64_t ns);
/* Does a clock end it, so that choice_delay_ns() says when? */
static inline bool delay_is_timed(unsigned k)
{
	return k <= DELAYS || k >= DELAY_NS;
}
static inline unsigned death_of(enum server_event event, unsigned server)
{
	return DEATH_ONE + event * SIM_SERVERS + server;
}
/* Of a k from DEATH_ONE on. */
static inline enum server_event death_event(unsigned k)
{
	return (enum server_event)((k - DEATH_ONE) / SIM_SERVERS);
}
static inline unsigned death_server(unsigned k)
{
	return (k - DEATH_ONE) % SIM_SERVERS;
}
/* Does it keep its power? */
static inline bool server_is_cut(enum server_event event)
{
	return event >= SERVER_CUT;
}
struct server_event_row {
	uint64_t lasts_ns;
	const char *word, *effect;
};
extern const struct server_event_row server_events[SERVER_EVENTS_END];
/* The k of a "delay k" answer to this kind of choice; 0: it delays nothing. */
unsigned choice_delay(unsigned kind, unsigned answer);
/* The answer that says "delay k", or that k dies; the kind has one. */
unsigned choice_delay_answer(unsigned kind, unsigned k);
/* May a choice of this kind with n answers be answered so? */
bool choice_allows(unsigned kind, unsigned n, unsigned answer);

/* One client's operation: "c1.put2" is client 1's second PUT. kind 0: none. */
enum op_kind {
	OP_NONE,
	OP_PUT,
	OP_GET,
	OP_DEL,
	OP_OPEN,
	OP_CLEAN,
	OP_LEAVE, /* the client disconnects; before its next operation it comes back, as a new
		     process */
	OP_DIE,	  /* likewise, and its process dies: its NIC goes on for a while */
	OP_PAUSE, /* it does nothing for 5 ms */
	OP_CALL,  /* an operation of the store's own */
	OP_KINDS
};
struct op_label {
	uint8_t client; /* 1.. ; 0: no client's */
	uint8_t kind;	/* enum op_kind */
	uint16_t nth;	/* from 1 */
};

/*
 * An actor makes choices: a task or a queue pair. It counts its own steps per label, so
 * that "server, c1.put2, fence 1" stays the same whatever others do. `occurrence`
 * distinguishes a second request of the same operation from the first.
 */
#define ACTOR_NAME    24
#define ACTOR_CLIENTS 24 /* clients an actor tells apart; more are in worlds without choices */
enum actor_count {
	COUNT_STEP,
	COUNT_MESSAGE = COUNT_STEP + STEP_KINDS,
	COUNT_CRASH,
	COUNT_FAIL = COUNT_CRASH + CRASH_PLACES,
	ACTOR_COUNTS = COUNT_FAIL + FAIL_POINT_COUNT
};
struct actor {
	char name[ACTOR_NAME]; /* "c1", "server", "server/verifier", "c1/qp1" */
	uint64_t name_hash;
	struct op_label op;
	uint16_t occurrence;	      /* of this label, from 1 */
	uint32_t count[ACTOR_COUNTS]; /* since the label was set */
	struct {
		struct op_label op;
		uint16_t occurrence;
	} seen[ACTOR_CLIENTS]; /* each client's latest label here */
};

void actor_init(struct actor *actor, const char *name);
/* The actor starts to work for `op`: counts start again. The same label again is its next
 * occurrence. */
void actor_label(struct actor *actor, struct op_label op);
static inline bool op_label_equal(struct op_label a, struct op_label b)
{
	_Static_assert(sizeof(a) == 4, "a label is one word, without padding");
	return !memcmp(&a, &b, sizeof(a));
}

struct choice_point {
	uint8_t kind; /* enum choice_kind */
	const struct actor *who;
	struct op_label op;
	uint16_t occurrence;
	uint32_t a, b, c; /* as enum choice_kind says */
};

/* A 64-bit name of the point, equal in every run, process and build. */
uint64_t choice_key(const struct choice_point *at);

#endif
