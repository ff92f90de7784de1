/* SPDX-License-Identifier: BSD-3-Clause */
/* The RDMA device of a command of the live world. */
#include <infiniband/verbs.h>
#include "cli/cli.h"
#include "core/live/live.h"

int open_device(const char *name, struct ibv_context **verbs)
{
	if (!live_device_open(name, verbs))
		return 0;
	if (name)
		return fail(EXIT_USAGE, "--device: no RDMA device \"%.40s\" (rdma link lists them)",
			    name);
	return fail(EXIT_SKIPPED,
		    "this machine has no RDMA device; docs/live.md says how to make one");
}
