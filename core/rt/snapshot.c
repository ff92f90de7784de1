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
	s->n = s->taken = 0;
}

void snapshot_put(struct snapshot *s, const void *from, size_t bytes)
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
	if (bytes)
		memcpy(s->bytes + s->n, from, bytes);
	s->n += bytes;
}

void snapshot_rewind(struct snapshot *s)
{
	s->taken = 0;
}

void snapshot_take(struct snapshot *s, void *to, size_t bytes)
{
	assert(s->taken + bytes <= s->n);
	if (bytes)
		memcpy(to, s->bytes + s->taken, bytes);
	s->taken += bytes;
}

void snapshot_skip(struct snapshot *s, size_t bytes)
{
	assert(s->taken + bytes <= s->n);
	s->taken += bytes;
}

void snapshot_free(struct snapshot *s)
{
	free(s->bytes);
	*s = (struct snapshot){0};
}
