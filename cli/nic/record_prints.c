/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program prints while it is recorded, with --ack: it goes to two files, where the processes
 * that are recorded see it as soon as it is written, and from there to where it should have gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "cli/nic/record.h"
#include "core/record/format.h"

#define OFTEN_NS 20000000 /* ... it is looked for */

static const char *const names[2] = {RECORD_PRINTED_OUT, RECORD_PRINTED_ERR};
static int file[2] = {-1, -1};
static _Atomic bool ended;
static pthread_t thread;
static bool shows;

static int open_printed(const struct record_head *head, unsigned i, int flags)
{
	char path[sizeof(head->shadow) + 16];
	snprintf(path, sizeof(path), "%s/%s", head->shadow, names[i]);
	return open(path, flags | O_CLOEXEC, 0666);
}

int record_prints_to(const struct record_head *head)
{
	for (unsigned i = 0; i < 2 && head->ack[0]; i++) {
		int fd = open_printed(head, i, O_WRONLY | O_APPEND | O_CREAT);
		if (fd < 0 || dup2(fd, STDOUT_FILENO + (int)i) < 0)
			return -errno;
		close(fd);
	}
	return 0;
}

static void pass_on(void)
{
	char some[1 << 14];
	for (unsigned i = 0; i < 2; i++)
		for (ssize_t n; (n = read(file[i], some, sizeof(some))) > 0;)
			for (ssize_t at = 0, did = 0; at < n && did >= 0; at += did)
				did = write(STDOUT_FILENO + (int)i, some + at, (size_t)(n - at));
}

static void *show(void *arg)
{
	const struct timespec often = {.tv_nsec = OFTEN_NS};
	while (!atomic_load(&ended)) {
		pass_on();
		nanosleep(&often, NULL);
	}
	pass_on();
	return arg;
}

void record_show_begin(const struct record_head *head)
{
	sigset_t all, before;
	shows = head->ack[0] != 0;
	for (unsigned i = 0; i < 2 && shows; i++) {
		file[i] = open_printed(head, i, O_RDONLY | O_CREAT);
		shows = file[i] >= 0;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	shows = shows && !pthread_create(&thread, NULL, show, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void record_show_end(void)
{
	atomic_store(&ended, true);
	if (shows)
		pthread_join(thread, NULL);
}
