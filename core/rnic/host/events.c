/* SPDX-License-Identifier: BSD-3-Clause */
/* How programs of a simulated host wait; the ground of their completion channels and asynchronous
 * events. */
#include "core/rnic/events.h"
#include <assert.h>
#include <errno.h>
#include "core/fail.h"
#include "core/rnic/host/host.h"
#include "core/rt/process/descriptors.h"

/* --- waiting --- */

void host_wait(const struct host *host, const void *key)
{
	struct sim *sim = host_sim(host);

	sim_spend_step(sim);
	sim_idle_on(sim, key);
	sim_yield(sim);
}

void host_call(const struct host *host)
{
	struct sim *sim = host_sim(host);

	sim_commit_pending(sim);
	sim_step(sim, STEP_POST, sim_run_state(sim)->cost->call);
}

bool host_await(const struct host *host, const struct descriptor_kind *kind, const void *object,
		const void *list, int fd)
{
	struct sim *sim = host_sim(host);
	uint64_t arrivals;

	for (;;) {
		if (kind->ready(object, &arrivals)) {
			sim_commit_pending(sim);
			sim_step(sim, STEP_POLL, sim_run_state(sim)->cost->await);
			/* Another thread may have taken it meanwhile. */
			if (kind->ready(object, &arrivals))
				return true;
		} else if (descriptor_waits(sim, host->number, fd)) {
			host_wait(host, list);
		} else {
			sim_spend_step(sim);
			sim_idle_on(sim, list);
			errno = EAGAIN;
			return false;
		}
	}
}

void host_took(const struct host *host, const void *list, uint64_t nth)
{
	struct sim *sim = host_sim(host);

	/* Another thread may take, too: which one is first matters. */
	sim_touch_state(sim, TOUCH_DRAM_WRITE, list, sizeof(uint64_t));
	sim_takes(sim, list, nth);
}

void host_put(const struct host *host, const void *list, uint64_t nth)
{
	struct sim *sim = host_sim(host);

	sim_gives(sim, list, nth);
	sim_wake(sim, list);
	descriptors_wake(sim, host->number);
}

/* --- completion channels, asynchronous events: core/rnic/events.h --- */

static struct happened *alloc_event(struct events *events)
{
	struct hosts *all = ((struct host *)events->owner)->all;
	struct happened *happened = all->free_happened;

	if (!happened)
		return ground_alloc(&all->net->ground, sizeof(*happened));
	all->free_happened = happened->next;
	return happened;
}

static void free_event(struct events *events, struct happened *happened)
{
	struct hosts *all = ((struct host *)events->owner)->all;

	happened->next = all->free_happened;
	all->free_happened = happened;
}

static void event_arrived(struct events *events, const struct happened *happened)
{
	host_put(events->owner, events, happened->nth);
}

static void event_retrieved(struct events *events, const struct happened *happened)
{
	host_took(events->owner, events, happened->nth);
}

static short events_ready(const void *object, uint64_t *arrivals)
{
	const struct events *events = object;

	*arrivals = events->arrivals;
	return events->first ? POLLIN : 0;
}

static const struct descriptor_kind events_kind = {.ready = events_ready};

static int wait_for_event(struct events *events)
{
	return host_await(events->owner, &events_kind, events, events, events->fd) ? 0 : errno;
}

static void wait_for_ack(struct events *events, const void *key)
{
	host_wait(events->owner, key);
}

static void event_acked(struct events *events, const void *key)
{
	sim_wake(host_sim(events->owner), key);
}

static struct async_events *async_of(struct ibv_context *context, bool needed)
{
	struct process *process = needed ? process_of(context) : process_known(context);

	return process ? &process->async : NULL;
}

static const struct events_ground ground = {
	.async = async_of,
	.alloc = alloc_event,
	.free = free_event,
	.arrived = event_arrived,
	.retrieved = event_retrieved,
	.wait = wait_for_event,
	.wait_for_ack = wait_for_ack,
	.acked = event_acked,
};

__attribute__((constructor)) static void stand(void)
{
	events_ground = &ground;
}

/* A descriptor for them; errno. */
static bool open_events(struct events *events)
{
	struct host *host = events->owner;
	int fd = descriptor_open(host_sim(host), host->number, &events_kind, events);

	if (fd < 0)
		errno = -fd;
	else
		events->fd = fd;
	return fd >= 0;
}

bool host_open_async(struct process *process)
{
	return process->async.events.fd >= 0 || open_events(&process->async.events);
}

struct ibv_comp_channel *rnic_create_comp_channel(struct ibv_context *context)
{
	struct host *host = process_of(context)->host;
	struct event_channel *channel;

	if (sim_fails(FAIL_MEMORY))
		return errno_null(ENOMEM);
	channel = ground_alloc(&host->all->net->ground, sizeof(*channel));
	events_init(&channel->events, host);
	if (!open_events(&channel->events))
		return NULL;
	channel->ibv.context = context;
	channel->ibv.fd = channel->events.fd;
	return &channel->ibv;
}

int rnic_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct host *host = ((struct event_channel *)ibv)->events.owner;

	if (ibv->refcnt)
		return EBUSY;
	descriptor_free(host_sim(host), host->number, ibv->fd);
	return 0;
}

/* --- destruction --- */

int rnic_host_destroy_cq(struct ibv_cq *cq)
{
	int error = rnic_destroy_cq(cq);

	if (error)
		return error;
	events_settle(cq->context, cq);
	events_settle_completions(cq);
	return 0;
}

int rnic_host_destroy_qp(struct ibv_qp *qp)
{
	int error = rnic_destroy_qp(qp);

	if (!error)
		events_settle(qp->context, qp);
	return error;
}

int rnic_host_destroy_srq(struct ibv_srq *srq)
{
	int error = rnic_destroy_srq(srq);

	if (!error)
		events_settle(srq->context, srq);
	return error;
}
