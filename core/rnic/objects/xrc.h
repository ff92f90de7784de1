/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_XRC_H
#define TM_RNIC_OBJECTS_XRC_H
/* Extended reliable connections: xrc.c. */
#include "core/rnic/objects/device.h"

struct packet;
struct rnic_srq;
struct xrc_domain;

/* What a process has of an XRC domain that it has opened: xrc.c. */
struct rnic_xrcd {
	struct ibv_xrcd ibv;
	struct xrc_domain *domain;
	unsigned users; /* shared receive queues, queue pairs */
	bool dead;
};

/* What ibv_open_xrcd() does once the file is known: by its device and inode, 0 and 0: none. errno
 * EAGAIN: no domain is open for it, and O_CREAT is not there. */
struct ibv_xrcd *xrc_open(struct ibv_context *context, uint64_t device, uint64_t inode, int oflags);
/* What is wrong with ibv_open_xrcd()'s attributes, the file aside; an errno. */
int xrc_check(const struct ibv_context *context, const struct ibv_xrcd_init_attr *attr);
/* Give the queue a number in the domain; 0 or an errno. */
int xrc_add_srq(struct rnic_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
void xrc_remove_srq(struct rnic_srq *srq);
/* The queue of this number; NULL: it was destroyed. */
struct rnic_srq *xrc_srq(const struct rnic_net *net, uint32_t srqn);
struct ibv_qp *xrc_create_target(struct ibv_context *context,
				 const struct ibv_qp_init_attr_ex *init);
/* The same calls for a target queue pair, by a handle. */
int xrc_modify_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask);
int xrc_query_qp(struct rnic_qp *handle, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int xrc_destroy_qp(struct rnic_qp *handle);
/* The context is closed: so are its handles of this target queue pair. */
void xrc_close_qp(struct rnic_qp *target, const struct ibv_context *context);
/* What the target queue pair has taken from shared receive queues is lost to them. */
void xrc_reset_qp(struct rnic_qp *target);
/* From now on the target queue pair is at work for this shared receive queue: its requests, domain,
 * completions. False: there is none of this number. */
bool xrc_select(struct rnic_qp *target, uint32_t srqn);
/* The same for a request whose turn has come. False: it cannot be let in, and is counted. */
bool xrc_turn(struct rnic_qp *target, const struct packet *pkt);
/* Tell the event to all that have the target queue pair open. */
void xrc_event(struct rnic_qp *target, enum ibv_event_type type);
/* A packet for a queue pair of the service has come in. Takes it. */
void xrc_take(struct rnic_qp *qp, struct packet *pkt);

#endif
