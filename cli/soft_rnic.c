/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of the live world over the soft RNIC: they are verbs programs like any other, so the program
 * runs itself again with the library preloaded that `tidemark run` preloads. The process stays the same.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

/* Beside the program, or where both are installed. */
static bool find_library(char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/", "../lib/tidemark/"};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return false;
	self[len] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		int n = snprintf(path, size, "%s/%s" LIBRARY, self, places[i]);

		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return true;
	}
	return false;
}

int soft_rnic(void)
{
	char library[PATH_MAX], preload[2 * PATH_MAX];
	const char *others = getenv("LD_PRELOAD");

	if (has_device(DEVICE))
		return 0;
	if (!find_library(library, sizeof(library)))
		return fail(EXIT_SKIPPED, "no " LIBRARY " beside the program");
	if (others && strstr(others, LIBRARY))
		return fail(EXIT_INTERNAL, LIBRARY " is preloaded and shows no device " DEVICE);
	snprintf(preload, sizeof(preload), "%s%s%s", library, others ? ":" : "", others ? others : "");
	setenv("LD_PRELOAD", preload, 1);
	execv("/proc/self/exe", arguments);
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
