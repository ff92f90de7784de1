/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extended API for posting work requests: ibv_wr_start(), builders and
 * setters, ibv_wr_complete() or ibv_wr_abort() (ibv_wr_post(3) of rdma-core).
 *
 * A builder takes a slot of the send queue after what is posted, and wr_id and
 * wr_flags from the struct ibv_qp_ex as they are at that moment; the setter that
 * follows gives the request its data, copied at once if inline; IBV_SEND_INLINE among
 * wr_flags means nothing. Nothing is posted before ibv_wr_complete(), which posts all
 * of the batch or nothing: builders and setters return nothing, so the first error is
 * kept, what follows it is ignored, and ibv_wr_complete() returns it. In steps of the
 * task a batch is one post.
 *
 * From ibv_wr_start() on, other tasks that want to post wait, as a driver's lock
 * has them wait. A task that begins a second batch, or calls ibv_post_send(), in the
 * middle of its own would wait for itself; here this is EINVAL.
 *
 * A queue pair has the builders that were asked for when it was created; the others
 * are NULL, and calling one is a fault.
 *
 *   error    EINVAL  the queue pair's state; more list entries or inline bytes than it
 *                    was created for; inline data for what takes none; a second setter,
 *                    a setter after a request that takes no data or after none;
 *                    a datagram without an address, with two or with a
 *                    dead address handle; FLUSH of no placement type, of an
 *                    unknown one, of an unknown selectivity, of a range of 2^32 bytes;
 *                    a window that is not of type 2, or of another device
 *            ENOMEM  the send queue is full
 */
#include "core/rnic/objects/wr.h"
#include <assert.h>
#include <errno.h>
#include "core/rnic/objects/dma.h"
#include "core/rnic/objects/mw.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"
#include "core/rnic/transport/requester.h"
#include "core/verbs_compat.h"

/* The first error counts. */
static void latch(struct rnic_qp *qp, int error)
{
	if (!qp->batch.error)
		qp->batch.error = error;
}

static struct wqe *last(struct rnic_qp *qp)
{
	assert(qp->batch.open && qp->batch.built);
	assert(qp->sq.posted + qp->batch.built - qp->sq.freed <= qp->sq.max_wr);
	return queue_at(&qp->sq, qp->sq.posted + qp->batch.built - 1);
}

/* The request that was built last is complete: no setter will follow. */
static void close_last(struct rnic_qp *qp)
{
	struct wr_batch *batch = &qp->batch;
	if (batch->built && !batch->error)
		latch(qp, post_check(qp, last(qp)));
	batch->takes_data = batch->takes_inline = false;
}

static void discard(struct rnic_qp *qp)
{
	for (; qp->batch.built; qp->batch.built--)
		req_drop_copy(qp, last(qp));
}

void wr_lose(struct rnic_qp *qp)
{
	discard(qp);
	if (qp->batch.open)
		latch(qp, EINVAL);
}

/* --- the batch --- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	if (post_enter(qp)) {
		latch(qp, EINVAL);
		return;
	}
	assert(!qp->batch.open && !qp->batch.built); /* their copies would be lost */
	qp->batch = (struct wr_batch){.open = true, .owner = ground_caller(qp_ground(qp))};
}

static void close_batch(struct rnic_qp *qp)
{
	discard(qp);
	qp->batch = (struct wr_batch){0};
}

int rnic_wr_complete(struct ibv_qp_ex *ex)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	if (!qp->batch.open)
		return EINVAL;
	post_step(qp);
	close_last(qp);
	if (ground_fails(qp_ground(qp), FAIL_POST_SEND))
		latch(qp, ENOMEM);
	int error = qp->batch.error;
	if (!error) {
		for (; qp->batch.built; qp->batch.built--)
			post_commit(qp);
		post_doorbell(qp);
	}
	close_batch(qp);
	return error;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	close_batch((struct rnic_qp *)ex);
}

/* --- builders --- */

/* The next request of the batch; NULL: there is an error. `rkey` and `va` where the opcode has
 * them. */
static struct wqe *build(struct ibv_qp_ex *ex, unsigned operation, uint32_t rkey, uint64_t va)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	struct wr_batch *batch = &qp->batch;
	close_last(qp);
	if (!batch->open)
		return NULL; /* ibv_wr_complete() will say so */
	latch(qp, post_room(qp, batch->built));
	if (batch->error)
		return NULL;
	struct wqe *wqe = post_slot(qp, batch->built, operation, ex->wr_flags);
	assert(!wqe->copy && !wqe->addressed);
	wqe->wr_id = ex->wr_id;
	wqe->rkey = rkey;
	wqe->va = va;
	batch->built++;
	assert(last(qp) == wqe);
	batch->takes_data = true;
	batch->takes_inline = !wqe->nonposted;
	return wqe;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	build(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct wqe *wqe = build(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	if (wqe)
		wqe->imm = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	build(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	build(ex, IBV_WR_SEND, 0, 0);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct wqe *wqe = build(ex, IBV_WR_SEND_WITH_IMM, 0, 0);
	if (wqe)
		wqe->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	build(ex, IBV_WR_SEND_WITH_INV, invalidate_rkey, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	build(ex, IBV_WR_LOCAL_INV, invalidate_rkey, 0);
	((struct rnic_qp *)ex)->batch.takes_data = false;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	struct wqe *wqe = build(ex, IBV_WR_BIND_MW, rkey, info->addr);
	if (!wqe)
		return;
	latch(qp, mw->type == IBV_MW_TYPE_2 ? mw_fill(qp, wqe, mw, rkey, info) : EINVAL);
	qp->batch.takes_data = false;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct wqe *wqe = build(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	if (wqe) {
		wqe->compare = compare;
		wqe->swap_add = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct wqe *wqe = build(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);
	if (wqe)
		wqe->swap_add = add;
}

/* The 8 bytes of a request that takes just these are taken now, however few may be inline. */
static void take_word(struct rnic_qp *qp, struct wqe *wqe, const void *word)
{
	wqe->bytes = sizeof(uint64_t);
	ground_commit_pending(qp_ground(qp));
	post_copy(qp, post_inline(qp, wqe), word, sizeof(uint64_t));
	qp->batch.takes_data = false;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	struct wqe *wqe = build(ex, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	if (!wqe)
		return;
	take_word(qp, wqe, atomic_wr);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct wqe *wqe = build(ex, IBV_WR_FLUSH, rkey, remote_addr);
	if (!wqe)
		return;
	wqe->range_len = len;
	wqe->placement = type;
	wqe->selectivity = level;
	((struct rnic_qp *)ex)->batch.takes_data = false;
}

static struct wqe *build_commit(struct ibv_qp_ex *ex, unsigned operation, uint32_t rkey,
				uint64_t remote_addr, size_t len)
{
	struct wqe *wqe = build(ex, operation, rkey, remote_addr);
	if (!wqe)
		return NULL;
	wqe->range_len = len;
	((struct rnic_qp *)ex)->batch.takes_data = false;
	return wqe;
}

static void wr_commit(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len)
{
	build_commit(ex, OPERATION_COMMIT, rkey, remote_addr, len);
}

static void wr_commit_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
			  __be32 imm)
{
	struct wqe *wqe = build_commit(ex, OPERATION_COMMIT_WITH_IMM, rkey, remote_addr, len);
	if (wqe)
		wqe->imm = imm;
}

static void wr_commit_payload(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
			      const void *payload)
{
	struct wqe *wqe = build_commit(ex, OPERATION_COMMIT_WITH_PAYLOAD, rkey, remote_addr, len);
	if (wqe)
		take_word((struct rnic_qp *)ex, wqe, payload);
}

/* --- setters --- */

/* May the last request be given its data? Once only. */
static bool takes(struct rnic_qp *qp, bool is_inline)
{
	struct wr_batch *batch = &qp->batch;
	if (!batch->takes_data || (is_inline && !batch->takes_inline))
		latch(qp, EINVAL);
	batch->takes_data = false;
	return batch->open && !batch->error;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	if (!takes(qp, false))
		return;
	if (num_sge > qp->sq.max_sge) {
		latch(qp, EINVAL);
		return;
	}
	struct wqe *wqe = last(qp);
	wqe->sges = (uint32_t)num_sge;
	wqe->bytes = sge_bytes(sg_list, wqe->sges);
	for (uint32_t i = 0; i < wqe->sges; i++)
		wqe->sge[i] = sg_list[i];
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	size_t room = qp->max_inline;
	if (!takes(qp, true))
		return;
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > room) {
			latch(qp, EINVAL);
			return;
		}
		room -= buf_list[i].length;
	}
	struct wqe *wqe = last(qp);
	wqe->bytes = qp->max_inline - room;
	if (!wqe->bytes)
		return;
	ground_commit_pending(qp_ground(qp));
	uint8_t *to = post_inline(qp, wqe);
	for (size_t i = 0; i < num_buf; i++)
		to = post_copy(qp, to, buf_list[i].addr, buf_list[i].length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};
	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct rnic_qp *qp = (struct rnic_qp *)ex;
	struct wr_batch *batch = &qp->batch;
	if (!batch->built || batch->error || last(qp)->addressed)
		latch(qp, EINVAL);
	else
		latch(qp, post_address(qp, last(qp), ah, remote_qpn, remote_qkey));
}

/* --- at creation --- */

uint64_t wr_supported(enum ibv_qp_type type)
{
	uint64_t ops = 0;
	for (unsigned i = 0; i < OPERATIONS; i++)
		if (operations[i].name && operation_serves(&operations[i], qp_service(type)))
			ops |= operations[i].send_op;
	return ops;
}

void wr_enable(struct rnic_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->ex;
	qp->extended = true;
	ex->wr_start = wr_start;
	ex->wr_complete = rnic_wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->service == SERVICE_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
#define X(builder, operation, params, args)                    \
	if (send_ops & operations[IBV_WR_##operation].send_op) \
		ex->builder = builder;
	WR_BUILDERS(X)
#undef X
	if (send_ops & IBV_QP_EX_WITH_FLUSH)
		qp->ex_flush.wr_flush = wr_flush;
	if (send_ops & TM_QP_EX_WITH_COMMIT) {
		qp->ex_commit.wr_commit = wr_commit;
		qp->ex_commit.wr_commit_imm = wr_commit_imm;
		qp->ex_commit.wr_commit_payload = wr_commit_payload;
	}
}
