/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and devices in memory, and headers. See live_map.h. */
#include "core/live/live_map.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "core/live/live_fails.h"
#include "core/live/live_libpmem.h"

#define SMALLEST (POOL_HEADER + TM_LINE) /* bytes */
#define PAGE	 4096

static bool is_devdax(const struct stat *st)
{
	char link[64], target[PATH_MAX], *name;
	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/subsystem", major(st->st_rdev),
		 minor(st->st_rdev));
	if (!realpath(link, target))
		return false;
	name = strrchr(target, '/');
	return name && !strcmp(name, "/dax");
}

/* Can this be mapped, and is it a device? */
static int look_at(const char *path, struct stat *st, bool *device, char *why, size_t n)
{
	if (live_fails(FAIL_FILE_OPEN))
		return why_not(why, n, -EACCES, "%s: %s", path, strerror(EACCES));
	if (live_fails(FAIL_FILE_READ))
		return why_not(why, n, -EIO, "%s: %s", path, strerror(EIO));
	if (stat(path, st))
		return why_not(why, n, -errno, "%s: %s", path, strerror(errno));
	*device = S_ISCHR(st->st_mode);
	if (S_ISDIR(st->st_mode))
		return why_not(why, n, -EISDIR,
			       "%s: a directory; a file or a devdax device was expected", path);
	if (!S_ISREG(st->st_mode) && !(*device && is_devdax(st)))
		return why_not(
			why, n, -EINVAL,
			"%s: neither a file nor a devdax device (ndctl create-namespace -m devdax)",
			path);
	return 0;
}

/* No other process may write at the same time. The lock is the file's and ends with us. */
static int lock(struct pm_map *m, const char *path, char *why, size_t n)
{
	m->fd = open(path, O_RDWR | O_CLOEXEC);
	if (m->fd < 0)
		return why_not(why, n, -errno, "%s: %s", path, strerror(errno));
	if (!flock(m->fd, LOCK_EX | LOCK_NB))
		return 0;
	return why_not(why, n, -EBUSY, "%s: in use by another program", path);
}

static int too_small(const char *path, size_t bytes, size_t needed, char *why, size_t n)
{
	return why_not(why, n, -EINVAL, "%s: too small: it has %zu bytes, and %zu are needed", path,
		       bytes, needed);
}

static int cannot_map(const char *path, size_t bytes, int error, char *why, size_t n)
{
	return why_not(why, n, error, "%s: cannot be mapped with %zu bytes: %s", path, bytes,
		       strerror(-error));
}

static int no_libpmem(const char *path, char *why, size_t n)
{
	return why_not(why, n, -ENOENT, "%s: libpmem.so.1 cannot be loaded", path);
}

/* Map it with at least `bytes`; st->st_size: its present size. */
static int map(struct pm_map *m, const char *path, const struct stat *st, bool device, size_t bytes,
	       char *why, size_t n)
{
	size_t length = bytes < (size_t)st->st_size ? (size_t)st->st_size : bytes;
	int is_pm = 0;
	if (!libpmem())
		return no_libpmem(path, why, n);
	if (!device && length < SMALLEST)
		return too_small(path, length, SMALLEST, why, n);
	if (!device && length > (size_t)st->st_size && live_fails(FAIL_FILE_WRITE))
		return cannot_map(path, length, -ENOSPC, why, n);
	errno = ENOMEM;
	if (!live_fails(FAIL_PM_MAP))
		m->base = libpmem()->map_file(path, device ? 0 : length,
					      device ? 0 : PMEM_FILE_CREATE, 0644, &m->bytes,
					      &is_pm);
	if (!m->base)
		return cannot_map(path, length, -errno, why, n);
	m->libpmem = true;
	m->is_pm = is_pm;
	return m->bytes < bytes ? too_small(path, m->bytes, bytes, why, n) : 0;
}

int pm_map_open(struct pm_map *m, const char *path, size_t bytes, char *why, size_t n)
{
	struct stat st = {0};
	bool device = false;
	int error = look_at(path, &st, &device, why, n);
	*m = (struct pm_map){.fd = -1};
	if (!error)
		error = lock(m, path, why, n);
	else if (error == -ENOENT && bytes)
		error = 0; /* it will be made */
	if (!error)
		error = map(m, path, &st, device, bytes, why, n);
	if (!error && m->fd < 0)
		error = lock(m, path, why, n);
	if (error)
		pm_map_close(m);
	return error;
}

int pm_map_image(struct pm_map *m, const char *path, uint64_t offset, bool writable, char *why,
		 size_t n)
{
	struct stat st;
	bool device = false;
	void *base = MAP_FAILED;
	int error = look_at(path, &st, &device, why, n);
	*m = (struct pm_map){.fd = -1};
	if (error)
		return error;
	if (device)
		return pm_map_open(m, path, 0, why, n);
	if (offset % PAGE)
		return why_not(why, n, -EINVAL, "%s: the offset has to be a multiple of %d", path,
			       PAGE);
	if ((uint64_t)st.st_size < offset + SMALLEST)
		return too_small(path, (size_t)st.st_size, (size_t)offset + SMALLEST, why, n);
	if (writable && !libpmem())
		error = no_libpmem(path, why, n);
	else if (writable)
		error = lock(m, path, why, n);
	if (error)
		goto err;
	int fd = writable ? m->fd : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error = why_not(why, n, -errno, "%s: %s", path, strerror(errno));
		goto err;
	}
	m->bytes = (size_t)st.st_size - (size_t)offset;
	errno = ENOMEM;
	if (!live_fails(FAIL_PM_MAP))
		base = mmap(NULL, m->bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
			    MAP_SHARED, fd, (off_t)offset);
	error = -errno;
	if (!writable)
		close(fd);
	if (base == MAP_FAILED) {
		cannot_map(path, m->bytes, error, why, n);
		goto err;
	}
	m->base = base;
	return 0;
err:
	pm_map_close(m);
	return error;
}

int pm_map_memory(struct pm_map *m, size_t bytes)
{
	void *base = MAP_FAILED;
	if (!live_fails(FAIL_PM_MAP))
		base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	*m = (struct pm_map){.fd = -1};
	if (base == MAP_FAILED)
		return -ENOMEM;
	m->base = base;
	m->bytes = bytes;
	m->is_pm = true; /* nothing to write back */
	return 0;
}

void pm_map_close(struct pm_map *m)
{
	if (m->base && m->libpmem)
		libpmem()->unmap(m->base, m->bytes);
	else if (m->base)
		munmap(m->base, m->bytes);
	if (m->fd >= 0)
		close(m->fd);
	*m = (struct pm_map){.fd = -1};
}

size_t pm_pool_room(const struct pm_map *m)
{
	assert(m->bytes >= POOL_HEADER);
	return (m->bytes - POOL_HEADER) / TM_LINE * TM_LINE;
}

int pm_map_sync(const struct pm_map *m, const void *addr, size_t len)
{
	assert((const uint8_t *)addr >= m->base);
	assert((size_t)((const uint8_t *)addr - m->base) + len <= m->bytes);
	if (m->is_pm) {
		libpmem()->persist(addr, len);
		return 0;
	}
	if (live_fails(FAIL_PM_SYNC))
		return -EIO;
	return libpmem()->msync(addr, len) ? -errno : 0;
}

void pm_copy_words(void *dst, const void *src, size_t len)
{
	uint64_t *to = dst;
	const uint64_t *from = src;
	assert(len % sizeof(*to) == 0); /* no byte is left over */
	assert((uintptr_t)dst % sizeof(*to) == 0 && (uintptr_t)src % sizeof(*to) == 0);
	for (size_t i = 0; i < len / sizeof(*to); i++)
		__atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

struct slot {
	char text[POOL_TEXT];
	uint64_t nth; /* 0: never written */
	uint64_t sum;
};
_Static_assert(2 * sizeof(struct slot) == POOL_HEADER, "two slots fill the page");

/* FNV-1a of all before it. */
static uint64_t slot_sum(const struct slot *slot)
{
	const uint8_t *bytes = (const uint8_t *)slot;
	uint64_t sum = 0xcbf29ce484222325;
	for (size_t i = 0; i < offsetof(struct slot, sum); i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

static bool slot_valid(const struct slot *slot)
{
	return slot->nth && slot->sum == slot_sum(slot) &&
	       memchr(slot->text, '\0', sizeof(slot->text));
}

/* Nothing, or a first header that was cut off. */
static bool never_written(const struct slot *slots)
{
	static const struct slot empty;
	static const char begins[] = "tidemark"; /* a word */
	if (slots[0].sum || memcmp(&slots[1], &empty, sizeof(empty)))
		return false;
	return !strncmp(slots[0].text, begins, strlen(begins)) ||
	       !memcmp(slots[0].text, empty.text, sizeof(empty.text));
}

/* The slot that counts; NULL: neither. */
static const struct slot *newest(const struct slot *slots)
{
	const struct slot *best = NULL;
	for (unsigned i = 0; i < 2; i++)
		if (slot_valid(&slots[i]) && (!best || slots[i].nth > best->nth))
			best = &slots[i];
	return best;
}

int pm_header_read(const struct pm_map *m, char text[POOL_TEXT])
{
	const struct slot *slots = (const struct slot *)m->base, *slot = newest(slots);
	memset(text, 0, POOL_TEXT);
	if (slot)
		memcpy(text, slot->text, POOL_TEXT);
	else if (!never_written(slots))
		return -EINVAL;
	return 0;
}

int pm_header_write(struct pm_map *m, const char *text)
{
	struct slot *slots = (struct slot *)m->base, fresh = {.nth = 1};
	const struct slot *old = newest(slots);
	struct slot *to = &slots[old == &slots[0]];
	if (strlen(text) >= sizeof(fresh.text))
		return -ENOSPC;
	strcpy(fresh.text, text);
	if (old)
		fresh.nth = old->nth + 1;
	fresh.sum = slot_sum(&fresh);
	assert(to != old && slot_valid(&fresh));
	/* First of all what a first header begins with (never_written()); what makes it valid
	 * last. */
	pm_copy_words(to, &fresh, 2 * sizeof(uint64_t));
	int error = pm_map_sync(m, to, TM_LINE);
	if (error)
		return error;
	pm_copy_words(to, &fresh, sizeof(fresh.text));
	error = pm_map_sync(m, to, sizeof(fresh.text));
	if (error)
		return error;
	assert(newest(slots) == old); /* what is written last makes it valid */
	pm_copy_words(&to->nth, &fresh.nth, 2 * sizeof(uint64_t));
	assert(newest(slots) == to);
	return pm_map_sync(m, &to->nth, 2 * sizeof(uint64_t));
}
