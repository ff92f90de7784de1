/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmem's functions, in the place of libpmem's own, which are then called. What one of them calls
 * itself is a part of it, and is not recorded once more.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include "core/record/libpmem_calls.h"
#include "core/record/recorder.h"

/* <libpmem.h> need not be there where this is built. */
#define PMEM_NODRAIN	 (1u << 0) /* PMEM_F_MEM_NODRAIN: and so on, in its order */
#define PMEM_NONTEMPORAL (1u << 1)
#define PMEM_NOFLUSH	 (1u << 5)

_Thread_local unsigned libpmem_depth;

/* Where a library came by dlopen() it may be visible to its users alone. */
void *libpmem_real(const char *name)
{
	void *real = dlsym(RTLD_NEXT, name);
	bool two = !strncmp(name, "pmem2_", 6);
	void *library = real ? NULL
			     : dlopen(two ? "libpmem2.so.1" : "libpmem.so.1",
				      RTLD_NOW | RTLD_LOCAL);
	return library ? dlsym(library, name) : real;
}

void libpmem_note(unsigned what, const void *at, size_t len, const void *caller)
{
	uint32_t source;
	if (!what || libpmem_depth)
		return;
	if (!(what == LIBPMEM_FLUSHES ? recorder_flushes(at, len, caller, &source)
				      : recorder_event(caller, &source)))
		return;
	if (what & LIBPMEM_FLUSHES)
		recorder_add_range(RECORD_FLUSH, at, len, source);
	if (what & LIBPMEM_SYNCS)
		recorder_add_range(RECORD_SYNC, at, len, source);
	if (what & LIBPMEM_FENCES)
		recorder_add(RECORD_FENCE, 0, 0, NULL, 0, source);
	recorder_unlock();
}

#define HERE __builtin_return_address(0)

RECORD_EXPORT void pmem_flush(const void *at, size_t len)
{
	libpmem_note(LIBPMEM_FLUSHES, at, len, HERE);
	libpmem_depth++;
	LIBPMEM_REAL(pmem_flush)(at, len);
	libpmem_depth--;
}

RECORD_EXPORT void pmem_deep_flush(const void *at, size_t len)
{
	libpmem_note(LIBPMEM_FLUSHES, at, len, HERE);
	libpmem_depth++;
	LIBPMEM_REAL(pmem_deep_flush)(at, len);
	libpmem_depth--;
}

RECORD_EXPORT void pmem_drain(void)
{
	libpmem_note(LIBPMEM_FENCES, NULL, 0, HERE);
	libpmem_depth++;
	LIBPMEM_REAL(pmem_drain)();
	libpmem_depth--;
}

RECORD_EXPORT int pmem_deep_drain(const void *at, size_t len)
{
	libpmem_note(LIBPMEM_FENCES, at, len, HERE);
	libpmem_depth++;
	int result = LIBPMEM_REAL(pmem_deep_drain)(at, len);
	libpmem_depth--;
	return result;
}

RECORD_EXPORT void pmem_persist(const void *at, size_t len)
{
	libpmem_note(LIBPMEM_FLUSHES | LIBPMEM_FENCES, at, len, HERE);
	libpmem_depth++;
	LIBPMEM_REAL(pmem_persist)(at, len);
	libpmem_depth--;
}

RECORD_EXPORT int pmem_deep_persist(const void *at, size_t len)
{
	libpmem_note(LIBPMEM_FLUSHES | LIBPMEM_FENCES, at, len, HERE);
	libpmem_depth++;
	int result = LIBPMEM_REAL(pmem_deep_persist)(at, len);
	libpmem_depth--;
	return result;
}

RECORD_EXPORT int pmem_msync(const void *at, size_t len)
{
	libpmem_depth++;
	int result = LIBPMEM_REAL(pmem_msync)(at, len);
	libpmem_depth--;
	if (!result)
		libpmem_note(LIBPMEM_SYNCS, at, len, HERE);
	return result;
}

/* --- copies: what they have stored is found when they are done --- */

unsigned libpmem_copies(unsigned flags)
{
	if (flags & PMEM_NOFLUSH && !(flags & PMEM_NONTEMPORAL))
		return 0;
	return flags & PMEM_NODRAIN ? LIBPMEM_FLUSHES : LIBPMEM_FLUSHES | LIBPMEM_FENCES;
}

#define COPY(name, type, what)                                     \
	RECORD_EXPORT void *name(void *to, type from, size_t len); \
	RECORD_EXPORT void *name(void *to, type from, size_t len)  \
	{                                                          \
		libpmem_depth++;                                   \
		void *result = LIBPMEM_REAL(name)(to, from, len);  \
		libpmem_depth--;                                   \
		libpmem_note(what, to, len, HERE);                 \
		return result;                                     \
	}

#define COPY_FLAGS(name, type)                                                     \
	RECORD_EXPORT void *name(void *to, type from, size_t len, unsigned flags); \
	RECORD_EXPORT void *name(void *to, type from, size_t len, unsigned flags)  \
	{                                                                          \
		libpmem_depth++;                                                   \
		void *result = LIBPMEM_REAL(name)(to, from, len, flags);           \
		libpmem_depth--;                                                   \
		libpmem_note(libpmem_copies(flags), to, len, HERE);                \
		return result;                                                     \
	}

COPY(pmem_memcpy_persist, const void *, LIBPMEM_FLUSHES | LIBPMEM_FENCES)
COPY(pmem_memmove_persist, const void *, LIBPMEM_FLUSHES | LIBPMEM_FENCES)
COPY(pmem_memset_persist, int, LIBPMEM_FLUSHES | LIBPMEM_FENCES)
COPY(pmem_memcpy_nodrain, const void *, LIBPMEM_FLUSHES)
COPY(pmem_memmove_nodrain, const void *, LIBPMEM_FLUSHES)
COPY(pmem_memset_nodrain, int, LIBPMEM_FLUSHES)
COPY_FLAGS(pmem_memcpy, const void *)
COPY_FLAGS(pmem_memmove, const void *)
COPY_FLAGS(pmem_memset, int)
