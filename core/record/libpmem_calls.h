/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RECORD_LIBPMEM_CALLS_H
#define TM_RECORD_LIBPMEM_CALLS_H
/* What the functions in the place of libpmem's and libpmem2's share. */
#include <stdbool.h>
#include <stddef.h>

enum { LIBPMEM_FLUSHES = 1, LIBPMEM_FENCES = 2, LIBPMEM_SYNCS = 4 };

/* A copy, which is written down when it is done. */
struct libpmem_copy {
	void *to;
	size_t len;
	const void *caller;
	unsigned what;
	bool nontemporal;
	bool told; /* it neither flushes nor fences, and is a call like others */
};

/* Depth of this thread within such functions: what they call is a part of them. */
extern _Thread_local unsigned libpmem_depth;
/* Write down what a call at `caller` does to a range; 0: nothing. */
void libpmem_note(unsigned what, const void *at, size_t len, const void *caller);
/* A copy with these flags (PMEM_F_MEM_..., PMEM2_F_MEM_..., which are the same) begins. */
struct libpmem_copy libpmem_copy_begins(void *to, size_t len, unsigned flags, const void *caller);
void libpmem_copied(const struct libpmem_copy *copy);
/* The real function of a name. */
void *libpmem_real(const char *name);
#define LIBPMEM_REAL(name)                                              \
	({                                                              \
		static __typeof__(&name) real_;                         \
		if (!real_)                                             \
			*(void **)(void *)&real_ = libpmem_real(#name); \
		real_;                                                  \
	})

static inline void libpmem_leave(const unsigned *depth)
{
	libpmem_depth = *depth - 1;
}

/* Define a function that writes down `what` it does to [at, at+len), and calls the `real` one. */
#define LIBPMEM_CALL(storage, type, name, parameters, what, at, len, real, ...) \
	storage type name parameters;                                           \
	storage type name parameters                                            \
	{                                                                       \
		libpmem_note(what, at, len, __builtin_return_address(0));       \
		__attribute__((cleanup(libpmem_leave),                          \
			       unused)) unsigned inside_ = ++libpmem_depth;     \
		return real(__VA_ARGS__);                                       \
	}
/* The same of a copy. */
#define LIBPMEM_COPY(storage, name, parameters, flags, real, ...)                            \
	storage void *name parameters;                                                       \
	storage void *name parameters                                                        \
	{                                                                                    \
		struct libpmem_copy copy = libpmem_copy_begins(to, len, flags,               \
							       __builtin_return_address(0)); \
		void *result = real(__VA_ARGS__);                                            \
		libpmem_copied(&copy);                                                       \
		return result;                                                               \
	}

#endif
