/* SPDX-License-Identifier: BSD-3-Clause */
/* See snapshot.h. */
#include "core/array.h"
#include "core/rt/snapshot.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

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

void snapshot_exchange(struct snapshot *s, void *part, size_t bytes)
{
	if (!bytes)
		return; /* there may be no array */
	if (!s->takes) {
		if (!ARRAY_RESERVE(s->bytes, s->n, bytes, s->room))
			arena_exhausted();
		memcpy(s->bytes + s->n, part, bytes);
		s->n += bytes;
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
