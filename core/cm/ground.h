/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_GROUND_H
#define TM_CM_GROUND_H
/*
 * What the connection manager stands on: memory, time, the link, the verbs, addresses and ports,
 * and how a program waits. There are two implementations: a simulated host
 * (core/rnic/host/cm.c), and a real process (core/provider/cm/cm.c).
 *
 * Functions that can fail return 0 or -errno. Those marked "optional" may be NULL.
 */
#include "core/cm/cm.h"
#include "core/rt/fails.h"

struct cm_ground {
	/* The connection manager of the calling process; NULL, with errno. */
	struct cm *(*here)(void);
	/* Optional: a call of the program is about to act on the kernel. */
	void (*call)(struct cm *cm);
	/* Optional: one thread at a time. */
	void (*lock)(struct cm *cm);
	void (*unlock)(struct cm *cm);
	/* Is the program's call to fail? */
	bool (*fails)(enum fail_point point);

	/* --- memory: zeroed; NULL: there is none --- */

	struct cm_id *(*new_id)(struct cm *cm);
	void (*free_id)(struct cm_id *id);
	struct cm_event *(*new_event)(struct cm *cm);
	void (*free_event)(struct cm *cm, struct cm_event *event);
	/* What the program sees. */
	void *(*calloc)(size_t n, size_t size);
	void (*free)(void *);
	/* Copy bytes of the program. */
	void (*load)(struct cm_id *id, void *to, const void *from, size_t len);

	/* --- event channels --- */

	struct cm_channel *(*new_channel)(struct cm *cm); /* NULL, with errno */
	void (*free_channel)(struct cm_channel *channel); /* it is empty */
	/* Wait for an event, and cm_retrieve() it. -1, with errno: the descriptor is set not to
	 * wait. */
	int (*get)(struct cm_channel *channel, struct cm_event **event);
	/* An event was put into the channel; optional: taken out; optional: by the program. */
	void (*arrived)(struct cm_channel *channel, struct cm_event *event);
	void (*left)(struct cm_channel *channel);
	void (*retrieved)(struct cm_channel *channel, struct cm_event *event);
	/* Wait until an event of the identifier is acknowledged; it was. */
	void (*wait_for_ack)(struct cm_id *id);
	void (*acked)(struct cm_id *id);

	/* --- time, messages --- */

	/* cm_timed_out() is to come after so long, and not when it was to come before; 0: never.
	 * False: time has no end here. */
	bool (*alarm)(struct cm_id *id, uint64_t ns);
	/* The exponent of the time between tries. */
	uint8_t (*timeout)(void);
	/* Optional: a message was sent in vain as often as it is sent. */
	void (*given_up)(struct cm_id *id);
	/* Send a message. It may be lost. id->sent is sent with an identifier: the first time if
	 * id->sends is 0. */
	int (*send)(struct cm *cm, struct cm_id *id, const union ibv_gid *to,
		    const struct cm_message *message);
	/* Give it a communication ID that is not in use, a first PSN, and a transaction ID. */
	void (*choose_number)(struct cm_id *id);
	/* Optional: no one listens for the request that has come from there. */
	void (*no_listener)(struct cm *cm, const union ibv_gid *from);
	/* Optional: the peer, at id->peer_gid, has this communication ID; 0: it is the process that
	 * route() has found. False: it has ended. If it ends later, cm_peer_ended() is called. */
	bool (*watch)(struct cm_id *id, uint32_t number);

	/* --- the device, addresses, ports --- */

	/* Fill in cm->verbs, pd and gid. */
	int (*device)(struct cm *cm);
	/* Reserve the port of the source address; 0: any port. */
	int (*reserve)(struct cm_id *id);
	/* The identifier, which is in the state CM_LISTEN, is to be found. */
	int (*listen)(struct cm_id *id);
	/* Optional: give both back. */
	void (*release)(struct cm_id *id);
	/* Optional: is a request to this address for the identifier, which listens at its port? */
	bool (*covers)(const struct cm_id *id, const struct sockaddr *dst);
	/* Bind the identifier to the address from which its destination is reached. A positive
	 * errno: the program is to be told by an event. */
	int (*source)(struct cm_id *id);
	/* Where the destination is, and the MTU on the path; mtu may be NULL. */
	int (*route)(struct cm_id *id, union ibv_gid *gid, uint8_t *mtu);
	/* The address of a node and a service. 0 or EAI_*. */
	int (*find)(const char *node, const char *service, const struct rdma_addrinfo *hints,
		    struct sockaddr_storage *at);

	/* --- the verbs, as in libibverbs --- */

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *verbs);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *verbs, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	struct ibv_qp *(*create_qp)(struct ibv_context *verbs, struct ibv_qp_init_attr_ex *init);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
};
/* Set before main() by the one that the program is linked with. */
extern const struct cm_ground *cm_ground;

static inline void cm_lock(struct cm *cm)
{
	if (cm_ground->lock)
		cm_ground->lock(cm);
}
static inline void cm_unlock(struct cm *cm)
{
	if (cm_ground->unlock)
		cm_ground->unlock(cm);
}
static inline void cm_call(struct cm *cm)
{
	if (cm_ground->call)
		cm_ground->call(cm);
	cm_lock(cm);
}
/* What a call about this identifier gives, which is made under the lock. */
#define CM_LOCKED(id, call)                \
	({                                 \
		struct cm *cm_ = (id)->cm; \
		cm_lock(cm_);              \
		int rc_ = (call);          \
		cm_unlock(cm_);            \
		rc_;                       \
	})
/* The same of one that acts on the kernel. */
#define CM_CALLED(id, act)                 \
	({                                 \
		struct cm *cm_ = (id)->cm; \
		cm_call(cm_);              \
		int rc_ = (act);           \
		cm_unlock(cm_);            \
		rc_;                       \
	})

#endif
