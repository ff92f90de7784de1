/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_EXPLORE_POOL_H
#define TM_CHECKER_EXPLORE_POOL_H
/*
 * Several processes share out numbered units of work. Whoever is free takes the next
 * number; each result, plain bytes without pointers, comes back through a pipe.
 */
#include <stdbool.h>
#include <stddef.h>

#define POOL_RESULT_MAX 4000 /* bytes: a message is written in one piece (PIPE_BUF) */

struct pool {
	unsigned units, jobs;
	size_t result_bytes;
	/* In one of the processes: fill `result`, which is zeroed. */
	void (*work)(void *arg, unsigned unit, void *result);
	/* In the calling process, in the order in which the results come. */
	void (*take)(void *arg, unsigned unit, const void *result);
	/* In one of the processes, before it takes a unit: shall it? NULL: until all are taken. */
	bool (*more)(void *arg);
	void *arg;
};

/* 0, or -errno: -ENOMEM, -ECHILD (a process died), or why no process could be started. */
int pool_run(const struct pool *p);

#endif
