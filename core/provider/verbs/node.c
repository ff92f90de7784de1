/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's node /dev/infiniband/uverbs0, which does not exist. Some programs (UCX, and so MPI)
 * look for it before they open the device by libibverbs, since a container may have the device
 * without the right to use it. The preloaded library answers them with the attributes of /dev/null:
 * a character device that every user may read and write. It is never opened. The device's directory
 * in sysfs has stand-ins, too (sysfs.c).
 *
 * Every other path goes to another libc function that does the same. That function is not looked up
 * by name at run time, so that a signal handler may call these functions, too.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/provider/verbs/sysfs.h"
#include "core/provider/verbs/verbs.h"

int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);

static const char *stand_in(const char *path, char room[SYSFS_PATH])
{
	size_t len = strlen(NIC_NODE);

	__asm__("" : "+r"(path)); /* libc's headers promise more than callers keep */
	if (path && !strncmp(path, NIC_NODE, len) && path[len] && !path[len + 1] &&
	    (unsigned)path[len] - '0' < nic_devices())
		return "/dev/null";
	return sysfs_stand_in(path, room);
}

EXPORT int access(const char *path, int mode)
{
	char room[SYSFS_PATH];

	return faccessat(AT_FDCWD, stand_in(path, room), mode, 0);
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	char room[SYSFS_PATH];

	return fstatat(AT_FDCWD, stand_in(path, room), st, 0);
}

EXPORT int stat64(const char *restrict path, struct stat64 *restrict st)
{
	char room[SYSFS_PATH];

	return fstatat64(AT_FDCWD, stand_in(path, room), st, 0);
}

/* What stands in may be a symbolic link, which the device's own would not be. */
static int link_flag(const char *path, const char *shown)
{
	return path == shown ? AT_SYMLINK_NOFOLLOW : 0;
}

EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
	char room[SYSFS_PATH];
	const char *shown = stand_in(path, room);

	return fstatat(AT_FDCWD, shown, st, link_flag(path, shown));
}

EXPORT int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	char room[SYSFS_PATH];
	const char *shown = stand_in(path, room);

	return fstatat64(AT_FDCWD, shown, st, link_flag(path, shown));
}

EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask,
		 struct statx *restrict st)
{
	char room[SYSFS_PATH];
	const char *shown = stand_in(path, room);

	if (path != shown)
		flags &= ~AT_SYMLINK_NOFOLLOW;
	return (int)syscall(SYS_statx, dir, shown, flags, mask, st);
}

/* The names under which programs call them that were built before glibc 2.33. */
EXPORT int __xstat(int version, const char *path, struct stat *st)
{
	return stat(path, st);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *st)
{
	return stat64(path, st);
}
