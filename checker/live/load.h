/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_LOAD_H
#define TM_CHECKER_LIVE_LOAD_H
/*
 * A load on a live server: clients that do YCSB's operations as fast as they can. Each client is a
 * thread with a session of its own; the caller's thread watches them.
 *
 * The time of each operation goes to a histogram of its kind, and each operation is a record of the
 * recording, if there is one; of one that fails the record says what had been injected until then.
 * If a session breaks during an update, the update may take effect or
 * not, now or later: its record has the error, but no time of return. An operation that the store
 * refused has returned, with the error. The bytes that a GET returns name the PUT that wrote them;
 * bytes that no PUT of the key wrote are reported at once.
 *
 * PUTs have ids that are unique over the pool's life (live_put_id). An id contains the session's
 * number. That is the time, in eighths of a second modulo 2^24 (24 days), at which the session got
 * its client number, and the session makes no PUT before that eighth is over. So a later session
 * with the same client number, in any process, has another number, unless the clock is set back.
 *
 * Nothing waits for ever: an operation, or the opening of a connection, that takes longer than
 * `stall_s` is reported and ends the load.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include "checker/judge/history.h"
#include "checker/live/latency.h"

struct ibv_context;
struct recording;

#define LOAD_KINDS  3 /* enum history_kind */
#define LOAD_ERRORS 16

struct load_options {
	struct ibv_context *verbs;
	const char *server;
	unsigned clients;	 /* 1..TM_MAX_CLIENTS */
	unsigned first_client;	 /* the first client's number, the others follow; 0: any */
	unsigned read_percent;	 /* GETs */
	unsigned delete_percent; /* DELETEs among the rest */
	unsigned keys;		 /* 1..ZIPF_MAX_KEYS */
	unsigned vlen;		 /* bytes, LIVE_MIN_VALUE..TM_MAX_VALUE */
	uint64_t seed;
	uint64_t ops;	   /* of all clients together; 0: until the time is over */
	double seconds;	   /* 0: until the operations are done */
	bool load;	   /* first put each key once; not measured */
	bool reconnect;	   /* a session that broke is opened again, */
	double patience_s; /* for so long */
	double stall_s;
	struct recording *recording;	  /* or NULL */
	const atomic_bool *interrupted;	  /* set from outside: end the load now; or NULL */
	void (*report)(const char *line); /* called by one thread at a time */
	void (*progress)(double seconds, uint64_t ops); /* called now and then; may be NULL */
};

struct load_result {
	struct latency
		latency[LOAD_KINDS]; /* of operations that ended well; not found is well, too */
	uint64_t failed[LOAD_KINDS];
	struct load_error {
		int error; /* -errno */
		uint64_t times;
	} error[LOAD_ERRORS]; /* operations that failed; ends with .times = 0 */
	uint64_t not_found, foreign, reconnects;
	unsigned gave_up; /* clients without a session: the server could not be reached, or not
			     again */
	bool hung;	  /* an operation or a connection took longer than stall_s */
	bool full;	  /* the recording has no room: the load ended early */
	double seconds;	  /* measured */
	uint64_t ops;	  /* all of them, failed ones included */
};

/* 0, or -EDEADLK: a client does not end when it is stopped, and goes on using the recording.
 * Other -errno: nothing was run. */
int load_run(const struct load_options *options, struct load_result *result);

#endif
