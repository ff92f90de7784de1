/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs and librdmacm's functions as store code calls them (core/stores/sim.syms). Each is the
 * RNIC's or the host's own, and the simulation is told which call returned an error, and from where
 * it was made: sim_call_failed(). Functions that the context's table has are replaced there.
 *
 * Calls by which a program only asks whether there is something yet, such as ibv_get_cq_event(),
 * are not among them: that there is nothing is no failure.
 *
 * Code that uses a destroyed object uses memory that was given back. The RNIC's own functions may
 * answer with an error; a library of the real world need not, so it ends the run as the fault of
 * the store that it is.
 */
#include "core/rnic/host/store_calls.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/rnic/host/host.h"
#include "core/cm/calls.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/objects/wr.h"
#include "core/rnic/sim_ground.h"
#include "core/rt/process/libc.h"
#include "core/rt/sim.h"

/*
 * The caller of the inline function of <infiniband/verbs.h> that calls ours through a table. Store
 * code is compiled with frame pointers, and nothing of it is inlined: a frame begins with the
 * address of the caller's frame, and the return address comes next. `frame`: that of our function.
 * A store of a test may have no such frames.
 */
#define CALLER_OF_INLINE caller_of_inline(__builtin_frame_address(0))
static uintptr_t caller_of_inline(void *const *frame)
{
	void *const *of_inline = frame[0];
	if ((uintptr_t)of_inline % sizeof(*of_inline) || !sim_on_stack(sim_current(), of_inline))
		return 0;
	return (uintptr_t)of_inline[1] - 1;
}

/* What a function returned: 0, an errno, or -1 with errno. */
static int told(const char *name, int rc, uintptr_t pc)
{
	if (rc)
		sim_call_returned(sim_current(), name, rc == -1 ? errno : rc < 0 ? -rc : rc, pc);
	return rc;
}

/* Likewise: an object, or NULL with errno. */
static void *made(const char *name, void *object, uintptr_t pc)
{
	if (!object)
		sim_call_returned(sim_current(), name, errno, pc);
	return object;
}

/* The kernel has destroyed all objects of a process that has ended, and calls that its code still
 * makes are ignored: a client may be within the server's own function that takes connections. */
static bool lives(struct ibv_context *context)
{
	const struct rnic_hca *hca = to_hca(context);
	return hca->net->hca[hca->host] == hca;
}

#define GONE_OF(type, is_gone, words)                                     \
	static const char *type##_gone(const struct ibv_##type *ibv)      \
	{                                                                 \
		const struct rnic_##type *own = (const void *)ibv;        \
		return (is_gone) && lives(ibv->context) ? (words) : NULL; \
	}
GONE_OF(pd, own->dead, "protection domain")
GONE_OF(mr, !own->used, "memory region")
GONE_OF(cq, own->dead, "completion queue")
GONE_OF(qp, own->dead, "queue pair")
GONE_OF(srq, own->dead, "shared receive queue")

static const char *not_gone(const void *object)
{
	return NULL;
}

/* clang-format off */
#define GONE(object) \
	_Generic((object), struct ibv_pd *: pd_gone, struct ibv_mr *: mr_gone, struct ibv_cq *: cq_gone, \
		 struct ibv_qp *: qp_gone, struct ibv_srq *: srq_gone, default: not_gone)(object)
/* clang-format on */

_Noreturn static void used(const char *name, const char *gone, uintptr_t pc)
{
	char text[96];
	snprintf(text, sizeof(text), "%s() with a %s that was destroyed", name, gone);
	sim_fault_at(pc, text);
}

#define CHECK_GONE(name, object, pc)             \
	do {                                     \
		const char *gone = GONE(object); \
		if (gone)                        \
			used(name, gone, pc);    \
	} while (0)

/* `object`: the argument that may be gone. */
#define RETURNS_ERROR(name, own, object, params, args) \
	int call_##name params;                        \
	int call_##name params                         \
	{                                              \
		CHECK_GONE(#name, object, PC);         \
		return told(#name, own args, PC);      \
	}
#define RETURNS_OBJECT(type, name, own, object, params, args) \
	struct type *call_##name params;                      \
	struct type *call_##name params                       \
	{                                                     \
		CHECK_GONE(#name, object, PC);                \
		return made(#name, own args, PC);             \
	}

RETURNS_OBJECT(ibv_pd, ibv_alloc_pd, rnic_alloc_pd, context, (struct ibv_context * context),
	       (context))
RETURNS_ERROR(ibv_dealloc_pd, rnic_dealloc_pd, pd, (struct ibv_pd * pd), (pd))
RETURNS_OBJECT(ibv_mr, ibv_reg_mr, rnic_reg_mr, pd,
	       (struct ibv_pd * pd, void *addr, size_t length, int access),
	       (pd, addr, length, access))
RETURNS_OBJECT(ibv_mr, ibv_reg_mr_iova2, rnic_reg_mr_iova2, pd,
	       (struct ibv_pd * pd, void *addr, size_t length, uint64_t iova, unsigned access),
	       (pd, addr, length, iova, access))
RETURNS_ERROR(ibv_dereg_mr, rnic_dereg_mr, mr, (struct ibv_mr * mr), (mr))
RETURNS_OBJECT(ibv_cq, ibv_create_cq, rnic_create_cq, context,
	       (struct ibv_context * context, int cqe, void *cq_context,
		struct ibv_comp_channel *channel, int comp_vector),
	       (context, cqe, cq_context, channel, comp_vector))
RETURNS_ERROR(ibv_destroy_cq, rnic_host_destroy_cq, cq, (struct ibv_cq * cq), (cq))
RETURNS_OBJECT(ibv_comp_channel, ibv_create_comp_channel, rnic_create_comp_channel, context,
	       (struct ibv_context * context), (context))
RETURNS_OBJECT(ibv_qp, ibv_create_qp, rnic_create_qp, pd,
	       (struct ibv_pd * pd, struct ibv_qp_init_attr *init), (pd, init))
RETURNS_ERROR(ibv_modify_qp, rnic_modify_qp, qp,
	      (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))
RETURNS_ERROR(ibv_query_qp, rnic_query_qp, qp,
	      (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask,
	       struct ibv_qp_init_attr *init),
	      (qp, attr, mask, init))
RETURNS_ERROR(ibv_destroy_qp, rnic_host_destroy_qp, qp, (struct ibv_qp * qp), (qp))
RETURNS_OBJECT(ibv_srq, ibv_create_srq, rnic_create_srq, pd,
	       (struct ibv_pd * pd, struct ibv_srq_init_attr *init), (pd, init))
RETURNS_ERROR(ibv_modify_srq, rnic_modify_srq, srq,
	      (struct ibv_srq * srq, struct ibv_srq_attr *attr, int mask), (srq, attr, mask))
RETURNS_ERROR(ibv_query_srq, rnic_query_srq, srq, (struct ibv_srq * srq, struct ibv_srq_attr *attr),
	      (srq, attr))
RETURNS_ERROR(ibv_destroy_srq, rnic_host_destroy_srq, srq, (struct ibv_srq * srq), (srq))
RETURNS_ERROR(ibv_query_device, rnic_query_device, context,
	      (struct ibv_context * context, struct ibv_device_attr *attr), (context, attr))
RETURNS_ERROR(ibv_query_gid, rnic_query_gid, context,
	      (struct ibv_context * context, uint8_t port, int index, union ibv_gid *gid),
	      (context, port, index, gid))
RETURNS_OBJECT(ibv_context, ibv_open_device, rnic_open_device, device, (struct ibv_device * device),
	       (device))

RETURNS_OBJECT(rdma_event_channel, rdma_create_event_channel, cm_create_event_channel, (void *)NULL,
	       (void), ())
RETURNS_ERROR(rdma_create_id, cm_create_id, channel,
	      (struct rdma_event_channel * channel, struct rdma_cm_id **id, void *context,
	       enum rdma_port_space ps),
	      (channel, id, context, ps))
RETURNS_ERROR(rdma_bind_addr, cm_bind_addr, id, (struct rdma_cm_id * id, struct sockaddr *addr),
	      (id, addr))
RETURNS_ERROR(rdma_resolve_addr, cm_resolve_addr, id,
	      (struct rdma_cm_id * id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms),
	      (id, src, dst, timeout_ms))
RETURNS_ERROR(rdma_resolve_route, cm_resolve_route, id, (struct rdma_cm_id * id, int timeout_ms),
	      (id, timeout_ms))
RETURNS_ERROR(rdma_listen, cm_listen, id, (struct rdma_cm_id * id, int backlog), (id, backlog))
RETURNS_ERROR(rdma_connect, cm_connect, id, (struct rdma_cm_id * id, struct rdma_conn_param *param),
	      (id, param))
RETURNS_ERROR(rdma_establish, cm_establish, id, (struct rdma_cm_id * id), (id))
RETURNS_ERROR(rdma_accept, cm_accept, id, (struct rdma_cm_id * id, struct rdma_conn_param *param),
	      (id, param))
RETURNS_ERROR(rdma_disconnect, cm_disconnect, id, (struct rdma_cm_id * id), (id))
RETURNS_ERROR(rdma_create_qp, cm_create_qp, id,
	      (struct rdma_cm_id * id, struct ibv_pd *pd, struct ibv_qp_init_attr *init),
	      (id, pd, init))
RETURNS_ERROR(rdma_create_srq, cm_create_srq, id,
	      (struct rdma_cm_id * id, struct ibv_pd *pd, struct ibv_srq_init_attr *init),
	      (id, pd, init))
RETURNS_ERROR(rdma_create_ep, cm_create_ep, id,
	      (struct rdma_cm_id * *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	       struct ibv_qp_init_attr *init),
	      (id, res, pd, init))

/* --- through tables --- */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	CHECK_GONE("ibv_post_send", qp, CALLER_OF_INLINE);
	int error = rnic_post_send(qp, wr, bad_wr);
	return error ? told("ibv_post_send", error, CALLER_OF_INLINE) : 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	CHECK_GONE("ibv_post_recv", qp, CALLER_OF_INLINE);
	int error = rnic_post_recv(qp, wr, bad_wr);
	return error ? told("ibv_post_recv", error, CALLER_OF_INLINE) : 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	CHECK_GONE("ibv_post_srq_recv", srq, CALLER_OF_INLINE);
	int error = rnic_post_srq_recv(srq, wr, bad_wr);
	return error ? told("ibv_post_srq_recv", error, CALLER_OF_INLINE) : 0;
}

/* A request that has failed counts as a failed call. Those flushed after it do not. */
static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	CHECK_GONE("ibv_poll_cq", cq, CALLER_OF_INLINE);
	int n = rnic_poll_cq(cq, num_entries, wc);
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS && wc[i].status != IBV_WC_WR_FLUSH_ERR)
			sim_call_failed(sim_current(), "a completion of ibv_poll_cq",
					rnic_wc_status_str(wc[i].status), CALLER_OF_INLINE);
	return n;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	CHECK_GONE("ibv_wr_complete", &qp->qp_base, CALLER_OF_INLINE);
	int error = rnic_wr_complete(qp);
	return error ? told("ibv_wr_complete", error, CALLER_OF_INLINE) : 0;
}

static void watch_qp(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = qp ? rnic_qp_to_qp_ex(qp) : NULL;
	if (ex)
		ex->wr_complete = wr_complete;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp = made("ibv_create_qp_ex", rnic_create_qp_ex(context, init),
				 CALLER_OF_INLINE);
	watch_qp(qp);
	return qp;
}

int call_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init);
int call_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	int rc = told("rdma_create_qp_ex", cm_create_qp_ex(id, init), PC);
	if (!rc)
		watch_qp(id->qp);
	return rc;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t len)
{
	return told("ibv_query_port", rnic_query_port_ex(context, port, attr, len),
		    CALLER_OF_INLINE);
}

void calls_watch(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);
	context->ops.poll_cq = poll_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	hca->verbs.create_qp_ex = create_qp_ex;
	hca->verbs.query_port = query_port;
}
