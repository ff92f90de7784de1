/* SPDX-License-Identifier: BSD-3-Clause */
/* See nic_side.h. */
#include "tests/core/provider/nic_side.h"

#include <poll.h>
#include <time.h>

#define LIMIT_S 120

struct side a, b;

void open_side(struct side *s, size_t bytes, int access)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ck_assert_ptr_nonnull(list);
	s->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	ck_assert_ptr_nonnull(s->context);
	s->pd = ibv_alloc_pd(s->context);
	s->scq = s->rcq = ibv_create_cq(s->context, 64, NULL, NULL, 0);
	s->buf = aligned_alloc(4096, bytes);
	memset(s->buf, 0, bytes);
	s->mr = ibv_reg_mr(s->pd, s->buf, bytes, access);
	ck_assert(s->pd && s->scq && s->mr);
	ck_assert_int_eq(ibv_query_gid(s->context, 1, 0, &s->gid), 0);
	s->attr = (struct ibv_qp_attr){.port_num = 1,
				       .qkey = QKEY,
				       .qp_access_flags = (unsigned)access,
				       .path_mtu = IBV_MTU_1024,
				       .rq_psn = 100,
				       .sq_psn = 100,
				       .max_dest_rd_atomic = 4,
				       .max_rd_atomic = 4,
				       .min_rnr_timer = 1,
				       .timeout = 14,
				       .retry_cnt = 7,
				       .rnr_retry = 7};
}

struct ibv_qp_init_attr init_of(const struct side *s, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){.send_cq = s->scq,
					 .recv_cq = s->rcq,
					 .srq = s->srq,
					 .cap = {WR, WR, SGE, SGE, INLINE},
					 .qp_type = type};
}

void make_qp(struct side *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = init_of(s, type);

	s->qp = ibv_create_qp(s->pd, &init);
	ck_assert_ptr_nonnull(s->qp);
}

const struct transition transitions[TRANSITIONS] = {
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_RTR, 0},
	{IBV_QPT_UD, IBV_QPS_RTS, IBV_QP_SQ_PSN},
	{IBV_QPT_UC, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_UC, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN},
	{IBV_QPT_UC, IBV_QPS_RTS, IBV_QP_SQ_PSN},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_RC, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_RC, IBV_QPS_RTS,
	 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_TIMEOUT},
};

struct ibv_ah_attr path_to(const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}};
}

struct ibv_qp_attr attr_to(const struct side *s, const struct side *peer, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = s->attr;

	attr.qp_state = to;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.ah_attr = path_to(&peer->gid);
	return attr;
}

void go(struct side *s, const struct side *peer, enum ibv_qp_state until)
{

	for (unsigned i = 0; i < TRANSITIONS; i++) {
		struct ibv_qp_attr attr = attr_to(s, peer, transitions[i].to);

		if (transitions[i].type == s->qp->qp_type && transitions[i].to > s->qp->state &&
		    transitions[i].to <= until)
			ck_assert_int_eq(
				ibv_modify_qp(s->qp, &attr, transitions[i].mask | IBV_QP_STATE), 0);
	}
	ck_assert_int_eq(s->qp->state, until);
}

void connect_both(enum ibv_qp_type type)
{
	make_qp(&a, type);
	make_qp(&b, type);
	go(&a, &b, IBV_QPS_RTS);
	go(&b, &a, IBV_QPS_RTS);
}

enum ibv_qp_state state_of(const struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void to_state(struct side *s, enum ibv_qp_state to, int error)
{
	struct ibv_qp_attr attr = {.qp_state = to};

	ck_assert_int_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), error);
}

struct ibv_send_wr wr_of(const struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
			 uint32_t len, uint64_t id)
{
	const struct side *peer = s == &a ? &b : &a;
	struct ibv_send_wr wr = {.wr_id = id,
				 .sg_list = sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED};

	*sge = (struct ibv_sge){(uintptr_t)s->buf, len, s->mr->lkey};
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->buf;
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->buf;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	return wr;
}

void post_wr(struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	ck_assert_int_eq(ibv_post_send(s->qp, wr, &bad), 0);
}

void post_op(struct side *s, enum ibv_wr_opcode opcode, uint32_t len, uint64_t id)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_of(s, opcode, &sge, len, id);

	post_wr(s, &wr);
}

int try_recv(struct side *s, uint32_t len, uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)s->buf, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad);
}

void give(struct side *s, uint32_t len, uint64_t id)
{
	ck_assert_int_eq(try_recv(s, len, id), 0);
}

struct ibv_wc wait_for(struct ibv_cq *cq)
{
	time_t start = time(NULL);
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (time(NULL) - start >= LIMIT_S)
			ck_abort_msg("no completion");
	ck_assert_int_eq(n, 1);
	return wc;
}

void expect(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_for(cq);

	ck_assert_msg(wc.status == status && wc.wr_id == id, "%llu: %s, expected %llu: %s",
		      (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		      (unsigned long long)id, ibv_wc_status_str(status));
}

void nothing_in(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

struct ibv_async_event next_event(struct side *s)
{
	struct pollfd fd = {.fd = s->context->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	ck_assert_msg(poll(&fd, 1, LIMIT_S * 1000) == 1, "no event");
	ck_assert_int_eq(ibv_get_async_event(s->context, &event), 0);
	return event;
}

void expect_event(struct side *s, enum ibv_event_type type, const void *element)
{
	struct ibv_async_event event;

	do {
		event = next_event(s);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	ck_assert_msg(event.event_type == type, "%s, expected %s",
		      ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ck_assert_ptr_eq(event.element.qp, element);
}
