/* SPDX-License-Identifier: BSD-3-Clause */
/* See net_dir.h. Locks are POSIX locks: closing any descriptor of a file gives its lock up, so no
 * process opens its own files again. */
#include "core/provider/base/fabric_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKE_TRIES 100

int net_dir_make(const char *directory)
{
	struct stat is;
	int rc = -ENOENT;

	/* Whoever was the last in it may remove it in between. */
	for (unsigned n = 0; n < MAKE_TRIES && rc == -ENOENT; n++) {
		if (mkdir(directory, 0700) && errno != EEXIST)
			return -errno;
		rc = lstat(directory, &is) ? -errno : 0;
	}
	if (rc)
		return rc;
	if (!S_ISDIR(is.st_mode))
		return -ENOTDIR;
	/* In a directory of somebody else's, or that others may write to, anybody could be the
	 * peer. */
	return is.st_uid != geteuid() || is.st_mode & 077 ? -EPERM : 0;
}

int net_dir_open(const char *directory, const char *name, bool make)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0), 0600);
	return fd < 0 ? -errno : fd;
}

bool net_dir_lock(int fd, const char *directory, const char *name, bool waits)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char path[PATH_MAX];
	struct stat is, at;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	do {
		rc = fcntl(fd, waits ? F_SETLKW : F_SETLK, &lock);
	} while (rc && errno == EINTR);
	/* Between open() and the lock somebody else may have put another file there. */
	return !rc && !fstat(fd, &is) && !lstat(path, &at) && is.st_ino == at.st_ino &&
	       is.st_dev == at.st_dev;
}

pid_t net_dir_owner(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid ? lock.l_pid : -1;
}

pid_t net_dir_slot_owner(const char *directory, unsigned slot)
{
	char name[16];
	pid_t owner;
	int fd;

	snprintf(name, sizeof(name), "%u", slot);
	fd = net_dir_open(directory, name, false);
	if (fd < 0)
		return 0;
	owner = net_dir_owner(fd);
	close(fd);
	return owner;
}

void net_dir_remove(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path))
		unlink(path);
}

static bool is_process_file(const char *name)
{
	return isdigit((unsigned char)name[0]) || !strncmp(name, "nic.", 4);
}

/* Whoever still sends to this inbox has to look for another one. */
static void mark_dead(int fd)
{
	const uint32_t dead = 1;
	struct stat is;

	if (!fstat(fd, &is) && is.st_size > NET_DIR_DEAD_AT &&
	    pwrite(fd, &dead, sizeof(dead), NET_DIR_DEAD_AT) != sizeof(dead))
		return;
}

/* Is it a living process's? With `waits` only once that has ended. */
static bool sweep_file(const char *directory, const char *name, bool waits)
{
	int fd = net_dir_open(directory, name, false);
	bool lives;

	if (fd < 0)
		return false;
	lives = net_dir_owner(fd);
	if ((!lives || waits) && net_dir_lock(fd, directory, name, waits)) {
		if (isdigit((unsigned char)name[0]))
			mark_dead(fd);
		net_dir_remove(directory, name);
	}
	close(fd);
	return lives;
}

/*
 * A directory's names. Not by readdir(), which allocates: a process that exits in a signal's
 * handler may have been interrupted in malloc().
 */
struct listing {
	int fd;
	ssize_t len, at;
	_Alignas(struct dirent64) char entries[4096];
};

/* 0 or -errno. */
static int listing_open(struct listing *list, const char *directory)
{
	list->len = list->at = 0;
	list->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return list->fd < 0 ? -errno : 0;
}

/* NULL: that was all. */
static const char *listing_next(struct listing *list)
{
	struct dirent64 *entry;

	if (list->at >= list->len) {
		list->len = getdents64(list->fd, list->entries, sizeof(list->entries));
		list->at = 0;
		if (list->len <= 0)
			return NULL;
	}
	entry = (struct dirent64 *)(list->entries + list->at);
	list->at += entry->d_reclen;
	return entry->d_name;
}

void net_dir_slots(const char *directory, uint64_t *bits, unsigned words)
{
	struct listing list;
	const char *name;
	unsigned long slot;

	memset(bits, 0, words * sizeof(*bits));
	if (listing_open(&list, directory))
		return;
	while ((name = listing_next(&list))) {
		slot = isdigit((unsigned char)name[0]) ? strtoul(name, NULL, 10) : ULONG_MAX;
		if (slot / 64 < words)
			bits[slot / 64] |= 1ull << slot % 64;
	}
	close(list.fd);
}

/* How many living processes' files there are; with `waits` 1 after the first one's has ended. */
static int scan(const char *directory, bool waits)
{
	struct listing list;
	int lives = 0, rc = listing_open(&list, directory);
	const char *name;

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	while (!(waits && lives) && (name = listing_next(&list)))
		if (is_process_file(name))
			lives += sweep_file(directory, name, waits);
	close(list.fd);
	return lives;
}

/* The connection manager's listeners, and the file that has a lock for each port that somebody has
 * (cm_net.c): who gets all of the locks is alone. */
static void sweep_ports(const char *directory)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = net_dir_open(directory, "cm-ports", false);
	struct listing list;
	const char *name;

	if (fd < 0)
		return;
	if (!fcntl(fd, F_SETLK, &all) && !listing_open(&list, directory)) {
		while ((name = listing_next(&list)))
			if (!strncmp(name, "cm-", 3))
				net_dir_remove(directory, name);
		close(list.fd);
	}
	close(fd);
}

int net_dir_sweep(const char *directory, bool waits)
{
	int lives;

	do {
		lives = scan(directory, waits);
	} while (waits && lives > 0);
	if (lives == 0) {
		sweep_ports(directory);
		rmdir(directory);
	}
	return lives;
}
