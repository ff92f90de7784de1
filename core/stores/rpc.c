/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests, replies and one-sided access over one reliable connection per client.
 *
 * A client posts one thing at a time and waits for its completions, so that a
 * completion needs no identity on that side. The server has one completion
 * queue; a work request's id names the client and the slot. A slot's life:
 *
 *	posted -> message arrived -> handled -> reply sent -> reply acknowledged -> posted
 *
 * (without a reply: handled -> posted), so its two buffers are never overwritten
 * while the NIC may still read them for a retransmission.
 */
#include "core/stores/rpc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

#define PORT	    1
#define GID_INDEX   0
#define SQ_DEPTH    4
#define POLL_BATCH  4
#define PSN_MASK    0xffffffu
#define READ_DEPTH  4  /* outstanding RDMA READs and atomics per connection */
#define ACK_TIMEOUT 14 /* 4.096 us << 14 = 67 ms (IBA 9.7.6.1.3) */
#define RETRIES	    7
#define RNR_RETRIES 7  /* for ever */
#define RNR_TIMER   12 /* 0.64 ms (IBA table 45) */

/* What a client sends and gets when it connects; not through the RNIC. */
struct hello {
	uint32_t client;
	uint32_t qpn;
	uint32_t psn;
	uint32_t unused;
	uint8_t gid[16];
};

struct welcome {
	struct hello server;
	uint32_t regions;
	uint32_t unused;
	struct rpc_region region[RPC_REGIONS];
};

/* ----------------------------------------------------- queue pair set-up */

static struct ibv_qp *qp_create(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init;

	memset(&init, 0, sizeof(init));
	init.send_cq = cq;
	init.recv_cq = cq;
	init.qp_type = IBV_QPT_RC;
	init.cap.max_send_wr = SQ_DEPTH;
	init.cap.max_recv_wr = SQ_DEPTH;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	return ibv_create_qp(pd, &init);
}

/* Verbs return a positive errno or -1 with errno set. */
static int verbs_error(int rc)
{
	if (rc == 0)
		return 0;
	return rc > 0 ? -rc : -(errno ? errno : EIO);
}

static int qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = PORT;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	return verbs_error(ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

/* Ready to receive, with the largest path MTU that the port takes. */
static int qp_to_rtr(struct ibv_qp *qp, const struct hello *peer)
{
	struct ibv_qp_attr attr;
	int rc = 0;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = peer->qpn;
	attr.rq_psn = peer->psn;
	attr.max_dest_rd_atomic = READ_DEPTH;
	attr.min_rnr_timer = RNR_TIMER;
	attr.ah_attr.is_global = 1;
	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	attr.ah_attr.port_num = PORT;
	for (int mtu = IBV_MTU_4096; mtu >= IBV_MTU_256; mtu--) {
		attr.path_mtu = (enum ibv_mtu)mtu;
		rc = verbs_error(ibv_modify_qp(qp, &attr,
					       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER));
		if (rc != -EINVAL)
			break;
	}
	return rc;
}

static int qp_to_rts(struct ibv_qp *qp, uint32_t psn)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = ACK_TIMEOUT;
	attr.retry_cnt = RETRIES;
	attr.rnr_retry = RNR_RETRIES;
	attr.max_rd_atomic = READ_DEPTH;
	return verbs_error(ibv_modify_qp(qp, &attr,
					 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static int hello_fill(struct hello *hello, struct ibv_qp *qp, uint32_t client)
{
	union ibv_gid gid;

	memset(hello, 0, sizeof(*hello));
	if (ibv_query_gid(qp->context, PORT, GID_INDEX, &gid))
		return -ENODEV;
	memcpy(hello->gid, gid.raw, sizeof(hello->gid));
	hello->client = client;
	hello->qpn = qp->qp_num;
	hello->psn = (qp->qp_num * 4096 + client) & PSN_MASK;
	return 0;
}

static int post_recv(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr, *bad;

	sge.addr = (uintptr_t)buf;
	sge.length = (uint32_t)len;
	sge.lkey = lkey;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = wr_id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	return verbs_error(ibv_post_recv(qp, &wr, &bad));
}

/* ---------------------------------------------------------------- client */

static uint8_t *conn_out(struct rpc_conn *conn)
{
	return conn->buf + conn->data_bytes;
}

static uint8_t *conn_in(struct rpc_conn *conn)
{
	return conn->buf + conn->data_bytes + conn->msg_bytes;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

int rpc_open(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes, size_t data_bytes)
{
	struct hello hello;
	struct welcome welcome;
	size_t bytes;
	int rc = -ENOMEM;

	memset(conn, 0, sizeof(*conn));
	conn->msg_bytes = round_up(msg_bytes, 8);
	conn->data_bytes = round_up(data_bytes, 8);
	bytes = conn->data_bytes + 2 * conn->msg_bytes;
	conn->buf = calloc(1, bytes);
	if (!conn->buf)
		return -ENOMEM;
	conn->pd = ibv_alloc_pd(env->verbs);
	if (!conn->pd)
		goto err;
	conn->mr = ibv_reg_mr(conn->pd, conn->buf, bytes, IBV_ACCESS_LOCAL_WRITE);
	conn->cq = ibv_create_cq(env->verbs, 2 * SQ_DEPTH, NULL, NULL, 0);
	if (!conn->mr || !conn->cq)
		goto err;
	conn->qp = qp_create(conn->pd, conn->cq);
	if (!conn->qp)
		goto err;
	rc = hello_fill(&hello, conn->qp, env->client);
	if (!rc)
		rc = qp_to_init(conn->qp);
	if (!rc)
		rc = rt_connect(&hello, sizeof(hello), &welcome, sizeof(welcome));
	if (!rc)
		rc = qp_to_rtr(conn->qp, &welcome.server);
	if (!rc)
		rc = qp_to_rts(conn->qp, hello.psn);
	if (rc)
		goto err;
	assert(welcome.regions <= RPC_REGIONS);
	conn->regions = welcome.regions;
	memcpy(conn->region, welcome.region, sizeof(conn->region));
	return 0;
err:
	rpc_close(conn);
	return rc;
}

void rpc_close(struct rpc_conn *conn)
{
	if (conn->qp)
		ibv_destroy_qp(conn->qp);
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	if (conn->pd)
		ibv_dealloc_pd(conn->pd);
	free(conn->buf);
	memset(conn, 0, sizeof(*conn));
	conn->failed = true;
}

/* Wait until `pending` completions have come. *rsp_len: length of the message that came in. */
static int conn_wait(struct rpc_conn *conn, unsigned pending, size_t *rsp_len)
{
	while (pending) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(conn->cq, 1, &wc);

		if (n == 0) {
			rt_yield();
			continue;
		}
		if (n < 0 || wc.status != IBV_WC_SUCCESS) {
			conn->failed = true;
			return -EIO;
		}
		if (wc.opcode & IBV_WC_RECV)
			*rsp_len = wc.byte_len;
		pending--;
	}
	return 0;
}

/* Post a send request of `len` bytes at `from` in the connection's buffer. */
static int conn_post(struct rpc_conn *conn, enum ibv_wr_opcode opcode, uint8_t *from, size_t len,
		     uint64_t remote, uint32_t rkey, uint32_t imm)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	int rc;

	assert(from >= conn->buf && from + len <= conn->buf + conn->data_bytes + 2 * conn->msg_bytes);
	sge.addr = (uintptr_t)from;
	sge.length = (uint32_t)len;
	sge.lkey = conn->mr->lkey;
	memset(&wr, 0, sizeof(wr));
	wr.sg_list = &sge;
	wr.num_sge = len ? 1 : 0;
	wr.opcode = opcode;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.imm_data = htobe32(imm);
	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	rc = verbs_error(ibv_post_send(conn->qp, &wr, &bad));
	if (rc)
		conn->failed = true;
	return rc ? -EIO : 0;
}

/* Before anything is sent that will be answered. */
static int conn_expect_reply(struct rpc_conn *conn)
{
	if (post_recv(conn->qp, 0, conn_in(conn), conn->msg_bytes, conn->mr->lkey))
		conn->failed = true;
	return conn->failed ? -EIO : 0;
}

/* Wait for the request's completion and for the reply. */
static int conn_reply(struct rpc_conn *conn, void *rsp, size_t cap, size_t *rsp_len)
{
	size_t len = 0;
	int rc = conn_wait(conn, 2, &len);

	if (rc)
		return rc;
	if (rsp_len)
		*rsp_len = len;
	memcpy(rsp, conn_in(conn), len < cap ? len : cap);
	return 0;
}

static int conn_send(struct rpc_conn *conn, const void *msg, size_t len)
{
	if (len > conn->msg_bytes)
		return -EMSGSIZE;
	memcpy(conn_out(conn), msg, len);
	return conn_post(conn, IBV_WR_SEND, conn_out(conn), len, 0, 0, 0);
}

int rpc_call(struct rpc_conn *conn, const void *req, size_t len, void *rsp, size_t cap, size_t *rsp_len)
{
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_expect_reply(conn);
	if (!rc)
		rc = conn_send(conn, req, len);
	if (!rc)
		rc = conn_reply(conn, rsp, cap, rsp_len);
	return rc;
}

int rpc_send(struct rpc_conn *conn, const void *msg, size_t len)
{
	size_t ignored;
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_send(conn, msg, len);
	return rc ? rc : conn_wait(conn, 1, &ignored);
}

/* The remote address of [off, off+len) of a region; -ERANGE. */
static int conn_remote(const struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, uint64_t *addr)
{
	if (region >= conn->regions || len > conn->data_bytes)
		return -ERANGE;
	if (off > conn->region[region].len || len > conn->region[region].len - off)
		return -ERANGE;
	*addr = conn->region[region].base + off;
	return 0;
}

int rpc_read(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, const void **data)
{
	uint64_t addr;
	size_t ignored;
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_remote(conn, region, off, len, &addr);
	if (rc)
		return rc;
	rc = conn_post(conn, IBV_WR_RDMA_READ, conn->buf, len, addr, conn->region[region].rkey, 0);
	*data = conn->buf;
	return rc ? rc : conn_wait(conn, 1, &ignored);
}

static int conn_write(struct rpc_conn *conn, enum ibv_wr_opcode opcode, unsigned region, uint64_t off,
		      const void *data, size_t len, uint32_t imm)
{
	uint64_t addr;
	int rc = conn_remote(conn, region, off, len, &addr);

	if (rc)
		return rc;
	memcpy(conn->buf, data, len);
	return conn_post(conn, opcode, conn->buf, len, addr, conn->region[region].rkey, imm);
}

int rpc_write(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len)
{
	size_t ignored;
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_write(conn, IBV_WR_RDMA_WRITE, region, off, data, len, 0);
	return rc ? rc : conn_wait(conn, 1, &ignored);
}

int rpc_write_imm(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len,
		  uint32_t imm)
{
	size_t ignored;
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_write(conn, IBV_WR_RDMA_WRITE_WITH_IMM, region, off, data, len, imm);
	return rc ? rc : conn_wait(conn, 1, &ignored);
}

int rpc_call_imm(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len,
		 uint32_t imm, void *rsp, size_t cap, size_t *rsp_len)
{
	int rc;

	if (conn->failed)
		return -EIO;
	rc = conn_expect_reply(conn);
	if (!rc)
		rc = conn_write(conn, IBV_WR_RDMA_WRITE_WITH_IMM, region, off, data, len, imm);
	if (!rc)
		rc = conn_reply(conn, rsp, cap, rsp_len);
	return rc;
}

/* ---------------------------------------------------------------- server */

static uint8_t *slot_msg(const struct rpc_server *server, uint64_t slot)
{
	return server->msgs + slot * 2 * server->msg_bytes;
}

static uint8_t *slot_reply(const struct rpc_server *server, uint64_t slot)
{
	return slot_msg(server, slot) + server->msg_bytes;
}

/* Make a slot ready for the client's next message. */
static int slot_post(struct rpc_server *server, uint64_t slot)
{
	struct rpc_peer *peer = &server->peer[slot / RPC_SLOTS];

	return post_recv(peer->qp, slot, slot_msg(server, slot), server->msg_bytes, server->msg_mr->lkey);
}

static int slot_send(struct rpc_server *server, uint64_t slot, size_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;

	assert(len <= server->msg_bytes);
	sge.addr = (uintptr_t)slot_reply(server, slot);
	sge.length = (uint32_t)len;
	sge.lkey = server->msg_mr->lkey;
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = slot;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	return verbs_error(ibv_post_send(server->peer[slot / RPC_SLOTS].qp, &wr, &bad));
}

int rpc_server_init(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		    rpc_handler *handler, void *arg)
{
	size_t bytes;

	memset(server, 0, sizeof(*server));
	server->verbs = env->verbs;
	server->handler = handler;
	server->arg = arg;
	server->msg_bytes = round_up(msg_bytes, 8);
	server->max_peers = env->params->clients;
	bytes = server->max_peers * RPC_SLOTS * 2 * server->msg_bytes;
	server->msgs = calloc(1, bytes);
	server->peer = calloc(server->max_peers, sizeof(*server->peer));
	if (!server->msgs || !server->peer)
		return -ENOMEM;
	server->pd = ibv_alloc_pd(env->verbs);
	if (!server->pd)
		return -ENOMEM;
	server->msg_mr = ibv_reg_mr(server->pd, server->msgs, bytes, IBV_ACCESS_LOCAL_WRITE);
	server->cq = ibv_create_cq(env->verbs, (int)(server->max_peers * 2 * SQ_DEPTH), NULL, NULL, 0);
	return server->msg_mr && server->cq ? 0 : -ENOMEM;
}

int rpc_server_export(struct rpc_server *server, void *addr, size_t len, int access)
{
	struct rpc_region *region = &server->region[server->regions];
	struct ibv_mr *mr;

	if (server->regions == RPC_REGIONS)
		return -ENOSPC;
	mr = ibv_reg_mr(server->pd, addr, len, access);
	if (!mr)
		return -ENOMEM;
	server->export_mr[server->regions++] = mr;
	region->base = (uintptr_t)addr;
	region->len = len;
	region->rkey = mr->rkey;
	return 0;
}

/* A client connects: a queue pair for it, and its slots posted. */
static int server_accept(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	struct rpc_server *server = arg;
	struct welcome welcome;
	struct rpc_peer *peer;
	struct hello hello;
	int rc;

	if (req_len != sizeof(hello) || rsp_len < sizeof(welcome))
		return -EPROTO;
	if (server->peers == server->max_peers)
		return -EUSERS;
	memcpy(&hello, req, sizeof(hello));
	memset(&welcome, 0, sizeof(welcome));
	peer = &server->peer[server->peers];
	peer->client = hello.client;
	peer->qp = qp_create(server->pd, server->cq);
	if (!peer->qp)
		return -ENOMEM;
	rc = hello_fill(&welcome.server, peer->qp, 0);
	if (!rc)
		rc = qp_to_init(peer->qp);
	for (unsigned i = 0; i < RPC_SLOTS && !rc; i++)
		rc = slot_post(server, server->peers * RPC_SLOTS + i);
	if (!rc)
		rc = qp_to_rtr(peer->qp, &hello);
	if (!rc)
		rc = qp_to_rts(peer->qp, welcome.server.psn);
	if (rc) {
		ibv_destroy_qp(peer->qp);
		peer->qp = NULL;
		return rc;
	}
	welcome.regions = server->regions;
	memcpy(welcome.region, server->region, sizeof(welcome.region));
	memcpy(rsp, &welcome, sizeof(welcome));
	server->peers++;
	return 0;
}

int rpc_server_listen(struct rpc_server *server)
{
	return rt_listen(server_accept, server);
}

/* A message is in its slot: handle it and send the reply, if there is one. */
static int server_message(struct rpc_server *server, const struct ibv_wc *wc)
{
	uint64_t slot = wc->wr_id;
	struct rpc_msg msg;
	size_t len;

	memset(&msg, 0, sizeof(msg));
	msg.index = (unsigned)(slot / RPC_SLOTS);
	msg.client = server->peer[msg.index].client;
	msg.len = wc->byte_len;
	msg.has_imm = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	if (msg.has_imm)
		msg.imm = be32toh(wc->imm_data);
	else
		msg.bytes = slot_msg(server, slot);
	memset(slot_reply(server, slot), 0, server->msg_bytes);
	len = server->handler(server->arg, &msg, slot_reply(server, slot), server->msg_bytes);
	return len ? slot_send(server, slot, len) : slot_post(server, slot);
}

unsigned rpc_server_poll(struct rpc_server *server)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(server->cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++) {
		struct rpc_peer *peer = &server->peer[wc[i].wr_id / RPC_SLOTS];
		int rc = 0;

		/* A failed connection stays silent; its client is told by its own NIC. */
		if (wc[i].status != IBV_WC_SUCCESS)
			peer->failed = true;
		if (peer->failed)
			continue;
		if (wc[i].opcode & IBV_WC_RECV)
			rc = server_message(server, &wc[i]);
		else
			rc = slot_post(server, wc[i].wr_id); /* the reply has been acknowledged */
		if (rc)
			peer->failed = true;
	}
	return n > 0 ? (unsigned)n : 0;
}

void rpc_server_task(void *server)
{
	for (;;) {
		if (!rpc_server_poll(server))
			rt_yield();
	}
}
