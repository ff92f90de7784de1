/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_LANDING_H
#define TM_RNIC_TRANSPORT_LANDING_H
/* When what the responder has let in takes effect: landing.c. */
#include "core/rnic/transport/packet.h"

struct rnic_qp;

/* Posted data was let in: it becomes visible later. Takes the packet. */
void land_push(struct rnic_qp *qp, struct packet *pkt);
/* Let everything up to the last packet for mr (NULL: everything) land now. */
void land_all(struct rnic_qp *qp, const struct rnic_mr *mr);
/* A request that is not posted was let in (or a finished answer, which only waits for its turn).
 * Takes the packet. */
void answer_push(struct rnic_qp *qp, struct packet *pkt);
void answer_drop_all(struct rnic_qp *qp);

#endif
