/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_PM_H
#define TM_LIVE_PM_H
/*
 * PM of the live world: a file or a devdax device, mapped; its first POOL_HEADER bytes
 * have a text that says what it holds (scenarios/live_store.h), the rest is the store's pool.
 *
 *	live_pm.c	an open pool, and the calls of libpmem
 *	live_map.c	files and devices in memory, and messages about them
 *	live_image.c	pools as a failure leaves them, and what it took away
 *
 * The store's calls of libpmem come here (live_calls.h has their names). On PM they go
 * on to libpmem. On a file that is no PM, what was flushed is written back (msync) at the drain.
 *
 * With a shadow the store works in a cache image, a second file or device or anonymous
 * memory, and the media have only what was flushed and drained: a power failure then
 * loses what real caches lose. Where the cache image outlives the failure (a file,
 * or a guest's second NVDIMM), the lines that differ are those that were in flight,
 * and pm_cut() decides which of them reach the media.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/tidemark.h"

#define POOL_HEADER 4096 /* bytes */
#define POOL_TEXT   2032 /* bytes of its text at most, with the NUL */
/* Where a devdax device's bytes begin in the backing file of an NVDIMM. */
#define NVDIMM_DATA (2ull << 20)

struct live_pm;

struct live_pm_setup {
	const char *path; /* a file or a devdax device */
	/* The length of the pool, a multiple of 64; a shorter file is made longer. 0: as long as
	 * the file is. */
	size_t pool_bytes;
	bool shadow;
	const char *cache; /* with shadow: a file or a devdax device; NULL: anonymous memory */
	bool read_only;	   /* the media alone, as they are */
	/* Writing back at a drain failed, -errno. What was flushed may be lost, and the store would
	 * go on to acknowledge it: does not return. NULL: abort(). */
	void (*lost)(int error);
};

/* 0 or -errno; *why: a sentence for the user. The cache image is filled from the media: what it had
 * is
 * gone. */
int live_pm_open(struct live_pm **out, const struct live_pm_setup *setup, char *why, size_t n);
/* Unmaps. What was not flushed is not written back. */
void live_pm_close(struct live_pm *pm);
uint8_t *live_pm_pool(
	struct live_pm *pm); /* where the store works: the cache image, if there is one */
size_t live_pm_pool_bytes(const struct live_pm *pm);
/* The header's text, always of the media; "": there has never been one. live_pm_set_header() makes
 * it durable (at most POOL_TEXT bytes with its NUL); a power failure in its middle leaves the old
 * text. */
const char *live_pm_header(const struct live_pm *pm);
int live_pm_set_header(struct live_pm *pm, const char *text);
/* Make all of the pool durable: an orderly stop. */
int live_pm_save(struct live_pm *pm);
bool live_pm_is_pm(const struct live_pm *pm);

/* The store's calls find the pool by the address. One open
 * pool with a shadow, or that is no PM, in a process at a time. */
void live_pmem_flush(const void *addr, size_t len);
void live_pmem_drain(void);
void live_pmem_persist(const void *addr, size_t len);
void *live_pmem_memcpy(void *dst, const void *src, size_t len, unsigned flags);
void *live_pmem_memset(void *dst, int c, size_t len, unsigned flags);
void *live_pmem_memcpy_persist(void *dst, const void *src, size_t len);
void *live_pmem_memcpy_nodrain(void *dst, const void *src, size_t len);
void *live_pmem_memset_persist(void *dst, int c, size_t len);

/*
 * After a failure: the media and the cache image as they lie there, in files or in NVDIMMs' backing
 * files.
 */
struct pm_image {
	uint8_t *pool;
	size_t pool_bytes;
	char text[POOL_TEXT]; /* the header's */
	struct pm_map *map;
};
/* `offset`: NVDIMM_DATA in an NVDIMM's backing file, else 0. 0 or -errno; *why: a sentence for the
 * user. */
int pm_image_open(struct pm_image *image, const char *path, uint64_t offset, bool writable,
		  char *why, size_t n);
void pm_image_close(struct pm_image *image);
/* Has this cache image lines that were in flight? Not while it was being filled, nor once they were
 * cut. -EINVAL: it is no cache image. */
int pm_image_in_flight(const struct pm_image *cache);
/*
 * What a power failure leaves: of the lines that were in flight, a subset reaches the media; the
 * others are gone, and none is in flight any more. Both images are writable. 0 or -errno; *why: a
 * sentence for the user.
 */
int pm_cut(struct pm_image *media, struct pm_image *cache, uint64_t seed, size_t *in_flight,
	   size_t *survived, char *why, size_t n);

/* Numbers of the lines where cache and media differ, of a length that is a multiple of TM_LINE:
 * ascending; *n of them; to be freed. 0 or -ENOMEM. */
int cut_lines(const uint8_t *media, const uint8_t *cache, size_t len, uint32_t **lines, size_t *n);
/* Does line number `line` of the pool, which is in flight, reach the media under this seed? 0: none
 * does; 1: all do; any other seed: some, half of them on average. */
bool cut_survives(uint64_t seed, uint32_t line);

#endif
