/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_PILAF_H
#define TM_STORES_PILAF_H
/*
 * Pilaf (SV 3.1): the server does all updates, clients READ by themselves and check what they read
 * by two checksums.
 *
 *	+------------+---------------------+--------------------------------+
 *	| undo: line | table: entry[slots] | pairs: each begins on a line   |
 *	+------------+---------------------+--------------------------------+
 *
 *	entry	0x00 u64 addr	of the pair, bytes from where pairs begin
 *		0x08 u32 klen
 *		0x0c u32 vlen
 *		0x10 u32 cap	bytes that the pair may have
 *		0x14 u8  used
 *		0x15 u8  hash	which of its key's entries this is: 0, 1, ...
 *		0x16 u16 zero
 *		0x18 u64 crc1	of the pair
 *		0x20 u64 crc2	of the entry before it
 *		0x28 u64 undoes zero
 *		0x30 ... zero
 *
 *	undo	an entry as it was before an update; `undoes` is its number, from 1; 0: there is
 *		nothing to undo
 *
 *	pair	klen bytes of the key, vlen of the value
 *
 * An entry that is not used has a crc2 as well. The paper's store is in DRAM. What a power failure
 * leaves is decided by two knobs: `place`, may a pair be overwritten, and `flush`, is anything
 * flushed, and an entry kept in the undo slot while it changes?
 *
 *	layout.c	entries and their checksums
 *	recover.c	recovery, and the structural check
 *	server.c	what the server does: PUT, DELETE
 *	client.c	what clients do: GET
 *	pilaf.c		the store: knobs, variants, what it promises
 */
#include "core/stores/kv_small.h"

/* The exported regions, read only. */
#define PILAF_TABLE 0
#define PILAF_PAIRS 1

/* A key is in one of so many entries in a row: a sixteenth of the table, but not fewer and not more
 * than these. The more keys there are, the more of them meet somewhere. */
#define PILAF_PROBES	     8
#define PILAF_PROBES_MOST    32
#define PILAF_PROBES_CROWDED 256 /* that `hash` can tell apart */

enum {
	CROWD = KV_CROWD,
	PLACE,
	FLUSH,
	NO_CRC2,
	PROBE_UNBOUNDED,
	VERIFY_OBJ_KEY,
	DELETE,
	BUG,
	KNOBS
};
enum { PLACE_NEW, PLACE_IN_PLACE };
enum { FLUSH_ORDERED, FLUSH_NONE };
enum { DELETE_ENTRY_FIRST, DELETE_KEY_FIRST };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define PILAF_BUGS(X)                                                                             \
	X(crc2_first, "", LIVE, "an entry gets crc2 before the crc1 that it covers")              \
	X(old_vlen, "", LIVE | DUR | KEEP | FSCK, "crc1 is computed with the old value's length") \
	X(freed_first, "", LIN | DUR | NORES,                                                     \
	  "a DELETE gives the pair's room away, and clears the entry when it has been answered")  \
	X(undo_cleared, "", DUR | KEEP, "the undo slot is cleared before the entry is durable")   \
	X(undo_unflushed, "", DUR | KEEP, "the undo slot is not flushed")                         \
	X(undo_always, "", DUR | KEEP | FSCK, "recovery undoes an update that is complete")       \
	X(undo_late, " delete=key_first", DUR | KEEP,                                             \
	  "recovery clears entries before the undo slot, which may still have one")               \
	X(cleared_first, "", DUR | KEEP,                                                          \
	  "recovery clears an entry before it restores it from the undo slot")                    \
	X(pair_unflushed, "", DUR | KEEP, "the pair is not flushed")                              \
	X(entry_unflushed, "", DUR | KEEP, "a PUT's entry is not flushed")                        \
	X(delete_unflushed, "", DUR | NORES, "a DELETE's entry is not flushed")                   \
	X(room_early, "", DUR | KEEP, "a pair's room is free when the next one is begun")         \
	X(rooms_forgotten, "", LIVE | DUR | FSCK,                                                 \
	  "after a restart the first PUTs overwrite what is there")                               \
	X(table_assumed, "", DUR | KEEP,                                                          \
	  "recovery takes the table for durable, which it is not where only the process died")    \
	X(pair_assumed, " place=in_place", LIVE | FSCK, "recovery looks at no pair")              \
	X(crc1_unchecked, "", RDA, "a GET does not check the pair")                               \
	X(first_free, " crowd=on", LIN | DUR | NORES | FSCK,                                      \
	  "a PUT takes the first entry that is not used, whatever comes after it")
enum { NO_BUG, PILAF_BUGS(KV_BUG_VALUE) };

/* ---------------------------------------------------------------- layout */

struct pilaf_entry {
	uint64_t addr;
	uint32_t klen, vlen;
	uint32_t cap;
	uint8_t used, hash;
	uint16_t none;
	uint64_t crc1, crc2;
	uint64_t undoes;
	uint64_t zero[2];
};

_Static_assert(sizeof(struct pilaf_entry) == TM_LINE, "an entry is a line");

struct pilaf_pool {
	struct pilaf_entry *undo, *entry;
	struct kv_table table; /* where keys belong; it has no entries of its own */
	uint64_t probes;       /* entries in which a key may be */
	uint8_t *pairs;
	uint64_t lines; /* of the pairs */
};

size_t pilaf_pm_bytes(const struct tm_params *params);
unsigned pilaf_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
/* pm: NULL for a client. */
struct pilaf_pool pilaf_pool_at(const struct tm_params *params, uint8_t *pm);
/* The number of the key's entry `probe`. */
uint64_t pilaf_slot(const struct pilaf_pool *pool, const uint8_t key[TM_MAX_KEY], uint64_t probe);

/* Does a used entry's pair lie among the pairs, with a key and a value that can be? */
bool pilaf_in_pool(const struct pilaf_pool *pool, const struct pilaf_entry *entry,
		   uint32_t max_vlen);
uint64_t pilaf_crc1(const void *pair, const struct pilaf_entry *entry);
uint64_t pilaf_crc2(const struct pilaf_entry *entry);
/* Is its crc2 right, or is there to be none (no_crc2)? */
bool pilaf_entry_whole(const struct pilaf_entry *entry, const struct tm_params *params);

/* tm_store's functions of these names. */
int pilaf_format(const struct tm_env *env);
int pilaf_recover(const struct tm_env *env);
void pilaf_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int pilaf_serve(const struct tm_env *env);
int pilaf_open(const struct tm_env *env, void **out);
int pilaf_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int pilaf_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int pilaf_del(void *client, const void *key, size_t klen);

#endif
