/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_NESSIE_H
#define TM_STORES_NESSIE_H
/*
 * Nessie (SV 3.1, table 2): clients do everything by themselves. A PUT is a WRITE and a
 * compare-and-swap, a GET is READs. The server's process only takes connections.
 *
 *	+-----------------------------+----------------------------------------------------+
 *	| index: u64 word[slots]      | data: for each client its share, of equal entries  |
 *	+-----------------------------+----------------------------------------------------+
 *
 *	word	bit  63     used: the key has a value; 0 with the rest not zero: it was deleted
 *		bit  62     pending: it need not be durable yet
 *		bits 61..48 tag, of the key's hash
 *		bits 47..40 node, the machine that has the entry: 1; 0: the slot has no owner
 *		bits 39..0  where the entry begins in the data, in lines
 *
 *	entry	0x00 u32 klen
 *		0x04 u32 vlen
 *		0x08 u64 crc	of the lengths (high half), of key and value (low half)
 *		0x10 ...     key, value
 *
 * A key has two candidate slots, and for the rare case that both are other keys' the two that
 * follow the second one. It takes the first without an owner, and the slot is the key's for ever,
 * also when the key is deleted (delete=mark): so no two clients can put a key in two slots, and a
 * search ends at a slot without an owner.
 *
 * A client writes to entries of its own share only. It finds out by itself which of them no word
 * names any more, and lets GRACE pass before it writes to such an entry; a GET that has taken as
 * long from its first READ to its last starts again. So no GET sees an entry that is written to.
 *
 *	layout.c	words, entries, candidates
 *	space.c		a client's share
 *	recover.c	recovery, and the structural check
 *	server.c	what the server does: nothing
 *	client.c	what clients do
 *	nessie.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv_small.h"

/* The exported regions. */
#define NESSIE_INDEX 0 /* read, write and atomics */
#define NESSIE_DATA  1 /* read and write */

#define NESSIE_CANDIDATES 4	  /* at most */
#define NESSIE_GRACE_NS	  1000000 /* 1 ms */

enum {
	CROWD = KV_CROWD,
	FLUSH,
	FLUSH_BY,
	READS,
	CONNS,
	DELETE,
	REUSE_NOW,
	CLOCK,
	SHARE,
	CRC,
	VERIFY_OBJ_KEY,
	BUG,
	KNOBS
};
enum { FLUSH_BOTH, FLUSH_NONE };
enum { BY_COMMIT, BY_FLUSH };
enum { READS_DURABLE, READS_VISIBLE };
enum { CONNS_TWO, CONNS_ONE };
enum { DELETE_MARK, DELETE_ZERO };
enum { SHARE_ROOMY, SHARE_TIGHT };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define NESSIE_BUGS(X)                                                                         \
	X(cas_early, "", DUR | KEEP, "the word is changed before the entry is there")          \
	X(unchecked, " crowd=on", RDA, "a client checks neither CRC nor key")                  \
	X(del_write, " delete=zero crowd=on", LIN | DUR,                                       \
	  "a DELETE WRITEs its word, whatever is there by now")                                \
	X(lost_won, "", LIN | DUR, "a compare-and-swap that was lost is taken as won")         \
	X(data_unflushed, "", DUR | KEEP, "an entry is not flushed")                           \
	X(index_unflushed, "", DUR, "a PUT's word is not flushed")                             \
	X(delete_unflushed, "", DUR | NORES, "a DELETE's word is not flushed")                 \
	X(pending_early, "", DUR | MONO, "a word's mark goes before the word is flushed")      \
	X(absence_trusted, "", DUR, "a GET that finds nothing does not look at marks")         \
	X(passed_trusted, " crowd=on", DUR | MONO,                                             \
	  "a PUT passes over slots of other keys that are not durably theirs")                 \
	X(sweep_pending, "", DUR | KEEP,                                                       \
	  "a client takes an entry for free that a durable word may name")                     \
	X(sweep_skipped, "", RDA | LIN | DUR,                                                  \
	  "a client that comes back takes its former self's entries for free")                 \
	X(owner_ignored, " crowd=on", LIN | FSCK,                                              \
	  "a slot whose key is deleted is given to another key")                               \
	X(index_assumed, "", DUR | MONO,                                                       \
	  "recovery takes the index for durable, which it is not where only the process died") \
	X(other_again, " crowd=on", LIVE,                                                      \
	  "a GET that finds another key's entry starts again, as if it were being written")
enum { NO_BUG, NESSIE_BUGS(KV_BUG_VALUE) };

/* Is anything flushed? */
static inline bool nessie_flushes(const struct tm_params *params)
{
	return params->knob[FLUSH] == FLUSH_BOTH;
}

/* Do readers make durable what they return? */
static inline bool nessie_reads_durable(const struct tm_params *params)
{
	return nessie_flushes(params) && params->knob[READS] == READS_DURABLE;
}

/* ---------------------------------------------------------------- layout */

#define NESSIE_USED    (1ull << 63)
#define NESSIE_PENDING (1ull << 62)

struct nessie_entry {
	uint32_t klen, vlen;
	uint64_t crc;
	uint8_t bytes[];
};

struct nessie_pool {
	uint64_t slots;	      /* a power of two */
	uint64_t shares;      /* one for each client */
	uint64_t entries;     /* of a share */
	uint64_t entry_lines; /* of an entry */
	bool crowded;
	uint64_t *index;
	uint8_t *data;
};

/* Where a key may be, and what its word says of it. */
struct nessie_place {
	unsigned slots;
	uint64_t slot[NESSIE_CANDIDATES];
	uint64_t tag;
};

size_t nessie_pm_bytes(const struct tm_params *params);
unsigned nessie_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
/* pm: NULL for a client. */
struct nessie_pool nessie_pool_at(const struct tm_params *params, uint8_t *pm);
struct nessie_place nessie_place_of(const struct nessie_pool *pool, const uint8_t key[TM_MAX_KEY]);

/* The word that names entry number `entry` among all shares' entries. */
uint64_t nessie_word(const struct nessie_pool *pool, const struct nessie_place *place,
		     uint64_t entry);
/* Has some key this slot? */
bool nessie_owned(uint64_t word);
uint64_t nessie_tag(uint64_t word);
/* The number of the entry that an owned slot's word names; the word may be any bytes. */
bool nessie_names(const struct nessie_pool *pool, uint64_t word, uint64_t *entry);
/* Bytes from the data's begin. */
uint64_t nessie_entry_off(const struct nessie_pool *pool, uint64_t entry);

uint64_t nessie_crc(const struct nessie_entry *entry);
/* Are its lengths possible, and is its CRC right? */
bool nessie_sane(const struct nessie_entry *entry, uint32_t max_vlen);
bool nessie_whole(const struct nessie_entry *entry, uint32_t max_vlen);

/* ----------------------------------------------------------------- client */

/* An entry of a client's share. */
struct nessie_own {
	bool free;
	uint64_t since; /* rt_now(): no word names it any more */
};

struct nessie_client {
	struct kv_client kv; /* its connection: to the index */
	struct nessie_pool pool;
	uint64_t first;		  /* of the share: the number of its first entry */
	struct nessie_own *own;	  /* of the share's entries */
	struct nessie_entry *out; /* an entry that is written */
};

/* space.c: which entries of the share no word names. Others' words that this depends on are durable
 * then. */
int nessie_sweep(struct nessie_client *client);
/* Take an entry of the share; *entry: its number among all shares' entries. -ENOSPC: none is
 * free. */
int nessie_take(struct nessie_client *client, uint64_t *entry);
/* No word names it any more, durably. Another client's is left to that. */
void nessie_give(struct nessie_client *client, uint64_t entry);

/* client.c: READ a slot's word. */
int nessie_read_word(struct nessie_client *client, uint64_t slot, uint64_t *word);
/* client.c: make the slot's word, which is pending, durable. -EAGAIN: it is another one now. */
int nessie_settle(struct nessie_client *client, uint64_t slot, uint64_t word);

/* tm_store's functions of these names. */
int nessie_recover(const struct tm_env *env);
void nessie_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int nessie_serve(const struct tm_env *env);
int nessie_open(const struct tm_env *env, void **out);
int nessie_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int nessie_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int nessie_del(void *client, const void *key, size_t klen);

#endif
