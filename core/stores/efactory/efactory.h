/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_EFACTORY_H
#define TM_EFACTORY_H
/*
 * eFactory (EF: ICPP'21): a key-value store with client-active PUTs. A PUT is
 * acknowledged when its value has been written, one-sided, and long before it is
 * durable. What a GET returns is durable: objects carry a flag that says so, and
 * a GET that meets an object without it has the server check and persist it first.
 * Every PUT makes a new version; a reader, and recovery, that find the newest
 * version incomplete go back along the list of versions to one that is intact.
 *
 *	efactory.c  what it promises, its knobs and seeded bugs, its sizes
 *	client.c    PUT, hybrid GET, DELETE	(EF 4.3.1, 4.3.3)
 *	server.c    requests, and the verifier	(EF 4.3.1 - 4.3.3)
 *	recover.c   format, recovery		(EF 4.1)
 *	fsck.c	    what must hold after recovery
 *
 * The PM pool:
 *
 *	+-------------------------------+----------------------------------------+
 *	| table: entry[slots], 64 B each | log: header line | objects, appended -> |
 *	+-------------------------------+----------------------------------------+
 *	slots: a power of two, at least 2 x keys
 *
 * All offsets are bytes from the start of the log; 0 is the log's header line,
 * never an object, and stands for "none".
 *
 *	log header		     entry (one line)
 *	0x00 u64 magic		     0x00 u8  key[32]  padded with zeros
 *	0x08 ...     zero	     0x20 u64 off[0]   newest version in log A, 0 = none
 *				     0x28 u64 off[1]   reserved: in log B, while cleaning
 *				     0x30 u64 ctl      bit 0 mark: current log (always 0 = A)
 *						       bit 1 used
 *						       bits 8..15 klen
 *						       bits 16..47 reserved (epoch)
 *	object (64-byte aligned; header and key are one line, the value starts on the next)
 *	0x00 u32 vlen
 *	0x04 u32 crc	  of the value alone
 *	0x08 u64 pre	  the previous version; bit 63 (Trans) and bit 62 (log) reserved
 *	0x10 u64 next	  the next newer version, 0 = none
 *	0x18 u16 state	  byte 0x18 flag: 1 = durable; byte 0x19 valid: 0 = its writer is dead
 *	0x1a u8  kind	  0 value, 1 tombstone
 *	0x1b u8  klen
 *	0x1c u32 stamp	  number of the allocation, modulo 2^32
 *	0x20 u8  key[32]
 *	0x40 u8  value[vlen]
 *
 * Flag and valid are one word so that INFLIGHT -> {DURABLE, INVALID} is one
 * compare-and-swap; the paper (EF 4.3.2) has two fields and no synchronisation,
 * which is the knob bg_plain_store.
 *
 * Log cleaning (EF 4.4) is not here; its fields are, marked reserved, always zero.
 */
#include "core/stores/kv.h"

extern const struct tm_store efactory_store;

#define EF_MAGIC 0x3159524f54434645 /* "EFCTORY1" */

#define EF_TABLE 0 /* exported region: read only */
#define EF_LOG	 1 /* exported region: read and write */
#define EF_PROBE 8 /* entries that a client looks at before it asks the server */

#define EF_FLAG	    0x0001 /* of ef_object.state */
#define EF_VALID    0x0100
#define EF_INFLIGHT EF_VALID
#define EF_DURABLE  (EF_VALID | EF_FLAG)
#define EF_INVALID  0

#define EF_VALUE     0 /* of ef_object.kind */
#define EF_TOMBSTONE 1

#define EF_MARK	      1ull /* of ef_entry.ctl */
#define EF_USED	      2ull
#define EF_KLEN_SHIFT 8
#define EF_PRE_MASK   (~(3ull << 62)) /* the offset in ef_object.pre */

struct ef_entry {
	uint8_t key[TM_MAX_KEY];
	uint64_t off[2];
	uint64_t ctl;
	uint64_t reserved;
};

struct ef_object {
	uint32_t vlen;
	uint32_t crc;
	uint64_t pre;
	uint64_t next;
	uint16_t state;
	uint8_t kind;
	uint8_t klen;
	uint32_t stamp;
	uint8_t key[TM_MAX_KEY];
	uint8_t value[];
};

_Static_assert(sizeof(struct ef_entry) == KV_LINE, "an entry is a line");
_Static_assert(offsetof(struct ef_entry, off) == 0x20, "as drawn");
_Static_assert(offsetof(struct ef_entry, ctl) == 0x30, "as drawn");
_Static_assert(sizeof(struct ef_object) == KV_LINE, "header and key are a line");
_Static_assert(offsetof(struct ef_object, pre) == 0x08, "as drawn");
_Static_assert(offsetof(struct ef_object, next) == 0x10, "as drawn");
_Static_assert(offsetof(struct ef_object, state) == 0x18, "as drawn");
_Static_assert(offsetof(struct ef_object, stamp) == 0x1c, "as drawn");
_Static_assert(offsetof(struct ef_object, key) == 0x20, "as drawn");
_Static_assert(offsetof(struct ef_object, value) == 0x40, "as drawn");

/* Positions in tm_params.knob; efactory.c explains each. */
enum ef_knob {
	EF_META_ONE_FLUSH,
	EF_FLAG_BEFORE_VALUE,
	EF_BG_PLAIN_STORE,
	EF_BG_BLOCKS,
	EF_IGNORE_VALID,
	EF_VERIFY_OBJ_KEY, /* 0: on */
	EF_PACKED,
	EF_TRUST_FLAG,
	EF_TIMEOUT,
	EF_BUG,
	EF_KNOBS
};

/* Values of the knob `bug`, in its order; efactory.c says what each breaks. */
enum ef_bug {
	EF_BUG_NONE,
	EF_BUG_HEADER_UNFLUSHED,
	EF_BUG_ENTRY_UNFLUSHED,
	EF_BUG_KEY_UNFLUSHED,
	EF_BUG_NO_PRE,
	EF_BUG_PRE_LATE,
	EF_BUG_BORN_DURABLE,
	EF_BUG_GET_NO_CRC,
	EF_BUG_GET_NO_FLUSH,
	EF_BUG_GET_NO_FENCE,
	EF_BUG_GET_FLUSH_HEADER,
	EF_BUG_GET_HEAD_ONLY,
	EF_BUG_GET_WAITS,
	EF_BUG_BG_NO_FLUSH,
	EF_BUG_CLIENT_NO_FLAG,
	EF_BUG_RECOVER_NO_CRC,
	EF_BUG_RECOVER_HEAD_ONLY,
	EF_BUG_RECOVER_NEXT,
	EF_BUG_RECOVER_NO_FLAG,
	EF_BUG_RECOVER_CLEARS,
};

/* The sizes that server and client both derive from the parameters. */
uint64_t ef_slots(const struct tm_params *params);
uint64_t ef_log_len(const struct tm_params *params);
uint64_t ef_timeout_ns(const struct tm_params *params);

/* The PM pool, mapped. */
struct ef_pool {
	const struct tm_params *params;
	struct ef_entry *table;
	uint64_t slots;
	uint8_t *log;
	uint64_t log_len;
	uint64_t align; /* of objects */
};

void ef_pool_map(struct ef_pool *pool, const struct tm_params *params, uint8_t *pm);

static inline bool ef_knob(const struct tm_params *params, enum ef_knob knob)
{
	return params->knob[knob] != 0;
}

static inline bool ef_bug(const struct tm_params *params, enum ef_bug bug)
{
	return params->knob[EF_BUG] == bug;
}

static inline struct ef_object *ef_at(const struct ef_pool *pool, uint64_t off)
{
	return (struct ef_object *)(pool->log + off);
}

/* Bytes of log that an object takes. */
static inline uint64_t ef_span(const struct ef_pool *pool, uint32_t vlen)
{
	return kv_round_up(sizeof(struct ef_object) + (uint64_t)vlen, pool->align);
}

/* Of the log that the mark names. */
static inline uint64_t *ef_head(struct ef_entry *entry)
{
	return &entry->off[entry->ctl & EF_MARK];
}

/* Can there be an object at `off`: inside the log, header and value, and aligned? */
bool ef_fits(const struct ef_pool *pool, uint64_t off);
/* The version before the one at `off`; 0: none. Versions are appended, so the list only ever leads down. */
uint64_t ef_older(const struct ef_pool *pool, uint64_t off);
/* Has the whole value arrived? */
bool ef_crc_ok(const struct ef_object *object);
/* The key's entry, or the free one in which it belongs; NULL: the table is full. */
struct ef_entry *ef_lookup(const struct ef_pool *pool, const uint8_t key[TM_MAX_KEY], bool *found);

int ef_format(const struct tm_env *env);
int ef_recover(const struct tm_env *env);
int ef_serve(const struct tm_env *env);
void ef_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int ef_open(const struct tm_env *env, void **client);
int ef_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int ef_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int ef_del(void *client, const void *key, size_t klen);

#endif
