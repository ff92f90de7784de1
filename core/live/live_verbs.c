/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store code's calls of libibverbs in the live world. Each may be told to fail, and what
 * it makes is booked for the host. Completion queues get a channel, so that a task
 * can sleep until a completion comes (live.c waits).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include "core/live/live_fails.h"
#include "core/live/live_flush.h"
#include "core/live/live_host.h"

/* --- the books --- */

static struct live_object **find(struct live_host *host, const void *object)
{
	struct live_object **at = &host->objects;
	while (*at && (*at)->object != object)
		at = &(*at)->next;
	return at;
}

struct live_object *live_cq(struct live_host *host, const struct ibv_cq *cq)
{
	return *find(host, cq);
}

/* An entry, made before the object, so that there is nothing to undo. NULL: this call fails. */
static struct live_object *entry(enum fail_point point, enum live_kind kind)
{
	struct live_object *o = live_fails(point) ? NULL : calloc(1, sizeof(*o));
	if (!o)
		errno = ENOMEM;
	else
		o->kind = kind;
	return o;
}

static void *book(struct live_object *o, void *object)
{
	struct live_host *host = live_self()->host;
	int error = errno;
	if (!object) {
		free(o);
		errno = error;
		return NULL;
	}
	assert(!o->object && !o->next); /* a new entry */
	assert(!*find(host, object));	/* what was given back is not in the books */
	o->object = object;
	o->next = host->objects;
	host->objects = o;
	return object;
}

static int destroy(struct live_object *o)
{
	int error = 0;
	switch (o->kind) {
	case LIVE_PD:
		return ibv_dealloc_pd(o->object);
	case LIVE_MR:
		return ibv_dereg_mr(o->object);
	case LIVE_QP:
		return ibv_destroy_qp(o->object);
	case LIVE_CQ:
		error = ibv_destroy_cq(o->object);
		if (!error)
			ibv_destroy_comp_channel(o->channel);
	}
	return error;
}

int live_destroy(void *object)
{
	struct live_object **at = find(live_self()->host, object), *o = *at;
	assert(o);
	int error = destroy(o);
	if (!error) {
		*at = o->next;
		free(o);
	}
	return error;
}

/* New objects are before older ones; a kind is gone before what it holds. */
void live_objects_free(struct live_host *host)
{
	for (int kind = LIVE_QP; kind >= LIVE_PD; kind--) {
		for (struct live_object **at = &host->objects; *at;) {
			struct live_object *o = *at;
			if ((int)o->kind != kind) {
				at = &o->next;
				continue;
			}
			/* What the kernel does not take back now it takes with the device. */
			destroy(o);
			*at = o->next;
			free(o);
		}
	}
	assert(!host->objects); /* each is of one of these kinds */
}

/* --- objects --- */

struct ibv_pd *live_alloc_pd(struct ibv_context *context)
{
	assert(context == live_self()->host->verbs);
	struct live_object *o = entry(FAIL_ALLOC_PD, LIVE_PD);
	return o ? book(o, ibv_alloc_pd(context)) : NULL;
}

struct ibv_mr *live_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct live_object *o = entry(FAIL_REG_MR, LIVE_MR);
	return o ? book(o, ibv_reg_mr(pd, addr, len, (unsigned)access)) : NULL;
}

struct ibv_cq *live_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int vector)
{
	assert(!channel); /* a store that sleeps by itself would need its own */
	struct live_object *o = entry(FAIL_CREATE_CQ, LIVE_CQ);
	if (!o)
		return NULL;
	o->channel = ibv_create_comp_channel(context);
	if (!o->channel)
		return book(o, NULL);
	fcntl(o->channel->fd, F_SETFL, O_NONBLOCK);
	channel = o->channel;
	struct ibv_cq *cq = book(o, ibv_create_cq(context, cqe, cq_context, channel, vector));
	int error = errno;
	if (!cq)
		ibv_destroy_comp_channel(channel);
	errno = error;
	return cq;
}

struct ibv_qp *live_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct live_object *o = entry(FAIL_CREATE_QP, LIVE_QP);
	return o ? book(o, ibv_create_qp(pd, attr)) : NULL;
}

struct ibv_qp *live_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct live_object *o = entry(FAIL_CREATE_QP, LIVE_QP);
	return o ? book(o, live_flush_create_qp(context, attr)) : NULL;
}

int live_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return live_fails(FAIL_MODIFY_QP) ? ENOMEM : ibv_modify_qp(qp, attr, mask);
}

/* --- questions --- */

int live_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return live_fails(FAIL_QUERY) ? EIO : ibv_query_device(context, attr);
}

int live_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	return live_fails(FAIL_QUERY) ? EIO : ibv_query_port(context, port, attr);
}

int live_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (!live_fails(FAIL_QUERY))
		return ibv_query_gid(context, port, index, gid);
	errno = EIO;
	return -1;
}

/* --- work --- */

/* A queue pair's number finds its place at once, as posting is to cost nothing; where two queue
 * pairs have one place only the last one to post is known. */
static struct live_posted *posted_place(struct live_host *host, uint32_t qp)
{
	return &host->posted[qp % LIVE_POSTED];
}

static void note_posted(struct ibv_qp *qp, uint8_t opcode)
{
	*posted_place(live_self()->host, qp->qp_num) = (struct live_posted){qp->qp_num, opcode};
}

int live_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	live_busy(live_self());
	if (!live_fails(FAIL_POST_SEND)) {
		int error = ibv_post_send(qp, wr, bad);
		if (!error)
			note_posted(qp, wr->next ? POSTED_UNKNOWN : (uint8_t)wr->opcode);
		return error;
	}
	*bad = wr;
	return ENOMEM;
}

int live_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (!live_fails(FAIL_POST_RECV))
		return ibv_post_recv(qp, wr, bad);
	*bad = wr;
	return ENOMEM;
}

int live_wr_complete(struct ibv_qp_ex *qp)
{
	live_busy(live_self());
	note_posted(&qp->qp_base, POSTED_UNKNOWN);
	if (!live_fails(FAIL_POST_SEND))
		return ibv_wr_complete(qp);
	ibv_wr_abort(qp);
	return ENOMEM;
}

/*
 * Has the NIC given up a connection? It says so of the request that was not answered. A packet that
 * it cannot even send puts the QP into the error state at once (rdma_rxe does that if netfilter
 * drops the packet on its way out): requests are flushed then, and none has failed before. A
 * request that the store should not have made fails first, with an error of its own.
 */
static void note_status(struct live_host *host, const struct ibv_wc *wc)
{
	const enum ibv_wc_status status = wc->status;
	if (status == IBV_WC_SUCCESS)
		return;
	const struct live_posted *last = posted_place(host, wc->qp_num);
	const uint8_t posted = last->qp == wc->qp_num ? last->opcode : POSTED_UNKNOWN;
	unsigned long long none = 0;
	atomic_compare_exchange_strong(&host->bad, &none,
				       (unsigned long long)wc->vendor_err << 32 |
					       (unsigned)posted << 8 | status);
	if (status == IBV_WC_RETRY_EXC_ERR ||
	    (status == IBV_WC_WR_FLUSH_ERR && !atomic_load(&host->refused)))
		atomic_fetch_add(&host->links, 1);
	else if (status != IBV_WC_WR_FLUSH_ERR)
		atomic_fetch_add(&host->refused, 1);
}

int live_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct live_task *task = live_self();
	int found = ibv_poll_cq(cq, n, wc);
	for (int i = 0; i < found; i++)
		note_status(task->host, &wc[i]);
	if (found) {
		live_busy(task);
		return found;
	}
	assert(task->empty <= LIVE_POLLED);
	for (unsigned i = 0; i < task->empty; i++)
		if (task->polled[i] == cq)
			return 0;
	if (task->empty < LIVE_POLLED)
		task->polled[task->empty++] = cq;
	return 0;
}
