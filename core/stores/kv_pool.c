/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_pool.h. */
#include "core/stores/kv_pool.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

uint64_t kv_where(uint64_t line, uint32_t vlen)
{
	assert(line < 1ull << 40 && vlen < 1u << 23); /* the bits of each */
	return line << 24 | (uint64_t)vlen << 1 | 1;
}

uint64_t kv_where_line(uint64_t where)
{
	return where >> 24;
}

uint32_t kv_where_vlen(uint64_t where)
{
	return (uint32_t)(where & 0xffffff) >> 1;
}

/* ------------------------------------------------------------------ pool */

static uint64_t log_lines(const struct tm_params *params)
{
	return params->updates * kv_lines(params->max_vlen);
}

size_t kv_pool_bytes(const struct tm_params *params)
{
	return kv_table_bytes(params) + log_lines(params) * TM_LINE;
}

unsigned kv_pool_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	const struct tm_region all[] = {
		{"table", 0, kv_table_bytes(params)},
		{"log", kv_table_bytes(params), log_lines(params) * TM_LINE}};

	return kv_regions(all, sizeof(all) / sizeof(all[0]), out, max);
}

struct kv_pool kv_pool_at(const struct tm_params *params, uint8_t *pm)
{
	return (struct kv_pool){kv_table_at(params, pm), pm + kv_table_bytes(params),
				log_lines(params)};
}

/* Does the value lie in the log? */
static bool in_log(const struct kv_pool *pool, uint64_t where)
{
	uint64_t line = kv_where_line(where), len = kv_lines(kv_where_vlen(where));

	return line <= pool->log_lines && len <= pool->log_lines - line;
}

bool kv_pool_has(const struct kv_pool *pool, const struct kv_entry *entry)
{
	return in_log(pool, entry->where);
}

uint64_t kv_pool_tail(const struct kv_pool *pool)
{
	uint64_t tail = 0;

	for (uint64_t i = 0; i < pool->table.slots; i++) {
		uint64_t where = pool->table.entry[i].where;
		uint64_t end = kv_where_line(where) + kv_lines(kv_where_vlen(where));

		/* An entry that is not in use yet may hold anything. */
		if ((where & 1) && in_log(pool, where) && end > tail)
			tail = end;
	}
	assert(tail <= pool->log_lines);
	return tail;
}

/* -------------------------------------------------------------- recovery */

static bool sane(const struct kv_pool *pool, const struct kv_entry *entry)
{
	return kv_entry_whole(entry) && (!(entry->where & 1) || in_log(pool, entry->where));
}

void kv_pool_drop_impossible(struct kv_pool *pool)
{
	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct kv_entry *entry = &pool->table.entry[i];

		if ((entry->ctl & KV_USED) && !sane(pool, entry))
			kv_entry_clear(entry);
	}
}

bool kv_pool_move_unreachable(struct kv_pool *pool)
{
	bool moved = false;

	for (uint64_t i = 0; i < pool->table.slots; i++) {
		struct kv_entry *entry = &pool->table.entry[i], *to;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		to = kv_table_find(&pool->table, entry->key, &found);
		if (to == entry)
			continue;
		if (!found)
			memcpy(to, entry, sizeof(*to));
		kv_entry_clear(entry);
		moved = true;
	}
	return moved;
}

/* Lines are handed out once, so no two values share any. */
static void check_shared(const struct kv_pool *pool, uint64_t i, struct tm_fsck *fsck)
{
	uint64_t one = pool->table.entry[i].where, from = kv_where_line(one);
	uint64_t end = from + kv_lines(kv_where_vlen(one));

	for (uint64_t k = 0; k < i && one & 1; k++) {
		uint64_t other = pool->table.entry[k].where, at = kv_where_line(other);

		if (pool->table.entry[k].ctl & KV_USED && other & 1 && at < end &&
		    at + kv_lines(kv_where_vlen(other)) > from)
			fsck->bad(fsck, "table[%llu] and table[%llu]: their values overlap",
				  (unsigned long long)k, (unsigned long long)i);
	}
}

void kv_pool_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);

	for (uint64_t i = 0; i < pool.table.slots; i++) {
		const struct kv_entry *entry = &pool.table.entry[i];
		unsigned long long slot = i;
		bool found;

		if (!(entry->ctl & KV_USED))
			continue;
		if (!sane(&pool, entry))
			fsck->bad(fsck, "table[%llu]: no such key, or its value outside of the log",
				  slot);
		else if (kv_table_find(&pool.table, entry->key, &found) != entry)
			fsck->bad(fsck, "table[%llu]: its key does not lead to it", slot);
		else
			check_shared(&pool, i, fsck);
	}
}

/* ---------------------------------------------------- server and clients */

int kv_pool_serve(struct rpc_server *rpc, struct kv_pool *pool)
{
	int rc = rpc_server_export(rpc, pool->table.entry,
				   pool->table.slots * sizeof(struct kv_entry),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

	return rc ? rc : kv_server_start(rpc, pool->log, pool->log_lines * TM_LINE);
}

int kv_pool_get(struct kv_client *client, const struct kv_table *table, const void *key,
		size_t klen, void *value, size_t cap, size_t *vlen)
{
	uint8_t padded[TM_MAX_KEY];
	struct kv_entry entry;
	int rc = kv_key_pad(padded, key, klen);

	if (!rc)
		rc = kv_table_read(&client->conn, KV_POOL_TABLE, table, padded, &entry);
	if (rc)
		return rc;
	if (!(entry.where & 1))
		return -ENOENT;
	return kv_client_read(client, KV_POOL_LOG, kv_where_line(entry.where) * TM_LINE,
			      kv_where_vlen(entry.where), value, cap, vlen);
}
