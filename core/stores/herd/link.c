/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs, and what a request's check is over. See herd.h. */
#include <errno.h>
#include <string.h>
#include "core/stores/herd/herd.h"

#define DEPTH (2 * HERD_RECVS)

struct ibv_qp *herd_qp_open(struct ibv_pd *pd, struct ibv_cq *cq, bool datagrams, unsigned sends,
			    uint32_t client, struct rpc_greeting *hello)
{
	struct ibv_qp *qp = rpc_qp_create_unreliable(pd, cq, datagrams,
						     sends > DEPTH ? sends : DEPTH);

	if (!qp)
		return NULL;
	int rc = rpc_hello(hello, qp, client, RPC_REQUESTS);
	if (!rc)
		rc = rpc_qp_init(qp, IBV_ACCESS_REMOTE_WRITE);
	if (!rc)
		return qp;
	ibv_destroy_qp(qp);
	errno = -rc;
	return NULL;
}

int herd_qp_ready(struct ibv_qp *qp, const struct rpc_greeting *own,
		  const struct rpc_greeting *peer)
{
	int rc = rpc_qp_rtr(qp, own, peer ? peer : own, 0);

	return rc ? rc : rpc_qp_rts(qp, own->psn);
}

uint32_t herd_crc(const struct herd_head *head, const void *value)
{
	struct herd_head plain = *head;

	plain.req.crc = head->req.op == KV_PUT ? kv_crc(value, head->req.vlen) : 0;
	return kv_crc(&plain, sizeof(plain));
}
