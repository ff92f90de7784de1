/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of the live world over the soft RNIC: they are verbs programs like any other, so the program
 * runs itself again, by `tidemark run`. The process stays the same.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"

#define DEVICE "tide0"
#define AGAIN  "TIDEMARK_AGAIN" /* in the environment: this is the second time */

/* Is there a device of this name? NULL: is there any? */
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
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned words = 0;
	char **again;

	if (has_device(DEVICE)) {
		unsetenv(AGAIN);
		return 0;
	}
	while (arguments[words])
		words++;
	again = calloc(words + 5, sizeof(*again));
	if (len < 0 || !again || getenv(AGAIN) || setenv(AGAIN, "1", 1)) {
		free(again);
		return fail(EXIT_INTERNAL, "the soft RNIC does not start: it shows no device " DEVICE);
	}
	self[len] = 0;
	again[0] = arguments[0];
	again[1] = "run";
	again[2] = "--";
	again[3] = self;
	memcpy(again + 4, arguments + 1, words * sizeof(*again)); /* and the NULL */
	execv(self, again);
	free(again);
	return fail(EXIT_INTERNAL, "the soft RNIC does not start: %s", strerror(errno));
}

int soft_rnic_if_asked(const char *device)
{
	if (device ? strcmp(device, DEVICE) != 0 : has_device(NULL))
		return 0;
	if (!device)
		fprintf(stderr, "tidemark: this machine has no RDMA device: the soft RNIC takes its place\n");
	return soft_rnic();
}
