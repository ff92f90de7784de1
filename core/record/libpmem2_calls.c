/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmem2 hands its functions out as pointers, which depend on the map. In the place of these a
 * program gets ours, which call the real ones. All maps of a program have one granularity, as
 * `tidemark record` forces it, so that there is one real function of each sort.
 */
#include <stddef.h>
#include "core/record/libpmem_calls.h"
#include "core/record/recorder.h"

struct pmem2_map;
typedef void range_fn(const void *at, size_t len);
typedef void drain_fn(void);
typedef void *copy_fn(void *to, const void *from, size_t len, unsigned flags);
typedef void *set_fn(void *to, int value, size_t len, unsigned flags);

static range_fn *real_persist, *real_flush;
static drain_fn *real_drain;
static copy_fn *real_memmove, *real_memcpy;
static set_fn *real_memset;

#define FLUSHES_FENCES (LIBPMEM_FLUSHES | LIBPMEM_FENCES)
LIBPMEM_CALL(static, void, our_persist, (const void *at, size_t len), FLUSHES_FENCES, at, len,
	     real_persist, at, len)
LIBPMEM_CALL(static, void, our_flush, (const void *at, size_t len), LIBPMEM_FLUSHES, at, len,
	     real_flush, at, len)
LIBPMEM_CALL(static, void, our_drain, (void), LIBPMEM_FENCES, NULL, 0, real_drain)

#define COPY(name, type)                                                                           \
	LIBPMEM_COPY(static, our_##name, (void *to, type from, size_t len, unsigned flags), flags, \
		     real_##name, to, from, len, flags)

COPY(memmove, const void *)
COPY(memcpy, const void *)
COPY(memset, int)

/* pmem2_get_NAME_fn(): ours, where there is a real one. */
#define GET(name, type)                                                   \
	RECORD_EXPORT type *pmem2_get_##name##_fn(struct pmem2_map *map); \
	RECORD_EXPORT type *pmem2_get_##name##_fn(struct pmem2_map *map)  \
	{                                                                 \
		type *real = LIBPMEM_REAL(pmem2_get_##name##_fn)(map);    \
		real_##name = real ? real : real_##name;                  \
		return real ? our_##name : NULL;                          \
	}

GET(persist, range_fn)
GET(flush, range_fn)
GET(drain, drain_fn)
GET(memmove, copy_fn)
GET(memcpy, copy_fn)
GET(memset, set_fn)

LIBPMEM_CALL(RECORD_EXPORT, int, pmem2_deep_flush, (struct pmem2_map * map, void *at, size_t len),
	     FLUSHES_FENCES, at, len, LIBPMEM_REAL(pmem2_deep_flush), map, at, len)
