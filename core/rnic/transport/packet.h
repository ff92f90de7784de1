/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_TRANSPORT_PACKET_H
#define TM_RNIC_TRANSPORT_PACKET_H
/*
 * A packet of the reliable connection, extended reliable connection, unreliable connection or
 * unreliable datagram service, its transport headers as C fields in host byte order. InfiniBand
 * Architecture Specification volume 1, chapter 9: BTH 9.2, DETH 9.3.2, RETH 9.3.3, AtomicETH 9.3.4,
 * AETH 9.3.5; annex A19: FETH. A link that puts packets on a real wire does the
 * byte order.
 *
 * Packets and their payload come from free lists of the net. One owner at a
 * time: its maker, then the link, then the receiving queue pair, which
 * keeps a request until its data have landed or its READ has been answered. The
 * last group of fields says how far that queue pair has got with it.
 *
 * Segmentation offload: one struct packet may stand for several packets of a SEND or WRITE that
 * follow each other. It has their payloads in a row, the first one's sequence number, and the
 * opcode that the whole would have if the path's MTU were so large. Sequence numbers, and with them
 * all else that the peers say to each other, are those of the packets that it stands for.
 */
#include <infiniband/verbs.h>
#include <string.h>
#include "core/rnic/opcode.h"
#include "core/rnic/ground.h"

struct rnic_net;
struct rnic_mr;

/* AETH syndromes (9.7.5.2, tables 44 to 46). */
enum syndrome {
	AETH_ACK = 0x1f,     /* low bits: no credit limit */
	AETH_RNR_NAK = 0x20, /* low bits: timer */
	AETH_NAK_SEQUENCE = 0x60,
	AETH_NAK_INVALID_REQUEST = 0x61,
	AETH_NAK_REMOTE_ACCESS = 0x62,
	AETH_NAK_REMOTE_OPERATION = 0x63,
	AETH_KIND = 0x60
};

#define ATOMIC_BYTES   8
#define QPN_MANAGEMENT 1 /* the queue pair of the connection manager's datagrams */
#define PSN_MASK       0xffffffu
/* a - b of 24-bit packet sequence numbers: negative, zero or positive. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}
static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/*
 * Which packet of whose work this is, in names that survive a rebuild: the
 * operation's label, the message's number under that label on that queue pair,
 * the packet's number in the message. `round` counts transmissions, `copy` is 1
 * for the second one of a packet that the link delivers twice.
 */
struct packet_name {
	const struct actor *who; /* the sending queue pair */
	struct op_label op;
	uint16_t occurrence, copy;
	uint32_t message, index, round;
	uint32_t qp;	  /* at the responder: its queue pair's number */
	uint32_t request; /* at the responder, for posted data: the number of the request, from 1 */
	uint64_t id;	  /* of the message, unique. 0: not known here, it came by a wire */
	uint8_t operation; /* in `operations`; not known of what came by a wire */
	bool send;	   /* of a SEND */
	bool answer;	   /* what a READ or an atomic brings to the requester */
};

#define PACKET_SMALL 64	 /* bytes of payload that need no buffer */
#define PACKET_LINES 128 /* a packet's payload never touches more lines than that */

struct packet {
	struct packet *next;
	struct rnic_net *net; /* whose free lists it belongs to */
	uint32_t peer;	      /* the link's number of the destination */
	uint32_t from;	      /* of one that has come in: of the sender */
	uint64_t sent, left;  /* ns: when its NIC took it, and began to send it; simulated links */
	uint32_t src_qpn;     /* on the wire in datagrams only */
	uint32_t dest_qpn;    /* BTH */
	uint32_t psn;
	uint8_t service; /* enum service */
	uint8_t opcode;	 /* enum opcode, whatever the service */
	uint8_t more;	 /* segmentation offload: packets after the first */
	bool solicited, ack_req;
	uint8_t syndrome; /* AETH */
	uint32_t msn;
	uint64_t va; /* RETH, AtomicETH */
	uint32_t rkey;
	uint32_t dma_len; /* bytes of the whole READ or WRITE, or to be flushed */
	union {
		uint8_t placement;     /* FETH */
		uint8_t traffic_class; /* of a datagram: IPv4's TOS */
	};
	uint8_t selectivity; /* FETH */
	uint64_t swap_add, compare;
	uint64_t original; /* AtomicAckETH */
	__be32 imm;
	uint32_t invalidate; /* IETH: an rkey */
	uint32_t qkey;	     /* DETH */
	uint32_t len;	     /* bytes of payload */
	uint8_t *payload;
	uint8_t payload_class; /* of its buffer; 0: it lies in `small`, or belongs to the link */
	struct packet_name name;

	/* At the responder: when and where it takes effect. */
	uint64_t due;	    /* ns of virtual time: not before */
	uint64_t after;	    /* not posted: so many posted packets must have landed */
	uint32_t done;	    /* bytes landed in order, or fetched */
	uint16_t line;	    /* lines landed, or fetched */
	int16_t picked;	    /* dma_order: the line that was chosen to land next */
	uint16_t picks;	    /* ...: as the first of its queue: how often one was chosen */
	bool asked;	    /* the next line's delay is over */
	bool duplicate;	    /* READ: asked for again */
	uint32_t torn;	    /* not 0: so many bytes, less one, land; then rnic_net.torn() */
	uint32_t msg_off;   /* SEND: offset of the payload in the message */
	uint32_t msg_len;   /* last packet: bytes of the message */
	uint32_t rq_seq;    /* SEND, IMM: the receive request that takes it */
	bool bad_key;	    /* SEND: it was to invalidate what the peer may not */
	struct rnic_mr *mr; /* WRITE: where it goes */
	uint8_t *host;
	struct packet *reply; /* READ: the response that is being filled */
	struct packet *kept;  /* READ: complete ones that wait for its turn, in order */
	uint64_t landed[PACKET_LINES / 64]; /* dma_order: bit map of lines */

	uint8_t small[PACKET_SMALL];
};

/* memset to zero by a call: what compilers make of a constant size here ("rep stos") costs three
 * times
 * that. */
static inline void clear(void *memory, size_t len)
{
	__asm__("" : "+r"(len));
	memset(memory, 0, len);
}

/* A packet with room for len bytes of payload, everything else zero. */
struct packet *packet_get(struct rnic_net *net, uint32_t len);
/* The same for a queue pair of this number: what is to be sent next. */
struct packet *packet_to(struct rnic_net *net, uint32_t dest_qpn, uint32_t len);
void packet_put(struct rnic_net *net, struct packet *pkt);
struct packet *packet_copy(struct rnic_net *net, const struct packet *pkt);
#define SEGMENTS_MOST 32 /* packets that one may stand for */
/* The i-th of the packets that this one stands for, from 0 on; NULL: its length is not that of so
 * many packets. */
struct packet *packet_segment(struct rnic_net *net, const struct packet *all, uint32_t i);
/* The same with `room` bytes, whatever they are, in front of its payload. */
struct packet *packet_copy_after(struct rnic_net *net, const struct packet *pkt, uint32_t room);

#define HEADER_BYTES 58 /* of every packet: Ethernet, IPv4, UDP, BTH, ICRC */
/* Bytes of the Ethernet frames, without preamble and check sequence, of all packets it stands
 * for. */
uint32_t packet_wire_bytes(const struct packet *pkt);

/* Buffers of at least len bytes (len at most 2^30); `class` goes back to buffer_put. */
uint8_t *buffer_get(struct rnic_net *net, uint32_t len, uint8_t *class);
void buffer_put(struct rnic_net *net, uint8_t *buf, uint8_t class);

/* First in, first out. */
struct packet_queue {
	struct packet *head, *tail;
};
static inline void queue_push(struct packet_queue *queue, struct packet *pkt)
{
	pkt->next = NULL;
	if (queue->head)
		queue->tail->next = pkt;
	else
		queue->head = pkt;
	queue->tail = pkt;
}
static inline struct packet *queue_pop(struct packet_queue *queue)
{
	struct packet *pkt = queue->head;
	if (pkt)
		queue->head = pkt->next;
	return pkt;
}

#endif
