/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is a member, who has copies, and who says so. See farm.h. */
#include <errno.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/farm/farm.h"

#define PATIENCE_NS 300000 /* for servers that boot at the same time */
#define LOCK_NS	    300000 /* then the transactions of who holds it are recovered */

static uint32_t my_bit(const struct farm_server *server)
{
	return 1u << server->env.server;
}

static unsigned first_of(uint32_t servers, unsigned from)
{
	while (!(servers >> from & 1))
		from = (from + 1) % FARM_SERVERS;
	return from;
}

/* Make it so, if the configuration is still the one that was seen. */
static int configure(const struct rt_config *seen, struct rt_config *next)
{
	next->epoch = seen->epoch + 1;
	if (next->members && !(next->members >> next->primary & 1))
		next->primary = first_of(next->members, 0);
	return rt_config_set(next);
}

/* A server that has just begun is no member: what it knew is lost. */
static void leave(const struct farm_server *server)
{
	struct rt_config now, next;
	do {
		rt_config_get(&now);
		next = now;
		next.members &= ~my_bit(server);
	} while (now.members & my_bit(server) && configure(&now, &next));
}

/* --- recovery --- */

/* The servers of a region that has no copy at a member; of all regions if all have just begun. */
static uint32_t needed(const struct farm_server *server, const struct rt_config *now)
{
	uint32_t need = 0;
	for (unsigned r = 0; r < FARM_REGIONS; r++)
		if (server->cold || !(now->part[r].servers & now->members))
			need |= now->part[r].servers;
	return need & ~now->members & now->alive;
}

static uint32_t those_up(struct farm_server *server, const struct rt_config *now, uint32_t servers)
{
	struct ask ask = {.op = PROBE};
	uint32_t up = 0;
	farm_map_of(&ask, now);
	for (unsigned s = 0; s < FARM_SERVERS; s++)
		if (servers >> s & 1 && !farm_ask(server, s, &ask, NULL))
			up |= 1u << s;
	return up;
}

/* Members have all copies that count. False: not yet. */
static bool settle_members(struct farm_server *server, const struct rt_config *now)
{
	struct rt_config next = *now;
	const uint32_t need = needed(server, now), up = those_up(server, now, need);
	if (up != need && rt_now() - server->began < PATIENCE_NS)
		return false;
	next.members |= up;
	for (unsigned r = 0; r < FARM_REGIONS; r++) {
		const uint32_t servers = now->part[r].servers & next.members;
		if (!servers)
			return false;
		next.part[r].servers = servers;
		if (!(servers >> next.part[r].primary & 1))
			next.part[r].primary = first_of(servers, r);
	}
	server->cold = false;
	if (!memcmp(&next.part, &now->part, sizeof(next.part)) && next.members == now->members)
		return true;
	configure(now, &next);
	return false;
}

static int open_all(struct farm_server *server, const struct rt_config *now, bool all)
{
	struct ask ask = {.op = OPEN, .all = all};
	int rc = 0;
	farm_map_of(&ask, now);
	for (unsigned s = 0; s < FARM_SERVERS && !rc; s++)
		if (now->members >> s & 1)
			rc = farm_ask(server, s, &ask, NULL);
	if (!rc)
		server->recovered = now->epoch;
	return rc;
}

static void recover_all(struct farm_server *server, const struct rt_config *now)
{
	if (!settle_members(server, now) || farm_decide(server, now, 0, true))
		return;
	for (uint32_t c = 1; c < server->pool.senders; c++) {
		server->sender[c].clean = true;
		server->sender[c].wanted = server->sender[c].dropped = false;
	}
	open_all(server, now, true);
}

/* A client that comes again, or has held a lock for long. */
static bool recover_clients(struct farm_server *server, const struct rt_config *now)
{
	bool any = false;
	for (uint32_t c = 1; c < server->pool.senders; c++) {
		struct sender *sender = &server->sender[c];
		if (!sender->wanted)
			continue;
		any = true;
		if (farm_decide(server, now, c, sender->dropped))
			return true;
		sender->clean = true;
		sender->wanted = sender->dropped = false;
	}
	return any;
}

/* --- copies --- */

/* The server that gets a copy of a region that has one only; FARM_SERVERS: there is none. */
static unsigned target(struct farm_server *server, const struct rt_config *now, unsigned region)
{
	const uint32_t others = now->alive & ~now->part[region].servers;
	for (unsigned i = 0; i < FARM_SERVERS; i++) {
		const unsigned s = (region + i) % FARM_SERVERS;
		if (others >> s & 1 && those_up(server, now, 1u << s))
			return s;
	}
	return FARM_SERVERS;
}

static bool make_copies(struct farm_server *server, const struct rt_config *now)
{
	for (unsigned r = 0; r < FARM_REGIONS; r++) {
		const uint32_t servers = now->part[r].servers;
		if (servers & (servers - 1))
			continue;
		const unsigned to = target(server, now, r);
		struct ask ask = {.op = COPY,
				  .region = (uint8_t)r,
				  .server = (uint8_t)to,
				  .all = !(now->members >> to & 1)};
		struct rt_config next = *now;
		/* A copy to a server that is gone by now keeps the region quiet. */
		if (to == FARM_SERVERS && !(server->copies >> r & 1))
			continue;
		server->copies |= 1u << r;
		farm_map_of(&ask, now);
		if (farm_ask(server, now->part[r].primary, &ask, NULL))
			return true;
		server->copies &= ~(1u << r);
		if (to == FARM_SERVERS)
			continue;
		next.part[r].servers |= 1u << to;
		next.members |= 1u << to;
		if (!configure(now, &next))
			open_all(server, &next, false);
		return true;
	}
	return false;
}

static bool is_locked(const struct farm_server *server, unsigned region)
{
	for (unsigned s = 0; s < server->pool.slots; s++)
		if (farm_object(&server->pool, region, s)->head & HEAD_LOCK)
			return true;
	return false;
}

/* The primary's part: nobody gets a lock meanwhile, and nobody has one. False: somebody has. */
static bool copy_region(struct farm_server *server)
{
	struct farm_copy *copy = &server->copy;
	const struct farm_copy what = *copy;
	const size_t step = server->pool.record_bytes, bytes = server->pool.region_bytes;
	struct ask ask = {.op = WIPE, .region = (uint8_t)what.region, .all = what.wipe};
	if (is_locked(server, what.region))
		return false;
	ask.epoch = server->open;
	ask.map = server->map;
	int rc = farm_ask(server, what.to, &ask, NULL);
	for (size_t off = 0; off < bytes && !rc; off += step) {
		const uint8_t *from = server->pool.region[what.region] + off;
		rc = rpc_write(&server->peer[what.to], 1, what.region * bytes + off, from,
			       bytes - off < step ? bytes - off : step);
	}
	ask.op = COPIED;
	if (!rc)
		rc = farm_ask(server, what.to, &ask, NULL);
	if (copy->state == COPY_WANTED && copy->epoch == what.epoch) /* no recovery came between */
		copy->state = rc ? COPY_FAILED : COPY_DONE;
	return true;
}

/* --- */

static bool is_late(const struct farm_server *server, uint32_t client)
{
	const struct sender *sender = &server->sender[client];
	return sender->holds && rt_now() - sender->since >= kv_patience(&server->params, LOCK_NS);
}

static void suspect(struct farm_server *server, const struct rt_config *now)
{
	for (uint32_t c = 1; c < server->pool.senders; c++) {
		struct ask ask = {.op = SUSPECT, .client = c};
		farm_map_of(&ask, now);
		if (is_late(server, c))
			farm_ask(server, now->primary, &ask, NULL);
	}
}

/* Did it do something? */
static bool manage(struct farm_server *server, const struct rt_config *now)
{
	if (server->recovered == now->epoch)
		return recover_clients(server, now) || make_copies(server, now);
	recover_all(server, now);
	return true;
}

/* What a server does by itself. False: nothing is left to do in this configuration. */
static bool keep(struct farm_server *server)
{
	struct rt_config now, next;
	if (rt_config_get(&now)) /* the service is out of reach */
		return true;
	next = now;
	if (!now.part[0].servers) /* it is being made */
		return true;
	if (!(now.members & now.alive)) { /* all have lost their power */
		server->cold = true;
		server->began = rt_now();
		next.members = my_bit(server);
		return configure(&now, &next), true;
	}
	if (!(now.members & my_bit(server)))
		return false;
	next.members &= now.alive | my_bit(server);
	if (next.members != now.members) /* a lease has ended */
		return configure(&now, &next), true;
	/* Who has a lock may be dead: then he is recovered first. */
	const bool waits = server->copy.state == COPY_WANTED && !copy_region(server);
	if (server->open)
		suspect(server, &now);
	return (now.primary == server->env.server && manage(server, &now)) || waits;
}

static void keeper(void *arg)
{
	struct farm_server *server = arg;
	for (;;) {
		uint64_t nap = KV_NAP_NS;
		sem_wait(&server->work);
		server->asked = false;
		while (keep(server))
			kv_nap_to(&nap, 50000000);
	}
}

void farm_keep(struct farm_server *server)
{
	if (!server->asked)
		sem_post(&server->work);
	server->asked = true;
}

static void watch_service(void *arg)
{
	struct farm_server *server = arg;
	struct rt_config known;
	leave(server);
	rt_config_get(&known);
	for (;;) {
		const uint32_t members = known.members;
		farm_keep(server);
		rt_config_wait(&known);
		/* Who has left may have begun anew, and does not know the connection. */
		const uint32_t gone = ~known.alive | (members & ~known.members);
		for (unsigned s = 0; s < FARM_SERVERS; s++)
			if (server->connected[s] && gone >> s & 1)
				rpc_break(&server->peer[s]);
	}
}

/* While somebody has locks. */
static void watch_locks(void *arg)
{
	struct farm_server *server = arg;
	for (;;) {
		bool any = false;
		for (uint32_t c = 1; c < server->pool.senders; c++) {
			any |= server->sender[c].holds != 0;
			if (is_late(server, c))
				farm_keep(server);
		}
		server->watching = any;
		if (any)
			rt_sleep(kv_patience(&server->params, LOCK_NS));
		else
			sem_wait(&server->locked);
	}
}

void farm_watch_locks(struct farm_server *server)
{
	if (!server->watching)
		sem_post(&server->locked);
	server->watching = true;
}

int farm_manage(struct farm_server *server)
{
	if (sem_init(&server->work, 0, 0) || sem_init(&server->locked, 0, 0))
		return -ENOMEM;
	int rc = rt_spawn("keeper", keeper, server);
	if (!rc)
		rc = rt_spawn("locks", watch_locks, server);
	return rc ? rc : rt_spawn("service", watch_service, server);
}
