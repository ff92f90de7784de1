/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_LOCK_H
#define TM_PROVIDER_BASE_LOCK_H
/* Taking a lock in a process that ends, or forks. */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* False: not within so long. A signal handler that calls exit() may have interrupted the thread
 * that holds the lock; without the limit that process would never end. */
static inline bool lock_within(pthread_mutex_t *mutex, unsigned ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
}

#endif
