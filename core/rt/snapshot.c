/* SPDX-License-Identifier: BSD-3-Clause */
/* See snapshot.h. */
#include "core/rt/snapshot.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

#define ROOM_AT_FIRST ((size_t)64 * 1024)

void snapshot_begin(struct snapshot *s)
{
	s->n = 0;
	s->takes = false;
}

void snapshot_rewind(struct snapshot *s)
{
	s->taken = 0;
	s->takes = true;
}

static void put(struct snapshot *s, const void *part, size_t bytes)
{
	size_t room = s->room ? s->room : ROOM_AT_FIRST;
	while (room < s->n + bytes)
		room *= 2;
	if (room > s->room) {
		uint8_t *more = realloc(s->bytes, room);
		if (!more)
			arena_exhausted();
		s->bytes = more;
		s->room = room;
	}
	memcpy(s->bytes + s->n, part, bytes);
	s->n += bytes;
}

void snapshot_exchange(struct snapshot *s, void *part, size_t bytes)
{
	if (!bytes)
		return; /* there may be no array */
	if (!s->takes) {
		put(s, part, bytes);
		return;
	}
	assert(s->taken + bytes <= s->n);
	memcpy(part, s->bytes + s->taken, bytes);
	s->taken += bytes;
}

void snapshot_free(struct snapshot *s)
{
	free(s->bytes);
	*s = (struct snapshot){0};
}
