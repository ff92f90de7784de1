/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_RSOCKET_RSOCKET_H
#define TM_PROVIDER_RSOCKET_RSOCKET_H
/*
 * rsockets: librdmacm's streams over RDMA, whose calls are those of sockets. What their files
 * share.
 *
 *   rsocket.c         descriptors, creation, names, the end; sleeping
 *   rsocket_conn.c    rlisten(), raccept(), rconnect(), rshutdown(); what the connection manager
 * reports rsocket_stream.c  completions, credits, rsend() and rrecv() and their relatives
 *   rsocket_iomap.c   riomap(), riounmap(), riowrite()
 *   rsocket_option.c  rsetsockopt(), rgetsockopt()
 *   rsocket_poll.c    rpoll(), rselect()
 *
 * They use the public calls of rdma_cm and verbs, as any program does; nothing here knows what is
 * below.
 *
 * The protocol is librdmacm's (rdma-core, librdmacm/docs/rsocket), so the other end may be any
 * rsocket. Each end gives the other a ring to write into, half by half: a half is offered in the
 * peer's table of two entries, the target list, and written by RDMA WRITEs with immediate data.
 * These say in 32 bits what came:
 *
 *   31 29 28                      0
 *   +----+------------------------+
 *   | op |  bytes, credits, ...   |   enum rs_op
 *   +----+------------------------+
 *
 * Each such message takes a receive request of the peer's. How many the peer may take is said as
 * the number of the last one (modulo 2^16): credits. A few more are kept for messages that are not
 * data.
 *
 * Locks of an rsocket, in this order: sending and receiving, which a call keeps for as long as it
 * takes, so that what two threads send does not mix; and `lock`, for all there is. A thread that
 * sleeps keeps the first only. Whoever finds something to have happened wakes all who sleep for
 * this rsocket, since what woke him (a completion, an event) is no longer there to be seen.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "core/provider/cm/cm.h"

#define RS_NEVER    UINT64_MAX
#define RS_CONTROLS 4u	   /* messages under way that are not data */
#define RS_ENOUGH   2048u  /* room in the ring for which it is worth to wait */
#define RS_CHUNK    65536u /* the most that one message has */
#define RS_HALVES   2u

/* Limits of options. */
#define RS_LEAST_REQUESTS 16u
#define RS_MOST_REQUESTS  0xfffeu
#define RS_MOST_BYTES	  (1u << 28) /* less than a message's number of bytes takes */

/* What a message says: its op in the upper bits, a value in the lower. */
#define RS_OP_SHIFT 29
#define RS_VALUE    0x1fffffffu

enum rs_op {
	RS_DATA = 0,
	RS_DIRECT = 2, /* riowrite(): of this end alone */
	RS_CREDITS = 4,
	RS_IOMAP = 6,
	RS_CONTROL = 7
};
enum rs_control { RS_DISCONNECT = 0, RS_KEEPALIVE = 1, RS_SHUTDOWN = 2 };

/* On the wire, and in memory that the peer writes, as its host has them; in private data as the net
 * has. */
struct rs_region {
	uint64_t addr;
	uint32_t key, length;
};
struct rs_mapping {
	uint64_t offset;
	struct rs_region region;
};
struct rs_hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], iomaps; /* iomaps: how many; more than 128 in 256s */
	struct rs_region targets;    /* length: entries */
	struct rs_region half;	     /* the first one offered */
};

/* Of each kind one at a time. */
enum rs_call { RS_SEND, RS_RECEIVE, RS_CALLS };

/* In order: until RS_CONNECTED there is nobody to talk to; after it never again. */
enum rs_state {
	RS_NEW,
	RS_LISTENING,
	RS_ADDRESS, /* being resolved */
	RS_ROUTE,
	RS_ASKED,
	RS_ACCEPTED,
	RS_CONNECTED,
	RS_OVER,  /* as one of both has wished */
	RS_BROKEN /* by an error */
};

/* A buffer of the program's, registered by riomap(). */
struct rs_buffer {
	struct rs_buffer *next;
	struct ibv_mr *mr;
	uint64_t offset;
	int index;	/* in the peer's table; -1: of this end alone */
	bool announced; /* the peer's table has it */
};

struct rsocket {
	int fd; /* an epoll of the three below; the program's descriptor */
	int wake;
	struct rdma_event_channel *events;
	struct ibv_comp_channel *completions;
	unsigned refs; /* the table's and of calls; under the table's lock */
	pthread_mutex_t calls[RS_CALLS], lock;
	/* Who sleeps, and whom the descriptor `wake` has still to wake: it is readable until nobody
	 * is. */
	unsigned sleepers, to_wake;

	enum rs_state state;
	int error;		  /* of RS_BROKEN, which is told once; SO_ERROR */
	bool can_read, can_write; /* neither end has shut that direction */
	bool bound;
	_Atomic bool nonblocking; /* looked at without the lock */
	sa_family_t family;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	bool armed;  /* the next completion will be told */
	bool parted; /* the peer is gone, as the connection manager says */

	/* Options. */
	uint32_t send_bytes, receive_bytes; /* of the rings */
	uint32_t send_requests, receive_requests, inline_bytes, iomaps;
	bool reuse, keepalive, oob_inline, no_delay, v6_only, lingers;
	int linger_s, keepalive_s;
	uint64_t keepalive_ms; /* when the next is due, RS_NEVER */

	/* To send: a ring of bytes, of which the last `send_used` before `send_at` are with the
	 * NIC. */
	uint8_t *own; /* slots of control messages, the ring */
	struct ibv_mr *own_mr;
	uint8_t *send_ring;
	uint32_t send_at, send_used, requests_used;
	uint32_t control_used, control_next;
	struct rs_region target[RS_HALVES]; /* what the peer has offered and we have not filled */
	unsigned target_at, offers_taken;
	uint16_t sent, may_send; /* messages */
	bool swap;		 /* the peer is of the other byte order */

	/* To receive: what the peer writes to, a ring after its tables. */
	uint8_t *shared;
	struct ibv_mr *shared_mr;
	struct rs_region *offered_us;	  /* the peer's offers, as it writes them */
	struct rs_mapping *mapped_for_us; /* its buffers, as it writes them */
	uint8_t *receive_ring;
	uint32_t receive_at, unread, half, offer_at, free_bytes;
	uint32_t *messages; /* their lengths, of those with unread bytes */
	uint32_t message_at, message_count;
	uint16_t received, credits_at; /* messages done with; when to tell */
	struct rs_region peer_targets, peer_iomaps;
	unsigned peer_target_at;

	/* riomap() */
	struct rs_buffer *buffers;
	struct rs_mapping *mapped; /* the peer's buffers, as announced */
};

/* --- rsocket.c --- */

/* It stays until it is dropped. NULL: no rsocket. */
struct rsocket *rs_hold(int fd);
void rs_drop(struct rsocket *rs);
/* The same, locked in between. */
struct rsocket *rs_get(int fd);
void rs_put(struct rsocket *rs);
/* A descriptor without an identifier, with the options of `like`, or the usual ones. NULL and
 * errno. */
struct rsocket *rs_new(const struct rsocket *like);
/* Others may find it now. -errno. */
int rs_show(struct rsocket *rs);
/* What the address of a call is worth: 0 or -errno. */
int rs_check_address(const struct rsocket *rs, const struct sockaddr *addr, socklen_t len);
void rs_tell_peer(const struct rsocket *rs, struct sockaddr *addr, socklen_t *len);
/* The completion channel is there. 0 or -errno. */
int rs_listen_to_completions(struct rsocket *rs);
/* For poll(). */
int rs_ms_until(uint64_t until_ms);
/* Locked. Sleep until something happens. 0, -EINTR, -EAGAIN: it is later than `until_ms`. */
int rs_sleep(struct rsocket *rs, uint64_t until_ms);
/* Locked: poll() is going to look at the descriptor, and has looked. */
void rs_lie_down(struct rsocket *rs);
void rs_get_up(struct rsocket *rs);
/* Locked: something has happened. */
void rs_wake(struct rsocket *rs);
/* Locked. Until `ready`, or -EAGAIN. */
int rs_wait(struct rsocket *rs, bool (*ready)(const struct rsocket *), bool nonblocking,
	    uint64_t until_ms);

/* --- rsocket_conn.c --- */

/* Locked: take what the connection manager has reported, and wake who waits. Has there been
 * something? */
bool rs_take_events(struct rsocket *rs);
/* Locked: look after everything that may have happened. False: nothing has, and what will is going
 * to wake the caller, if he `sleeps` now. */
bool rs_progress(struct rsocket *rs, bool sleeps);
/* Locked. Is it connecting, by itself or by the peer's wish? */
bool rs_is_connecting(const struct rsocket *rs);
/* Locked. Wait until it is connected: 0, -ENOTCONN, -EAGAIN, or why there is no connection. */
int rs_await_connection(struct rsocket *rs, bool nonblocking);
/* Locked: no more of it. */
void rs_break(struct rsocket *rs, int error);
int rs_shut(struct rsocket *rs, int how, uint64_t until_ms);

/* --- rsocket_stream.c --- */

/* Locked. What a connection takes: 0 or -errno. */
int rs_make_stream(struct rsocket *rs);
void rs_free_stream(struct rsocket *rs);
struct rs_hello rs_hello(const struct rsocket *rs);
/* What the peer said. -EPROTO: that is no rsocket. */
int rs_heard(struct rsocket *rs, const struct rs_hello *hello);
/* Locked: take what has been completed, and wake who waits. Has there been something? */
bool rs_take_completions(struct rsocket *rs);
/* Locked: tell the peer of what it may send, if it is time. */
void rs_give_credits(struct rsocket *rs);
/* Locked: a message that is not data; there has to be room for it. */
int rs_control(struct rsocket *rs, enum rs_control what);
/* Locked: it is time for a sign of life. */
void rs_keep_alive(struct rsocket *rs);
/* Locked: no call that sends, or receives, has to wait. */
bool rs_send_ready(const struct rsocket *rs);
bool rs_receive_ready(const struct rsocket *rs);
/* A call that sends, or receives, and is to wait or not: the rsocket is its until it ends. NULL and
 * errno; EAGAIN: another thread's has it. */
struct rsocket *rs_begin(int fd, enum rs_call call, int flags, bool *nonblocking);
/* What the call returns: the result, or -1 and errno. */
ssize_t rs_end(struct rsocket *rs, enum rs_call call, ssize_t result);
/* In the byte order of the peer. */
struct rs_region rs_for_peer(const struct rsocket *rs, struct rs_region region);
/* Locked, sending: wait for room, and say why there will be none. 0 or -errno. */
int rs_await_room(struct rsocket *rs, bool nonblocking);
/* How many bytes the next message may have. */
uint32_t rs_room(const struct rsocket *rs);
/* So many bytes of `from`, from `skip` on, are written to `to`; of RS_DIRECT the peer hears
 * nothing, of others it is told `value`. */
int rs_post(struct rsocket *rs, const struct iovec *from, size_t skip, uint32_t bytes,
	    struct rs_region to, enum rs_op op, uint32_t value);

/* --- rsocket_iomap.c --- */

/* Locked, sending: wait for the connection, and tell the peer of buffers it does not know. 0 or
 * -errno. */
int rs_announce(struct rsocket *rs, bool nonblocking);
void rs_forget_buffers(struct rsocket *rs);

/* --- rsocket_option.c --- */

/* How many an option's 8 bits on the wire stand for, and the other way. */
uint32_t rs_iomaps_of(uint8_t code);
uint8_t rs_iomaps_code(uint32_t count);

#endif
