/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of the live world over the soft RNIC: they are verbs programs like any other, so the
 * program runs itself again, as `tidemark run` would run it. The process stays the same.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

#define DEVICE	"tide0"
#define LIBRARY "libtidemark-verbs.so"

/* Is the soft RNIC, or another device of this name, there already? NULL: is any? */
static bool has_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (unsigned i = 0; list && list[i]; i++)
		found |= !name || !strcmp(ibv_get_device_name(list[i]), name);
	if (list)
		ibv_free_device_list(list);
	return found;
}

int soft_rnic(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	if (has_device(DEVICE))
		return 0;
	if (preloaded && strstr(preloaded, LIBRARY))
		return fail(EXIT_INTERNAL, LIBRARY " is preloaded and shows no device " DEVICE);
	return run_again();
}

int soft_rnic_if_asked(const char *device)
{
	if (device ? strcmp(device, DEVICE) != 0 : has_device(NULL))
		return 0;
	if (!device)
		fprintf(stderr, "tidemark: this machine has no RDMA device: the soft RNIC takes "
				"its place\n");
	return soft_rnic();
}
