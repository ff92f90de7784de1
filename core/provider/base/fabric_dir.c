/* SPDX-License-Identifier: BSD-3-Clause */
/* See fabric_dir.h. The locks are POSIX locks: closing any descriptor of a file releases the
 * lock on it, so a process does not open its own files again. */
#include "core/provider/base/fabric_dir.h"

#include <assert.h>
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

int fabric_dir_make(const char *directory)
{
	struct stat is;

	if (mkdir(directory, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(directory, &is))
		return -errno;
	if (!S_ISDIR(is.st_mode))
		return -ENOTDIR;
	/* Any user who may write to the directory could pose as a peer. */
	return is.st_uid != geteuid() || is.st_mode & 077 ? -EPERM : 0;
}

int fabric_dir_open(const char *directory, const char *name, bool make)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (make ? O_CREAT : 0), 0600);
	return fd < 0 ? -errno : fd;
}

bool fabric_dir_lock(int fd, const char *directory, const char *name, bool waits)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	char path[PATH_MAX];
	struct stat is, at;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	do {
		rc = fcntl(fd, waits ? F_SETLKW : F_SETLK, &lock);
	} while (rc && errno == EINTR);
	/* Another process may have replaced the file between open() and the lock. */
	return !rc && !fstat(fd, &is) && !lstat(path, &at) && is.st_ino == at.st_ino &&
	       is.st_dev == at.st_dev;
}

pid_t fabric_dir_owner(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid ? lock.l_pid : -1;
}

pid_t fabric_dir_slot_owner(const char *directory, unsigned slot)
{
	char name[16];
	pid_t owner;
	int fd;

	snprintf(name, sizeof(name), "%u", slot);
	fd = fabric_dir_open(directory, name, false);
	if (fd < 0)
		return 0;
	owner = fabric_dir_owner(fd);
	close(fd);
	return owner;
}

void fabric_dir_remove(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path))
		unlink(path);
}

static bool is_process_file(const char *name)
{
	return isdigit((unsigned char)name[0]) || !strncmp(name, "nic.", 4);
}

/* Senders that still have this inbox mapped have to look for the slot's new file. */
static void mark_dead(int fd, const char *name)
{
	const uint32_t dead = 1;
	struct stat is;

	if (isdigit((unsigned char)name[0]) && !fstat(fd, &is) && is.st_size > FABRIC_DIR_DEAD_AT &&
	    pwrite(fd, &dead, sizeof(dead), FABRIC_DIR_DEAD_AT) != sizeof(dead))
		return;
}

/* Try once. -EAGAIN: a living process has the name, or a dead process's file was just removed. */
static int claim(const char *directory, const char *name, size_t bytes)
{
	int fd = fabric_dir_open(directory, name, true), rc = -EAGAIN;
	struct stat is;

	if (fd < 0)
		return fd;
	if (fabric_dir_lock(fd, directory, name, false) && !fstat(fd, &is)) {
		if (!is.st_size) {
			rc = ftruncate(fd, (off_t)bytes) ? -errno : 0;
		} else {
			mark_dead(fd, name);
			fabric_dir_remove(directory, name);
		}
	}
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int fabric_dir_claim(const char *directory, const char *name, size_t bytes)
{
	assert(bytes > 0 &&
	       is_process_file(name)); /* an empty file is free, and others are not swept */
	int fd = claim(directory, name, bytes);

	return fd == -EAGAIN ? claim(directory, name, bytes) : fd;
}

/* Does a living process have the file? Otherwise it is removed. `waits`: wait until that process
 * has ended. */
static bool sweep_file(const char *directory, const char *name, bool waits)
{
	int fd = fabric_dir_open(directory, name, false);

	if (fd < 0)
		return false;
	bool lives = fabric_dir_owner(fd);
	if ((!lives || waits) && fabric_dir_lock(fd, directory, name, waits)) {
		mark_dead(fd, name);
		fabric_dir_remove(directory, name);
	}
	close(fd);
	return lives;
}

/*
 * The names in a directory. readdir() allocates memory; a process that calls exit() in a signal
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

/* NULL: there are no more. */
static const char *listing_next(struct listing *list)
{
	if (list->at >= list->len) {
		list->len = getdents64(list->fd, list->entries, sizeof(list->entries));
		list->at = 0;
		if (list->len <= 0)
			return NULL;
	}
	struct dirent64 *entry = (struct dirent64 *)(list->entries + list->at);
	list->at += entry->d_reclen;
	return entry->d_name;
}

/* Remove the files of dead processes. Returns the number of files of living ones; with `waits`, 1
 * after the first such process has ended. */
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

/* The files of the connection manager: its listeners, and the file with a lock for each port in
 * use (cm_fabric.c). Getting all of its locks proves that no other process is left. */
static void sweep_ports(const char *directory)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = fabric_dir_open(directory, "cm-ports", false);
	struct listing list;
	const char *name;

	if (fd < 0)
		return;
	if (!fcntl(fd, F_SETLK, &all) && !listing_open(&list, directory)) {
		while ((name = listing_next(&list)))
			if (!strncmp(name, "cm-", 3))
				fabric_dir_remove(directory, name);
		close(list.fd);
	}
	close(fd);
}

int fabric_dir_sweep(const char *directory, bool waits)
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
