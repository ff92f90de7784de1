/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_PM_H
#define TM_LIVE_PM_H
/*
 * PM of the live world: a file or a devdax device, mapped; its first POOL_HEADER bytes are
 * a text that says what it holds (scenarios/live_store.h), the rest is the store's pool.
 *
 * The store's calls of libpmem come here (live_calls.h has their names). On PM they go
 * on to libpmem. On a file that is no PM, what was flushed is written back (msync) at the drain.
 *
 * With a shadow the store works in a cache image, a second file or device or anonymous
 * memory, and the media have only what was flushed and drained: a power failure then
 * loses what real caches lose. Where the cache image outlives the failure (a file,
 * or a guest's second NVDIMM), the lines that differ are those that were in flight,
 * and live_pm_cut() decides which of them reached the media.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_HEADER 4096 /* bytes */

struct live_pm;

struct live_pm_setup {
	const char *path;  /* a file or a devdax device */
	size_t pool_bytes; /* of the pool; a file that is shorter is made longer. 0: what is there */
	bool shadow;
	const char *cache; /* with shadow: a file or a devdax device; NULL: anonymous memory */
	bool read_only;	   /* the media alone, as they are */
};

/* 0 or -errno; *why: a sentence for the user. */
int live_pm_open(struct live_pm **out, const struct live_pm_setup *setup, char *why, size_t n);
/* Unmaps. What was not flushed is not written back. */
void live_pm_close(struct live_pm *pm);
uint8_t *live_pm_pool(struct live_pm *pm); /* where the store works: the cache image, if there is one */
size_t live_pm_pool_bytes(const struct live_pm *pm);
/* The header's text, always of the media; live_pm_set_header() makes it durable (at most POOL_HEADER bytes
 * with its NUL). */
const char *live_pm_header(const struct live_pm *pm);
int live_pm_set_header(struct live_pm *pm, const char *text);
/* Make all of the pool durable: an orderly stop. */
int live_pm_save(struct live_pm *pm);
bool live_pm_is_pm(const struct live_pm *pm);

/* The pool that the store's calls are about: they look up whose range an address is in. One open pool with a
 * shadow, or that is no PM, in a process at a time. */
void live_pmem_flush(const void *addr, size_t len);
void live_pmem_drain(void);
void live_pmem_persist(const void *addr, size_t len);
void *live_pmem_memcpy_persist(void *dst, const void *src, size_t len);
void *live_pmem_memcpy_nodrain(void *dst, const void *src, size_t len);
void *live_pmem_memset_persist(void *dst, int c, size_t len);

/*
 * After a failure: lines of the pool where cache and media differ.
 */
#define CUT_LINE 64
/* Numbers of those lines, ascending; *n of them; to be freed. 0 or -ENOMEM. */
int cut_lines(const uint8_t *media, const uint8_t *cache, size_t len, uint32_t **lines, size_t *n);
/* Does line number `i` of the lines in flight reach the media under this seed? 0: none does; 1: all do; any
 * other seed: some, half of them on average. */
bool cut_survives(uint64_t seed, uint32_t line);

#endif
