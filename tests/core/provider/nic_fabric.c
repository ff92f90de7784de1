/* SPDX-License-Identifier: BSD-3-Clause */
/* See nic_fabric.h. */
#include "tests/core/provider/nic_fabric.h"

#include <time.h>

int nic_fabric_run(Suite *suite)
{
	char net[] = "/dev/shm/tidemark-test-XXXXXX", command[sizeof(net) + 16];
	int failed;

	if (!mkdtemp(net)) {
		fprintf(stderr, "no /dev/shm to put a fabric in\n");
		return 70;
	}
	setenv("TIDEMARK_FABRIC", net, 1);
	failed = run_suite(suite);
	/* Each test was a process of its own; only the fabric's directory is left. */
	snprintf(command, sizeof(command), "rm -rf %s", net);
	return system(command) || failed;
}
