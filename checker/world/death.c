/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run, and deaths: of the server's process, of a client's, of a machine. */
#include "checker/world/world_client.h"
#include <assert.h>
#include "core/rnic/rnic.h"

/* Has a client died for which others may have waited? */
bool world_client_died(const struct world *w)
{
	for (unsigned n = 1; n <= w->setup->w.clients; n++)
		if (w->client[n].died)
			return true;
	return false;
}

/* The server's process, or a client? */
bool world_someone_died(const struct world *w)
{
	return sim_server_life(w->sim) || w->failures ||
	       w->serving != (1u << w->setup->servers) - 1 || world_client_died(w);
}

void world_at_end(struct sim *sim, void *arg)
{
	struct choice_point at = {.kind = CHOICE_CRASH, .a = CRASH_AT_END};
	struct world *w = arg;
	assert(w->ended == w->setup->w.clients && !w->machine);
	/* Nothing happens any more: then clients that were held go on. */
	if (sim_let_go(sim)) {
		sim_at(sim, AFTERMATH_NS, world_at_end, arg);
		return;
	}
	if (!sim_power_fails(sim, &at)) {
		unsigned n = w->setup->w.clients + 1;
		if (!world_someone_died(w) && !workload_cleans(&w->setup->w)) {
			sim_source(sim, NULL);
			sim_set_observer(sim, NULL, NULL);
			if (w->setup->store->dump)
				sim_spawn(sim, HOST_SERVER, "dump", agree_main, w);
			else
				sim_stop(sim, SIM_DONE);
			return;
		}
		w->reread = true;
		w->reread_ns = sim_now(sim);
		w->client[n] = (struct world_client){.world = w, .number = n, .op = -1};
		sim_spawn(sim, n, NULL, reread_main, &w->client[n]);
	}
}

void world_client_ended(struct world *w)
{
	assert(w->ended < w->opened && w->opened <= w->setup->w.clients);
	if (++w->ended == w->setup->w.clients)
		sim_at(w->sim, AFTERMATH_NS, world_at_end, w);
}

static void restart_main(void *arg)
{
	struct world *w = arg;
	const unsigned server = host_server(sim_host(w->sim));
	bool fail = sim_calls_fail(w->sim);
	/* A process that does not come up is started once more. */
	sim_let_calls_fail(w->sim, false);
	w->server[server] = world_environment(w, server_host(server), w->server[server].verbs);
	world_start_server(w, server);
	if (w->setup->servers > 1 && !sim_is_cut(w->sim, server))
		sim_set_alive(w->sim, server, true);
	sim_let_calls_fail(w->sim, fail);
	sim_wake(w->sim, &w->serving);
}

/* The kernel has found the time to clean up. */
static void server_closed(struct sim *sim, void *arg)
{
	struct world *w = arg;
	assert(!w->serving && !w->machine);
	pmem_process_ended(w->pm);
	rnic_close(w->server[0].verbs);
	sim_server_again(sim, 0);
	sim_trace(sim, NULL, 0, "the server's process has ended; a new one begins");
	sim_spawn(sim, HOST_SERVER, NULL, restart_main, w);
}

/* --- one of several machines --- */

struct failed {
	struct world *w;
	unsigned server, failures; /* which of the world's failures this is */
};

/* Nothing has been heard of it since. */
static void lease_ends(struct sim *sim, void *arg)
{
	const struct failed *failed = arg;
	if (failed->w->failed[failed->server] == failed->failures &&
	    (sim_is_cut(sim, failed->server) || !sim_has_power(sim, server_host(failed->server))))
		sim_set_alive(sim, failed->server, false);
}

static void boots_again(struct sim *sim, void *arg)
{
	const struct failed *failed = arg;
	sim_set_power(sim, server_host(failed->server), true);
	sim_server_again(sim, failed->server);
	sim_trace(sim, NULL, 0, "server %u has power again", failed->server + 1);
	sim_spawn(sim, server_host(failed->server), NULL, restart_main, failed->w);
}

static void is_heard_again(struct sim *sim, void *arg)
{
	const struct failed *failed = arg;
	sim_set_cut(sim, failed->server, false);
	failed->w->failures++; /* who has connected meanwhile may be told so only now */
	sim_trace(sim, NULL, 0, "the service hears server %u again", failed->server + 1);
	if (failed->w->serving >> failed->server & 1)
		sim_set_alive(sim, failed->server, true);
}

/* Its NIC is silent at once, and its part of the pool is what its power failure left. */
static void loses_power(struct world *w, unsigned server, bool for_ever)
{
	history_server_fails(w->history, for_ever);
	rnic_power_off(w->server[server].verbs);
	pmem_host_fails(w->pm, w->setup->server[server].at, w->setup->server[server].len,
			server_host(server));
	w->serving &= ~(1u << server);
	w->gone |= (uint32_t)for_ever << server;
}

static void happens_to(struct world *w, unsigned server, enum server_event event)
{
	const struct server_event_row *row = &server_events[event];
	const bool cut = server_is_cut(event);
	struct failed *failed = sim_alloc(w->sim, sizeof(*failed));
	*failed = (struct failed){w, server, ++w->failures};
	w->failed[server] = w->failures;
	sim_trace(w->sim, sim_actor(w->sim), 0, "server %u %s", server + 1, row->word);
	if (cut)
		sim_set_cut(w->sim, server, true);
	else
		loses_power(w, server, !row->lasts_ns);
	sim_at(w->sim, RT_LEASE_NS, lease_ends, failed);
	if (row->lasts_ns)
		sim_at(w->sim, row->lasts_ns, cut ? is_heard_again : boots_again, failed);
}

static void client_closed(struct sim *sim, void *arg)
{
	struct world_client *c = arg;
	assert(c->dead);
	(void)sim;
	if (!c->away)
		rnic_close(c->env->verbs);
	c->away = true;
}

static void come_back(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	client_go_on(c, sim_alloc(w->sim, w->setup->params.max_vlen));
}

/* A new process does what the dead one had not begun. */
static void client_restarts(struct sim *sim, void *arg)
{
	struct world_client *c = arg;
	client_closed(sim, arg);
	c->dead = c->lost = false;
	c->op = -1;
	c->apart = 0;
	sim_trace(sim, NULL, 0, "a new process of client %u begins", c->number);
	sim_spawn(sim, c->number, NULL, come_back, c);
}

void world_dies(void *arg, unsigned host, unsigned how)
{
	static const char *const says[] = {"the server's process dies", "the process dies",
					   "the machine dies"};
	struct world *w = arg;
	assert(w->booted); /* before that no source is asked */
	if (delay_befalls_one(how)) {
		happens_to(w, host_server(host), death_event(how));
		return;
	}
	if (how >= DEATH_SERVER)
		sim_trace(w->sim, sim_actor(w->sim), 0, "%s", says[how - DEATH_SERVER]);
	if (host == HOST_SERVER) {
		w->serving = 0;
		sim_at(w->sim, CLOSE_NS, server_closed, w);
		return;
	}
	assert(host <= w->setup->w.clients + w->reread);
	struct world_client *c = &w->client[host];
	assert(c->number == host);
	if (c->done || c->dead)
		return;
	c->dead = c->died = true;
	if (how == DEATH_PROCESS && c->next < client_operations(c)) {
		sim_at(w->sim, CLOSE_NS, client_restarts, c);
		return;
	}
	if (how >= DEATH_PROCESS)
		sim_at(w->sim, how == DEATH_MACHINE ? 0 : CLOSE_NS, client_closed, c);
	if (host <= w->setup->w.clients)
		world_client_ended(w);
}
