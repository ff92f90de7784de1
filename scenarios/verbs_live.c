/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs programs on a device of the system's libibverbs. The two hosts are two contexts of one
 * device, as two programs on one machine would have them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "core/live/live_flush.h"
#include "scenarios/verbs.h"

static void live_rest(void *arg)
{
	const struct timespec moment = {.tv_nsec = 20000};
	(void)arg;
	nanosleep(&moment, NULL);
}

static uint64_t live_clock(void *arg)
{
	(void)arg;
	return clock_ns();
}

static void live_line(void *arg, const char *text)
{
	const struct verbs_out *out = arg;
	out->line(out->arg, text);
}

/* The address of IPv4, mapped, which every RoCE device has beside the link-local one. */
static int find_gid(struct ibv_context *context, uint8_t *index)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	union ibv_gid gid;
	for (unsigned i = 0; i < 16; i++)
		if (!ibv_query_gid(context, 1, (int)i, &gid) &&
		    !memcmp(gid.raw, mapped, sizeof(mapped))) {
			*index = (uint8_t)i;
			return 0;
		}
	return -EADDRNOTAVAIL;
}

static int open_hosts(const char *name, struct lab_world *world)
{
	int n = 0, error = -ENODEV;
	struct ibv_device **list = ibv_get_device_list(&n);
	for (int i = 0; list && i < n; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name))
			continue;
		error = 0;
		for (unsigned h = 0; h < LAB_HOSTS && !error; h++) {
			world->host[h] = ibv_open_device(list[i]);
			if (!world->host[h])
				error = errno ? -errno : -ENODEV;
		}
		break;
	}
	if (list)
		ibv_free_device_list(list);
	return error ? error : find_gid(world->host[0], &world->gid_index);
}

int verbs_run_live(const struct verbs_program *program, const char *device,
		   const struct verbs_out *out)
{
	struct lab_world world = {
		.arg = (void *)(uintptr_t)out,
		.rest = live_rest,
		.now = live_clock,
		.line = live_line,
		.create_qp = live_flush_create_qp,
		.flush = live_wr_flush,
	};
	int error = open_hosts(device, &world);
	if (!error)
		verbs_live.run(&world, program);
	for (unsigned h = 0; h < LAB_HOSTS; h++)
		if (world.host[h])
			ibv_close_device(world.host[h]);
	return error;
}
