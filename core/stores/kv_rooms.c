/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_rooms.h. */
#include "core/stores/kv_rooms.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int kv_rooms_init(struct kv_rooms *rooms, uint64_t lines)
{
	*rooms = (struct kv_rooms){calloc(lines + 1, sizeof(*rooms->used)), lines, 0};
	return rooms->used ? 0 : -ENOMEM;
}

int kv_rooms_take(struct kv_rooms *rooms, uint64_t lines, uint64_t *first)
{
	uint64_t free = 0;

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
