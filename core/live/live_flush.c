/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See live_flush.h. The library of rdma_rxe puts requests into a queue that it shares with the
 * kernel; the layout of the queue and of a request is the kernel's interface
 * (<rdma/rdma_user_rxe.h>). Where the library keeps the queue's address is its own business. So,
 * for a FLUSH:
 *
 *   1. a READ is built by the library's own ibv_wr_rdma_read(), with a wr_id that nothing else has;
 *   2. the request with that wr_id is looked for and made a FLUSH.
 *
 * The first time, each pointer in the library's queue pair that points to the beginning of a
 * mapping of the device
 * (/proc/self/maps) is tried; the place of the one that leads to the READ is the same in all its
 * queue pairs, and remembered. Where no such request is found (another library), the batch is made
 * to fail by inline data longer than any queue takes: a READ must not pass for a FLUSH.
 */
#include "core/live/live_flush.h"
#include <errno.h>
#include <malloc.h>
#include <rdma/rdma_user_rxe.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MARK	 0x74696465666c7368u
#define LOOK_FOR 2048 /* bytes of the library's queue pair, at most */
#define MAPPINGS 256

/* In place of a READ's address and key. */
struct rxe_flush {
	uint64_t remote_addr;
	uint32_t length;
	uint32_t rkey;
	uint8_t type;
	uint8_t level;
};

/* Byte offset of the queue's address in the library's queue pair, 0: not known. */
static _Atomic size_t queue_at;

static bool is_rxe(const struct ibv_context *context)
{
	return !strncmp(ibv_get_device_name(context->device), "rxe", 3);
}

struct ibv_qp *live_flush_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = ibv_create_qp_ex(context, attr);
	struct ibv_qp_init_attr_ex less = *attr;
	if (qp || errno != EOPNOTSUPP || !(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    !(attr->send_ops_flags & IBV_QP_EX_WITH_FLUSH) || !is_rxe(context))
		return qp;
	less.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
	less.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
	qp = ibv_create_qp_ex(context, &less);
	if (qp)
		attr->cap = less.cap;
	return qp;
}

static struct rxe_send_wqe *find_marked(struct rxe_queue_buf *queue)
{
	for (uint32_t i = 0; i <= queue->index_mask; i++) {
		/* The request that is being built comes at most a few entries after what was
		 * posted. */
		uint32_t slot = (queue->producer_index + i) & queue->index_mask;
		struct rxe_send_wqe *wqe = (struct rxe_send_wqe *)(queue->data +
								   ((size_t)slot
								    << queue->log2_elem_size));
		if (wqe->wr.wr_id == MARK && wqe->wr.opcode == IBV_WR_RDMA_READ)
			return wqe;
	}
	return NULL;
}

/* The device's mappings in this process that hold a queue of send requests. */
static unsigned device_mappings(struct rxe_queue_buf **out)
{
	unsigned n = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && n < MAPPINGS && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		if (!strstr(line, "/infiniband/uverbs") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		struct rxe_queue_buf *queue = (struct rxe_queue_buf *)from;
		if (to - from < sizeof(*queue) || queue->log2_elem_size > 20 ||
		    1ul << queue->log2_elem_size < sizeof(struct rxe_send_wqe) ||
		    sizeof(*queue) + (((uint64_t)queue->index_mask + 1) << queue->log2_elem_size) >
			    to - from)
			continue;
		out[n++] = queue;
	}
	if (maps)
		fclose(maps);
	return n;
}

static struct rxe_send_wqe *look_for(struct ibv_qp_ex *qp)
{
	struct rxe_queue_buf *queue[MAPPINGS];
	unsigned n = device_mappings(queue);
	size_t end = malloc_usable_size(qp);
	for (size_t at = sizeof(struct ibv_qp); at + sizeof(void *) <= end && at < LOOK_FOR;
	     at += sizeof(void *)) {
		void *pointer;
		memcpy(&pointer, (char *)qp + at, sizeof(pointer));
		for (unsigned i = 0; i < n; i++) {
			struct rxe_send_wqe *wqe = pointer == queue[i] ? find_marked(queue[i])
								       : NULL;
			if (wqe) {
				queue_at = at;
				return wqe;
			}
		}
	}
	return NULL;
}

static struct rxe_send_wqe *marked(struct ibv_qp_ex *qp)
{
	struct rxe_queue_buf *queue;
	size_t at = queue_at;
	if (!at)
		return look_for(qp);
	memcpy(&queue, (char *)qp + at, sizeof(queue));
	return find_marked(queue);
}

/* Does the library have it, for this queue pair? */
static bool by_library(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		       uint8_t type, uint8_t level)
{
#ifndef TM_VERBS_FLUSH
	/* Only rdma_rxe's queue pairs are created without it here. */
	if (is_rxe(qp->qp_base.context))
		return false;
#endif
	if (!((struct ibv_qp_ex_with_flush *)qp)->wr_flush)
		return false;
	ibv_wr_flush(qp, rkey, remote_addr, len, type, level);
	return true;
}

void live_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
		   uint8_t type, uint8_t level)
{
	uint64_t wr_id = qp->wr_id;
	if (by_library(qp, rkey, remote_addr, len, type, level))
		return;
	qp->wr_id = MARK;
	ibv_wr_rdma_read(qp, rkey, remote_addr);
	qp->wr_id = wr_id;
	struct rxe_send_wqe *wqe = len <= UINT32_MAX ? marked(qp) : NULL;
	if (!wqe) {
		ibv_wr_set_inline_data(qp, qp, SIZE_MAX);
		return;
	}
	struct rxe_flush flush = {remote_addr, (uint32_t)len, rkey, type, level};
	wqe->wr.wr_id = wr_id;
	wqe->wr.opcode = IBV_WR_FLUSH;
	memcpy(&wqe->wr.wr, &flush, sizeof(flush));
	wqe->iova = remote_addr;
	wqe->dma.length = wqe->dma.resid = (uint32_t)len;
	wqe->dma.num_sge = 0;
}
