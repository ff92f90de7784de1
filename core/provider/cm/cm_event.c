/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels of a process.
 *
 * A channel is a list of events and a pair of sockets. While the list is not empty, one byte is in
 * the socket that the program holds. So the program can poll it, and looking at the byte without
 * taking it waits or not, as the program has set the descriptor. The byte is added and removed
 * under the lock.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/provider/cm/cm.h"

struct channel {
	struct cm_channel cm;
	int tell; /* the library's socket */
	unsigned waiters;
	bool is_read, gone;
	pthread_t reader; /* the thread that called last, if is_read */
};

struct cm_channel *new_channel(struct cm *cm)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	int fds[2];

	if (!channel)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		free(channel);
		return NULL;
	}
	channel->cm.cm = cm;
	channel->cm.user.fd = fds[0];
	channel->tell = fds[1];
	channel->cm.last = &channel->cm.first;
	return &channel->cm;
}

void event_arrived(struct cm_channel *channel, struct cm_event *event)
{
	char byte = 0;

	assert(manager.locked);
	if (channel->first == event)
		while (send(((struct channel *)channel)->tell, &byte, 1, MSG_NOSIGNAL) < 0 &&
		       errno == EINTR)
			;
}

void event_left(struct cm_channel *channel)
{
	char byte;

	assert(manager.locked);
	if (!channel->first)
		while (recv(channel->user.fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EINTR)
			;
}

/* A thread that waits on the channel waits for ever, as it would in the kernel; some programs
 * end that way. So does a thread that has just returned from there and is about to wait again.
 * That is why a channel that another thread has read from is not freed. */
void free_channel(struct cm_channel *cm)
{
	struct channel *channel = (struct channel *)cm;

	channel->gone = true;
	if (channel->waiters)
		return;
	close(cm->user.fd);
	close(channel->tell);
	if (!channel->is_read || pthread_equal(channel->reader, pthread_self()))
		free(channel);
}

static void stop_waiting(void *arg)
{
	cm_lock(&manager.cm);
	((struct channel *)arg)->waiters--;
	cm_unlock(&manager.cm);
}

/* Wait for an event, or for as long as the program has set the descriptor to wait. */
static int wait_for_event(struct channel *channel)
{
	char byte;
	ssize_t n;

	pthread_cleanup_push(stop_waiting, channel);
	n = recv(channel->cm.user.fd, &byte, 1, MSG_PEEK);
	pthread_cleanup_pop(1);
	return n < 0 ? -1 : 0; /* EAGAIN, EINTR */
}

int get_event(struct cm_channel *cm, struct cm_event **event)
{
	struct channel *channel = (struct channel *)cm;
	bool gone;

	for (;;) {
		cm_lock(&manager.cm);
		gone = channel->gone;
		channel->is_read = true;
		channel->reader = pthread_self();
		*event = gone ? NULL : cm_retrieve(cm);
		if (!*event && !gone)
			channel->waiters++;
		cm_unlock(&manager.cm);
		if (*event)
			return 0;
		if (gone)
			pause();
		else if (wait_for_event(channel))
			return -1;
	}
}
