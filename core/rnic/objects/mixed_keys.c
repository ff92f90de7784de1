/* SPDX-License-Identifier: BSD-3-Clause */
/* See mixed_keys.h. Only called where a key was refused. */
#include "core/rnic/objects/mixed_keys.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/opcode.h"

void mixed_rkey(const struct rnic_qp *qp, uint8_t opcode, uint32_t rkey, int access, uint64_t va,
		uint64_t len)
{
	const struct operation *operation = operation_of_packet(opcode);
	struct key_mixup mixup = {.kind = MIXUP_RKEY, .qp = qp};
	if (!qp->hca->net->mixed_up)
		return;
	mixup.request = operation ? operation->name : "request";
	mixup.mr = mr_mixed_up(qp->hca, qp->ibv.pd, rkey, access, va, len, true);
	if (mixup.mr)
		qp->hca->net->mixed_up(&mixup);
}

void mixed_lkey(const struct rnic_qp *qp, const struct ibv_pd *pd, const struct ibv_sge *sge,
		unsigned sges, int access, const char *request)
{
	struct key_mixup mixup = {.kind = request ? MIXUP_LKEY_SENT : MIXUP_LKEY_RECEIVED,
				  .qp = qp,
				  .request = request};
	if (!qp->hca->net->mixed_up)
		return;
	for (unsigned i = 0; i < sges && !mixup.mr; i++)
		mixup.mr = mr_mixed_up(qp->hca, pd, sge[i].lkey, access, sge[i].addr, sge[i].length,
				       false);
	if (mixup.mr)
		qp->hca->net->mixed_up(&mixup);
}
