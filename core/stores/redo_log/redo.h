/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_REDO_H
#define TM_STORES_REDO_H
/*
 * Redo Logging and Read After Write (ER 5.1): a PUT is a record in a log, and the server applies
 * records to where values stay when it finds the time.
 *
 *	redo	the record travels in the request; the server persists it, and replies
 *	raw	the client WRITEs the record into the log, and READs behind it: what it wrote has
 *		left the NIC then. The server is not told
 *
 *	+---------------+-------------------+-----------------+------------------------+
 *	| applied: line | ring: slot[slots] | table: kv_entry | values, one per record |
 *	+---------------+-------------------+-----------------+------------------------+
 *
 *	slot	0x00 u8  key[32] padded with zeros
 *		0x20 u64 seq	 1, 2, ...; its place in the ring is seq modulo slots
 *		0x28 u32 vlen
 *		0x2c u8  klen
 *		0x2d u8  op	 KV_PUT or KV_DEL
 *		0x2e u16 zero
 *		0x30 u32 crc	 of all before it, and of the value's CRC
 *		0x34 ... zero
 *		0x40 ... value
 *
 * Records up to `applied` are in the table, whose form is that of kv_pool.h. The table is what was
 * applied, the records after it, in the order of their numbers, are newer.
 *
 *	record.c	records, and how one is applied
 *	recover.c	recovery
 *	server.c	what the server does: requests, and a task that applies
 *	client.c	what clients do
 *	redo_log.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv_pool.h"

/* The exported region. */
#define REDO_RING 0 /* read and write */

enum { CROWD = KV_CROWD, METHOD, RING, REPLAY, ORDER, BUG, KNOBS };
enum { METHOD_REDO, METHOD_RAW };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define REDO_BUGS(X)                                                                              \
	X(ack_early, "", DUR, "a PUT is acknowledged when its record is not durable")             \
	X(applied_first, "", DUR | KEEP | RDA, "a record counts as applied before it is applied") \
	X(value_unflushed, "", RDA | DUR, "the applied value is not flushed")                     \
	X(entry_unflushed, "", DUR | KEEP, "its entry is not")                                    \
	X(crc_unchecked, " method=raw", RDA, "a record is taken for whole")                       \
	X(seq_unchecked, " ring=small", LIN | KEEP | DUR,                                         \
	  "a record of the ring's last round counts as one of this")                              \
	X(oldest_first, "", LIN, "a GET takes the oldest record of its key")                      \
	X(log_unread, "", LIN, "a GET takes what was applied")                                    \
	X(delete_unflushed, "", DUR, "a DELETE's record is not flushed")                          \
	X(slot_early, " ring=small", RDA | LIN | DUR | KEEP,                                      \
	  "a slot is given away while its record is being applied")                               \
	X(read_skipped, " method=raw", LIN, "a PUT ends with the WRITE")                          \
	X(record_assumed, " method=raw", RDA | FSCK, "a record is applied that is not durable")   \
	X(get_unflushed, " method=raw", MONO, "a GET returns a record that is not durable")       \
	X(apply_waits, " ring=small", LIVE,                                                       \
	  "a record that is not whole yet is looked at again when there is another one")          \
	X(recover_by_key, "", DUR | KEEP,                                                         \
	  "recovery applies a key's newest record, and those before it count as applied")         \
	X(applied_early, "", LIN,                                                                 \
	  "a GET that comes while a record is being applied finds it nowhere")
enum { NO_BUG, REDO_BUGS(KV_BUG_VALUE) };

struct redo_record {
	uint8_t key[TM_MAX_KEY];
	uint64_t seq;
	uint32_t vlen;
	uint8_t klen;
	uint8_t op;
	uint16_t none;
	uint32_t crc;
	uint32_t zero[3];
};

_Static_assert(sizeof(struct redo_record) == TM_LINE, "the value begins on a line");

struct redo_pool {
	uint64_t *applied;
	uint8_t *ring;
	uint64_t slots, slot_bytes;
	struct kv_pool pool;
	uint64_t records; /* that there is room for values of */
};

/* --- record.c --- */

size_t redo_pm_bytes(const struct tm_params *params);
unsigned redo_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct redo_pool redo_pool_at(const struct tm_params *params, uint8_t *pm);
/* The environment of the pool within it that kv_pool.h knows. */
struct tm_env redo_inner(const struct tm_env *env);
uint64_t redo_slot_bytes(const struct tm_params *params);
/* Where in the ring a record is. */
uint64_t redo_off(const struct redo_pool *pool, uint64_t seq);
struct redo_record *redo_record(const struct redo_pool *pool, uint64_t seq);
/* Make `to` a record of what a request asks for; the value is copied after it. */
void redo_fill(struct redo_record *to, const struct kv_req *req, uint64_t seq, const void *value);
/* Is this record there, all of it? */
bool redo_is_whole(const struct redo_pool *pool, uint64_t seq, const struct tm_params *params);
/* Bring the record, which is whole, into the table, durably; then `applied` says so, durably. */
void redo_apply(struct redo_pool *pool, uint64_t seq, const struct tm_params *params);

/* --- messages --- */

/* A reply; a GET's value follows it. */
struct redo_rsp {
	int32_t status; /* 0 or -errno */
	uint32_t vlen;
	uint64_t off, seq; /* PUT with raw: where the record belongs, and its number */
};

_Static_assert(sizeof(struct redo_rsp) == 24, "a fixed layout without padding");

static inline size_t redo_message_bytes(const struct tm_params *params)
{
	return sizeof(struct kv_req) + params->max_vlen;
}

/* tm_store's functions of these names. */
int redo_recover(const struct tm_env *env);
void redo_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int redo_serve(const struct tm_env *env);
int redo_open(const struct tm_env *env, void **out);
int redo_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int redo_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int redo_del(void *client, const void *key, size_t klen);

#endif
