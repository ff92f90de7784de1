/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_POOL_H
#define TM_STORES_KV_POOL_H
/*
 * A pool of a table and bare values, for the stores that keep nothing beside a value: an entry's
 * one word says where it lies and how long it is.
 *
 *	+-------------------------------+-------------------------+
 *	| table: kv_entry[slots]	| log: values, appended -> |
 *	+-------------------------------+-------------------------+
 *
 *	kv_entry.where	bits 63..24 place of the value in the log, in lines
 *			bits 23..1  its length, bytes
 *			bit 0	    1: there is a value
 *
 * A value begins on a line, so no two share any. The log is appended to only.
 */
#include "core/stores/kv_small.h"

/* The exported regions. */
#define KV_POOL_TABLE 0 /* read only */
#define KV_POOL_LOG   1 /* read and write */

struct kv_pool {
	struct kv_table table;
	uint8_t *log;
	uint64_t log_lines;
};

uint64_t kv_where(uint64_t line, uint32_t vlen);
uint64_t kv_where_line(uint64_t where);
uint32_t kv_where_vlen(uint64_t where);

/* tm_store.pm_bytes, tm_store.regions. */
size_t kv_pool_bytes(const struct tm_params *params);
unsigned kv_pool_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct kv_pool kv_pool_at(const struct tm_params *params, uint8_t *pm);
/* Does the value that the entry names lie in the log? */
bool kv_pool_has(const struct kv_pool *pool, const struct kv_entry *entry);
/* Where the log ends: after the last value that an entry names. Lines. */
uint64_t kv_pool_tail(const struct kv_pool *pool);

/*
 * Recovery's steps where anything may have been lost. The first drops entries that cannot be
 * right. The second moves an entry that has survived where one before it in its probe sequence has
 * not, and says whether it moved one: then others may have to follow. It only ever brings one
 * nearer to its place, so this ends. Not flushed.
 */
void kv_pool_drop_impossible(struct kv_pool *pool);
bool kv_pool_move_unreachable(struct kv_pool *pool);
/* tm_store.fsck. */
void kv_pool_fsck(const struct tm_env *env, struct tm_fsck *fsck);

/* Export the table and the log, and start to serve. */
int kv_pool_serve(struct rpc_server *rpc, struct kv_pool *pool);
/* A client reads the key's entry, and the value that it names. -ENOENT: there is none. */
int kv_pool_get(struct kv_client *client, const struct kv_table *table, const void *key,
		size_t klen, void *value, size_t cap, size_t *vlen);

#endif
