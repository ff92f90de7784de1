/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's node /dev/infiniband/uverbs0, which does not exist. Some programs (UCX, and so MPI)
 * look for it before they open the device by libibverbs, since a container may have the device
 * without the right to use it. The preloaded library answers them with the attributes of /dev/null:
 * a character device that every user may read and write. It is never opened.
 *
 * Every other path goes to another libc function that does the same. That function is not looked up
 * by name at run time, so that a signal handler may call these functions, too.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/provider/verbs/verbs.h"

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

static const char *stand_in(const char *path)
{
	return path && !strcmp(path, NIC_NODE) ? "/dev/null" : path;
}

EXPORT int access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, stand_in(path), mode, 0);
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	return fstatat(AT_FDCWD, stand_in(path), st, 0);
}

EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return fstatat64(AT_FDCWD, stand_in(path), st, 0);
}

/* The names under which programs call them that were built before glibc 2.33. */
EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat(path, st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	(void)version;
	return stat64(path, st);
}
