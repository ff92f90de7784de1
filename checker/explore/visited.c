/* SPDX-License-Identifier: BSD-3-Clause */
/* See seen.h: open addressing, at most half full, hash 0 is kept as 1. */
#include "checker/explore/visited.h"
#include <stdlib.h>
#include <string.h>

struct seen {
	struct seen_entry *entry;
	uint32_t room, used; /* room: a power of two */
};

struct seen *seen_new(void)
{
	struct seen *seen = calloc(1, sizeof(*seen));
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

void seen_free(struct seen *seen)
{
	if (seen)
		free(seen->entry);
	free(seen);
}

void seen_clear(struct seen *seen)
{
	memset(seen->entry, 0, seen->room * sizeof(*seen->entry));
	seen->used = 0;
}

static struct seen_entry *find(struct seen_entry *entry, uint32_t room, uint64_t hash)
{
	uint32_t i = (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 32) & (room - 1);
	while (entry[i].hash && entry[i].hash != hash)
		i = (i + 1) & (room - 1);
	return &entry[i];
}

bool seen_has(const struct seen *seen, uint64_t hash)
{
	return find(seen->entry, seen->room, hash ? hash : 1)->hash;
}

static void grow(struct seen *seen)
{
	struct seen_entry *bigger = seen->room < SEEN_MAX
					    ? calloc(2 * (size_t)seen->room, sizeof(*bigger))
					    : NULL;
	if (!bigger) {
		seen_clear(seen);
		return;
	}
	for (uint32_t i = 0; i < seen->room; i++)
		if (seen->entry[i].hash)
			*find(bigger, 2 * seen->room, seen->entry[i].hash) = seen->entry[i];
	free(seen->entry);
	seen->entry = bigger;
	seen->room *= 2;
}

struct seen_entry *seen_add(struct seen *seen, uint64_t hash, bool *is_new)
{
	if (!hash)
		hash = 1;
	if (seen->used >= seen->room / 2)
		grow(seen);
	struct seen_entry *entry = find(seen->entry, seen->room, hash);
	*is_new = !entry->hash;
	if (*is_new) {
		entry->hash = hash;
		seen->used++;
	}
	return entry;
}
