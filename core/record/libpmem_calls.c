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
#include "core/nontemporal.h"
#include "core/record/libpmem_calls.h"
#include "core/record/record_hooks.h"
#include "core/record/recorder.h"

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
	trap_waits(what & LIBPMEM_FLUSHES, what & LIBPMEM_FENCES);
	recorder_unlock();
}

#define FLUSHES_FENCES (LIBPMEM_FLUSHES | LIBPMEM_FENCES)
#define RANGE(type, name, what)                                                              \
	LIBPMEM_CALL(RECORD_EXPORT, type, name, (const void *at, size_t len), what, at, len, \
		     LIBPMEM_REAL(name), at, len)

RANGE(void, pmem_flush, LIBPMEM_FLUSHES)
RANGE(void, pmem_deep_flush, LIBPMEM_FLUSHES)
RANGE(int, pmem_deep_drain, LIBPMEM_FENCES)
RANGE(void, pmem_persist, FLUSHES_FENCES)
RANGE(int, pmem_deep_persist, FLUSHES_FENCES)
LIBPMEM_CALL(RECORD_EXPORT, void, pmem_drain, (void), LIBPMEM_FENCES, NULL, 0,
	     LIBPMEM_REAL(pmem_drain))

RECORD_EXPORT int pmem_msync(const void *at, size_t len)
{
	libpmem_depth++;
	int result = LIBPMEM_REAL(pmem_msync)(at, len);
	libpmem_depth--;
	if (!result)
		libpmem_note(LIBPMEM_SYNCS, at, len, __builtin_return_address(0));
	return result;
}

/* --- copies: what they have stored is found when they are done --- */

static unsigned copy_does(unsigned flags)
{
	if (flags & COPY_NOFLUSH && !(flags & COPY_NONTEMPORAL))
		return 0;
	return flags & COPY_NODRAIN ? LIBPMEM_FLUSHES : LIBPMEM_FLUSHES | LIBPMEM_FENCES;
}

/* What was stored in its lines before is no non-temporal store. */
struct libpmem_copy libpmem_copy_begins(void *to, size_t len, unsigned flags, const void *caller)
{
	struct libpmem_copy copy = {
		to, len, caller, copy_does(flags), copies_nontemporally(len, flags), false};
	uint32_t source;
	copy.told = !copy.what && !libpmem_depth && recorder_call_begins(to, len, caller);
	if (copy.nontemporal && !libpmem_depth && recorder_flushes(to, len, caller, &source))
		recorder_unlock();
	libpmem_depth++;
	return copy;
}

void libpmem_copied(const struct libpmem_copy *c)
{
	uint32_t source;
	libpmem_depth--;
	if (c->told)
		recorder_call_ends(c->to, c->len, c->caller);
	if (libpmem_depth || !c->nontemporal ||
	    !recorder_copied(c->to, c->len, c->caller, &source)) {
		libpmem_note(c->what, c->to, c->len, c->caller);
		return;
	}
	if (c->what & LIBPMEM_FENCES)
		pm_maps_scan(source);
	recorder_add_range(RECORD_FLUSH_NT, c->to, c->len, source);
	if (c->what & LIBPMEM_FENCES)
		recorder_add(RECORD_FENCE, 0, 0, NULL, 0, source);
	trap_waits(true, c->what & LIBPMEM_FENCES);
	recorder_unlock();
}

#define COPY(name, type, flags)                                                     \
	LIBPMEM_COPY(RECORD_EXPORT, name, (void *to, type from, size_t len), flags, \
		     LIBPMEM_REAL(name), to, from, len)
#define COPY_FLAGS(name, type)                                                               \
	LIBPMEM_COPY(RECORD_EXPORT, name, (void *to, type from, size_t len, unsigned flags), \
		     flags, LIBPMEM_REAL(name), to, from, len, flags)

COPY(pmem_memcpy_persist, const void *, 0)
COPY(pmem_memmove_persist, const void *, 0)
COPY(pmem_memset_persist, int, 0)
COPY(pmem_memcpy_nodrain, const void *, COPY_NODRAIN)
COPY(pmem_memmove_nodrain, const void *, COPY_NODRAIN)
COPY(pmem_memset_nodrain, int, COPY_NODRAIN)
COPY_FLAGS(pmem_memcpy, const void *)
COPY_FLAGS(pmem_memmove, const void *)
COPY_FLAGS(pmem_memset, int)

/* --- intrinsics of a program that tells of them: record_hooks.h --- */

RECORD_EXPORT void tidemark_record_flushes(const void *at, size_t len, const void *pc)
{
	libpmem_note(LIBPMEM_FLUSHES, at, len, pc);
}

RECORD_EXPORT void tidemark_record_fences(const void *pc)
{
	libpmem_note(LIBPMEM_FENCES, NULL, 0, pc);
}

RECORD_EXPORT void tidemark_record_streams(void *to, const void *from, size_t len,
					   void *(*copy)(void *, const void *, size_t),
					   const void *pc)
{
	struct libpmem_copy c = libpmem_copy_begins(to, len, COPY_NONTEMPORAL | COPY_NODRAIN, pc);
	copy(to, from, len);
	libpmem_copied(&c);
}
