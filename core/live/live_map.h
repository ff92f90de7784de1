/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_MAP_H
#define TM_LIVE_MAP_H
/*
 * A file or a devdax device in memory, and the header in its first page. Internal to live_pm.h.
 *
 * The header has two slots, each a text, the number of its writing, and a checksum.
 * The valid slot with the higher number counts; the other one is written next. So
 * a header whose writing was cut off is as if its writing had not begun.
 */
#include "core/live/live_pm.h"
#include "core/rt/why.h"

/* First words of headers. A cache image's header says whether its lines that differ from the
 * media's were in flight. */
#define PM_POOL_TEXT	"tidemark-pool "
#define PM_CACHE_TEXT	"tidemark-cache "
#define PM_CACHE_EMPTY	PM_CACHE_TEXT "1\nstate empty\n"
#define PM_CACHE_FILLED PM_CACHE_TEXT "1\nstate filled\n"

struct pm_map {
	uint8_t *base;
	size_t bytes;
	bool is_pm;   /* flushing the CPU's caches is enough */
	bool libpmem; /* mapped by it */
	int fd;	      /* holds the lock; -1: none */
};

/* To work in. A file that does not exist or has less than `bytes` is made longer (0: it has to
 * exist). Locked against other writers. 0 or -errno with a sentence for the user. */
int pm_map_open(struct pm_map *m, const char *path, size_t bytes, char *why, size_t n);
/* As it is, from `offset` on; locked if `writable`. */
int pm_map_image(struct pm_map *m, const char *path, uint64_t offset, bool writable, char *why,
		 size_t n);
/* Zeroed memory. */
int pm_map_memory(struct pm_map *m, size_t bytes);
void pm_map_close(struct pm_map *m);
/* Bytes after the header, in whole lines. */
size_t pm_pool_room(const struct pm_map *m);
/* Make [addr, addr + len) durable. 0 or -errno. */
int pm_map_sync(const struct pm_map *m, const void *addr, size_t len);

/* "": there has never been a header. -EINVAL: what is there is none. */
int pm_header_read(const struct pm_map *m, char text[POOL_TEXT]);
/* -ENOSPC: too long. */
int pm_header_write(struct pm_map *m, const char *text);

/* Copy words that are cut, but never torn. Both ends are aligned to 8 bytes; `len` is a multiple of
 * it. */
void pm_copy_words(void *dst, const void *src, size_t len);

#endif
