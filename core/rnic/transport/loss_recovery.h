/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_LOSS_RECOVERY_H
#define TM_RNIC_TRANSPORT_LOSS_RECOVERY_H
/* A requester's recovery from lost packets, on a lossy link: loss_recovery.c. */
#include "core/rnic/transport/reorder_buffer.h"

struct loss_recovery {
	bool on;
	bool unsure;	       /* whether anything was lost at all */
	bool ask;	       /* results that are missing may be asked for again */
	uint32_t from;	       /* una, when the last packet was sent again for it */
	uint32_t end;	       /* over when una is there */
	uint32_t burst;	       /* packets under way meanwhile */
	uint32_t sent, resent; /* next after all that was ever sent, that was sent again */
	uint32_t acked_ahead;  /* next after what is acknowledged, results that are missing aside */
	uint32_t sample_psn;   /* its answer tells how long a round trip takes */
	uint64_t sample_at;    /* ns: when it was sent; 0: there is none */
	uint64_t round_trip;   /* ns */
	uint64_t quiet;	       /* ns without news before a probe */
	uint64_t probe_at;     /* ns */
	struct reorder_buffer reorder; /* results after one that is missing */
};

/* Nothing was sent yet. */
void recovery_reset(struct rnic_qp *qp);
/* Packet una, or what answers it, is missing. False: known. */
bool recovery_begin(struct rnic_qp *qp);
/* The same, known or not. */
void recovery_again(struct rnic_qp *qp);
/* Nothing was heard: the next time after twice the time. */
void recovery_wait_longer(struct rnic_qp *qp);
/* The packet with so many sequence numbers is sent. */
void recovery_sent(struct rnic_qp *qp, const struct packet *pkt, uint32_t psns);
/* una has advanced. */
void recovery_progress(struct rnic_qp *qp);

#endif
