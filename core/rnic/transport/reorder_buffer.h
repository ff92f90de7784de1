/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_REORDER_BUFFER_H
#define TM_RNIC_TRANSPORT_REORDER_BUFFER_H
/* Packets that came ahead of their turn, on a lossy link: reorder_buffer.c. */
#include "core/rnic/transport/packet.h"

struct rnic_qp;

/* Packets that came ahead of their turn, in the order of their numbers. */
struct reorder_buffer {
	struct packet *head;
	unsigned count;
	unsigned seen;	/* came while just this was missing */
	uint32_t gap;	/* what is missing in front of them ... */
	uint64_t until; /* ns: ... is not just late, from then on; 0: nothing is missing */
	struct alarm alarm;
};

/* Keep a packet until its turn comes; `expected` is what is missing. Takes it: one that is too far
 * ahead, or there already, is dropped. */
void reorder_push(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected,
		  struct packet *pkt);
/* The first packet kept, from `expected` on; earlier ones are dropped. NULL: none. */
struct packet *reorder_first(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected);
/* Take out the first one. */
struct packet *reorder_pop(struct reorder_buffer *reorder);
void reorder_drop(struct rnic_qp *qp, struct reorder_buffer *reorder);
/* Are packets kept, and what is missing in front of them is not just late? Not known yet: fire
 * comes later. */
bool reorder_has_gap(struct rnic_qp *qp, struct reorder_buffer *reorder, uint32_t expected,
		     rnic_event_fn *fire);

#endif
