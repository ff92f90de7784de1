/* SPDX-License-Identifier: BSD-3-Clause */
/* Identifiers of the connection manager. See cm.h. */
#include <arpa/inet.h>
#include <assert.h>
#include "core/cm/calls.h"
#include "core/cm/ground.h"

const struct cm_ground *cm_ground;

#define FROM(state) (1u << (state))

void cm_to_state(struct cm_id *id, enum cm_state to)
{
	/* The states from which it is reached. Any identifier may be closed. */
	static const unsigned from[] = {
		[CM_BOUND] = FROM(CM_IDLE) | FROM(CM_LISTEN), /* listening failed */
		[CM_ADDR_RESOLVED] = FROM(CM_BOUND),
		[CM_ROUTE_RESOLVED] = FROM(CM_ADDR_RESOLVED) |
				      FROM(CM_REQ_SENT), /* sending failed */
		[CM_LISTEN] = FROM(CM_BOUND),
		[CM_REQ_SENT] = FROM(CM_ROUTE_RESOLVED),
		[CM_REQ_RCVD] = FROM(CM_IDLE),
		[CM_REP_SENT] = FROM(CM_REQ_RCVD),
		[CM_REP_RCVD] = FROM(CM_REQ_SENT),
		[CM_ESTABLISHED] = FROM(CM_REP_SENT) | FROM(CM_REP_RCVD),
		[CM_DREQ_SENT] = FROM(CM_ESTABLISHED),
		[CM_TIMEWAIT] = FROM(CM_ESTABLISHED) | FROM(CM_DREQ_SENT),
		[CM_OVER] = ~0u,
	};

	assert(*id->prev == id);
	assert(from[to] & FROM(id->state));
	/* Without a communication ID no message of the peer finds it. */
	assert(to < CM_REQ_RCVD || to == CM_OVER || id->number);
	id->state = to;
}

struct ibv_context **cm_get_devices(int *num)
{
	struct cm *cm = cm_ground->here();
	struct ibv_context **list = cm ? cm_ground->calloc(2, sizeof(*list)) : NULL;

	if (num)
		*num = list != NULL;
	if (list)
		list[0] = cm->verbs;
	else if (cm)
		errno = ENOMEM;
	return list;
}

void cm_free_devices(struct ibv_context **list)
{
	cm_ground->free(list);
}

int cm_bind_device(struct cm_id *id)
{
	struct rdma_ib_addr *ib = &id->user.route.addr.addr.ibaddr;
	int rc = cm_ground->device(id->cm);

	if (rc)
		return rc;
	id->user.verbs = id->cm->verbs;
	id->user.pd = id->cm->pd;
	id->user.port_num = 1;
	ib->sgid = id->cm->gid;
	ib->pkey = htons(0xffff);
	return 0;
}

struct cm_id *cm_new_id(struct cm *cm, struct rdma_event_channel *channel, void *context,
			enum rdma_port_space ps)
{
	struct cm_id *id = cm_ground->new_id(cm);

	if (!id)
		return NULL;
	assert(!cm->ids || cm->ids->prev == &cm->ids);
	id->cm = cm;
	id->user.channel = channel;
	id->user.context = context;
	id->user.ps = ps;
	id->user.qp_type = IBV_QPT_RC;
	id->prev = &cm->ids;
	id->next = cm->ids;
	if (cm->ids)
		cm->ids->prev = &id->next;
	cm->ids = id;
	return id;
}

void cm_free_id(struct cm_id *id)
{
	assert(*id->prev == id && (!id->next || id->next->prev == &id->next));
	assert(!id->unacked && !id->bound); /* no event, no port is left that refers to it */
	id->cm->lingering -= id->lingers;
	*id->prev = id->next;
	if (id->next)
		id->next->prev = id->prev;
	cm_ground->free(id->qp_init);
	cm_ground->free(id->connect_data);
	cm_ground->free_id(id);
}

int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		 enum rdma_port_space ps)
{
	struct cm *cm = cm_ground->here();
	struct cm_channel *own = NULL;

	if (!cm)
		return -1;
	if (!out || ps != RDMA_PS_TCP) /* the other port spaces are for datagrams */
		return errno_minus(EINVAL);
	if (cm_ground->fails(FAIL_MEMORY))
		return errno_minus(ENOMEM);
	if (!channel) {
		own = cm_ground->new_channel(cm);
		if (!own)
			return -1;
	}
	cm_lock(cm);
	struct cm_id *id = cm_new_id(cm, own ? &own->user : channel, context, ps);
	if (id) {
		id->sync = own != NULL;
		*out = &id->user;
	} else if (own) {
		cm_free_channel(&own->user);
	}
	cm_unlock(cm);
	return id ? 0 : errno_minus(ENOMEM);
}

static void forget_oldest(struct cm *cm)
{
	struct cm_id *oldest = NULL;

	for (struct cm_id *id = cm->ids; id; id = id->next)
		if (id->lingers)
			oldest = id;
	assert(oldest); /* it has been counted */
	cm_free_id(oldest);
}

int cm_destroy_id(struct rdma_cm_id *user)
{
	struct cm_id *id = to_cm(user);
	struct rdma_event_channel *own = id->sync ? user->channel : NULL;
	struct cm *cm = id->cm;

	cm_call(cm);
	if (id->sync && user->event)
		cm_acknowledge(user->event);
	user->event = NULL;
	cm_forget_events(id);
	cm_wait_for_acks(id);
	cm_forget_events(id); /* those that have come meanwhile */
	cm_close(id);
	while (cm->lingering > CM_MOST_LINGERING)
		forget_oldest(cm);
	if (own)
		cm_free_channel(own);
	cm_unlock(cm);
	return 0;
}

/* The program cannot choose a path: there is only one. */
int cm_set_option(struct rdma_cm_id *user, int level, int name, void *value, size_t len)
{
	struct cm_id *id = to_cm(user);

	if (!value || (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH))
		return errno_minus(EINVAL);
	if (level != RDMA_OPTION_ID)
		return errno_minus(ENOSYS);
	return cm_result(CM_LOCKED(id, cm_option(&id->conn.options, id->state, name, value, len)));
}

/* --- extended connection establishment --- */

int cm_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return errno_minus(EINVAL);
	cm_lock(to_cm(id)->cm);
	to_cm(id)->ece = *ece;
	cm_unlock(to_cm(id)->cm);
	return 0;
}

int cm_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return errno_minus(EINVAL);
	cm_lock(to_cm(id)->cm);
	*ece = to_cm(id)->peer_ece;
	cm_unlock(to_cm(id)->cm);
	return 0;
}
