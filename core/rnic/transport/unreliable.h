/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_UNRELIABLE_H
#define TM_RNIC_TRANSPORT_UNRELIABLE_H
/* The responders of unreliable services: unreliable.c. */

struct packet;
struct rnic_qp;

/* A packet for a queue pair that acknowledges nothing has come in. Takes it. */
void unreliable_take(struct rnic_qp *qp, struct packet *pkt);

#endif
