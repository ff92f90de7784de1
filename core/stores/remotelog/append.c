/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's part of an append. Work requests are gathered into a chain until a
 * step that waits; the chain is posted at once, only its last one signaled: a
 * completion stands for all before it.
 *
 * What is posted lies in the connection's buffer behind the room for GETs:
 *
 *	message (its record is a), tail (b), lock word, 8 bytes for what comes back
 */
#include <errno.h>
#include <string.h>
#include "core/rnic/placement.h"
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"
#include "core/stores/rpc_qp.h"

#define CHAIN	   SQ_DEPTH
#define NAP_MIN_NS 1000
#define NAP_MAX_NS 1000000000

struct chain {
	struct rl_client *client;
	unsigned n;
	struct ibv_send_wr wr[CHAIN];
	struct ibv_sge sge[CHAIN];
};

enum word { WORD_TAIL, WORD_TAIL_2, WORD_LOCK, WORD_BACK, WORDS };

static struct rl_msg *out_msg(struct rl_client *client)
{
	return (struct rl_msg *)(client->conn.buf + client->chunk * rl_span(&client->params));
}

static uint64_t *out_word(struct rl_client *client, enum word word)
{
	return (uint64_t *)((uint8_t *)out_msg(client) + rl_msg_bytes(&client->params)) + word;
}

size_t rl_buffer_bytes(const struct rl_client *client)
{
	return client->chunk * rl_span(&client->params) + rl_msg_bytes(&client->params) +
	       WORDS * sizeof(uint64_t);
}

/* --- chains --- */

/* The next work request, unsignaled: `len` bytes of the buffer and [off] of a region. */
static struct ibv_send_wr *add(struct chain *chain, enum ibv_wr_opcode opcode, void *local, size_t len,
			       enum rl_region region, uint64_t off)
{
	const struct rpc_conn *conn = &chain->client->conn;
	struct ibv_sge *sge = &chain->sge[chain->n];
	struct ibv_send_wr *wr = &chain->wr[chain->n];

	if (chain->n)
		wr[-1].next = wr;
	chain->n++;
	memset(wr, 0, sizeof(*wr));
	sge->addr = (uintptr_t)local;
	sge->length = (uint32_t)len;
	sge->lkey = conn->mr->lkey;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->wr.rdma.remote_addr = conn->region[region].base + off;
	wr->wr.rdma.rkey = conn->region[region].rkey;
	return wr;
}

static int post(struct chain *chain)
{
	struct rpc_conn *conn = &chain->client->conn;
	struct ibv_send_wr *bad;

	if (!chain->n)
		return 0;
	chain->n = 0;
	if (conn->failed || ibv_post_send(conn->qp, chain->wr, &bad))
		conn->failed = true;
	return conn->failed ? -EIO : 0;
}

/* Post the chain and wait for the completion of its last request. */
static int post_and_wait(struct chain *chain)
{
	struct rpc_conn *conn = &chain->client->conn;
	struct ibv_wc wc;
	int rc, n;

	if (!chain->n)
		return 0;
	chain->wr[chain->n - 1].send_flags |= IBV_SEND_SIGNALED;
	rc = post(chain);
	if (rc)
		return rc;
	while (!(n = ibv_poll_cq(conn->cq, 1, &wc)))
		rt_yield();
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		conn->failed = true;
	return conn->failed ? -EIO : 0;
}

/* --- steps --- */

static size_t record_len(const struct rl_client *client)
{
	return rl_record_bytes(&client->msg->record);
}

static void write_a(struct chain *chain, enum ibv_wr_opcode opcode)
{
	struct rl_client *client = chain->client;
	uint64_t seq = client->msg->seq;
	struct ibv_send_wr *wr = add(chain, opcode, &out_msg(client)->record, record_len(client), RL_POOL,
				     rl_off(&client->params, seq));

	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = htobe32((uint32_t)(2 * seq));
}

static void write_b(struct chain *chain, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct rl_client *client = chain->client;
	struct ibv_send_wr *wr = add(chain, opcode, out_word(client, WORD_TAIL),
				     rl_tail_bytes(&client->params), RL_POOL, RL_TAIL);

	wr->send_flags = flags;
	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = htobe32((uint32_t)(2 * client->msg->seq + 1));
}

/* FLUSH of a range (len 0: of the whole region), or what stands for it. */
static int flush(struct chain *chain, uint64_t off, size_t len)
{
	struct rl_client *client = chain->client;
	enum rl_flush how = (enum rl_flush)rl_knob(&client->params, RL_FLUSH);
	const struct rpc_region *pool = &client->conn.region[RL_POOL];
	struct ibv_send_wr *wr;
	const void *data;
	int rc;

	if (how == RL_FLUSH_READ_OTHER_QP) {
		rc = post_and_wait(chain);
		return rc ? rc : rpc_read(&client->other, RL_POOL, off, sizeof(uint64_t), &data);
	}
	wr = add(chain, IBV_WR_RDMA_READ, out_word(client, WORD_BACK), sizeof(uint64_t), RL_POOL, off);
	if (how == RL_FLUSH_NATIVE) {
		wr->num_sge = 0;
		flush_wr(wr, pool->rkey, pool->base + off, (uint32_t)len,
			 IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, len ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
	}
	return 0;
}

/* A request, and the server's reply. */
static int call(struct chain *chain, enum rl_op op)
{
	struct rl_client *client = chain->client;
	struct rl_msg head;
	size_t len = op == RL_APPEND ? RL_MSG_HEAD + record_len(client) : RL_MSG_HEAD;
	int rc = post(chain);

	client->msg->op = op;
	if (!rc)
		rc = rpc_call(&client->conn, client->msg, len, &head, RL_MSG_HEAD, NULL);
	return rc ? rc : head.status;
}

static int imm_call(struct chain *chain, bool tail)
{
	struct rl_client *client = chain->client;
	const struct tm_params *params = &client->params;
	uint64_t seq = client->msg->seq;
	struct rl_msg head;
	int rc = post(chain);

	if (!rc && tail)
		rc = rpc_call_imm(&client->conn, RL_POOL, RL_TAIL, out_word(client, WORD_TAIL),
				  rl_tail_bytes(params), (uint32_t)(2 * seq + 1), &head, RL_MSG_HEAD, NULL);
	else if (!rc)
		rc = rpc_call_imm(&client->conn, RL_POOL, rl_off(params, seq), &client->msg->record,
				  record_len(client), (uint32_t)(2 * seq), &head, RL_MSG_HEAD, NULL);
	return rc ? rc : head.status;
}

/* Is the tail short enough for an ATOMIC WRITE? */
static bool atomic_b(const struct rl_client *client)
{
	return rl_tail_bytes(&client->params) == sizeof(uint64_t);
}

static int do_step(struct chain *chain, enum rl_step step)
{
	struct rl_client *client = chain->client;

	switch (step) {
	case RL_WRITE_A:
	case RL_IMM_A:
		write_a(chain, step == RL_WRITE_A ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM);
		return 0;
	case RL_WRITE_B:
	case RL_FENCED_B:
		write_b(chain, IBV_WR_RDMA_WRITE, step == RL_FENCED_B ? IBV_SEND_FENCE : 0);
		return 0;
	case RL_ATOMIC_B:
		write_b(chain, atomic_b(client) ? IBV_WR_ATOMIC_WRITE : IBV_WR_RDMA_WRITE, 0);
		return 0;
	case RL_IMM_B:
		write_b(chain, IBV_WR_RDMA_WRITE_WITH_IMM, 0);
		return 0;
	case RL_SEND:
		add(chain, IBV_WR_SEND, out_msg(client), RL_MSG_HEAD + record_len(client), RL_POOL, 0);
		return 0;
	case RL_FLUSH_RECORD:
		return flush(chain, rl_off(&client->params, client->msg->seq), record_len(client));
	case RL_FLUSH_TAIL:
		return flush(chain, RL_TAIL, rl_tail_bytes(&client->params));
	case RL_FLUSH_ALL:
		return flush(chain, 0, 0);
	case RL_WAIT:
		return post_and_wait(chain);
	case RL_CALL_A:
		return call(chain, RL_FLUSH_A);
	case RL_CALL_B:
		return call(chain, RL_FLUSH_B);
	case RL_IMM_CALL_A:
		return imm_call(chain, false);
	case RL_IMM_CALL_B:
		return imm_call(chain, true);
	case RL_SEND_CALL:
		return call(chain, RL_APPEND);
	case RL_END:
		break;
	}
	return 0;
}

int rl_append(struct rl_client *client)
{
	const uint8_t *step = rl_method(&client->params)->step;
	struct chain chain;
	int rc = 0;

	memset(&chain, 0, sizeof(chain));
	chain.client = client;
	client->msg->op = RL_APPEND;
	memcpy(out_msg(client), client->msg, RL_MSG_HEAD + record_len(client));
	rl_make_tail(&client->params, out_word(client, WORD_TAIL), client->msg->seq);
	for (unsigned i = 0; i < sizeof(((struct rl_method *)0)->step) && step[i] != RL_END && !rc; i++)
		rc = do_step(&chain, (enum rl_step)step[i]);
	return rc;
}

/* --- one at a time --- */

bool rl_nap(uint64_t *ns)
{
	bool longer = *ns < NAP_MAX_NS;

	*ns = !*ns ? NAP_MIN_NS : *ns < NAP_MAX_NS / 2 ? 2 * *ns : NAP_MAX_NS;
	rt_sleep(*ns);
	return longer;
}

int rl_lock(struct rl_client *client)
{
	uint64_t *back = out_word(client, WORD_BACK);
	uint64_t nap = 0, free_word;
	struct ibv_send_wr *wr;
	struct chain chain;
	int rc;

	memset(&chain, 0, sizeof(chain));
	chain.client = client;
	for (;;) {
		free_word = 2 * client->next;
		wr = add(&chain, IBV_WR_ATOMIC_CMP_AND_SWP, back, sizeof(*back), RL_WORDS, 0);
		wr->wr.atomic.remote_addr = client->conn.region[RL_WORDS].base;
		wr->wr.atomic.rkey = client->conn.region[RL_WORDS].rkey;
		wr->wr.atomic.compare_add = free_word;
		wr->wr.atomic.swap = free_word | 1;
		rc = post_and_wait(&chain);
		if (rc || *back == free_word)
			return rc;
		client->next = *back / 2;
		if (*back & 1)
			rl_nap(&nap);
	}
}

int rl_read_head(struct rl_client *client, uint64_t *head)
{
	const void *word;
	int rc = rpc_read(&client->conn, RL_WORDS, offsetof(struct rl_words, head), sizeof(*head), &word);

	if (!rc)
		memcpy(head, word, sizeof(*head));
	return rc;
}

int rl_room(struct rl_client *client)
{
	uint64_t nap = 0;
	int rc;

	for (;;) {
		if (client->next - client->head <= rl_slots(&client->params))
			return 0;
		if (!rl_ring(&client->params))
			return -ENOSPC;
		rc = rl_read_head(client, &client->head);
		if (rc)
			return rc;
		if (client->next - client->head > rl_slots(&client->params))
			rl_nap(&nap);
	}
}

int rl_unlock(struct rl_client *client)
{
	struct chain chain;

	memset(&chain, 0, sizeof(chain));
	chain.client = client;
	*out_word(client, WORD_LOCK) = 2 * client->next;
	add(&chain, IBV_WR_RDMA_WRITE, out_word(client, WORD_LOCK), sizeof(uint64_t), RL_WORDS,
	    offsetof(struct rl_words, lock));
	return post(&chain);
}
