/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs find of the device's directory in sysfs, which does not exist, when they look there
 * themselves: only in the preloaded library.
 *
 *	a file that ibv_read_sysfs_file() knows		open(), fopen(); stat(), access()
 *	device/net/NAME, the network interface		stat(), access(), opendir(); files in it
 *	device/net, with that one entry			stat(), access(), opendir()
 *	the directories on the way			stat(), access()
 *
 * An opened file is one in memory, with the contents and a newline as of a kernel. The directory
 * device/net is /sys/class/net; readdir() passes over the other interfaces in it.
 */
#include "core/provider/verbs/sysfs.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/fail.h"
#include "core/provider/verbs/verbs.h"

#define NET	   "/device/net"
#define INTERFACES "/sys/class/net"
#define TEXT_MOST  256
#define LISTINGS   8 /* of device/net at a time; further ones show all interfaces */

/* What follows a device's directory in the path; NULL: it is another one. */
static const char *below(const char *path, unsigned *device)
{
	size_t len = strlen(NIC_SYSFS);

	__asm__("" : "+r"(path)); /* libc's headers promise more than callers keep */
	if (!path || strncmp(path, NIC_SYSFS, len) != 0)
		return NULL;
	*device = (unsigned)path[len] - '0';
	path += len + 1;
	return *device < nic_devices() && (!*path || *path == '/') ? path : NULL;
}

static bool is_directory(const char *rest)
{
	static const char *const directories[] = {"", "/ports", "/ports/1", "/device", NET};
	size_t len = strlen(rest);

	while (len && rest[len - 1] == '/')
		len--;
	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		if (strlen(directories[i]) == len && !memcmp(directories[i], rest, len))
			return true;
	return false;
}

static bool our_interface(char name[IF_NAMESIZE])
{
	return nic_get() && if_indextoname(nic_interface(), name);
}

/* NAME and the rest of a path device/net/NAME or below it; NULL: it is another path. */
static const char *interface_in(const char *rest)
{
	char name[IF_NAMESIZE];
	const char *at = rest + strlen(NET "/");
	size_t len;

	if (strncmp(rest, NET "/", strlen(NET "/")) != 0 || !*at || !our_interface(name))
		return NULL;
	len = strlen(name);
	return !strncmp(at, name, len) && (!at[len] || at[len] == '/') ? at : NULL;
}

const char *sysfs_stand_in(const char *path, char room[SYSFS_PATH])
{
	unsigned device;
	const char *rest = below(path, &device);
	char text[TEXT_MOST];
	int error = errno;

	if (!rest)
		return path;
	if (is_directory(rest))
		return INTERFACES;
	const char *interface = interface_in(rest);
	if (interface && snprintf(room, SYSFS_PATH, INTERFACES "/%s", interface) < SYSFS_PATH)
		return room;
	if (nic_say_file(device, rest, text, sizeof(text)) >= 0)
		path = "/proc/version"; /* which all may read, as in sysfs */
	errno = error;
	return path;
}

/* --- files --- */

/* -1: not one of ours, errno as before. */
static int open_text(unsigned device, const char *rest, int flags)
{
	char text[TEXT_MOST];
	int error = errno, fd, len = nic_say_file(device, rest, text, sizeof(text) - 1);

	if (len < 0)
		return -1;
	if ((flags & O_ACCMODE) != O_RDONLY)
		return errno_minus(EACCES);
	text[len++] = '\n';
	fd = memfd_create("sysfs", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0)
		return -1;
	if (pwrite(fd, text, (size_t)len, 0) != len) {
		close(fd);
		errno = EIO;
		return -1;
	}
	errno = error;
	return fd;
}

static int open_at(const char *path, int flags, mode_t mode)
{
	unsigned device;
	const char *rest = below(path, &device);
	char room[SYSFS_PATH];

	if (!rest)
		return openat(AT_FDCWD, path, flags, mode);
	if (!is_directory(rest) && !interface_in(rest))
		return open_text(device, rest, flags);
	return openat(AT_FDCWD, sysfs_stand_in(path, room), flags, mode);
}

#define MODE_OF(flags)                                                  \
	({                                                              \
		mode_t mode_ = 0;                                       \
		if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
			va_list list_;                                  \
			va_start(list_, flags);                         \
			mode_ = va_arg(list_, mode_t);                  \
			va_end(list_);                                  \
		}                                                       \
		mode_;                                                  \
	})

EXPORT int open(const char *path, int flags, ...)
{
	return open_at(path, flags, MODE_OF(flags));
}

EXPORT int open64(const char *path, int flags, ...)
{
	return open_at(path, flags | O_LARGEFILE, MODE_OF(flags));
}

/* fopen() by the other name that it has. */
FILE *_IO_fopen(const char *path, const char *mode);

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
	unsigned device;

	if (!below(path, &device))
		return _IO_fopen(path, mode);
	int fd = open_at(path,
			 (*mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR) |
				 (strchr(mode, 'e') ? O_CLOEXEC : 0),
			 0);
	if (fd < 0)
		return NULL;
	FILE *file = fdopen(fd, mode);
	if (!file)
		close(fd);
	return file;
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	return fopen(path, mode);
}

/* --- the directory of network interfaces --- */

static _Atomic(DIR *) listing[LISTINGS]; /* those of device/net */
static struct dirent *(*real_readdir)(DIR *);
static int (*real_closedir)(DIR *);

static void find_real(void)
{
	*(void **)&real_readdir = dlsym(RTLD_NEXT, "readdir");
	*(void **)&real_closedir = dlsym(RTLD_NEXT, "closedir");
}

static void need_real(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_real);
}

static bool is_listing(DIR *dir)
{
	for (unsigned i = 0; i < LISTINGS; i++)
		if (atomic_load(&listing[i]) == dir)
			return true;
	return false;
}

static bool replace_listing(DIR *from, DIR *to)
{
	for (unsigned i = 0; i < LISTINGS; i++) {
		DIR *expected = from;

		if (atomic_compare_exchange_strong(&listing[i], &expected, to))
			return true;
	}
	return false;
}

EXPORT DIR *opendir(const char *path)
{
	unsigned device;
	const char *rest = below(path, &device);
	int fd = open_at(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	if (dir && rest && is_directory(rest))
		replace_listing(NULL, dir);
	return dir;
}

EXPORT int closedir(DIR *dir)
{
	need_real();
	replace_listing(dir, NULL);
	return real_closedir(dir);
}

EXPORT struct dirent *readdir(DIR *dir)
{
	char name[IF_NAMESIZE];
	struct dirent *entry;

	need_real();
	do {
		entry = real_readdir(dir);
	} while (entry && is_listing(dir) && entry->d_name[0] != '.' &&
		 (!our_interface(name) || strcmp(entry->d_name, name) != 0));
	return entry;
}

/* The structures are the same on 64-bit systems. */
EXPORT struct dirent64 *readdir64(DIR *dir)
{
	return (struct dirent64 *)readdir(dir);
}
