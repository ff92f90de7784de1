/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's node, which is not there: /dev/infiniband/uverbs0. Some programs (UCX, and so MPI)
 * look for it before they open the device by libibverbs, as a container may have the device and not
 * the right to use it. A library that is preloaded answers them: it is a character device that
 * anybody may read and write, such as /dev/null is. Nobody opens it.
 *
 * Every other path goes to the same call of libc's by its other name; no lookup, so that a handler
 * of a signal may ask, too.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/provider/verbs/verbs.h"

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

static const char *behind(const char *path)
{
	return path && !strcmp(path, NIC_NODE) ? "/dev/null" : path;
}

EXPORT int access(const char *path, int mode)
{
	return faccessat(AT_FDCWD, behind(path), mode, 0);
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	return fstatat(AT_FDCWD, behind(path), st, 0);
}

EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return fstatat64(AT_FDCWD, behind(path), st, 0);
}

/* By the names that programs of before glibc 2.33 know. */
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
