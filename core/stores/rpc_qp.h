/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_RPC_QP_H
#define TM_STORES_RPC_QP_H
/* What both ends of rpc.h share: setting up a queue pair, and what is said when a client
 * connects. */
#include "core/stores/rpc.h"

#define SQ_DEPTH  4
#define QP_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/*
 * When to send again to a receiver that is not ready (IBA table 45). The server soon is, and calls
 * a client dead that is not heard of for 50 us: 0.01 ms. A client may never be, as the task that
 * takes its notices may have died: 0.64 ms.
 */
#define RPC_RNR_SERVER 1
#define RPC_RNR_CLIENT 12

/* What a client's connection is for; it has one of a kind. */
enum rpc_kind { RPC_REQUESTS, RPC_NOTICES, RPC_FURTHER };

/* What a client sends and gets when it connects; not through the RNIC. */
struct rpc_greeting {
	uint32_t client;
	uint32_t qpn;
	uint32_t psn;
	uint8_t kind; /* enum rpc_kind */
	uint8_t mtu;  /* enum ibv_mtu: of the port */
	uint8_t gid_index;
	uint8_t first; /* the client begins again: what else it had is closed */
	uint8_t gid[16];
	struct rpc_region own; /* a client's: the memory to which the server WRITEs */
};

struct rpc_welcome {
	struct rpc_greeting server;
	uint32_t regions;
	uint32_t word;
	uint32_t index;
	uint32_t unused;
	struct rpc_region region[RPC_REGIONS];
};

/* A queue pair with one completion queue for both directions, and the ibv_wr_*() named
 * (IBV_QP_EX_WITH_*; 0: none); NULL with errno. */
struct ibv_qp *rpc_qp_create(struct ibv_pd *pd, struct ibv_cq *cq, uint64_t send_ops);
/* The same for a service that loses messages and says nothing: an unreliable connection, or
 * datagrams. `depth`: requests of each kind at a time. */
struct ibv_qp *rpc_qp_create_unreliable(struct ibv_pd *pd, struct ibv_cq *cq, bool datagrams,
					unsigned depth);
/* Where the peer's datagrams go; NULL with errno. */
struct ibv_ah *rpc_address(struct ibv_pd *pd, const struct rpc_greeting *own,
			   const struct rpc_greeting *peer);
/* These return 0 or -errno. Verbs return a positive errno, or -1 with errno set. */
int rpc_error(int rc);
int rpc_qp_init(struct ibv_qp *qp, unsigned access);
/* What this end says of itself. */
int rpc_hello(struct rpc_greeting *hello, struct ibv_qp *qp, uint32_t client, enum rpc_kind kind);
/* Ready to receive, with the largest path MTU that both ports take; `rnr_timer`: this end's,
 * RPC_RNR_*. */
int rpc_qp_rtr(struct ibv_qp *qp, const struct rpc_greeting *own, const struct rpc_greeting *peer,
	       uint8_t rnr_timer);
int rpc_qp_rts(struct ibv_qp *qp, uint32_t psn);
int rpc_qp_recv(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey);
/* Post a signaled SEND of one piece. */
int rpc_qp_send(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey);
/* The same in a datagram, to a queue pair there. */
int rpc_qp_send_to(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		   struct ibv_ah *ah, uint32_t qpn);
/* Post a signaled WRITE of one piece. */
int rpc_qp_write(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		 uint64_t remote, uint32_t rkey);
int rpc_qp_write_imm(struct ibv_qp *qp, uint64_t wr_id, void *buf, size_t len, uint32_t lkey,
		     uint64_t remote, uint32_t rkey, uint32_t imm);

#endif
