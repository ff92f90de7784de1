/* SPDX-License-Identifier: BSD-3-Clause */
/* A server: it looks at its logs, and does what it is asked for. See farm.h. */
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"
#include "core/verbs_compat.h"

size_t farm_message_bytes(const struct tm_params *params)
{
	const struct farm_pool pool = farm_pool_at(params, NULL);
	const size_t marks = pool.senders * sizeof(struct mark);
	return sizeof(struct ask) + (marks > pool.record_bytes ? marks : pool.record_bytes);
}

static bool persists(const struct farm_server *server)
{
	return server->params.knob[PERSIST_BEFORE_DROP] == PERSIST_ON;
}

static struct object *object_of(const struct farm_server *server, const struct entry *e)
{
	return farm_object(&server->pool, e->region, e->slot);
}

static void persist_object(const struct farm_server *server, const struct object *object)
{
	pmem_persist(object, server->pool.object_bytes);
}

/* --- a sender's log --- */

static struct record *live_record(const struct farm_server *server, uint32_t client,
				  enum farm_type type, uint64_t counter)
{
	for (unsigned place = 0; place < FARM_RING; place++) {
		struct record *record = farm_place(&server->pool, client, place);
		if (server->sender[client].live >> place & 1 && record->type == type &&
		    record->counter == counter)
			return record;
	}
	return NULL;
}

static void unlock(const struct farm_server *server, const struct record *record)
{
	const struct entry *e = NULL;
	while ((e = farm_entry(record, e)))
		__atomic_store_n(&object_of(server, e)->head, e->seen, __ATOMIC_SEQ_CST);
}

static void install_locked(struct farm_server *server, uint32_t client, uint64_t counter)
{
	const struct record *lock = live_record(server, client, LOCK, counter);
	const struct entry *e = NULL;
	if (!lock || server->sender[client].holds != counter)
		return;
	while ((e = farm_entry(lock, e)))
		farm_install(object_of(server, e), e);
	server->sender[client].holds = 0;
}

static void drop_locked(struct farm_server *server, uint32_t client, uint64_t counter)
{
	const struct record *lock = live_record(server, client, LOCK, counter);
	if (!lock || server->sender[client].holds != counter)
		return;
	if (!has_bug(&server->params, loses_locks))
		unlock(server, lock);
	server->sender[client].holds = 0;
	server->sender[client].live = 0;
}

/* A backup has not applied it yet; a primary has not persisted it. */
static void settle_record(struct farm_server *server, const struct record *record)
{
	const struct entry *e = NULL;
	while ((e = farm_entry(record, e))) {
		struct object *object = object_of(server, e);
		if (record->type == COMMIT_BACKUP && !has_bug(&server->params, backup_forgets) &&
		    farm_version(e->head) > farm_version(object->head))
			farm_install(object, e);
		if (persists(server))
			persist_object(server, object);
	}
}

static void set_mark(struct farm_server *server, uint32_t client, uint64_t counter)
{
	struct mark *mark = &server->pool.mark[client];
	if (mark->counter < counter)
		__atomic_store_n(&mark->counter, counter, __ATOMIC_SEQ_CST);
	pmem_persist(mark, sizeof(*mark));
}

static void truncate_records(struct farm_server *server, uint32_t client, uint64_t counter)
{
	const bool early = has_bug(&server->params, mark_early);
	if (early)
		set_mark(server, client, counter);
	for (unsigned place = 0; place < FARM_RING; place++) {
		const struct record *record = farm_place(&server->pool, client, place);
		if (!(server->sender[client].live >> place & 1) || record->counter > counter)
			continue;
		if (record->type == LOCK || record->type == COMMIT_BACKUP)
			settle_record(server, record);
		server->sender[client].live &= ~(1u << place);
	}
	if (!early)
		set_mark(server, client, counter);
}

static void note_last(struct sender *sender, const struct record *record)
{
	if (sender->last < record->counter)
		sender->last = record->counter;
}

/* COMMIT-PRIMARY is durable before it has an effect and before it is acknowledged, whichever comes
 * first. An object that is half installed needs it: the servers that have COMMIT-BACKUP may be no
 * members by the time of the next recovery. */
static void persist_primary(struct sender *sender, const struct record *record)
{
	if (sender->durable == record->counter)
		return;
	pmem_persist(record, record->len);
	sender->durable = record->counter;
}

/* `drains`: a LOCK whose sender will not ask any more is passed over. */
static bool do_next(struct farm_server *server, uint32_t client, bool drains)
{
	struct sender *sender = &server->sender[client];
	const unsigned place = sender->next % FARM_RING;
	const struct record *record = farm_place(&server->pool, client, place);
	if (!farm_is_record(&server->pool, &server->params, record, sender->next) ||
	    record->client != client || (record->type == LOCK && !drains))
		return false;
	if ((record->type == COMMIT_BACKUP || record->type == COMMIT_PRIMARY) &&
	    record->counter > server->pool.mark[client].counter)
		sender->live |= 1u << place;
	note_last(sender, record);
	if (record->type == COMMIT_PRIMARY) {
		if (server->params.knob[ACK] != ACK_NIC)
			persist_primary(sender, record);
		install_locked(server, client, record->counter);
	} else if (record->type == ABORT)
		drop_locked(server, client, record->counter);
	else if (record->type == TRUNCATE)
		truncate_records(server, client, record->counter);
	sender->next++;
	if (!sender->live)
		server->done[client] = sender->next - 1;
	return true;
}

static void drain(struct farm_server *server, uint32_t client, bool drains)
{
	while (do_next(server, client, drains))
		;
}

/* --- a client asks --- */

static bool lock_object(struct object *object, const struct entry *e, bool any)
{
	uint64_t seen = any ? object->head & ~HEAD_LOCK : e->seen;
	return __atomic_compare_exchange_n(&object->head, &seen, seen | HEAD_LOCK, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* All, or none. */
static int lock_all(struct farm_server *server, const struct record *record)
{
	const bool any = has_bug(&server->params, locks_any);
	const struct entry *e = NULL, *locked = NULL;
	while ((e = farm_entry(record, e))) {
		if (server->quiet >> e->region & 1)
			return -EBUSY;
		if (server->map.primary[e->region] != server->env.server)
			return -ESTALE;
		if (!farm_version(e->seen) && rt_pm_full())
			return -ENOSPC;
	}
	while ((e = farm_entry(record, e)) && lock_object(object_of(server, e), e, any))
		;
	if (!e)
		return 0;
	while ((locked = farm_entry(record, locked)) != e)
		__atomic_store_n(&object_of(server, locked)->head, locked->seen, __ATOMIC_SEQ_CST);
	return -EAGAIN;
}

static int do_lock(struct farm_server *server, uint32_t client, uint64_t seq)
{
	struct sender *sender = &server->sender[client];
	const struct record *record = farm_place(&server->pool, client, seq % FARM_RING);
	drain(server, client, false);
	if (sender->fenced || seq != sender->next ||
	    !farm_is_record(&server->pool, &server->params, record, seq) ||
	    record->client != client || record->type != LOCK)
		return -ESTALE;
	sender->next++;
	note_last(sender, record);
	int rc = record->epoch == server->open ? lock_all(server, record) : -ESTALE;
	if (rc) {
		if (!sender->live)
			server->done[client] = seq;
		return rc;
	}
	sender->live |= 1u << seq % FARM_RING;
	sender->holds = record->counter;
	sender->since = rt_now();
	farm_watch_locks(server);
	if (server->params.knob[ACK] != ACK_NIC)
		pmem_persist(record, record->len);
	return 0;
}

static int persist_record(struct farm_server *server, uint32_t client, uint64_t seq)
{
	const struct record *record = farm_place(&server->pool, client, seq % FARM_RING);
	if (!farm_is_record(&server->pool, &server->params, record, seq))
		return -ESTALE;
	if (record->type == COMMIT_PRIMARY)
		persist_primary(&server->sender[client], record);
	else
		pmem_persist(record, record->len);
	return 0;
}

static int hello(struct farm_server *server, uint32_t client, const struct ask *ask,
		 struct say *say)
{
	struct sender *sender = &server->sender[client];
	if (!server->open || server->open != ask->epoch)
		return -EAGAIN;
	if (ask->all && !sender->clean && server->params.knob[SERVES] != SERVE_EARLY) {
		sender->wanted = true;
		farm_keep(server);
		return -EAGAIN;
	}
	if (ask->all)
		sender->clean = false;
	say->number = sender->seen;
	say->outcome = sender->outcome;
	say->seq = sender->next;
	return 0;
}

/* --- a server asks --- */

/* Nothing lands any more that these connections bring; of all clients, and servers that are no
 * members, or of one. */
static void close_connections(struct farm_server *server, const struct ask *ask)
{
	if (has_bug(&server->params, not_fenced))
		return;
	for (unsigned i = 0; i < server->rpc.peers; i++) {
		const struct rpc_peer *peer = &server->rpc.peer[i];
		const bool client = peer->client < server->pool.senders;
		if (peer->qp &&
		    (client ? ask->client ? ask->all && peer->client == ask->client : true
			    : !ask->client &&
				      !(ask->map.members >> (peer->client - server->pool.senders) &
					1)))
			rpc_server_drop(&server->rpc, peer->client);
	}
}

/* What is in the sender's log is done, and no more of it. */
static struct mark fence_sender(struct farm_server *server, uint32_t client)
{
	struct mark mark;
	drain(server, client, true);
	server->sender[client].fenced = true;
	mark = server->pool.mark[client];
	mark.seen = mark.counter > server->sender[client].last ? mark.counter
							       : server->sender[client].last;
	return mark;
}

/* Answers with the marks of all senders. */
static size_t fence(struct farm_server *server, const struct ask *ask, struct say *say)
{
	struct mark *mark = (struct mark *)(say + 1);
	close_connections(server, ask);
	for (uint32_t client = 1; client < server->pool.senders; client++)
		mark[client] = ask->client && ask->client != client ? server->pool.mark[client]
								    : fence_sender(server, client);
	if (!ask->client) {
		server->open = 0;
		server->quiet = 0;
		server->copy.state = COPY_NONE;
		server->map = ask->map;
		if (server->params.knob[SERVES] == SERVE_EARLY)
			server->open = ask->epoch;
	}
	return sizeof(*say) + server->pool.senders * sizeof(*mark);
}

static size_t collect(struct farm_server *server, const struct ask *ask, struct say *say)
{
	for (uint64_t at = ask->number; at < server->pool.senders * FARM_PLACES; at++) {
		const uint32_t client = (uint32_t)(at / FARM_PLACES);
		const unsigned place = at % FARM_PLACES;
		const struct record *record = farm_place(&server->pool, client, place);
		if (!client || (ask->client && ask->client != client))
			continue;
		if (place < FARM_RING
			    ? !(server->sender[client].live >> place & 1)
			    : !farm_has_record(&server->pool, &server->params, client, place) ||
				      record->counter <= server->pool.mark[client].counter)
			continue;
		say->number = at + 1;
		memcpy(say + 1, record, record->len);
		return sizeof(*say) + record->len;
	}
	say->status = -ENOENT;
	return sizeof(*say);
}

/* The decision is durable here before it has an effect: if this is not all that happens, it will
 * not be decided otherwise. */
static int decide(struct farm_server *server, const struct ask *ask, const struct record *decided)
{
	const uint32_t client = decided->client;
	struct record *record = farm_place(&server->pool, client, FARM_RING + decided->counter % 2);
	const struct entry *e = NULL;
	memcpy(record, decided, decided->len);
	pmem_persist(record, record->len);
	note_last(&server->sender[client], record);
	if (record->type == ABORT_RECOVERY)
		drop_locked(server, client, record->counter);
	while (record->type == COMMIT_RECOVERY && (e = farm_entry(record, e))) {
		struct object *object = object_of(server, e);
		const uint64_t is = farm_version(object->head), will_be = farm_version(e->head);
		if (!(ask->map.servers[e->region] >> server->env.server & 1))
			continue;
		/* After a power failure parts of it may be there. */
		if (is < will_be || (is == will_be && !server->opened))
			farm_install(object, e);
		if (persists(server))
			persist_object(server, object);
	}
	if (server->sender[client].holds == record->counter)
		server->sender[client].holds = 0;
	return 0;
}

static void forget(struct farm_server *server, uint32_t client)
{
	struct sender *sender = &server->sender[client];
	sender->live = 0;
	sender->holds = 0;
	sender->fenced = false;
	server->done[client] = sender->next - 1;
}

static int finish(struct farm_server *server, const struct ask *ask)
{
	uint64_t *copying = &server->pool.head->copying, others = 0;
	for (unsigned r = 0; r < FARM_REGIONS; r++)
		if (!(ask->map.servers[r] >> server->env.server & 1))
			others |= 1ull << r;
	/* A copy that no longer counts may be torn, and the records that would mend it go. */
	if (others & ~*copying) {
		*copying |= others;
		pmem_persist(copying, TM_LINE);
	}
	server->pool.mark[ask->client].outcome = ask->outcome;
	set_mark(server, ask->client, ask->number);
	forget(server, ask->client);
	return 0;
}

/* In all regions; nobody has one when all transactions are decided. */
static void clear_locks(struct farm_server *server)
{
	for (unsigned r = 0; r < FARM_REGIONS; r++)
		for (unsigned s = 0; s < server->pool.slots; s++) {
			struct object *object = farm_object(&server->pool, r, s);
			if (object->head & HEAD_LOCK)
				object->head &= ~HEAD_LOCK;
		}
}

static int open_epoch(struct farm_server *server, const struct ask *ask)
{
	for (uint32_t client = 1; ask->all && client < server->pool.senders; client++)
		forget(server, client);
	if (ask->all)
		clear_locks(server);
	server->map = ask->map;
	server->quiet = 0;
	server->open = ask->epoch;
	server->opened = true;
	return 0;
}

/* The manager asks until it is done, and may choose another server meanwhile, or none. */
static int copy(struct farm_server *server, const struct ask *ask)
{
	struct farm_copy *copy = &server->copy;
	const bool other = copy->region != ask->region || copy->to != ask->server ||
			   copy->epoch != ask->epoch;
	const bool failed = copy->state == COPY_FAILED;
	if (server->open != ask->epoch || server->map.primary[ask->region] != server->env.server)
		return -ESTALE;
	if (ask->server == FARM_SERVERS && copy->state != COPY_WANTED) {
		copy->state = COPY_NONE;
		server->quiet = 0;
		return 0;
	}
	if (copy->state == COPY_NONE || (copy->state != COPY_WANTED && other)) {
		*copy = (struct farm_copy){COPY_WANTED, ask->region, ask->server, ask->all,
					   ask->epoch};
		server->quiet = 1u << ask->region;
	}
	if (copy->state == COPY_WANTED) {
		farm_keep(server);
		return -EAGAIN;
	}
	copy->state = COPY_NONE;
	if (failed)
		server->quiet = 0;
	return failed ? -EIO : 0;
}

/* If it is no member, clients of an earlier configuration may be connected still. */
static int wipe(struct farm_server *server, const struct ask *ask)
{
	if (ask->all)
		close_connections(server, ask);
	/* Its records, which go, may have been of any region. */
	server->pool.head->copying |= ask->all ? (1u << FARM_REGIONS) - 1 : 1u << ask->region;
	pmem_persist(server->pool.head, TM_LINE);
	for (uint32_t client = 1; ask->all && client < server->pool.senders; client++) {
		for (unsigned place = 0; place < FARM_PLACES; place++) {
			struct record *record = farm_place(&server->pool, client, place);
			record->len = 0;
			pmem_persist(record, sizeof(record->len));
		}
		forget(server, client);
	}
	return 0;
}

static int copied(struct farm_server *server, const struct ask *ask)
{
	pmem_persist(server->pool.region[ask->region], server->pool.region_bytes);
	server->pool.head->copying &= ~(1ull << ask->region);
	pmem_persist(server->pool.head, TM_LINE);
	return 0;
}

/* --- */

static int do_simple(struct farm_server *server, uint32_t client, const struct ask *ask,
		     struct say *say)
{
	switch (ask->op) {
	case HELLO:
		return hello(server, client, ask, say);
	case DO_LOCK:
		return do_lock(server, client, ask->number);
	case PERSIST:
		return persist_record(server, client, ask->number);
	case PROBE:
		return 0;
	case DECIDE:
		return decide(server, ask, (const struct record *)(ask + 1));
	case FINISH:
		return finish(server, ask);
	case OPEN:
		return open_epoch(server, ask);
	case SUSPECT:
		server->sender[ask->client].wanted = server->sender[ask->client].dropped = true;
		farm_keep(server);
		return 0;
	case COPY:
		return copy(server, ask);
	case WIPE:
		return wipe(server, ask);
	case COPIED:
		return copied(server, ask);
	default:
		return -EPROTO;
	}
}

size_t farm_handle(struct farm_server *server, uint32_t client, const struct ask *ask, size_t len,
		   struct say *say)
{
	const bool of_client = ask->op <= PERSIST;
	if (len < sizeof(*ask) || (of_client && (!client || client >= server->pool.senders)) ||
	    (!of_client && ask->client >= server->pool.senders) || ask->region >= FARM_REGIONS) {
		say->status = -EPROTO;
		return sizeof(*say);
	}
	if (!of_client && ask->epoch < server->epoch) {
		say->status = -ESTALE;
		return sizeof(*say);
	}
	if (!of_client)
		server->epoch = ask->epoch;
	if (ask->op == CLOSE_LOGS)
		return fence(server, ask, say);
	if (ask->op == COLLECT)
		return collect(server, ask, say);
	say->status = do_simple(server, client, ask, say);
	return sizeof(*say);
}

static size_t handle(void *arg, const struct rpc_msg *msg, void *reply, size_t cap)
{
	struct farm_server *server = arg;
	if (msg->has_imm || cap < farm_message_bytes(&server->params))
		return 0;
	while (server->busy)
		rt_sleep(200);
	server->busy = true;
	const size_t len = farm_handle(server, msg->client, msg->bytes, msg->len, reply);
	server->busy = false;
	return len;
}

/* It answers, and looks at its logs. */
static void server_main(void *arg)
{
	struct farm_server *server = arg;
	for (;;) {
		bool worked = rpc_server_poll(&server->rpc);
		if (!server->busy && !server->wanted) {
			server->busy = true;
			for (uint32_t client = 1; client < server->pool.senders; client++)
				while (!server->sender[client].fenced &&
				       do_next(server, client, false))
					worked = true;
			server->busy = false;
		}
		if (!worked)
			rt_yield();
	}
}

/* What the power failure has left in the logs. */
static void look_at_logs(struct farm_server *server)
{
	for (uint32_t client = 1; client < server->pool.senders; client++) {
		struct sender *sender = &server->sender[client];
		sender->next = 1;
		for (unsigned place = 0; place < FARM_PLACES; place++) {
			const struct record *record = farm_place(&server->pool, client, place);
			const bool ring = place < FARM_RING;
			if (ring && record->seq % FARM_RING == place && record->seq >= sender->next)
				sender->next = record->seq + 1;
			if (!farm_has_record(&server->pool, &server->params, client, place))
				continue;
			note_last(sender, record);
			if (ring && record->type <= COMMIT_PRIMARY &&
			    record->counter > server->pool.mark[client].counter)
				sender->live |= 1u << place;
		}
		sender->fenced = true;
		server->done[client] = sender->next - 1;
	}
}

static int export_all(struct farm_server *server)
{
	const struct farm_pool *pool = &server->pool;
	const int plain = IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access;
	if (server->params.knob[ACK] == ACK_FLUSH)
		server->rpc.qp_access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	const int access = IBV_ACCESS_LOCAL_WRITE | (int)server->rpc.qp_access;
	int rc = rpc_server_export(&server->rpc, pool->log, pool->log_bytes, access);
	if (!rc)
		rc = rpc_server_export(&server->rpc, pool->region[0],
				       FARM_REGIONS * pool->region_bytes, access);
	if (!rc)
		rc = rpc_server_export(&server->rpc, server->done,
				       pool->senders * sizeof(*server->done), plain);
	return rc;
}

int farm_serve(const struct tm_env *env)
{
	struct farm_server *server = calloc(1, sizeof(*server));
	struct tm_params more;
	const struct tm_env with = members_env_served(env, FARM_SERVERS, &more);
	const size_t bytes = farm_message_bytes(env->params);

	if (!server)
		return -ENOMEM;
	server->params = *env->params;
	server->env = *env;
	server->env.params = &server->params;
	server->pool = farm_pool_at(&server->params, env->pm);
	server->sender = calloc(server->pool.senders, sizeof(*server->sender));
	server->done = calloc(server->pool.senders, sizeof(*server->done));
	server->reply = calloc(1, bytes);
	server->message = calloc(1, bytes);
	if (!server->sender || !server->done || !server->reply || !server->message)
		return -ENOMEM;
	look_at_logs(server);
	server->began = rt_now();
	int rc = rpc_server_init(&server->rpc, &with, bytes, handle, server);
	if (!rc)
		rc = export_all(server);
	if (!rc)
		rc = rpc_server_listen(&server->rpc);
	if (!rc)
		rc = rt_spawn("server", server_main, server);
	return rc ? rc : farm_manage(server);
}
