/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of rpc.h, from nothing to ready to send. See rpc_qp.h. */
#include "core/stores/rpc_qp.h"

#include <errno.h>
#include <string.h>

#define PORT	   1
#define RPC_QKEY   0x7464 /* of all datagrams' queue pairs */
#define PSN_MASK   0xffffffu
#define READ_DEPTH 4 /* outstanding RDMA READs and atomics per connection */
#define ACK_TIMEOUT \
	16	      /* 4.096 us << 16 = 0.27 s (IBA 9.7.6.1.3): a dead peer is found out in 2 s */
#define RETRIES	    6 /* 7 means for ever to rdma_rxe */
#define RNR_RETRIES 7 /* for ever */

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
			     unsigned depth, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex init;

	memset(&init, 0, sizeof(init));
	init.send_cq = cq;
	init.recv_cq = cq;
	init.qp_type = type;
	init.cap.max_send_wr = depth;
	init.cap.max_recv_wr = depth;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	init.pd = pd;
	if (send_ops)
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = send_ops;
	return ibv_create_qp_ex(pd->context, &init);
}

struct ibv_qp *rpc_qp_create(struct ibv_pd *pd, struct ibv_cq *cq, uint64_t send_ops)
{
	return create(pd, cq, IBV_QPT_RC, SQ_DEPTH, send_ops);
}

struct ibv_qp *rpc_qp_create_unreliable(struct ibv_pd *pd, struct ibv_cq *cq, bool datagrams,
					unsigned depth)
{
	return create(pd, cq, datagrams ? IBV_QPT_UD : IBV_QPT_UC, depth, 0);
}

int rpc_error(int rc)
{
	if (rc == 0)
		return 0;
	return rc > 0 ? -rc : -(errno ? errno : EIO);
}

int rpc_qp_init(struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = PORT;
	attr.qp_access_flags = access;
	attr.qkey = RPC_QKEY;
	return rpc_error(ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

/*
 * The port's address that reaches others by IPv4, and its index; index 0 where there is
 * none. rdma_rxe has a link-local IPv6 address at index 0, where no host answers.
 */
static int find_gid(struct ibv_context *verbs, const struct ibv_port_attr *port, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	for (int i = 0; i < port->gid_tbl_len && i <= UINT8_MAX; i++) {
		if (ibv_query_gid(verbs, PORT, i, gid))
			return -EIO;
		if (!memcmp(gid->raw, mapped, sizeof(mapped)))
			return i;
	}
	return ibv_query_gid(verbs, PORT, 0, gid) ? -EIO : 0;
}

int rpc_hello(struct rpc_greeting *hello, struct ibv_qp *qp, uint32_t client, enum rpc_kind kind)
{
	struct ibv_port_attr port;
	union ibv_gid gid;

	memset(hello, 0, sizeof(*hello));
	if (ibv_query_port(qp->context, PORT, &port))
		return -EIO;
	int index = find_gid(qp->context, &port, &gid);
	if (index < 0)
		return index;
	memcpy(hello->gid, gid.raw, sizeof(hello->gid));
	hello->gid_index = (uint8_t)index;
	hello->mtu = (uint8_t)port.active_mtu;
	hello->kind = (uint8_t)kind;
	hello->client = client;
	hello->qpn = qp->qp_num;
	hello->psn = (qp->qp_num * 4096 + client) & PSN_MASK;
	return 0;
}

static struct ibv_ah_attr address_of(const struct rpc_greeting *own,
				     const struct rpc_greeting *peer)
{
	struct ibv_ah_attr ah;

	memset(&ah, 0, sizeof(ah));
	ah.is_global = 1;
	memcpy(ah.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	ah.grh.sgid_index = own->gid_index;
	ah.grh.hop_limit = 64;
	ah.port_num = PORT;
	return ah;
}

/* What the state asks for of a queue pair of this type, besides the state. */
static int attributes(enum ibv_qp_state state, enum ibv_qp_type type)
{
	bool datagrams = type == IBV_QPT_UD, reliable = type == IBV_QPT_RC;

	if (state == IBV_QPS_RTR)
		return (datagrams ? 0
				  : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
		       (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	return IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						   IBV_QP_MAX_QP_RD_ATOMIC
					 : 0);
}

int rpc_qp_rtr(struct ibv_qp *qp, const struct rpc_greeting *own, const struct rpc_greeting *peer,
	       uint8_t rnr_timer)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = (enum ibv_mtu)(own->mtu < peer->mtu ? own->mtu : peer->mtu);
	attr.dest_qp_num = peer->qpn;
	attr.rq_psn = peer->psn;
	attr.max_dest_rd_atomic = READ_DEPTH;
	attr.min_rnr_timer = rnr_timer;
	attr.ah_attr = address_of(own, peer);
	return rpc_error(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | attributes(IBV_QPS_RTR, qp->qp_type)));
}

int rpc_qp_rts(struct ibv_qp *qp, uint32_t psn)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = ACK_TIMEOUT;
	attr.retry_cnt = RETRIES;
	attr.rnr_retry = RNR_RETRIES;
	attr.max_rd_atomic = READ_DEPTH;
	return rpc_error(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | attributes(IBV_QPS_RTS, qp->qp_type)));
}

struct ibv_ah *rpc_address(struct ibv_pd *pd, const struct rpc_greeting *own,
			   const struct rpc_greeting *peer)
{
	struct ibv_ah_attr attr = address_of(own, peer);

	return ibv_create_ah(pd, &attr);
}

int rpc_qp_recv(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)len, lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return rpc_error(ibv_post_recv(qp, &wr, &bad));
}

/* Post a signaled request of one piece. */
static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, void *buf, size_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)buf, (uint32_t)len, lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	return rpc_error(ibv_post_send(qp, wr, &bad));
}

int rpc_qp_send(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND};

	return post(qp, &wr, buf, len, lkey);
}

int rpc_qp_send_to(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		   struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND};

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = RPC_QKEY;
	return post(qp, &wr, buf, len, lkey);
}

static int post_write(struct ibv_qp *qp, struct ibv_send_wr *wr, void *buf, size_t len,
		      uint32_t lkey, uint64_t remote, uint32_t rkey)
{
	wr->wr.rdma.remote_addr = remote;
	wr->wr.rdma.rkey = rkey;
	return post(qp, wr, buf, len, lkey);
}

int rpc_qp_write(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		 uint64_t remote, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE};

	return post_write(qp, &wr, buf, len, lkey, remote, rkey);
}

int rpc_qp_write_imm(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		     uint64_t remote, uint32_t rkey, uint32_t imm)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};

	wr.imm_data = htobe32(imm);
	return post_write(qp, &wr, buf, len, lkey, remote, rkey);
}
