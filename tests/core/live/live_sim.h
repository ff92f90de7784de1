/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_LIVE_SIM_H
#define TM_TESTS_LIVE_SIM_H
/*
 * A live server's leftovers without a live server: one client's operations on live keys
 * and values, run in the sim world and recorded; and the pool, as it is or as the media
 * have it, at any moment.
 */
#include "checker/live/cut.h"

#define LIVE_SIM_OPS 60000

struct live_sim {
	struct live_store store;
	size_t len; /* bytes of the pool */
	unsigned vlen;
	struct recording_op *op; /* what was recorded; tests change it */
	unsigned ops;
	/* of the run */
	struct sim *sim;
	struct pmem_stack *stack;
	struct rnic_net *net;
	struct tm_env server, client;
	void *handle;
	void (*script)(struct live_sim *ls);
	unsigned nth;
};

/* Sizes for so many keys and updates, values of `vlen` bytes. */
void live_sim_open(struct live_sim *ls, const char *store, unsigned keys, unsigned updates,
		   unsigned vlen);
/* The store's switches as in this variant of it. */
void live_sim_variant(struct live_sim *ls, const char *name);
void live_sim_close(struct live_sim *ls);
/* Format, serve, run the script on a client's task. */
void live_sim_run(struct live_sim *ls, void (*script)(struct live_sim *ls));

/* In a script. Each is recorded as `client`'s; the record. */
struct recording_op *live_sim_put(struct live_sim *ls, unsigned client, uint32_t key);
struct recording_op *live_sim_get(struct live_sim *ls, unsigned client, uint32_t key);
struct recording_op *live_sim_del(struct live_sim *ls, unsigned client, uint32_t key);
/* Let the server work on. */
void live_sim_wait(struct live_sim *ls);
/* The pool as the CPU sees it, or as the media have it. To be freed. */
uint8_t *live_sim_pool(struct live_sim *ls, bool media);

/* A record by hand, after the others. */
struct recording_op *live_sim_record(struct live_sim *ls, enum history_kind kind, unsigned client,
				     uint32_t key);
/* As files. */
void live_sim_save_pool(const struct live_sim *ls, const char *path, const uint8_t *pool);
void live_sim_save_cache(const struct live_sim *ls, const char *path, const char *media,
			 const uint8_t *pool);
void live_sim_save_ops(const struct live_sim *ls, const char *path);
/* In memory; `cache` may be NULL. */
void live_sim_cut(const struct live_sim *ls, const uint8_t *media, const uint8_t *cache,
		  struct cut *c);

#endif
