/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_REQUESTER_H
#define TM_RNIC_TRANSPORT_REQUESTER_H
/* The requester of a queue pair: requester.c. */
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/loss_recovery.h"

struct wqe;

struct requester {
	uint32_t acked;	    /* the oldest request that is not acknowledged; <= sq.next <= rung <=
			       sq.posted */
	uint32_t rung;	    /* next request of which the RNIC has not been told */
	uint32_t announced; /* next request for which no doorbell is on its way */
	uint32_t packet;    /* of the request sq.next: next to be sent */
	uint32_t next_psn;  /* for the next request that starts */
	uint32_t una;	    /* the oldest packet sequence number that is not acknowledged */
	uint32_t nonposted; /* under way */
	uint8_t retry_left, rnr_left;
	bool implied;	    /* a missing READ response was asked for again, no progress since */
	uint64_t deadline;  /* ns: retransmit then */
	uint64_t rnr_until; /* ns: the receiver, or the link, was not ready; 0: it is */
	struct link_patience patience;
	struct alarm tx, timer, rnr, late; /* late: see post_ask() */
	struct loss_recovery recovery;
};

void req_reset(struct rnic_qp *qp);
void req_drop_copy(struct rnic_qp *qp, struct wqe *wqe);
/* There may be something to send. */
void req_kick(struct rnic_qp *qp);
/* In SQD: nothing is under way any more? The program is told once, if it wants to know. */
void req_drained(struct rnic_qp *qp);
/* A response has come in. Takes the packet. */
void req_response(struct rnic_qp *qp, struct packet *pkt);
/* The link is lossy from now on, and was not before. */
void req_becomes_lossy(struct rnic_qp *qp);
/* Complete everything that is posted with WR_FLUSH_ERR. */
void req_flush(struct rnic_qp *qp);

#endif
