/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's part of an append. Work requests are gathered into a batch until a step
 * that waits; the batch is posted at once, only its last request signaled: a completion
 * stands for all before it. What comes out in the end is what the method's authors would
 * write by hand: ibv_wr_start(), ibv_wr_rdma_write(), ibv_wr_flush(), ibv_wr_complete().
 *
 * What is posted lies in the connection's buffer after the room for GETs:
 *
 *	message (its record is a), tail (b), lock word, 8 bytes for what comes back
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/verbs_compat.h"
#include "core/rdma_commit.h"
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

#define NAP_MIN_NS 1000
#define NAP_MAX_NS 1000000000

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

static bool is_flush(unsigned step)
{
	return step == APPEND_FLUSH_RECORD || step == APPEND_FLUSH_TAIL || step == APPEND_FLUSH_ALL;
}

static bool is_commit(unsigned step)
{
	return step == APPEND_COMMIT_RECORD || step == APPEND_COMMIT_TAIL;
}

uint64_t rl_send_ops(const struct tm_params *params)
{
	const uint8_t *step = rl_method(params)->step;
	uint64_t ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;

	if (rl_knobs(params)->wait)
		ops |= IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	for (unsigned i = 0; i < APPEND_STEPS && step[i] != APPEND_END; i++) {
		if (step[i] == APPEND_SEND)
			ops |= IBV_QP_EX_WITH_SEND;
		if (step[i] == APPEND_IMM_A || step[i] == APPEND_IMM_B)
			ops |= IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
		if (step[i] == APPEND_ATOMIC_B)
			ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
		if (is_commit(step[i]))
			ops |= TM_QP_EX_WITH_COMMIT;
		if (is_flush(step[i]))
			ops |= rl_knobs(params)->flush == RL_FLUSH_NATIVE
				       ? IBV_QP_EX_WITH_FLUSH
				       : IBV_QP_EX_WITH_RDMA_READ;
	}
	return ops;
}

/* --- batches --- */

/* The next work request of the batch has these flags; its builder comes next. */
static struct ibv_qp_ex *next_request(struct rl_client *client, unsigned flags)
{
	if (!client->building)
		ibv_wr_start(client->qp);
	client->building = true;
	client->qp->wr_id = 0;
	client->qp->wr_flags = flags;
	return client->qp;
}

/* The request's bytes in the connection's buffer. */
static void set_bytes(struct rl_client *client, const void *local, size_t len)
{
	assert((const uint8_t *)local >= client->conn.buf &&
	       (const uint8_t *)local + len <= client->conn.buf + client->conn.data_bytes);
	ibv_wr_set_sge(client->qp, client->conn.mr->lkey, (uintptr_t)local, (uint32_t)len);
}

static int post(struct rl_client *client)
{
	if (!client->building)
		return 0;
	client->building = false;
	if (client->conn.failed) {
		ibv_wr_abort(client->qp);
		return -EIO;
	}
	return -ibv_wr_complete(client->qp);
}

/* Post the batch and wait for the completion of its last request, which is signaled. */
static int post_and_wait(struct rl_client *client)
{
	struct rpc_conn *conn = &client->conn;
	struct ibv_wc wc;
	int n;

	if (!client->building)
		return 0;
	int rc = post(client);
	if (rc)
		return rc;
	if (!RT_WAITS) {
		conn->unawaited++;
		return 0;
	}
	do {
		while (!(n = ibv_poll_cq(conn->cq, 1, &wc)))
			rt_yield();
	} while (n > 0 && wc.status == IBV_WC_SUCCESS && conn->unawaited && conn->unawaited--);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		conn->failed = true;
	return conn->failed ? -EIO : 0;
}

/* --- steps --- */

static size_t record_len(const struct rl_client *client)
{
	return rl_record_bytes(&client->msg->record);
}

/* The remote address of the pool's [off]. */
static uint64_t pool_addr(const struct rl_client *client, uint64_t off)
{
	return client->conn.region[RL_POOL].base + off;
}

static void write_a(struct rl_client *client, bool imm, unsigned flags)
{
	uint64_t seq = client->msg->seq, addr = pool_addr(client, rl_off(&client->params, seq));
	uint32_t rkey = client->conn.region[RL_POOL].rkey;
	struct ibv_qp_ex *qp = next_request(client, flags);

	if (imm)
		ibv_wr_rdma_write_imm(qp, rkey, addr, htobe32(rl_imm(seq, false)));
	else
		ibv_wr_rdma_write(qp, rkey, addr);
	set_bytes(client, &out_msg(client)->record, record_len(client));
}

static void write_b(struct rl_client *client, bool imm, unsigned flags)
{
	uint32_t rkey = client->conn.region[RL_POOL].rkey;
	struct ibv_qp_ex *qp = next_request(client, flags);

	if (imm)
		ibv_wr_rdma_write_imm(qp, rkey, pool_addr(client, RL_TAIL),
				      htobe32(rl_imm(client->msg->seq, true)));
	else
		ibv_wr_rdma_write(qp, rkey, pool_addr(client, RL_TAIL));
	set_bytes(client, out_word(client, WORD_TAIL), rl_tail_bytes(&client->params));
}

/* An ATOMIC WRITE takes 8 bytes. For a longer tail there is none. */
static void atomic_write_b(struct rl_client *client, unsigned flags)
{
	if (rl_tail_bytes(&client->params) == sizeof(uint64_t))
		ibv_wr_atomic_write(next_request(client, flags), client->conn.region[RL_POOL].rkey,
				    pool_addr(client, RL_TAIL), out_word(client, WORD_TAIL));
	else
		write_b(client, false, flags);
}

/*
 * Was a request refused, and is it to be tried again? Others wait for the client that has the turn,
 * so it tries for some seconds; then its connection counts as failed.
 */
static bool again(struct rl_client *client, int rc, uint64_t *nap)
{
	if (rc != -ENOMEM || client->conn.failed)
		return false;
	if (rl_nap(nap))
		return true;
	client->conn.failed = true;
	return false;
}

/* FLUSH of a range (len 0: of the whole region), or what stands for it. */
static int flush(struct rl_client *client, uint64_t off, size_t len, unsigned flags)
{
	enum rl_flush how = (enum rl_flush)rl_knobs(&client->params)->flush;
	uint32_t rkey = client->conn.region[RL_POOL].rkey;
	uint64_t nap = 0;
	const void *data;

	switch (how) {
	case RL_FLUSH_NATIVE:
		ibv_wr_flush(next_request(client, flags), rkey, pool_addr(client, off), len,
			     IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
			     len ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
		return 0;
	case RL_FLUSH_READ:
		ibv_wr_rdma_read(next_request(client, flags), rkey, pool_addr(client, off));
		set_bytes(client, out_word(client, WORD_BACK), sizeof(uint64_t));
		return 0;
	case RL_FLUSH_READ_OTHER_QP:
		break;
	}
	int rc = post_and_wait(client);
	if (rc)
		return rc;
	do {
		rc = rpc_read(&client->other, RL_POOL, off, sizeof(uint64_t), &data);
	} while (again(client, rc, &nap));
	return rc;
}

static void commit(struct rl_client *client, uint64_t off, size_t len, unsigned flags)
{
	tm_wr_commit(next_request(client, flags), client->conn.region[RL_POOL].rkey,
		     pool_addr(client, off), len);
}

struct rpc_conn *rl_messages(struct rl_client *client)
{
	return rl_knobs(&client->params)->qps == RL_QPS_ONE ? &client->conn : &client->other;
}

/* What a message is about has been posted. Nothing orders the message after it if that went to
 * another queue pair; and to wait for its completion says no more than that the NIC has it. */
static int post_before_message(struct rl_client *client)
{
	if (rl_knobs(&client->params)->qps == RL_QPS_TWO_WAIT)
		return post_and_wait(client);
	return post(client);
}

/* A request, and the server's reply. */
static int call(struct rl_client *client, enum rl_op op)
{
	struct rl_msg head;
	size_t len = op == RL_APPEND ? RL_MSG_HEAD + record_len(client) : RL_MSG_HEAD;
	uint64_t nap = 0;
	int rc = post_before_message(client);

	if (rc)
		return rc;
	client->msg->op = op;
	do {
		rc = rpc_call(rl_messages(client), client->msg, len, &head, RL_MSG_HEAD, NULL);
	} while (again(client, rc, &nap));
	return rc ? rc : head.status;
}

static int imm_call(struct rl_client *client, bool tail)
{
	const struct tm_params *params = &client->params;
	uint64_t seq = client->msg->seq;
	uint64_t off = tail ? RL_TAIL : rl_off(params, seq), nap = 0;
	const void *data = tail ? (const void *)out_word(client, WORD_TAIL) : &client->msg->record;
	size_t len = tail ? rl_tail_bytes(params) : record_len(client);
	struct rl_msg head;
	int rc = post(client);

	if (rc)
		return rc;
	do {
		rc = rpc_call_imm(&client->conn, RL_POOL, off, data, len, rl_imm(seq, tail), &head,
				  RL_MSG_HEAD, NULL);
	} while (again(client, rc, &nap));
	return rc ? rc : head.status;
}

/* The message with the record. On a queue pair of its own it is in no batch: it is waited for. */
static int send_record(struct rl_client *client, unsigned flags)
{
	size_t len = RL_MSG_HEAD + record_len(client);
	uint64_t nap = 0;
	int rc;

	if (rl_messages(client) == &client->conn) {
		ibv_wr_send(next_request(client, flags));
		set_bytes(client, out_msg(client), len);
		return 0;
	}
	do {
		rc = rpc_send(&client->other, out_msg(client), len);
	} while (again(client, rc, &nap));
	return rc;
}

/* `flags`: of the request that the step adds. */
static int do_step(struct rl_client *client, enum append_step step, unsigned flags)
{
	switch (step) {
	case APPEND_WRITE_A:
	case APPEND_IMM_A:
		write_a(client, step == APPEND_IMM_A, flags);
		return 0;
	case APPEND_WRITE_B:
	case APPEND_IMM_B:
		write_b(client, step == APPEND_IMM_B, flags);
		return 0;
	case APPEND_FENCED_B:
		write_b(client, false, flags | IBV_SEND_FENCE);
		return 0;
	case APPEND_ATOMIC_B:
		atomic_write_b(client, flags);
		return 0;
	case APPEND_SEND:
		return send_record(client, flags);
	case APPEND_FLUSH_RECORD:
		return flush(client, rl_off(&client->params, client->msg->seq), record_len(client),
			     flags);
	case APPEND_FLUSH_TAIL:
		return flush(client, RL_TAIL, rl_tail_bytes(&client->params), flags);
	case APPEND_FLUSH_ALL:
		return flush(client, 0, 0, flags);
	case APPEND_COMMIT_RECORD:
		commit(client, rl_off(&client->params, client->msg->seq), record_len(client),
		       flags);
		return 0;
	case APPEND_COMMIT_TAIL:
		commit(client, RL_TAIL, rl_tail_bytes(&client->params), flags);
		return 0;
	case APPEND_WAIT:
		return post_and_wait(client);
	case APPEND_CALL_A:
		return call(client, RL_FLUSH_A);
	case APPEND_CALL_B:
		return call(client, RL_FLUSH_B);
	case APPEND_IMM_CALL_A:
		return imm_call(client, false);
	case APPEND_IMM_CALL_B:
		return imm_call(client, true);
	case APPEND_SEND_CALL:
		return call(client, RL_APPEND);
	case APPEND_END:
		break;
	}
	return 0;
}

/* Does this step, or its stand-in, wait for what was posted before it? */
static bool waits(const struct rl_client *client, enum append_step step)
{
	bool calls = step == APPEND_CALL_A || step == APPEND_CALL_B;

	return step == APPEND_WAIT ||
	       (calls && rl_knobs(&client->params)->qps == RL_QPS_TWO_WAIT) ||
	       (is_flush(step) && rl_knobs(&client->params)->flush == RL_FLUSH_READ_OTHER_QP);
}

/* The last step is the commit point: if the method is sound, the record, and the tail that counts
 * it, are durable. */
int rl_append(struct rl_client *client)
{
	const uint8_t *step = rl_method(&client->params)->step;
	unsigned first = 0; /* of the batch */
	uint64_t nap = 0;
	int rc = 0;

	client->msg->op = RL_APPEND;
	memcpy(out_msg(client), client->msg, RL_MSG_HEAD + record_len(client));
	rl_make_tail(&client->params, out_word(client, WORD_TAIL), client->msg->seq);
	for (unsigned i = 0; i < APPEND_STEPS && step[i] != APPEND_END && !rc; i++) {
		enum append_step next = i + 1 < APPEND_STEPS ? (enum append_step)step[i + 1]
							     : APPEND_END;

		if (!client->building)
			first = i;
		rc = do_step(client, (enum append_step)step[i],
			     waits(client, next) ? IBV_SEND_SIGNALED : 0);
		if (again(client, rc, &nap)) {
			i = first - 1;
			rc = 0;
		}
	}
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

/* An atomic on the lock: a compare-and-swap of `free_word`, or 0: the word is only looked at. */
static int lock_atomic(struct rl_client *client, uint64_t free_word)
{
	const struct rpc_region *words = &client->conn.region[RL_WORDS];
	uint64_t at = words->base + offsetof(struct rl_words, lock);
	struct ibv_qp_ex *qp = next_request(client, IBV_SEND_SIGNALED);

	if (free_word)
		ibv_wr_atomic_cmp_swp(qp, words->rkey, at, free_word, free_word | 1);
	else
		ibv_wr_atomic_fetch_add(qp, words->rkey, at, 0);
	set_bytes(client, out_word(client, WORD_BACK), sizeof(uint64_t));
	return post_and_wait(client);
}

int rl_lock(struct rl_client *client)
{
	const uint64_t *back = out_word(client, WORD_BACK);
	uint64_t nap = 0, free_word = 2 * client->next;
	int rc;

	for (;;) {
		rc = lock_atomic(client, free_word);
		if (rc || (free_word && *back == free_word))
			return rc;
		client->next = *back / 2;
		free_word = *back & 1 && rl_knobs(&client->params)->wait ? 0 : 2 * client->next;
		if (*back & 1)
			rl_nap(&nap);
	}
}

int rl_read_head(struct rl_client *client, uint64_t *head)
{
	const void *word;
	int rc = rpc_read(&client->conn, RL_WORDS, offsetof(struct rl_words, head), sizeof(*head),
			  &word);

	if (!rc)
		memcpy(head, word, sizeof(*head));
	return rc;
}

int rl_room(struct rl_client *client)
{
	uint64_t nap = 0;
	int rc;

	if (rt_pm_full())
		return -ENOSPC;
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
	const struct rpc_region *words = &client->conn.region[RL_WORDS];
	uint64_t nap = 0;
	int rc;

	*out_word(client, WORD_LOCK) = 2 * client->next;
	do {
		ibv_wr_rdma_write(next_request(client, 0), words->rkey,
				  words->base + offsetof(struct rl_words, lock));
		set_bytes(client, out_word(client, WORD_LOCK), sizeof(uint64_t));
		rc = post(client);
	} while (again(client, rc, &nap));
	return rc;
}
