/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's hash table: hopscotch hashing in persistent memory (Erda paper 3.2).
 *
 * A key's entry is in one of the `hop` slots from its home on. The table does not
 * wrap around: the last homes' neighbourhoods go on into `hop` - 1 extra slots. A
 * client reads the home slot, and then the rest of the neighbourhood, each with one
 * READ. An insertion takes the first free slot after the home; if that is too far
 * away, an entry before it that may live there moves into it, which frees a nearer
 * slot, and so on.
 *
 * Moving an entry, so that no power failure and no reader loses it:
 *
 *	moves++ (odd)	copy key, key length, head ID	persist
 *			copy the atomic region		persist
 *			free the source			persist
 *	moves++ (even)
 *
 * A power failure in between leaves the key twice, which recovery sorts out. The
 * last persist keeps the next owner's key from becoming durable under the old
 * owner's region. Entries only move away from home, so a READ that goes from left
 * to right meets the entry at its old or its new place; a client whose READ may go
 * in any order reads `moves` before it believes that a key is absent.
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include "core/rt/rt.h"
#include "core/stores/erda/layout.h"

static uint64_t hash_bytes(const uint8_t *bytes, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ull + len;

	for (size_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/*
 * knob crowd: keys that end in 1, 2, 3 (4, 5, 6; ...) share three slots, with homes
 * a, a + 1, a. With a neighbourhood of two, inserting the third displaces the second.
 */
static uint32_t crowded_home(const struct erda_geo *geo, const uint8_t *key, size_t klen)
{
	uint32_t groups = geo->slots / 3;
	uint64_t number = 0, ten = 1;

	for (size_t i = klen; i > 0 && key[i - 1] >= '0' && key[i - 1] <= '9' && klen - i < 9;
	     i--) {
		number += (uint64_t)(key[i - 1] - '0') * ten;
		ten *= 10;
	}
	number = number ? number - 1 : 3 * groups - 1;
	return (uint32_t)(number / 3 % groups * 3 + (number % 3 == 1));
}

void erda_place(const struct erda_geo *geo, const void *key, size_t klen, struct erda_place *place)
{
	uint64_t h = hash_bytes(key, klen);

	place->home = (uint32_t)h & (geo->slots - 1);
	if (geo->knob.crowd)
		place->home = crowded_home(geo, key, klen);
	place->head = geo->heads > 1 ? (uint8_t)((h >> 40) % geo->heads) : 0;
	assert(place->home < geo->slots && place->head < geo->heads);
}

/* A seeded bug: is the key that is looked for the beginning of the entry's? */
static bool is_longer(const struct erda_index *index, const struct erda_entry *entry, size_t klen)
{
	return index->geo->bug == BUG_FIND_PREFIX && entry->klen > klen;
}

int erda_find(const struct erda_index *index, uint32_t home, const void *key, size_t klen)
{
	const struct erda_entry *entry = &index->entry[home];

	for (uint32_t i = 0; i < index->geo->hop; i++, entry++) {
		if (entry->region == ERDA_EMPTY ||
		    (entry->klen != klen && !is_longer(index, entry, klen)))
			continue;
		if (rt_check(memcmp(entry->key, key, klen) == 0))
			return (int)(home + i);
	}
	return -ENOENT;
}

/* Where an entry's home is; its own slot if the entry is no longer readable. */
static uint32_t home_of(const struct erda_index *index, uint32_t slot)
{
	const struct erda_entry *entry = &index->entry[slot];
	struct erda_place place;
	uint8_t key[TM_MAX_KEY];
	unsigned klen = entry->klen;

	if (klen > TM_MAX_KEY)
		return slot;
	memcpy(key, entry->key, klen);
	erda_place(index->geo, key, klen, &place);
	return place.home;
}

static void copy_key(struct erda_entry *to, const struct erda_entry *from)
{
	memcpy(to->key, from->key, sizeof(to->key));
	to->klen = from->klen;
	to->head = from->head;
}

static void move_entry(const struct erda_index *index, uint32_t from_slot, uint32_t to_slot)
{
	struct erda_entry *from = &index->entry[from_slot], *to = &index->entry[to_slot];
	bool ordered = index->geo->bug != BUG_DISPLACE_UNORDERED;

	(*index->moves)++;
	copy_key(to, from);
	if (ordered)
		pmem_persist(to, offsetof(struct erda_entry, unused));
	to->region = from->region;
	if (ordered)
		pmem_persist(&to->region, sizeof(to->region));
	from->region = ERDA_EMPTY;
	if (ordered && index->geo->bug != BUG_SOURCE_KEPT)
		pmem_persist(&from->region, sizeof(from->region));
	if (index->geo->bug != BUG_MOVES_ODD)
		(*index->moves)++;
}

/* A seeded bug: the entry is nowhere between two of these lines, and no reader learns of it. */
static void move_entry_early(const struct erda_index *index, uint32_t from_slot, uint32_t to_slot)
{
	struct erda_entry *from = &index->entry[from_slot], *to = &index->entry[to_slot];
	uint64_t region = from->region;

	from->region = ERDA_EMPTY;
	pmem_persist(&from->region, sizeof(from->region));
	copy_key(to, from);
	pmem_persist(to, offsetof(struct erda_entry, unused));
	to->region = region;
	pmem_persist(&to->region, sizeof(to->region));
}

int erda_make_room(const struct erda_index *index, uint32_t home)
{
	const struct erda_geo *geo = index->geo;
	uint32_t hole = home;

	while (hole < geo->entries && index->entry[hole].region != ERDA_EMPTY)
		hole++;
	if (hole == geo->entries)
		return -ENOSPC;
	while (hole - home >= geo->hop + (geo->bug == BUG_INSERT_TOO_FAR)) {
		uint32_t from = hole - geo->hop + 1;

		while (from < hole && hole - home_of(index, from) >= geo->hop)
			from++;
		if (from == hole)
			return -ENOSPC;
		if (geo->bug == BUG_DISPLACE_EARLY)
			move_entry_early(index, from, hole);
		else
			move_entry(index, from, hole);
		if (index->since && geo->bug != BUG_DISPLACED_AGE)
			index->since[hole] = index->since[from];
		if (index->met)
			index->met[hole] = index->met[from];
		hole = from;
	}
	if (index->met)
		index->met[hole] = 0;
	return (int)hole;
}
