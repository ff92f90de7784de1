/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda after a power failure (Erda paper 4.2), and its structural check.
 *
 * Nothing was flushed, so an entry may name an object of which any part is missing.
 * The log cannot be walked after such a hole, because the lost header held the
 * length; recovery goes by the hash table and touches the table and the objects it
 * names, never the rest of the pool:
 *
 *   R1  collect the entries in use
 *   R2  a key that is there twice (a displacement was cut) keeps the entry whose
 *       object has the larger offset
 *   R3  a log that was being cleaned is brought back to one region (recover_clean.c)
 *   R4  an entry whose newest object is in the last segment that was in use (knob
 *       scan_all: in any) and damaged falls back to the previous version; if that is
 *       damaged too, or there is none, the key is dropped
 *
 * The log goes on after the last segment that was in use; that is written down (layout.h).
 *
 * Every correction is durable before the server starts. Otherwise the space of a
 * rejected object could be used again by another key, and a second power failure
 * could bring the reference to it back.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/stores/erda/recover.h"

/* R1. An entry in use that makes no sense is left to the structural check. */
static void collect(struct boot *b)
{
	for (uint32_t i = 0; i < b->geo.entries; i++) {
		const struct erda_entry *entry = &b->entry[i];
		struct live *live = &b->live[b->lives];

		live->region = entry->region;
		if (live->region == ERDA_EMPTY)
			continue;
		live->slot = i;
		live->klen = entry->klen;
		live->head = entry->head;
		if (live->klen == 0 || live->klen > TM_MAX_KEY || live->head >= b->geo.heads)
			continue;
		memcpy(live->key, entry->key, live->klen);
		b->lives++;
	}
}

void recover_set(struct boot *b, struct live *live, uint64_t region)
{
	uint64_t *at = &b->entry[live->slot].region;

	live->region = region;
	*at = region;
	pmem_persist(at, sizeof(*at));
}

static bool same_key(const struct live *a, const struct live *b)
{
	return a->klen == b->klen && memcmp(a->key, b->key, a->klen) == 0;
}

/* R2. Both places of a cut displacement are in the key's neighbourhood. */
static void drop_duplicates(struct boot *b)
{
	for (uint32_t i = 0; i < b->lives; i++) {
		struct live *one = &b->live[i];

		for (uint32_t j = i + 1; j < b->lives && b->live[j].slot - one->slot < b->geo.hop;
		     j++) {
			struct live *other = &b->live[j];

			if (one->region == ERDA_EMPTY || other->region == ERDA_EMPTY ||
			    !same_key(one, other))
				continue;
			if (erda_newoff(other->region) > erda_newoff(one->region))
				recover_set(b, one, ERDA_EMPTY);
			else
				recover_set(b, other, ERDA_EMPTY);
		}
	}
}

/* The end of the segment in which `off` lies, bytes; 0 for no version and for nonsense. */
uint64_t recover_segment_end(const struct erda_geo *geo, uint32_t off)
{
	uint64_t at = (uint64_t)off * geo->unit;

	if (off == ERDA_NO_OFFSET || at >= geo->region_len)
		return 0;
	return at - at % geo->seg_len + geo->seg_len;
}

bool recover_intact(const struct boot *b, const struct live *live, unsigned region, uint32_t off,
		    struct erda_object *object)
{
	const uint8_t *log = b->pm + erda_region_off(&b->geo, live->head, region);

	return erda_object_at(&b->geo, log, off, live->key, live->klen, object) == OBJECT_GOOD;
}

/* Is the entry's newest version where recovery looks? */
static bool is_checked(const struct boot *b, const struct live *live)
{
	const struct erda_head *head = &erda_heads(b->pm)[live->head];
	unsigned region = erda_state_region(head->state);
	uint32_t newest = erda_newoff(live->region);

	if (live->region == ERDA_EMPTY || erda_region_of(&b->geo, live->region, region) != region)
		return false;
	return b->geo.knob.scan_all || recover_segment_end(&b->geo, newest) == head->used[region];
}

/*
 * If the process alone has died, what is intact may be in a cache only. The log goes on in another
 * segment, and no later recovery looks here again.
 */
static void make_durable(struct boot *b, const struct live *live, unsigned region, uint32_t off,
			 const struct erda_object *object)
{
	uint64_t at = erda_region_off(&b->geo, live->head, region) + (uint64_t)off * b->geo.unit;

	pmem_persist(b->pm + at, object->len);
}

/* R4 */
static void check_versions(struct boot *b)
{
	struct erda_object object;

	for (uint32_t i = 0; i < b->lives; i++) {
		struct live *live = &b->live[i];
		unsigned region = erda_state_region(erda_heads(b->pm)[live->head].state);

		if (!is_checked(b, live))
			continue;
		if (b->geo.bug == BUG_RECOVER_OLDER &&
		    recover_intact(b, live, region, erda_oldoff(live->region), &object))
			recover_set(b, live, erda_revert(live->region));
		if (!recover_intact(b, live, region, erda_newoff(live->region), &object)) {
			if (!recover_intact(b, live, region, erda_oldoff(live->region), &object)) {
				recover_set(b, live, ERDA_EMPTY);
				continue;
			}
			recover_set(b, live, erda_revert(live->region));
		}
		make_durable(b, live, region, erda_newoff(live->region), &object);
	}
}

/* A seeded bug: the log goes on at the start of the last segment. */
static void lower_tail(struct boot *b, unsigned head)
{
	struct erda_head *h = &erda_heads(b->pm)[head];
	uint64_t *used = &h->used[erda_state_region(h->state)];

	if (*used == 0)
		return;
	*used -= b->geo.seg_len;
	pmem_persist(used, sizeof(*used));
}

int erda_recover(const struct tm_env *env)
{
	struct boot *b = calloc(1, sizeof(*b));
	int rc = 0;

	if (!b)
		return -ENOMEM;
	erda_geo(&b->geo, env->params);
	b->pm = env->pm;
	b->entry = erda_table(&b->geo, env->pm);
	b->live = calloc(b->geo.entries, sizeof(*b->live));
	if (!b->live || env->pm_len < b->geo.pool_len) {
		free(b->live);
		free(b);
		return -ENOMEM;
	}
	/* If the process alone has died, they may be in a cache only, and what recovery makes
	 * durable has to come after what it relies on. */
	pmem_persist(erda_heads(b->pm), b->geo.heads * sizeof(struct erda_head));
	pmem_persist(b->entry, b->geo.entries * sizeof(*b->entry));
	collect(b);
	if (b->geo.bug != BUG_KEEP_DUPLICATES)
		drop_duplicates(b);
	for (unsigned h = 0; h < b->geo.heads && !rc; h++)
		rc = recover_cleaning(b, h);
	if (b->geo.bug != BUG_RECOVER_NO_CRC)
		check_versions(b);
	for (unsigned h = 0; h < b->geo.heads && b->geo.bug == BUG_TAIL_LOW; h++)
		lower_tail(b, h);
	free(b->live);
	free(b);
	return rc;
}

/* -------------------------------------------------------- structural check */

struct check {
	struct boot b;
	struct tm_fsck *fsck;
};

static void check_offset(struct check *c, const struct live *live, const char *which, uint32_t off)
{
	const struct erda_head *head = &erda_heads(c->b.pm)[live->head];
	uint64_t at = (uint64_t)off * c->b.geo.unit;

	if (erda_room(&c->b.geo, at) < ERDA_HEADER + 1)
		c->fsck->bad(c->fsck, "entry %u: %s offset %u is not a place for an object",
			     live->slot, which, off);
	else if (at >= head->used[erda_state_region(head->state)])
		c->fsck->bad(c->fsck, "entry %u: %s offset %u is in space that will be used again",
			     live->slot, which, off);
}

/*
 * An intact newest version is promised where recovery looked (the last segment, or with scan_all
 * anywhere), and of what the cleaner copied, for it waited until the copies were durable.
 */
static void check_newest(struct check *c, const struct live *live)
{
	const struct erda_head *head = &erda_heads(c->b.pm)[live->head];
	unsigned region = erda_state_region(head->state);
	uint32_t newest = erda_newoff(live->region);
	bool copied = erda_region_of(&c->b.geo, live->region, region) == region &&
		      (uint64_t)newest * c->b.geo.unit < head->reserved_end;

	if ((copied || is_checked(&c->b, live)) &&
	    !recover_intact(&c->b, live, region, newest, NULL))
		c->fsck->bad(c->fsck, "entry %u: no intact object at the newest offset %u",
			     live->slot, newest);
}

static void check_entry(struct check *c, const struct live *live)
{
	unsigned region = erda_state_region(erda_heads(c->b.pm)[live->head].state);
	struct erda_place place;

	if ((live->region & 1) != (c->b.geo.marked ? region : 0))
		c->fsck->bad(c->fsck, "entry %u: its versions are not in the head's region %u",
			     live->slot, region);
	erda_place(&c->b.geo, live->key, live->klen, &place);
	if (live->slot - place.home >= c->b.geo.hop)
		c->fsck->bad(c->fsck, "entry %u: its key's home is %u", live->slot, place.home);
	if (live->head != place.head)
		c->fsck->bad(c->fsck, "entry %u: head %u instead of %u", live->slot, live->head,
			     place.head);
	check_offset(c, live, "newest", erda_newoff(live->region));
	if (erda_oldoff(live->region) != ERDA_NO_OFFSET)
		check_offset(c, live, "previous", erda_oldoff(live->region));
	check_newest(c, live);
}

static void check_unique(struct check *c, uint32_t i)
{
	const struct live *one = &c->b.live[i];

	for (uint32_t j = i + 1; j < c->b.lives && c->b.live[j].slot - one->slot < c->b.geo.hop;
	     j++) {
		if (same_key(one, &c->b.live[j]))
			c->fsck->bad(c->fsck, "entries %u and %u have the same key", one->slot,
				     c->b.live[j].slot);
	}
}

/* Space is handed out once, so no object belongs to two keys. */
static void check_shared(struct check *c, uint32_t i)
{
	const struct live *one = &c->b.live[i];

	for (uint32_t j = i + 1; j < c->b.lives; j++) {
		const struct live *other = &c->b.live[j];

		if (one->head == other->head && one->region != ERDA_EMPTY &&
		    other->region != ERDA_EMPTY &&
		    erda_newoff(one->region) == erda_newoff(other->region))
			c->fsck->bad(c->fsck, "entries %u and %u have the newest offset %u",
				     one->slot, other->slot, erda_newoff(one->region));
	}
}

/* What has never been handed out, or not since the region was wiped, is zero. */
static void check_unused(struct check *c, unsigned h, unsigned r)
{
	const struct erda_geo *geo = &c->b.geo;
	uint64_t at = erda_heads(c->b.pm)[h].used[r], rest = geo->region_len - at;
	const uint8_t *region = c->b.pm + erda_region_off(geo, h, r);

	/* The first byte is zero, and each is as the one before it. */
	if (!rest || geo->knob.wipe ||
	    (!region[at] && memcmp(region + at, region + at + 1, rest - 1) == 0))
		return;
	while (!region[at])
		at++;
	c->fsck->bad(c->fsck, "head %u: region %u is not empty at %llu, after its used bytes", h, r,
		     (unsigned long long)at);
}

static void check_heads(struct check *c)
{
	const struct erda_geo *geo = &c->b.geo;

	for (unsigned h = 0; h < geo->heads; h++) {
		const struct erda_head *head = &erda_heads(c->b.pm)[h];

		if (head->region_len != geo->region_len || head->seg_len != geo->seg_len)
			c->fsck->bad(c->fsck, "head %u: not as it was formatted", h);
		for (unsigned r = 0; r < ERDA_REGIONS; r++) {
			if (head->region[r] != erda_region_off(geo, h, r))
				c->fsck->bad(c->fsck, "head %u: region %u is not where it was", h,
					     r);
			if (head->used[r] > geo->region_len || head->used[r] % geo->seg_len)
				c->fsck->bad(c->fsck,
					     "head %u: region %u's used bytes make no sense", h, r);
			else
				check_unused(c, h, r);
		}
		if (erda_state_phase(head->state) != CLEAN_NONE)
			c->fsck->bad(c->fsck, "head %u: a cleaning is not brought to an end", h);
	}
}

void erda_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct check *c = calloc(1, sizeof(*c));
	struct boot *b = &c->b;
	uint32_t used = 0;

	if (!c) {
		fsck->bad(fsck, "no memory for the check");
		return;
	}
	c->fsck = fsck;
	erda_geo(&b->geo, env->params);
	b->pm = env->pm;
	b->entry = erda_table(&b->geo, env->pm);
	b->live = calloc(b->geo.entries, sizeof(*b->live));
	if (!b->live) {
		fsck->bad(fsck, "no memory for the check");
		goto out;
	}
	check_heads(c);
	collect(b);
	for (uint32_t i = 0; i < b->geo.entries; i++)
		used += b->entry[i].region != ERDA_EMPTY;
	if (used != b->lives)
		fsck->bad(fsck, "entries in use without a possible key or head: %u",
			  used - b->lives);
	for (uint32_t i = 0; i < b->lives; i++) {
		check_entry(c, &b->live[i]);
		check_unique(c, i);
		check_shared(c, i);
	}
out:
	free(b->live);
	free(c);
}
