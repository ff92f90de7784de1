/* SPDX-License-Identifier: BSD-3-Clause */
/* A transaction, from its coordinator's side. See octopus_tx.h. */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/members.h"
#include "core/stores/octopus_tx/octopus_tx.h"

/* --- the other server --- */

static bool is_there(const struct octx_server *server, const struct octx_item *item)
{
	return octx_home(item->key) != server->env.server;
}

/* Connect again, when it can be. Nothing of the former connection lands from then on. */
static void reach_other(struct octx_server *server)
{
	const struct tm_env to = members_env_other(&server->env);
	uint64_t nap = KV_NAP_NS;

	for (;;) {
		rpc_close(&server->other);
		if (!rpc_open(&server->other, &to, octx_txn_bytes(&server->params, TM_TXN_OPS),
			      octx_txn_bytes(&server->params, 1), NULL))
			return;
		kv_nap_to(&nap, 10 * KV_NAP_NS);
	}
}

/* Ask it, with the items that are there, and all of their values if it is `valued`; no items: `txn`
 * NULL. The answer's status is in server->ask. */
static int ask_other(struct octx_server *server, enum octx_op op, uint64_t id, struct octx_txn *txn,
		     bool valued)
{
	const struct tm_params *params = &server->params;
	struct octx_txn *ask = server->ask;
	size_t len;

	memset(ask, 0, sizeof(*ask));
	ask->op = (uint8_t)op;
	ask->id = id;
	for (unsigned i = 0; txn && i < txn->n; i++) {
		const struct octx_item *item = octx_item(params, txn, i);
		if (is_there(server, item))
			memcpy(octx_item(params, ask, ask->n++), item,
			       sizeof(*item) + (valued && item->len != OCTX_NONE ? item->len : 0));
	}
	int rc = rpc_call(&server->other, ask, octx_txn_bytes(params, ask->n), ask,
			  octx_txn_bytes(params, TM_TXN_OPS), &len);
	return rc || len >= sizeof(*ask) ? rc : -EPROTO;
}

/* Until it has answered. */
static int tell_other(struct octx_server *server, enum octx_op op, uint64_t id)
{
	while (ask_other(server, op, id, NULL, false))
		reach_other(server);
	return server->ask->status;
}

/* It has nothing locked for this server from here on. */
static void release_other(struct octx_server *server)
{
	tell_other(server, OCTX_RELEASE, 0);
	server->collected = false;
}

static int collect(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old)
{
	const struct tm_params *params = &server->params;
	unsigned n = 0;

	server->collected = true;
	if (server->awaited) { /* or it would never find that there is none under way */
		server->collected = false;
		return -EAGAIN;
	}
	if (ask_other(server, OCTX_COLLECT, 0, txn, false)) {
		reach_other(server);
		release_other(server);
		return -EAGAIN;
	}
	if (server->ask->status) {
		server->collected = false;
		return server->ask->status;
	}
	for (unsigned i = 0; i < txn->n; i++)
		if (is_there(server, octx_item(params, txn, i)))
			memcpy(octx_item(params, old, i), octx_item(params, server->ask, n++),
			       octx_txn_bytes(params, 1) - sizeof(*txn));
	return 0;
}

/* WRITE the new items in place, and make them durable. */
static int dispatch(struct octx_server *server, struct octx_txn *entry)
{
	const uint8_t flush = server->params.knob[DISPATCH_FLUSH];
	int rc = 0;

	for (unsigned i = 0; i < entry->n && !rc; i++) {
		const struct octx_item *item = octx_item(&server->params, entry, i);
		size_t len;
		const void *image = octx_image(item, &len), *read;
		if (!is_there(server, item))
			continue;
		rc = rpc_write(&server->other, OCTX_ITEMS, item->off + OCTX_FROM, image, len);
		if (!rc && flush == DISPATCH_READ)
			rc = rpc_read(&server->other, OCTX_ITEMS, item->off + OCTX_FROM, len,
				      &read);
	}
	if (!rc && flush == DISPATCH_CPU)
		rc = ask_other(server, OCTX_PERSIST, entry->id, entry, false);
	return rc;
}

/* The other server has what is committed, whatever becomes of it meanwhile. */
static void finish_other(struct octx_server *server, struct octx_txn *entry)
{
	bool there = false;

	for (unsigned i = 0; i < entry->n; i++)
		there |= is_there(server, octx_item(&server->params, entry, i));
	if (there && server->params.knob[MODE] == MODE_TWO_PHASE)
		tell_other(server, OCTX_COMMIT, entry->id);
	else if (there)
		while (dispatch(server, entry))
			reach_other(server);
}

/* Locks are given back where they are: the words become zero. */
static void unlock_other(struct octx_server *server, struct octx_txn *old)
{
	int rc = 0;

	for (unsigned i = 0; i < old->n && !rc; i++) {
		const struct octx_item *item = octx_item(&server->params, old, i);
		if (is_there(server, item))
			rc = rpc_write_word(&server->other, OCTX_ITEMS, item->off, 0);
	}
	if (rc)
		release_other(server);
	server->collected = false;
}

/* --- the log --- */

static bool flushes(const struct octx_server *server)
{
	return !has_bug(&server->params, unflushed);
}

void octx_set(const struct octx_server *server, uint64_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
	if (flushes(server))
		pmem_flush(word, sizeof(*word));
	if (flushes(server) && server->params.knob[LOG_FENCE] != FENCE_NONE)
		pmem_drain();
}

static void flush_entry(const struct octx_server *server, struct octx_txn *entry)
{
	if (!flushes(server))
		return;
	pmem_flush(entry, sizeof(*entry));
	pmem_flush(octx_tail(&server->pool, entry), sizeof(struct octx_tail));
	for (unsigned i = 0; i < entry->n; i++) {
		const struct octx_item *item = octx_item(&server->params, entry, i);
		pmem_flush(item, sizeof(*item) + (item->len == OCTX_NONE ? 0 : item->len));
	}
}

struct octx_txn *octx_append(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old,
			     unsigned coordinator)
{
	const struct tm_params *params = &server->params;

	if (rt_pm_full() || server->used == server->pool.entries)
		return NULL;
	const uint64_t i = server->used++;
	struct octx_txn *entry = octx_entry(&server->pool, i);
	struct octx_tail *tail = octx_tail(&server->pool, entry);
	const struct octx_txn head = {.id = old ? i + 1 : txn->id,
				      .op = OCTX_TXN,
				      .coordinator = (uint8_t)(coordinator + 1)};
	memset(tail, 0, sizeof(*tail));
	if (old && has_bug(params, commit_early))
		octx_set(server, &tail->commit);
	*entry = head;
	for (unsigned k = 0; k < txn->n; k++) {
		const struct octx_item *item = octx_item(params, txn, k);
		struct octx_item *to = octx_item(params, entry, entry->n);
		if (old && !item->writes)
			continue;
		memcpy(to, item, sizeof(*item) + (item->len == OCTX_NONE ? 0 : item->len));
		to->writes = 0;
		if (old) {
			to->off = octx_item(params, old, k)->off;
			to->version = octx_item(params, old, k)->version + 1;
		}
		entry->n++;
	}
	flush_entry(server, entry);
	if (flushes(server) && params->knob[LOG_FENCE] == FENCE_EACH)
		pmem_drain();
	return entry;
}

/* --- a transaction --- */

/* A key that has no value need not be deleted. */
static unsigned count_writes(const struct tm_params *params, struct octx_txn *txn,
			     struct octx_txn *old)
{
	unsigned n = 0;

	for (unsigned i = 0; i < txn->n; i++) {
		struct octx_item *item = octx_item(params, txn, i);
		if (item->len == OCTX_NONE && octx_item(params, old, i)->len == OCTX_NONE)
			item->writes = 0;
		n += item->writes;
	}
	return n;
}

/* All is locked. What is written becomes so, or nothing. */
static int write_items(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old)
{
	const struct tm_params *params = &server->params;
	const bool last = params->knob[COMMIT_BYTE] == COMMIT_LAST;
	struct octx_txn *entry = octx_append(server, txn, old, server->env.server);

	if (!entry)
		return -ENOSPC;
	struct octx_tail *tail = octx_tail(&server->pool, entry);
	if (server->unended)
		octx_set(server, server->unended);
	if (params->knob[MODE] == MODE_TWO_PHASE && server->collected) {
		int rc = ask_other(server, OCTX_PREPARE, entry->id, entry, true);
		if (rc) {
			reach_other(server);
			release_other(server);
		}
		if (rc || server->ask->status)
			return rc ? -EAGAIN : server->ask->status;
	}
	if (!last)
		octx_set(server, &tail->commit);
	if (has_bug(params, ended_early))
		octx_set(server, &tail->ended);
	if (has_bug(params, unlock_first) && server->collected)
		unlock_other(server, old);
	finish_other(server, entry);
	octx_apply(&server->env, &server->pool, entry,
		   flushes(server) && params->knob[LOG_FENCE] != FENCE_NONE);
	if (last)
		octx_set(server, &tail->commit);
	if (has_bug(params, unlock_early))
		server->unended = &tail->ended;
	else
		octx_set(server, &tail->ended);
	return 0;
}

int octx_coordinate(struct octx_server *server, struct octx_txn *txn, struct octx_txn *old)
{
	const struct tm_params *params = &server->params;
	bool there = false;
	int rc = octx_lock(server, txn, old, server->env.server);

	if (rc)
		return rc;
	for (unsigned i = 0; i < txn->n; i++)
		there |= is_there(server, octx_item(params, txn, i));
	old->n = txn->n;
	if (there)
		rc = collect(server, txn, old);
	if (!rc && count_writes(params, txn, old))
		rc = write_items(server, txn, old);
	if (server->collected)
		unlock_other(server, old);
	for (unsigned i = 0; i < txn->n && !(rc && has_bug(params, refusal_keeps)); i++) {
		const struct octx_item *item = octx_item(params, txn, i);
		if (!is_there(server, item))
			octopus_unlock_write(
				&octx_item_at(&server->pool, octx_item(params, old, i)->off)->lock);
	}
	return rc;
}

/* --- after a failure --- */

void octx_resume(struct octx_server *server)
{
	uint64_t nap = KV_NAP_NS;

	reach_other(server);
	for (uint64_t i = 0; i < server->used; i++) {
		struct octx_txn *entry = octx_entry(&server->pool, i);
		if (!octx_to_redo(&server->pool, entry, server->env.server))
			continue;
		if (!has_bug(&server->params, redo_own))
			finish_other(server, entry);
		octx_set(server, &octx_tail(&server->pool, entry)->ended);
	}
	server->redone = true;
	while (tell_other(server, OCTX_RESUME, 0) && !has_bug(&server->params, open_early))
		kv_nap_to(&nap, 10 * KV_NAP_NS);
	octx_forget_prepared(server);
	server->open = true;
}
