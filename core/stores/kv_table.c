/* SPDX-License-Identifier: BSD-3-Clause */
/* See kv_table.h. */
#include "core/stores/kv_table.h"
#include "core/rt/rt.h"

#include <errno.h>
#include <string.h>

uint64_t kv_table_slots(const struct tm_params *params)
{
	return kv_pow2(2 * (uint64_t)(params->keys ? params->keys : 1));
}

struct kv_entry *kv_table_find(const struct kv_table *table, const uint8_t key[TM_MAX_KEY],
			       bool *found)
{
	uint64_t first = kv_hash(key);

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

int kv_table_read(struct rpc_conn *conn, unsigned region, uint64_t slots,
		  const uint8_t key[TM_MAX_KEY], struct kv_entry *entry)
{
	uint64_t first = kv_hash(key);

	for (uint64_t i = 0; i < slots; i++) {
		uint64_t at = ((first + i) & (slots - 1)) * sizeof(*entry);
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
