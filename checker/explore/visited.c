/* SPDX-License-Identifier: BSD-3-Clause */
/* See visited.h. Open addressing, at most half full; hash 0 is stored as 1. */
#include "checker/explore/visited.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct visited {
	struct visited_entry *entry;
	uint32_t room, used; /* room: a power of two */
	uint32_t emptied;
};

struct visited *visited_new(void)
{
	struct visited *set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->room = 4096;
	set->entry = calloc(set->room, sizeof(*set->entry));
	if (!set->entry) {
		free(set);
		return NULL;
	}
	return set;
}

void visited_free(struct visited *set)
{
	if (set)
		free(set->entry);
	free(set);
}

void visited_clear(struct visited *set)
{
	memset(set->entry, 0, set->room * sizeof(*set->entry));
	set->used = 0;
	set->emptied++;
}

static struct visited_entry *find(struct visited_entry *entry, uint32_t room, uint64_t hash)
{
	assert(hash && !(room & (room - 1)));
	uint32_t i = (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
	while (entry[i].hash && entry[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &entry[i];
}

const struct visited_entry *visited_find(const struct visited *set, uint64_t hash)
{
	const struct visited_entry *entry = find(set->entry, set->room, hash ? hash : 1);
	return entry->hash ? entry : NULL;
}

bool visited_has(const struct visited *set, uint64_t hash)
{
	return visited_find(set, hash);
}

uint32_t visited_emptied(const struct visited *set)
{
	return set->emptied;
}

static void grow(struct visited *set)
{
	struct visited_entry *bigger = set->room < VISITED_MAX
					       ? calloc(2 * (size_t)set->room, sizeof(*bigger))
					       : NULL;
	if (!bigger) {
		visited_clear(set);
		return;
	}
	for (uint32_t i = 0; i < set->room; i++)
		if (set->entry[i].hash)
			*find(bigger, 2 * set->room, set->entry[i].hash) = set->entry[i];
	free(set->entry);
	set->entry = bigger;
	set->room *= 2;
}

struct visited_entry *visited_add(struct visited *set, uint64_t hash, bool *is_new)
{
	if (!hash)
		hash = 1;
	if (set->used >= set->room / 2)
		grow(set);
	struct visited_entry *entry = find(set->entry, set->room, hash);
	*is_new = !entry->hash;
	if (*is_new) {
		entry->hash = hash;
		set->used++;
	}
	assert(entry->hash == hash && set->used <= set->room / 2); /* else find() would not end */
	return entry;
}
