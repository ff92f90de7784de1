/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_WORK_QUEUE_H
#define TM_RNIC_OBJECTS_WORK_QUEUE_H
/*
 * Work queues, and the requests in them.
 *
 * Requests are numbered from 0 in each queue; every mark in a queue (what is posted, sent,
 * acknowledged, completed, free again) is such a number. All numbers wrap.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/rt/choose.h"

struct rnic_net;

/* A posted send request. */
struct wqe {
	uint64_t wr_id;
	uint8_t opcode;	   /* the operation's number (opcode.h) */
	uint8_t nonposted; /* all but SEND and WRITE: at most max_rd_atomic of them are under way */
	bool signaled, fence, solicited;
	bool rung;    /* the CPU that posted it has told the RNIC */
	bool started; /* it has packet sequence numbers */
	uint8_t copy_class;
	__be32 imm;
	uint8_t *copy;	/* inline data, or iWARP's send buffer; NULL: gather from the list */
	uint64_t bytes; /* of the message */
	uint64_t va;	/* remote */
	union {
		struct {
			uint64_t swap_add, compare;
			uint64_t range_len; /* bytes of the peer's range (NAMES_RANGE) */
		};
		struct {
			uint64_t len;	 /* bytes */
			uint32_t window; /* its slot */
			uint32_t lkey;	 /* of the region */
			int access;
		} bind;
	};
	union {
		uint8_t placement;     /* of a FLUSH */
		uint8_t traffic_class; /* of a datagram */
	};
	uint8_t selectivity;	    /* of a FLUSH */
	uint32_t rkey;		    /* remote; of a window: to be bound as, or to be invalidated */
	uint32_t peer, remote_qkey; /* of a datagram */
	uint32_t remote_qpn;	    /* the same */
	bool addressed,
		foreign_address; /* it has these; from an address handle of another domain */
	uint32_t first_psn, psns;
	struct op_label op;
	uint16_t occurrence;
	uint32_t message, round;
	uint64_t id; /* of the message; no other has it */
	uint32_t sges;
	struct ibv_sge sge[];
};

/* A posted receive request. */
struct rqe {
	uint64_t wr_id;
	uint32_t sges;
	struct ibv_sge sge[];
};

struct work_queue {
	uint8_t *ring; /* room slots of `stride` bytes; grows up to what max_wr needs */
	uint8_t class; /* of the ring's buffer */
	uint32_t room, stride;
	uint32_t max_wr, max_sge;
	uint32_t posted; /* next number to be given */
	uint32_t next;	 /* next to be worked on. Send: its first packet; receive: taken by a
			  * message */
	uint32_t done;	 /* next to complete */
	uint32_t freed;	 /* next whose completion the user has not taken out yet */
};
void work_queue_init(struct work_queue *queue, size_t entry, uint32_t max_wr, uint32_t max_sge);
/* A free slot for number `seq`; `oldest`: the lowest number still in use. */
void *work_queue_slot(struct rnic_net *net, struct work_queue *queue, uint32_t oldest,
		      uint32_t seq);
/* The queue goes: its ring serves another one. */
void work_queue_drop(struct rnic_net *net, struct work_queue *queue);
static inline void *queue_at(const struct work_queue *queue, uint32_t seq)
{
	return queue->ring + (size_t)(seq & (queue->room - 1)) * queue->stride;
}

#endif
