/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpoll() and rselect(): rsockets and other descriptors together. See rsocket.h.
 *
 * The kernel is asked about other descriptors, and about those of rsockets whether there is
 * something to look after; what that is, and whether it is what is waited for, is then seen.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "core/provider/rsocket/rsocket.h"

#define FEW 16

/* Locked: what is so now, of what is wanted. */
static short is_now(const struct rsocket *rs, short wanted)
{
	struct pollfd requests = {.fd = rs->events->fd, .events = POLLIN};
	short is = 0;

	if (rs->state == RS_LISTENING)
		return poll(&requests, 1, 0) == 1 ? wanted & POLLIN : 0;
	if (rs->state < RS_CONNECTED)
		return 0;
	if (rs_receive_ready(rs))
		is |= POLLIN;
	if (rs_send_ready(rs))
		is |= POLLOUT;
	is &= wanted;
	/* Not to whoever is told of data: there are programs that would not read them then. */
	if (rs->state == RS_OVER && !(rs->unread && is & POLLIN))
		is |= POLLHUP;
	if (rs->state == RS_BROKEN)
		is |= POLLERR;
	return is;
}

static short look(struct rsocket *rs, short wanted, bool sleeps)
{
	bool some;
	short is;

	do {
		some = rs_progress(rs, sleeps);
		is = is_now(rs, wanted);
	} while (some && !is);
	return is;
}

/* What each entry is: an rsocket, or NULL; and what the kernel is asked of it. */
struct entry {
	struct rsocket *rs;
	bool lies;
};

/* Those that can be said without the kernel; the others lie down if there are none. *until_ms: no
 * later than the first one's sign of life. */
static int look_at_all(struct pollfd *fds, struct entry *entries, struct pollfd *ask, nfds_t n,
		       bool sleeps, uint64_t *until_ms)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		struct rsocket *rs = entries[i].rs;

		ask[i] = fds[i];
		ask[i].revents = 0;
		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		rs_keep_alive(rs);
		fds[i].revents = look(rs, fds[i].events, sleeps && !ready);
		ready += !!fds[i].revents;
		ask[i].events = POLLIN;
		entries[i].lies = sleeps && !ready;
		if (entries[i].lies)
			rs_lie_down(rs);
		if (rs->keepalive_ms < *until_ms)
			*until_ms = rs->keepalive_ms;
		pthread_mutex_unlock(&rs->lock);
	}
	return ready;
}

/* After the kernel has been asked. How many entries have something to say. */
static int look_again(struct pollfd *fds, struct entry *entries, const struct pollfd *ask, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		struct rsocket *rs = entries[i].rs;

		if (!rs) {
			fds[i].revents = ask[i].revents;
		} else {
			pthread_mutex_lock(&rs->lock);
			if (entries[i].lies)
				rs_get_up(rs);
			entries[i].lies = false;
			if (!fds[i].revents)
				fds[i].revents = look(rs, fds[i].events, false);
			pthread_mutex_unlock(&rs->lock);
		}
		ready += !!fds[i].revents;
	}
	return ready;
}

static int poll_until(struct pollfd *fds, struct entry *entries, struct pollfd *ask, nfds_t n,
		      uint64_t until)
{
	bool only_rsockets = true;

	for (nfds_t i = 0; i < n; i++)
		only_rsockets &= entries[i].rs != NULL;
	for (;;) {
		uint64_t wake_ms = until;
		bool late = rs_ms_until(until) == 0;
		int rc, ready = look_at_all(fds, entries, ask, n, !late, &wake_ms);

		/* About rsockets alone the kernel has nothing to say that has not been seen. */
		if (late && only_rsockets)
			return ready;
		rc = poll(ask, n, ready || late ? 0 : rs_ms_until(wake_ms)) < 0 ? -errno : 0;
		ready = look_again(fds, entries, ask, n);
		if (ready || rc || late)
			return ready ? ready : rc;
	}
}

static uint64_t deadline(int64_t timeout_ms)
{
	return timeout_ms < 0 ? RS_NEVER : cm_now_ms() + (uint64_t)timeout_ms;
}

CM_EXPORT int rpoll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct {
		struct entry entry[FEW];
		struct pollfd ask[FEW];
	} few;
	struct entry *entries = few.entry;
	struct pollfd *ask = few.ask;
	const uint64_t until = deadline(timeout);
	int rc = -ENOMEM;

	if (n > FEW) {
		entries = malloc(n * sizeof(*entries));
		ask = malloc(n * sizeof(*ask));
	}
	if (entries && ask) {
		for (nfds_t i = 0; i < n; i++)
			entries[i] = (struct entry){.rs = rs_hold(fds[i].fd)};
		rc = poll_until(fds, entries, ask, n, until);
		for (nfds_t i = 0; i < n; i++)
			if (entries[i].rs)
				rs_drop(entries[i].rs);
	}
	if (n > FEW) {
		free(entries);
		free(ask);
	}
	return rc < 0 ? cm_fail(-rc) : rc;
}

/* --- rselect --- */

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t to_poll(int n, const fd_set *read, const fd_set *write, const fd_set *except,
		      struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < n; fd++) {
		short events = (short)((is_in(fd, read) ? POLLIN : 0) |
				       (is_in(fd, write) ? POLLOUT : 0) |
				       (is_in(fd, except) ? POLLPRI : 0));

		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

static int keep(const struct pollfd *fds, nfds_t count, fd_set *set, short asked, short events)
{
	int kept = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (!(fds[i].events & asked))
			continue;
		if (fds[i].revents & events)
			kept++;
		else
			FD_CLR(fds[i].fd, set);
	}
	return kept;
}

CM_EXPORT int rselect(int n, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
	struct pollfd *fds;
	nfds_t count;
	int rc;

	if (n < 0 || n > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return cm_fail(EINVAL);
	fds = calloc((size_t)n + 1, sizeof(*fds));
	if (!fds)
		return cm_fail(ENOMEM);
	count = to_poll(n, read, write, except, fds);
	rc = rpoll(fds, count,
		   timeout ? rs_ms_until(cm_now_ms() + (uint64_t)timeout->tv_sec * 1000 +
					 (uint64_t)(timeout->tv_usec + 999) / 1000)
			   : -1);
	for (nfds_t i = 0; i < count && rc > 0; i++)
		if (fds[i].revents & POLLNVAL)
			rc = cm_fail(EBADF);
	if (rc >= 0)
		rc = keep(fds, count, read, POLLIN, POLLIN | POLLHUP | POLLERR) +
		     keep(fds, count, write, POLLOUT, POLLOUT | POLLERR) +
		     keep(fds, count, except, POLLPRI, POLLPRI | POLLHUP | POLLERR);
	free(fds);
	return rc;
}
