/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues that are polled by iterating (ibv_create_cq_ex(3)): ibv_start_poll() takes the
 * first entry, ibv_next_poll() the next, ibv_end_poll() ends the batch; ibv_wc_read_*() read the
 * entry that was taken last.
 *
 * From ibv_start_poll() on, other tasks that iterate over the same queue wait, as a driver's lock
 * has them wait, unless the queue was created for a single thread. A task that starts a batch in
 * the middle of its own would wait for itself; here this is EINVAL. ibv_poll_cq() works on such a
 * queue, too.
 *
 * A queue has the readers that were asked for by wc_flags, and those that each has; the others are
 * NULL. There is no VLAN, no flow steering and no tag matching, so fields about them cannot be
 * requested. The timestamp counts nanoseconds of the device's clock.
 */
#include <assert.h>
#include <errno.h>
#include "core/fail.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/transport/packet.h"

#define WC_FLAGS                                                       \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define CQ_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static struct cq_batch *batch_of(struct ibv_cq_ex *ex)
{
	return ((struct rnic_cq *)ex)->batch;
}

static int take_entry(struct rnic_cq *cq)
{
	const struct cqe *cqe = cq_take(cq, &cq->batch->named);
	if (!cqe)
		return ENOENT;
	assert(cqe->qp); /* an entry that was filled in */
	cq->batch->current = *cqe;
	cq->ex.wr_id = cqe->wc.wr_id;
	cq->ex.status = cqe->wc.status;
	return 0;
}

int cq_ex_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct rnic_cq *cq = (struct rnic_cq *)ex;
	const struct rnic_ground *ground = &to_hca(ex->context)->net->ground;
	struct cq_batch *batch = cq->batch;
	if (attr && attr->comp_mask)
		return EINVAL;
	while (batch->open && batch->owner != ground_caller(ground) && !cq->single_threaded) {
		ground_yield(ground);
	}
	if (batch->open)
		return EINVAL;
	if (!cq_step(cq))
		return ENOENT;
	batch->named = false;
	/* The step may have let another task come first. */
	if (batch->open || take_entry(cq))
		return ENOENT;
	assert(!batch->open); /* taking an entry lets no other task come first */
	batch->open = true;
	batch->owner = ground_caller(ground);
	return 0;
}

int cq_ex_next(struct ibv_cq_ex *ex)
{
	return take_entry((struct rnic_cq *)ex);
}

void cq_ex_end(struct ibv_cq_ex *ex)
{
	batch_of(ex)->open = false;
}

/* X(member of struct ibv_wc, its type, the flag that asks for it; 0: each queue has it) */
#define READERS(X)                                     \
	X(opcode, enum ibv_wc_opcode, 0)               \
	X(vendor_err, uint32_t, 0)                     \
	X(wc_flags, unsigned, 0)                       \
	X(byte_len, uint32_t, IBV_WC_EX_WITH_BYTE_LEN) \
	X(imm_data, __be32, IBV_WC_EX_WITH_IMM)        \
	X(qp_num, uint32_t, IBV_WC_EX_WITH_QP_NUM)     \
	X(src_qp, uint32_t, IBV_WC_EX_WITH_SRC_QP)     \
	X(slid, uint32_t, IBV_WC_EX_WITH_SLID)         \
	X(sl, uint8_t, IBV_WC_EX_WITH_SL)              \
	X(dlid_path_bits, uint8_t, IBV_WC_EX_WITH_DLID_PATH_BITS)

#define X(member, type, flag)                           \
	static type read_##member(struct ibv_cq_ex *ex) \
	{                                               \
		return batch_of(ex)->current.wc.member; \
	}
READERS(X)
#undef X

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return batch_of(ex)->current.at_ns;
}

static void set_readers(struct ibv_cq_ex *ex, uint64_t asked)
{
	ex->start_poll = cq_ex_start;
	ex->next_poll = cq_ex_next;
	ex->end_poll = cq_ex_end;
#define X(member, type, flag)           \
	if ((asked & (flag)) == (flag)) \
		ex->read_##member = read_##member;
	READERS(X)
#undef X
	if (asked & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (asked & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns =
			read_completion_ts; /* a simulation has one clock */
}

static bool is_parent(const struct rnic_pd *pd, const struct ibv_context *context)
{
	return pd && !pd->dead && pd->base && pd->ibv.context == context;
}

struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct rnic_pd *parent = (struct rnic_pd *)(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD
							    ? attr->parent_domain
							    : NULL);
	uint8_t class;
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->wc_flags & ~(uint64_t)WC_FLAGS || flags & ~(uint32_t)CQ_FLAGS)
		return errno_null(EOPNOTSUPP);
	if (attr->cqe > MAX_CQE || attr->comp_vector > INT32_MAX ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !is_parent(parent, context)))
		return errno_null(EINVAL);
	struct rnic_cq *cq = (struct rnic_cq *)rnic_create_cq(
		context, (int)attr->cqe, attr->cq_context, attr->channel, (int)attr->comp_vector);
	if (!cq)
		return NULL;
	assert(!cq->batch && !cq->parent);
	cq->parent = parent;
	if (parent)
		parent->users++;
	cq->batch = (struct cq_batch *)buffer_get(to_hca(context)->net, sizeof(*cq->batch), &class);
	*cq->batch = (struct cq_batch){.class = class};
	cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->ignores_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	set_readers(&cq->ex, attr->wc_flags);
	assert(!parent || !parent->base->base);
	return &cq->ex;
}
