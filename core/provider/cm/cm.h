/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_CM_H
#define TM_PROVIDER_CM_CM_H
/*
 * The connection manager: librdmacm's calls over the soft RNIC. What its files share.
 *
 *   cm.c        the library's one state and its thread; identifiers
 *   cm_event.c  event channels and events
 *   cm_addr.c   addresses, ports, routes: rdma_bind_addr(), rdma_resolve_*(), rdma_getaddrinfo()
 *   cm_conn.c   the program's side of a conversation: rdma_listen(), rdma_connect(), rdma_accept()
 *   cm_talk.c   the wire's side of it: what messages and time do
 *   cm_qp.c     queue pairs: their creation and their transitions
 *   cm_fabric.c    the net: ports, who listens, who has died
 *   cm_none.c   what is refused: multicast, rsockets
 *
 * Messages (mad.h) go through queue pair 1 (qp1.h) and the link, as packets. It stands on that and
 * libibverbs' public functions alone, so that it may be a library of its own beside another one
 * that has the soft RNIC.
 *
 * When a process is killed, nobody sends its REJ or DREQ. Those of its net watch the processes that
 * they have to do with, and do what these messages would have done.
 *
 * All of it runs under one lock. A thread of the library, which starts with the device, takes
 * messages and minds the time. It never touches a queue pair: that is done by the program's own
 * calls, as it retrieves an event. Order of locks: this one, then the NIC's.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/provider/base/export.h"
#include "core/provider/cm/qp1.h"
#include "core/provider/cm/sockaddr.h"

#define CM_HOP_LIMIT 64

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
	uint64_t deadline_ms; /* 0: none */
	/* A message that waits for an answer is sent again every again_ms until give_up_ms. Nobody
	 * listens is believed from nobody_ms on. */
	uint64_t again_ms, give_up_ms, nobody_ms;
	uint8_t retries;	 /* how often, of a REP and a DREQ */
	bool patient;		 /* the peer's program is known to think */
	uint8_t sent[MAD_BYTES]; /* the last REQ, REP, DREQ */
	/* The address. */
	bool reserved, reuse, v6_only;
	uint8_t tos, ack_timeout; /* ack_timeout 0: as usual */
	/* That listens. */
	int backlog;
	int waiting; /* requests whose event the program has not retrieved */
	/* The conversation. */
	uint32_t number, peer_number; /* cm_message.local_id, remote_id; 0: none yet */
	unsigned peer_slot;	      /* of the peer's process, if it is of this net; else 0 */
	uint64_t tid;
	struct cm_params local, remote;
	union ibv_gid peer_gid;
	uint8_t mtu; /* enum ibv_mtu, of the path */
	uint8_t peer_ack_timeout;
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
static inline bool cm_same_gid(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The device, opened once; NULL until then. */
struct cm_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
};

/* A conversation whose identifier is gone: its DREQ is sent until it is answered. */
struct cm_parting {
	struct cm_parting *next;
	union ibv_gid gid;
	uint32_t number;
	unsigned peer_slot;
	uint64_t again_ms, deadline_ms, give_up_ms;
	uint8_t mad[MAD_BYTES];
};

/* The last word to a request, or a REP, that it is repeated to. */
struct cm_answer {
	union ibv_gid gid;
	uint32_t peer_number; /* 0: none */
	bool silent;
	uint64_t until_ms;
	uint8_t mad[MAD_BYTES];
};
#define CM_ANSWERS 64

struct cm {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	int cancel_state; /* of the thread that holds the lock, before */
	pid_t pid;	  /* whose device it is; 0: nobody's */
	struct cm_device device;
	struct cm_id *ids;
	struct cm_parting *partings;
	struct cm_answer answer[CM_ANSWERS];
	unsigned answers; /* given so far */
	const struct nic_mads *mads;
	int watched[256]; /* by slot: a descriptor that is readable once its process has ended, plus
			     one */
	int epoll, wake;  /* -1: the thread does not run */
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
/* Locked: tell the identifier's other side, if there is one, that it is no more. */
void cm_hang_up(struct cm_id *id);
/* Locked: the thread has to look at deadlines anew. */
void cm_wake(void);
void cm_set_deadline(struct cm_id *id, uint64_t ms);
/* Locked: hear of the end of the process in this slot. -ESRCH: it has ended. Conversations that are
 * the slot's already may be with an earlier one, whose end is heard of now. */
int cm_watch(unsigned slot);

/* --- cm_event.c --- */

struct rdma_event_channel *cm_new_channel(void);
/* Locked: an event of an identifier, without details; the caller fills in what it knows. NULL: out
 * of
 * memory. */
struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Locked: the program may retrieve it. `owner`: whose destruction waits for it, and takes it
 * away. */
void cm_report(struct cm_event *event, struct cm_id *owner);
/* Locked: take back the events that the program has not retrieved. */
void cm_forget_events(struct cm_id *id);
/* Of an identifier that is synchronous: wait for the event of what was begun. Not locked. */
int cm_complete(struct cm_id *id);

/* --- cm_addr.c --- */

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

/* Locked: the program retrieves this event; what is to be done then. */
void cm_retrieved(struct cm_event *event);

/* --- cm_talk.c --- */

/* Locked, by the thread: a message came in; the deadline has passed; the process in this slot has
 * ended. */
void cm_take(const uint8_t mad[MAD_BYTES], const union ibv_gid *from);
void cm_timed_out(struct cm_id *id);
void cm_peer_died(unsigned slot);
/* Locked, by the thread: send partings again whose time has come; when the next one's does,
 * UINT64_MAX: never. */
uint64_t cm_mind_partings(uint64_t now);
/* Locked. How long all tries take until nobody answers. */
uint64_t cm_answer_ms(void);
/* Locked. The message of this type, without private data. */
struct cm_message cm_message_of(const struct cm_id *id, enum cm_type type);
/* Send once. */
void cm_say(struct cm_id *id, enum cm_type type);
/* A request with id->private_data: until it is answered, or id->give_up_ms. 0 or -errno. */
int cm_ask(struct cm_id *id);
/* A REP, or a DREQ: until it is answered. */
void cm_insist(struct cm_id *id, const struct cm_message *message);
/* The last word to a request, or a REP: a REJ. */
void cm_answer(struct cm_id *id, const struct cm_message *message);
void cm_established(struct cm_id *id);
/* What the other side is told of an identifier that goes. */
void cm_take_leave(struct cm_id *id);
/* The process ends: until other hosts have heard that, for a moment at most. */
void cm_linger(void);
uint32_t cm_random(void);

/* --- cm_qp.c --- */

/* Locked. To the state in which it sends; 0 or -errno. Without a queue pair there is nothing to
 * do. */
int cm_qp_connect(struct cm_id *id);
void cm_qp_error(struct cm_id *id);
/* Of both ends: how many READs and atomics one may have under way at the other. */
void cm_limit(struct cm_params *params);
/* The way to the peer. */
struct ibv_ah_attr cm_path(const struct cm_id *id);
/* enum ibv_qp_attr_mask's timeout of an acknowledgement. */
uint8_t cm_ack_timeout(const struct cm_id *id);

/* --- cm_fabric.c --- */

/* The port at this address is where this process listens. 0 or -errno. */
int cm_fabric_listen(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
void cm_fabric_unlisten(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
/* Where a request for this address goes, and the slot of whoever listens there; 0: another
 * host's. */
unsigned cm_fabric_route(uint16_t port_space, const struct sockaddr *dst, union ibv_gid *gid);
/* The slot of who has this number in a conversation, and this address; 0: somebody of another
 * host. */
unsigned cm_fabric_slot(const union ibv_gid *gid, uint32_t number);
/* A descriptor that is readable once the process in this slot has ended; -ESRCH: it has. */
int cm_fabric_watch(unsigned slot);
/* Is this address the device's? Of this host, if it is to be `own`. */
bool cm_fabric_reaches(const struct sockaddr *addr);
bool cm_fabric_is_own(const struct sockaddr *addr);
/* Keep [from, from + len) of the net's ports, or give it back. 0 or -errno. */
int cm_fabric_reserve(uint64_t from, uint64_t len, bool shared);
void cm_fabric_release(uint64_t from, uint64_t len);
/* What a process that was killed has left. */
void cm_fabric_sweep(void);
/* The process ends, or is a child that has nothing of it. */
void cm_fabric_leave(void);
void cm_fabric_in_child(void);

#endif
