/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_TABLE_H
#define TM_STORES_KV_TABLE_H
/*
 * A hash table in PM with one word per key, for the small stores: linear probing, entries of
 * one line each that are never given back.
 *
 *	0x00 u8  key[32]  padded with zeros
 *	0x20 u64 where	  of the store; one store changes it
 *	0x28 u64 ctl	  bit 0 used; bits 8..15 klen; bits 16..63 a check of the key, or zero
 *	0x30 u64 lock	  of the store; zero where it has none
 *	0x38 ...     zero
 */
#include "core/stores/kv.h"
#include "core/stores/rpc.h"

#define KV_USED	      1ull
#define KV_KLEN_SHIFT 8
#define KV_KEY_SHIFT  16

struct kv_entry {
	uint8_t key[TM_MAX_KEY];
	uint64_t where;
	uint64_t ctl;
	uint64_t lock;
	uint64_t zero;
};

_Static_assert(sizeof(struct kv_entry) == TM_LINE, "an entry is a line");

/* A knob of the stores with such a table, the first in their lists. */
#define KV_CROWD 0
#define KV_CROWD_KNOB                                                                             \
	{                                                                                         \
		"crowd", "off on",                                                                \
			"all keys have one of the table's last two slots for their home, and it " \
			"has hardly more slots than keys"                                         \
	}

struct kv_table {
	struct kv_entry *entry; /* a client's: NULL */
	uint64_t slots;		/* a power of two, at least twice the keys, or crowded: the keys */
	bool crowded;
};

/* The table of a store with these parameters; pm: where it begins, NULL for a client. */
struct kv_table kv_table_at(const struct tm_params *params, uint8_t *pm);
/* Where the search for a key begins: a slot's number, modulo their number. */
uint64_t kv_table_home(const struct kv_table *table, const uint8_t key[TM_MAX_KEY]);
/* The key's entry, or the free one in which it belongs; NULL: the table is full. */
struct kv_entry *kv_table_find(const struct kv_table *table, const uint8_t key[TM_MAX_KEY],
			       bool *found);
/* Can this be a used entry's key: klen bytes, then zeros? */
bool kv_entry_sane(const struct kv_entry *entry);
/* The ctl of a used entry with a check of its key, for a store that does not make the key durable
 * first: of a line in flight any words may survive a power failure. */
uint64_t kv_checked_ctl(const uint8_t key[TM_MAX_KEY], unsigned klen);
/* Is this such an entry, with all of its key? */
bool kv_entry_whole(const struct kv_entry *entry);
/* Give an entry up. It is unused before its key goes: else a power failure in between could leave
 * the rest of a key, which is no key, in use. Not flushed. */
void kv_entry_clear(struct kv_entry *entry);
/* A client READs the key's entry out of an exported table. 0, -ENOENT, or -errno. */
int kv_table_read(struct rpc_conn *conn, unsigned region, const struct kv_table *table,
		  const uint8_t key[TM_MAX_KEY], struct kv_entry *entry);

#endif
