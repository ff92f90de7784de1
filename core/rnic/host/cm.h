/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_CM_H
#define TM_RNIC_HOST_CM_H
/*
 * The connection manager of a simulated host: librdmacm, and the part of the kernel that speaks for
 * it. This header has what its files share.
 *
 *   cm.c       identifiers, event channels, events
 *   cm_addr.c  addresses and ports; rdma_getaddrinfo()
 *   cm_conn.c  the program's side of a connection: rdma_listen(), rdma_connect(), rdma_accept()
 *   cm_qp.c    queue pairs: making them, and their transitions; endpoints
 *   cm_talk.c  the protocol: what a message, a timeout, the end of a process does
 *
 * It behaves as the provider's does (core/provider/cm/cm.h), which is for real processes. Here one
 * host listens, the server, and every address is the server's. Messages are datagrams between queue
 * pairs 1, and packets of the simulated link: they take time, and are lost, delayed and duplicated
 * as others are. Their sender is the host's actor "cm": "c1/cm message 1 packet 1 try 1".
 *
 * An identifier that the program has destroyed, or that its process has left behind, becomes the
 * kernel's: it is there until its last message is answered, and then for a while, to tell
 * duplicates (TIME_WAIT).
 */
#include <netinet/in.h>
#include <string.h>
#include "core/rnic/cm_common.h"
#include "core/rnic/host/host.h"
#include "core/rnic/host/rdma.h"
#include "core/rnic/transport/packet.h"
#include "core/rnic/transport/responder.h"

enum cm_type {
	CM_REQ = 1,
	CM_MRA, /* a request has come in, and the program needs time */
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP
};

/* As it is in the packet. All that is not said is zero. */
struct cm_message {
	uint8_t type; /* enum cm_type */
	uint8_t reason, mtu, ack_timeout;
	uint32_t local_id, remote_id; /* the communication IDs of its sender and receiver */
	uint32_t remote_qpn;	      /* of a DREQ: the receiver's */
	struct cm_params params;      /* from the sender's point of view */
	union {
		uint8_t private_data[CM_MAX_PRIVATE];
		struct {
			uint8_t private_data[CM_REQ_PRIVATE];
			struct sockaddr_in6 source, destination; /* IPv4 addresses are mapped */
		} request;
	};
};
_Static_assert(sizeof(struct cm_message) == 16 + sizeof(struct cm_params) + CM_MAX_PRIVATE,
	       "a packet has no bytes that are not set");
_Static_assert(sizeof(struct cm_message) <= MAD_BYTES, "a message is one datagram");

struct cm_channel {
	struct rdma_event_channel user;
	struct host *host;
	struct cm_event *first, **last;
	uint64_t arrivals;
};

struct cm_event {
	struct rdma_cm_event user;
	struct cm_id *owner; /* the identifier that it is reported to; of a CONNECT_REQUEST the
				listening one */
	struct cm_event *next;
	uint64_t nth;	    /* of its channel */
	struct op_label op; /* of the message that has brought it */
	uint8_t private_data[CM_MAX_PRIVATE];
};

struct cm_id {
	struct rdma_cm_id user;
	struct host *host;
	struct cm_id *next, **prev;
	enum cm_state state;
	bool sync;    /* synchronous: the channel is its own, and calls wait for their event */
	bool kernels; /* the program does not know it any more */
	bool bound;   /* it has a port */
	bool freed;
	unsigned unacked; /* events that the program has retrieved and not acknowledged */
	/* A message that waits for an answer, and is sent again and again. */
	struct cm_message sent;
	struct packet_name sent_name;
	unsigned tries, most_tries;
	struct alarm alarm;
	/* A listening identifier. */
	int backlog;
	int waiting; /* connection requests that the program has not retrieved */
	/* The connection. */
	uint32_t number, peer_number; /* the communication IDs of both ends; 0: none yet */
	unsigned peer;		      /* host */
	struct cm_conn conn;
	struct ibv_sa_path_rec path;
	/* Set by rdma_create_ep(). */
	struct ibv_qp_init_attr *qp_init;
	struct ibv_pd *ep_pd;
	void *connect_data;
	size_t connect_len;
	/* Objects in `user` that the library has made. */
	bool own_send_cq, own_recv_cq;
};

static inline struct cm_id *to_cm(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}
static inline const struct rnic_ground *cm_ground(const struct host *host)
{
	return &host->all->net->ground;
}
static const struct cm_limits cm_limits = {MAX_RD_ATOMIC, MAX_RD_ATOMIC};

/* -1, with errno: how librdmacm's functions fail. */
int host_cm_fail(int error);

/* --- cm.c --- */

/* A new identifier whose events go to `channel`. */
struct cm_id *host_cm_new_id(struct host *host, struct rdma_event_channel *channel, void *context,
			     enum rdma_port_space ps);
void host_cm_free_id(struct cm_id *id);
/* Associate it with the host's device. 0 or -errno. */
int host_cm_bind_device(struct cm_id *id);
/* A new event of an identifier; the caller fills in the details. */
struct cm_event *host_cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status,
			       struct op_label op);
/* Put it into the channel of `owner`. */
void host_cm_report(struct cm_event *event, struct cm_id *owner);
/* Both, of an event without details. */
void host_cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status, struct op_label op);
/* Drop the events that the program has not retrieved. */
void host_cm_forget_events(struct cm_id *id);
/* If the identifier is synchronous: wait for the event of the operation that was begun. */
int host_cm_complete(struct cm_id *id);
/* The operation that the current task works for. */
struct op_label host_cm_op(const struct host *host);

/* --- cm_addr.c --- */

struct sockaddr_in6 host_cm_widen(const struct sockaddr_storage *addr);
void host_cm_narrow(struct sockaddr_storage *to, const struct sockaddr_in6 *from);
int host_cm_bind(struct cm_id *id, const struct sockaddr *addr);
/* The identifier that listens at the port; NULL: none. */
struct cm_id *host_cm_find_listener(const struct host *host, __be16 port);
__be16 *host_cm_port(struct sockaddr_storage *addr);

/* --- cm_conn.c --- */

/* The program retrieves this event; do what comes with it. */
void host_cm_retrieved(struct cm_event *event);

/* --- cm_qp.c --- */

/* Bring the queue pair to RTS. 0 or -errno; without a queue pair there is nothing to do. */
int host_cm_qp_connect(struct cm_id *id);
void host_cm_qp_error(struct cm_id *id);

/* --- cm_talk.c --- */

struct cm_message host_cm_message_of(const struct cm_id *id, enum cm_type type);
/* Send it once. */
void host_cm_send(struct cm_id *id, const struct cm_message *message, struct op_label op);
/* Send it until it is answered. */
void host_cm_send_until_answered(struct cm_id *id, const struct cm_message *message,
				 struct op_label op);
/* Send a REJ: the last answer. */
void host_cm_answer(struct cm_id *id, const struct cm_message *message, struct op_label op);
/* Give it a communication ID, and a first PSN. */
void host_cm_choose_number(struct cm_id *id);
void host_cm_established(struct cm_id *id, struct op_label op);
/* The program destroys the identifier, or its process ends: tell the peer, and leave the rest to
 * the kernel. */
void host_cm_close(struct cm_id *id, struct op_label op);
void host_cm_process_ended(struct host *host);
/* The net carries its messages from now on. */
void host_cm_start(struct rnic_net *net);

#endif
