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
#include "core/stores/octopus/lock.h"

/* The exported region. */
#define OCTOPUS_BLOCKS 0 /* read and write */

enum { CROWD = KV_CROWD, PERSIST, LOCK, LEASE, FREE, BUG, KNOBS };
enum { PERSIST_NONE, PERSIST_READ, PERSIST_CPU };
enum { LOCK_HELD, LOCK_EARLY };
enum { FREE_NEVER, FREE_AT_ONCE };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define OCTOPUS_BUGS(X)                                                                         \
	X(barrier_missed, " persist=cpu", DUR, "the end of a PUT flushes the file's size only") \
	X(size_unflushed, " persist=cpu", DUR, "... the data only")                             \
	X(delete_unflushed, " persist=cpu", DUR | NORES, "a DELETE is not flushed")             \
	X(commit_first, " persist=cpu", DUR | LIN, "a PUT ends before its data are sent")       \
	X(read_unlocked, "", RDA, "a GET locks nothing")                                        \
	X(readers_ignored, "", RDA, "a file that is being read may be written")                 \
	X(reader_stays, " lease=on", OK, "a GET does not give its lock back")                   \
	X(delete_stays, " lease=on persist=cpu", LIVE,                                          \
	  "a DELETE that finds nothing does not give its lock back")                            \
	X(locks_kept, " persist=cpu", FSCK, "recovery leaves locks as they are")                \
	X(hold_shared, "", OK | RDA,                                                            \
	  "the server remembers one client's PUT or GET, not one of each")                      \
	X(block_shared, "", FSCK | RDA, "two PUTs of new keys may get the same block")          \
	X(blocks_forgotten, "", FSCK | RDA,                                                     \
	  "after a restart a new file gets a block that has an owner")                          \
	X(data_assumed, " persist=cpu", MONO,                                                   \
	  "recovery takes data for durable, which they are not where only the process died")
enum { NO_BUG, OCTOPUS_BUGS(KV_BUG_VALUE) };

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

/* tm_store's functions of these names. */
int octopus_recover(const struct tm_env *env);
void octopus_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int octopus_serve(const struct tm_env *env);
int octopus_open(const struct tm_env *env, void **out);
int octopus_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int octopus_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int octopus_del(void *client, const void *key, size_t klen);

#endif
