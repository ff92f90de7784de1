/* SPDX-License-Identifier: BSD-3-Clause */
/* See regular.h. */
#include "core/text/regular.h"
#include <errno.h>
#include <fcntl.h>
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
