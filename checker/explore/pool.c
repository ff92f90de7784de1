/* SPDX-License-Identifier: BSD-3-Clause */
/* See pool.h. */
#include "checker/explore/pool.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A message: the unit's number, then its result. */
#define MESSAGE_BYTES (sizeof(unsigned) + POOL_RESULT_MAX)

/* What the processes share. */
struct shared {
	atomic_uint next;	 /* unit */
	pthread_mutex_t writing; /* a message is longer than what a pipe takes in one piece */
};

static bool share(struct shared *s)
{
	pthread_mutexattr_t attr;
	bool done = !pthread_mutexattr_init(&attr) &&
		    !pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) &&
		    !pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) &&
		    !pthread_mutex_init(&s->writing, &attr);
	pthread_mutexattr_destroy(&attr);
	return done;
}

/* False: this message, or that of a process that died while it wrote, is not whole. */
static bool write_message(struct shared *s, int out, const char *message, size_t len)
{
	size_t written = 0;
	if (pthread_mutex_lock(&s->writing))
		return false;
	while (written < len) {
		ssize_t n = write(out, message + written, len - written);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		written += (size_t)n;
	}
	pthread_mutex_unlock(&s->writing);
	return written == len;
}

static _Noreturn void worker(const struct pool *p, struct shared *s, int out)
{
	_Alignas(max_align_t) char result[POOL_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(unsigned) + p->result_bytes;
	for (unsigned unit; !p->more || p->more(p->arg);) {
		unit = atomic_fetch_add(&s->next, 1);
		if (unit >= p->units)
			break;
		memset(result, 0, sizeof(result));
		p->work(p->arg, unit, result);
		memcpy(message, &unit, sizeof(unit));
		memcpy(message + sizeof(unit), result, p->result_bytes);
		if (!write_message(s, out, message, len))
			_Exit(70);
	}
	_Exit(0);
}

/* Results as they come. -ECHILD when the pipe closes too early. */
static int collect(const struct pool *p, int in)
{
	_Alignas(max_align_t) char result[POOL_RESULT_MAX];
	char message[MESSAGE_BYTES];
	size_t len = sizeof(unsigned) + p->result_bytes;
	for (unsigned done = 0; done < p->units; done++) {
		unsigned unit;
		size_t got = 0;
		while (got < len) {
			ssize_t n = read(in, message + got, len - got);
			if (n < 0 && errno == EINTR)
				continue;
			if (n == 0 && got == 0 && p->more)
				return 0; /* they have stopped of their own */
			if (n <= 0)
				return -ECHILD;
			got += (size_t)n;
		}
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
	int pipes[2], error = 0;
	assert(p->result_bytes <= POOL_RESULT_MAX);
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *child = calloc(jobs, sizeof(*child));
	if (s == MAP_FAILED || !child || !share(s))
		return -ENOMEM;
	if (pipe(pipes))
		return -errno;
	fflush(NULL);
	for (unsigned j = 0; j < jobs; j++) {
		child[j] = fork();
		if (child[j] == 0) {
			close(pipes[0]);
			worker(p, s, pipes[1]);
		}
		if (child[j] < 0)
			error = -errno;
	}
	close(pipes[1]);
	if (!error)
		error = collect(p, pipes[0]);
	close(pipes[0]);
	for (unsigned j = 0; j < jobs; j++) {
		int status = 0;
		if (child[j] > 0 && waitpid(child[j], &status, 0) > 0 && status && !error)
			error = -ECHILD;
	}
	free(child);
	munmap(s, sizeof(*s));
	return error;
}
