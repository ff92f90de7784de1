/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head's log: space in its regions, and clients' access to them (server.h).
 */
#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/stores/erda/server.h"

#define FIRST_ROOM 16

size_t log_aligned(const struct erda_geo *geo, size_t len)
{
	return (len + geo->align - 1) / geo->align * geo->align;
}

int log_place(const struct server *server, const struct log *log, unsigned region, size_t len,
	      uint64_t limit, uint64_t *at, uint64_t *tail)
{
	const struct erda_geo *geo = &server->geo;

	len = log_aligned(geo, len);
	assert(len <= geo->seg_len && limit <= geo->region_len);
	*at = log->tail[region];
	if (*at % geo->seg_len + len > geo->seg_len)
		*at += geo->seg_len - *at % geo->seg_len;
	if (*at + len > limit || (geo->bounded && (*at + len) / geo->unit >= geo->off_mask))
		return -ENOSPC;
	*tail = *at + len;
	return 0;
}

void log_use(struct server *server, unsigned head, unsigned region, uint64_t tail)
{
	const struct erda_geo *geo = &server->geo;
	uint64_t *used = &head_of(server, head)->used[region];

	assert(tail <= geo->region_len && region < ERDA_REGIONS);
	if (tail <= *used)
		return;
	*used = (tail + geo->seg_len - 1) / geo->seg_len * geo->seg_len;
	pmem_persist(used, sizeof(*used));
}

int log_room_for(struct log *log, uint32_t more)
{
	uint32_t room = log->room ? 2 * log->room : FIRST_ROOM;
	uint32_t *made;

	if (log->mades + more <= log->room)
		return 0;
	assert(log->mades + more <= room); /* twice as much is enough */
	made = realloc(log->made, room * sizeof(*made));
	if (!made)
		return -ENOMEM;
	log->made = made;
	log->room = room;
	return 0;
}

void log_made(struct log *log, uint32_t off)
{
	assert(log->mades < log->room);
	log->made[log->mades++] = off;
}

int log_export(struct server *server, unsigned head, unsigned region)
{
	unsigned number = erda_export_log(head, region);

	if (server->rpc.export_mr[number])
		return 0;
	return rpc_server_export_at(
		&server->rpc, number, log_at(server, head, region), server->geo.region_len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

void log_unexport(struct server *server, unsigned head, unsigned region)
{
	unsigned number = erda_export_log(head, region);

	if (server->rpc.export_mr[number])
		rpc_server_unexport(&server->rpc, number);
}
