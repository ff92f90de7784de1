/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_OCTOPUS_H
#define TM_STORES_OCTOPUS_H
/*
 * Octopus-KV (RK IV-D; the file system's data path: SV 3.2): a file per key, whose data clients
 * write and read in place by RDMA.
 *
 *	+---------------------------+-----------------------------+
 *	| files: kv_entry, one each | blocks: one per file, equal |
 *	+---------------------------+-----------------------------+
 *
 *	file	0x00 u8  key[32] padded with zeros
 *		0x20 u64 where	bits 63..24 its block, in lines from the first one
 *				bits 23..1  length of its data, bytes
 *				bit 0	    1: it has data
 *		0x28 u64 ctl	see kv_table.h
 *		0x30 u64 lock	bits 63..48 the client that writes, 47..32 its connection plus one;
 *				bits 31..0  how many read
 *
 * Files are the server's own, and clients do not see them. A block is its file's as long as the
 * file has data: it stays where it is when the data are replaced.
 *
 *	lock.c		the lock word
 *	recover.c	recovery, and the structural check
 *	server.c	what the server does
 *	client.c	what clients do
 *	octopus.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv_pool.h"

/* The exported region. */
#define OCTOPUS_BLOCKS 0 /* read and write */

enum { CROWD = KV_CROWD, PERSIST, LOCK, LEASE, FREE, BUG, KNOBS };
enum { PERSIST_NONE, PERSIST_READ, PERSIST_CPU };
enum { LOCK_HELD, LOCK_EARLY };
enum { FREE_NEVER, FREE_AT_ONCE };
enum {
	NO_BUG,
	BUG_BARRIER_MISSED,
	BUG_SIZE_UNFLUSHED,
	BUG_DELETE_UNFLUSHED,
	BUG_COMMIT_FIRST,
	BUG_READ_UNLOCKED,
	BUG_READERS_IGNORED,
	BUG_READER_STAYS,
	BUG_DELETE_STAYS,
	BUG_LOCKS_KEPT,
	BUG_HOLD_SHARED,
	BUG_BLOCK_SHARED,
	BUG_BLOCKS_FORGOTTEN,
	BUG_DATA_ASSUMED
};

/* Is this seeded bug switched on? A macro: the code that asks is the one that reads the switch. */
#define has_bug(params, which) ((params)->knob[BUG] == (which))

/* Does a PUT end with a request? Else the server knows only that it has begun. */
static inline bool octopus_commits(const struct tm_params *params)
{
	return params->knob[LOCK] == LOCK_HELD || params->knob[PERSIST] != PERSIST_NONE;
}

/* A file's data, in PM. */
static inline uint8_t *octopus_data(const struct kv_pool *pool, uint64_t where)
{
	return pool->log + kv_where_line(where) * TM_LINE;
}

/* --- lock.c: the word at file->lock. The first two: false, and nothing done, if it is taken. */

bool octopus_lock_write(uint64_t *lock, uint32_t client, unsigned connection);
bool octopus_lock_read(uint64_t *lock);
void octopus_unlock_write(uint64_t *lock);
void octopus_unlock_read(uint64_t *lock);

/* tm_store's functions of these names. */
int octopus_recover(const struct tm_env *env);
void octopus_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int octopus_serve(const struct tm_env *env);
int octopus_open(const struct tm_env *env, void **out);
int octopus_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int octopus_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int octopus_del(void *client, const void *key, size_t klen);

#endif
