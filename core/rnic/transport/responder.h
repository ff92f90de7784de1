/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_RESPONDER_H
#define TM_RNIC_TRANSPORT_RESPONDER_H
/* The responder of a queue pair: responder.c, landing.c. */
#include "core/rnic/transport/link.h"
#include "core/rnic/transport/reorder_buffer.h"
#include "core/rnic/transport/time_wait.h"

#define MAX_RD_ATOMIC 16

/* An atomic, FLUSH, ATOMIC WRITE or COMMIT that was executed: a duplicate gets the same answer. */
struct saved_answer {
	uint32_t psn;
	bool used;
	uint8_t opcode;	   /* of the request */
	uint64_t original; /* atomic */
};

struct responder {
	uint32_t psn;	    /* expected */
	uint32_t acked_psn; /* the last one that was answered */
	uint32_t msn;
	struct reorder_buffer reorder; /* requests after a gap */
	struct final_answer final_answer;
	bool nak_sent;	     /* no second NAK before the sequence is whole again */
	bool not_ready;	     /* it was an RNR NAK */
	bool failed;	     /* an error NAK is on its way; nothing more is let in */
	bool told;	     /* a receive request has told of the error that is refused */
	bool established;    /* the program was told that a request came in before RTS */
	uint8_t in_message;  /* IS_SEND or IS_WRITE: first packet seen, last not yet */
	uint8_t recv_status; /* enum ibv_wc_status of the receive request that the error hits */
	uint64_t va;	     /* WRITE: where the next packet goes */
	uint32_t rkey, left; /* WRITE: bytes to come */
	uint32_t msg_off;    /* bytes of the message so far */
	struct packet_queue land; /* posted packets on their way into memory, in order */
	/* Last packets of messages that have landed: receives complete in order, and a
	 * COMMIT_WITH_IMM before them has not taken effect. */
	struct packet_queue received;
	struct packet *next_line;      /* dma_order: one that has the line to land next, or NULL; */
	unsigned ready_lines;	       /* of so many it was chosen */
	uint64_t land_tail, land_done; /* how many were ever queued, have landed */
	struct packet_queue answers; /* not posted, and the acknowledgements after them, in order */
	struct packet *next_read;    /* dma_order: the READ that fetches the next line, or NULL; */
	unsigned ready_reads;	     /* of so many it was chosen */
	uint32_t nonposted;	     /* let in and not answered, duplicates not counted */
	/* atomics=hca: the word that the atomic at the head of answers has read and not written
	 * yet, or NULL; what it has read; or that this is to wait for another queue pair's. */
	uint8_t *atomic_at;
	uint64_t atomic_read;
	bool atomic_waits;
	struct saved_answer saved[MAX_RD_ATOMIC];
	unsigned saved_next;
	struct alarm land_alarm, answer_alarm;
	struct link_patience patience; /* with a link that has no room for a READ's responses */
	bool land_turn,
		answer_turn; /* with a scheduler: this event has not done its one thing yet */
	bool flush_rq;	     /* once everything has landed */
};

void resp_reset(struct rnic_qp *qp);
/* A request has come in. Takes the packet. */
void resp_request(struct rnic_qp *qp, struct packet *pkt);
/* Answer `request` with a packet of the given opcode and payload length, named after it. */
struct packet *resp_answer(struct rnic_qp *qp, const struct packet *request, uint8_t opcode,
			   uint32_t len);
/* Acknowledge up to the request, in its turn. */
void resp_acknowledge(struct rnic_qp *qp, const struct packet *request);
/* Refuse the request: NAK in its turn, then the error state. */
void resp_refuse(struct rnic_qp *qp, const struct packet *request, uint32_t psn,
		 enum syndrome syndrome);
/* The region that a request which is not posted names; NULL: not allowed, or out of bounds. */
struct rnic_mr *resp_region(struct rnic_qp *qp, const struct packet *request);
/* Put an answer on the link now. */
void resp_send(struct rnic_qp *qp, struct packet *answer);
/* The first byte of the one word that a request which is not posted works on. */
uint64_t resp_word(const struct packet *request);
/* The answer to an atomic, FLUSH, ATOMIC WRITE or COMMIT that was executed. */
struct packet *resp_result(struct rnic_qp *qp, const struct packet *request, uint64_t original);
/* The receive request `seq` is over; pkt: the last packet of its message, NULL: none. */
void resp_complete(struct rnic_qp *qp, uint32_t seq, enum ibv_wc_status status,
		   const struct packet *pkt);
/* The same for a message that has arrived, now or when those before it are over. True: later; its
 * packet is kept until then. */
bool resp_received(struct rnic_qp *qp, struct packet *pkt);
void resp_flush(struct rnic_qp *qp);
/* Does the queue pair's state let requests in? */
bool resp_active(const struct rnic_qp *qp);
/* Is there a receive request for the message whose packet has come? */
bool resp_ready(struct rnic_qp *qp);
/* May a packet whose turn it is be let in? Else an AETH syndrome, and in resp.recv_status what is
 * wrong with the receive request. */
uint8_t resp_check(struct rnic_qp *qp, struct packet *pkt);
uint8_t resp_check_send(struct rnic_qp *qp, const struct packet *pkt);
/* Let it in: takes the packet. */
void resp_accept(struct rnic_qp *qp, struct packet *pkt);

#endif
