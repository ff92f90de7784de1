/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_KV_SLOTS_H
#define TM_STORES_KV_SLOTS_H
/*
 * What the stores without SENDs share: each connection has a slot, a buffer in the server's memory,
 * to which its client WRITEs a request. The server polls all slots. What a request looks like, and
 * how it is answered, is the store's.
 */
#include "core/stores/kv.h"
#include "core/stores/rpc.h"

/* --- the server --- */

/* What a server that polls memory does between two rounds; all zero at first. Nothing wakes it. */
struct kv_idle {
	uint64_t nap;  /* ns, the next one */
	unsigned vain; /* rounds in a row that found nothing */
};

/* After a round: yield, if it found nothing. False: there were so many of those that the server
 * should rather nap. */
bool kv_idle_yield(struct kv_idle *idle, bool found);
/* 0.1 ms at most or a little more: a first request waits for so long. */
void kv_idle_nap(struct kv_idle *idle);

struct kv_slots {
	uint8_t *at;  /* DRAM, zeroed */
	size_t bytes; /* of one slot: whole lines, so that no two share one */
};

/* A slot for each connection, exported as the server's next region. `access`: of clients,
 * IBV_ACCESS_REMOTE_*, or 0. */
int kv_slots_open(struct kv_slots *slots, struct rpc_server *rpc, size_t bytes, int access);

static inline uint8_t *kv_slot(const struct kv_slots *slots, unsigned index)
{
	return slots->at + index * slots->bytes;
}

/* An rpc_handler of a server to which nothing is sent. */
size_t kv_no_messages(void *arg, const struct rpc_msg *msg, void *reply, size_t cap);

/* What a server does with the slot of connection `index`. None may block. */
struct kv_slot_calls {
	/* Is there a whole request? */
	bool (*arrived)(void *arg, unsigned index);
	/* Take it out and execute it. */
	void (*take)(void *arg, unsigned index);
	/* Is something of an answer still to be sent? Then `send` does, or leaves it for another
	 * time. */
	bool (*owes)(void *arg, unsigned index);
	void (*send)(void *arg, unsigned index);
	uint64_t nap_ns; /* the longest between two rounds; 0: kv_idle_nap()'s */
};

/* Serve all slots for ever. A client's next request is taken when its NIC has acknowledged what was
 * written to it before: until then these bytes are to stay as they are (rpc_server_write()). */
void kv_slots_serve(struct rpc_server *rpc, const struct kv_slot_calls *calls, void *arg);

/* --- the client --- */

/* A request, its value after it, at `req`. -EINVAL: no such key; -EMSGSIZE. */
int kv_req_fill(struct kv_req *req, enum kv_op op, const void *key, size_t klen, const void *value,
		size_t vlen, uint32_t max_vlen);
/* rpc_read() that is not given up because it was refused: the request is sent, and may have its
 * effect. */
int kv_read_on(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, const void **data);
/* Wait until the server has written an answer to conn->own: `arrived` says whether one is there.
 * A server that has closed the connection says nothing: a READ now and then, of no bytes of a
 * region, finds out. */
int kv_wait_own(struct rpc_conn *conn, unsigned region, bool (*arrived)(void *arg), void *arg);

#endif
