/* SPDX-License-Identifier: BSD-3-Clause */
/* See seen.h: open addressing, at most half full, hash 0 is kept as 1. */
#include "checker/explore/visited.h"
#include <stdlib.h>
#include <string.h>

struct visited {
	struct visited_entry *entry;
	uint32_t room, used; /* room: a power of two */
};

struct visited *visited_new(void)
{
	struct visited *seen = calloc(1, sizeof(*seen));
	if (!seen)
		return NULL;
	seen->room = 4096;
	seen->entry = calloc(seen->room, sizeof(*seen->entry));
	if (!seen->entry) {
		free(seen);
		return NULL;
	}
	return seen;
}

void visited_free(struct visited *seen)
{
	if (seen)
		free(seen->entry);
	free(seen);
}

void visited_clear(struct visited *seen)
{
	memset(seen->entry, 0, seen->room * sizeof(*seen->entry));
	seen->used = 0;
}

static struct visited_entry *find(struct visited_entry *entry, uint32_t room, uint64_t hash)
{
	uint32_t i = (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
	while (entry[i].hash && entry[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &entry[i];
}

bool visited_has(const struct visited *seen, uint64_t hash)
{
	return find(seen->entry, seen->room, hash ? hash : 1)->hash;
}

static void grow(struct visited *seen)
{
	struct visited_entry *bigger = seen->room < VISITED_MAX
					       ? calloc(2 * (size_t)seen->room, sizeof(*bigger))
					       : NULL;
	if (!bigger) {
		visited_clear(seen);
		return;
	}
	for (uint32_t i = 0; i < seen->room; i++)
		if (seen->entry[i].hash)
			*find(bigger, 2 * seen->room, seen->entry[i].hash) = seen->entry[i];
	free(seen->entry);
	seen->entry = bigger;
	seen->room *= 2;
}

struct visited_entry *visited_add(struct visited *seen, uint64_t hash, bool *is_new)
{
	if (!hash)
		hash = 1;
	if (seen->used >= seen->room / 2)
		grow(seen);
	struct visited_entry *entry = find(seen->entry, seen->room, hash);
	*is_new = !entry->hash;
	if (*is_new) {
		entry->hash = hash;
		seen->used++;
	}
	return entry;
}
