/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_WORLD_CLIENT_H
#define TM_CHECKER_WORLD_WORLD_CLIENT_H
/* What clients of a world do, on their tasks. For the files that make up a world. */
#include "checker/world/world.h"

#define AFTERMATH_NS 150000    /* what goes on after the last operation */
#define AT_REST_NS   150000000 /* longer than any delay that ends */
#define CLOSE_NS     20000     /* how long a dead process still has its queue pairs and regions */

/* --- world.c: a machine --- */

/* `before`: closed, of the host's former process; NULL: it is the first. */
struct tm_env world_environment(struct world *w, unsigned host, struct ibv_context *before);
/* Recover, check and serve, or, while loading, make an empty store. On a task of the server's host.
 */
void world_start_server(struct world *w, unsigned server);
/* Does the server that clients ask take connections? */
bool world_serves(const struct world *w);
/* Number of the servers' processes that have ended, however. */
unsigned world_server_ends(const struct world *w);
/* The world's observer of choices. */
void world_observe(void *arg, const struct choice_point *at);

/* --- trouble.c --- */

/* What is wrong with the machine: a contract that is not judged from the history. `live`: LIVE,
 * else FSCK. The first one counts. */
void world_trouble(struct world *w, bool live, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise LIVE, seen at this place in the store. */
void world_trouble_at(struct world *w, uintptr_t pc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise LIVE, for a function of the store has returned an error: `fmt`, which function, the
 * error, and the last call that failed there. */
void world_refused(struct world *w, const char *function, int error, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* OK: an operation that is not in the history has failed. */
void world_failed(struct world *w, unsigned client, enum tm_operation operation, int error);
/* The store's structural check. `after`: what is over, in words. */
void world_fsck(struct world *w, unsigned server, const char *after);

/* --- agree.c --- */

/* AGREE: ask all members what they hold of each key, again a while later if they differ. */
void world_agree(struct world *w);
/* A task, when nothing is left to do: likewise, and the run ends. */
void agree_main(void *arg); /* struct world */

/* --- client.c --- */

/* Whose value of the key the bytes are; VALUE_FOREIGN: no PUT's, VALUE_UNKNOWN: several PUTs'. */
int32_t client_value_of(const struct world *w, unsigned key, const uint8_t *bytes, size_t len);

/* Note in the history that an operation begins. Its number there, or -ENOSPC. */
int world_note_invoke(struct world *w, unsigned client, enum history_kind kind,
		      const struct workload_op *op);
/* Keep how the client's operation has ended (struct world_gets). */
void client_keep_return(struct world_client *c, const struct history_op *op);
/* Connect. If that fails the world ends. */
void client_open(struct world_client *c);
/* n operations that are one transaction. What the store returned. */
int client_txn(struct world_client *c, const struct workload_op *op, unsigned n);
void client_do(struct world_client *c, const struct workload_op *op, uint8_t *buf);
/* Single operations: a GET; one of the store's own, which `looks` at what was recovered; the same
 * without a note in the history, whose answer stays in the simulation's memory; a cleaning. */
void client_get(struct world_client *c, const struct workload_op *what, uint8_t *buf);
int client_call(struct world_client *c, const struct workload_op *op, bool looks);
int client_run_call(struct world_client *c, const struct workload_op *op,
		    struct tm_answer **answer);
int client_clean(struct world_client *c);
/* How many operations its program has; those that it has not begun. */
unsigned client_operations(const struct world_client *c);
void client_go_on(struct world_client *c, uint8_t *buf);
void client_main(void *arg); /* its task; arg: struct world_client */

/* --- reader.c --- */

/* GET every key, and look. So many GETs and operations of the store's own the client has done
 * already. */
void client_read_keys(struct world_client *c, unsigned gets, unsigned calls, uint8_t *buf);
/* Tasks: the load phase, the reader after recovery, and that after a run. */
void load_main(void *arg);
void reader_main(void *arg);
void reread_main(void *arg);

/* --- death.c --- */

/* Has a client died for which others may have waited? Or the server's process, or a client? */
bool world_client_died(const struct world *w);
bool world_someone_died(const struct world *w);
void world_client_ended(struct world *w);
/* An event: nothing is left to do. */
void world_at_end(struct sim *sim, void *arg);
/* A process or a machine dies: for sim_set_death(). */
void world_dies(void *arg, unsigned host, unsigned how);

#endif
