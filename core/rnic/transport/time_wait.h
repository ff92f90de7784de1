/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_TIME_WAIT_H
#define TM_RNIC_TRANSPORT_TIME_WAIT_H
/* Answers of queue pairs that serve no more: time_wait.c. */
#include "core/rnic/transport/packet.h"

struct rnic_net;
struct rnic_qp;

/* The last answer of a responder that serves no more. */
struct final_answer {
	unsigned host;
	uint32_t qpn, peer, peer_qpn;
	uint32_t acked_psn, refused_psn;
	uint8_t syndrome; /* of the NAK; 0: nothing was refused */
	uint64_t until;	  /* ns: the peer has given up by then */
};

/* The queue pair in the error state repeats its final answer, if that is an answer to this
 * request. */
void time_wait_repeat(struct rnic_qp *qp, const struct packet *request);
/* The queue pair is going to be destroyed; for some time its final answer is kept. */
void time_wait_enter(struct rnic_qp *qp);
/* A packet for a queue pair that no longer exists gets its final answer. */
void time_wait_answer(struct rnic_net *net, const struct packet *request);

#endif
