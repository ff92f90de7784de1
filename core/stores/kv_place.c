/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_place.h. */
#include "core/stores/kv_place.h"

#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"

struct kv_place kv_place_at(const struct tm_env *env, unsigned lacks)
{
	struct kv_place place = {.pool = kv_pool_at(env->params, env->pm),
				 .max_vlen = env->params->max_vlen,
				 .lacks = lacks};

	place.tail = kv_pool_tail(&place.pool);
	return place;
}

/* In the log; where rooms are reused an empty value has one, too. */
static uint64_t room_lines(uint32_t vlen)
{
	return vlen ? kv_lines(vlen) : 1;
}

static void mark_room(struct kv_place *place, uint64_t where, bool used)
{
	assert(place->reuse != KV_REUSE_OFF && (where & 1)); /* there are rooms, and it is one */
	kv_rooms_mark(&place->rooms, kv_where_line(where), room_lines(kv_where_vlen(where)), used);
}

int kv_place_reuse(struct kv_place *place, enum kv_reuse reuse)
{
	const struct kv_pool *pool = &place->pool;
	int rc = reuse ? kv_rooms_init(&place->rooms, pool->log_lines) : 0;

	if (rc)
		return rc;
	place->reuse = reuse;
	for (uint64_t i = 0; reuse && i < pool->table.slots; i++) {
		const struct kv_entry *entry = &pool->table.entry[i];

		if ((entry->ctl & KV_USED) && (entry->where & 1))
			mark_room(place, entry->where, true);
	}
	return 0;
}

int kv_place_recover(const struct tm_env *env)
{
	struct kv_pool pool = kv_pool_at(env->params, env->pm);

	kv_pool_drop_impossible(&pool);
	while (kv_pool_move_unreachable(&pool))
		;
	pmem_persist(pool.table.entry, kv_table_bytes(env->params));
	return 0;
}

void kv_place_persist(const struct kv_place *place, const void *from, size_t len)
{
	if (!(place->lacks & KV_LACKS_PERSIST))
		pmem_persist(from, len);
}

static void persist_value(const struct kv_place *place, uint64_t line, uint32_t vlen)
{
	const uint8_t *value = place->pool.log + line * TM_LINE;

	if (place->lacks & KV_LACKS_VALUE)
		return;
	if (place->lacks & KV_LACKS_LINES)
		pmem_persist(value, TM_LINE);
	else
		kv_place_persist(place, value, vlen);
}

/* What an entry named until now. */
static void give_away(struct kv_place *place, uint64_t where)
{
	if (!(where & 1) || place->reuse == KV_REUSE_OFF || (place->lacks & KV_LACKS_PATIENCE))
		return;
	if (place->reuse == KV_REUSE_GRACE)
		kv_rooms_free_at(&place->rooms, kv_where_line(where),
				 room_lines(kv_where_vlen(where)),
				 rt_now() + rt_duration(KV_LEASE_NS));
	else
		mark_room(place, where, false);
}

/* The commit point: from here on GETs return it. */
static int publish(struct kv_place *place, const struct kv_placed *value)
{
	uint64_t where = kv_where(value->line, value->vlen);
	bool found;

	assert(value->line + kv_lines(value->vlen) <= place->pool.log_lines);
	struct kv_entry *entry = kv_table_find(&place->pool.table, value->key, &found);
	if (!entry)
		return -ENOSPC;
	uint64_t former = found ? entry->where : 0;
	if (!found) {
		memcpy(entry->key, value->key, sizeof(entry->key));
		entry->where = where;
		kv_place_persist(place, entry, sizeof(*entry));
		__atomic_store_n(&entry->ctl, kv_checked_ctl(value->key, value->klen),
				 __ATOMIC_SEQ_CST);
	} else {
		__atomic_store_n(&entry->where, where, __ATOMIC_SEQ_CST);
	}
	if (!(place->lacks & KV_LACKS_ENTRY))
		kv_place_persist(place, entry, sizeof(*entry));
	give_away(place, former);
	return 0;
}

/* Where the value of a PUT goes. `entry`: the key's, NULL if it has none. */
static int find_room(struct kv_place *place, const struct kv_entry *entry, uint32_t vlen,
		     uint64_t *line)
{
	uint64_t need = kv_lines(vlen);

	if (place->reuse == KV_REUSE_OFF) {
		assert(place->tail <= place->pool.log_lines);
		if (need > place->pool.log_lines - place->tail)
			return -ENOSPC;
		*line = place->tail;
		place->tail += need;
		return 0;
	}
	if ((place->lacks & KV_LACKS_PATIENCE) && entry && (entry->where & 1))
		mark_room(place, entry->where, false);
	return kv_rooms_take(&place->rooms, room_lines(vlen), line);
}

int kv_place_reserve(struct kv_place *place, struct kv_placed *value, const struct kv_req *req)
{
	uint64_t line;
	bool found;

	if (req->vlen > place->max_vlen)
		return -EMSGSIZE;
	const struct kv_entry *entry = kv_table_find(&place->pool.table, req->key, &found);
	if (!entry || rt_pm_full())
		return -ENOSPC;
	int rc = find_room(place, found ? entry : NULL, req->vlen, &line);
	if (rc)
		return rc;
	*value = (struct kv_placed){req->klen, req->vlen, line, {0}};
	memcpy(value->key, req->key, sizeof(value->key));
	return 0;
}

int kv_place_commit(struct kv_place *place, const struct kv_placed *value)
{
	int rc;

	if (place->lacks & KV_LACKS_ORDER) {
		rc = publish(place, value);
		persist_value(place, value->line, value->vlen);
		return rc;
	}
	persist_value(place, value->line, value->vlen);
	return publish(place, value);
}

int kv_place_put(struct kv_place *place, const struct kv_req *req, const void *bytes)
{
	struct kv_placed value;
	int rc = kv_place_reserve(place, &value, req);

	if (rc)
		return rc;
	memcpy(place->pool.log + value.line * TM_LINE, bytes, req->vlen);
	return kv_place_commit(place, &value);
}

const void *kv_place_get(const struct kv_place *place, const uint8_t key[TM_MAX_KEY],
			 uint32_t *vlen)
{
	bool found;
	const struct kv_entry *entry = kv_table_find(&place->pool.table, key, &found);

	if (!found || !(entry->where & 1))
		return NULL;
	*vlen = kv_where_vlen(entry->where);
	return place->pool.log + kv_where_line(entry->where) * TM_LINE;
}

void kv_place_del(struct kv_place *place, const uint8_t key[TM_MAX_KEY])
{
	bool found;
	struct kv_entry *entry = kv_table_find(&place->pool.table, key, &found);

	if (!found)
		return;
	uint64_t former = entry->where;
	__atomic_store_n(&entry->where, 0, __ATOMIC_SEQ_CST);
	if (!(place->lacks & KV_LACKS_DELETE))
		kv_place_persist(place, entry, sizeof(*entry));
	give_away(place, former);
}

int kv_place_execute(struct kv_place *place, const struct kv_req *req, const void *bytes,
		     const void **value, uint32_t *vlen)
{
	switch (req->op) {
	case KV_PUT:
		return kv_place_put(place, req, bytes);
	case KV_GET:
		*value = kv_place_get(place, req->key, vlen);
		return *value ? 0 : -ENOENT;
	case KV_DEL:
		kv_place_del(place, req->key);
		return 0;
	default:
		return -EPROTO;
	}
}
