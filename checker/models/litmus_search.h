/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_LITMUS_SEARCH_H
#define TM_CHECKER_MODELS_LITMUS_SEARCH_H
/*
 * What the files of the litmus runner share (litmus.c, litmus_*.c): the state of a search and of
 * the run that is on.
 */
#include "checker/models/dpor.h"
#include "checker/models/litmus.h"
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"

#define LITMUS_QUEUE (LITMUS_STATEMENTS * LITMUS_THREADS) /* entries: all statements fit */

/* One end of a queue pair. */
struct litmus_search;
struct qp_end {
	struct litmus_search *search; /* once its peer has failed */
	struct ibv_qp *qp;
	struct ibv_cq *sent, *received;
};

/* A thread of the test, while a run is on. */
struct running_thread {
	struct litmus_search *search;
	unsigned thread;
	char name[16];
	uint64_t name_hash; /* of its actor */
	bool ended;
	const struct litmus_statement *missed; /* an await that found another value */
	uint64_t reg[LITMUS_REGISTERS];
};

/* The runs of a test, and what they had as outcomes. */
/* Values of the places on one line after a power failure; `ways`: how many choices leave them. */
struct litmus_left {
	uint64_t value[LITMUS_OBSERVED];
	uint64_t ways;
};

struct litmus_search {
	const struct litmus_test *test;
	struct litmus_result *out;
	struct dpor dpor;
	struct sim *sim;
	struct pmem_stack *stack;
	struct pmem *pm;
	uint8_t *image;
	struct qp_end end[LITMUS_QPS][2];
	struct ibv_mr *mr[LITMUS_HOSTS];
	struct ibv_mr *scratch[LITMUS_HOSTS]; /* for messages whose content is not asked about */
	struct ibv_context *verbs[LITMUS_HOSTS];
	bool failed_alone; /* the host that fails has failed in this run */
	struct running_thread running[LITMUS_THREADS];
	/* For a witness: the condition, and the best run so far. */
	const struct litmus_condition *wanted;
	unsigned shortest; /* 0: none */
	uint64_t witness[LITMUS_OBSERVED];
	void (*say)(void *arg, const char *line); /* while the witness is traced, else NULL */
	void *say_arg;
	struct tm_region region[LITMUS_LOCATIONS];
	unsigned steps;
	bool crashes;				       /* crash outcomes are asked for */
	bool learns[LITMUS_THREADS][LITMUS_REGISTERS]; /* together with what is left */
	/* By line: is some word of it asked about? */
	bool keeps[LITMUS_LOCATIONS * LITMUS_WORDS / 8 + 1];
	uint32_t line[LITMUS_OBSERVED]; /* the lines that are */
	unsigned lines;
	/* What is left of each of these lines, different values alone: the i-th line's are from
	 * left_from[i] on. */
	struct litmus_left *left;
	unsigned lefts, left_room, left_from[LITMUS_OBSERVED + 1];
	bool failed; /* out of memory */
};

/* Is the thread's host without power? */
static inline bool litmus_is_dead(const struct litmus_search *p, unsigned thread)
{
	return p->failed_alone && p->test->thread[thread].host == p->test->fails;
}

/* --- statements (litmus_statements.c) --- */

/* Do what the statement says. False: the thread waits for ever. */
bool litmus_execute(struct running_thread *me, const struct litmus_statement *s);
/* Is the statement skipped, because its guard is false? */
bool litmus_is_skipped(const struct running_thread *me, const struct litmus_statement *s);
uint64_t litmus_evaluate(const struct running_thread *me, const struct litmus_expr *expr);
/* The range's place in the pool. */
uint64_t litmus_range_off(const struct litmus_search *p, const struct litmus_range *range);
/* The thread's end of the statement's queue pair. */
struct qp_end *litmus_end_of(struct running_thread *me, const struct litmus_statement *s);
/* The queue that the statement takes a completion from; NULL: it takes none. */
struct ibv_cq *litmus_awaited(struct running_thread *me, const struct litmus_statement *s);

/* --- the simulated machines (litmus_world.c) --- */

/* The first task of a run: opens the RNICs, connects the queue pairs, starts the threads. `arg`:
 * the search. */
void litmus_boot(void *arg);
/* The chain in which the host that fails loses its power. */
#define LITMUS_FAILS chain_name(1, CHAIN_FAILS)
/* An event is on, of a test in which a host fails: what happens before the failure and what after
 * it matters for each. */
void litmus_note_event(struct litmus_search *p);

/* --- the trace of a witness (litmus_trace.c) --- */

/* An event of a process begins; see dpor.begins. */
void litmus_trace_event(void *arg, uint64_t process);
/* What happened inside an event; a sim_tracer. */
void litmus_trace_effect(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
			 const struct traced *about, const char *text);
void litmus_trace_statement(struct running_thread *me, const struct litmus_statement *s);
void litmus_trace_end(struct litmus_search *p, const struct litmus_condition *condition);

#endif
