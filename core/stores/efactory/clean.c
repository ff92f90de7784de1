/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log cleaning (EF 4.4), its course; move.c has what happens to versions.
 *
 *	1. BEGIN: the new log is registered. Clients are told where it is, and that they
 *	   read through the server from now on; each acknowledges when it is in no
 *	   operation that began before. Durable: that this cleaning goes on.
 *	2. COMPRESS: PUTs still go to the old log. Each key's newest usable version below the old
 *	   log's end, as it was, is copied.
 *	3. MERGE: PUTs go to the new log. What came to the old one in stage 2 is copied,
 *	   and so are versions that were in flight then, once they have arrived or timed out.
 *	4. Each entry's mark is flipped; then links into the old log are cut, and the
 *	   old offsets cleared. Durable: that the new log is the current one.
 *	5. END: clients read by themselves again. When all have acknowledged, none can
 *	   hold an address in the old log. It is deregistered, and free.
 *
 * A client that does not acknowledge within the timeout after which its writes count as
 * dead is dropped: its connections are closed, so that it can do no harm later.
 *
 * The paper scans the log backwards and so meets each key's newest version first. We
 * go from entry to entry, and from there along the versions, which needs no list of all
 * objects. Its reserved room in the new log is here a number of bytes that PUTs leave
 * free: as stamps tell which version is newer, it need not be in one piece.
 */
#include "core/stores/efactory/server.h"

#include <assert.h>
#include <errno.h>
#include <libpmem.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"

#define NAP_MIN_NS 500	    /* first pause while something is waited for */
#define NAP_MAX_NS 64000000 /* doubled up to this: a dead writer is waited for long */

void ef_clean_wait(struct ef_server *server, uint64_t *nap)
{
	uint64_t most = ef_timeout_ns(&server->params) / 8;

	if (most > NAP_MAX_NS)
		most = NAP_MAX_NS;
	if (*nap == 0 ||
	    (!ef_bug(&server->params, EF_BUG_CLEAN_UNVERIFIED) && ef_verify_round(server)))
		*nap = NAP_MIN_NS;
	rt_sleep(*nap);
	*nap = 2 * *nap < most ? 2 * *nap : most;
}

void ef_quiesce(struct ef_server *server)
{
	uint64_t seen = __atomic_load_n(&server->requests, __ATOMIC_SEQ_CST);
	uint64_t nap = 0;

	if (ef_bug(&server->params, EF_BUG_NO_QUIESCE))
		return;
	while (seen % 2 && __atomic_load_n(&server->requests, __ATOMIC_SEQ_CST) == seen)
		ef_clean_wait(server, &nap);
}

static void set_stage(struct ef_server *server, enum ef_stage stage, unsigned current)
{
	assert(stage == (server->stage / 2 + 1) % (EF_MERGE + 1)); /* none is left out */
	__atomic_store_n(&server->stage, stage * 2 + current, __ATOMIC_SEQ_CST);
	ef_quiesce(server);
}

/* --------------------------------------------------------------- notices */

/* Is this a connection for notices? */
static bool listens(const struct rpc_peer *peer)
{
	return peer->notices && peer->qp;
}

/* Has this client still to get the notice, or, with `acks`, to acknowledge it? */
static bool owes(const struct rpc_peer *peer, const struct ef_notice *notice, bool acks)
{
	return peer->told < notice->number ||
	       (acks && __atomic_load_n(&peer->acked, __ATOMIC_ACQUIRE) < notice->number);
}

/*
 * Send to those that have not got it. True: there is none to wait for. A client has its time from
 * when the notice was sent: while a dead one is waited for others connect, and have theirs.
 */
static bool spread(struct ef_server *server, const struct ef_notice *notice, bool acks)
{
	uint64_t timeout_ns = ef_timeout_ns(&server->params);
	bool all = true;

	for (unsigned i = 0; i < server->rpc.peers; i++) {
		struct rpc_peer *peer = &server->rpc.peer[i];
		int rc = 0;

		if (!listens(peer))
			continue;
		if (peer->told < notice->number) {
			/* Before it is sent: a client that takes this place meanwhile has not
			 * got it. */
			peer->told = notice->number;
			rc = rpc_server_notify(&server->rpc, i, notice, sizeof(*notice));
		}
		if (rc)
			peer->told = 0;
		if (rc == -EIO)
			continue; /* it cannot get it: announce() drops it */
		if (owes(peer, notice, acks) && rt_now() - peer->since <= timeout_ns)
			all = false;
	}
	return all;
}

/* Send the notice to all clients, and wait; one that does not acknowledge in time is dropped. */
static void announce(struct ef_server *server, const struct ef_now *now, bool acks)
{
	struct ef_notice notice;
	uint64_t nap = 0;

	memset(&notice, 0, sizeof(notice));
	notice.number = ++server->notice;
	server->rpc.word = notice.number % 2; /* for those that connect from now on */
	notice.region = EF_LOG + now->to;
	notice.where = server->rpc.region[EF_LOG + now->to];
	while (!spread(server, &notice, acks))
		ef_clean_wait(server, &nap);
	for (unsigned i = 0; i < server->rpc.peers; i++) {
		const struct rpc_peer *peer = &server->rpc.peer[i];

		if (listens(peer) && owes(peer, &notice, acks))
			rpc_server_drop(&server->rpc, peer->client);
	}
}

/* ---------------------------------------------------------------- course */

static void set_state(struct ef_server *server, uint64_t state)
{
	uint64_t *word = &server->pool.header->state;

	__atomic_store_n(word, state, __ATOMIC_RELEASE);
	pmem_persist(word, sizeof(*word));
}

/* Export the new log, unless it still is (knob grace=none). */
static int export_log(struct ef_server *server, unsigned log)
{
	if (server->rpc.export_mr[EF_LOG + log])
		return 0;
	return rpc_server_export_at(
		&server->rpc, EF_LOG + log, server->pool.log[log], server->pool.log_len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

/* No value in a log is waited for any more. */
static void forget_pending(struct ef_server *server, unsigned log)
{
	uint64_t arrived = __atomic_load_n(&server->arrived, __ATOMIC_ACQUIRE);

	assert(arrived - server->first <= server->max_pending); /* no place has two */
	for (uint64_t i = server->first; i < arrived; i++) {
		struct ef_pending *pending = &server->pending[i % server->max_pending];

		if (pending->place && ef_log_of(pending->place) == log)
			pending->place = 0;
	}
}

static void move_versions(struct ef_server *server, struct ef_now *now)
{
	const struct tm_params *params = &server->params;

	server->tail[now->to] = TM_LINE;
	memset(server->moved, 0, server->pool.slots * sizeof(*server->moved));
	server->cut = server->tail[now->from];
	server->carried = 0;
	if (!ef_bug(params, EF_BUG_NO_STATE))
		set_state(server, EF_STATE_CLEAN | now->from);
	now->stage = EF_COMPRESS;
	set_stage(server, now->stage, now->from);
	ef_compress(server, now);

	/* PUTs find no room until their part of it is known. */
	__atomic_store_n(&server->reserve, server->pool.log_len, __ATOMIC_RELEASE);
	now->stage = EF_MERGE;
	set_stage(server, now->stage, now->from);
	uint64_t reserve = server->tail[now->from] - server->cut + server->carried;
	if (ef_bug(params, EF_BUG_NO_RESERVE))
		reserve = 0;
	__atomic_store_n(&server->reserve, reserve, __ATOMIC_RELEASE);
	ef_merge(server, now);
	if (ef_bug(params, EF_BUG_STATE_EARLY))
		set_state(server, now->to);
	ef_flip(server, now);
	set_state(server, now->to);
}

/* One cleaning. 0 or -errno. */
static int clean(struct ef_server *server)
{
	const struct tm_params *params = &server->params;
	enum ef_grace grace = ef_knobs(params)->grace;
	struct ef_now now = ef_server_now(server);
	int rc = export_log(server, now.to);

	if (rc)
		return rc;
	set_stage(server, EF_BEGIN, now.from);
	announce(server, &now, !ef_knobs(params)->no_notify_wait);
	move_versions(server, &now);
	forget_pending(server, now.from);
	/* What PUTs have brought meanwhile was not cleaned, the next cleaning may drop it. */
	server->tail_cleaned = __atomic_exchange_n(&server->put_merging, false, __ATOMIC_ACQ_REL)
				       ? 0
				       : server->tail[now.to];
	set_stage(server, EF_REST, now.to);
	announce(server, &now, grace == EF_GRACE_ACKS);
	if (grace != EF_GRACE_NONE)
		rpc_server_unexport(&server->rpc, EF_LOG + now.from);
	return 0;
}

static void cleaner(void *arg)
{
	struct ef_server *server = arg;
	uint64_t nap = NAP_MIN_NS;

	for (;;) {
		if (!server->clean_wanted || !ef_background_take(server)) {
			rt_sleep(nap);
			nap = 2 * nap < NAP_MAX_NS ? 2 * nap : NAP_MAX_NS;
			continue;
		}
		server->clean_error = clean(server);
		ef_background_leave(server);
		__atomic_store_n(&server->clean_wanted, false, __ATOMIC_RELEASE);
		nap = NAP_MIN_NS;
	}
}

int ef_clean_start(struct ef_server *server)
{
	if (server->clean_wanted)
		return -EALREADY;
	if (!server->moved)
		server->moved = calloc(server->pool.slots, sizeof(*server->moved));
	if (!server->moved)
		return -ENOMEM;
	__atomic_store_n(&server->clean_wanted, true, __ATOMIC_RELEASE);
	if (server->has_cleaner)
		return 0;
	int rc = rt_spawn("cleaner", cleaner, server);
	server->has_cleaner = !rc;
	if (rc)
		server->clean_wanted = false;
	return rc ? -ENOMEM : 0; /* not -EAGAIN, with which a client would ask again for ever */
}
