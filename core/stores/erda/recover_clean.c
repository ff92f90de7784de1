/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda after a power failure during a cleaning (clean.c).
 *
 * MERGE: each entry's newest half is right, and in the old region. The other half, which
 * may name a copy, becomes all ones; nothing has happened.
 *
 * REPLICATE: entries may name updates in the other region, after the reserved area, so
 * the cleaning is brought to its end. An entry that is not flipped takes, in this order,
 * the update after the area, the newest half, the copy: the first that is intact. A
 * version that is only in the old region is copied after all that entries name in the
 * other one. A second power failure finds fewer entries to flip, and copies to the same
 * places; no entry has named anything of what it overwrites.
 *
 * The state changes last. Until then the old region stays as it is.
 */
#include <errno.h>
#include <libpmem.h>
#include "core/stores/erda/recover.h"

static void set_state(struct boot *b, unsigned head, unsigned region)
{
	uint64_t *state = &erda_heads(b->pm)[head].state;

	*state = erda_state_word(CLEAN_NONE, region);
	pmem_persist(state, sizeof(*state));
}

static void take_back(struct boot *b, unsigned head, unsigned from)
{
	uint64_t *reserved_end = &erda_heads(b->pm)[head].reserved_end;

	/* It may be the end of the region that is given up. */
	*reserved_end = 0;
	pmem_persist(reserved_end, sizeof(*reserved_end));
	for (uint32_t i = 0; i < b->lives; i++) {
		struct live *live = &b->live[i];
		uint64_t m = live->region;

		if (live->head != head || m == ERDA_EMPTY || erda_oldoff(m) == ERDA_NO_OFFSET)
			continue;
		recover_set(b, live,
			    erda_newoff(m) == ERDA_NO_OFFSET
				    ? ERDA_EMPTY
				    : erda_only(m >> 63, erda_newoff(m), from));
	}
	set_state(b, head, from);
}

/* Where nothing in the other region is named by an entry any more. */
static uint64_t free_from(const struct boot *b, unsigned head, unsigned to)
{
	uint64_t at = erda_heads(b->pm)[head].reserved_end;

	for (uint32_t i = 0; i < b->lives; i++) {
		const struct live *live = &b->live[i];
		uint64_t newest = recover_segment_end(&b->geo, erda_newoff(live->region));
		uint64_t other = recover_segment_end(&b->geo, erda_oldoff(live->region));

		if (live->head != head || live->region == ERDA_EMPTY)
			continue;
		if ((live->region & 1) == to && newest > at)
			at = newest;
		if (other > at)
			at = other;
	}
	return at;
}

/* Copy the newest version, durably, to the first free place; its offset goes to *off. */
static int copy_newest(struct boot *b, const struct live *live, unsigned from, size_t len,
		       uint64_t *tail, uint32_t *off)
{
	const struct erda_geo *geo = &b->geo;
	uint64_t *used = &erda_heads(b->pm)[live->head].used[!from], at = *tail;
	const uint8_t *old = b->pm + erda_region_off(geo, live->head, from) +
			     (uint64_t)erda_newoff(live->region) * geo->unit;

	if (at % geo->seg_len + len > geo->seg_len)
		at += geo->seg_len - at % geo->seg_len;
	if (at + len > geo->region_len)
		return -ENOSPC;
	uint64_t to = at / geo->seg_len * geo->seg_len + geo->seg_len;
	if (to > *used) {
		*used = to;
		pmem_persist(used, sizeof(*used));
	}
	uint8_t *copy = b->pm + erda_region_off(geo, live->head, !from) + at;
	memcpy(copy, old, len);
	pmem_persist(copy, len);
	*off = (uint32_t)(at / geo->unit);
	*tail = at + (len + geo->align - 1) / geo->align * geo->align;
	return 0;
}

/* Are the newest version and the copy the same object? */
static bool same(const struct boot *b, const struct live *live, unsigned from,
		 const struct erda_object *newest)
{
	struct erda_object copy;

	return recover_intact(b, live, !from, erda_oldoff(live->region), &copy) &&
	       copy.crc == newest->crc && copy.len == newest->len && copy.tag == newest->tag;
}

static int finish_entry(struct boot *b, struct live *live, unsigned from, uint64_t *tail)
{
	const struct erda_head *head = &erda_heads(b->pm)[live->head];
	uint32_t newest = erda_newoff(live->region), other = erda_oldoff(live->region);
	bool newer = other != ERDA_NO_OFFSET && (uint64_t)other * b->geo.unit >= head->reserved_end;
	struct erda_object object;
	int rc = 0;

	if (!newer || !recover_intact(b, live, !from, other, NULL)) {
		if (recover_intact(b, live, from, newest, &object)) {
			if (object.tag)
				other = ERDA_NO_OFFSET;
			else if (newer || !same(b, live, from, &object))
				rc = copy_newest(b, live, from, object.len, tail, &other);
		} else if (!recover_intact(b, live, !from, other, NULL)) {
			other = ERDA_NO_OFFSET;
		}
	}
	if (!rc)
		recover_set(b, live,
			    other == ERDA_NO_OFFSET
				    ? ERDA_EMPTY
				    : erda_only(!(live->region >> 63), other, !from));
	return rc;
}

static int bring_to_end(struct boot *b, unsigned head, unsigned from)
{
	uint64_t tail = free_from(b, head, !from);

	if (b->geo.bug == BUG_RECOVER_STATE_FIRST)
		set_state(b, head, !from);
	for (uint32_t i = 0; i < b->lives; i++) {
		struct live *live = &b->live[i];

		if (live->head != head || live->region == ERDA_EMPTY || (live->region & 1) != from)
			continue;
		int rc = finish_entry(b, live, from, &tail);
		if (rc)
			return rc;
	}
	set_state(b, head, !from);
	return 0;
}

int recover_cleaning(struct boot *b, unsigned head)
{
	uint64_t state = erda_heads(b->pm)[head].state;
	unsigned from = erda_state_region(state);

	if (b->geo.bug == BUG_CLEAN_PHASE_IGNORED) {
		if (erda_state_phase(state) != CLEAN_NONE)
			set_state(b, head, from);
		return 0;
	}
	switch (erda_state_phase(state)) {
	case CLEAN_MERGE:
		take_back(b, head, from);
		return 0;
	case CLEAN_REPLICATE:
		return bring_to_end(b, head, from);
	default:
		return 0;
	}
}
