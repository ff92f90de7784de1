/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other server asks for, which coordinates a transaction. See octopus_tx.h. */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/stores/octopus_tx/octopus_tx.h"

int octx_lock(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old,
	      unsigned coordinator)
{
	const struct tm_params *params = &server->params;
	const unsigned own = server->env.server;
	unsigned i, k;
	int rc = 0;

	for (i = 0; i < txn->n && !rc; i++) {
		const struct octx_item *key = octx_item(params, txn, i);
		struct octx_item *item, *to = octx_item(params, old, i);
		if (octx_home(key->key) != own)
			continue;
		rc = octx_lock_item(&server->pool, key, coordinator, &item);
		if (rc)
			break;
		memcpy(to, item, sizeof(*item) + (item->len == OCTX_NONE ? 0 : item->len));
		to->off = (uint64_t)((uint8_t *)item - server->pool.items);
	}
	if (!rc)
		return 0;
	for (k = 0; k < i; k++)
		if (octx_home(octx_item(params, txn, k)->key) == own)
			octopus_unlock_write(
				&octx_item_at(&server->pool, octx_item(params, old, k)->off)->lock);
	return rc;
}

static int prepare(struct octx_server *server, struct octx_txn *txn, unsigned coordinator)
{
	struct octx_txn *entry = octx_append(server, txn, NULL, coordinator);
	if (!entry)
		return -ENOSPC;
	octx_set(server, &octx_tail(&server->pool, entry)->prepared);
	return 0;
}

static bool is_prepared(const struct octx_server *server, struct octx_txn *entry)
{
	const struct octx_tail *tail = octx_tail(&server->pool, entry);
	return entry->op && entry->coordinator == !server->env.server + 1 && tail->prepared &&
	       !tail->ended;
}

void octx_forget_prepared(const struct octx_server *server)
{
	for (uint64_t i = 0; i < server->used; i++) {
		struct octx_txn *entry = octx_entry(&server->pool, i);
		if (is_prepared(server, entry))
			octx_set(server, &octx_tail(&server->pool, entry)->ended);
	}
}

/* If it has ended already, this is asked once more, as the answer was lost. */
static void commit(struct octx_server *server, uint64_t id)
{
	for (uint64_t i = 0; i < server->used; i++) {
		struct octx_txn *entry = octx_entry(&server->pool, i);
		if (!is_prepared(server, entry) || entry->id != id)
			continue;
		octx_apply(&server->env, &server->pool, entry, true);
		octx_set(server, &octx_tail(&server->pool, entry)->ended);
	}
}

static void persist(struct octx_server *server, struct octx_txn *txn)
{
	for (unsigned i = 0; i < txn->n; i++) {
		const struct octx_item *item = octx_item(&server->params, txn, i);
		size_t len;
		octx_image(item, &len);
		pmem_persist(server->pool.items + item->off + OCTX_FROM, len);
	}
}

/* The coordinator's transaction is over; or it has begun anew, and no process knows of one. */
static void release(struct octx_server *server, unsigned coordinator)
{
	octx_forget_prepared(server);
	octx_free_locks(&server->pool, coordinator);
}

size_t octx_participate(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct octx_server *server = arg;
	struct octx_txn *txn = (struct octx_txn *)msg->bytes, *rsp = reply;
	const unsigned other = !server->env.server;

	if (msg->has_imm || msg->len < sizeof(*txn) || cap < msg->len || txn->n > TM_TXN_OPS ||
	    msg->len != octx_txn_bytes(&server->params, txn->n))
		return 0;
	switch (txn->op) {
	case OCTX_COLLECT:
		rsp->status = server->open ? octx_lock(server, txn, rsp, other) : -EAGAIN;
		break;
	case OCTX_PREPARE:
		rsp->status = prepare(server, txn, other);
		break;
	case OCTX_COMMIT:
		commit(server, txn->id);
		break;
	case OCTX_PERSIST:
		persist(server, txn);
		break;
	case OCTX_RELEASE:
		release(server, other);
		break;
	case OCTX_RESUME:
		if (!has_bug(&server->params, orphans_kept))
			release(server, other);
		server->awaited = true;
		if (server->redone && !server->collected)
			server->awaited = false;
		rsp->status = server->awaited ? -EAGAIN : 0;
		break;
	default:
		rsp->status = -EPROTO;
	}
	rsp->n = txn->op == OCTX_COLLECT && !rsp->status ? txn->n : 0;
	return octx_txn_bytes(&server->params, rsp->n);
}
