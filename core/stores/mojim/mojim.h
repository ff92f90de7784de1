/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_MOJIM_H
#define TM_STORES_MOJIM_H
/*
 * Mojim (SV 3.4): a primary's memory area is mirrored. An application at the primary stores to its
 * area and calls msync, or gmsync for several ranges at once; here that application is a small
 * key-value store, which clients ask.
 *
 *	literal	M-sync: the primary flushes nothing. It WRITEs a record with the ranges
 *		to the mirror's log, and goes on when the mirror's NIC has acknowledged it
 *	async	M-async: it persists the ranges in its own area, WRITEs the record, and
 *		goes on at once
 *	syncsec	M-syncsec: there is a third server, the backup. The mirror forwards each record to
 *		it, and the primary goes on when the mirror says that the backup has it, too
 *	default	both: it persists the ranges and waits for the mirror's NIC, so that no
 *		loss of one server and no power failure of both takes anything
 *
 * The mirror applies records in their order, each when it is whole, and persists what it
 * applied. When the primary's lease has ended, the mirror makes itself the primary, applies its
 * log to the end, and serves. When the mirror is lost, the primary flushes its whole area, and
 * from then on it persists what it stores. A server that comes back gets a copy of the area, and
 * is the mirror then.
 *
 *	+------------+-------------------+---------------------------+
 *	| head: line | area: slot[keys'] | log: record[records]      |
 *	+------------+-------------------+---------------------------+
 *
 *	head	0x00 u64 seq	 the last record that is in the area, durably (the mirror's)
 *		0x08 u64 epoch	 in which it became the mirror: other records are not for it;
 *				 all ones: the area is being copied, and is nothing yet
 *
 *	slot	0x00 u8  key[32] padded with zeros
 *		0x20 u32 vlen[2]
 *		0x38 u64 version  bits 63..2 how often it was written; 0: never
 *				  bit 1: there is no value; bit 0: the buffer that has it.
 *				  Last, as a line may be torn, and its end lost
 *		0x40 ... buffer 0, whole lines; then buffer 1
 *
 *	record	0x00 u64 seq	 1, 2, ...; its place in the log is seq - 1
 *		0x08 u32 n	 ranges
 *		0x0c u32 crc	 of the header without it, and of the bytes
 *		0x10 { u64 off in the area; u32 len; u32 zero } [2]
 *		0x30 u64 epoch	 as in `head`
 *		0x38 u64 updates of a transaction; it takes so many places in the log
 *		0x40 ... further ranges; then the bytes of all, one after the other; in whole lines
 *		... u64 commit	 seq, in the record's last line
 *
 *	area.c		slots, what the application does with them
 *	record.c	records: made, and applied
 *	server.c	the primary and the mirror
 *	client.c	what clients do
 *	mojim.c		the store: knobs, variants, what it promises
 */
#include "core/stores/members.h"
#include "core/stores/kv_small.h"
#include "core/stores/rpc.h"

enum { MODE, PRIMARY_FLUSH, COMMIT_MARK, MIRROR_LOST, MIRROR_FLUSH, BUG, KNOBS };
enum { MODE_SYNC, MODE_ASYNC, MODE_SYNCSEC };
enum { PRIMARY_FLUSHES, PRIMARY_DOES_NOT };
enum { MARK_ON, MARK_OFF };
enum { LOST_FLUSHES, LOST_GOES_ON };
enum { FLUSH_EACH, FLUSH_NEVER };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define MOJIM_BUGS(X)                                                                            \
	X(posted_only, "", DURN | DUR | LIN, "msync returns when the record is posted")          \
	X(serves_early, "", DURN | DUR | LIN, "the mirror serves before its log is applied")     \
	X(head_early, "", DUR | DURN | FSCK | RDA, "`head` says so before the area is durable")  \
	X(no_crc, "", RDA | DUR | DURN | FSCK, "a record is taken for whole")                    \
	X(not_fenced, "", DURN | DUR | LIN | FENCE, "the old primary's WRITEs may land still")   \
	X(alone_unflushed, "", DUR | RDA | NORES, "a primary without a mirror persists nothing") \
	X(log_forgotten, "", DURN | DUR | LIN | NORES,                                           \
	  "the mirror serves without the rest of its log")                                       \
	X(serves_on, "", LIN, "the primary answers although its lease has ended")                \
	X(joins_blind, "", AGREE, "the mirror is in, although its copy is not the newest")       \
	X(joins_busy, "", AGREE, "a server joins although a request to it is under way")         \
	X(stays_member, "", DUR | NORES | LIN, "a server takes over although it has not joined") \
	X(answers_first, " mode=syncsec", DUR | DURN | AGREE,                                    \
	  "the mirror answers before the backup has the last record")                            \
	X(keeps_blind, " mode=syncsec", AGREE | DUR | DURN,                                      \
	  "the backup stays, although it has not got the rest of the log")                       \
	X(in_place, "", ATOM, "the primary changes the slots of a transaction one by one")
enum { NO_BUG, MOJIM_BUGS(KV_BUG_VALUE) };

#define MOJIM_RANGES  2 /* of one update */
#define MOJIM_COPYING UINT64_MAX

struct slot {
	uint8_t key[TM_MAX_KEY];
	uint32_t vlen[2];
	uint8_t zero[16];
	uint64_t version;
};
_Static_assert(sizeof(struct slot) == TM_LINE, "buffers begin on lines");

struct record {
	uint64_t seq;
	uint32_t n, crc;
	struct range {
		uint64_t off;
		uint32_t len, zero;
	} range[MOJIM_RANGES];
	uint64_t epoch, updates;
};
_Static_assert(sizeof(struct record) == TM_LINE, "the bytes begin on a line");

struct mojim_pool {
	struct head {
		uint64_t seq, epoch;
	} * head;
	uint8_t *area, *log;
	size_t area_bytes, log_bytes;
	uint64_t records;
};

/* --- area.c --- */

size_t mojim_pm_bytes(const struct tm_params *params);
unsigned mojim_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct mojim_pool mojim_pool_at(const struct tm_params *params, uint8_t *pm);
size_t mojim_record_bytes(const struct tm_params *params);
/* The key's slot, or a free one; NULL: there is neither. */
struct slot *mojim_slot(const struct mojim_pool *pool, const struct tm_params *params,
			const uint8_t *key);
/* So many slots later; NULL: there are not so many. */
struct slot *mojim_slot_after(const struct mojim_pool *pool, const struct tm_params *params,
			      struct slot *slot, unsigned later);
uint8_t *mojim_buffer(const struct slot *slot, const struct tm_params *params, unsigned which);
bool mojim_has_value(const struct slot *slot);
/* tm_store.fsck */
void mojim_fsck(const struct tm_env *env, struct tm_fsck *fsck);

/* --- record.c --- */

/* What a record takes over: bytes for a range of the area. */
struct source {
	struct range range;
	const void *bytes;
};
/* A record of these at `to`, which has mojim_record_bytes() for each update. */
void mojim_fill(struct record *to, struct head head, const struct tm_params *params,
		const struct source *source, unsigned n, unsigned updates);
/* The same record for another log, or another place. */
void mojim_for_log(struct record *to, const struct record *from, const struct tm_params *params,
		   struct head head);
/* The record of that number in the log; NULL: it is not there, not all of it. */
const struct record *mojim_record(const struct mojim_pool *pool, const struct tm_params *params,
				  uint64_t seq);
/* Bring it into the area, durably; then `head` says so, durably. */
void mojim_apply(const struct mojim_pool *pool, const struct tm_params *params,
		 const struct record *record);

/* tm_store's functions of these names. */
int mojim_dump(const struct tm_env *env, const void *key, size_t klen, struct tm_dump *out);
int mojim_recover(const struct tm_env *env);
int mojim_serve(const struct tm_env *env);
int mojim_open(const struct tm_env *env, void **out);
int mojim_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int mojim_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int mojim_del(void *client, const void *key, size_t klen);
int mojim_txn(void *client, struct tm_txn *txn);

/* A request of MOJIM_TXN and its reply: a request with the number of parts in `off`; then each
 * part's request or reply, with its value, in as many bytes. */
#define MOJIM_TXN 110

static inline size_t mojim_part_bytes(const struct tm_params *params)
{
	return kv_round_up(sizeof(struct kv_req) + params->max_vlen, 8);
}

static inline size_t mojim_txn_bytes(const struct tm_params *params, unsigned parts)
{
	return sizeof(struct kv_req) + parts * mojim_part_bytes(params);
}

static inline void *mojim_part(const struct tm_params *params, const void *message, unsigned i)
{
	return (uint8_t *)message + mojim_txn_bytes(params, i);
}

#endif
