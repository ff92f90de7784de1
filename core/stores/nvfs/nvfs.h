/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_NVFS_H
#define TM_STORES_NVFS_H
/*
 * NVFS (SV 3.2): HDFS with non-volatile memory and RDMA. A block has a replica on each of three
 * DataNodes, which form a pipeline; a writer appends to it, a reader READs any replica. The
 * configuration service stands in for the NameNode: its epoch is the generation of the pipeline,
 * its primary the pipeline's head. Here each key has a block of its own, and a PUT or a DELETE
 * appends a record to it; the last record counts.
 *
 *	+------------+------------------------------------------+
 *	| mark: line | blocks: { block; its records } [keys+1]  |
 *	+------------+------------------------------------------+
 *
 *	mark	0x00 u64 generation  of the pipeline that the node was in; all ones: the blocks
 *				     are being copied, and are nothing yet
 *
 *	block	0x00 u8  key[32]     padded with zeros
 *		0x38 u64 len	     bytes of the records that count; 0: the block is free. Last,
 *				     so that the key is there when it is
 *		0x40 ... records, one after the other
 *
 *	record	0x00 u32 vlen
 *		0x04 u32 crc	     of the record without it
 *		0x08 u32 op	     KV_PUT, KV_DEL
 *		0x0c u32 zero
 *		0x10 ... the value; zeros to a multiple of 8
 *
 *	APPEND	the client asks the head for the block and its end, WRITEs the record there and says
 *		so. The head WRITEs it to the next node and says so, and so on. Each node persists
 *		the record; then, when the nodes after it have acknowledged, `len`; then it
 *		acknowledges. So a node's `len` is never above that of one after it
 *	READ	the client asks the head for the block and its length, and READs so many bytes from
 *		a node of the pipeline
 *
 * A writer has its block's end to itself until it has written, or until its lease has ended: then
 * its connection is closed.
 *
 * A node that does not answer is left out: the head makes the next configuration, and all that are
 * left take the head's lengths and its generation. When the head's own lease has ended, the node
 * after it becomes the head. A node that comes back as a member has all that it acknowledged, and
 * asks for a new pipeline; otherwise it gets a copy first.
 *
 *	block.c		blocks and records
 *	node.c		the DataNodes
 *	pipeline.c	how they form a pipeline
 *	client.c	what clients do
 *	nvfs.c		the store: knobs, variants, what it promises
 */
#include "core/stores/kv.h"
#include "core/stores/kv_small.h"
#include "core/stores/members.h"
#include "core/stores/rpc.h"

#define NVFS_NODES 3

enum { ACK, LEN, PIPELINE, FLUSH, BUG, KNOBS };
enum { ACK_DURABLE, ACK_EARLY };
enum { LEN_LAST, LEN_FIRST };
enum { PIPELINE_ALL, PIPELINE_FIRST };
enum { FLUSH_ON, FLUSH_OFF };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define NVFS_BUGS(X)                                                                            \
	X(written_end, "", DUR | DURN | MONO, "a GET reads all that the replica has")           \
	X(len_unflushed, "", DUR | DURN, "the length is not flushed")                           \
	X(forgets_packet, "", LIN | DUR | DURN, "what a lost node did not get is acknowledged") \
	X(lease_kept, "", LIVE, "the lease of a writer that has died never ends")               \
	X(lease_open, "", RDA | LIN | DUR, "a writer whose lease has ended may still write")    \
	X(enters_behind, "", FSCK | DUR | DURN, "a node that comes back gets the lengths alone")
enum { NO_BUG, NVFS_BUGS(KV_BUG_VALUE) };

#define NVFS_COPYING UINT64_MAX

struct block {
	uint8_t key[TM_MAX_KEY];
	uint64_t zero[3], len;
};
_Static_assert(sizeof(struct block) == TM_LINE, "records begin on a line");

struct record {
	uint32_t vlen, crc, op, zero;
};

struct nvfs_pool {
	uint64_t *generation;
	uint8_t *blocks_at;
	uint32_t blocks;
	size_t block_bytes;
};

/* --- messages --- */

/* The head's answer to a client: where in the pool the block's records begin, or its end is. */
struct nvfs_found {
	int32_t status;
	uint32_t members, head; /* the pipeline */
	uint32_t zero;
	uint64_t off, len;
};

/* To the next node: so many bytes have been written at the end of a block. `op` is where a struct
 * kv_req has its own. */
enum nvfs_op { NVFS_PACKET = 101, NVFS_SETUP, NVFS_COPY, NVFS_COPIED, NVFS_ENTER };
struct nvfs_packet {
	uint8_t op, zero[3];
	uint32_t n, crc, block;
	uint64_t generation, off;
	uint8_t key[TM_MAX_KEY];
};
/* NVFS_SETUP: the pipeline from now on. NVFS_COPY: send me your blocks. NVFS_COPIED: you have
 * them. NVFS_ENTER: I have these, take me in. */
struct nvfs_lens {
	uint8_t op, zero[3];
	uint32_t members, head, blocks;
	uint64_t generation;
	uint64_t len[];
};
struct nvfs_told {
	int32_t status;
	uint32_t failed; /* nodes, as bits */
};

/* --- block.c --- */

size_t nvfs_pm_bytes(const struct tm_params *params);
unsigned nvfs_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct nvfs_pool nvfs_pool_at(const struct tm_params *params, uint8_t *pm);
struct block *nvfs_block(const struct nvfs_pool *pool, uint32_t i);
size_t nvfs_record_bytes(size_t vlen);
/* The record at `to`, which has nvfs_record_bytes(). */
void nvfs_record(void *to, enum kv_op op, const void *value, uint32_t vlen);
/* The last whole record of the block's first `len` bytes; NULL: there is none. *end: where it
 * ends, which is `len` unless something is wrong. */
const struct record *nvfs_last(const uint8_t *records, size_t len, size_t *end);
void nvfs_fsck(const struct tm_env *env, struct tm_fsck *fsck);

/* tm_store's functions of these names. */
int nvfs_recover(const struct tm_env *env);
int nvfs_serve(const struct tm_env *env);
int nvfs_open(const struct tm_env *env, void **out);
int nvfs_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int nvfs_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int nvfs_del(void *client, const void *key, size_t klen);

static inline size_t nvfs_block_bytes(const struct tm_params *params)
{
	return nvfs_pool_at(params, NULL).block_bytes;
}

static inline size_t nvfs_lens_bytes(uint32_t blocks)
{
	return sizeof(struct nvfs_lens) + blocks * sizeof(uint64_t);
}

/* The node that is `n` places after `from` in the pipeline; the head, if that is none. */
static inline unsigned nvfs_place(uint32_t members, unsigned head, unsigned from, unsigned n)
{
	unsigned node = from;
	do
		node = (node + 1) % NVFS_NODES;
	while (node != head && (!(members >> node & 1) || --n));
	return node;
}

#endif
