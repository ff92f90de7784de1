/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_CM_CM_H
#define TM_PROVIDER_CM_CM_H
/*
 * The ground of the connection manager (core/cm) in a real process. This header has what its files
 * share.
 *
 *   cm.c         the process's state, its thread, the device
 *   cm_event.c   event channels
 *   cm_addr.c    addresses and ports
 *   cm_send.c    messages, communication IDs
 *   cm_fabric.c  the fabric: ports, listeners, processes that have died
 *   cm_none.c    what is refused: multicast, rsockets
 *
 * Messages pass through queue pair 1 (qp1.h) and the link as packets. The connection manager uses
 * that and libibverbs' public functions only, so that it can be a library of its own beside one
 * with the soft RNIC.
 *
 * A process that is killed sends no REJ or DREQ. The processes of the fabric that have a connection
 * with it watch it, and act as if they had received these messages.
 *
 * Everything runs under one lock. A thread of the library, which starts with the device, receives
 * messages and keeps the timeouts. It never touches a queue pair: the program's own calls do that,
 * when they retrieve an event. Order of locks: this one, then the NIC's.
 */
#include <pthread.h>
#include "core/cm/ground.h"
#include "core/cm/sockaddr.h"
#include "core/provider/base/export.h"
#include "core/provider/base/fabric_dir.h"
#include "core/provider/cm/qp1.h"

/* An identifier as it is here. */
struct place {
	struct cm_id id;
	uint64_t deadline_ms; /* 0: none */
	unsigned slot;	      /* of the peer's process; 0: it is not of this fabric */
	unsigned found_slot;  /* of the process that route() has found */
};

struct manager {
	struct cm cm;
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	int cancel_state; /* the cancellation state of the thread that holds the lock */
	bool locked;	  /* written by that thread */
	pid_t pid;	  /* the process that has opened the device; 0: none */
	struct ibv_port_attr port;
	const struct nic_mads *mads;
	int watched[FABRIC_SLOTS]; /* by slot: 0, or 1 + a descriptor that is readable once the
			     slot's process has ended */
	int epoll, wake;	   /* -1: the thread has not been started */
	uint64_t next_ms;	   /* when the thread wakes by itself */
};
extern struct manager manager;

static inline struct place *place_of(struct cm_id *id)
{
	return (struct place *)id;
}

/* All that follows is called under the lock. */

/* Watch the process in this slot, to learn when it ends. -ESRCH: it has ended. If an earlier
 * process of the slot is still watched and has ended, its connections are closed now. */
int watch_slot(unsigned slot);

/* --- parts of the ground: core/cm/ground.h --- */

struct cm_channel *new_channel(struct cm *cm);
void free_channel(struct cm_channel *channel);
int get_event(struct cm_channel *channel, struct cm_event **event);
void event_arrived(struct cm_channel *channel, struct cm_event *event);
void event_left(struct cm_channel *channel);

int reserve_port(struct cm_id *id);
int listen_at(struct cm_id *id);
void release_port(struct cm_id *id);
bool covers(const struct cm_id *id, const struct sockaddr *dst);
int find_source(struct cm_id *id);
int find_route(struct cm_id *id, union ibv_gid *gid, uint8_t *mtu);
int find_name(const char *node, const char *service, const struct rdma_addrinfo *hints,
	      struct sockaddr_storage *at);

uint8_t own_timeout(void);
int send_message(struct cm *cm, struct cm_id *id, const union ibv_gid *to,
		 const struct cm_message *message);
void choose_number(struct cm_id *id);
bool watch_peer(struct cm_id *id, uint32_t number);
/* The process ends: wait until other hosts have been told, for a moment at most. */
void linger_at_exit(void);

/* --- cm_addr.c --- */

/* A port's range in the file of locks, one lock for each address. */
#define CM_PORT_RANGE (1ull << 33)
uint64_t cm_port_range(uint16_t port);

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
