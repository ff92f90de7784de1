/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device: the net of hosts, a host's RNIC as libibverbs shows it, its port,
 * and the door through which packets come in.
 *
 * The context is a verbs_context, marked as extended: libibverbs' inline
 * functions (ibv_query_port, ibv_create_qp_ex, ibv_post_send, ibv_poll_cq) find our
 * functions in it and in its ops table as they find a real driver's. What it has
 * not, they refuse with EOPNOTSUPP.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/count.h"
#include "core/rnic/objects/cq.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/objects/srq.h"
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/requester.h"
#include "core/rnic/transport/responder.h"
#include "core/rnic/transport/time_wait.h"
#include "core/rnic/transport/unreliable.h"
#include "core/verbs_compat.h"

struct rnic_net *rnic_net_on(const struct rnic_ground *ground, const struct hardware *hw,
			     struct link *link, unsigned hosts, uint32_t first, uint32_t limit)
{
	struct rnic_net *net = ground_alloc(ground, sizeof(*net) + hosts * sizeof(net->hca[0]));
	net->ground = *ground;
	net->hosts = hosts;
	net->hw = *hw;
	assert(hw->mtu >= 256 && hw->mtu <= 4096 && (hw->mtu & (hw->mtu - 1)) == 0);
	assert(first >= QPN_FIRST && first < limit && limit <= QPN_LIMIT);
	net->link = link;
	net->gids = 1;
	net->qpn_first = first;
	net->qpn_limit = limit;
	return net;
}

void rnic_gid(uint32_t address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	address = htobe32(address);
	memcpy(gid->raw + 12, &address, sizeof(address));
}

/* Text and number. Worlds that live for a microsecond notice what snprintf costs. */
static void number_name(char *buf, size_t size, const char *text, unsigned number)
{
	size_t len = strlen(text) + 1;
	for (unsigned n = number; n >= 10; n /= 10)
		len++;
	assert(len < size);
	memcpy(buf, text, strlen(text));
	buf[len] = '\0';
	do {
		buf[--len] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
}

static enum ibv_mtu mtu_enum(unsigned bytes)
{
	return (enum ibv_mtu)(__builtin_ctz(bytes) - 7); /* 256 is 1 */
}

int rnic_query_port_ex(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		       size_t len)
{
	struct ibv_port_attr port = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_enum(to_hca(context)->hw.mtu),
		.gid_tbl_len = 1,
		.max_msg_sz = MAX_MESSAGE,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR: 25 Gbit/s a lane */
		.phys_state = 5,    /* link up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.flags = to_hca(context)->hw.transport == TRANSPORT_IB ? IBV_QPF_GRH_REQUIRED : 0,
	};
	if (port_num != 1)
		return EINVAL;
	if (ground_fails(&to_hca(context)->net->ground, FAIL_QUERY))
		return EIO;
	memset(attr, 0, len);
	memcpy(attr, &port, len < sizeof(port) ? len : sizeof(port));
	return 0;
}

int rnic_query_port(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr)
{
	return rnic_query_port_ex(context, port_num, (struct ibv_port_attr *)attr,
				  offsetof(struct ibv_port_attr, port_cap_flags2));
}

int rnic_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct rnic_net *net = to_hca(context)->net;
	if (ground_fails(&to_hca(context)->net->ground, FAIL_QUERY))
		return EIO;
	*attr = (struct ibv_device_attr){
		.fw_ver = "tidemark",
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.vendor_id = TM_VENDOR, /* locally administered; as in the GUID */
		.vendor_part_id = 1,
		.hw_ver = 1,
		.max_qp = (int)(net->qpn_limit - net->qpn_first),
		.max_qp_wr = MAX_WR,
		.max_sge = MAX_SGE,
		.max_sge_rd = MAX_SGE,
		.max_cq = MAX_OBJECTS,
		.max_cqe = MAX_CQE,
		.max_mr = MAX_MR,
		.max_mw = MAX_MR,
		.max_pd = MAX_OBJECTS,
		.max_qp_rd_atom = MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = MAX_RD_ATOMIC,
		.max_res_rd_atom = 1 << 30,
		.max_srq = MAX_OBJECTS,
		.max_srq_wr = MAX_WR,
		.max_srq_sge = MAX_SGE,
		.max_ah = MAX_OBJECTS,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.atomic_cap = to_hca(context)->hw.atomics_hca ? IBV_ATOMIC_HCA : IBV_ATOMIC_GLOB,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	attr->node_guid = attr->sys_image_guid = htobe64(0x02746d0000000000u |
							 (to_hca(context)->host + 1));
	return 0;
}

/* For ibv_query_device_ex(); the caller's structure may be older, and shorter, than ours. */
int rnic_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex full = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: the clock counts nanoseconds */
		.cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.phys_port_cnt_ex = 1,
	};
	if ((input && input->comp_mask) || len < sizeof(full.orig_attr))
		return EINVAL;
	int error = rnic_query_device(context, &full.orig_attr);
	if (error)
		return error;
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags | IB_UVERBS_DEVICE_FLUSH_GLOBAL |
				   IB_UVERBS_DEVICE_FLUSH_PERSISTENT |
				   IB_UVERBS_DEVICE_ATOMIC_WRITE;
	memset(attr, 0, len);
	memcpy(attr, &full, len < sizeof(full) ? len : sizeof(full));
	return 0;
}

int rnic_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	/* In ticks of the device's clock, all of them here, as drivers do. */
	values->raw_clock = (struct timespec){
		.tv_nsec = (long)ground_now(&to_hca(context)->net->ground)};
	return 0;
}

/* What libibverbs' inline functions find in the context. */
static void fill_tables(struct rnic_hca *hca)
{
	struct ibv_context *context = &hca->verbs.context;
	hca->verbs.sz = sizeof(hca->verbs);
	hca->verbs.query_port = rnic_query_port_ex;
	hca->verbs.query_device_ex = rnic_query_device_ex;
	hca->verbs.query_rt_values = rnic_query_rt_values;
	hca->verbs.create_qp_ex = rnic_create_qp_ex;
	hca->verbs.create_srq_ex = rnic_create_srq_ex;
	hca->verbs.get_srq_num = rnic_get_srq_num;
	hca->verbs.create_cq_ex = rnic_create_cq_ex;
	hca->verbs.modify_cq = rnic_modify_cq;
	hca->verbs.alloc_null_mr = rnic_alloc_null_mr;
	hca->verbs.alloc_td = rnic_alloc_td;
	hca->verbs.dealloc_td = rnic_dealloc_td;
	hca->verbs.alloc_parent_domain = rnic_alloc_parent_domain;
	context->device = &hca->device;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->cmd_fd = context->async_fd = -1;
	context->num_comp_vectors = 1;
	context->ops.alloc_mw = rnic_alloc_mw;
	context->ops.bind_mw = rnic_bind_mw;
	context->ops.dealloc_mw = rnic_dealloc_mw;
	context->ops.poll_cq = rnic_poll_cq;
	context->ops.req_notify_cq = rnic_req_notify_cq;
	context->ops.post_send = rnic_post_send;
	context->ops.post_recv = rnic_post_recv;
	context->ops.post_srq_recv = rnic_post_srq_recv;
}

struct ibv_context *rnic_open_on(struct rnic_net *net, unsigned host,
				 const struct rnic_memory *memory, void *memory_arg)
{
	struct rnic_hca *hca;
	if (host >= net->hosts || net->hca[host])
		return errno_null(host >= net->hosts ? ENODEV : EBUSY);
	hca = ground_alloc(&net->ground, sizeof(*hca));
	hca->net = net;
	hca->hw = net->hw;
	hca->host = host;
	hca->memory = memory;
	hca->memory_arg = memory_arg;
	rnic_gid(RNIC_ADDRESS(host), &hca->gid);
	hca->device.node_type = IBV_NODE_CA;
	hca->device.transport_type = IBV_TRANSPORT_IB;
	if (hca->hw.transport == TRANSPORT_IWARP) {
		hca->device.node_type = IBV_NODE_RNIC;
		hca->device.transport_type = IBV_TRANSPORT_IWARP;
	}
	number_name(hca->device.name, sizeof(hca->device.name), "tidemark", host);
	number_name(hca->device.dev_name, sizeof(hca->device.dev_name), "uverbs", host);
	fill_tables(hca);
	net->hca[host] = hca;
	return &hca->verbs.context;
}

/* The numbers of the queue pairs, for those that may come after them. */
static void keep_numbers(struct rnic_hca *hca)
{
	struct rnic_net *net = hca->net;
	hca->old_qpn = ground_alloc(&net->ground, net->qps * sizeof(*hca->old_qpn) + 1);
	hca->old_qpns = 0;
	for (uint32_t i = 0; i < net->qps; i++)
		if (net->qp[i] && net->qp[i]->hca == hca)
			hca->old_qpn[hca->old_qpns++] = net->qpn_first + i;
	assert(hca->old_qpns <= net->qps);
}

void rnic_close(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);
	struct rnic_net *net = hca->net;
	assert(net->hca[hca->host] == hca);
	if (hca->hooks.ended)
		hca->hooks.ended(hca);
	if (hca->hw.restart_reuse)
		keep_numbers(hca);
	for (uint32_t i = 0; i < net->qps; i++) {
		if (net->qp[i] && net->qp[i]->hca == hca) {
			int error = rnic_destroy_qp(&net->qp[i]->ibv);
			assert(!error && !net->qp[i]); /* what the table lists is alive */
		}
	}
	for (uint32_t slot = 1; slot <= hca->mrs; slot++)
		hca->mr[slot]->live = hca->mr[slot]->used = false;
	hca->hooks.completion = NULL;
	hca->hooks.event = NULL;
	hca->hooks.ended = NULL;
	net->hca[hca->host] = NULL;
}

void rnic_follow(struct ibv_context *context, const struct ibv_context *before)
{
	struct rnic_hca *hca = to_hca(context);
	const struct rnic_hca *old = to_hca((struct ibv_context *)before);
	assert(hca->host == old->host && hca->net == old->net && hca != old);
	assert(!hca->mrs && !hca->qps); /* it has just been opened */
	hca->qps = old->qps;		/* no two queue pairs of a host have one name */
	if (hca->hw.restart_reuse) {
		hca->old_qpn = old->old_qpn;
		hca->old_qpns = old->old_qpns;
		return;
	}
	hca->mr = old->mr;
	hca->mrs = old->mrs;
	hca->mr_room = old->mr_room;
	hca->mr_cursor = old->mr_cursor;
	hca->slots = old->slots;
}

unsigned rnic_objects(struct ibv_context *context)
{
	return to_hca(context)->objects;
}

#define PKEY 0xffff /* the default partition, full member */

int rnic_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index != 0)
		return errno_minus(EINVAL);
	*pkey = htobe16(PKEY);
	return 0;
}

int rnic_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port == 1 && pkey == htobe16(PKEY))
		return 0;
	errno = EINVAL;
	return -1;
}

int rnic_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (port_num != 1 || index != 0 || ground_fails(&to_hca(context)->net->ground, FAIL_QUERY))
		return errno_minus(port_num != 1 || index != 0 ? EINVAL : EIO);
	*gid = to_hca(context)->gid;
	return 0;
}

const char *rnic_get_device_name(struct ibv_device *device)
{
	return device->name;
}

void rnic_deliver(struct rnic_net *net, unsigned host, struct packet *pkt)
{
	struct rnic_qp *qp = qp_find(net, pkt->dest_qpn);
	rnic_take(net, qp && qp->hca->host == host ? qp : NULL, pkt);
}

/* A connected queue pair hears its peer only. */
static bool is_foreign(const struct rnic_qp *qp, const struct packet *pkt)
{
	return pkt->from != qp->peer && pkt->service != SERVICE_UD;
}

/* Not for the queue pair, or for none. */
static void refuse(struct rnic_net *net, const struct rnic_qp *qp, struct packet *pkt)
{
	count_stray(net, qp, pkt);
	packet_put(net, pkt);
}

void rnic_becomes_lossy(struct rnic_net *net)
{
	net->link->lossy = true;
	for (uint32_t i = 0; i < net->qps; i++)
		if (net->qp[i])
			req_becomes_lossy(net->qp[i]);
}

static void take_packet(struct rnic_qp *qp, struct packet *pkt)
{
	/* Links between processes carry no names. */
	pkt->name.qp = qp->ibv.qp_num;
	pkt->name.send = opcode_is[pkt->opcode] & IS_SEND;
	if (qp->service != SERVICE_RC)
		unreliable_take(qp, pkt);
	else if (opcode_is[pkt->opcode] & IS_RESPONSE)
		req_response(qp, pkt);
	else
		resp_request(qp, pkt);
}

void rnic_take(struct rnic_net *net, struct rnic_qp *qp, struct packet *pkt)
{
	assert(!qp || !qp->dead); /* a dead one is not in the table */
	ground_mix(&net->ground, (uint64_t)pkt->dest_qpn << 32 | pkt->psn,
		   (uint64_t)pkt->opcode << 56 | (uint64_t)pkt->syndrome << 48 | pkt->len);
	if (pkt->len)
		ground_mix_bytes(&net->ground, pkt->payload, pkt->len);
	if (!qp && net->link->lossy)
		time_wait_answer(net, pkt);
	if (!qp && pkt->dest_qpn == QPN_MANAGEMENT && net->management)
		net->management(net, pkt);
	else if (!qp || pkt->service != qp->service || pkt->opcode >= OP_CODES ||
		 !opcode_is[pkt->opcode] || is_foreign(qp, pkt))
		refuse(net, qp, pkt);
	else
		take_packet(qp, pkt);
}

const char *rnic_wc_status_str(enum ibv_wc_status status)
{
	static const char *const text[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "work request flushed",
		[IBV_WC_MW_BIND_ERR] = "memory management operation error",
		[IBV_WC_BAD_RESP_ERR] = "bad response error",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[IBV_WC_REM_ACCESS_ERR] = "remote access error",
		[IBV_WC_REM_OP_ERR] = "remote operation error",
		[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted error",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "TM error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
	};
	if ((unsigned)status >= sizeof(text) / sizeof(*text) || !text[status])
		return "unknown";
	return text[status];
}
