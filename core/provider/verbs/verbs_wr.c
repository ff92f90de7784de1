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
	struct ibv_qp_ex_with_flush ex_flush;
	struct tm_qp_ex_with_commit ex_commit;
} bare;

/* Each function of a queue pair that returns nothing: X(member, also of `bare`, name,
 * parameters, arguments). */
/* clang-format off */
#define BUILDER(name, operation, params, args) X(ex, name, params, args)
#define FUNCTIONS \
	WR_BUILDERS(BUILDER) \
	X(ex, wr_start, (struct ibv_qp_ex *qp), (qp)) \
	X(ex, wr_abort, (struct ibv_qp_ex *qp), (qp)) \
	X(ex, wr_set_ud_addr, (struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey), \
	  (qp, ah, qpn, qkey)) \
	X(ex, wr_set_inline_data, (struct ibv_qp_ex *qp, void *addr, size_t len), (qp, addr, len)) \
	X(ex, wr_set_inline_data_list, (struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list), \
	  (qp, n, list)) \
	X(ex, wr_set_sge, (struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t len), \
	  (qp, lkey, addr, len)) \
	X(ex, wr_set_sge_list, (struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list), (qp, n, list)) \
	X(ex_flush, wr_flush, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, \
	  uint8_t level), (qp, rkey, addr, len, type, level)) \
	X(ex_commit, wr_commit, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len), \
	  (qp, rkey, addr, len)) \
	X(ex_commit, wr_commit_imm, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, \
	  __be32 imm), (qp, rkey, addr, len, imm)) \
	X(ex_commit, wr_commit_payload, (struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, \
	  const void *payload), (qp, rkey, addr, len, payload))
/* clang-format on */

#define X(of, name, params, args)            \
	static void name params              \
	{                                    \
		struct nic *nic = nic_get(); \
		nic_lock(nic);               \
		bare.of.name args;           \
		nic_unlock(nic);             \
	}
FUNCTIONS
#undef X

static int wr_complete(struct ibv_qp_ex *qp)
{
	process_posts(__builtin_return_address(0));
	return CALL(bare.ex.wr_complete(qp));
}

/* One that took the lock twice would wait for itself; and `bare` serves all queue pairs. */
#define LOCK(has, bare_one, one)                                      \
	do {                                                          \
		assert((has) != (one));                               \
		assert(!(has) || !(bare_one) || (bare_one) == (has)); \
		if (has) {                                            \
			(bare_one) = (has);                           \
			(has) = (one);                                \
		}                                                     \
	} while (0)

struct ibv_qp *nic_lock_wr(struct ibv_qp *ibv)
{
	struct rnic_qp *qp = (struct rnic_qp *)ibv;

	if (!qp || !qp->extended)
		return ibv;
	LOCK(qp->ex.wr_complete, bare.ex.wr_complete, wr_complete);
#define X(of, name, params, args) LOCK(qp->of.name, bare.of.name, name);
	FUNCTIONS
#undef X
	return ibv;
}
