/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager decides what has become of transactions. See farm.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"

#define TXNS_EACH 4 /* of a sender, at most, of which there are records */

/* --- asking a server --- */

static int ask_itself(struct farm_server *server, size_t len, size_t *reply_len)
{
	server->wanted = true;
	while (server->busy)
		rt_sleep(200);
	server->wanted = false;
	server->busy = true;
	memset(server->reply, 0, farm_message_bytes(&server->params));
	*reply_len = farm_handle(server, 0, server->message, len, server->reply);
	server->busy = false;
	return 0;
}

static int ask_other(struct farm_server *server, unsigned to, size_t len, size_t *reply_len)
{
	const size_t bytes = farm_message_bytes(&server->params);
	struct rpc_conn *conn = &server->peer[to];
	const struct tm_env env = members_env(&server->env, to);
	int rc = 0;
	if (!server->connected[to]) {
		rc = rpc_open(conn, &env, bytes, server->pool.record_bytes, NULL);
		server->connected[to] = !rc;
	}
	if (!rc)
		rc = rpc_call(conn, server->message, len, server->reply, bytes, reply_len);
	if (rc && server->connected[to]) {
		rpc_close(conn);
		server->connected[to] = false;
	}
	return rc;
}

int farm_ask(struct farm_server *server, unsigned to, const struct ask *ask,
	     const struct record *record)
{
	size_t len = sizeof(*ask), reply_len = 0;
	memcpy(server->message, ask, sizeof(*ask));
	if (record)
		memcpy(server->message + 1, record, record->len);
	len += record ? record->len : 0;
	int rc = to == server->env.server ? ask_itself(server, len, &reply_len)
					  : ask_other(server, to, len, &reply_len);
	if (rc)
		return rc;
	return reply_len < sizeof(*server->reply) ? -EPROTO : server->reply->status;
}

void farm_map_of(struct ask *ask, const struct rt_config *config)
{
	ask->epoch = config->epoch;
	ask->map.members = config->members;
	for (unsigned r = 0; r < FARM_REGIONS; r++) {
		ask->map.servers[r] = config->part[r].servers;
		ask->map.primary[r] = config->part[r].primary;
	}
}

static int ask_all(struct farm_server *server, const struct ask *ask, const struct record *record)
{
	int rc = 0;
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if (ask->map.members >> s & 1)
			rc = farm_ask(server, s, ask, record);
	return rc;
}

/* --- votes --- */

struct txn {
	bool committed, aborted; /* somebody saw COMMIT-PRIMARY, or a decision */
	bool lock[FARM_REGIONS], backup[FARM_REGIONS]; /* somebody saw such a record */
	struct record *record;			       /* the decision, with all entries */
};

struct recovery {
	struct farm_server *server;
	struct ask ask; /* of this configuration, and this client or all */
	struct mark *mark[FARM_SERVERS];
	struct txn *txn;
	unsigned txns;
};

static bool has_entry(const struct record *record, const struct entry *like)
{
	const struct entry *e = NULL;
	while ((e = farm_entry(record, e)))
		if (e->region == like->region && e->slot == like->slot)
			return true;
	return false;
}

/* farm_entry() wants the last line, which farm_record_end() adds. */
static void add_entry(struct record *record, const struct entry *e)
{
	record->len += TM_LINE;
	const bool has = has_entry(record, e);
	record->len -= TM_LINE;
	if (!has)
		farm_record_add(record, e, e + 1);
}

static struct txn *txn_of(struct recovery *r, const struct record *record)
{
	struct txn *t = r->txn;
	for (; t < r->txn + r->txns; t++)
		if (t->record->client == record->client && t->record->counter == record->counter)
			return t;
	assert(r->txns < TXNS_EACH * r->server->pool.senders);
	t->record = malloc(r->server->pool.record_bytes);
	if (!t->record)
		return NULL;
	farm_record_begin(t->record, COMMIT_RECOVERY, record);
	r->txns++;
	return t;
}

/* What server `s` has of a transaction. A decision has the entries of all regions, and whoever has
 * it may be the only one. */
static int note(struct recovery *r, unsigned s, const struct record *record)
{
	const bool decided = record->type >= COMMIT_RECOVERY;
	const struct entry *e = NULL;
	struct txn *t = txn_of(r, record);
	if (!t)
		return -ENOMEM;
	t->committed |= record->type == COMMIT_PRIMARY || record->type == COMMIT_RECOVERY;
	t->aborted |= record->type == ABORT_RECOVERY;
	while ((e = farm_entry(record, e))) {
		if (!decided && !(r->ask.map.servers[e->region] >> s & 1))
			continue;
		t->lock[e->region] |= record->type == LOCK;
		t->backup[e->region] |= record->type == COMMIT_BACKUP;
		add_entry(t->record, e);
	}
	return 0;
}

static int collect_from(struct recovery *r, unsigned s)
{
	struct ask ask = r->ask;
	int rc;
	ask.op = COLLECT;
	ask.number = 0;
	while (!(rc = farm_ask(r->server, s, &ask, NULL))) {
		ask.number = r->server->reply->number;
		rc = note(r, s, (const struct record *)(r->server->reply + 1));
		if (rc)
			return rc;
	}
	return rc == -ENOENT ? 0 : rc;
}

static bool is_truncated(const struct recovery *r, const struct txn *t, unsigned region)
{
	for (unsigned s = 0; s < FARM_SERVERS; s++)
		if (r->mark[s] && r->ask.map.servers[region] >> s & 1 &&
		    r->mark[s][t->record->client].counter >= t->record->counter)
			return true;
	return false;
}

/* Any COMMIT-PRIMARY commits. Else one region has seen COMMIT-BACKUP, and each other one that,
 * LOCK, or the end. */
static bool is_committed(const struct recovery *r, const struct txn *t)
{
	const bool counts = r->server->params.knob[VOTES] == VOTES_LOCK;
	bool backup = false;
	if (t->committed)
		return true;
	for (unsigned region = 0; region < FARM_REGIONS; region++) {
		if (!(t->record->regions >> region & 1))
			continue;
		if (!t->backup[region] && !(t->lock[region] && counts) &&
		    !is_truncated(r, t, region))
			return false;
		backup |= t->backup[region];
	}
	return backup && !t->aborted;
}

static int decide_all(struct recovery *r)
{
	struct ask ask = r->ask;
	int rc = 0;
	for (unsigned i = 0; i < r->txns && !rc; i++) {
		struct record *record = r->txn[i].record;
		if (!is_committed(r, &r->txn[i]))
			record->type = ABORT_RECOVERY;
		farm_record_end(record, record->counter);
		ask.op = DECIDE;
		ask.client = record->client;
		rc = ask_all(r->server, &ask, record);
	}
	return rc;
}

/* --- all of it --- */

/* Marks of all members. The manager keeps the latest of each client. */
static int fence_all(struct recovery *r)
{
	struct farm_server *server = r->server;
	const size_t bytes = server->pool.senders * sizeof(struct mark);
	struct ask ask = r->ask;
	ask.op = CLOSE_LOGS;
	for (unsigned s = 0; s < FARM_SERVERS; s++) {
		if (!(ask.map.members >> s & 1))
			continue;
		/* A client that comes again has a new connection here, and old ones elsewhere. */
		ask.all = r->ask.all || s != server->env.server;
		int rc = farm_ask(server, s, &ask, NULL);
		if (rc)
			return rc;
		r->mark[s] = malloc(bytes);
		if (!r->mark[s])
			return -ENOMEM;
		memcpy(r->mark[s], server->reply + 1, bytes);
		for (uint32_t c = 1; c < server->pool.senders; c++) {
			struct sender *sender = &server->sender[c];
			const struct mark *mark = &r->mark[s][c];
			if (sender->seen < mark->seen)
				sender->seen = mark->seen;
			if (sender->outcome < mark->outcome)
				sender->outcome = mark->outcome;
		}
	}
	return 0;
}

/* The client's records are of no use any more. */
static int finish_client(struct recovery *r, uint32_t client)
{
	struct sender *sender = &r->server->sender[client];
	struct ask ask = r->ask;
	bool any = ask.client == client;
	for (unsigned i = 0; i < r->txns; i++) {
		const struct record *record = r->txn[i].record;
		const uint64_t outcome = record->counter << 1 | (record->type == COMMIT_RECOVERY);
		any |= record->client == client;
		if (record->client == client && sender->outcome < outcome)
			sender->outcome = outcome;
	}
	ask.op = FINISH;
	ask.client = client;
	ask.number = sender->seen;
	ask.outcome = sender->outcome;
	return any ? ask_all(r->server, &ask, NULL) : 0;
}

static int run(struct recovery *r, uint32_t client)
{
	int rc = fence_all(r);
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if (r->ask.map.members >> s & 1)
			rc = collect_from(r, s);
	if (!rc)
		rc = decide_all(r);
	for (uint32_t c = client ? client : 1; c < r->server->pool.senders && !rc; c++) {
		rc = finish_client(r, c);
		if (client)
			break;
	}
	return rc;
}

int farm_decide(struct farm_server *server, const struct rt_config *config, uint32_t client,
		bool close)
{
	struct recovery r = {.server = server, .ask = {.client = client, .all = close}};
	farm_map_of(&r.ask, config);
	r.txn = calloc(TXNS_EACH * server->pool.senders, sizeof(*r.txn));
	int rc = r.txn ? run(&r, client) : -ENOMEM;
	for (unsigned i = 0; i < r.txns; i++)
		free(r.txn[i].record);
	for (unsigned s = 0; s < FARM_SERVERS; s++)
		free(r.mark[s]);
	free(r.txn);
	return rc;
}
