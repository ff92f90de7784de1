/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A log that is a ring, and what makes room in it.
 *
 * The server takes the log's records, oldest first, into the applied table: a record's copy
 * in the entry of its key, in place of the one before. Then the head moves, and the slot may
 * be written again. Four things are made durable, each before the next begins:
 *
 *	the record, and a tail that counts it	 the entry is overwritten in place: if the power
 *						 fails half-way, the log still has the record
 *	the entry				 no reader looks for the record after the head
 *	the head				 a slot that the head has not passed is
 *						 where recovery begins
 *	...and then clients learn that there is room
 *
 * A visible tail's records are durable without our doing: that is what a method is for.
 *
 * The table has as many entries as there are keys. A key is looked for from the entry that
 * its hash names, through the following ones, until an entry that was never used. Entries
 * are never given back: a DELETE's record stays in its key's.
 *
 * At most one entry is not whole after a power failure. Its key is then the one of the
 * log's first record, because that was being taken into it; so a search on behalf of that
 * record, the first thing that recovery does, may take it for its own.
 */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/remotelog/remotelog.h"

unsigned rl_first_entry(const struct tm_params *params, const uint8_t key[TM_MAX_KEY])
{
	return (unsigned)(kv_hash(key) % params->keys);
}

uint64_t rl_entry_off(const struct tm_params *params, unsigned entry)
{
	return rl_log_end(params) + entry % params->keys * rl_span(params);
}

struct rl_record *rl_entry(const struct tm_params *params, uint8_t *pm,
			   const uint8_t key[TM_MAX_KEY])
{
	unsigned first = rl_first_entry(params, key);

	for (unsigned i = 0; i < params->keys; i++) {
		struct rl_record *entry = (struct rl_record *)(pm +
							       rl_entry_off(params, first + i));

		if (!entry->seq || !rl_whole(params, entry) ||
		    rt_check(memcmp(entry->key, key, TM_MAX_KEY) == 0))
			return entry;
	}
	return NULL;
}

/* The record is in its key's entry, whatever happens from now on. */
static int take_record(const struct tm_params *params, uint8_t *pm, struct rl_record **entry,
		       const struct rl_record *record)
{
	size_t bytes = rl_record_bytes(record);

	*entry = rl_entry(params, pm, record->key);
	if (!*entry)
		return -ENOSPC;
	memcpy(*entry, record, bytes);
	if (rl_knobs(params)->bug == RL_GC_SHORT)
		bytes = record->len;
	if (rl_knobs(params)->bug != RL_GC_EARLY)
		pmem_persist(*entry, bytes);
	return 0;
}

int rl_collect(const struct tm_params *params, uint8_t *pm, struct rl_words *words)
{
	uint64_t *head = (uint64_t *)(pm + RL_HEAD), seq = *head + 1;
	const struct rl_record *record = rl_slot(params, pm, seq);
	struct rl_record *entry = NULL;

	if (words && rl_knobs(params)->bug == RL_ROOM_EARLY)
		__atomic_store_n(&words->head, seq, __ATOMIC_RELEASE);
	if (rl_whole(params, record)) {
		if (rl_knobs(params)->bug != RL_GC_DIRTY) {
			pmem_persist(record, rl_record_bytes(record));
			if (rl_method(params)->compound && rl_knobs(params)->bug != RL_HEAD_FIRST)
				rl_persist_tail(params, pm);
		}
		if (take_record(params, pm, &entry, record))
			return -ENOSPC;
	}
	*head = seq;
	if (words || rl_knobs(params)->bug != RL_RECOVER_HEAD)
		pmem_persist(head, sizeof(*head));
	if (entry && rl_knobs(params)->bug == RL_GC_EARLY)
		pmem_persist(entry, rl_record_bytes(record));
	if (words)
		__atomic_store_n(&words->head, seq, __ATOMIC_RELEASE);
	return 0;
}
