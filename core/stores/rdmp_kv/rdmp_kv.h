/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_RDMP_KV_H
#define TM_STORES_RDMP_KV_H
/*
 * RDMP-KV (RK III). The knob `method` says whether client or server makes a value durable and sets
 * its flags, the knob `backend` where GETs read it:
 *
 *	log_data	the objects; the log says which is current
 *	log		a copy of the objects in DRAM, at the same offsets: records and objects
 *			together are the paper's log, which only recovery reads
 *	none		the objects; in the log's place is a table, a line for each key, which says
 *			which is current, and which was before
 *
 *	+--------------------------------+------------------------------------+
 *	| log: record[updates], appended | objects: each begins on a line     |
 *	+--------------------------------+------------------------------------+
 *
 *	record	0x00 u8  key[32] padded with zeros
 *		0x20 u64 off	 of the object, bytes from where objects begin
 *		0x28 u32 vlen
 *		0x2c ... zero
 *		0x38 u8  klen
 *		0x39 u8  kind	 enum rdmp_kind
 *		0x3a u16 zero
 *		0x3c u32 crc	 of all before it
 *
 *	entry of the table
 *		0x00 u8  key[32] padded with zeros
 *		0x20 u8  klen	 0: no key has the entry
 *		0x28 u64 before	 reference: what to go back to while `current` has no PF
 *		0x30 u64 current likewise
 *
 *	reference
 *		u32 number of the object's first line, from 1 on; 0: none
 *		u32 vlen; RDMP_DELETED: the key has no value
 *
 *	object	klen bytes of the key, vlen of the value, and two flags in one word, which has
 *		nothing else in it with flags_own_word=on and method=cc_adp
 *		PF  all of it is durable; recovery looks at no other
 *		VF  PF is durable; a GET looks at no other
 *
 * The log is one of undo: its records say which objects were begun, and recovery undoes those
 * without PF. What is current of a key follows from the log's order: the newest record that is not
 * undone. The index over it is in DRAM.
 *
 *	layout.c	records, objects, the index
 *	table.c		the table of the backend without a log
 *	recover.c	recovery, and the structural check
 *	server.c	what the server does
 *	client.c	what clients do
 *	rdmp_kv.c	the store: knobs, variants, what it promises
 */
#include "core/stores/kv.h"
#include "core/stores/rpc.h"

/* The exported regions. */
#define RDMP_OBJECTS 0 /* read and write */
#define RDMP_COPIES  1 /* likewise, in DRAM: with backend=log */

enum {
	METHOD,
	COMMIT,
	THRESHOLD,
	OWN_WORD,
	BACKEND,
	COPY,
	COPY_FLAGS,
	KEEP_PREV,
	GET_PREV,
	RECOVER_VF,
	FREE,
	BUG,
	KNOBS
};
/* Server-assisted; the client commits, and the server sets the flags, when it is asked to, or on
 * the immediate of the Commit; the Commit sets them; flags that are written with the value, and a
 * READ. */
enum { SA, CC_SA, CC_IMM, CC_ADP, CC_EVALUATED };
enum { COMMIT_NATIVE, COMMIT_READ };
enum { LOG_AND_DATA, LOG_IN_PM, NO_LOG };
enum { COPY_FIRST, COPY_LATE };
enum { FREE_NEVER, FREE_OLD, FREE_EARLY };
/* Seeded bugs (KV_BUG_*): their further knobs, what they break, what they do. */
#define RDMP_BUGS(X)                                                                             \
	X(pf_with_value, "", RDA, "the value and PF are flushed together")                       \
	X(vf_early, " get_prev=off", MONO, "VF is set before PF is durable")                     \
	X(pf_read, " get_prev=off", MONO, "a GET looks at PF")                                   \
	X(value_unflushed, "", RDA, "only the line with the flags is flushed")                   \
	X(record_unflushed, "", DUR | KEEP | MONO, "a PUT's record is not flushed")              \
	X(delete_unflushed, "", DUR, "a DELETE's record is not flushed")                         \
	X(undo_forgotten, "", FSCK, "recovery does not say in the log what it has undone")       \
	X(undo_unflushed, "", RDA | FSCK, "it does, but does not flush it")                      \
	X(oldest_kept, "", KEEP | DUR | FSCK,                                                    \
	  "recovery undoes every PUT but the first that is whole")                               \
	X(lines_forgotten, "", RDA | LIN | FSCK,                                                 \
	  "after a restart the first PUTs overwrite what is current")                            \
	X(flags_kept, "", RDA | LIN, "a new object has the flags of what was there before")      \
	X(slot_shared, "", RDA | OK,                                                             \
	  "a PUT that is held up ends another client's, whose value is not there yet")           \
	X(pf_assumed, "", DUR | MONO | KEEP,                                                     \
	  "recovery takes PF for durable, which it is not where only the process died")          \
	X(log_assumed, "", DUR | MONO | KEEP, "likewise the log's records")                      \
	X(commit_skipped, " method=cc_sa", RDA, "the client does not commit")                    \
	X(commit_short, " method=cc_adp", RDA, "the client commits the value's last line alone") \
	X(flags_overtake, " method=cc_adp", RDA,                                                 \
	  "the flags are written before the value is committed")                                 \
	X(copies_forgotten, " backend=log", RDA, "after a restart there are no copies in DRAM")
enum { NO_BUG, RDMP_BUGS(KV_BUG_VALUE) };

/* ---------------------------------------------------------------- layout */

enum rdmp_kind { RDMP_PUT = 1, RDMP_DEL, RDMP_UNDONE };

struct rdmp_record {
	uint8_t key[TM_MAX_KEY];
	uint64_t off;
	uint32_t vlen;
	uint32_t zero[3];
	uint8_t klen;
	uint8_t kind;
	uint16_t none;
	uint32_t crc;
};

_Static_assert(sizeof(struct rdmp_record) == TM_LINE, "a record is a line");

struct rdmp_entry {
	uint8_t key[TM_MAX_KEY];
	uint8_t klen;
	uint8_t zero[7];
	uint64_t before, current; /* in the order of their stores: a line may be torn */
	uint64_t none;
};

_Static_assert(sizeof(struct rdmp_entry) == TM_LINE, "an entry is a line");

#define RDMP_DELETED UINT32_MAX

struct rdmp_pool {
	const struct tm_params *params;
	struct rdmp_entry *table; /* NULL: there is a log */
	uint64_t entries;	  /* a power of two */
	struct rdmp_record *log;  /* without one in PM: of DRAM, from rdmp_index_build() on */
	uint32_t records;	  /* that there is room for */
	uint8_t *objects;
	uint64_t lines;
};

size_t rdmp_pm_bytes(const struct tm_params *params);
unsigned rdmp_regions(const struct tm_params *params, struct tm_region *out, unsigned max);
struct rdmp_pool rdmp_pool_at(const struct tm_params *params, uint8_t *pm);

/* Where in an object its flags are, PF and then VF, in one word; its bytes, and lines. */
uint64_t rdmp_flags_at(const struct tm_params *params, unsigned klen, uint32_t vlen);
uint64_t rdmp_object_bytes(const struct tm_params *params, unsigned klen, uint32_t vlen);
uint64_t rdmp_object_lines(const struct tm_params *params, unsigned klen, uint32_t vlen);
/* A record's object, and its flags. */
uint8_t *rdmp_object(const struct rdmp_pool *pool, const struct rdmp_record *record);
uint8_t *rdmp_flags(const struct rdmp_pool *pool, const struct rdmp_record *record);

/* Give it this kind by one store of 8 bytes. */
void rdmp_record_set(struct rdmp_record *record, enum rdmp_kind kind);
/* Is there a record, all of it? */
bool rdmp_record_whole(const struct rdmp_pool *pool, uint32_t number);

/* An index of the log in DRAM. Numbers of records begin at 1; 0: none. */
struct rdmp_key {
	uint8_t key[TM_MAX_KEY];
	uint32_t newest; /* record that is not undone; 0: the place is free */
};

struct rdmp_index {
	struct rdmp_key *key; /* open addressing */
	uint64_t places;      /* a power of two, twice the keys at least */
	uint32_t *older;      /* by record: its key's record before it */
	uint32_t records;     /* in the log */
};

/* An index of what the log holds now. 0 or -ENOMEM. */
int rdmp_index_build(struct rdmp_index *index, struct rdmp_pool *pool);
void rdmp_index_free(struct rdmp_index *index, struct rdmp_pool *pool);
/* The key's place, or the free one in which it belongs; NULL: there are too many keys. */
struct rdmp_key *rdmp_index_find(const struct rdmp_index *index, const uint8_t key[TM_MAX_KEY]);
/* The record `number`, which has just been written, is its key's newest. */
void rdmp_index_add(struct rdmp_index *index, const struct rdmp_pool *pool, uint32_t number);
static inline struct rdmp_record *rdmp_record(const struct rdmp_pool *pool, uint32_t number)
{
	return &pool->log[number - 1];
}

/* ----------------------------------------------------------------- table */

size_t rdmp_table_bytes(const struct tm_params *params);
/* The key's entry, or the free one in which it belongs; NULL: there is none. */
struct rdmp_entry *rdmp_entry_find(const struct rdmp_pool *pool, const uint8_t key[TM_MAX_KEY]);
/* Make durable what the index knows of the record's key: the newest record, and the newest of those
 * before it that is whole. */
void rdmp_entry_update(const struct rdmp_pool *pool, const struct rdmp_index *index,
		       uint32_t number);
/* A record in DRAM for each entry, which is its key's only one. */
void rdmp_table_load(struct rdmp_pool *pool, struct rdmp_index *index);
/* Entries go back to what is whole. */
void rdmp_table_recover(const struct rdmp_pool *pool);

/* -------------------------------------------------------------- messages */

/* A reply. */
struct rdmp_rsp {
	int32_t status; /* 0 or -errno */
	uint32_t vlen;	/* GET */
	uint64_t off;	/* of the object */
	uint32_t slot;	/* PUT: the immediate of what ends it */
	uint32_t zero;
};

_Static_assert(sizeof(struct rdmp_rsp) == 24, "a fixed layout without padding");

/* Does a client post RDMA Commits? */
bool rdmp_commits(const struct tm_params *params);
/* Does a value of this length travel in the request? */
bool rdmp_is_small(const struct tm_params *params, size_t vlen);
/* Length of the longest request. */
size_t rdmp_message_bytes(const struct tm_params *params);

/* tm_store's functions of these names. */
int rdmp_recover(const struct tm_env *env);
void rdmp_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int rdmp_serve(const struct tm_env *env);
int rdmp_open(const struct tm_env *env, void **out);
int rdmp_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int rdmp_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int rdmp_del(void *client, const void *key, size_t klen);

#endif
