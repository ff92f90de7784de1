/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_slots.h. */
#include "core/stores/kv_slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

#define SPINS	   20 /* rounds that find nothing before the server takes a nap */
#define NAP_MAX_NS 128000
#define REFUSALS   16		/* of a READ, in a row: with more, an answer would never be known */
#define SILENCE_NS 100000000ull /* 0.1 s: see whether the server still listens */

/* ---------------------------------------------------------------- server */

bool kv_idle_yield(struct kv_idle *idle, bool found)
{
	if (found) {
		idle->nap = KV_NAP_NS;
		idle->vain = 0;
		return true;
	}
	if (idle->vain++ >= SPINS)
		return false;
	rt_yield();
	return true;
}

static void nap_to(struct kv_idle *idle, uint64_t max_ns)
{
	if (!idle->nap)
		idle->nap = KV_NAP_NS;
	kv_nap_to(&idle->nap, max_ns);
}

void kv_idle_nap(struct kv_idle *idle)
{
	nap_to(idle, NAP_MAX_NS);
}

int kv_slots_open(struct kv_slots *slots, struct rpc_server *rpc, size_t bytes, int access)
{
	assert(bytes && rpc->max_peers); /* it has been opened */
	slots->bytes = kv_round_up(bytes, TM_LINE);
	size_t all = rpc->max_peers * slots->bytes;
	slots->at = aligned_alloc(TM_LINE, all);
	if (!slots->at)
		return -ENOMEM;
	memset(slots->at, 0, all);
	return rpc_server_export(rpc, slots->at, all, IBV_ACCESS_LOCAL_WRITE | access);
}

size_t kv_no_messages(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	(void)arg;
	(void)msg;
	(void)reply;
	(void)cap;
	return 0;
}

/* True: there was something to do for this connection. */
static bool serve_slot(struct rpc_server *rpc, const struct kv_slot_calls *calls, void *arg,
		       unsigned index)
{
	struct rpc_peer *peer = &rpc->peer[index];
	bool there = calls->arrived(arg, index), owes = calls->owes(arg, index);

	if (!peer->qp || peer->failed || (!owes && !there))
		return false;
	if (!owes && peer->writing) /* the buffer is not free: is it now? */
		return rpc_server_poll(rpc);
	assert(!peer->busy);
	peer->busy = true; /* from here on its client cannot take its place */
	if (!owes)
		calls->take(arg, index);
	calls->send(arg, index);
	peer->busy = false;
	return true;
}

/* From the newest connection on: readers come last in most workloads, and what they know before an
 * update begins is what goes wrong.
 *
 * Completions are those of WRITEs, for which the next request of the same client alone waits. All
 * others are taken when there is nothing else to do. */
void kv_slots_serve(struct rpc_server *rpc, const struct kv_slot_calls *calls, void *arg)
{
	const uint64_t max_ns = calls->nap_ns ? calls->nap_ns : NAP_MAX_NS;
	struct kv_idle idle = {0};

	for (;;) {
		bool found = false;

		for (unsigned i = rpc->peers; i-- > 0;)
			found |= serve_slot(rpc, calls, arg, i);
		if (!kv_idle_yield(&idle, found) && !rpc_server_poll(rpc))
			nap_to(&idle, max_ns);
	}
}

/* ---------------------------------------------------------------- client */

int kv_req_fill(struct kv_req *req, enum kv_op op, const void *key, size_t klen, const void *value,
		size_t vlen, uint32_t max_vlen)
{
	int rc = kv_req_init(req, op, key, klen);

	if (rc)
		return rc;
	if (vlen > max_vlen)
		return -EMSGSIZE;
	req->vlen = (uint32_t)vlen;
	if (vlen)
		memcpy(req + 1, value, vlen);
	return 0;
}

int kv_read_on(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, const void **data)
{
	uint64_t nap = KV_NAP_NS;
	int rc;

	for (unsigned i = 0; i < REFUSALS; i++) {
		rc = rpc_read(conn, region, off, len, data);
		if (rc != -ENOMEM)
			return rc;
		kv_nap(&nap);
	}
	conn->failed = true;
	return -EIO;
}

int kv_wait_own(struct rpc_conn *conn, unsigned region, bool (*arrived)(void *arg), void *arg)
{
	uint64_t nap = KV_NAP_NS, since = rt_now();

	while (!arrived(arg)) {
		const void *unused;
		int rc = 0;

		if (rt_now() - since > SILENCE_NS) {
			rc = kv_read_on(conn, region, 0, 0, &unused);
			since = rt_now();
		}
		if (rc)
			return rc;
		kv_nap(&nap);
	}
	return 0;
}
