/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_EFACTORY_EFACTORY_H
#define TM_STORES_EFACTORY_EFACTORY_H
/*
 * eFactory (EF: ICPP'21): a key-value store with client-active PUTs. A PUT is
 * acknowledged when its value has been written, one-sided, and long before it is
 * durable. What a GET returns is durable: objects carry a flag that says so, and
 * a GET that meets an object without it has the server check and persist it first.
 * Every PUT makes a new version; a reader, and recovery, that find the newest
 * version incomplete go back along the list of versions to one that is intact.
 * There are two logs. Cleaning moves what is still needed of one into the other, while
 * clients go on, and then the first is empty.
 *
 *	efactory.c  what it promises, its knobs and seeded bugs
 *	layout.c    sizes, and the way around the pool
 *	client.c    PUT, hybrid GET, DELETE, notices	(EF 4.3.1, 4.3.3)
 *	server.c    requests				(EF 4.3.1, 4.3.3)
 *	verifier.c  durability in the background	(EF 4.3.2)
 *	clean.c	    log cleaning			(EF 4.4)
 *	move.c	    the part of it that moves versions
 *	recover.c   format, recovery			(EF 4.1)
 *	fsck.c	    what must hold after recovery
 *	server.h    what the server's files share
 *
 * The PM pool:
 *
 *	+-------------------------------+-----------------------------------+-------+
 *	| table: entry[slots], 64 B each | log A: header | objects, appended | log B |
 *	+-------------------------------+-----------------------------------+-------+
 *	slots: a power of two, at least 2 x keys (knob crowd: keys); both logs are alike
 *
 * All offsets are bytes from the start of a log; 0 is the log's header line,
 * never an object, and stands for "none". A place is an offset with a bit that names the log.
 *
 *	log A's header		     entry (one line)
 *	0x00 u64 magic		     0x00 u8  key[32]  padded with zeros
 *	0x08 u64 state		     0x20 u64 off[0]   newest version in log A, 0 = none
 *	     bit 0: current log	     0x28 u64 off[1]   newest version in log B, 0 = none
 *	     bit 1: being cleaned    0x30 u64 ctl      bit 0 mark: current log of this key
 *		    into the other		       bit 1 used
 *						       bits 8..15 klen
 *						       bits 16..47 reserved (epoch)
 *				     0x38 u64 mark     with split_mark, instead of bit 0 of ctl
 *	object (64-byte aligned; header and key are one line, the value starts on the next)
 *	0x00 u32 vlen
 *	0x04 u32 crc	  of the value alone
 *	0x08 u64 pre	  place of the previous version: offset, bit 62 the log,
 *			  bit 63 Trans: it was moved by the cleaning that is going on
 *	0x10 u64 next	  place of the next newer version, 0 = none
 *	0x18 u16 state	  byte 0x18 flag: 1 = durable; byte 0x19 valid: 0 = its writer is dead
 *	0x1a u8  kind	  0 value, 1 tombstone; with split_trans, bit 7 is Trans
 *	0x1b u8  klen
 *	0x1c u32 stamp	  number of the allocation, modulo 2^32; a copy has its original's
 *	0x20 u8  key[32]
 *	0x40 u8  value[vlen]
 *
 * At rest only one of an entry's offsets is in use, that of the current log, and no
 * reachable object has Trans or names the other log. While a log is cleaned a key may
 * have versions in both: the stamp says which is newer.
 *
 * Flag and valid are one word so that INFLIGHT -> {DURABLE, INVALID} is one
 * compare-and-swap; the paper (EF 4.3.2) has two fields and no synchronisation,
 * which is the knob bg_plain_store.
 */
#include "core/stores/kv.h"
#include "core/stores/rpc.h"

extern const struct tm_store efactory_store;

#define EF_MAGIC 0x3159524f54434645 /* "EFCTORY1" */

#define EF_TABLE 0 /* exported region: read only */
#define EF_LOG	 1 /* exported regions, read and write: log A; log B is the next */
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

#define EF_LOG_B      (1ull << 62) /* of a place: in log B */
#define EF_TRANS      (1ull << 63) /* of ef_object.pre */
#define EF_OFF_MASK   (EF_LOG_B - 1)
#define EF_KIND_TRANS 0x80 /* of ef_object.kind, with split_trans */

#define EF_STATE_LOG   1ull /* of ef_header.state */
#define EF_STATE_CLEAN 2ull

/* The line before log A; log B's line is not used. */
struct ef_header {
	uint64_t magic;
	uint64_t state;
};

struct ef_entry {
	uint8_t key[TM_MAX_KEY];
	uint64_t off[2];
	uint64_t ctl;
	uint64_t mark;
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

_Static_assert(sizeof(struct ef_entry) == TM_LINE, "an entry is a line");
_Static_assert(offsetof(struct ef_entry, off) == 0x20, "as drawn");
_Static_assert(offsetof(struct ef_entry, ctl) == 0x30, "as drawn");
_Static_assert(sizeof(struct ef_object) == TM_LINE, "header and key are a line");
_Static_assert(offsetof(struct ef_object, pre) == 0x08, "as drawn");
_Static_assert(offsetof(struct ef_object, next) == 0x10, "as drawn");
_Static_assert(offsetof(struct ef_object, state) == 0x18, "as drawn");
_Static_assert(offsetof(struct ef_object, stamp) == 0x1c, "as drawn");
_Static_assert(offsetof(struct ef_object, key) == 0x20, "as drawn");
_Static_assert(offsetof(struct ef_object, value) == 0x40, "as drawn");

/* The knobs: name, values, what it is. The first value is the default. */
#define EF_KNOBS(X)                                                                              \
	X(meta_one_flush, "off on",                                                              \
	  "persist an object's header and its entry with one fence, not header first")           \
	X(flag_before_value, "off on",                                                           \
	  "set and persist an object's flag before its value is persisted")                      \
	X(bg_plain_store, "off on",                                                              \
	  "flag and valid are changed by plain stores instead of one compare-and-swap "          \
	  "(EF 4.3.2)")                                                                          \
	X(bg_blocks, "off on", "the verifier waits at an incomplete object instead of going on") \
	X(ignore_valid, "off on", "server and recovery also consider versions that timed out")   \
	X(verify_obj_key, "on off", "a client compares the key in the object that it read")      \
	X(packed, "off on", "objects are 8-byte aligned and share lines with their neighbours")  \
	X(trust_flag, "off on", "recovery accepts an object whose flag is 1 without its CRC")    \
	X(timeout, "10s 1ms", "a writer that needs longer is dead, its object invalid")          \
	X(split_trans, "off on",                                                                 \
	  "Trans is a field of its own, and the pointer does not name its log")                  \
	X(split_mark, "off on", "an entry's mark and the bit that says used are two words")      \
	X(no_notify_wait, "off on",                                                              \
	  "cleaning begins without waiting for the clients' acknowledgements")                   \
	X(copy_inflight, "off on",                                                               \
	  "cleaning copies a key's newest version even if its value has not arrived")            \
	X(compress_get, "newest literal",                                                        \
	  "while a log is compressed, a key that has a copy is read there (EF 4.4)")             \
	X(grace, "acks dereg none",                                                              \
	  "before a cleaned log is used again: clients are waited for and it is "                \
	  "deregistered; it is deregistered; nothing")                                           \
	X(end_order, "flip clear trans",                                                         \
	  "what comes first at cleaning's end: the flip of the marks, the clearing of "          \
	  "the old offsets, the clearing of Trans")                                              \
	X(tombstone_drop, "late early",                                                          \
	  "a tombstone goes when nothing older can come back, or as soon as it is met")          \
	X(recover_clean, "finish discard",                                                       \
	  "recovery from a half-done cleaning ends it, or drops what was copied")                \
	X(recover_head, "newest mark",                                                           \
	  "recovery from a half-done cleaning starts at the newer of an entry's two "            \
	  "offsets, or at the one that the mark names")                                          \
	X(room, "ample tight",                                                                   \
	  "each log holds all that is ever written, or so little that it must be cleaned")       \
	X(crowd, "off on",                                                                       \
	  "all keys have the table's last slot for their home, and it has hardly more slots "    \
	  "than keys")                                                                           \
	X(stamps, "low wrap",                                                                    \
	  "the first stamp is 0; or the largest, so that those after it begin again at 0")       \
	X(bug, "none" EF_BUGS(EF_BUG_WORD), "a seeded bug, see the variants")
#define EF_BUG_WORD(NAME, name) " " #name

/* tm_params.knob, by name. */
struct ef_knobs {
#define X(name, values, what) uint8_t name;
	EF_KNOBS(X)
#undef X
};
_Static_assert(sizeof(struct ef_knobs) <= TM_MAX_KNOBS, "there are so many knobs");

/* Values of the knob `grace`. */
enum ef_grace { EF_GRACE_ACKS, EF_GRACE_DEREG, EF_GRACE_NONE };
/* Values of the knob `end_order`. */
enum ef_end_order { EF_END_FLIP, EF_END_CLEAR, EF_END_TRANS };

/* Values of the knob `bug`, in its order; efactory.c says what each breaks. */
/* Seeded bugs; the variants say what each does. */
#define EF_BUGS(X)                                  \
	X(HEADER_UNFLUSHED, header_unflushed)       \
	X(ENTRY_UNFLUSHED, entry_unflushed)         \
	X(KEY_UNFLUSHED, key_unflushed)             \
	X(NO_PRE, no_pre)                           \
	X(PRE_LATE, pre_late)                       \
	X(BORN_DURABLE, born_durable)               \
	X(GET_NO_CRC, get_no_crc)                   \
	X(GET_NO_FLUSH, get_no_flush)               \
	X(GET_NO_FENCE, get_no_fence)               \
	X(GET_FLUSH_HEADER, get_flush_header)       \
	X(GET_HEAD_ONLY, get_head_only)             \
	X(GET_WAITS, get_waits)                     \
	X(BG_NO_FLUSH, bg_no_flush)                 \
	X(CLIENT_NO_FLAG, client_no_flag)           \
	X(RECOVER_NO_CRC, recover_no_crc)           \
	X(RECOVER_HEAD_ONLY, recover_head_only)     \
	X(RECOVER_NEXT, recover_next)               \
	X(RECOVER_NO_FLAG, recover_no_flag)         \
	X(RECOVER_CLEARS, recover_clears)           \
	X(COPY_NO_FLUSH, copy_no_flush)             \
	X(COPY_OLDER, copy_older)                   \
	X(NO_CARRY, no_carry)                       \
	X(TOMBSTONE_SKIPPED, tombstone_skipped)     \
	X(STATE_EARLY, state_early)                 \
	X(NO_STATE, no_state)                       \
	X(CLIENT_HYBRID, client_hybrid)             \
	X(NO_QUIESCE, no_quiesce)                   \
	X(RECOVER_UNCLEANED, recover_uncleaned)     \
	X(RECOVER_FLIP_FIRST, recover_flip_first)   \
	X(RECOVER_STATE_FIRST, recover_state_first) \
	X(RECOVER_UNFLUSHED, recover_unflushed)     \
	X(RECOVER_TAIL_LOW, recover_tail_low)       \
	X(RECOVER_CACHED, recover_cached)           \
	X(RECOVER_COPY_CACHED, recover_copy_cached) \
	X(GET_GIVES_UP, get_gives_up)               \
	X(FULL_EARLY, full_early)                   \
	X(ONE_PEER, one_peer)                       \
	X(STALE_OFFSET, stale_offset)               \
	X(STAMP_COMPARED, stamp_compared)           \
	X(PROBE_ENDS, probe_ends)                   \
	X(EMPTY_ABSENT, empty_absent)               \
	X(FLUSH_SHORT, flush_short)                 \
	X(LAST_LENGTH, last_length)                 \
	X(FITS_EXACT, fits_exact)                   \
	X(NO_LAST_LINE, no_last_line)               \
	X(REPLY_TRIED_ONCE, reply_tried_once)       \
	X(RECEIVE_ASSUMED, receive_assumed)         \
	X(GET_CUT, get_cut)                         \
	X(STAMP_OF_LAST, stamp_of_last)             \
	X(ACK_FOR_ALL, ack_for_all)                 \
	X(ACK_BUSY, ack_busy)                       \
	X(ENTRY_LAZY, entry_lazy)                   \
	X(ENTRY_UNFENCED, entry_unfenced)           \
	X(INVALID_ENDS, invalid_ends)               \
	X(PROBE_GIVES_UP, probe_gives_up)           \
	X(RECOVER_OVER_COPY, recover_over_copy)     \
	X(NO_RESERVE, no_reserve)                   \
	X(CLEAN_UNVERIFIED, clean_unverified)       \
	X(RECOVER_UNREAD, recover_unread)           \
	X(NOTICE_MARKED_FIRST, notice_marked_first)

enum ef_bug {
	EF_BUG_NONE,
#define X(NAME, name) EF_BUG_##NAME,
	EF_BUGS(X)
#undef X
};

/* A place, never 0 of a log: where an object is. */
static inline uint64_t ef_place(unsigned log, uint64_t off)
{
	return off ? off | (log ? EF_LOG_B : 0) : 0;
}

static inline unsigned ef_log_of(uint64_t place)
{
	return place & EF_LOG_B ? 1 : 0;
}

static inline uint64_t ef_off_of(uint64_t place)
{
	return place & EF_OFF_MASK;
}

static inline const struct ef_knobs *ef_knobs(const struct tm_params *params)
{
	return (const struct ef_knobs *)params->knob;
}

/* Is this seeded bug switched on? A macro: the code that asks is the one that reads the switch. */
#define ef_bug(params, which) (ef_knobs(params)->bug == (which))

/* The sizes that server and client both derive from the parameters. */
uint64_t ef_slots(const struct tm_params *params);
/* Where the search for a key begins: a slot's number, modulo ef_slots(). */
uint64_t ef_home(const struct tm_params *params, const uint8_t key[TM_MAX_KEY]);
uint64_t ef_log_len(const struct tm_params *params);
uint64_t ef_timeout_ns(const struct tm_params *params);
size_t ef_pm_bytes(const struct tm_params *params);
unsigned ef_regions(const struct tm_params *params, struct tm_region *out, unsigned max);

/* The PM pool, mapped. */
struct ef_pool {
	const struct tm_params *params;
	struct ef_entry *table;
	uint64_t slots;
	struct ef_header *header;
	uint8_t *log[2];
	uint64_t log_len;
	uint64_t align; /* of objects */
};

/*
 * What cleaning is at. COMPRESS: PUTs go to the log `from`, what it held before is
 * moved to `to`. MERGE: PUTs go to `to`, what came to `from` meanwhile is moved. At rest
 * `from` is the current log.
 */
enum ef_stage { EF_REST, EF_BEGIN, EF_COMPRESS, EF_MERGE };
struct ef_now {
	enum ef_stage stage;
	unsigned from, to;
};

static inline bool ef_moving(const struct ef_now *now)
{
	return now->stage == EF_COMPRESS || now->stage == EF_MERGE;
}

void ef_pool_map(struct ef_pool *pool, const struct tm_params *params, uint8_t *pm);
/* What the header says; a cleaning that has not ended counts as its last stage. */
struct ef_now ef_pool_now(const struct ef_pool *pool);

static inline struct ef_object *ef_at(const struct ef_pool *pool, uint64_t place)
{
	return (struct ef_object *)(pool->log[ef_log_of(place)] + ef_off_of(place));
}

/* Bytes of log that an object takes. */
static inline uint64_t ef_span(const struct ef_pool *pool, uint32_t vlen)
{
	return kv_round_up(sizeof(struct ef_object) + (uint64_t)vlen, pool->align);
}

/* An entry's current log. */
static inline unsigned ef_mark(const struct tm_params *params, const struct ef_entry *entry)
{
	return (ef_knobs(params)->split_mark ? entry->mark : entry->ctl) & EF_MARK;
}

/* Name it, with one store; not yet durable. */
void ef_set_mark(const struct tm_params *params, struct ef_entry *entry, unsigned log);

/* Is `a` the newer of two stamps? They go on at 0 after the largest. */
static inline bool ef_newer(const struct tm_params *params, uint32_t a, uint32_t b)
{
	return ef_bug(params, EF_BUG_STAMP_COMPARED) ? a > b : (int32_t)(a - b) > 0;
}

/* Can there be an object at `place`: inside the log, header and value, and aligned? */
bool ef_fits(const struct ef_pool *pool, uint64_t place);
/* A key's newest version; 0: none. */
uint64_t ef_newest(const struct ef_pool *pool, const struct ef_now *now,
		   const struct ef_entry *entry);
/* Where an object says that its previous version is; 0: nowhere. */
uint64_t ef_pre(const struct ef_pool *pool, const struct ef_now *now, const struct ef_entry *entry,
		const struct ef_object *object);
/* The version before the one at `place`; 0: none. Stamps only go down, so every list ends. */
uint64_t ef_older(const struct ef_pool *pool, const struct ef_now *now,
		  const struct ef_entry *entry, uint64_t place);
/*
 * Does a link to `pre` have Trans? The versions that stage COMPRESS links are all in the old log,
 * those that come later all in the new one; these need it only where a link does not name its log.
 */
bool ef_trans(const struct ef_pool *pool, const struct ef_now *now, uint64_t pre);
/* Link an object's previous version, and flush; with split_trans the two fields change one after
 * the
 * other. */
void ef_set_pre(const struct ef_pool *pool, const struct ef_now *now, struct ef_object *object,
		uint64_t pre);
/* Has the whole value arrived? */
bool ef_crc_ok(const struct ef_object *object);
/* What an object is: EF_VALUE, EF_TOMBSTONE, or neither. */
unsigned ef_kind(const struct tm_params *params, const struct ef_object *object);
/* The key's entry, or the free one in which it belongs; NULL: the table is full. */
struct ef_entry *ef_lookup(const struct ef_pool *pool, const uint8_t key[TM_MAX_KEY], bool *found);
/* Write a copy of an object, without older or newer versions and in this state, and flush it. */
void ef_copy(const struct ef_pool *pool, uint64_t place, const struct ef_object *object,
	     uint16_t state);

/* What the server says to every client; each answers with KV_ACK, to which there is no reply. */
struct ef_notice {
	uint64_t number;	 /* 1, 2, ...; odd: cleaning begins, even: it has ended */
	uint64_t region;	 /* begins: the log that is cleaned into ... */
	struct rpc_region where; /* ... and where that is now */
};

int ef_format(const struct tm_env *env);
int ef_recover(const struct tm_env *env);
int ef_serve(const struct tm_env *env);
void ef_fsck(const struct tm_env *env, struct tm_fsck *fsck);
int ef_open(const struct tm_env *env, void **client);
int ef_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int ef_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int ef_del(void *client, const void *key, size_t klen);
int ef_clean(void *client);

#endif
