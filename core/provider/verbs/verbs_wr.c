/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_*() of a queue pair: core/rnic's functions (wr.c there), each under the NIC's lock. The
 * lock is not held from ibv_wr_start() to ibv_wr_complete(): a thread may build batches on two
 * queue pairs at once, or poll in between. wr.c sees to it that no other thread enters a batch; a
 * thread that has to wait for that releases the lock.
 */
#include <assert.h>
#include "core/provider/base/recorded_memory.h"
#include "core/provider/verbs/context.h"
#include "core/provider/verbs/verbs.h"
#include "core/rnic/objects/qp.h"

/* core/rnic's functions: every queue pair gets the same ones. Under the lock. */
static union {
	struct ibv_qp_ex ex;
	struct ibv_qp_ex_with_flush flush;
	struct tm_qp_ex_with_commit commit;
} bare;

#define UNDER_LOCK(call)                     \
	do {                                 \
		struct nic *nic = nic_get(); \
		nic_lock(nic);               \
		call;                        \
		nic_unlock(nic);             \
	} while (0)

static void wr_start(struct ibv_qp_ex *qp)
{
	UNDER_LOCK(bare.ex.wr_start(qp));
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	process_posts(__builtin_return_address(0));
	return CALL(bare.ex.wr_complete(qp));
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	UNDER_LOCK(bare.ex.wr_abort(qp));
}

#define X(builder, operation, params, args)       \
	static void builder params                \
	{                                         \
		UNDER_LOCK(bare.ex.builder args); \
	}
WR_BUILDERS(X)
#undef X

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type,
		     uint8_t level)
{
	UNDER_LOCK(bare.flush.wr_flush(qp, rkey, addr, len, type, level));
}

static void wr_commit(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len)
{
	UNDER_LOCK(bare.commit.wr_commit(qp, rkey, addr, len));
}

static void wr_commit_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len,
			  __be32 imm)
{
	UNDER_LOCK(bare.commit.wr_commit_imm(qp, rkey, addr, len, imm));
}

static void wr_commit_payload(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len,
			      const void *payload)
{
	UNDER_LOCK(bare.commit.wr_commit_payload(qp, rkey, addr, len, payload));
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	UNDER_LOCK(bare.ex.wr_set_ud_addr(qp, ah, qpn, qkey));
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t len)
{
	UNDER_LOCK(bare.ex.wr_set_inline_data(qp, addr, len));
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
	UNDER_LOCK(bare.ex.wr_set_inline_data_list(qp, n, list));
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t len)
{
	UNDER_LOCK(bare.ex.wr_set_sge(qp, lkey, addr, len));
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
	UNDER_LOCK(bare.ex.wr_set_sge_list(qp, n, list));
}

/* One that took the lock twice would wait for itself; and `bare` serves all queue pairs. */
#define LOCK_OP(op)                                                     \
	do {                                                            \
		assert(ex->op != op);                                   \
		assert(!ex->op || !bare.ex.op || bare.ex.op == ex->op); \
		if (ex->op) {                                           \
			bare.ex.op = ex->op;                            \
			ex->op = op;                                    \
		}                                                       \
	} while (0)

struct ibv_qp *nic_lock_wr(struct ibv_qp *ibv)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;
	struct ibv_qp_ex *ex;

	if (!qp || !qp->extended)
		return ibv;
	ex = &qp->ex;
	LOCK_OP(wr_start);
	LOCK_OP(wr_complete);
	LOCK_OP(wr_abort);
#define X(builder, operation, params, args) LOCK_OP(builder);
	WR_BUILDERS(X)
#undef X
	LOCK_OP(wr_set_ud_addr);
	LOCK_OP(wr_set_inline_data);
	LOCK_OP(wr_set_inline_data_list);
	LOCK_OP(wr_set_sge);
	LOCK_OP(wr_set_sge_list);
	if (qp->ex_flush.wr_flush) {
		bare.flush.wr_flush = qp->ex_flush.wr_flush;
		qp->ex_flush.wr_flush = wr_flush;
	}
	if (qp->ex_commit.wr_commit) {
		bare.commit.wr_commit = qp->ex_commit.wr_commit;
		bare.commit.wr_commit_imm = qp->ex_commit.wr_commit_imm;
		bare.commit.wr_commit_payload = qp->ex_commit.wr_commit_payload;
		qp->ex_commit.wr_commit = wr_commit;
		qp->ex_commit.wr_commit_imm = wr_commit_imm;
		qp->ex_commit.wr_commit_payload = wr_commit_payload;
	}
	return ibv;
}
