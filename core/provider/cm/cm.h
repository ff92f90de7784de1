/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_CM_H
#define TM_PROVIDER_CM_CM_H
/*
 * The connection manager: librdmacm's functions over the soft RNIC. This header has what its files
 * share.
 *
 *   cm.c         the library's state and its thread; identifiers
 *   cm_event.c   event channels and events
 *   cm_addr.c    addresses, ports, routes: rdma_bind_addr(), rdma_resolve_*(), rdma_getaddrinfo()
 *   cm_conn.c    the program's side of a connection: rdma_listen(), rdma_connect(), rdma_accept()
 *   cm_talk.c    the protocol: what a message or a timeout does
 *   cm_send.c    sending messages until they are answered
 *   cm_qp.c      queue pairs: making them, and their transitions
 *   cm_fabric.c  the fabric: ports, listeners, processes that have died
 *   cm_none.c    what is refused: multicast, rsockets
 *
 * Messages (mad.h) pass through queue pair 1 (qp1.h) and the link as packets. The connection
 * manager uses that and libibverbs' public functions only, so that it can be a library of its own
 * beside one with the soft RNIC.
 *
 * A process that is killed sends no REJ or DREQ. The processes of the fabric that have a connection
 * with it watch it, and act as if they had received these messages.
 *
 * Everything runs under one lock. A thread of the library, which starts with the device, receives
 * messages and keeps the timeouts. It never touches a queue pair: the program's own calls do that,
 * when they retrieve an event. Order of locks: this one, then the NIC's.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "core/provider/base/export.h"
#include "core/provider/base/fabric_dir.h"
#include "core/provider/cm/qp1.h"
#include "core/provider/cm/sockaddr.h"

struct cm_channel {
	struct rdma_event_channel user; /* fd: readable while there are events */
	struct cm_event *first, **last;
};

struct cm_event {
	struct rdma_cm_event user;
	struct cm_id *owner; /* the identifier that it is reported to; of a CONNECT_REQUEST the
				listening one */
	struct cm_event *next;
	uint8_t private_data[CM_MAX_PRIVATE];
};

struct cm_id {
	struct rdma_cm_id user;
	struct cm_id *next, **prev;
	enum cm_state state;
	bool sync;	  /* synchronous: the channel is its own, and calls wait for their event */
	unsigned unacked; /* events that the program has retrieved and not acknowledged */
	uint64_t deadline_ms; /* 0: none */
	/* A message that waits for an answer is sent again every again_ms until give_up_ms.
	 * Before no_listener_ms the answer that there is no listener is not final. */
	uint64_t again_ms, give_up_ms, no_listener_ms;
	uint8_t retries;	 /* of a REP or DREQ: how often it is sent again */
	bool patient;		 /* an MRA has come: the peer's program needs time */
	uint8_t sent[MAD_BYTES]; /* the last REQ, REP, DREQ */
	/* The address. */
	bool reserved;
	/* A listening identifier. */
	int backlog;
	int waiting; /* connection requests that the program has not retrieved */
	/* The connection. */
	uint32_t number, peer_number; /* the communication IDs of both ends; 0: none yet */
	unsigned peer_slot; /* the slot of the peer's process; 0: it is not of this fabric */
	uint64_t tid;
	struct cm_conn conn;
	union ibv_gid peer_gid;
	struct ibv_ece ece, peer_ece;
	struct ibv_sa_path_rec path;
	uint8_t private_data[CM_MAX_PRIVATE]; /* of the connection request */
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

/* A connection whose identifier is destroyed: its DREQ is sent until it is answered. */
struct cm_pending_dreq {
	struct cm_pending_dreq *next;
	union ibv_gid gid;
	uint32_t number;
	unsigned peer_slot;
	uint64_t again_ms, deadline_ms, give_up_ms;
	uint8_t mad[MAD_BYTES];
};

/* TIME_WAIT: the last answer to a request or a REP, which is repeated if that comes again. */
struct cm_replay {
	union ibv_gid gid;
	uint32_t peer_number; /* 0: none */
	bool silent;
	uint64_t until_ms;
	uint8_t mad[MAD_BYTES];
};
#define CM_REPLAYS 64

struct cm {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	int cancel_state; /* the cancellation state of the thread that holds the lock */
	bool locked;	  /* written by that thread */
	pid_t pid;	  /* the process that has opened the device; 0: none */
	struct cm_device device;
	struct cm_id *ids;
	struct cm_pending_dreq *dreqs;
	struct cm_replay replay[CM_REPLAYS];
	unsigned replays; /* kept so far */
	const struct nic_mads *mads;
	int watched[FABRIC_SLOTS]; /* by slot: 0, or 1 + a descriptor that is readable once the
			     slot's process has ended */
	int epoll, wake;	   /* -1: the thread has not been started */
};
extern struct cm cm;

static inline struct cm_limits cm_limits(void)
{
	return (struct cm_limits){cm.device.attr.max_qp_rd_atom,
				  cm.device.attr.max_qp_init_rd_atom};
}

/* -1, with errno: how librdmacm's functions fail. */
static inline int cm_fail(int error)
{
	errno = error;
	return -1;
}

/* --- cm.c --- */

void cm_lock(void);
void cm_unlock(void);
/* Locked: wait until the program has acknowledged what it has retrieved. */
void cm_wait_for_acks(struct cm_id *id);
uint64_t cm_now_ms(void);
/* Locked: open the device if it is not open. 0 or -errno. */
int cm_open_device(void);
/* Locked: associate the identifier with the device. */
void cm_bind_device(struct cm_id *id);
/* Locked: a new identifier whose events go to `channel`. NULL: out of memory. */
struct cm_id *cm_new_id(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
			enum ibv_qp_type type);
/* Locked: free an identifier that the program does not know of, or no longer. */
void cm_free_id(struct cm_id *id);
/* Locked: close the identifier: tell its peer, if it has one, and release its port. */
void cm_hang_up(struct cm_id *id);
/* Locked: make the thread compute its next timeout again. */
void cm_wake(void);
void cm_set_deadline(struct cm_id *id, uint64_t ms);
/* Locked: a transition of the state machine in cm_talk.c. Other ones are errors of the library. */
void cm_to_state(struct cm_id *id, enum cm_state to);
/* Locked: watch the process in this slot, to learn when it ends. -ESRCH: it has ended. If an
 * earlier process of the slot is still watched and has ended, its connections are closed now. */
int cm_watch(unsigned slot);

/* --- cm_event.c --- */

struct rdma_event_channel *cm_new_channel(void);
/* Locked: a new event of an identifier; the caller fills in the details. NULL: out of memory. */
struct cm_event *cm_event(struct cm_id *id, enum rdma_cm_event_type type, int status);
/* Locked: put the event into the channel of `owner`. Destroying the owner drops it, or waits
 * until it is acknowledged. */
void cm_report(struct cm_event *event, struct cm_id *owner);
/* Locked: drop the events that the program has not retrieved. */
void cm_forget_events(struct cm_id *id);
/* If the identifier is synchronous: wait for the event of the operation that was begun. Not
 * locked. */
int cm_complete(struct cm_id *id);

/* --- cm_addr.c --- */

/* Are these the same address, whatever the ports? An IPv4 address may be written as an IPv6 one. */
bool cm_addr_same(const struct sockaddr *a, const struct sockaddr *b);
/* A port's range in the file of locks, one lock for each address. */
#define CM_PORT_RANGE (1ull << 33)
uint64_t cm_port_range(uint16_t port);
/* Locked: release the port. */
void cm_release_port(struct cm_id *id);
/* Locked: reserve the address for listening. 0 or -errno. */
int cm_claim_listen(struct cm_id *id);
/* Locked: the identifier of this process that listens for a request to this address; NULL: none. */
struct cm_id *cm_find_listener(uint16_t port_space, const struct sockaddr *dst);
int cm_bind(struct cm_id *id, const struct sockaddr *addr);

/* --- cm_conn.c --- */

/* Locked: the program retrieves this event; do what comes with it. */
void cm_retrieved(struct cm_event *event);

/* --- cm_talk.c --- */

/* Locked, by the thread: a message has arrived; a deadline has passed; the process in this slot
 * has ended. */
void cm_take(const uint8_t mad[MAD_BYTES], const union ibv_gid *from);
void cm_timed_out(struct cm_id *id);
void cm_peer_died(unsigned slot);
void cm_established(struct cm_id *id);
/* Tell the peer that the identifier is closed. */
void cm_tell_peer(struct cm_id *id);

/* --- cm_send.c; all of it is locked --- */

/* 4.096 us * 2^timeout, as messages have it. */
uint64_t cm_timeout_ms(uint8_t timeout);
/* The time that all tries take together. */
uint64_t cm_answer_ms(void);
/* A message of this type, without private data. */
struct cm_message cm_message_of(const struct cm_id *id, enum cm_type type);
/* Send a message once. */
int cm_send_message(const union ibv_gid *to, const struct cm_message *message);
void cm_send(struct cm_id *id, enum cm_type type);
/* Send a request with id->private_data until it is answered, or until id->give_up_ms. 0 or
 * -errno. */
int cm_ask(struct cm_id *id);
/* Send a REP or a DREQ until it is answered. */
void cm_send_until_answered(struct cm_id *id, const struct cm_message *message);
/* Send id->sent again, and set the next deadline. */
void cm_send_again(struct cm_id *id);
/* Send a REJ: the last answer to a request or a REP. */
void cm_answer(struct cm_id *id, const struct cm_message *message);
/* Keep id->sent to repeat it. `silent`: duplicates are recognized, and get no answer. */
void cm_keep_replay(const struct cm_id *id, bool silent);
/* Repeat the last answer to this communication ID. False: there was none. */
bool cm_replay(const union ibv_gid *to, uint32_t number);
/* Give the identifier a new communication ID. */
void cm_choose_number(struct cm_id *id);
/* Send the DREQ of an identifier that is destroyed until it is answered; it was answered. */
void cm_send_dreq(struct cm_id *id);
void cm_forget_dreq(uint32_t number, const union ibv_gid *from);
/* By the thread: send the pending DREQs again that are due. When the next one is; UINT64_MAX:
 * never. */
uint64_t cm_resend_dreqs(uint64_t now);
/* The process ends: wait until other hosts have been told, for a moment at most. */
void cm_linger(void);
uint32_t cm_random(void);

/* --- cm_qp.c --- */

/* Locked: bring the queue pair to RTS. 0 or -errno; without a queue pair there is nothing to do. */
int cm_qp_connect(struct cm_id *id);
void cm_qp_error(struct cm_id *id);

/* --- cm_fabric.c --- */

/* Announce that this process listens at the address. 0 or -errno. */
int cm_fabric_listen(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
void cm_fabric_unlisten(uint16_t port_space, const struct sockaddr *addr, bool v6_only);
/* Where to send a request for this address, and the slot of the process that listens there; 0:
 * it is on another host. */
unsigned cm_fabric_route(uint16_t port_space, const struct sockaddr *dst, union ibv_gid *gid);
/* The slot of the process that owns this communication ID; 0: it is on another host. */
unsigned cm_fabric_slot(const union ibv_gid *gid, uint32_t number);
/* A descriptor that is readable once the process in this slot has ended; -ESRCH: it has ended;
 * -errno. */
int cm_fabric_watch(unsigned slot);
/* Can the device reach this address? Is it an address of this host? */
bool cm_fabric_reaches(const struct sockaddr *addr);
bool cm_fabric_is_own(const struct sockaddr *addr);
/* Reserve [from, from + len) of the fabric's ports, or release it. 0 or -errno. */
int cm_fabric_reserve(uint64_t from, uint64_t len, bool shared);
void cm_fabric_release(uint64_t from, uint64_t len);
/* Remove the files of processes that were killed. */
void cm_fabric_sweep(void);
/* The process ends; or this is a child of fork(), which has no part in it. */
void cm_fabric_leave(void);
void cm_fabric_in_child(void);

#endif
