/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mutex of glibc that was just made is all zero, and so is new memory. Where it is zero already
 * nothing is written, and the page need not be there: libpmemobj makes 65,000 mutexes each time
 * that it opens a pool, and most of them are never locked.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "checker/seat/preload/board.h"

#ifdef __GLIBC__
#define EXPORT __attribute__((visibility("default")))

static bool is_zero(const pthread_mutex_t *m)
{
	uint64_t word[sizeof(*m) / 8], any = 0;
	memcpy(word, m, sizeof(word));
	for (unsigned i = 0; i < sizeof(word) / 8; i++)
		any |= word[i];
	return !any;
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *with)
{
	static int (*next)(pthread_mutex_t *, const pthread_mutexattr_t *);
	if (!with && is_zero(m))
		return 0;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_init");
	return next(m, with);
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *m)
{
	static int (*next)(pthread_mutex_t *);
	if (is_zero(m)) /* nobody has it */
		return 0;
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_destroy");
	return next(m);
}
#endif
