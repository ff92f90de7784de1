/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_POOL_H
#define TM_CHECKER_EXPLORE_POOL_H
/*
 * A pool of processes that share numbered units of work. A process that is free takes the next
 * number. Each result is plain bytes without pointers, and comes back as one message of a socket.
 */
#include <stdbool.h>
#include <stddef.h>

#define POOL_RESULT_MAX 16000 /* bytes */

struct pool {
	unsigned units, jobs;
	size_t result_bytes;
	/* In one of the processes: fill `result`, which is zeroed. */
	void (*work)(void *arg, unsigned unit, void *result);
	/* In the calling process, in the order in which the results come. */
	void (*take)(void *arg, unsigned unit, const void *result);
	/* In one of the processes: may it take another unit? NULL: until all are taken. */
	bool (*more)(void *arg);
	void *arg;
};

/* 0, or -errno: -ENOMEM, -ECHILD (a process died), or why no process could be started. */
int pool_run(const struct pool *p);

#endif
