/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Pmem-Redis does (RK IV): a PUT or DELETE is a transaction with an undo log. The value is
 * allocated, copied and persisted; what the entry holds goes to the log, and is persisted; the
 * entry is changed, all its words at once, and persisted; the log is emptied. What a power failure
 * interrupts is undone.
 */
#include <libpmem.h>
#include <string.h>
#include "core/stores/herd/herd.h"

size_t herd_bytes(const struct tm_params *params)
{
	return kv_pool_bytes(params) + sizeof(struct herd_undo);
}

unsigned herd_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	unsigned n = kv_pool_regions(params, out, max);

	if (n < max)
		out[n] = (struct tm_region){"undo", kv_pool_bytes(params),
					    sizeof(struct herd_undo)};
	return n + 1;
}

struct herd_undo *herd_undo_at(const struct tm_params *params, uint8_t *pm)
{
	return (struct herd_undo *)(pm + kv_pool_bytes(params));
}

/* ----------------------------------------------------------------- running */

/* The log names the entry when it has all that the entry held. */
static void begin(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		  const struct kv_entry *entry)
{
	memcpy(&undo->held, entry, sizeof(undo->held));
	if (!has_bug(params, tx_unlogged))
		kv_place_persist(place, &undo->held, sizeof(undo->held));
	__atomic_store_n(&undo->entry, (uint64_t)(entry - place->pool.table.entry) + 1,
			 __ATOMIC_SEQ_CST);
	kv_place_persist(place, &undo->entry, sizeof(undo->entry));
}

/* The entry is changed. The commit point: the log is empty, durably. */
static void commit(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		   const struct kv_entry *entry)
{
	if (!has_bug(params, tx_unflushed))
		kv_place_persist(place, entry, sizeof(*entry));
	__atomic_store_n(&undo->entry, 0, __ATOMIC_SEQ_CST);
	kv_place_persist(place, &undo->entry, sizeof(undo->entry));
}

int herd_tx_put(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		const struct kv_req *req, const void *bytes)
{
	struct kv_placed value;
	bool found;
	int rc = kv_place_reserve(place, &value, req);

	if (rc)
		return rc;
	uint8_t *to = place->pool.log + value.line * TM_LINE;
	memcpy(to, bytes, req->vlen);
	kv_place_persist(place, to, req->vlen);
	struct kv_entry *entry = kv_table_find(&place->pool.table, req->key, &found);
	begin(place, undo, params, entry);
	entry->ctl = kv_checked_ctl(req->key, req->klen);
	entry->where = kv_where(value.line, value.vlen);
	memcpy(entry->key, req->key, sizeof(entry->key));
	commit(place, undo, params, entry);
	return 0;
}

void herd_tx_del(struct kv_place *place, struct herd_undo *undo, const struct tm_params *params,
		 const uint8_t key[TM_MAX_KEY])
{
	bool found;
	struct kv_entry *entry = kv_table_find(&place->pool.table, key, &found);

	if (!found)
		return;
	begin(place, undo, params, entry);
	entry->where = 0;
	commit(place, undo, params, entry);
}

/* ---------------------------------------------------------------- recovery */

static void undo_last(const struct kv_pool *pool, struct herd_undo *undo)
{
	struct kv_entry *entry = &pool->table.entry[undo->entry - 1];

	memcpy(entry, &undo->held, sizeof(*entry));
	pmem_persist(entry, sizeof(*entry));
}

/* Undo what was not committed. The log is emptied after that: undoing twice does no harm. It is
 * flushed in any case: where the server's process alone has died, it may be empty in the cache, and
 * name an entry in PM. */
static void undo(const struct tm_params *params, const struct kv_pool *pool, struct herd_undo *log)
{
	if (has_bug(params, undo_assumed) && !log->entry)
		return;
	if (log->entry && log->entry <= pool->table.slots)
		undo_last(pool, log);
	__atomic_store_n(&log->entry, 0, __ATOMIC_SEQ_CST);
	pmem_persist(&log->entry, sizeof(log->entry));
}

int herd_recover(const struct tm_env *env)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);

	if (!has_bug(env->params, tx_kept))
		undo(env->params, &pool, herd_undo_at(env->params, env->pm));
	return kv_place_recover(env);
}

void herd_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	if (herd_undo_at(env->params, env->pm)->entry)
		fsck->bad(fsck, "undo: names an entry, and no transaction is under way");
	kv_pool_fsck(env, fsck);
}
