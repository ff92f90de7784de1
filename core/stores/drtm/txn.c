/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's transactions. See drtm.h. */
#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include "core/rt/htm.h"
#include "core/rt/rt.h"
#include "core/stores/drtm/drtm.h"

#define LEASE_NS    250000
#define DELTA_NS    100000 /* by which clocks may differ */
#define MOST_NAP_NS 20000
#define MOST_TRIES  3 /* of the region; then it is not tried any more */

static bool is_own(const struct drtm_server *server, unsigned of)
{
	return of == server->env.server;
}

static size_t value_len(uint64_t vlen)
{
	return vlen == DRTM_ABSENT ? 0 : vlen;
}

static uint64_t margin(const struct drtm_server *server)
{
	return server->params.knob[MARGIN] == MARGIN_OFF ? 0 : rt_duration(DELTA_NS);
}

/* Is it neither locked nor leased? */
static bool is_free(const struct drtm_server *server, uint64_t state)
{
	if (!state || state & DRTM_LOCKED || has_bug(&server->params, lease_forever))
		return !state;
	return rt_now() > state + margin(server);
}

/* Is it certain, whatever the other server's clock says, that nobody takes it for free? */
static bool is_leased(const struct drtm_server *server, uint64_t lease)
{
	return rt_now() + margin(server) < lease;
}

uint64_t drtm_last_lease(void)
{
	return rt_now() + rt_duration(LEASE_NS) + DELTA_NS;
}

/* --- the log --- */

static void persist_log(const struct drtm_server *server, const void *at, size_t len)
{
	if (server->params.knob[LOG_POINT] == LOG_AFTER)
		pmem_persist(at, len);
}

static void set_log(const struct drtm_server *server, uint64_t state)
{
	__atomic_store_n(&server->pool.log->state, state, __ATOMIC_SEQ_CST);
	persist_log(server, server->pool.log, sizeof(*server->pool.log));
}

/* The records that are locked, or about to be: all of a transaction's without a region, else those
 * of the other server that are written. */
static void log_locks(const struct drtm_server *server, struct drtm_txn *txn, bool all)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < txn->n; i++) {
		const struct drtm_part *part = drtm_part(&server->params, txn, i);
		if (!all && (!part->writes || is_own(server, part->server)))
			continue;
		const struct entry lock = {.off = part->off, .server = part->server, .part = i};
		struct entry *entry = drtm_entry(&server->pool, n++);
		memcpy(entry, &lock, sizeof(lock));
		persist_log(server, entry, sizeof(*entry));
	}
	server->pool.log->n = n;
	if (n || has_bug(&server->params, redo_blind))
		set_log(server, n ? LOG_LOCKS : LOG_EMPTY);
}

/* What they become. From here on the transaction is committed. */
static void log_writes(const struct drtm_server *server, struct drtm_txn *txn)
{
	for (uint64_t i = 0; i < server->pool.log->n && server->pool.log->state; i++) {
		struct entry *entry = drtm_entry(&server->pool, i);
		const struct drtm_part *part = drtm_part(&server->params, txn,
							 (unsigned)entry->part);
		if (!part->writes)
			continue;
		entry->version = server->version[entry->part] + 1;
		entry->vlen = part->vlen;
		memcpy(entry + 1, part + 1, value_len(part->vlen));
		persist_log(server, entry, server->pool.entry_bytes);
	}
	if (server->pool.log->state && !has_bug(&server->params, log_late))
		set_log(server, LOG_COMMITTED);
}

/* --- records that are locked --- */

static int connect_once(struct drtm_server *server, unsigned to)
{
	const bool two = has_bug(&server->params, two_ways) && !is_own(server, to);
	const size_t bytes = server->pool.records * server->pool.record_bytes;
	const struct tm_env env = members_env(&server->env, to);
	rpc_close(&server->conn[to]);
	if (two)
		rpc_close(&server->second);
	int rc = rpc_open(&server->conn[to], &env, 8, bytes, NULL);
	if (!rc && two)
		rc = rpc_open_further(&server->second, &env, 8, bytes);
	return rc;
}

/* A server that is not there comes back. */
void drtm_connect(struct drtm_server *server, unsigned to)
{
	uint64_t nap = KV_NAP_NS;
	while (connect_once(server, to))
		kv_nap_to(&nap, MOST_NAP_NS);
}

static void connect_again(struct drtm_server *server)
{
	for (unsigned to = 0; to < DRTM_SERVERS; to++)
		if (server->conn[to].failed)
			drtm_connect(server, to);
}

static struct record *own_record(const struct drtm_server *server, uint64_t off)
{
	return (struct record *)(server->pool.records_at + off);
}

/* A record of this server becomes what the entry says, and is free. */
static void finish_own(const struct drtm_server *server, const struct entry *entry, bool committed)
{
	struct record *record = own_record(server, entry->off);
	if (record->state != drtm_own_lock(server))
		return;
	if (committed && entry->version) {
		memcpy(record + 1, entry + 1, value_len(entry->vlen));
		record->vlen = entry->vlen;
		record->version = entry->version;
	}
	__atomic_store_n(&record->state, 0, __ATOMIC_SEQ_CST);
}

/* The same of the other server. `again`: it may be so already, and locked by another one. */
static int finish_other(struct drtm_server *server, const struct entry *entry, bool committed,
			bool again)
{
	struct rpc_conn *conn = &server->conn[entry->server];
	const uint64_t none = 0;
	const void *record;
	uint64_t found;
	int rc = 0;
	if (again && !has_bug(&server->params, redo_blind)) {
		rc = rpc_read(conn, 0, entry->off, sizeof(struct record), &record);
		if (rc || ((const struct record *)record)->state != drtm_own_lock(server))
			return rc;
	}
	if (!committed || !entry->version)
		return rpc_cas(conn, 0, entry->off, drtm_own_lock(server), 0, &found);
	if (has_bug(&server->params, unlock_first))
		rc = rpc_write(conn, 0, entry->off, &none, sizeof(none));
	if (!rc && value_len(entry->vlen))
		rc = rpc_write(conn, 0, entry->off + sizeof(struct record), entry + 1, entry->vlen);
	if (!rc)
		rc = rpc_write(conn, 0, entry->off + offsetof(struct record, version),
			       &entry->version, sizeof(entry->version) + sizeof(entry->vlen));
	if (has_bug(&server->params, two_ways))
		conn = &server->second;
	return rc ? rc : rpc_write(conn, 0, entry->off, &none, sizeof(none));
}

static bool is_sane(const struct drtm_server *server, const struct entry *entry)
{
	return drtm_is_place(&server->pool, entry->server, entry->off) &&
	       value_len(entry->vlen) <= server->pool.value_bytes;
}

void drtm_finish(struct drtm_server *server, bool committed, bool again)
{
	const struct log_head *log = server->pool.log;
	int rc;
	do {
		rc = 0;
		connect_again(server);
		for (uint64_t i = 0; i < log->n && log->state && !rc; i++) {
			const struct entry *entry = drtm_entry(&server->pool, i);
			if (!is_sane(server, entry))
				continue;
			if (is_own(server, (unsigned)entry->server))
				finish_own(server, entry, committed);
			else
				rc = finish_other(server, entry, committed, again);
		}
		again = true;
	} while (rc);
	if (log->state && !has_bug(&server->params, redo_blind))
		set_log(server, LOG_EMPTY);
}

/* --- the start --- */

/* Compare-and-swap of a record's state. */
static int swap(struct drtm_server *server, const struct drtm_part *part, uint64_t expected,
		uint64_t want, uint64_t *found)
{
	if (!is_own(server, part->server) || server->params.knob[LOCAL_LOCK] == LOCK_RDMA)
		return rpc_cas(&server->conn[part->server], 0, part->off, expected, want, found);
	*found = expected;
	__atomic_compare_exchange_n(&own_record(server, part->off)->state, found, want, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return 0;
}

/* Lock a record, or lease it, until *until. -EAGAIN: it is another one's; `waits`: that has an
 * end. */
static int lock(struct drtm_server *server, const struct drtm_part *part, bool leases, bool waits,
		uint64_t *until)
{
	uint64_t want = leases ? rt_now() + rt_duration(LEASE_NS) : drtm_own_lock(server);
	uint64_t expected = 0, found = 0, nap = KV_NAP_NS;
	for (;;) {
		int rc = swap(server, part, expected, want, &found);
		if (rc)
			return rc;
		if (found == expected)
			break;
		if (leases && !(found & DRTM_LOCKED) && is_leased(server, found)) {
			want = found; /* another one's lease is good for this one, too */
			break;
		}
		expected = found;
		if (is_free(server, found))
			continue;
		if (!waits)
			return -EAGAIN;
		expected = 0;
		kv_nap_to(&nap, MOST_NAP_NS);
	}
	*until = leases ? want : 0;
	return 0;
}

static void take(struct drtm_server *server, const struct record *record, unsigned i,
		 struct drtm_part *out)
{
	const size_t len = value_len(record->vlen);
	server->version[i] = record->version;
	out->vlen = record->vlen;
	memcpy(out + 1, record + 1, len <= server->pool.value_bytes ? len : 0);
}

static int read_record(struct drtm_server *server, const struct drtm_part *part, unsigned i,
		       struct drtm_part *out)
{
	const void *data;
	if (is_own(server, part->server)) {
		take(server, own_record(server, part->off), i, out);
		return 0;
	}
	int rc = rpc_read(&server->conn[part->server], 0, part->off, server->pool.record_bytes,
			  &data);
	if (!rc)
		take(server, data, i, out);
	return rc;
}

/* A record of the other server's. */
static int start(struct drtm_server *server, const struct drtm_part *part, unsigned i,
		 struct drtm_part *out)
{
	int rc = 0;
	if (has_bug(&server->params, read_first))
		rc = read_record(server, part, i, out);
	if (!rc && server->params.knob[LOCKS] == LOCKS_ON)
		rc = lock(server, part, !part->writes, false, &server->lease[i]);
	return rc || has_bug(&server->params, read_first) ? rc : read_record(server, part, i, out);
}

/* --- with a region --- */

/* False: somebody else is at it. */
static bool read_own(struct drtm_server *server, const struct drtm_part *part, unsigned i,
		     struct drtm_part *out)
{
	const struct record *record = own_record(server, part->off);
	if (!has_bug(&server->params, unwatched))
		rt_htm_touches(record, server->pool.record_bytes);
	const uint64_t state = record->state;
	if (state & DRTM_LOCKED)
		return false;
	if (part->writes && !is_free(server, state) && !has_bug(&server->params, local_leased))
		return false;
	take(server, record, i, out);
	return true;
}

static void write_own(const struct drtm_server *server, const struct drtm_part *part)
{
	struct record *record = own_record(server, part->off);
	memcpy(record + 1, part + 1, value_len(part->vlen));
	record->vlen = part->vlen;
	record->version++;
}

static bool is_confirmed(const struct drtm_server *server, const struct drtm_txn *txn)
{
	for (unsigned i = 0; i < txn->n && server->params.knob[CONFIRM] == CONFIRM_ON; i++)
		if (server->lease[i] && !is_leased(server, server->lease[i]))
			return false;
	return true;
}

/* -EAGAIN: aborted. */
static int region(struct drtm_server *server, struct drtm_txn *txn, struct drtm_txn *out)
{
	const struct tm_params *params = &server->params;
	bool good = true;
	rt_htm_begin();
	for (unsigned i = 0; i < txn->n && good; i++)
		if (is_own(server, drtm_part(params, txn, i)->server))
			good = read_own(server, drtm_part(params, txn, i), i,
					drtm_part(params, out, i));
	if (!good || !is_confirmed(server, txn)) {
		rt_htm_abort();
		return -EAGAIN;
	}
	if (!rt_htm_commits())
		return -EAGAIN;
	for (unsigned i = 0; i < txn->n; i++) {
		const struct drtm_part *part = drtm_part(params, txn, i);
		if (part->writes && is_own(server, part->server))
			write_own(server, part);
	}
	if (params->knob[LOG_POINT] == LOG_IN_HTM)
		log_writes(server, txn);
	rt_htm_end();
	if (params->knob[LOG_POINT] == LOG_AFTER)
		log_writes(server, txn);
	return 0;
}

static int with_region(struct drtm_server *server, struct drtm_txn *txn, struct drtm_txn *out)
{
	const struct tm_params *params = &server->params;
	int rc = 0;
	for (unsigned i = 0; i < txn->n && !rc; i++)
		if (!is_own(server, drtm_part(params, txn, i)->server))
			rc = start(server, drtm_part(params, txn, i), i, drtm_part(params, out, i));
	return rc ? rc : region(server, txn, out);
}

/* --- without --- */

/* Which part is the next in the order in which all servers lock: after the part `last`. */
static unsigned next_locked(const struct drtm_server *server, struct drtm_txn *txn, unsigned last)
{
	unsigned next = txn->n;
	if (has_bug(&server->params, any_order))
		return last == txn->n ? 0 : last + 1;
	for (unsigned i = 0; i < txn->n; i++) {
		const struct drtm_part *part = drtm_part(&server->params, txn, i), *of;
		if (last < txn->n) {
			of = drtm_part(&server->params, txn, last);
			if (part->server < of->server ||
			    (part->server == of->server && part->off <= of->off))
				continue;
		}
		of = next < txn->n ? drtm_part(&server->params, txn, next) : NULL;
		if (!of || part->server < of->server ||
		    (part->server == of->server && part->off < of->off))
			next = i;
	}
	return next;
}

/* All records are locked, and those that are held by others are waited for. */
static int without_region(struct drtm_server *server, struct drtm_txn *txn, struct drtm_txn *out)
{
	const struct tm_params *params = &server->params;
	int rc = 0;
	for (unsigned i = next_locked(server, txn, txn->n); i < txn->n && !rc;
	     i = next_locked(server, txn, i)) {
		rc = lock(server, drtm_part(params, txn, i), false, true, &server->lease[i]);
		if (!rc)
			rc = read_record(server, drtm_part(params, txn, i), i,
					 drtm_part(params, out, i));
	}
	if (!rc)
		log_writes(server, txn);
	return rc;
}

int drtm_execute(struct drtm_server *server, struct drtm_txn *txn, struct drtm_txn *out)
{
	const bool falls_back = server->params.knob[LOCKS] == LOCKS_ON &&
				(txn->tries >= MOST_TRIES ||
				 server->params.knob[FALLBACK] == FALLBACK_FIRST);
	memset(server->lease, 0, sizeof(server->lease));
	log_locks(server, txn, falls_back);
	int rc = falls_back ? without_region(server, txn, out) : with_region(server, txn, out);
	drtm_finish(server, !rc, rc && rc != -EAGAIN);
	return rc ? -EAGAIN : 0;
}
