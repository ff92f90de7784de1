/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' completion queues. A thread that polls an empty queue drives the NIC. An iterating
 * poll takes the lock for each step, not from its start to its end, because a program posts
 * requests between the steps. core/rnic/objects/cq_ex.c sees to it that no other thread iterates
 * over the queue meanwhile. The functions that read a completion read a copy, and need no lock.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "core/clock.h"
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/post.h"

static struct rnic_cq *to_cq(struct ibv_cq_ex *ex)
{
	return (struct rnic_cq *)ex;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	return NAMED(LOCKED(struct ibv_cq *,
			    rnic_create_cq(context, cqe, cq_context, channel, comp_vector)));
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return CALL_OF(cq, rnic_resize_cq(cq, cqe));
}

int nic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return CALL_OF(cq, rnic_modify_cq(cq, attr));
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	int error = CALL_OF(cq, rnic_destroy_cq(cq));

	if (error)
		return error;
	events_settle_completions(cq);
	events_settle(cq->context, cq);
	nic_lock(nic_get());
	cq_give_back((struct rnic_cq *)cq);
	nic_unlock(nic_get());
	return 0;
}

int nic_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct rnic_cq *own = (const struct rnic_cq *)cq;
	struct nic *nic = nic_get();

	nic_lock(nic);
	int got = rnic_poll_cq(cq, n, wc);
	if (got == 0) {
		post_ask(nic->net, cq);
		nic_poll(nic, own, (uint32_t)n);
		got = rnic_poll_cq(cq, n, wc);
	}
	nic_polled(nic, got > 0);
	nic_unlock(nic);
	return got;
}

static int arm(struct nic *nic, struct ibv_cq *cq, int solicited_only)
{
	/* The program is about to wait, perhaps by a call of its own. */
	nic_hand_over(nic);
	post_ask(nic->net, cq);
	return rnic_req_notify_cq(cq, solicited_only);
}

int nic_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return CALL_OF(cq, arm(nic_, cq, solicited_only));
}

/* --- iterating --- */

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct nic *nic = nic_get();

	nic_lock(nic);
	int error = cq_ex_start(cq, attr);
	if (error == ENOENT) {
		post_ask(nic->net, ibv_cq_ex_to_cq(cq));
		nic_poll(nic, to_cq(cq), UINT32_MAX);
		error = cq_ex_start(cq, attr);
	}
	nic_polled(nic, error == 0);
	nic_unlock(nic);
	return error;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct nic *nic = nic_get();

	nic_lock(nic);
	int error = cq_ex_next(cq);
	nic_unlock(nic);
	return error;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct nic *nic = nic_get();

	nic_lock(nic);
	cq_ex_end(cq);
	nic_unlock(nic);
}

/* By how much the system's clock is ahead of the device's, CLOCK_MONOTONIC. It is measured once:
 * the system's may be set back, and a completion never comes before an earlier one. */
static int64_t wall_ahead;

static void compare_clocks(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	wall_ahead = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - (int64_t)clock_ns();
}

static uint64_t read_wallclock(struct ibv_cq_ex *cq)
{
	return to_cq(cq)->batch->current.at_ns + (uint64_t)wall_ahead;
}

struct ibv_cq_ex *nic_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ibv_cq_ex *cq = LOCKED(struct ibv_cq_ex *, rnic_create_cq_ex(context, attr));

	if (!cq)
		return NULL;
	NAMED(ibv_cq_ex_to_cq(cq));
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	if (cq->read_completion_wallclock_ns) {
		pthread_once(&once, compare_clocks);
		cq->read_completion_wallclock_ns = read_wallclock;
	}
	return cq;
}
