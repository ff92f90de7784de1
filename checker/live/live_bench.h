/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_LIVE_BENCH_H
#define TM_CHECKER_LIVE_LIVE_BENCH_H
/*
 * Loads (load.h) on live servers: each server under each workload with each number of clients, one
 * after the other. Beside what is measured stands what the simulator says that an operation costs
 * in round trips (checker/models/count.h). docs/live-bench.md.
 */
#include "checker/live/load.h"

#define BENCH_SERVERS	16
#define BENCH_WORKLOADS 4
#define BENCH_COUNTS	16 /* numbers of clients */
#define BENCH_TEXT	400

struct ibv_context;

/* A server as it described itself, and what its store is predicted to cost. */
struct bench_server {
	const char *address;
	struct live_store what;
	double trips[LOAD_KINDS]; /* round trips of an operation; < 0: not known */
};

/* One load. */
struct bench_cell {
	const struct bench_server *server;
	char workload;
	unsigned clients;
	struct load_result result;
};

struct live_bench {
	const char *address[BENCH_SERVERS];
	unsigned servers;
	char workload[BENCH_WORKLOADS]; /* a, b, c (YCSB) or u (updates only) */
	unsigned workloads;
	unsigned count[BENCH_COUNTS]; /* of clients */
	unsigned counts;
	unsigned keys;		  /* 0: as the server says */
	unsigned value;		  /* bytes; likewise */
	const char *history;	  /* record every operation there; NULL: not */
	uint64_t room;		  /* operations in a new recording */
	struct load_options load; /* what is the same for all */
	struct ibv_context *verbs;
	/* results */
	struct bench_server server[BENCH_SERVERS];
	struct bench_cell *cell;
	unsigned cells;
	const struct bench_cell *on; /* the load that is running */
	char why[BENCH_TEXT];	     /* an error's message; "": none but the error's own */
};

/* Ask the servers what they serve. 0; -EINVAL with b->why: one cannot be reached, or does not fit
 * the options. */
int live_bench_ask(struct live_bench *b);
/* All loads, until one fails or is interrupted. 0 or -errno; -EDEADLK: a client does not end, and
 * goes on using what is here. */
int live_bench_run(struct live_bench *b);
/* Fill in the servers' predicted round trips. */
void live_bench_predict(struct live_bench *b);

unsigned live_bench_value(const struct live_bench *b, const struct bench_server *v);
unsigned live_bench_keys(const struct live_bench *b, const struct bench_server *v);
const struct bench_cell *live_bench_cell(const struct live_bench *b, unsigned workload,
					 unsigned count, unsigned server);
/* Round trips that an operation of the mix takes on average; < 0: not known. */
double live_bench_trips(const struct bench_server *v, char workload, unsigned delete_percent);

#endif
