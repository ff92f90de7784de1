/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_LAYOUT_H
#define TM_STORES_ERDA_LAYOUT_H
/*
 * What Erda keeps in persistent memory. All numbers are little-endian bytes.
 *
 *	pool      0  +--------------------------------------------------------+
 *	             | boot block, 64 B:  magic 8                             |
 *	         64  +--------------------------------------------------------+
 *	             | head array, 64 B a head:                               |
 *	             |  +0  region 0, +8 region 1   offsets in the pool       |
 *	             |  +16 region length 8 B   +24 segment length 8 B        |
 *	             |  +32 state 8 B: which region, and the cleaning's phase |
 *	             |  +40 used bytes of region 0   +48 of region 1          |
 *	             |  +56 end of the cleaner's reserved area, 8 B           |
 *	  table_off  +--------------------------------------------------------+
 *	             | hash table: slots + neighbourhood - 1 entries, 48 B:   |
 *	             |  +0  key 32 B                                          |
 *	             |  +32 klen 1 B   +33 head ID 1 B   +34 unused 6 B       |
 *	             |  +40 atomic region 8 B                                 |
 *	    log_off  +--------------------------------------------------------+
 *	             | region 0 of head 0 | region 1 of head 0 | of head 1 .. |
 *	             |  each: segment | segment | ... ; no object spans two   |
 *	             +--------------------------------------------------------+
 *
 *	atomic region   63  62 ........ 32  31 ........... 1   0
 *	               +---+---------------+----------------+---+
 *	               |tag| offset 1 (31) |  offset 2 (31) | R |
 *	               +---+---------------+----------------+---+
 *	 New Tag 1: offset 1 is the newest version, offset 2 the one before; New Tag 0:
 *	 the reverse. R is the paper's reserved bit: the number of the region in which
 *	 both versions are. All ones in an offset: no version. An entry without any
 *	 version is free: the region commits the entry.
 *
 *	while a head's log is cleaned (Erda paper 4.4; clean.h) an entry that is
 *	 not yet flipped means something else: the half that New Tag calls the newest is
 *	 the newest version in region R, and the other half is a copy of it, or a newer
 *	 version, in the other region. Such entries exist only while the state says so.
 *
 *	object   +0 tag 1 B (1: delete object) | +1 CRC 4 B | +5 klen 1 B | +6 vlen 4 B
 *	         +10 key | value                    (a delete object has no value)
 *	 The CRC is CRC-32 (reflected 0xEDB88320) of everything but itself.
 *
 * Offsets count 8-byte units from the start of the region, so that 31 bits reach
 * 16 GiB (knob byte_offsets: bytes, 2 GiB). Objects start at a cache line (knob
 * packed: at the next unit).
 *
 * A region's used bytes grow by whole segments, and are durable before the first
 * object of the segment has its address. After a power failure the log goes on
 * after them, so space that was ever handed out is not handed out again, whatever
 * entries were lost, until the region has been cleaned and wiped: an object that an
 * offset leads to was put there by the client that got that offset.
 *
 * Entries are 48 bytes, so that every second one lies across two cache lines: its
 * key and its atomic region then become durable, or are read, one without the other.
 */
#include <string.h>
#include "core/tidemark.h"

#define ERDA_MAGIC     0x3130616472456d74ull /* "tmErda01" */
#define ERDA_NO_OFFSET 0x7fffffffu	     /* no such version */
#define ERDA_EMPTY     0x7ffffffffffffffeull /* atomic region of a free entry */
#define ERDA_MAX_HEADS 2
#define ERDA_REGIONS   2  /* of a head */
#define ERDA_HEADER    10 /* bytes of an object before its key */
#define ERDA_CRC_AT    1
#define ERDA_BODY_AT   5	  /* the CRC covers the tag, and everything from here */
#define ERDA_PAPER_SEG (8u << 20) /* bytes; Erda paper 3.2 */

struct erda_boot {
	uint64_t magic;
	uint64_t unused[7];
};

struct erda_head {
	uint64_t region[ERDA_REGIONS]; /* bytes from the pool's start */
	uint64_t region_len;	       /* bytes */
	uint64_t seg_len;	       /* bytes */
	uint64_t state;		       /* erda_state_word() */
	uint64_t used[ERDA_REGIONS];   /* bytes, whole segments */
	uint64_t reserved_end; /* bytes; in the other region, while that is replicated to; then in
				  the current one; 0: never */
};

struct erda_entry {
	uint8_t key[TM_MAX_KEY];
	uint8_t klen;
	uint8_t head;
	uint8_t unused[6];
	uint64_t region;
};

_Static_assert(sizeof(struct erda_boot) == TM_LINE, "one line");
_Static_assert(sizeof(struct erda_head) == TM_LINE, "one line");
_Static_assert(sizeof(struct erda_entry) == 48, "as in the picture");

/* The switches, in the order of the table in erda.c, and their values in theirs. */
/* The knobs: name, values, what it is. The first value is the default. */
#define ERDA_KNOBS(X)                                                                           \
	X(request, "write_imm send", "How a PUT asks for space: a WRITE_WITH_IMM, or a SEND.")  \
	X(reply_first, "off on",                                                                \
	  "The server replies before it updates the entry, as the public code does.")           \
	X(byte_offsets, "off on",                                                               \
	  "The 31-bit offsets count bytes and reach 2 GiB, instead of 8-byte units; and "       \
	  "the log goes on after that.")                                                        \
	X(offset_bits, "31 9",                                                                  \
	  "Bits of an offset that there are; 9 make a region of a test as long as "             \
	  "gigabytes are to 31.")                                                               \
	X(old_zero, "off on",                                                                   \
	  "A new key's previous offset is 0, a log position, as in the public code.")           \
	X(verify_obj_key, "on off", "Compare the key in an object with the one asked for.")     \
	X(create, "ordered unordered",                                                          \
	  "A new entry's key is durable before its atomic region; or that is written "          \
	  "first, and nothing is flushed.")                                                     \
	X(repair, "cond+recheck+age cond+recheck cond unconditional",                           \
	  "When the server takes back a version that a reader calls damaged: if it is "         \
	  "still the newest, fails the CRC, and is old; or on fewer conditions.")               \
	X(timeout, "10s 1ms", "Age at which a version that is not intact counts as abandoned.") \
	X(scan_all, "off on",                                                                   \
	  "Recovery checks the newest version of every entry, not only in the last "            \
	  "segment.")                                                                           \
	X(give_up, "not_found error",                                                           \
	  "What a GET answers that found neither version intact until its retries ended.")      \
	X(confirm, "off on",                                                                    \
	  "A PUT ends with a READ of what it wrote, not at the WRITE's completion, which "      \
	  "may come before the object is visible.")                                             \
	X(packed, "off on", "Objects start at the next unit, not at a cache line.")             \
	X(seg, "large small",                                                                   \
	  "Segments of 8 MiB, or of all updates if that is less; or of two of the "             \
	  "largest objects.")                                                                   \
	X(log, "ample tight",                                                                   \
	  "A log's regions hold all updates; or so few objects that a workload of some "        \
	  "PUTs has them cleaned and used again. Segments then hold one object.")               \
	X(heads, "1 2", "Logs, chosen by the key's hash.")                                      \
	X(crowd, "off on",                                                                      \
	  "Neighbourhood of 2, and homes by the key's last number such that inserting "         \
	  "the third of k1, k2, k3 displaces the second.")                                      \
	X(clean_wait, "acks round_trip",                                                        \
	  "Cleaning begins when all clients have acknowledged that they hold no address, "      \
	  "and their access has ended; or when the longest round trip is over, as in the "      \
	  "paper.")                                                                             \
	X(slow_client, "drop wait drop_1s",                                                     \
	  "A client that does not acknowledge in 50 us is dropped; or waited for; or "          \
	  "dropped after a second, for networks that are no simulated ones.")                   \
	X(clean_state, "durable literal",                                                       \
	  "The cleaning's phase is durable, and entries say which region they mean; or "        \
	  "neither is, as in the paper, and the head switches before entries are flipped.")     \
	X(old_half, "cleared kept",                                                             \
	  "When a cleaning begins, the half of the previous version becomes all ones; or "      \
	  "it stays, and is taken for an offset in the other region.")                          \
	X(clean_put, "durable lazy",                                                            \
	  "What the server writes for a client during a cleaning is durable before the "        \
	  "entry names it; or not.")                                                            \
	X(flips, "durable lazy",                                                                \
	  "The flips that end a cleaning are durable before the old region can be used "        \
	  "again; or not.")                                                                     \
	X(tombstones, "remembered forgotten",                                                   \
	  "A deleted key's older versions are skipped by the cleaner; or not.")                 \
	X(wipe, "on off", "A region is wiped before it is used again.")                         \
	X(notices, "low wrap",                                                                  \
	  "Cleanings are numbered from 1; or after the largest number, as if there had been "   \
	  "so many.")                                                                           \
	X(bug, "none" ERDA_BUGS(ERDA_BUG_WORD), "A seeded bug, see the variants.")
#define ERDA_BUG_WORD(NAME, name) " " #name

/* tm_params.knob, by name. */
struct erda_knobs {
#define X(name, values, what) uint8_t name;
	ERDA_KNOBS(X)
#undef X
};
_Static_assert(sizeof(struct erda_knobs) <= TM_MAX_KNOBS, "there are so many knobs");

enum erda_slow_client { SLOW_DROP, SLOW_WAIT, SLOW_DROP_1S };
enum erda_repair {
	REPAIR_COND_RECHECK_AGE,
	REPAIR_COND_RECHECK,
	REPAIR_COND,
	REPAIR_UNCONDITIONAL
};

/* Seeded bugs; the variants say what each does. */
#define ERDA_BUGS(X)                                  \
	X(CRC_UNCHECKED, crc_unchecked)               \
	X(CRC_NO_VALUE, crc_no_value)                 \
	X(WRONG_HALF, wrong_half)                     \
	X(NO_FLIP, no_flip)                           \
	X(TWO_STORES, two_stores)                     \
	X(DISPLACE_EARLY, displace_early)             \
	X(DISPLACE_UNORDERED, displace_unordered)     \
	X(TAG_IGNORED, tag_ignored)                   \
	X(RETRY_UNBOUNDED, retry_unbounded)           \
	X(TAIL_LOW, tail_low)                         \
	X(RECOVER_NO_CRC, recover_no_crc)             \
	X(KEEP_DUPLICATES, keep_duplicates)           \
	X(CLEAN_COPY_UNFLUSHED, clean_copy_unflushed) \
	X(CLEAN_SWITCH_EARLY, clean_switch_early)     \
	X(CLEAN_OLDEST, clean_oldest)                 \
	X(CLEAN_NO_CHECK, clean_no_check)             \
	X(CLEAN_PLAIN_STORE, clean_plain_store)       \
	X(CLEAN_NO_REPLICA, clean_no_replica)         \
	X(CLEAN_WRONG_HALF, clean_wrong_half)         \
	X(CLEAN_PHASE_IGNORED, clean_phase_ignored)   \
	X(CLEAN_FLIP_PLAIN, clean_flip_plain)         \
	X(CLEAN_HASTY_PHASE, clean_hasty_phase)       \
	X(RECOVER_STATE_FIRST, recover_state_first)   \
	X(OLD_UNREAD, old_unread)                     \
	X(PLACE_LEAKED, place_leaked)                 \
	X(NOTICE_COMPARED, notice_compared)           \
	X(INSERT_TOO_FAR, insert_too_far)             \
	X(ACK_BUSY, ack_busy)                         \
	X(SEGMENT_EXACT, segment_exact)               \
	X(SOURCE_KEPT, source_kept)                   \
	X(READ_ONCE, read_once)                       \
	X(FIND_PREFIX, find_prefix)                   \
	X(MOVES_ODD, moves_odd)                       \
	X(CLEAN_LATE_COPY, clean_late_copy)           \
	X(ACK_ASIDE, ack_aside)                       \
	X(CLEAN_EDGE, clean_edge)                     \
	X(DISPLACED_AGE, displaced_age)               \
	X(FIRST_WORD, first_word)                     \
	X(DROP_LATE, drop_late)                       \
	X(NO_ROOM_KEPT, no_room_kept)                 \
	X(ACK_COUNTS_LATER, ack_counts_later)         \
	X(RECOVER_OLDER, recover_older)

enum erda_bug {
	BUG_NONE,
#define X(NAME, name) BUG_##NAME,
	ERDA_BUGS(X)
#undef X
};

/* Where everything is and how the switches are set: a function of tm_params alone. */
struct erda_geo {
	struct erda_knobs knob;
	uint8_t bug; /* enum erda_bug */
	bool verify; /* compare the key in an object with the one asked for */
	unsigned heads;
	uint32_t slots;	   /* homes: a power of two */
	uint32_t hop;	   /* neighbourhood: an entry is in [home, home + hop) */
	uint32_t entries;  /* slots + hop - 1: the table does not wrap around */
	uint32_t unit;	   /* bytes per offset step */
	uint32_t align;	   /* bytes: objects start at multiples */
	uint32_t off_mask; /* bits of an offset that there are */
	bool bounded;	   /* the log ends where offsets end */
	bool marked;	   /* entries say which region they mean, heads say the cleaning's phase */
	uint32_t max_vlen;
	uint32_t max_obj; /* bytes of the largest object, aligned */
	uint64_t seg_len, region_len;
	uint64_t clean_at; /* bytes of a region in use at which it is cleaned */
	uint64_t table_off, log_off, pool_len;
};

void erda_geo(struct erda_geo *geo, const struct tm_params *params);

static inline struct erda_boot *erda_boot(uint8_t *pm)
{
	return (struct erda_boot *)pm;
}

static inline struct erda_head *erda_heads(uint8_t *pm)
{
	return (struct erda_head *)(pm + TM_LINE);
}

static inline struct erda_entry *erda_table(const struct erda_geo *geo, uint8_t *pm)
{
	return (struct erda_entry *)(pm + geo->table_off);
}

static inline uint64_t erda_region_off(const struct erda_geo *geo, unsigned head, unsigned region)
{
	return geo->log_off + (head * ERDA_REGIONS + region) * geo->region_len;
}

/* --- a head's state: one word, so that it changes at once --- */

enum erda_clean {
	CLEAN_NONE,
	CLEAN_MERGE,	/* the newest half of each entry is right; the other one may name a copy */
	CLEAN_REPLICATE /* the other half may name a newer version after the reserved area */
};

static inline uint64_t erda_state_word(enum erda_clean phase, unsigned region)
{
	return (uint64_t)phase << 1 | region;
}

static inline unsigned erda_state_region(uint64_t state)
{
	return state & 1;
}

static inline enum erda_clean erda_state_phase(uint64_t state)
{
	return (enum erda_clean)(state >> 1 & 3);
}

/* --- the atomic region (Erda paper 3.3) --- */

/* In which of the head's regions the entry's versions are; `current`: the head's. */
static inline unsigned erda_region_of(const struct erda_geo *geo, uint64_t m, unsigned current)
{
	return geo->marked ? (unsigned)(m & 1) : current;
}

static inline uint32_t erda_newoff(uint64_t m)
{
	return (uint32_t)(m >> (m >> 63 ? 32 : 1)) & ERDA_NO_OFFSET;
}

static inline uint32_t erda_oldoff(uint64_t m)
{
	return (uint32_t)(m >> (m >> 63 ? 1 : 32)) & ERDA_NO_OFFSET;
}

/* Set the half that New Tag `tag` calls the newest; nothing else changes. */
static inline uint64_t erda_set_half(uint64_t m, unsigned tag, uint32_t off)
{
	unsigned shift = tag ? 32 : 1;

	return (m & ~((uint64_t)ERDA_NO_OFFSET << shift)) | (uint64_t)off << shift;
}

/* A new version: flip New Tag, put the offset into the half that the new tag names. */
static inline uint64_t erda_put_off(uint64_t m, uint32_t off)
{
	m ^= 1ull << 63;
	return erda_set_half(m, m >> 63, off);
}

/* A region that knows one version, in region `r`. */
static inline uint64_t erda_only(unsigned tag, uint32_t off, unsigned r)
{
	return erda_set_half((uint64_t)tag << 63 | (ERDA_EMPTY & ~(1ull << 63)) | r, tag, off);
}

/* Take the newest version back: both halves name the previous one, no flip. */
static inline uint64_t erda_revert(uint64_t m)
{
	return erda_set_half(m, m >> 63, erda_oldoff(m));
}

/* --- objects --- */

/* An object's header as read; `len` is the whole object's, bytes. */
struct erda_object {
	uint8_t tag, klen;
	uint32_t crc, vlen;
	size_t len;
};

enum erda_state {
	OBJECT_GOOD,
	OBJECT_BAD,
	OBJECT_LONGER /* more than the `have` bytes are needed to tell */
};

/*
 * Is there an intact object of this key at `bytes`? `have` bytes can be read,
 * `room` bytes are left in the segment: a torn header may claim any length, what
 * is longer than `room` is no object. key NULL: any key.
 */
enum erda_state erda_object_check(const struct erda_geo *geo, const uint8_t *bytes, size_t have,
				  size_t room, const void *key, size_t klen,
				  struct erda_object *object);
/* Write an object to DRAM; returns its length, bytes. */
size_t erda_object_build(const struct erda_geo *geo, uint8_t *bytes, uint8_t tag, const void *key,
			 size_t klen, const void *value, size_t vlen);
/* Bytes from byte offset `at` in a region to the end of its segment; 0: no place for an object. */
size_t erda_room(const struct erda_geo *geo, uint64_t at);
/* The same for an object that the server finds at `off` (in units) of a region. `object` may be
 * NULL. */
enum erda_state erda_object_at(const struct erda_geo *geo, const uint8_t *log, uint32_t off,
			       const void *key, size_t klen, struct erda_object *object);

/* --- the hash table (hopscotch.c) --- */

/* Which home slot and which head a key has. */
struct erda_place {
	uint32_t home;
	uint8_t head;
};
void erda_place(const struct erda_geo *geo, const void *key, size_t klen, struct erda_place *place);

/* The server's table: entries in PM, and what it remembers about them in DRAM. */
struct erda_index {
	const struct erda_geo *geo;
	struct erda_entry *entry;
	uint64_t *since; /* per entry: when its newest version was allocated, ns; 0: before this
			    boot. May be NULL */
	uint64_t *moves; /* counts begins and ends of displacements; clients read it */
	uint8_t *met;	 /* per entry: what the cleaner notes. May be NULL */
};

/* The key's entry, or -ENOENT. */
int erda_find(const struct erda_index *index, uint32_t home, const void *key, size_t klen);
/* A free entry in the neighbourhood of `home`, displacing others if need be; or -ENOSPC. */
int erda_make_room(const struct erda_index *index, uint32_t home);

/* --- the tm_store functions --- */

int erda_format(const struct tm_env *env);
int erda_recover(const struct tm_env *env);
int erda_serve(const struct tm_env *env);
void erda_fsck(const struct tm_env *env, struct tm_fsck *fsck);
void erda_fields(const struct tm_env *env, struct tm_fields *fields);
int erda_open(const struct tm_env *env, void **client);
int erda_put(void *client, const void *key, size_t klen, const void *value, size_t vlen);
int erda_get(void *client, const void *key, size_t klen, void *value, size_t cap, size_t *vlen);
int erda_del(void *client, const void *key, size_t klen);
int erda_clean(void *client);

#endif
