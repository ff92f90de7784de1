/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_rooms.h. */
#include "core/stores/kv_rooms.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

int kv_rooms_init(struct kv_rooms *rooms, uint64_t lines)
{
	*rooms = (struct kv_rooms){.used = calloc(lines + 1, sizeof(*rooms->used)), .lines = lines};
	return rooms->used ? 0 : -ENOMEM;
}

/* What is free by now. */
static void end_leases(struct kv_rooms *rooms)
{
	uint64_t now = rt_now(), left = 0;

	for (uint64_t i = 0; i < rooms->leases; i++) {
		const struct kv_leased *leased = &rooms->leased[i];

		if (leased->until <= now)
			kv_rooms_mark(rooms, leased->first, leased->lines, false);
		else
			rooms->leased[left++] = *leased;
	}
	rooms->leases = left;
}

int kv_rooms_take(struct kv_rooms *rooms, uint64_t lines, uint64_t *first)
{
	uint64_t free = 0;

	assert(lines > 0); /* a room without lines would be another one's, too */
	end_leases(rooms);
	while (rooms->all_used < rooms->lines && rooms->used[rooms->all_used])
		rooms->all_used++;
	for (uint64_t i = rooms->all_used; i < rooms->lines; i++) {
		free = rooms->used[i] ? 0 : free + 1;
		if (free == lines) {
			*first = i + 1 - lines;
			kv_rooms_mark(rooms, *first, lines, true);
			return 0;
		}
	}
	return -ENOSPC;
}

void kv_rooms_mark(struct kv_rooms *rooms, uint64_t first, uint64_t lines, bool used)
{
	memset(rooms->used + first, used, lines);
	if (!used && first < rooms->all_used)
		rooms->all_used = first;
}

/* If there is no memory for that, they stay in use. */
void kv_rooms_free_at(struct kv_rooms *rooms, uint64_t first, uint64_t lines, uint64_t until)
{
	assert(rooms->leases <= rooms->leases_max);
	if (rooms->leases == rooms->leases_max) {
		uint64_t max = 2 * rooms->leases_max + 8;
		struct kv_leased *more = realloc(rooms->leased, max * sizeof(*more));

		if (!more)
			return;
		rooms->leased = more;
		rooms->leases_max = max;
	}
	rooms->leased[rooms->leases++] = (struct kv_leased){first, lines, until};
}
