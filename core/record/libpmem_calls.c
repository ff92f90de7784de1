/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmem's functions, in the place of libpmem's own, which are then called. What one of them calls
 * itself is a part of it, and is not recorded once more.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>
#include "core/record/recorder.h"

/* <libpmem.h> need not be there where this is built. */
#define PMEM_NODRAIN	 (1u << 0) /* PMEM_F_MEM_NODRAIN: and so on, in its order */
#define PMEM_NONTEMPORAL (1u << 1)
#define PMEM_NOFLUSH	 (1u << 5)

enum { FLUSHES = 1, FENCES = 2, SYNCS = 4 };

static _Thread_local unsigned depth;

/* The real function. Where libpmem came by dlopen() it may be visible to its users alone. */
static void *find_real(const char *name)
{
	void *real = dlsym(RTLD_NEXT, name);
	void *libpmem = real ? NULL : dlopen("libpmem.so.1", RTLD_NOW | RTLD_LOCAL);
	return libpmem ? dlsym(libpmem, name) : real;
}

#define REAL(name)                                                   \
	({                                                           \
		static __typeof__(&name) real_;                      \
		if (!real_)                                          \
			*(void **)(void *)&real_ = find_real(#name); \
		real_;                                               \
	})

/* Write down what a call at `caller` does to a range. */
static void note(unsigned what, const void *at, size_t len, const void *caller)
{
	uint32_t source;
	if (depth || !(what == FLUSHES ? recorder_flushes(at, len, caller, &source)
				       : recorder_event(caller, &source)))
		return;
	if (what & FLUSHES)
		recorder_add_range(RECORD_FLUSH, at, len, source);
	if (what & SYNCS)
		recorder_add_range(RECORD_SYNC, at, len, source);
	if (what & FENCES)
		recorder_add(RECORD_FENCE, 0, 0, NULL, 0, source);
	recorder_unlock();
}

#define HERE __builtin_return_address(0)

RECORD_EXPORT void pmem_flush(const void *at, size_t len)
{
	note(FLUSHES, at, len, HERE);
	depth++;
	REAL(pmem_flush)(at, len);
	depth--;
}

RECORD_EXPORT void pmem_deep_flush(const void *at, size_t len)
{
	note(FLUSHES, at, len, HERE);
	depth++;
	REAL(pmem_deep_flush)(at, len);
	depth--;
}

RECORD_EXPORT void pmem_drain(void)
{
	note(FENCES, NULL, 0, HERE);
	depth++;
	REAL(pmem_drain)();
	depth--;
}

RECORD_EXPORT int pmem_deep_drain(const void *at, size_t len)
{
	note(FENCES, at, len, HERE);
	depth++;
	int result = REAL(pmem_deep_drain)(at, len);
	depth--;
	return result;
}

RECORD_EXPORT void pmem_persist(const void *at, size_t len)
{
	note(FLUSHES | FENCES, at, len, HERE);
	depth++;
	REAL(pmem_persist)(at, len);
	depth--;
}

RECORD_EXPORT int pmem_deep_persist(const void *at, size_t len)
{
	note(FLUSHES | FENCES, at, len, HERE);
	depth++;
	int result = REAL(pmem_deep_persist)(at, len);
	depth--;
	return result;
}

RECORD_EXPORT int pmem_msync(const void *at, size_t len)
{
	depth++;
	int result = REAL(pmem_msync)(at, len);
	depth--;
	if (!result)
		note(SYNCS, at, len, HERE);
	return result;
}

/* --- copies: what they have stored is found when they are done --- */

/* What a copy with these flags does besides. */
static unsigned copies(unsigned flags)
{
	if (flags & PMEM_NOFLUSH && !(flags & PMEM_NONTEMPORAL))
		return 0;
	return flags & PMEM_NODRAIN ? FLUSHES : FLUSHES | FENCES;
}

#define COPY(name, type, what)                                     \
	RECORD_EXPORT void *name(void *to, type from, size_t len); \
	RECORD_EXPORT void *name(void *to, type from, size_t len)  \
	{                                                          \
		depth++;                                           \
		void *result = REAL(name)(to, from, len);          \
		depth--;                                           \
		note(what, to, len, HERE);                         \
		return result;                                     \
	}

#define COPY_FLAGS(name, type)                                                     \
	RECORD_EXPORT void *name(void *to, type from, size_t len, unsigned flags); \
	RECORD_EXPORT void *name(void *to, type from, size_t len, unsigned flags)  \
	{                                                                          \
		depth++;                                                           \
		void *result = REAL(name)(to, from, len, flags);                   \
		depth--;                                                           \
		if (copies(flags))                                                 \
			note(copies(flags), to, len, HERE);                        \
		return result;                                                     \
	}

COPY(pmem_memcpy_persist, const void *, FLUSHES | FENCES)
COPY(pmem_memmove_persist, const void *, FLUSHES | FENCES)
COPY(pmem_memset_persist, int, FLUSHES | FENCES)
COPY(pmem_memcpy_nodrain, const void *, FLUSHES)
COPY(pmem_memmove_nodrain, const void *, FLUSHES)
COPY(pmem_memset_nodrain, int, FLUSHES)
COPY_FLAGS(pmem_memcpy, const void *)
COPY_FLAGS(pmem_memmove, const void *)
COPY_FLAGS(pmem_memset, int)
