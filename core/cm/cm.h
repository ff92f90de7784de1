/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_CM_H
#define TM_CM_CM_H
/*
 * The connection manager: librdmacm, and the part of the kernel that speaks for it. Simulated hosts
 * and real processes (the provider) have the same one, each on a ground of its own (ground.h). This
 * header has what its files and the grounds share.
 *
 *   calls.h    librdmacm's functions
 *   ids.c      identifiers
 *   events.c   event channels and events
 *   addr.c     addresses and routes; rdma_getaddrinfo()
 *   conn.c     the program's side of a connection: rdma_listen(), rdma_connect(), rdma_accept()
 *   talk.c     the protocol: what a message, a timeout, the end of a process does
 *   qp.c       queue pairs: making them, and their transitions; endpoints
 *   mad.h      messages and their bytes
 *   params.h   what the two ends agree on
 *
 * An identifier that the program has destroyed, or that its process has left behind, becomes the
 * kernel's: it is there until its last message is answered, and then for a while, to answer
 * duplicates (TIME_WAIT).
 */
#include "core/cm/mad.h"
#include "core/fail.h"
#include "core/rt/choose.h"

#define CM_MOST_LINGERING 64

struct cm_channel {
	struct rdma_event_channel user; /* fd: readable while there are events */
	struct cm *cm;
	struct cm_event *first, **last;
	uint64_t arrivals;
};

struct cm_event {
	struct rdma_cm_event user;
	struct cm_id *owner; /* the identifier that it is reported to; of a CONNECT_REQUEST the
				listening one */
	struct cm_event *next;
	uint64_t nth;	    /* of its channel */
	struct op_label op; /* in a simulation: of the message that has brought it */
	uint8_t private_data[CM_MAX_PRIVATE];
};

struct cm_id {
	struct rdma_cm_id user;
	struct cm *cm;
	/* What a message finds it by lies together: there may be thousands. */
	struct cm_id *next, **prev;
	enum cm_state state;
	uint32_t number, peer_number; /* the communication IDs of both ends; 0: none yet */
	union ibv_gid peer_gid;
	bool sync;	  /* synchronous: the channel is its own, and calls wait for their event */
	bool kernels;	  /* the program does not know it any more */
	bool lingers;	  /* ... and all has been said */
	bool bound;	  /* it has a port */
	unsigned unacked; /* events that the program has retrieved and not acknowledged */
	/* The last REQ, REP, DREQ or REJ. All but a REJ are sent every again_ns until they are
	 * answered. */
	struct cm_message sent;
	unsigned sends, tries, most_tries;
	uint64_t again_ns;
	unsigned asks;	/* a request for which there was no listener: how often it was made anew */
	bool asks_anew; /* ... and will be */
	bool patient;	/* an MRA has come: the peer's program needs time */
	bool parts;	/* the program has disconnected before the connection was established */
	bool parted;	/* the peer has */
	/* A listening identifier. */
	int backlog;
	int waiting; /* connection requests that the program has not retrieved */
	/* The connection. */
	uint64_t tid;
	struct cm_conn conn;
	struct ibv_ece ece, peer_ece;
	struct ibv_sa_path_rec path;
	/* Set by rdma_create_ep(). */
	struct ibv_qp_init_attr *qp_init;
	struct ibv_pd *ep_pd;
	void *connect_data;
	size_t connect_len;
	/* Objects in `user` that the library has made. */
	bool own_send_cq, own_recv_cq;
};

/* Of a process; in a simulation of a host, which outlives it. The ground fills in the first ones.
 */
struct cm {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint64_t guid;
	uint8_t mtu;
	struct cm_limits limits;
	unsigned most_asks; /* of a request for which there is no listener, one in 20 ms */
	uint64_t linger_ns;
	struct cm_id *ids; /* the last one comes first */
	unsigned lingering;
	const struct op_label *cause; /* the operation that is worked for; NULL: the task's */
};

static inline struct cm_id *to_cm(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}
static inline struct cm_channel *to_channel(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)channel;
}
static inline bool cm_same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}
/* 0 or -errno, as librdmacm says it. */
static inline int cm_result(int rc)
{
	return rc ? errno_minus(-rc) : 0;
}

/* All that follows is called under the lock, unless it says otherwise. */

/* --- ids.c --- */

/* A new identifier whose events go to `channel`. NULL: out of memory. */
struct cm_id *cm_new_id(struct cm *cm, struct rdma_event_channel *channel, void *context,
			enum rdma_port_space ps);
void cm_free_id(struct cm_id *id);
/* A transition of the state machine. Other ones are errors of the library. */
void cm_to_state(struct cm_id *id, enum cm_state to);
/* Associate it with the device. 0 or -errno. */
int cm_bind_device(struct cm_id *id);

/* --- events.c --- */

/* A new event of an identifier; the caller fills in the details. NULL: out of memory. */
struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Put it into the channel of `owner`. */
void cm_report(struct cm_event *event, struct cm_id *owner);
/* Both, of an event without details, if the program knows the identifier. False: out of memory. */
bool cm_tell(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Drop the events that the program has not retrieved. */
void cm_forget_events(struct cm_id *id);
void cm_wait_for_acks(struct cm_id *id);
void cm_acknowledge(struct rdma_cm_event *event);
void cm_free_channel(struct rdma_event_channel *channel);
/* The next event, for the program; NULL: none. */
struct cm_event *cm_retrieve(struct cm_channel *channel);
/* The result of an operation, which was begun if rc, 0 or -errno, is 0. If the identifier is
 * synchronous: wait for its event. Not locked. -1, with errno. */
int cm_complete(struct cm_id *id, int rc);

/* --- addr.c --- */

/* A socket address without what the program may have left uninitialized; family 0: an unknown one.
 */
void cm_copy_address(struct sockaddr_storage *to, const struct sockaddr *from);
int cm_bind(struct cm_id *id, const struct sockaddr *addr);
/* A copy of these bytes, if there are any. False: out of memory. */
bool cm_keep(void **to, const void *from, size_t len);
/* May both have the port? */
bool cm_may_share(const struct cm_id *a, const struct cm_id *b);
/* The identifier that listens for a request to this address; NULL: none. */
struct cm_id *cm_find_listener(const struct cm *cm, uint16_t port_space,
			       const struct sockaddr *dst);

/* --- conn.c --- */

/* The program retrieves this event; do what comes with it. */
void cm_retrieved(struct cm_event *event);

/* --- talk.c --- */

/* 4.096 us * 2^timeout, as messages have it. */
uint64_t cm_timeout_ns(uint8_t timeout);
/* A message has come in; an alarm has gone off; the peer's process has ended. */
void cm_take(struct cm *cm, const union ibv_gid *from, const uint8_t mad[MAD_BYTES]);
void cm_timed_out(struct cm_id *id);
void cm_peer_ended(struct cm_id *id);
/* Ask for a connection, with the private data of id->sent. 0 or -errno. */
int cm_ask(struct cm_id *id);
/* Send a message until it is answered. */
int cm_send_until_answered(struct cm_id *id, const struct cm_message *message);
struct cm_message cm_message_of(const struct cm_id *id, enum cm_type type);
void cm_send_ready(struct cm_id *id);
void cm_refuse(struct cm_id *id, uint16_t reason, const void *private_data, size_t bytes);
void cm_established(struct cm_id *id);
void cm_send_dreq(struct cm_id *id);
/* Tell the peer that the identifier is closed. False: it has to answer that. */
bool cm_part(struct cm_id *id);
/* The program destroys the identifier, or its process ends: leave it to the kernel. */
void cm_close(struct cm_id *id);

/* --- qp.c --- */

/* Bring the queue pair to RTS. 0 or -errno; without a queue pair there is nothing to do. */
int cm_qp_connect(struct cm_id *id);
void cm_qp_error(struct cm_id *id);

#endif
