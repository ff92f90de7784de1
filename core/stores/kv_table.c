/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_table.h. */
#include "core/stores/kv_table.h"
#include "core/rt/rt.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct kv_table kv_table_at(const struct tm_params *params, uint8_t *pm)
{
	uint64_t keys = params->keys ? params->keys : 1;
	bool crowded = params->knob[KV_CROWD];

	return (struct kv_table){(struct kv_entry *)pm, kv_pow2(crowded ? keys : 2 * keys),
				 crowded};
}

/* One of the last two slots: with a single home no key would be in the way of those of another, and
 * what follows them goes on at the table's start. The number at a key's end decides, which stays
 * when its length is another. */
static uint64_t crowded_home(const uint8_t key[TM_MAX_KEY])
{
	unsigned klen = TM_MAX_KEY;

	while (klen > 1 && !key[klen - 1])
		klen--;
	return UINT64_MAX - key[klen - 1] % 2;
}

uint64_t kv_table_home(const struct kv_table *table, const uint8_t key[TM_MAX_KEY])
{
	return table->crowded ? crowded_home(key) : kv_hash(key);
}

struct kv_entry *kv_table_find(const struct kv_table *table, const uint8_t key[TM_MAX_KEY],
			       bool *found)
{
	uint64_t first = kv_table_home(table, key);

	/* A client has no entries here, it READs them. */
	assert(table->entry && !(table->slots & (table->slots - 1)));
	*found = false;
	for (uint64_t i = 0; i < table->slots; i++) {
		struct kv_entry *entry = &table->entry[(first + i) & (table->slots - 1)];

		if (!(entry->ctl & KV_USED))
			return entry;
		*found = rt_check(memcmp(entry->key, key, TM_MAX_KEY) == 0);
		if (*found)
			return entry;
	}
	return NULL;
}

bool kv_entry_sane(const struct kv_entry *entry)
{
	unsigned klen = (uint8_t)(entry->ctl >> KV_KLEN_SHIFT);

	if (klen == 0 || klen > TM_MAX_KEY || !entry->key[klen - 1])
		return false;
	for (unsigned i = klen; i < TM_MAX_KEY; i++)
		if (entry->key[i])
			return false;
	return true;
}

uint64_t kv_checked_ctl(const uint8_t key[TM_MAX_KEY], unsigned klen)
{
	return KV_USED | (uint64_t)klen << KV_KLEN_SHIFT | kv_hash(key) << KV_KEY_SHIFT;
}

bool kv_entry_whole(const struct kv_entry *entry)
{
	unsigned klen = (uint8_t)(entry->ctl >> KV_KLEN_SHIFT);

	return kv_entry_sane(entry) && entry->ctl == kv_checked_ctl(entry->key, klen);
}

void kv_entry_clear(struct kv_entry *entry)
{
	__atomic_store_n(&entry->ctl, 0, __ATOMIC_SEQ_CST);
	memset(entry, 0, sizeof(*entry));
}

int kv_table_read(struct rpc_conn *conn, unsigned region, const struct kv_table *table,
		  const uint8_t key[TM_MAX_KEY], struct kv_entry *entry)
{
	uint64_t first = kv_table_home(table, key);

	for (uint64_t i = 0; i < table->slots; i++) {
		uint64_t at = ((first + i) & (table->slots - 1)) * sizeof(*entry);
		const void *data;
		int rc = rpc_read(conn, region, at, sizeof(*entry), &data);

		if (rc)
			return rc;
		memcpy(entry, data, sizeof(*entry));
		if (!(entry->ctl & KV_USED))
			return -ENOENT;
		if (rt_check(memcmp(entry->key, key, TM_MAX_KEY) == 0))
			return 0;
	}
	return -ENOENT;
}
