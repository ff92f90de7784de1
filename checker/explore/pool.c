/* SPDX-License-Identifier: BSD-3-Clause */
/* See pool.h. */
#include "checker/explore/pool.h"
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A message: the unit's number, then its result. */
#define MESSAGE_BYTES (sizeof(unsigned) + POOL_RESULT_MAX)

static _Noreturn void worker(const struct pool *p, atomic_uint *next, int out)
{
	_Alignas(max_align_t) char result[POOL_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(unsigned) + p->result_bytes;
	for (unsigned unit; !p->more || p->more(p->arg);) {
		unit = atomic_fetch_add(next, 1);
		if (unit >= p->units)
			break;
		memset(result, 0, sizeof(result));
		p->work(p->arg, unit, result);
		memcpy(message, &unit, sizeof(unit));
		memcpy(message + sizeof(unit), result, p->result_bytes);
		if (write(out, message, len) != (ssize_t)len)
			_Exit(70);
	}
	_Exit(0);
}

/* Results as they come. -ECHILD when the socket closes too early. */
static int collect(const struct pool *p, int in)
{
	_Alignas(max_align_t) char result[POOL_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(unsigned) + p->result_bytes;
	for (unsigned done = 0; done < p->units; done++) {
		unsigned unit;
		ssize_t n;
		do {
			n = read(in, message, len);
		} while (n < 0 && errno == EINTR);
		if (n == 0 && p->more)
			return 0; /* they have stopped of their own */
		if (n != (ssize_t)len)
			return -ECHILD;
		memcpy(&unit, message, sizeof(unit));
		memcpy(result, message + sizeof(unit), p->result_bytes);
		assert(unit < p->units);
		p->take(p->arg, unit, result);
	}
	return 0;
}

int pool_run(const struct pool *p)
{
	unsigned jobs = p->jobs ? p->jobs : 1;
	int ends[2], error = 0;
	assert(p->result_bytes <= POOL_RESULT_MAX);
	atomic_uint *next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *child = calloc(jobs, sizeof(*child));
	if (next == MAP_FAILED || !child)
		return -ENOMEM;
	/* Messages of several writers stay whole, however long they are. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
		return -errno;
	fflush(NULL);
	for (unsigned j = 0; j < jobs; j++) {
		child[j] = fork();
		if (child[j] == 0) {
			close(ends[0]);
			worker(p, next, ends[1]);
		}
		if (child[j] < 0)
			error = -errno;
	}
	close(ends[1]);
	if (!error)
		error = collect(p, ends[0]);
	close(ends[0]);
	for (unsigned j = 0; j < jobs; j++) {
		int status = 0;
		if (child[j] > 0 && waitpid(child[j], &status, 0) > 0 && status && !error)
			error = -ECHILD;
	}
	free(child);
	munmap(next, sizeof(*next));
	return error;
}
