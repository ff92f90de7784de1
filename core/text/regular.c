/* SPDX-License-Identifier: BSD-3-Clause */
/* See regular.h. */
#include "core/text/regular.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_open(const char *path)
{
	struct stat st;
	/* To open a device may do something already. */
	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd); /* it has become something else */
	return -ENOTSUP;
}

int program_find(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");
	int error = ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, X_OK) ? -errno : 0;
	}
	for (const char *at = dirs ? dirs : "/usr/bin:/bin", *end; *at || at == dirs;
	     at = end + !!*end) {
		struct stat is;

		end = strchrnul(at, ':');
		snprintf(path, size, "%.*s/%s", end == at ? 1 : (int)(end - at),
			 end == at ? "." : at, name);
		if (!stat(path, &is) && S_ISREG(is.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			error = errno;
		}
		if (!*end)
			break;
	}
	return -error;
}
