/* SPDX-License-Identifier: BSD-3-Clause */
/* A client coordinates its transactions. See farm.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"

#define MOST_TRIES  2000     /* of connecting */
#define MOST_NAP_NS 50000000 /* a connection to a dead server fails after two seconds */
#define RECORDS	    4	     /* of a transaction at a server, the TRUNCATE included */

/* The exported regions. */
#define LOGS	0
#define OBJECTS 1
#define DONE	2

/* A key of the transaction. */
struct item {
	uint8_t key[TM_MAX_KEY];
	unsigned region, slot;
	uint64_t seen; /* its head when it was read */
	bool written;
	uint32_t vlen;	      /* what it is now, FARM_DELETED: nothing */
	const uint8_t *value; /* of the caller, or `read` */
	uint8_t *read;
};

struct client {
	struct tm_params params;
	struct tm_env env;
	struct farm_pool pool; /* only sizes are of use */
	struct rt_config config;
	struct rpc_conn conn[FARM_SERVERS];
	uint32_t connected;
	uint64_t next[FARM_SERVERS]; /* records in its logs */
	uint64_t done[FARM_SERVERS]; /* places before this one are free, at least */
	uint64_t counter;
	uint64_t outcome; /* what the manager said of the last transaction */
	uint32_t behind,
		took; /* servers: that have not acknowledged COMMIT-PRIMARY; with records */
	struct record *record;
	struct item item[TM_TXN_OPS];
	unsigned items;
	bool doubtful; /* the transaction may be committed */
};

/* --- connections --- */

static void disconnect(struct client *client)
{
	for (unsigned s = 0; s < FARM_SERVERS; s++)
		if (client->connected >> s & 1)
			rpc_close(&client->conn[s]);
	client->connected = 0;
	client->behind = client->took = 0;
}

static int call(struct client *client, unsigned s, struct ask *ask, struct say *say)
{
	size_t len;
	ask->epoch = client->config.epoch;
	int rc = rpc_call(&client->conn[s], ask, sizeof(*ask), say, sizeof(*say), &len);
	if (!rc && len < sizeof(*say))
		rc = -EPROTO;
	return rc ? -EIO : say->status;
}

static int connect_to(struct client *client, unsigned s)
{
	const struct ask hello = {.op = HELLO, .all = s == client->config.primary};
	const size_t data = client->pool.record_bytes > client->pool.object_bytes
				    ? client->pool.record_bytes
				    : client->pool.object_bytes;
	struct tm_env env = client->env;
	struct ask ask = hello;
	struct say say;
	env.server = s;
	int rc = rpc_open(&client->conn[s], &env, farm_message_bytes(&client->params), data, NULL);
	if (rc)
		return rc;
	client->connected |= 1u << s;
	uint64_t nap = KV_NAP_NS;
	while ((rc = call(client, s, &ask, &say)) == -EAGAIN) {
		struct rt_config now;
		kv_nap_to(&nap, MOST_NAP_NS);
		rt_config_get(&now);
		if (now.epoch != client->config.epoch)
			return -ESTALE;
	}
	client->next[s] = say.seq;
	client->done[s] = say.seq - 1;
	if (!rc && hello.all) {
		client->counter = say.number > client->counter ? say.number : client->counter;
		client->outcome = say.outcome;
	}
	return rc;
}

/* To the manager first: what the client has left is recovered before it writes again. */
static int connect_all(struct client *client)
{
	rt_config_get(&client->config);
	const struct rt_config *now = &client->config;
	if (!(now->members >> now->primary & 1))
		return -EAGAIN;
	int rc = connect_to(client, now->primary);
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if (s != now->primary && now->members >> s & 1)
			rc = connect_to(client, s);
	return rc;
}

static int reconnect(struct client *client)
{
	uint64_t nap = KV_NAP_NS;
	int rc = -EIO;
	for (unsigned tries = 0; rc && tries < MOST_TRIES; tries++) {
		disconnect(client);
		rc = connect_all(client);
		if (rc)
			kv_nap_to(&nap, MOST_NAP_NS);
	}
	return rc ? -EIO : 0;
}

int farm_open(const struct tm_env *env, void **out)
{
	struct client *client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	client->params = *env->params;
	client->env = *env;
	client->env.params = &client->params;
	client->pool = farm_pool_at(&client->params, NULL);
	client->record = calloc(1, client->pool.record_bytes);
	if (!client->record)
		return -ENOMEM;
	for (unsigned i = 0; i < TM_TXN_OPS; i++) {
		client->item[i].read = calloc(1, env->params->max_vlen + 1);
		if (!client->item[i].read)
			return -ENOMEM;
	}
	*out = client;
	return reconnect(client);
}

/* --- reading --- */

static unsigned primary_of(const struct client *client, unsigned region)
{
	return client->config.part[region].primary;
}

static int read_bytes(struct client *client, const struct item *item, size_t len,
		      const struct object **object)
{
	const uint64_t off = item->region * client->pool.region_bytes +
			     item->slot * client->pool.object_bytes;
	struct rpc_conn *conn = &client->conn[primary_of(client, item->region)];
	const void *bytes = NULL;
	int rc = rpc_settle(conn); /* a COMMIT-PRIMARY may have to be sent again from there */
	if (!rc)
		rc = rpc_read(conn, OBJECTS, off, len, &bytes);
	*object = bytes;
	return rc ? -EIO : 0;
}

/* What was read came from servers that lead still: else others may have a newer version, and what
 * is locked there stays so. */
static int check_membership(const struct client *client, const struct item *item, unsigned items)
{
	struct rt_config now;
	if (client->params.knob[MEMBERSHIP] == MEMBERSHIP_IGNORED)
		return 0;
	rt_config_get(&now);
	for (const struct item *i = item; i < item + items; i++)
		if (now.part[i->region].primary != primary_of(client, i->region))
			return -ESTALE;
	return 0;
}

/* One version of the object, which nobody has locked. */
static int read_object(struct client *client, const struct item *item, const struct object **object)
{
	const struct tm_params *params = &client->params;
	uint64_t nap = KV_NAP_NS;
	for (bool again = false;; again = true) {
		if (again)
			kv_nap_to(&nap, MOST_NAP_NS);
		int rc = again ? check_membership(client, item, 1) : 0;
		if (!rc)
			rc = read_bytes(client, item, client->pool.object_bytes, object);
		if (rc)
			return rc;
		if ((*object)->head & HEAD_LOCK && !has_bug(params, reads_locked))
			continue;
		if ((*object)->vlen > params->max_vlen)
			continue;
		if (params->knob[LINE_VERSIONS] == VERSIONS_OFF || rt_check(farm_is_whole(*object)))
			return 0;
	}
}

/* Another key of the transaction goes there. */
static bool is_taken(const struct client *client, const struct item *item)
{
	for (const struct item *i = client->item; i < item; i++)
		if (i->region == item->region && i->slot == item->slot)
			return true;
	return false;
}

static int find_item(struct client *client, struct item *item)
{
	const struct object *object;
	item->region = farm_region(item->key);
	for (unsigned n = 0; n < client->pool.slots; n++) {
		item->slot = farm_slot(&client->pool, item->key, n);
		int rc = read_object(client, item, &object);
		if (rc)
			return rc;
		const bool is_free = !farm_version(object->head);
		if (is_free ? is_taken(client, item)
			    : memcmp(object->key, item->key, sizeof(item->key)) != 0)
			continue;
		item->seen = object->head & ~HEAD_LOCK;
		item->vlen = FARM_DELETED;
		item->value = item->read;
		if (is_free || !(object->head & HEAD_VALUE))
			return 0;
		item->vlen = object->vlen;
		farm_value(object, item->read);
		return 0;
	}
	return -ENOSPC;
}

/* The key's item, which is read when it is first named. */
static int item_of(struct client *client, const struct tm_txn_op *op, struct item **out)
{
	struct item *item = &client->item[client->items];
	uint8_t key[TM_MAX_KEY];
	int rc = kv_key_pad(key, op->key, op->klen);
	if (rc)
		return rc;
	for (unsigned i = 0; i < client->items; i++)
		if (!memcmp(client->item[i].key, key, sizeof(key))) {
			*out = &client->item[i];
			return 0;
		}
	memcpy(item->key, key, sizeof(key));
	item->written = false;
	rc = find_item(client, item);
	client->items += !rc;
	*out = item;
	return rc;
}

static int execute(struct client *client, struct tm_txn *txn)
{
	client->items = 0;
	for (unsigned i = 0; i < txn->ops; i++) {
		struct tm_txn_op *op = &txn->op[i];
		struct item *item;
		int rc = item_of(client, op, &item);
		if (rc)
			return rc;
		if (op->put || op->del) {
			item->written |= op->put || item->vlen != FARM_DELETED;
			item->vlen = op->put ? (uint32_t)op->vlen : FARM_DELETED;
			item->value = op->value;
			continue;
		}
		op->found = item->vlen != FARM_DELETED;
		if (!op->found)
			continue;
		op->vlen = item->vlen;
		memcpy(op->answer, item->value, op->vlen < op->cap ? op->vlen : op->cap);
	}
	return 0;
}

/* --- records --- */

/* Of this server: entries of what it leads, or backs. */
static void fill(struct client *client, unsigned s, enum farm_type type)
{
	struct record like = {.epoch = client->config.epoch,
			      .counter = client->counter,
			      .client = client->env.client};
	for (unsigned i = 0; i < client->items; i++)
		like.regions |= (uint8_t)(client->item[i].written << client->item[i].region);
	farm_record_begin(client->record, type, &like);
	for (unsigned i = 0; i < client->items && type <= COMMIT_BACKUP; i++) {
		const struct item *item = &client->item[i];
		const bool leads = primary_of(client, item->region) == s,
			   has = client->config.part[item->region].servers >> s & 1;
		struct entry e = {.seen = item->seen,
				  .head = farm_next_head(item->seen, item->vlen != FARM_DELETED),
				  .slot = item->slot,
				  .vlen = item->vlen,
				  .region = (uint8_t)item->region};
		if (!item->written || (type == LOCK ? !leads : leads || !has))
			continue;
		memcpy(e.key, item->key, sizeof(e.key));
		farm_record_add(client->record, &e, item->value);
	}
}

/* WRITE the record, which is filled, to the log at the server. */
static int post(struct client *client, unsigned s)
{
	const uint64_t seq = client->next[s]++;
	const uint64_t place = client->env.client * FARM_PLACES + seq % FARM_RING;
	struct rpc_conn *conn = &client->conn[s];
	farm_record_end(client->record, seq);
	client->took |= 1u << s;
	int rc = rpc_settle(conn);
	if (!rc)
		rc = rpc_write_behind(conn, LOGS, place * client->pool.record_bytes, client->record,
				      client->record->len);
	return rc ? -EIO : 0;
}

/* Wait for the acknowledgement of the record that was posted last. */
static int acknowledged(struct client *client, unsigned s)
{
	const uint64_t seq = client->next[s] - 1;
	const uint64_t place = client->env.client * FARM_PLACES + seq % FARM_RING;
	struct ask ask = {.op = PERSIST, .number = seq};
	struct say say;
	int rc;
	if (client->params.knob[ACK] == ACK_CPU)
		return call(client, s, &ask, &say);
	rc = rpc_settle(&client->conn[s]);
	if (!rc && client->params.knob[ACK] == ACK_FLUSH)
		rc = rpc_flush(&client->conn[s], LOGS, place * client->pool.record_bytes,
			       client->pool.record_bytes);
	return rc ? -EIO : 0;
}

/* There is room for all records that a transaction may need there. */
static int reserve(struct client *client, unsigned s)
{
	uint64_t nap = KV_NAP_NS;
	for (; client->next[s] - 1 + RECORDS > client->done[s] + FARM_RING;
	     kv_nap_to(&nap, MOST_NAP_NS)) {
		const void *done;
		int rc = rpc_settle(&client->conn[s]);
		if (!rc)
			rc = rpc_read(&client->conn[s], DONE, client->env.client * sizeof(uint64_t),
				      sizeof(uint64_t), &done);
		if (rc)
			return -EIO;
		client->done[s] = *(const uint64_t *)done;
	}
	return 0;
}

/* --- the phases --- */

/* The last transaction: its records may go when all primaries have acknowledged. */
static int truncate_last(struct client *client)
{
	const uint32_t servers = client->took;
	int rc = 0;
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if (client->behind >> s & 1)
			rc = acknowledged(client, s);
	client->behind = 0;
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++) {
		if (!(servers >> s & 1))
			continue;
		fill(client, s, TRUNCATE);
		rc = post(client, s);
	}
	client->took = 0;
	return rc;
}

static int abort_locked(struct client *client, uint32_t locked)
{
	for (unsigned s = 0; s < FARM_SERVERS; s++) {
		if (!(locked >> s & 1))
			continue;
		fill(client, s, ABORT);
		int rc = post(client, s);
		if (rc)
			return rc;
	}
	client->took = 0;
	return 0;
}

/* -EAGAIN: a primary said no; -EBUSY, -ESTALE: not now, not in this configuration. Those that said
 * yes are in *locked. */
static int lock(struct client *client, uint32_t primaries, uint32_t *locked)
{
	int rc = 0;
	*locked = 0;
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++) {
		struct say say;
		if (!(primaries >> s & 1))
			continue;
		fill(client, s, LOCK);
		struct ask ask = {.op = DO_LOCK, .number = client->next[s]};
		rc = post(client, s);
		if (!rc)
			rc = call(client, s, &ask, &say);
		*locked |= (uint32_t)!rc << s;
	}
	return rc;
}

static int validate(struct client *client)
{
	if (has_bug(&client->params, unvalidated) || (client->items == 1))
		return check_membership(client, client->item, client->items);
	for (unsigned i = 0; i < client->items; i++) {
		const struct item *item = &client->item[i];
		const struct object *object;
		if (item->written)
			continue;
		int rc = read_bytes(client, item, sizeof(object->head), &object);
		if (rc)
			return rc;
		if (object->head != item->seen)
			return -EAGAIN;
	}
	return check_membership(client, client->item, client->items);
}

static int commit_backup(struct client *client, uint32_t backups)
{
	int rc = 0;
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++) {
		if (!(backups >> s & 1))
			continue;
		fill(client, s, COMMIT_BACKUP);
		rc = post(client, s);
		if (!rc)
			rc = acknowledged(client, s);
	}
	return rc;
}

/* All get it; one acknowledgement is waited for. Any will do: it is not that of the server whose
 * locks were taken first. */
static int commit_primary(struct client *client, uint32_t primaries)
{
	int rc = 0;
	bool waits = client->params.knob[COMMITS] != COMMIT_REPORT_AFTER_BACKUP;
	for (unsigned s = FARM_SERVERS; s-- > 0 && !rc;) {
		if (!(primaries >> s & 1))
			continue;
		fill(client, s, COMMIT_PRIMARY);
		rc = post(client, s);
		if (!rc && waits)
			rc = acknowledged(client, s);
		else
			client->behind |= 1u << s;
		waits = false;
	}
	return rc;
}

static void participants(const struct client *client, uint32_t *primaries, uint32_t *backups)
{
	*primaries = *backups = 0;
	for (unsigned i = 0; i < client->items; i++) {
		const struct item *item = &client->item[i];
		const uint32_t primary = 1u << primary_of(client, item->region);
		if (!item->written)
			continue;
		*primaries |= primary;
		*backups |= client->config.part[item->region].servers & ~primary;
	}
}

static int commit(struct client *client)
{
	uint32_t primaries, backups, locked;
	int rc = 0;
	participants(client, &primaries, &backups);
	if (!primaries)
		return validate(client);
	rc = truncate_last(client);
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if ((primaries | backups) >> s & 1)
			rc = reserve(client, s);
	if (rc)
		return rc;
	client->counter++;
	rc = lock(client, primaries, &locked);
	if (!rc)
		rc = validate(client);
	else if (rc == -EBUSY && check_membership(client, client->item, client->items))
		rc = -ESTALE;
	if (rc == -EIO)
		return rc;
	if (rc)
		return abort_locked(client, locked) ? -EIO : rc;
	client->doubtful = true;
	if (client->params.knob[COMMITS] == COMMIT_EARLY_PRIMARY) {
		rc = commit_primary(client, primaries);
		return rc ? rc : commit_backup(client, backups);
	}
	rc = commit_backup(client, backups);
	return rc ? rc : commit_primary(client, primaries);
}

/* 0: it is done. -EAGAIN: something has changed meanwhile, and nothing of it is done. */
static int attempt(struct client *client, struct tm_txn *txn)
{
	client->doubtful = false;
	int rc = execute(client, txn);
	if (!rc)
		rc = commit(client);
	if (rc != -EIO && rc != -ESTALE)
		return rc;
	/* The manager knows what has become of it: nobody else does anything to it any more. */
	rc = reconnect(client);
	if (rc)
		return rc;
	return client->doubtful && client->outcome == (client->counter << 1 | 1) ? 0 : -EBUSY;
}

/* `once`: it may be aborted. */
static int run(struct client *client, struct tm_txn *txn, bool once)
{
	uint64_t nap = KV_NAP_NS;
	for (;; kv_nap_to(&nap, MOST_NAP_NS)) {
		int rc = attempt(client, txn);
		txn->aborted = once && rc == -EAGAIN;
		if (txn->aborted)
			return 0;
		if (rc != -EAGAIN && rc != -EBUSY)
			return rc;
	}
}

int farm_txn(void *arg, struct tm_txn *txn)
{
	return run(arg, txn, true);
}

int farm_put(void *arg, const void *key, size_t klen, const void *value, size_t vlen)
{
	struct client *client = arg;
	struct tm_txn txn = {.ops = 1};
	if (vlen > client->params.max_vlen)
		return -EMSGSIZE;
	txn.op[0] = (struct tm_txn_op){
		.put = true, .key = key, .klen = klen, .value = value, .vlen = vlen};
	return run(client, &txn, false);
}

int farm_get(void *arg, const void *key, size_t klen, void *value, size_t cap, size_t *vlen)
{
	struct tm_txn txn = {.ops = 1};
	txn.op[0] = (struct tm_txn_op){.key = key, .klen = klen, .answer = value, .cap = cap};
	int rc = run(arg, &txn, false);
	*vlen = txn.op[0].vlen;
	return rc ? rc : txn.op[0].found ? 0 : -ENOENT;
}

int farm_del(void *arg, const void *key, size_t klen)
{
	struct tm_txn txn = {.ops = 1};
	txn.op[0] = (struct tm_txn_op){.put = true, .key = key, .klen = klen, .vlen = FARM_DELETED};
	return run(arg, &txn, false);
}
