/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's end of rpc.h. A client posts one thing at a time and waits for its
 * completions, so that a completion needs no identity here.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rdma_commit.h"
#include "core/rt/rt.h"
#include "core/stores/kv.h"
#include "core/stores/rpc_qp.h"

#define REFUSALS   16	   /* of probes: with more, it would never be known */
#define REFUSED_NS 1000ull /* first pause after a request that could not be posted */
/* 0.1 s: without a reply for so long, see whether the server still listens. */
#define SILENCE_NS     100000000ull
#define CONNECT_NAP_NS 10000

static uint8_t *conn_out(struct rpc_conn *conn)
{
	return conn->buf + conn->data_bytes;
}

static uint8_t *conn_in(struct rpc_conn *conn)
{
	return conn->buf + conn->data_bytes + conn->msg_bytes;
}

/* Before anything is sent that will be answered. */
static int conn_expect_reply(struct rpc_conn *conn)
{
	int rc = 0;

	if (!conn->expecting)
		rc = rpc_qp_recv(conn->qp, 0, conn_in(conn), conn->msg_bytes, conn->mr->lkey);
	conn->expecting = !rc || conn->assumes;
	return rc;
}

/* The server may be busy with what this client sent before it connected again. */
static int connect_server(unsigned server, const struct rpc_greeting *hello,
			  struct rpc_welcome *welcome)
{
	int rc;

	while ((rc = rt_connect_to(server, hello, sizeof(*hello), welcome, sizeof(*welcome))) ==
	       -EAGAIN)
		rt_sleep(CONNECT_NAP_NS);
	return rc;
}

/* What a connection is like. */
struct manner {
	enum rpc_kind kind;
	bool first;
	uint64_t send_ops;
	size_t own_bytes;
};

/* Memory to which the server WRITEs. */
static int own_open(struct rpc_conn *conn, size_t bytes, struct rpc_region *own)
{
	if (!bytes)
		return 0;
	assert(bytes % TM_LINE == 0); /* aligned_alloc() wants whole ones */
	conn->own = aligned_alloc(TM_LINE, bytes);
	if (!conn->own)
		return -ENOMEM;
	memset(conn->own, 0, bytes);
	conn->own_mr = ibv_reg_mr(conn->pd, conn->own, bytes,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!conn->own_mr)
		return -ENOMEM;
	*own = (struct rpc_region){(uintptr_t)conn->own, bytes, conn->own_mr->rkey, 0};
	return 0;
}

static int conn_open(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     size_t data_bytes, const struct manner *manner)
{
	struct rpc_greeting hello;
	struct rpc_welcome welcome;
	int rc = -ENOMEM;

	memset(conn, 0, sizeof(*conn));
	conn->msg_bytes = kv_round_up(msg_bytes, 8);
	conn->data_bytes = kv_round_up(data_bytes, 8);
	size_t bytes = conn->data_bytes + 2 * conn->msg_bytes;
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
	conn->qp = rpc_qp_create(conn->pd, conn->cq, manner->send_ops);
	if (!conn->qp)
		goto err;
	rc = rpc_hello(&hello, conn->qp, env->client, manner->kind);
	hello.first = manner->first;
	if (!rc)
		rc = own_open(conn, manner->own_bytes, &hello.own);
	if (!rc)
		rc = rpc_qp_init(conn->qp, QP_ACCESS);
	if (!rc && manner->kind == RPC_NOTICES)
		rc = conn_expect_reply(conn);
	if (!rc)
		rc = connect_server(env->server, &hello, &welcome);
	if (!rc)
		rc = rpc_qp_rtr(conn->qp, &hello, &welcome.server, RPC_RNR_CLIENT);
	if (!rc)
		rc = rpc_qp_rts(conn->qp, hello.psn);
	if (rc)
		goto err;
	assert(welcome.regions <= RPC_REGIONS);
	conn->regions = welcome.regions;
	conn->word = welcome.word;
	conn->index = welcome.index;
	memcpy(conn->region, welcome.region, sizeof(conn->region));
	return 0;
err:
	rpc_close(conn);
	return rc;
}

int rpc_open(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes, size_t data_bytes,
	     const struct rpc_conn *with)
{
	const struct manner manner = {.kind = RPC_REQUESTS, .first = !with};

	return conn_open(conn, env, msg_bytes, data_bytes, &manner);
}

int rpc_open_ex(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		size_t data_bytes, uint64_t send_ops)
{
	const struct manner manner = {RPC_REQUESTS, true, send_ops, 0};

	return conn_open(conn, env, msg_bytes, data_bytes, &manner);
}

int rpc_open_own(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		 size_t data_bytes, size_t own_bytes)
{
	const struct manner manner = {RPC_REQUESTS, true, 0, own_bytes};

	return conn_open(conn, env, msg_bytes, data_bytes, &manner);
}

int rpc_open_further(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     size_t data_bytes)
{
	const struct manner manner = {.kind = RPC_FURTHER};

	return conn_open(conn, env, msg_bytes, data_bytes, &manner);
}

int rpc_open_notices(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     const struct rpc_conn *with)
{
	const struct manner manner = {.kind = RPC_NOTICES, .first = !with};

	return conn_open(conn, env, msg_bytes, 0, &manner);
}

void rpc_close(struct rpc_conn *conn)
{
	if (conn->qp)
		ibv_destroy_qp(conn->qp);
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	if (conn->own_mr)
		ibv_dereg_mr(conn->own_mr);
	if (conn->pd)
		ibv_dealloc_pd(conn->pd);
	free(conn->buf);
	free(conn->own);
	memset(conn, 0, sizeof(*conn));
	conn->failed = true;
}

void rpc_break(struct rpc_conn *conn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (conn->qp)
		ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
}

static int conn_probe(struct rpc_conn *conn);

/*
 * Wait until what was posted last has been acknowledged (`sent`), and until a message has come in
 * (`in`). A server that has closed the connection says nothing more: while a reply is awaited, a
 * probe now and then finds out. `waits`: RT_WAITS of the function that the store called; if not,
 * what it would wait for comes in while it waits for something else.
 */
static int conn_wait(struct rpc_conn *conn, bool sent, bool in, bool waits)
{
	uint64_t since = rt_now();
	unsigned refused = 0;
	bool probing = false;

	if (!waits) {
		conn->unawaited += sent;
		return 0;
	}
	while (probing || (sent && !conn->sent) || (in && !conn->arrived)) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(conn->cq, 1, &wc);

		if (n == 0) {
			rt_yield();
			if (sent && in && !probing && conn->sent && rt_now() - since > SILENCE_NS) {
				probing = !conn_probe(conn);
				since = rt_now();
				conn->failed = !probing && ++refused > REFUSALS;
				if (conn->failed)
					return -EIO;
			}
			continue;
		}
		if (n < 0 || wc.status != IBV_WC_SUCCESS) {
			conn->failed = true;
			return -EIO;
		}
		if (wc.opcode & IBV_WC_RECV) {
			conn->arrived = true;
			conn->expecting = false;
			conn->in_len = wc.byte_len;
		} else if (conn->unawaited) {
			conn->unawaited--;
		} else if (probing) {
			probing = false;
			since = rt_now();
		} else {
			conn->sent = true;
		}
	}
	if (sent)
		conn->sent = false;
	if (in)
		conn->arrived = false;
	return 0;
}

/* Post a send request, signaled, of `len` bytes at `from` in the connection's buffer. */
static int conn_post_wr(struct rpc_conn *conn, struct ibv_send_wr *wr, uint8_t *from, size_t len)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad;

	assert(from >= conn->buf &&
	       from + len <= conn->buf + conn->data_bytes + 2 * conn->msg_bytes);
	sge.addr = (uintptr_t)from;
	sge.length = (uint32_t)len;
	sge.lkey = conn->mr->lkey;
	wr->sg_list = &sge;
	wr->num_sge = len ? 1 : 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	return rpc_error(ibv_post_send(conn->qp, wr, &bad));
}

static int conn_post(struct rpc_conn *conn, enum ibv_wr_opcode opcode, uint8_t *from, size_t len,
		     uint64_t remote, uint32_t rkey, uint32_t imm)
{
	struct ibv_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.opcode = opcode;
	wr.imm_data = htobe32(imm);
	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	return conn_post_wr(conn, &wr, from, len);
}

/* A READ of nothing. */
static int conn_probe(struct rpc_conn *conn)
{
	const struct rpc_region *region = &conn->region[0];

	return conn_post(conn, IBV_WR_RDMA_READ, conn->buf, 0, region->base, region->rkey, 0);
}

/* Wait for the request's completion and for the reply. */
static int conn_reply(struct rpc_conn *conn, void *rsp, size_t cap, size_t *rsp_len, bool waits)
{
	int rc = conn_wait(conn, true, true, waits);

	if (rc)
		return rc;
	if (!waits) { /* nothing has come: as if it were zeroes */
		if (rsp_len)
			*rsp_len = cap;
		memset(rsp, 0, cap);
		return 0;
	}
	if (rsp_len)
		*rsp_len = conn->in_len;
	memcpy(rsp, conn_in(conn), conn->in_len < cap ? conn->in_len : cap);
	return 0;
}

static int conn_send(struct rpc_conn *conn, const void *msg, size_t len)
{
	if (len > conn->msg_bytes)
		return -EMSGSIZE;
	memcpy(conn_out(conn), msg, len);
	return conn_post(conn, IBV_WR_SEND, conn_out(conn), len, 0, 0, 0);
}

int rpc_call(struct rpc_conn *conn, const void *req, size_t len, void *rsp, size_t cap,
	     size_t *rsp_len)
{
	if (conn->failed)
		return -EIO;
	int rc = conn_expect_reply(conn);
	if (!rc)
		rc = conn_send(conn, req, len);
	if (!rc)
		rc = conn_reply(conn, rsp, cap, rsp_len, RT_WAITS);
	return rc;
}

int rpc_send(struct rpc_conn *conn, const void *msg, size_t len)
{
	if (conn->failed)
		return -EIO;
	int rc = conn_send(conn, msg, len);
	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

int rpc_wait(struct rpc_conn *conn, void *msg, size_t cap, size_t *len)
{
	uint64_t nap = REFUSED_NS;

	if (conn->failed)
		return -EIO;
	while (conn_expect_reply(conn)) {
		rt_sleep(nap);
		nap = nap < SILENCE_NS ? 2 * nap : nap;
	}
	int rc = conn_wait(conn, false, true, true);
	if (rc)
		return rc;
	*len = conn->in_len;
	memcpy(msg, conn_in(conn), *len < cap ? *len : cap);
	conn_expect_reply(conn); /* if not now, then the next time */
	return 0;
}

/* The remote address of [off, off+len) of a region; -ERANGE. */
static int conn_remote(const struct rpc_conn *conn, unsigned region, uint64_t off, size_t len,
		       uint64_t *addr)
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

	if (conn->failed)
		return -EIO;
	int rc = conn_remote(conn, region, off, len, &addr);
	if (rc)
		return rc;
	rc = conn_post(conn, IBV_WR_RDMA_READ, conn->buf, len, addr, conn->region[region].rkey, 0);
	*data = conn->buf;
	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

static int conn_write(struct rpc_conn *conn, enum ibv_wr_opcode opcode, unsigned region,
		      uint64_t off, const void *data, size_t len, uint32_t imm)
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
	if (conn->failed)
		return -EIO;
	int rc = conn_write(conn, IBV_WR_RDMA_WRITE, region, off, data, len, 0);
	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

int rpc_write_behind(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data,
		     size_t len)
{
	int rc = conn->failed ? -EIO
			      : conn_write(conn, IBV_WR_RDMA_WRITE, region, off, data, len, 0);

	conn->unawaited += !rc;
	return rc;
}

int rpc_settle(struct rpc_conn *conn)
{
	if (conn->failed)
		return -EIO;
	if (!conn->unawaited)
		return 0;
	conn->unawaited--;
	return conn_wait(conn, true, false, RT_WAITS);
}

int rpc_write_word(struct rpc_conn *conn, unsigned region, uint64_t off, uint64_t word)
{
	uint8_t *out = conn_out(conn); /* what is under way has its bytes in the other buffer */
	uint64_t addr;
	int rc;

	assert(conn->msg_bytes >= sizeof(word));
	if (conn->failed)
		return -EIO;
	rc = conn_remote(conn, region, off, sizeof(word), &addr);
	if (rc)
		return rc;
	memcpy(out, &word, sizeof(word));
	rc = conn_post(conn, IBV_WR_RDMA_WRITE, out, sizeof(word), addr, conn->region[region].rkey,
		       0);
	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

int rpc_cas(struct rpc_conn *conn, unsigned region, uint64_t off, uint64_t expected,
	    uint64_t desired, uint64_t *found)
{
	struct ibv_send_wr wr;

	assert(off % sizeof(*found) == 0); /* no NIC does it elsewhere */
	if (conn->failed)
		return -EIO;
	memset(&wr, 0, sizeof(wr));
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	int rc = conn_remote(conn, region, off, sizeof(*found), &wr.wr.atomic.remote_addr);
	if (rc)
		return rc;
	wr.wr.atomic.rkey = conn->region[region].rkey;
	wr.wr.atomic.compare_add = expected;
	wr.wr.atomic.swap = desired;
	rc = conn_post_wr(conn, &wr, conn->buf, sizeof(*found));
	if (!rc)
		rc = conn_wait(conn, true, false, RT_WAITS);
	if (!rc)
		memcpy(found, conn->buf, sizeof(*found));
	return rc;
}

int rpc_call_imm(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len,
		 uint32_t imm, void *rsp, size_t cap, size_t *rsp_len)
{
	if (conn->failed)
		return -EIO;
	int rc = conn_expect_reply(conn);
	if (!rc)
		rc = conn_write(conn, IBV_WR_RDMA_WRITE_WITH_IMM, region, off, data, len, imm);
	if (!rc)
		rc = conn_reply(conn, rsp, cap, rsp_len, RT_WAITS);
	return rc;
}

int rpc_flush(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len)
{
	struct ibv_send_wr wr;
	uint64_t addr;
	int rc = conn->failed ? -EIO : conn_remote(conn, region, off, len, &addr);

	if (rc)
		return rc;
	memset(&wr, 0, sizeof(wr));
	flush_wr(&wr, conn->region[region].rkey, addr, (uint32_t)len,
		 IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	rc = conn_post_wr(conn, &wr, conn->buf, 0);
	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

/* Post a Commit; the payload, if it has one, lies where messages go out. */
static int conn_commit(struct rpc_conn *conn, enum ibv_wr_opcode opcode, unsigned region,
		       uint64_t off, size_t len, const uint64_t *payload, uint32_t imm)
{
	struct ibv_send_wr wr;
	uint64_t addr;
	int rc = conn->failed ? -EIO : conn_remote(conn, region, off, len, &addr);

	assert(!payload || sizeof(*payload) <= conn->msg_bytes);
	if (rc)
		return rc;
	memset(&wr, 0, sizeof(wr));
	tm_commit_wr(&wr, conn->region[region].rkey, addr, (uint32_t)len);
	wr.opcode = opcode;
	wr.imm_data = htobe32(imm);
	if (payload)
		memcpy(conn_out(conn), payload, sizeof(*payload));
	return conn_post_wr(conn, &wr, conn_out(conn), payload ? sizeof(*payload) : 0);
}

int rpc_commit(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len)
{
	int rc = conn_commit(conn, TM_WR_COMMIT, region, off, len, NULL, 0);

	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

int rpc_commit_payload(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len,
		       uint64_t payload)
{
	int rc = conn_commit(conn, TM_WR_COMMIT_WITH_PAYLOAD, region, off, len, &payload, 0);

	return rc ? rc : conn_wait(conn, true, false, RT_WAITS);
}

int rpc_call_commit(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, uint32_t imm,
		    void *rsp, size_t cap, size_t *rsp_len)
{
	if (conn->failed)
		return -EIO;
	int rc = conn_expect_reply(conn);
	if (!rc)
		rc = conn_commit(conn, TM_WR_COMMIT_WITH_IMM, region, off, len, NULL, imm);
	if (!rc)
		rc = conn_reply(conn, rsp, cap, rsp_len, RT_WAITS);
	return rc;
}

void rpc_set_region(struct rpc_conn *conn, unsigned region, const struct rpc_region *where)
{
	assert(region < RPC_REGIONS);
	conn->region[region] = *where;
	if (conn->regions <= region)
		conn->regions = region + 1;
}
