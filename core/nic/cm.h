/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_NIC_CM_H
#define TM_NIC_CM_H
/*
 * The connection manager: librdmacm's calls over the soft RNIC. What its files share.
 *
 *   cm.c        the library's one state and its thread; identifiers
 *   cm_event.c  event channels and events
 *   cm_addr.c   addresses, ports, routes: rdma_bind_addr(), rdma_resolve_*(), rdma_getaddrinfo()
 *   cm_conn.c   the conversation: rdma_listen(), rdma_connect(), ..., and what messages and time do to it
 *   cm_qp.c     queue pairs: their creation and their transitions
 *   cm_rsocket.c  rsockets, of which there are none
 *   cm_wire.c   messages between processes, and the sockets that carry them
 *
 * It stands on libibverbs' public functions alone, so that it may be a library of its own beside another one
 * that has the soft RNIC.
 *
 * Both ends keep one socket between them for as long as they are connected. A process that dies takes its
 * end of the socket with it, and that is how the other one learns of it: a socket that ends means what the
 * kernel's connection manager says for a process that is gone, a REJ or a DREQ.
 *
 * All of it runs under one lock. A thread of the library, which starts with the first socket, reads messages
 * and minds the time. It never touches a queue pair: that is done by the program's own calls, as it retrieves
 * an event. Order of locks: this one, then the NIC's.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define CM_EXPORT __attribute__((visibility("default")))

/* Bytes of private data that a message has room for. All of them are shown to the receiver, as InfiniBand
 * does. */
#define CM_REQ_PRIVATE	    56
#define CM_REP_PRIVATE	    196
#define CM_REJ_PRIVATE	    148
#define CM_SIDR_REQ_PRIVATE 180
#define CM_SIDR_REP_PRIVATE 136
#define CM_MAX_PRIVATE	    196

/* Why a REJ, a SIDR_REP was sent: InfiniBand's numbers, which the program sees as an event's status. */
enum { CM_REJ_TIMEOUT = 4, CM_REJ_NO_SERVICE = 8, CM_REJ_CONSUMER = 28, CM_REJ_ECE = 35 };
enum { CM_SIDR_OK = 0, CM_SIDR_UNSUPPORTED = 1, CM_SIDR_REJECT = 2 };

enum cm_type {
	CM_REQ = 1,
	CM_MRA, /* the request waits for the program: have patience */
	CM_REP,
	CM_RTU,
	CM_REJ,
	CM_DREQ,
	CM_DREP,
	CM_SIDR_REQ,
	CM_SIDR_REP,
	CM_TYPES
};

struct cm_params {
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
	uint32_t qpn, qkey, psn;
};

struct cm_message {
	enum cm_type type;
	uint16_t port_space, reason;
	struct cm_params params; /* as the sender sees them */
	union ibv_gid gid;	 /* the sender's */
	uint8_t mtu;		 /* enum ibv_mtu */
	uint8_t ack_timeout;
	struct sockaddr_storage src, dst; /* of the request */
	struct ibv_ece ece;
	uint8_t private_data[CM_MAX_PRIVATE];
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_LISTEN,
	CM_REQ_SENT,
	CM_REQ_RCVD,
	CM_REP_SENT,
	CM_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT,
	CM_OVER
};

struct cm_id;

/* Where the other end of a socket is. */
struct cm_place {
	bool connecting; /* not there yet */
	uint32_t peer;	 /* another host's IPv4 address, host byte order; 0: this host, this net */
};

/* A socket that the thread looks after: one end of a conversation, or one that listens. */
struct cm_wire {
	int fd;
	bool listens;
	int adopted; /* a socket that takes this one's place after the message; -1: none */
	struct cm_place place;
	struct cm_id *id;     /* NULL: nobody's yet, or no more */
	uint64_t deadline_ms; /* nobody's: what is it waiting for? */
	size_t in_len, out_len;
	uint8_t *in, *out;
	struct cm_wire *next, **prev;
};

struct cm_channel {
	struct rdma_event_channel user; /* fd: an eventfd that is readable while there are events */
	struct cm_event *first, **last;
};

struct cm_event {
	struct rdma_cm_event user;
	struct cm_id *owner; /* of a CONNECT_REQUEST: the one that listens */
	struct cm_event *next;
	uint8_t private_data[CM_MAX_PRIVATE];
};

struct cm_id {
	struct rdma_cm_id user;
	struct cm_id *next, **prev;
	enum cm_state state;
	bool sync;	      /* the channel is its own; calls wait for their event */
	unsigned unacked;     /* events that the program holds */
	struct cm_wire *wire; /* of the conversation, or the one that it listens at */
	uint64_t deadline_ms; /* 0: none */
	/* REQ_SENT, and no socket yet: how long to try when there is no room, when nobody listens. */
	uint64_t give_up_ms, nobody_ms;
	/* The address. */
	bool reserved, reuse, v6_only;
	uint8_t tos, ack_timeout; /* ack_timeout 0: as usual */
	/* That listens. */
	int backlog;
	int waiting; /* requests whose event the program has not retrieved */
	/* The conversation. */
	struct cm_params local, remote;
	union ibv_gid peer_gid;
	uint8_t peer_mtu, peer_ack_timeout;
	struct ibv_ece ece, peer_ece;
	struct ibv_sa_path_rec path;
	uint8_t private_data[CM_MAX_PRIVATE]; /* of the request */
	bool active;			      /* it has asked */
	/* Of rdma_create_ep(). */
	struct ibv_qp_init_attr *qp_init;
	struct ibv_pd *ep_pd;
	void *connect_data;
	size_t connect_len;
	/* What is the library's own in `user`. */
	bool own_send_cq, own_recv_cq;
};

static inline struct cm_id *to_cm(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}
static inline bool cm_is_ud(const struct cm_id *id)
{
	return id->user.qp_type == IBV_QPT_UD;
}

/* The device, opened once; NULL until then. */
struct cm_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
};

struct cm {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	int cancel_state; /* of the thread that holds the lock, before */
	struct cm_device device;
	struct cm_id *ids;
	struct cm_wire *wires, *dead, *far;
	int epoll, wake; /* -1: the thread does not run */
};
extern struct cm cm;

/* -1, with errno: how librdmacm's functions fail. */
static inline int cm_fail(int error)
{
	errno = error;
	return -1;
}

/* --- cm.c --- */

void cm_lock(void);
void cm_unlock(void);
/* Locked: until the program has acknowledged what it has retrieved. */
void cm_wait_for_acks(struct cm_id *id);
uint64_t cm_now_ms(void);
/* Locked. The device, opened now if it is not; -errno. */
int cm_open_device(void);
/* Locked: the identifier works with the device from now on. */
void cm_bind_device(struct cm_id *id);
/* Locked: an identifier whose events go to `channel`. NULL: out of memory. */
struct cm_id *cm_new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			enum ibv_qp_type type);
/* Locked: of which the program knows nothing (yet, or any more). */
void cm_free_id(struct cm_id *id);
/* Locked: the thread looks after this socket. 0 or -errno; the socket is closed then. */
int cm_watch(int fd, bool listens, const struct cm_place *place, struct cm_id *id, struct cm_wire **out);
/* Locked: others than this host's processes may ask now, if the link lets them. 0 or -errno. */
int cm_listen_far(void);
/* Locked: whoever sets a deadline needs it. 0 or -errno. */
int cm_start_thread(void);
/* Locked: close it. */
void cm_drop(struct cm_wire *wire);
/* Locked: tell the identifier's other side, if there is one, that it is no more. */
void cm_hang_up(struct cm_id *id);
/* Locked: the thread has to look at deadlines, or at what there is to send, anew. */
void cm_wake(void);
void cm_set_deadline(struct cm_id *id, uint64_t ms);

/* --- cm_event.c --- */

struct rdma_event_channel *cm_new_channel(void);
/* Locked: an event of an identifier, without details; the caller fills in what it knows. NULL: out of memory.
 */
struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Locked: the program may retrieve it. `owner`: whose destruction waits for it, and takes it away. */
void cm_report(struct cm_event *event, struct cm_id *owner);
/* Locked: take back the events that the program has not retrieved. */
void cm_forget_events(struct cm_id *id);
/* Of an identifier that is synchronous: wait for the event of what was begun. Not locked. */
int cm_complete(struct cm_id *id);

/* --- cm_addr.c --- */

socklen_t cm_addr_len(const struct sockaddr *addr);
uint16_t cm_addr_port(const struct sockaddr *addr);
bool cm_addr_any(const struct sockaddr *addr);
/* Are these one address, ports aside? An IPv4 address may be written as an IPv6 one. */
bool cm_addr_same(const struct sockaddr *a, const struct sockaddr *b);
/* The net's locks: what a port of a port space has of them, one for each address. */
#define CM_PORT_RANGE (1ull << 33)
uint64_t cm_port_range(uint16_t port_space, uint16_t port);
/* Locked: the port is others' again. */
void cm_release_port(struct cm_id *id);
/* Locked: may it listen at its address? 0 or -errno. */
int cm_claim_listen(struct cm_id *id);
/* Locked: who listens here for a request to this address; NULL: nobody. */
struct cm_id *cm_find_listener(uint16_t port_space, const struct sockaddr *dst);
int cm_bind(struct cm_id *id, const struct sockaddr *addr);

/* --- cm_conn.c --- */

/* Locked, by the thread: a message came in; the socket ended; the deadline has passed. */
void cm_take_message(struct cm_wire *wire, const struct cm_message *message);
void cm_wire_ended(struct cm_wire *wire, int error);
void cm_timed_out(struct cm_id *id);
/* Locked: the program retrieves this event; what is to be done then. */
void cm_retrieved(struct cm_event *event);

/* --- cm_qp.c --- */

/* Locked. To the state in which it sends; 0 or -errno. Without a queue pair there is nothing to do. */
int cm_qp_connect(struct cm_id *id);
void cm_qp_error(struct cm_id *id);
/* Of both ends: how many READs and atomics one may have under way at the other. */
void cm_limit(struct cm_params *params);
/* The way to the peer. */
struct ibv_ah_attr cm_path(const struct cm_id *id);
/* enum ibv_qp_attr_mask's timeout of an acknowledgement. */
uint8_t cm_ack_timeout(const struct cm_id *id);

/* --- cm_wire.c --- */

#define CM_WIRE_BYTES 296

/* Sockets between processes. Each returns a non-blocking descriptor or -errno. */
int cm_wire_listen(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
/* For other hosts; -ENODEV: the link has none. */
int cm_wire_listen_far(void);
/* -ECONNREFUSED: nobody listens there. -EAGAIN: try again later. */
int cm_wire_connect(uint16_t port_space, const struct sockaddr *dst, struct cm_place *place);
int cm_wire_accept(int listener, struct cm_place *place);
/* A request from another host is for another process of this net: it has the socket, too, now. 0 or -errno.
 */
int cm_wire_hand_on(struct cm_wire *wire, const struct cm_message *request);
/* The listening socket at this address is no more. */
void cm_wire_unlisten(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
/* Is this address the device's? Of this host, if it is to be `own`. */
bool cm_wire_reaches(const struct sockaddr *addr);
bool cm_wire_is_own(const struct sockaddr *addr);
/* Keep [from, from + len) of the net's ports, or give it back. 0 or -errno. */
int cm_wire_reserve(uint64_t from, uint64_t len, bool shared);
void cm_wire_release(uint64_t from, uint64_t len);
/* What a process that was killed has left. */
void cm_wire_sweep(void);
/* The process ends, or is a child that has nothing of it. */
void cm_wire_leave(void);
void cm_wire_in_child(void);

/* Send, as far as the socket takes it; the rest goes as it has room. 0 or -errno. */
int cm_wire_send(struct cm_wire *wire, const struct cm_message *message);
int cm_wire_flush(struct cm_wire *wire);
/* 1: a message; 0: not yet; -errno: the socket has ended, or what came is no message. */
int cm_wire_receive(struct cm_wire *wire, struct cm_message *message);

#endif
