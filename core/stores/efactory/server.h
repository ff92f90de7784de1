/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_EFACTORY_SERVER_H
#define TM_STORES_EFACTORY_SERVER_H
/*
 * The server's volatile state, and what its three tasks know of each other.
 *
 *	server	  answers requests
 *	verifier  makes arrived values durable
 *	cleaner	  exists from the first cleaning on
 *
 * The paper has one background thread. Here verifier and cleaner exclude each other
 * (ef_background_*()): while a log is cleaned, the cleaner does the verifier's rounds, so
 * that no task settles an object in a log that has become free. The task for requests is
 * never held up. It takes one look at the stage (ef_server.stage) when a request
 * comes in, and the cleaner, after it has changed the stage, waits until no request is
 * left that began before (ef_quiesce()). What both change at the same time, they change
 * by compare-and-swap: an entry's offset in the log that is cleaned into, an object's
 * state, the end of a log.
 */
#include "core/stores/efactory/efactory.h"
#include "core/stores/rpc.h"

/* An object whose value is awaited. */
struct ef_pending {
	uint64_t place; /* 0: settled */
	uint64_t received_ns;
};

/* What cleaning has done to a key. */
struct ef_moved {
	uint64_t from, to; /* the version that was moved last, and its copy; 0: none */
	uint64_t carried;  /* the oldest version that was in flight when the log was compressed */
	bool merged;
};

struct ef_server {
	struct tm_params params;
	struct ef_pool pool;
	struct rpc_server rpc;
	uint32_t stage;	   /* enum ef_stage * 2 + the current log */
	uint64_t requests; /* odd: one is being handled */
	uint64_t tail[2];  /* where each log's next object goes */
	uint64_t reserve;  /* bytes of the new log that are kept for versions of the old one (EF
			    * 4.4) */
	uint32_t stamp;	   /* of the next object */

	/* The verifier's list, a ring with a place for every update of the workload. The server
	 * appends. */
	struct ef_pending *pending;
	uint64_t max_pending;
	uint64_t arrived;    /* how many were appended, ever */
	uint64_t first;	     /* all before it are settled: the background's */
	uint64_t seen;	     /* how many the last round looked at: the background's */
	uint32_t background; /* 1: taken */

	/* Cleaning. */
	bool clean_wanted, has_cleaner;
	int clean_error;       /* why the last one was not done, -errno; 0: it was, or that has been
				* told */
	uint64_t cut;	       /* where the old log ended when compression began */
	uint64_t carried;      /* bytes of versions below it that were in flight */
	uint64_t tail_cleaned; /* where the current log ended when the last cleaning did; 0: the
				* next one gains room even so */
	bool put_merging;      /* a PUT went to the new log in stage MERGE */
	uint64_t notice;       /* number of the last one */
	struct ef_moved *moved; /* per slot of the table */
};

struct ef_now ef_server_now(const struct ef_server *server);

/*
 * Take room in a log; 0: there is none. `keep`: bytes that must stay free after it.
 * Both the server's task and the cleaner do this.
 */
uint64_t ef_alloc(struct ef_server *server, unsigned log, uint64_t span, uint64_t keep);

/*
 * The object is intact: persist its value, then flag it. The flag itself need not
 * be durable before anything else, so nothing waits for it.
 * False: it was invalidated meanwhile.
 */
bool ef_make_durable(const struct ef_server *server, struct ef_object *object, bool verifier);
/* One pass over what is pending. True if something was settled, or is new. */
bool ef_verify_round(struct ef_server *server);
void ef_verifier(void *server);
bool ef_background_take(struct ef_server *server);
void ef_background_leave(struct ef_server *server);

/* Ask for a cleaning. -EALREADY: one is going on. */
int ef_clean_start(struct ef_server *server);
/* Do a bit of what a waiting cleaner can do, and sleep; *nap grows while nothing happens. */
void ef_clean_wait(struct ef_server *server, uint64_t *nap);
/* Wait until no request is left that saw the stage before. */
void ef_quiesce(struct ef_server *server);

/* move.c: the three parts of a cleaning that touch versions. */
void ef_compress(struct ef_server *server, const struct ef_now *now);
void ef_merge(struct ef_server *server, const struct ef_now *now);
void ef_flip(struct ef_server *server, const struct ef_now *now);

#endif
