/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: PUT, GET, DELETE. See nessie.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rdma_commit.h"
#include "core/rt/rt.h"
#include "core/stores/nessie/nessie.h"

#define REFUSALS 16 /* of what follows a compare-and-swap that others have seen */
#define NONE	 NESSIE_CANDIDATES

static size_t entry_bytes(const struct nessie_client *client)
{
	return client->pool.entry_lines * TM_LINE;
}

/* ------------------------------------------------------------------ open */

static int connect_server(struct nessie_client *client, const struct tm_env *env)
{
	bool two = env->params->knob[CONNS] == CONNS_TWO;
	int rc = rpc_open(&client->kv.conn, env, sizeof(uint64_t), entry_bytes(client), NULL);

	if (!rc && two)
		rc = kv_client_open_data(&client->kv, env, entry_bytes(client));
	return rc;
}

static bool commits(const struct tm_params *params)
{
	return nessie_flushes(params) && params->knob[FLUSH_BY] == BY_COMMIT;
}

static int start(struct nessie_client *client, const struct tm_env *env)
{
	int rc = commits(env->params) ? -tm_commit_supported(env->verbs) : 0;

	if (rc)
		return rc;
	client->own = calloc(client->pool.entries, sizeof(*client->own));
	client->out = calloc(1, entry_bytes(client));
	rc = client->own && client->out ? connect_server(client, env) : -ENOMEM;
	return rc ? rc : nessie_sweep(client);
}

int nessie_open(const struct tm_env *env, void **out)
{
	struct nessie_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->kv.params = *env->params;
	client->pool = nessie_pool_at(env->params, NULL);
	client->first = (env->client - 1) % client->pool.shares * client->pool.entries;
	int rc = start(client, env);
	if (!rc) {
		*out = client;
		return 0;
	}
	kv_client_close(&client->kv);
	free(client->own);
	free(client->out);
	free(client);
	return rc;
}

/* ----------------------------------------------------------------- words */

int nessie_read_word(struct nessie_client *client, uint64_t slot, uint64_t *word)
{
	const void *data;
	int rc = rpc_read(&client->kv.conn, NESSIE_INDEX, slot * sizeof(*word), sizeof(*word),
			  &data);

	if (!rc)
		memcpy(word, data, sizeof(*word));
	return rc;
}

/* -EAGAIN: it is another one. */
static int swap(struct nessie_client *client, uint64_t slot, uint64_t from, uint64_t to)
{
	uint64_t found;
	int rc = rpc_cas(&client->kv.conn, NESSIE_INDEX, slot * sizeof(found), from, to, &found);

	if (rc || has_bug(&client->kv.params, lost_won))
		return rc;
	return found == from ? 0 : -EAGAIN;
}

/* What this client has written through `conn` to a range is durable. */
static int flush(struct nessie_client *client, struct rpc_conn *conn, unsigned region, uint64_t off,
		 size_t len)
{
	if (!nessie_flushes(&client->kv.params))
		return 0;
	if (client->kv.params.knob[FLUSH_BY] == BY_FLUSH)
		return rpc_flush(conn, region, off, len);
	return rpc_commit(conn, region, off, len);
}

static int flush_word(struct nessie_client *client, uint64_t slot)
{
	return flush(client, &client->kv.conn, NESSIE_INDEX, slot * sizeof(uint64_t),
		     sizeof(uint64_t));
}

/* What others have seen already is worth some tries. */
static int insist(struct nessie_client *client, uint64_t slot)
{
	uint64_t nap = KV_NAP_NS;
	int rc;

	for (unsigned i = 0; (rc = flush_word(client, slot)) == -ENOMEM && i < REFUSALS; i++)
		kv_nap(&nap);
	return rc;
}

/* A flush covers what its own connection wrote. So write the word once more, the same. */
int nessie_settle(struct nessie_client *client, uint64_t slot, uint64_t word)
{
	int rc = swap(client, slot, word, word);

	return rc ? rc : flush_word(client, slot);
}

/* A seeded bug's way to change a word. */
static int write_word(struct nessie_client *client, uint64_t slot, uint64_t word)
{
	int rc = rpc_write(&client->kv.conn, NESSIE_INDEX, slot * sizeof(word), &word,
			   sizeof(word));

	return rc ? rc : insist(client, slot);
}

/* Replace a word for good: the commit point. -EAGAIN: it has changed meanwhile, and stays. */
static int replace(struct nessie_client *client, uint64_t slot, uint64_t from, uint64_t to)
{
	uint64_t pending = nessie_reads_durable(&client->kv.params) ? NESSIE_PENDING : 0;
	bool unflushed = to & NESSIE_USED ? has_bug(&client->kv.params, index_unflushed)
					  : has_bug(&client->kv.params, delete_unflushed);
	int rc = swap(client, slot, from, to | pending);

	if (!rc && has_bug(&client->kv.params, pending_early))
		swap(client, slot, to | pending, to);
	if (!rc && !unflushed)
		rc = insist(client, slot);
	/* If that fails, it is another one already, or readers take a little longer. */
	if (!rc && pending)
		swap(client, slot, to | pending, to);
	return rc;
}

/* ------------------------------------------------------------------ look */

/* What was found of a key. */
struct found {
	struct nessie_place place;
	uint64_t word[NESSIE_CANDIDATES];
	unsigned words;			  /* so many were READ */
	unsigned hit;			  /* the key's slot; NONE */
	unsigned unowned;		  /* the first slot without an owner; NONE */
	const struct nessie_entry *entry; /* of the hit, until the next request */
};

/* May what was READ be written to already? */
static bool too_slow(const struct tm_params *params, uint64_t since)
{
	return !params->knob[REUSE_NOW] && !params->knob[CLOCK] &&
	       rt_now() - since > NESSIE_GRACE_NS;
}

/* Read the entry that the word names. -ENOENT: it is another key's. -EAGAIN: it may have been
 * written to meanwhile. `since`: when the word had not been read yet. */
static int read_entry(struct nessie_client *client, uint64_t word, uint64_t since,
		      const uint8_t *key, size_t klen, struct found *found)
{
	const struct tm_params *params = &client->kv.params;
	bool unchecked = has_bug(params, unchecked);
	const void *data;
	uint64_t entry;

	if (!nessie_names(&client->pool, word, &entry))
		return -EAGAIN;
	int rc = rpc_read(kv_client_data(&client->kv), NESSIE_DATA,
			  nessie_entry_off(&client->pool, entry), entry_bytes(client), &data);
	if (rc)
		return rc;
	found->entry = data;
	if (too_slow(params, since) || !nessie_sane(found->entry, client->kv.params.max_vlen))
		return -EAGAIN;
	if (!params->knob[CRC] && !unchecked &&
	    !nessie_whole(found->entry, client->kv.params.max_vlen))
		return -EAGAIN;
	if (params->knob[VERIFY_OBJ_KEY] || unchecked)
		return 0;
	if (found->entry->klen == klen && rt_check(!memcmp(found->entry->bytes, key, klen)))
		return 0;
	return -ENOENT;
}

/* Has the slot no owner? */
static bool unowned(const struct nessie_client *client, uint64_t word)
{
	return !nessie_owned(word) ||
	       (has_bug(&client->kv.params, owner_ignored) && !(word & NESSIE_USED));
}

/* Look at the key's slots. `deleted`: a slot counts as the key's although the key is deleted. */
static int look(struct nessie_client *client, const uint8_t *key, size_t klen, bool deleted,
		struct found *found)
{
	bool last = client->kv.params.knob[DELETE] == DELETE_MARK;
	uint64_t since = rt_now();
	int rc = -ENOENT;

	found->place = nessie_place_of(&client->pool, key);
	assert(found->place.slots <= NESSIE_CANDIDATES);
	found->hit = found->unowned = NONE;
	for (unsigned i = 0; i < found->place.slots && rc == -ENOENT; i++) {
		uint64_t *word = &found->word[i];

		rc = nessie_read_word(client, found->place.slot[i], word);
		if (rc)
			return rc;
		found->words = i + 1;
		rc = -ENOENT;
		if (unowned(client, *word)) {
			if (found->unowned == NONE)
				found->unowned = i;
			if (last)
				break;
		} else if (nessie_tag(*word) == found->place.tag &&
			   (deleted || *word & NESSIE_USED)) {
			rc = read_entry(client, *word, since, key, klen, found);
			found->hit = rc ? NONE : i;
			if (rc == -ENOENT && !deleted && has_bug(&client->kv.params, other_again))
				return -EAGAIN;
		}
	}
	return rc == -ENOENT ? 0 : rc;
}

/* The first `n` of the words that were READ are durable on return. */
static int settle_words(struct nessie_client *client, const struct found *found, unsigned n)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++)
		if (found->word[i] & NESSIE_PENDING)
			rc = nessie_settle(client, found->place.slot[i], found->word[i]);
	return rc;
}

/* ------------------------------------------------------------------- PUT */

static int flush_entry(struct nessie_client *client, uint64_t entry, size_t len)
{
	return flush(client, kv_client_data(&client->kv), NESSIE_DATA,
		     nessie_entry_off(&client->pool, entry), len);
}

/* It is durable on return. */
static int write_entry(struct nessie_client *client, uint64_t entry, size_t len)
{
	uint64_t off = nessie_entry_off(&client->pool, entry);

	if (has_bug(&client->kv.params, cas_early))
		return rpc_write_behind(kv_client_data(&client->kv), NESSIE_DATA, off, client->out,
					len);
	int rc = rpc_write(kv_client_data(&client->kv), NESSIE_DATA, off, client->out, len);
	if (rc || has_bug(&client->kv.params, data_unflushed))
		return rc;
	return flush_entry(client, entry, len);
}

static size_t fill_entry(struct nessie_client *client, const void *key, size_t klen,
			 const void *value, size_t vlen)
{
	struct nessie_entry *entry = client->out;

	assert(sizeof(*entry) + klen + vlen <= entry_bytes(client));
	entry->klen = (uint32_t)klen;
	entry->vlen = (uint32_t)vlen;
	memcpy(entry->bytes, key, klen);
	if (vlen)
		memcpy(entry->bytes + klen, value, vlen);
	entry->crc = nessie_crc(entry);
	return sizeof(*entry) + klen + vlen;
}

/* Have the key's word name the entry. */
static int try_put(struct nessie_client *client, const uint8_t *key, size_t klen, uint64_t entry)
{
	struct found found;
	uint64_t old;
	int rc = look(client, key, klen, true, &found);

	if (rc)
		return rc;
	unsigned at = found.hit != NONE ? found.hit : found.unowned;
	if (at == NONE)
		return -ENOSPC;
	assert(at < found.words); /* what takes its place names an older one */
	/* A search ends at a slot without an owner: the slots before it must keep theirs. */
	if (!has_bug(&client->kv.params, passed_trusted))
		rc = settle_words(client, &found, at);
	if (rc)
		return rc;
	rc = replace(client, found.place.slot[at], found.word[at],
		     nessie_word(&client->pool, &found.place, entry));
	if (!rc && found.hit != NONE && nessie_names(&client->pool, found.word[at], &old))
		nessie_give(client, old);
	return rc;
}

int nessie_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct nessie_client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	uint64_t entry, nap = KV_NAP_NS;
	size_t len;
	int rc = kv_key_pad(padded, key, klen);

	if (rc)
		return rc;
	if (vlen > client->kv.params.max_vlen)
		return -EMSGSIZE;
	rc = nessie_take(client, &entry);
	if (rc)
		return rc;
	len = fill_entry(client, key, klen, value, vlen);
	rc = write_entry(client, entry, len);
	while (!rc && (rc = try_put(client, padded, klen, entry)) == -EAGAIN) {
		kv_nap(&nap);
		rc = 0;
	}
	if (!rc && has_bug(&client->kv.params, cas_early))
		rc = flush_entry(client, entry, len);
	return rc;
}

/* ---------------------------------------------------------------- DELETE */

static int try_del(struct nessie_client *client, const uint8_t *key, size_t klen)
{
	struct found found;
	bool zero = client->kv.params.knob[DELETE] == DELETE_ZERO;
	uint64_t old;
	int rc = look(client, key, klen, true, &found);

	if (rc)
		return rc;
	if (found.hit == NONE || !(found.word[found.hit] & NESSIE_USED))
		return has_bug(&client->kv.params, absence_trusted)
			       ? 0
			       : settle_words(client, &found, found.words);
	uint64_t slot = found.place.slot[found.hit];
	uint64_t word = found.word[found.hit];
	uint64_t to = zero ? 0 : word & ~(NESSIE_USED | NESSIE_PENDING);
	rc = has_bug(&client->kv.params, del_write) ? write_word(client, slot, to)
						    : replace(client, slot, word, to);
	if (!rc && zero && nessie_names(&client->pool, word, &old))
		nessie_give(client, old);
	return rc;
}

int nessie_del(void *arg, const void *key, size_t klen)
{
	struct nessie_client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	uint64_t nap = KV_NAP_NS;
	int rc = kv_key_pad(padded, key, klen);

	while (!rc && (rc = try_del(client, padded, klen)) == -EAGAIN) {
		kv_nap(&nap);
		rc = 0;
	}
	return rc;
}

/* ------------------------------------------------------------------- GET */

static int try_get(struct nessie_client *client, const uint8_t *key, size_t klen, void *value,
		   size_t cap, size_t *vlen)
{
	struct found found;
	int rc = look(client, key, klen, false, &found);

	if (rc)
		return rc;
	if (found.hit == NONE) { /* what says so is durable */
		if (!has_bug(&client->kv.params, absence_trusted))
			rc = settle_words(client, &found, found.words);
		return rc ? rc : -ENOENT;
	}
	*vlen = found.entry->vlen;
	memcpy(value, found.entry->bytes + found.entry->klen, *vlen < cap ? *vlen : cap);
	if (!(found.word[found.hit] & NESSIE_PENDING))
		return 0;
	return nessie_settle(client, found.place.slot[found.hit], found.word[found.hit]);
}

int nessie_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct nessie_client *client = arg;
	uint8_t padded[TM_MAX_KEY];
	uint64_t nap = KV_NAP_NS;
	int rc = kv_key_pad(padded, key, klen);

	if (rc)
		return rc;
	while ((rc = try_get(client, padded, klen, value, cap, vlen)) == -EAGAIN)
		kv_nap(&nap);
	return rc;
}
