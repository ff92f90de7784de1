/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_PROCESS_DESCRIPTORS_H
#define TM_RT_PROCESS_DESCRIPTORS_H
/*
 * Descriptors of the processes of a simulation, each host's by itself: small numbers from 3 on, the
 * lowest one that is free, as POSIX has it. The object of one says when it is ready; poll(2),
 * ppoll(2), epoll(7), fcntl(2) and close(2) of store code (core/stores/sim.syms) work on any of
 * them.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

struct sim;

/* What a descriptor can be of. */
struct descriptor_kind {
	/* Which of POLLIN and so on hold now. *arrivals: a number that grows with each thing that
	 * has arrived; edge-triggered epoll asks for it. */
	short (*ready)(const void *object, uint64_t *arrivals);
	/* The program calls close(2): 0, or an errno, and then it stays open. NULL: EBADF, because
	 * another call closes it. */
	int (*close)(void *object);
};

/* A descriptor of the host's process, or -EMFILE. */
int descriptor_open(struct sim *sim, unsigned host, const struct descriptor_kind *kind,
		    void *object);
/* Give the number back. Tasks that poll it do not hear of it any more. */
void descriptor_free(struct sim *sim, unsigned host, int fd);
/* O_NONBLOCK. */
bool descriptor_waits(struct sim *sim, unsigned host, int fd);
/* Something of the host has become ready: those that poll look again. */
void descriptors_wake(struct sim *sim, unsigned host);
/* For a new process (sim_new_process()): none is open. */
void descriptors_forget(struct sim *sim, unsigned host);

/* libc's, of the current task's host. */
int sim_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int sim_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
int sim_fcntl(int fd, int command, ...);
int sim_fcntl64(int fd, int command, ...);
int sim_close(int fd);
int sim_epoll_create(int size);
int sim_epoll_create1(int flags);
int sim_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int sim_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);
int sim_epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms,
		    const sigset_t *mask);

#endif
