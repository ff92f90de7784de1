/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open pool, and libpmem's calls of a store. See live_pm.h.
 *
 * Where flushing the CPU's caches is not enough (a shadow, a file that is no PM), a
 * flush remembers the range, per thread, and the drain writes it back: from the cache
 * image to the media, which are made durable; or by msync. Each thread remembers so many
 * ranges; when they are too many they are written back at once, as a cache may.
 *
 * A line is copied word by word: a power failure in the middle leaves a torn line
 * on the media, never a torn word.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/live/live_libpmem.h"
#include "core/live/live_map.h"

#define RANGES 64

struct live_pm {
	struct pm_map media, cache;
	bool shadow;
	size_t pool_bytes;
	char text[POOL_TEXT];
	void (*lost)(int error);
	uint64_t generation;	 /* of this opening */
	pthread_mutex_t copying; /* so that the newer of two copies of one line comes last */
};

/* The pool that the calls below have to look after; NULL: none. Set and cleared while no store
 * runs. */
static struct live_pm *tracked;
static uint64_t openings;

/* What this thread has flushed and not drained: ranges of pool `generation`, whole lines. */
static _Thread_local struct {
	uint64_t generation;
	unsigned n;
	struct {
		size_t off, len;
	} range[RANGES];
} flushed;

static bool is_text_of(const char *text, const char *kind)
{
	return !*text || !strncmp(text, kind, strlen(kind));
}

/* From here on the cache image has no lines in flight; then it has what the media have. */
static int fill_cache(struct live_pm *pm, const struct live_pm_setup *setup, char *why, size_t n)
{
	char text[POOL_TEXT];
	size_t bytes = POOL_HEADER + pm->pool_bytes;
	int error;
	if (!setup->cache) {
		error = pm_map_memory(&pm->cache, bytes);
		if (error)
			return why_not(why, n, error, "no memory for a cache image of %zu bytes",
				       bytes);
		memcpy(pm->cache.base + POOL_HEADER, pm->media.base + POOL_HEADER, pm->pool_bytes);
		return 0;
	}
	error = pm_map_open(&pm->cache, setup->cache, bytes, why, n);
	if (error)
		return error;
	if (pm_header_read(&pm->cache, text) || !is_text_of(text, PM_CACHE_TEXT))
		return why_not(why, n, -EINVAL, "%s: holds something that is no cache image",
			       setup->cache);
	error = pm_header_write(&pm->cache, PM_CACHE_EMPTY);
	if (!error) {
		memcpy(pm->cache.base + POOL_HEADER, pm->media.base + POOL_HEADER, pm->pool_bytes);
		error = pm_map_sync(&pm->cache, pm->cache.base + POOL_HEADER, pm->pool_bytes);
	}
	if (!error)
		error = pm_header_write(&pm->cache, PM_CACHE_FILLED);
	if (error)
		why_not(why, n, error, "%s: %s", setup->cache, strerror(-error));
	return error;
}

static int open_pool(struct live_pm *pm, const struct live_pm_setup *setup, char *why, size_t n)
{
	size_t bytes = setup->pool_bytes ? POOL_HEADER + setup->pool_bytes : 0;
	int error;
	if (setup->read_only)
		error = pm_map_image(&pm->media, setup->path, 0, false, why, n);
	else
		error = pm_map_open(&pm->media, setup->path, bytes, why, n);
	if (error)
		return error;
	if (pm_header_read(&pm->media, pm->text) || !is_text_of(pm->text, PM_POOL_TEXT))
		return why_not(why, n, -EINVAL, "%s: holds something that is no pool", setup->path);
	pm->pool_bytes = setup->pool_bytes ? setup->pool_bytes : pm_pool_room(&pm->media);
	if (pm_pool_room(&pm->media) < pm->pool_bytes)
		return why_not(why, n, -EINVAL,
			       "%s: too small: it has %zu bytes, and %zu are needed", setup->path,
			       pm->media.bytes, bytes);
	pm->shadow = setup->shadow && !setup->read_only;
	return pm->shadow ? fill_cache(pm, setup, why, n) : 0;
}

int live_pm_open(struct live_pm **out, const struct live_pm_setup *setup, char *why, size_t n)
{
	struct live_pm *pm = calloc(1, sizeof(*pm));
	if (!pm)
		return why_not(why, n, -ENOMEM, "no memory");
	pm->media.fd = pm->cache.fd = -1;
	pthread_mutex_init(&pm->copying, NULL);
	int error = open_pool(pm, setup, why, n);
	if (!error && tracked && (pm->shadow || !pm->media.is_pm) && !setup->read_only)
		error = why_not(why, n, -EBUSY,
				"%s: another pool of this process has a shadow, or is no PM",
				setup->path);
	if (error) {
		live_pm_close(pm);
		return error;
	}
	pm->lost = setup->lost;
	pm->generation = ++openings;
	assert(pm->generation && pm->pool_bytes <= pm_pool_room(&pm->media));
	assert(!pm->shadow || pm->pool_bytes <= pm_pool_room(&pm->cache));
	if ((pm->shadow || !pm->media.is_pm) && !setup->read_only)
		tracked = pm;
	*out = pm;
	return 0;
}

void live_pm_close(struct live_pm *pm)
{
	if (!pm)
		return;
	if (tracked == pm)
		tracked = NULL;
	pm_map_close(&pm->cache);
	pm_map_close(&pm->media);
	pthread_mutex_destroy(&pm->copying);
	free(pm);
}

uint8_t *live_pm_pool(struct live_pm *pm)
{
	return (pm->shadow ? pm->cache.base : pm->media.base) + POOL_HEADER;
}

size_t live_pm_pool_bytes(const struct live_pm *pm)
{
	return pm->pool_bytes;
}

const char *live_pm_header(const struct live_pm *pm)
{
	return pm->text;
}

int live_pm_set_header(struct live_pm *pm, const char *text)
{
	int error = pm_header_write(&pm->media, text);
	assert(error || strlen(text) < sizeof(pm->text));
	if (!error)
		strcpy(pm->text, text);
	return error;
}

bool live_pm_is_pm(const struct live_pm *pm)
{
	return pm->media.is_pm;
}

/* Write [off, off + len) of the pool back. */
static int write_back(struct live_pm *pm, size_t off, size_t len)
{
	uint8_t *to = pm->media.base + POOL_HEADER + off;
	assert(len <= pm->pool_bytes && off <= pm->pool_bytes - len);
	assert(off % TM_LINE == 0);
	pthread_mutex_lock(&pm->copying);
	if (pm->shadow)
		pm_copy_words(to, pm->cache.base + POOL_HEADER + off, len);
	int error = pm_map_sync(&pm->media, to, len);
	pthread_mutex_unlock(&pm->copying);
	return error;
}

int live_pm_save(struct live_pm *pm)
{
	return write_back(pm, 0, pm->pool_bytes);
}

static void write_back_flushed(struct live_pm *pm)
{
	assert(pm == tracked && flushed.generation == pm->generation);
	assert(flushed.n <= RANGES);
	for (unsigned i = 0; i < flushed.n; i++) {
		int error = write_back(pm, flushed.range[i].off, flushed.range[i].len);
		if (error && pm->lost)
			pm->lost(error);
		if (error)
			abort();
	}
	flushed.n = 0;
}

/* Remember the lines of [addr, addr + len), if they are a tracked pool's. */
static bool remember(const void *addr, size_t len)
{
	struct live_pm *pm = tracked;
	if (!pm)
		return false;
	const uint8_t *pool = live_pm_pool(pm), *at = addr;
	if (at < pool || at >= pool + pm->pool_bytes)
		return false;
	size_t off = (size_t)(at - pool) / TM_LINE * TM_LINE;
	size_t end = ((size_t)(at - pool) + len + TM_LINE - 1) / TM_LINE * TM_LINE;
	if (end > pm->pool_bytes)
		end = pm->pool_bytes;
	if (flushed.generation != pm->generation)
		flushed.n = 0;
	flushed.generation = pm->generation;
	if (flushed.n == RANGES)
		write_back_flushed(pm);
	assert(off <= end && flushed.n < RANGES);
	flushed.range[flushed.n].off = off;
	flushed.range[flushed.n].len = end - off;
	flushed.n++;
	return true;
}

void live_pmem_flush(const void *addr, size_t len)
{
	if (len && !remember(addr, len))
		libpmem()->flush(addr, len);
}

void live_pmem_drain(void)
{
	struct live_pm *pm = tracked;
	if (pm && flushed.n && flushed.generation == pm->generation)
		write_back_flushed(pm);
	libpmem()->drain();
}

void live_pmem_persist(const void *addr, size_t len)
{
	live_pmem_flush(addr, len);
	live_pmem_drain();
}

/* As if temporal, in a shadow copy: what is flushed is written back at the next drain. */
static void drain_unless(unsigned flags)
{
	if (!(flags & (PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NOFLUSH)))
		live_pmem_drain();
}

void *live_pmem_memcpy(void *dst, const void *src, size_t len, unsigned flags)
{
	if (flags & PMEM_F_MEM_NOFLUSH || remember(dst, len))
		memcpy(dst, src, len);
	else
		libpmem()->memcpy(dst, src, len, flags | PMEM_F_MEM_NODRAIN);
	drain_unless(flags);
	return dst;
}

void *live_pmem_memset(void *dst, int c, size_t len, unsigned flags)
{
	if (flags & PMEM_F_MEM_NOFLUSH || remember(dst, len))
		memset(dst, c, len);
	else
		libpmem()->memset(dst, c, len, flags | PMEM_F_MEM_NODRAIN);
	drain_unless(flags);
	return dst;
}

void *live_pmem_memcpy_nodrain(void *dst, const void *src, size_t len)
{
	if (!remember(dst, len))
		return libpmem()->memcpy_nodrain(dst, src, len);
	return memcpy(dst, src, len);
}

void *live_pmem_memcpy_persist(void *dst, const void *src, size_t len)
{
	live_pmem_memcpy_nodrain(dst, src, len);
	live_pmem_drain();
	return dst;
}

void *live_pmem_memset_persist(void *dst, int c, size_t len)
{
	if (!remember(dst, len))
		return libpmem()->memset_persist(dst, c, len);
	memset(dst, c, len);
	live_pmem_drain();
	return dst;
}
