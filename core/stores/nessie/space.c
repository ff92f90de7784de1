/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's share of the data. A client is not told that an entry of its share is free again: if
 * its own compare-and-swap has replaced the word, it knows, and else it READs the whole index when
 * it has no free entry left. No other client makes words name entries of the share, so what no word
 * names stays free.
 *
 * With reuse_now=on an entry is written to as soon as it is free, the last one first.
 */
#include <errno.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/nessie/nessie.h"

#define SWEEP_WORDS (TM_LINE / sizeof(uint64_t))

/* ----------------------------------------------------------------- sweep */

static void mark_used(struct nessie_client *client, uint64_t word)
{
	uint64_t entry;

	if (nessie_owned(word) && nessie_names(&client->pool, word, &entry) &&
	    entry - client->first < client->pool.entries)
		client->own[entry - client->first].free = false;
}

/* A word that is not durable may have replaced one that is, and names an entry of this share: after
 * a power failure it would name it again. */
static int sweep_word(struct nessie_client *client, uint64_t slot, uint64_t word)
{
	int rc = 0;

	while ((word & NESSIE_PENDING) && !has_bug(&client->kv.params, sweep_pending)) {
		rc = nessie_settle(client, slot, word);
		if (rc != -EAGAIN)
			break;
		rc = nessie_read_word(client, slot, &word);
		if (rc)
			return rc;
	}
	mark_used(client, word);
	return rc;
}

static int sweep_line(struct nessie_client *client, uint64_t slot, uint64_t n)
{
	uint64_t word[SWEEP_WORDS];
	const void *data;
	int rc = rpc_read(&client->kv.conn, NESSIE_INDEX, slot * sizeof(*word), n * sizeof(*word),
			  &data);

	if (!rc)
		memcpy(word, data, n * sizeof(*word));
	for (uint64_t i = 0; i < n && !rc; i++)
		rc = sweep_word(client, slot + i, word[i]);
	return rc;
}

int nessie_sweep(struct nessie_client *client)
{
	uint64_t slots = client->pool.slots;
	int rc = 0;

	for (uint64_t i = 0; i < client->pool.entries; i++)
		client->own[i] = (struct nessie_own){true, rt_now()};
	if (has_bug(&client->kv.params, sweep_skipped))
		return 0;
	for (uint64_t slot = 0; slot < slots && !rc; slot += SWEEP_WORDS)
		rc = sweep_line(client, slot,
				slots - slot < SWEEP_WORDS ? slots - slot : SWEEP_WORDS);
	for (uint64_t i = 0; i < client->pool.entries; i++) {
		client->own[i].free &= !rc;
		client->own[i].since = rt_now();
	}
	return rc;
}

/* --------------------------------------------------------- take and give */

/* The free entry for which the time is ripe first; with reuse_now the last one given. NULL: there
 * is none. */
static struct nessie_own *choose_free(struct nessie_client *client)
{
	bool last = client->kv.params.knob[REUSE_NOW];
	struct nessie_own *best = NULL;

	for (uint64_t i = 0; i < client->pool.entries; i++) {
		struct nessie_own *own = &client->own[i];

		if (own->free &&
		    (!best || (last ? own->since > best->since : own->since < best->since)))
			best = own;
	}
	return best;
}

static void wait_for(const struct nessie_client *client, const struct nessie_own *own)
{
	uint64_t ripe = own->since + NESSIE_GRACE_NS, now = rt_now();

	if (!client->kv.params.knob[REUSE_NOW] && now < ripe)
		rt_sleep(ripe - now);
}

int nessie_take(struct nessie_client *client, uint64_t *entry)
{
	struct nessie_own *own = choose_free(client);
	int rc;

	if (!own) {
		rc = nessie_sweep(client);
		if (rc)
			return rc;
		own = choose_free(client);
	}
	if (!own || rt_pm_full())
		return -ENOSPC;
	wait_for(client, own);
	own->free = false;
	*entry = client->first + (uint64_t)(own - client->own);
	return 0;
}

void nessie_give(struct nessie_client *client, uint64_t entry)
{
	if (entry - client->first < client->pool.entries)
		client->own[entry - client->first] = (struct nessie_own){true, rt_now()};
}
