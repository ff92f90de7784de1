/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See descriptors.h.
 *
 * A task that polls waits for its host's table: whatever becomes ready on the host wakes it, and it
 * looks again. A poll that finds something is a step, as with a completion queue; one that finds
 * nothing is not. Signals do not exist: the masks of ppoll() and epoll_pwait() do nothing.
 *
 * An epoll instance has a list of what it watches, in the order in which that was added, which is
 * the order of its answers. EPOLLET and EPOLLONESHOT are as in Linux; EPOLLEXCLUSIVE and
 * EPOLLWAKEUP change nothing where one process watches.
 */
#include "core/rt/process/descriptors.h"
#include <errno.h>
#include <fcntl.h>
#include "core/fail.h"
#include "core/rt/sim_state.h"

#define FIRST	 3 /* after standard input, output and error */
#define MOST	 1024
#define NS_MS	 1000000ull
#define NS_S	 1000000000ull
#define FOR_EVER UINT64_MAX

struct descriptor {
	const struct descriptor_kind *kind; /* NULL: not open */
	void *object;
	uint32_t life; /* of this number: epoll does not mistake a later one for an earlier one */
	bool nonblocking;
};

struct descriptors {
	struct descriptor *of; /* by number - FIRST */
	unsigned room;
};

/* --- the table --- */

static struct descriptors *table(struct sim *sim, unsigned host)
{
	struct one_host *at = sim_host_of(sim, host);
	if (!at->descriptors)
		at->descriptors = sim_alloc(sim, sizeof(struct descriptors));
	return at->descriptors;
}

static struct descriptor *find(struct sim *sim, unsigned host, int fd)
{
	struct descriptors *all = table(sim, host);

	if (fd < FIRST || (unsigned)fd - FIRST >= all->room)
		return NULL;
	struct descriptor *d = &all->of[fd - FIRST];
	return d->kind ? d : NULL;
}

int descriptor_open(struct sim *sim, unsigned host, const struct descriptor_kind *kind,
		    void *object)
{
	struct descriptors *all = table(sim, host);
	unsigned i = 0;

	assert(kind);
	while (i < all->room && all->of[i].kind)
		i++;
	if (i == MOST)
		return -EMFILE;
	if (i == all->room) {
		unsigned room = all->room ? 2 * all->room : 16;
		struct descriptor *of = sim_alloc(sim, room * sizeof(*of));
		if (all->room)
			memcpy(of, all->of, all->room * sizeof(*of));
		all->of = of;
		all->room = room;
	}
	all->of[i] = (struct descriptor){
		.kind = kind, .object = object, .life = all->of[i].life + 1};
	return (int)i + FIRST;
}

void descriptor_free(struct sim *sim, unsigned host, int fd)
{
	struct descriptor *d = find(sim, host, fd);

	if (d)
		d->kind = NULL;
}

/* The descriptor's object, if it is of this kind; else NULL. */
static void *descriptor_object(struct sim *sim, unsigned host, int fd,
			       const struct descriptor_kind *kind)
{
	const struct descriptor *d = find(sim, host, fd);

	return d && d->kind == kind ? d->object : NULL;
}

bool descriptor_waits(struct sim *sim, unsigned host, int fd)
{
	const struct descriptor *d = find(sim, host, fd);

	return !d || !d->nonblocking;
}

void descriptors_wake(struct sim *sim, unsigned host)
{
	struct descriptors *all = sim_host_at(sim, host)->descriptors;
	if (all)
		sim_wake(sim, all);
}

void descriptors_forget(struct sim *sim, unsigned host)
{
	sim_host_of(sim, host)->descriptors = NULL;
}

/* --- waiting --- */

/* Call look() until it finds something, or the time is over (0). */
static int wait_until(uint64_t until, int (*look)(void *arg), void *arg)
{
	struct sim *sim = sim_of_thread;
	int found;

	for (;;) {
		if (look(arg)) {
			sim_commit_pending(sim);
			sim_step(sim, STEP_POLL, sim_run_state(sim)->cost->select);
			/* Another task may have taken it meanwhile. */
			found = look(arg);
			if (found)
				return found;
		}
		sim_spend_step(sim);
		sim_idle_on(sim, table(sim, sim_host(sim)));
		if (sim->run.now >= until)
			return 0;
		sim_yield_until(sim, until);
	}
}

static uint64_t after_ms(int ms)
{
	return ms < 0 ? FOR_EVER : sim_of_thread->run.now + (uint64_t)ms * NS_MS;
}

/* --- poll --- */

struct polled {
	struct pollfd *fds;
	nfds_t n;
};

static int look_at_all(void *arg)
{
	const struct polled *polled = arg;
	struct sim *sim = sim_of_thread;
	uint64_t arrivals;
	int found = 0;

	for (nfds_t i = 0; i < polled->n; i++) {
		struct pollfd *fd = &polled->fds[i];
		const struct descriptor *d = find(sim, sim_host(sim), fd->fd);
		fd->revents = 0;
		if (d)
			fd->revents = (short)(d->kind->ready(d->object, &arrivals) &
					      (fd->events | POLLERR | POLLHUP));
		else if (fd->fd >= 0)
			fd->revents = POLLNVAL;
		found += fd->revents != 0;
	}
	return found;
}

static int poll_until(struct pollfd *fds, nfds_t n, uint64_t until)
{
	struct polled polled = {fds, n};

	return wait_until(until, look_at_all, &polled);
}

int sim_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return poll_until(fds, n, after_ms(timeout_ms));
}

int sim_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t until = FOR_EVER;

	if (timeout &&
	    (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= (long)NS_S))
		return errno_minus(EINVAL);
	if (timeout && (uint64_t)timeout->tv_sec < FOR_EVER / 4 / NS_S)
		until = sim_of_thread->run.now + (uint64_t)timeout->tv_sec * NS_S +
			(uint64_t)timeout->tv_nsec;
	return poll_until(fds, n, until);
}

/* --- fcntl, close --- */

static int control(int fd, int command, int value)
{
	struct sim *sim = sim_of_thread;
	struct descriptor *d = find(sim, sim_host(sim), fd);

	if (!d)
		return errno_minus(EBADF);
	switch (command) {
	case F_GETFL:
		return O_RDWR | (d->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		d->nonblocking = value & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD: /* no process starts another one */
		return 0;
	default:
		errno = EINVAL;
		return -1;
	}
}

int sim_fcntl(int fd, int command, ...)
{
	va_list ap;

	va_start(ap, command);
	int value = command == F_SETFL ? va_arg(ap, int) : 0;
	va_end(ap);
	return control(fd, command, value);
}

/* The same, where files may be large. */
int sim_fcntl64(int fd, int command, ...) __attribute__((alias("sim_fcntl")));

int sim_close(int fd)
{
	struct sim *sim = sim_of_thread;
	struct descriptor *d = find(sim, sim_host(sim), fd);
	int error = d && d->kind->close ? d->kind->close(d->object) : EBADF;

	if (error)
		return errno_minus(error);
	d->kind = NULL;
	return 0;
}

/* --- epoll --- */

struct watch {
	struct watch *next;
	int fd;
	uint32_t life;
	struct epoll_event event;
	uint64_t reported; /* of its arrivals; EPOLLET */
	bool once_over;	   /* EPOLLONESHOT: it was reported */
};

struct epoll {
	struct sim *sim;
	unsigned host;
	struct watch *first, *free;
};

/* The events of poll(2) and of epoll(7) have the same numbers. */
_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR, "as in Linux");

/* What of a watched descriptor is to be reported. A closed one is not watched any more. */
static uint32_t reports(const struct epoll *epoll, const struct watch *watch, uint64_t *arrivals)
{
	const struct descriptor *d = find(epoll->sim, epoll->host, watch->fd);

	*arrivals = 0;
	if (!d || d->life != watch->life || watch->once_over)
		return 0;
	uint32_t ready = (uint32_t)d->kind->ready(d->object, arrivals) &
			 (watch->event.events | EPOLLERR | EPOLLHUP);
	return watch->event.events & EPOLLET && *arrivals == watch->reported ? 0 : ready;
}

static short epoll_ready(const void *object, uint64_t *arrivals)
{
	const struct epoll *epoll = object;
	uint64_t one;

	*arrivals = 0;
	for (const struct watch *watch = epoll->first; watch; watch = watch->next) {
		if (reports(epoll, watch, &one))
			return POLLIN;
		*arrivals += one;
	}
	return 0;
}

static int epoll_close(void *object)
{
	return 0;
}

static const struct descriptor_kind epoll_kind = {.ready = epoll_ready, .close = epoll_close};

static struct epoll *to_epoll(int fd)
{
	struct sim *sim = sim_of_thread;
	struct epoll *epoll = descriptor_object(sim, sim_host(sim), fd, &epoll_kind);

	if (!epoll)
		errno = find(sim, sim_host(sim), fd) ? EINVAL : EBADF;
	return epoll;
}

int sim_epoll_create1(int flags)
{
	struct sim *sim = sim_of_thread;
	struct epoll *epoll;

	if (flags & ~EPOLL_CLOEXEC)
		return errno_minus(EINVAL);
	epoll = sim_alloc(sim, sizeof(*epoll));
	epoll->sim = sim;
	epoll->host = sim_host(sim);
	int fd = descriptor_open(sim, epoll->host, &epoll_kind, epoll);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int sim_epoll_create(int size)
{
	if (size <= 0)
		return errno_minus(EINVAL);
	return sim_epoll_create1(0);
}

static int add_watch(struct epoll *epoll, int fd, uint32_t life, const struct epoll_event *event)
{
	struct watch *watch = epoll->free, **last = &epoll->first;

	if (watch)
		epoll->free = watch->next;
	else
		watch = sim_alloc(epoll->sim, sizeof(*watch));
	*watch = (struct watch){.fd = fd, .life = life, .event = *event, .reported = UINT64_MAX};
	while (*last)
		last = &(*last)->next;
	*last = watch;
	return 0;
}

static int change_watch(struct epoll *epoll, int operation, int fd, uint32_t life,
			const struct epoll_event *event)
{
	struct watch **at = &epoll->first;

	while (*at && ((*at)->fd != fd || (*at)->life != life))
		at = &(*at)->next;
	struct watch *watch = *at;
	switch (operation) {
	case EPOLL_CTL_ADD:
		return watch ? EEXIST : add_watch(epoll, fd, life, event);
	case EPOLL_CTL_MOD:
		if (!watch)
			return ENOENT;
		watch->event = *event;
		watch->once_over = false;
		watch->reported = UINT64_MAX;
		return 0;
	case EPOLL_CTL_DEL:
		if (!watch)
			return ENOENT;
		*at = watch->next;
		watch->next = epoll->free;
		epoll->free = watch;
		return 0;
	default:
		return EINVAL;
	}
}

int sim_epoll_ctl(int epfd, int operation, int fd, struct epoll_event *event)
{
	struct sim *sim = sim_of_thread;
	struct epoll *epoll = to_epoll(epfd);
	const struct descriptor *d = find(sim, sim_host(sim), fd);
	int error;

	if (!epoll)
		return -1;
	if (!d)
		error = EBADF;
	else if (epfd == fd)
		error = EINVAL;
	else if (operation != EPOLL_CTL_DEL && !event)
		error = EFAULT;
	else
		error = change_watch(epoll, operation, fd, d->life, event);
	if (error)
		return errno_minus(error);
	/* It may be ready. */
	descriptors_wake(sim, sim_host(sim));
	return 0;
}

static int look_at_epoll(void *arg)
{
	uint64_t arrivals;
	return epoll_ready(arg, &arrivals) != 0;
}

static int take_reports(struct epoll *epoll, struct epoll_event *events, int most)
{
	int n = 0;

	for (struct watch *watch = epoll->first; watch && n < most; watch = watch->next) {
		uint64_t arrivals;
		uint32_t ready = reports(epoll, watch, &arrivals);
		if (!ready)
			continue;
		watch->reported = arrivals;
		watch->once_over = watch->event.events & EPOLLONESHOT;
		events[n++] = (struct epoll_event){.events = ready, .data = watch->event.data};
	}
	return n;
}

int sim_epoll_wait(int epfd, struct epoll_event *events, int most, int timeout_ms)
{
	struct epoll *epoll = to_epoll(epfd);

	if (!epoll)
		return -1;
	if (most <= 0)
		return errno_minus(EINVAL);
	if (!wait_until(after_ms(timeout_ms), look_at_epoll, epoll))
		return 0;
	return take_reports(epoll, events, most);
}

int sim_epoll_pwait(int epfd, struct epoll_event *events, int most, int timeout_ms,
		    const sigset_t *mask)
{
	return sim_epoll_wait(epfd, events, most, timeout_ms);
}
