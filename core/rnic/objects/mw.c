/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: a part of a region under a key of its own, with rights of its own, that a work
 * request gives and takes away (IBA vol. 1, 10.6.7).
 *
 * A window is a struct rnic_mr that refers to a region while it is bound. The responder finds
 * it by its rkey as it finds a region; it has no lkey. Binding and invalidating are work requests
 * that touch no packet. The requester runs one when all before it are acknowledged, so that a
 * failure completes in its turn, as IBV_WC_MW_BIND_ERR, and ends the queue pair.
 *
 *             usable by                    bound by            until
 *   type 1    any queue pair of its PD     ibv_bind_mw()       bound again, or bound to no bytes
 *   type 2    the one that bound it (2B)   IBV_WR_BIND_MW      LOCAL_INV of its queue pair,
 * SEND_WITH_INV of the peer, the end of the queue pair
 *
 * and both until they are deallocated. A region that a window is bound to can be neither
 * deregistered nor re-registered: EBUSY.
 *
 * An rkey is the window's index (24 bits) and 8 bits that the user of a type 2 window chooses anew
 * for each binding (ibv_inc_rkey()); ibv_bind_mw() does so itself.
 *
 * An access that was let in lands before a window is taken from under it. A peer that
 * invalidates a window gives up what it posts after that, and has to fence what it reads before.
 */
#include "core/rnic/objects/mw.h"
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include "core/fail.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/work_queue.h"
#include "core/verbs_compat.h"

/* What a window may be asked for. A right to write locally means nothing here, and does no harm. */
#define WINDOW_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |  \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_GLOBAL | \
	 IBV_ACCESS_FLUSH_PERSISTENT)
#define FLUSHES (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

static struct rnic_mr *to_window(struct ibv_mw *mw)
{
	return (struct rnic_mr *)((char *)mw - offsetof(struct rnic_mr, mw));
}

struct ibv_mw *rnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return errno_null(EINVAL);
	struct rnic_mr *window = ground_fails(&to_hca(pd->context)->net->ground, FAIL_REG_MR)
					 ? NULL
					 : mr_slot(to_hca(pd->context));
	if (!window)
		return errno_null(ENOMEM);
	assert(!window->live && !window->region); /* it has a key, and shows nothing yet */
	window->kind = type == IBV_MW_TYPE_1 ? MR_WINDOW_1 : MR_WINDOW_2;
	window->ibv.context = pd->context;
	window->ibv.pd = pd;
	window->ibv.lkey = window->ibv.rkey = 0;
	window->mw = (struct ibv_mw){.context = pd->context,
				     .pd = pd,
				     .rkey = mr_key(window, true),
				     .handle = window->ibv.handle,
				     .type = type};
	((struct rnic_pd *)pd)->users++;
	to_hca(pd->context)->objects++;
	assert(hca_adds_up(to_hca(pd->context)));
	return &window->mw;
}

static void unbind(struct rnic_hca *hca, struct rnic_mr *window)
{
	if (!window->region)
		return;
	ground_touch(&hca->net->ground, TOUCH_DRAM_WRITE, &window->region, sizeof(window->region));
	assert(window->region->windows && hca->windows);
	assert(window->live && window->region->live); /* a region with windows cannot go */
	window->region->windows--;
	hca->windows--;
	window->region = NULL;
	window->qpn = 0;
	window->live = false;
}

int rnic_dealloc_mw(struct ibv_mw *mw)
{
	struct rnic_mr *window = to_window(mw);
	struct rnic_hca *hca = to_hca(mw->context);
	struct rnic_pd *pd = (struct rnic_pd *)mw->pd;
	if (!window->used)
		return EINVAL;
	if (window->region)
		mr_settle(hca, window->region);
	unbind(hca, window);
	assert(!window->live && !window->region);
	window->used = false;
	assert(pd->users && hca->objects);
	pd->users--;
	hca->objects--;
	return 0;
}

void mw_drop_qp(struct rnic_qp *qp)
{
	struct rnic_hca *hca = qp->hca;
	for (uint32_t slot = 1; hca->windows && slot <= hca->mrs; slot++)
		if (hca->mr[slot]->qpn == qp->ibv.qp_num)
			unbind(hca, hca->mr[slot]);
}

/* --- binding --- */

/* May these bytes of the region be seen through a window with these rights? */
static bool may_show(const struct rnic_mr *region, uint64_t va, uint64_t len, int access)
{
	if (region->kind != MR_REGION || !(region->access & IBV_ACCESS_MW_BIND) ||
	    region->access & IBV_ACCESS_ZERO_BASED)
		return false;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return false;
	if (access & FLUSHES & ~region->access)
		return false;
	return va >= region->iova && len <= region->len && va - region->iova <= region->len - len;
}

static enum ibv_wc_status bind(struct rnic_qp *qp, const struct wqe *wqe)
{
	struct rnic_hca *hca = qp->hca;
	struct rnic_mr *window = hca->mr[wqe->bind.window], *region = NULL;
	bool is_2 = window->kind == MR_WINDOW_2;
	int access = wqe->bind.access;
	/* The lower bits are the user's; higher bits of the argument are ignored. */
	uint32_t rkey = window->index << 8 | (wqe->rkey & 0xff);
	if (!window->used || !same_pd(window->ibv.pd, qp->ibv.pd))
		return IBV_WC_MW_BIND_ERR;
	if (is_2 && (window->region || !wqe->bind.len))
		return IBV_WC_MW_BIND_ERR; /* only an invalidation takes it away */
	if (wqe->bind.len) {
		region = mr_of_lkey(hca, wqe->bind.lkey);
		if (!region || !same_pd(region->ibv.pd, window->ibv.pd) ||
		    !may_show(region, wqe->va, wqe->bind.len, access))
			return IBV_WC_MW_BIND_ERR;
	}
	if (window->region)
		mr_settle(hca, window->region);
	unbind(hca, window);
	assert(!window->region && !window->qpn);
	window->ibv.rkey = window->mw.rkey = rkey;
	if (!region)
		return IBV_WC_SUCCESS;
	assert(region->live && region != window);
	ground_touch(qp_ground(qp), TOUCH_DRAM_WRITE, &window->region, sizeof(window->region));
	window->host = mr_host(region, wqe->va);
	window->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : wqe->va;
	window->len = wqe->bind.len;
	window->access = access;
	window->in_pm = region->in_pm;
	window->pm_off = region->pm_off + (wqe->va - region->iova);
	window->qpn = is_2 ? qp->ibv.qp_num : 0;
	window->region = region;
	window->live = true;
	region->windows++;
	hca->windows++;
	return IBV_WC_SUCCESS;
}

bool mw_may_invalidate(const struct rnic_qp *qp, uint32_t rkey)
{
	struct rnic_mr *window = mr_of_window(qp->hca, rkey);
	return window && window->qpn == qp->ibv.qp_num && same_pd(window->ibv.pd, qp->ibv.pd);
}

void mw_invalidate(struct rnic_qp *qp, uint32_t rkey)
{
	struct rnic_mr *window = mr_of_window(qp->hca, rkey);
	assert(window && window->kind == MR_WINDOW_2);
	assert(window->qpn == qp->ibv.qp_num); /* mw_may_invalidate() has said so */
	unbind(qp->hca, window);
}

enum ibv_wc_status mw_execute(struct rnic_qp *qp, const struct wqe *wqe)
{
	if (wqe->opcode == IBV_WR_BIND_MW)
		return bind(qp, wqe);
	if (!mw_may_invalidate(qp, wqe->rkey))
		return IBV_WC_MW_BIND_ERR;
	mr_settle(qp->hca, mr_of_window(qp->hca, wqe->rkey)->region);
	mw_invalidate(qp, wqe->rkey);
	return IBV_WC_SUCCESS;
}

/* --- posting --- */

int mw_fill(struct rnic_qp *qp, struct wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	    const struct ibv_mw_bind_info *info)
{
	unsigned access = info->mw_access_flags;
	if (!mw || mw->context != qp->ibv.context || access & ~(unsigned)WINDOW_ACCESS)
		return EINVAL;
	if (!info->mr && (mw->type == IBV_MW_TYPE_2 || info->addr || info->length))
		return EINVAL;
	if (mw->type == IBV_MW_TYPE_1 && access & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	wqe->rkey = rkey;
	wqe->va = info->addr;
	wqe->bind.window = to_window(mw)->ibv.handle;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.len = info->length;
	wqe->bind.access = (int)access;
	return 0;
}

int rnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
	};
	struct ibv_send_wr *bad;
	if (mw->type != IBV_MW_TYPE_1 ||
	    bind->send_flags & ~(unsigned)(IBV_SEND_FENCE | IBV_SEND_SIGNALED))
		return EINVAL;
	int error = post_list(qp, &wr, &bad, IBV_MW_TYPE_1);
	if (!error)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}
