/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_PARAMS_H
#define TM_CM_PARAMS_H
/*
 * What the two ends of a connection agree on: what a program may ask for, what comes of that and of
 * the peer's wishes, and the attributes of the queue pair in the end; the states of an identifier.
 *
 * Functions that check return 0 or -errno.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/verbs_compat.h"

/* Management datagrams (IBA vol. 1, 13.4): so long, and with this key. */
#define MAD_BYTES 256
#define MAD_QKEY  0x80010000u

/* Bytes of private data that the program may add to a message, after rdma_cm's own. */
#define CM_REQ_PRIVATE 56
#define CM_REP_PRIVATE 196
#define CM_REJ_PRIVATE 148
#define CM_MAX_PRIVATE 196

#define CM_MAX_BACKLOG	1024
#define CM_MOST_RETRIES 7
#define CM_HOP_LIMIT	64
#define CM_LIFE_TIME	16 /* packet life time, as the kernel has it for RoCE: 4.096 us * 2^16 */
#define CM_ACK_TIMEOUT	17 /* 0.5 s */
#define CM_RNR_TIMER	0  /* 655 ms, as in the kernel */

/* Ephemeral ports. */
#define CM_PORT_FIRST 32768
#define CM_PORT_COUNT 28232

/* The reason of a REJ, which is the status of the program's event (IBA vol. 1, 12.6.7.2). */
enum {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_NUMBER = 6,
	CM_REJ_NO_SERVICE = 8,
	CM_REJ_TRANSPORT = 9,
	CM_REJ_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_ECE = 35
};

/* Of an identifier. */
enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_LISTEN,
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT,
	CM_OVER
};

/* What one end says of itself in a REQ or REP. */
struct cm_params {
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count,
		srq;
	uint32_t qpn;
	uint32_t psn; /* the first PSN that the receiver of the message is to send */
};

/* rdma_set_option()'s. */
struct cm_options {
	uint8_t tos, ack_timeout; /* ack_timeout 0: the default */
	bool reuse, v6_only;
};

/* What the two ends of a connection know of each other. */
struct cm_conn {
	struct cm_options options;
	bool active; /* this end has sent the request */
	uint8_t mtu; /* enum ibv_mtu, of the path */
	uint8_t peer_ack_timeout;
	struct cm_params local, remote;
};

/* The READs and atomics that the device can have under way, as responder and as initiator. */
struct cm_limits {
	int responder, initiator;
};

/* --- what the program asks for --- */

/* Is it possible on this device? `most`: bytes of private data. */
static inline int cm_check_param(const struct rdma_conn_param *param, size_t most,
				 struct cm_limits limits)
{
	if (!param)
		return 0;
	if (param->private_data_len > most || (param->private_data_len && !param->private_data))
		return -EINVAL;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > limits.responder)
		return -EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > limits.initiator)
		return -EINVAL;
	return 0;
}

static inline void cm_limit(struct cm_params *params, struct cm_limits limits)
{
	if (params->responder_resources > limits.responder)
		params->responder_resources = (uint8_t)limits.responder;
	if (params->initiator_depth > limits.initiator)
		params->initiator_depth = (uint8_t)limits.initiator;
}

static inline uint8_t cm_retries(uint8_t asked)
{
	return asked < CM_MOST_RETRIES ? asked : CM_MOST_RETRIES;
}

/* The queue pair is the identifier's, or else one that the program has described. */
static inline void cm_name_qp(struct cm_params *local, const struct rdma_cm_id *id,
			      const struct rdma_conn_param *param)
{
	const struct ibv_qp *qp = id->qp;

	local->qpn = qp ? qp->qp_num : param ? param->qp_num & 0xffffff : 0;
	local->srq = qp ? qp->srq || id->srq : param ? !!param->srq : 0;
}

/* rdma_connect(). */
static inline void cm_connect_params(struct cm_params *local, const struct rdma_cm_id *id,
				     const struct rdma_conn_param *param, struct cm_limits limits)
{
	local->responder_resources = param ? param->responder_resources : RDMA_MAX_RESP_RES;
	local->initiator_depth = param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH;
	local->flow_control = param ? param->flow_control : 1;
	local->retry_count = param ? cm_retries(param->retry_count) : CM_MOST_RETRIES;
	local->rnr_retry_count = param ? cm_retries(param->rnr_retry_count) : CM_MOST_RETRIES;
	cm_limit(local, limits);
	cm_name_qp(local, id, param);
}

/* rdma_accept(): the peer's wishes are known, and the program may choose less. */
static inline void cm_accept_params(struct cm_params *local, const struct rdma_cm_id *id,
				    const struct rdma_conn_param *param)
{
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		local->responder_resources = param->responder_resources;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		local->initiator_depth = param->initiator_depth;
	local->flow_control = param ? param->flow_control : 1;
	local->rnr_retry_count = param ? cm_retries(param->rnr_retry_count) : CM_MOST_RETRIES;
	cm_name_qp(local, id, param);
}

static inline int cm_backlog(int asked)
{
	return asked > 0 && asked < CM_MAX_BACKLOG ? asked : CM_MAX_BACKLOG;
}

/* An option of level RDMA_OPTION_ID. */
static inline int cm_option(struct cm_options *options, enum cm_state state, int name,
			    const void *value, size_t len)
{
	int flag = 0;
	uint8_t byte = 0;

	if (len == sizeof(flag))
		memcpy(&flag, value, len);
	else if (len == sizeof(byte))
		memcpy(&byte, value, len);
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != sizeof(byte))
			return -EINVAL;
		options->tos = byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(flag) || state != CM_IDLE)
			return -EINVAL;
		*(name == RDMA_OPTION_ID_REUSEADDR ? &options->reuse : &options->v6_only) = flag;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(byte) || byte > 31)
			return -EINVAL;
		options->ack_timeout = byte;
		return 0;
	default:
		return -ENOSYS;
	}
}

/* --- what the peer says --- */

/* What the peer offers is what we may use, and the other way round. The passive side may choose
 * less then. */
static inline void cm_hear(struct cm_conn *conn, const struct cm_params *peer,
			   struct cm_limits limits)
{
	conn->remote = *peer;
	conn->local.responder_resources = peer->initiator_depth;
	conn->local.initiator_depth = peer->responder_resources;
	cm_limit(&conn->local, limits);
}

/* The same for the program, in an event. */
static inline void cm_show_params(struct rdma_conn_param *shown, const struct cm_params *peer,
				  const uint8_t *private_data, uint8_t bytes)
{
	*shown = (struct rdma_conn_param){
		.private_data = private_data,
		.private_data_len = bytes,
		.responder_resources = peer->initiator_depth,
		.initiator_depth = peer->responder_resources,
		.flow_control = peer->flow_control,
		.retry_count = peer->retry_count,
		.rnr_retry_count = peer->rnr_retry_count,
		.srq = peer->srq,
		.qp_num = peer->qpn,
	};
}

/* --- the path --- */

/* Tell the program of the route to ibaddr.dgid; there is only one. */
static inline void cm_show_route(struct rdma_cm_id *id, struct ibv_sa_path_rec *path,
				 const struct cm_options *options, uint8_t mtu)
{
	const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;

	*path = (struct ibv_sa_path_rec){
		.dgid = ib->dgid,
		.sgid = ib->sgid,
		.hop_limit = CM_HOP_LIMIT,
		.traffic_class = options->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = ib->pkey,
		.mtu_selector = 2, /* exactly */
		.mtu = mtu,
		.rate_selector = 2,
		.rate = IBV_RATE_10_GBPS,
		.packet_life_time_selector = 2,
		.packet_life_time = options->ack_timeout ? options->ack_timeout - 1 : CM_LIFE_TIME,
	};
	id->route.path_rec = path;
	id->route.num_paths = 1;
}

/* The exponent for ibv_qp_attr.timeout: the program's value; without one, the passive side takes
 * the peer's. */
static inline uint8_t cm_ack_timeout(const struct cm_conn *conn)
{
	if (conn->options.ack_timeout)
		return conn->options.ack_timeout;
	return !conn->active && conn->peer_ack_timeout ? conn->peer_ack_timeout : CM_ACK_TIMEOUT;
}

/* --- queue pairs --- */

/* Fill in what the identifier has and the program leaves out. */
static inline int cm_settle_init(const struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init)
{
	if (id->qp || !id->verbs || init->qp_type != id->qp_type)
		return -EINVAL;
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->pd) {
		init->comp_mask |= IBV_QP_INIT_ATTR_PD;
		init->pd = id->pd;
	}
	if (init->pd->context != id->verbs)
		return -EINVAL;
	if (!init->srq)
		init->srq = id->srq;
	/* On other devices inline data may use the room of the gather list, and some programs
	 * rely on it. */
	if (init->cap.max_inline_data < init->cap.max_send_sge * sizeof(struct ibv_sge))
		init->cap.max_inline_data = (uint32_t)(init->cap.max_send_sge *
						       sizeof(struct ibv_sge));
	return 0;
}

static inline bool cm_knows_peer(enum cm_state state)
{
	return state == CM_REQ_RCVD || state == CM_REP_SENT || state == CM_REP_RCVD ||
	       state == CM_ESTABLISHED;
}

static inline unsigned cm_access(const struct cm_conn *conn, bool reliable)
{
	unsigned access = IBV_ACCESS_REMOTE_WRITE;

	if (reliable && conn->local.responder_resources)
		access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			  IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	return access;
}

static inline void cm_receive_attr(const struct rdma_cm_id *id, const struct cm_conn *conn,
				   bool reliable, struct ibv_qp_attr *attr, int *mask)
{
	attr->ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = id->route.addr.addr.ibaddr.dgid,
			.hop_limit = CM_HOP_LIMIT,
			.traffic_class = conn->options.tos},
	};
	attr->path_mtu = conn->mtu;
	attr->dest_qp_num = conn->remote.qpn;
	attr->rq_psn = conn->local.psn;
	attr->qp_access_flags = cm_access(conn, reliable);
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_ACCESS_FLAGS;
	if (reliable) {
		attr->max_dest_rd_atomic = conn->local.responder_resources;
		attr->min_rnr_timer = CM_RNR_TIMER;
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
}

static inline void cm_send_attr(const struct cm_conn *conn, bool reliable, struct ibv_qp_attr *attr,
				int *mask)
{
	attr->sq_psn = conn->remote.psn;
	*mask |= IBV_QP_SQ_PSN;
	if (reliable) {
		attr->timeout = cm_ack_timeout(conn);
		attr->retry_cnt = conn->active ? conn->local.retry_count : conn->remote.retry_count;
		attr->rnr_retry = conn->remote.rnr_retry_count;
		attr->max_rd_atomic = conn->local.initiator_depth;
		*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC;
	}
}

/* The attributes for the transition to attr->qp_state. */
static inline int cm_qp_attr(const struct rdma_cm_id *id, enum cm_state state,
			     const struct cm_conn *conn, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state to = attr->qp_state;
	bool reliable = id->qp_type == IBV_QPT_RC;

	if (!id->verbs || (to != IBV_QPS_INIT && to != IBV_QPS_RTR && to != IBV_QPS_RTS))
		return -EINVAL;
	*attr = (struct ibv_qp_attr){.qp_state = to};
	*mask = IBV_QP_STATE;
	if (to == IBV_QPS_INIT) {
		attr->port_num = id->port_num;
		attr->qp_access_flags = cm_access(conn, reliable);
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		return 0;
	}
	if (!cm_knows_peer(state))
		return -EINVAL;
	if (to == IBV_QPS_RTR)
		cm_receive_attr(id, conn, reliable, attr, mask);
	else
		cm_send_attr(conn, reliable, attr, mask);
	return 0;
}

/* --- events --- */

/* How a synchronous call ends by this event. */
static inline int cm_event_error(const struct rdma_cm_event *event)
{
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -EHOSTUNREACH;
}

#endif
