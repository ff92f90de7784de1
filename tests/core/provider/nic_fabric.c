/* SPDX-License-Identifier: BSD-3-Clause */
/* See nic_fabric.h. */
#include "tests/core/provider/nic_fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int nic_fabric_run(Suite *suite)
{
	char net[] = "/dev/shm/tidemark-test-XXXXXX", command[sizeof(net) + 16];
	SRunner *runner;
	int failed;

	if (!mkdtemp(net)) {
		fprintf(stderr, "no /dev/shm to put a fabric in\n");
		return 70;
	}
	setenv("TIDEMARK_FABRIC", net, 1);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	/* Each test was a process of its own; only the fabric's directory is left. */
	snprintf(command, sizeof(command), "rm -rf %s", net);
	return system(command) || failed != 0;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
