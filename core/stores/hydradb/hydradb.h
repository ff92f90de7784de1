/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_HYDRADB_H
#define TM_STORES_HYDRADB_H
/*
 * HydraDB on one server (SV 3.1): clients WRITE requests into the server's memory, which polls it
 * and WRITEs its replies. A GET's reply has a pointer to the item, and a lease: until it ends the
 * client READs the item by itself. An update puts a new item in a new place, so a word after each
 * item, its guardian, says whether it is still the key's.
 *
 *	+-------------------------------+-----------------------------------+
 *	| table: kv_entry[slots]	| items: each begins on a line      |
 *	+-------------------------------+-----------------------------------+
 *
 *	kv_entry.where	of the item, as in kv_pool.h; its length is the whole item's
 *
 *	item	0x00 u32 klen, vlen
 *		0x08 u64 lease_end	when the last lease of it ends, on the server's clock; 0:
 *					no client has one
 *		0x10 ... key, value; zeros up to 8 bytes
 *		last u64 guardian	version * 2 + 1: the key's; version * 2: outdated
 *
 *	message	0x00 u32 len	of the body
 *		0x04 u32 mark	not 0
 *		0x08 ... body. Request: struct kv_req, then a PUT's value
 *			  Reply: struct hydradb_reply, then a GET's value
 *		end  u32 mark	the same, on the next multiple of 4
 *
 * A message is one WRITE. The polling side takes it when both marks are there, then zeroes it: the
 * next one has its end elsewhere. Slots of requests are the connections' (kv_slots.h); replies go
 * to the client's own memory.
 *
 * Clocks of two machines differ. So what travels is how long a lease lasts. The client counts from
 * when it sent its request, which is before the server did.
 *
 *	item.c		items, messages, and where they are
 *	recover.c	recovery, and the structural check
 *	server.c	the server
 *	client.c	what clients do
 *	hydradb.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv_place.h"
#include "core/stores/kv_slots.h"

/* The exported regions. */
#define HYDRADB_ITEMS	 0 /* read only */
#define HYDRADB_REQUESTS 1 /* write only */
#define HYDRADB_REPLIES	 2 /* no connection's: what the server WRITEs from */

#define HYDRADB_LEASE_NS 8000000ull /* 8 ms */
#define HYDRADB_LONGEST	 4	    /* a renewal lasts so many times as long, at most */
#define HYDRADB_DELAY_NS 100000ull  /* an outdated item's room is free so long after its leases */
#define HYDRADB_NEAR_NS	 50000ull   /* skew: less than that delay */
#define HYDRADB_FAR_NS	 4000000ull /* and more */

enum { CROWD = KV_CROWD, LEASE, RENEWAL, POINTERS, CHECK, MATCH, WHOLE, SKEW, PERSIST, BUG, KNOBS };
/* Of each store of this kind. */
#define HYDRADB_KNOBS                                                                              \
	[CROWD] = KV_CROWD_KNOB,                                                                   \
	[LEASE] =                                                                                  \
		{"lease", "on off",                                                                \
		 "off: a pointer is good for ever, and an outdated item's room is free after the " \
		 "eviction delay"},                                                                \
	[RENEWAL] = {"renewal", "noted unnoted",                                                   \
		     "unnoted: a renewal makes the client's lease longer, and not the server's"},  \
	[POINTERS] = {"pointers", "cached none", "none: each GET asks the server"},                \
	[CHECK] = {"check", "after before",                                                        \
		   "when a client looks whether its lease has ended: when it has READ the item, "  \
		   "too; before it READs only"},                                                   \
	[MATCH] = {"match", "live version",                                                        \
		   "what a client wants of a guardian: that it is a live item's; of the version "  \
		   "that the pointer is to"},                                                      \
	[WHOLE] =                                                                                  \
		{"whole", "marks crc",                                                             \
		 "what says that a message has landed: a mark at both ends; these, and they are "  \
		 "its CRC"},                                                                       \
	[SKEW] =                                                                                   \
		{"skew", "none near far",                                                          \
		 "by how much a client's clock is late: near, less than the eviction delay; far, " \
		 "more"},                                                                          \
	[PERSIST] = {"persist", "on off", "does the server flush anything?"}
enum { LEASE_ON, LEASE_OFF };
enum { RENEWAL_NOTED, RENEWAL_UNNOTED };
enum { POINTERS_CACHED, POINTERS_NONE };
enum { CHECK_AFTER, CHECK_BEFORE };
enum { MATCH_LIVE, MATCH_VERSION };
enum { WHOLE_MARKS, WHOLE_CRC };
enum { SKEW_NONE, SKEW_NEAR, SKEW_FAR };
enum { PERSIST_ON, PERSIST_OFF };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define HYDRADB_BUGS(X)                                                                            \
	X(guardian_late, "", LIN, "the former item is outdated when the PUT has been answered")    \
	X(free_now, "", RDA | LIN | MONO, "an outdated item's room is free at once")               \
	X(guardian_unread, "", LIN, "a client does not look at the guardian")                      \
	X(delete_stays, "", LIN | NORES, "a DELETE does not outdate the item")                     \
	X(key_assumed, "", RDA, "a client takes any key's pointer and item for its own")           \
	X(request_front, "", RDA | LIN, "the server takes a request when its first mark is there") \
	X(reply_front, "", RDA | LIN, "a client takes a reply when its first mark is there")       \
	X(reply_first, "", LIN | DUR, "a PUT or DELETE is answered before it is executed")         \
	X(item_unflushed, "", RDA | DUR, "only the entry is flushed")                              \
	X(index_first, "", RDA | KEEP,                                                             \
	  "the entry names the item, durably, before the item is durable")                         \
	X(index_unflushed, "", DUR, "only the item is flushed")                                    \
	X(delete_unflushed, "", DUR | NORES, "a DELETE is not flushed")                            \
	X(dead_first, "", FSCK,                                                                    \
	  "the former item is outdated, durably, before an entry names the new one")               \
	X(rooms_forgotten, "", DUR | RDA | FSCK,                                                   \
	  "after a restart the first PUTs overwrite what is there")                                \
	X(leases_kept, "", FSCK, "recovery leaves leases as they are")
enum { NO_BUG, HYDRADB_BUGS(KV_BUG_VALUE) HYDRADB_NO_BUG };

/* --- item.c: items --- */

struct hydradb_item {
	uint32_t klen, vlen;
	uint64_t lease_end;
	uint8_t bytes[]; /* key, value, guardian */
};

/* Bytes of an item with its guardian. */
uint32_t hydradb_item_bytes(uint32_t klen, uint32_t vlen);
uint64_t *hydradb_guardian(void *item, uint32_t bytes);
bool hydradb_live(uint64_t guardian);
uint64_t hydradb_version(uint64_t guardian);
/* Is it an item of this key, with so many bytes? It may be any bytes. */
bool hydradb_fits(const struct hydradb_item *item, uint32_t bytes, const uint8_t key[TM_MAX_KEY]);

/* The pool is one of kv_pool.h whose values are items: these parameters with items' lengths. */
struct tm_params hydradb_pool_params(const struct tm_params *params);
size_t hydradb_pm_bytes(const struct tm_params *params);
unsigned hydradb_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
bool hydradb_names_item(const struct kv_entry *entry);
/* What an entry names, which lies in the pool. */
struct hydradb_item *hydradb_item_at(const struct kv_pool *pool, uint64_t where);

/* --- item.c: messages --- */

/* Where the key's item is, and how long a client may READ it there. bytes 0: nowhere. */
struct hydradb_pointer {
	uint64_t off; /* in HYDRADB_ITEMS */
	uint32_t bytes;
	uint32_t zero;
	uint64_t version;
	uint64_t lease_ns; /* 0: for ever */
};

struct hydradb_reply {
	int32_t status; /* 0 or -errno */
	uint32_t zero;
	struct hydradb_pointer pointer;
};

#define HYDRADB_BODY 8 /* where a message's body is */

_Static_assert(HYDRADB_BODY + sizeof(struct kv_req) == TM_LINE, "a PUT's value begins on a line");

/* Lengths of the longest ones, in whole lines. */
size_t hydradb_request_bytes(const struct tm_params *params);
size_t hydradb_reply_bytes(const struct tm_params *params);
/* Length of a message with such a body. */
size_t hydradb_message_bytes(uint32_t len);
/* Put marks round a body; `number`: of the client's requests. */
void hydradb_mark(uint8_t *message, uint32_t len, uint32_t number, const struct tm_params *params);
/* Has it landed, in `cap` bytes? Then *len is its body's length. `front`: a seeded bug's, the
 * first mark is enough. */
bool hydradb_landed(const uint8_t *message, size_t cap, const struct tm_params *params, bool front,
		    uint32_t *len);

/* tm_store's functions of these names. */
int hydradb_recover(const struct tm_env *env);
void hydradb_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int hydradb_serve(const struct tm_env *env);
int hydradb_open(const struct tm_env *env, void **out);
int hydradb_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int hydradb_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int hydradb_del(void *client, const void *key, size_t klen);

#endif
