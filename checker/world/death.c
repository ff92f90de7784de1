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
	return sim_server_life(w->sim) || !w->serving || world_client_died(w);
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
	bool fail = sim_calls_fail(w->sim);
	/* A process that does not come up is started once more. */
	sim_let_calls_fail(w->sim, false);
	w->server = world_environment(w, HOST_SERVER, w->server.verbs);
	world_start_server(w);
	sim_let_calls_fail(w->sim, fail);
	sim_wake(w->sim, &w->serving);
}

/* The kernel has found the time to clean up. */
static void server_closed(struct sim *sim, void *arg)
{
	struct world *w = arg;
	assert(!w->serving && !w->machine);
	pmem_process_ended(w->pm);
	rnic_close(w->server.verbs);
	sim_server_again(sim);
	sim_trace(sim, NULL, 0, "the server's process has ended; a new one begins");
	sim_spawn(sim, HOST_SERVER, NULL, restart_main, w);
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
	struct world_client *c = &w->client[host];
	assert(w->booted); /* before that no source is asked */
	if (how >= DEATH_SERVER)
		sim_trace(w->sim, sim_actor(w->sim), 0, "%s", says[how - DEATH_SERVER]);
	if (host == HOST_SERVER) {
		w->serving = false;
		sim_at(w->sim, CLOSE_NS, server_closed, w);
		return;
	}
	assert(host <= w->setup->w.clients + w->reread && c->number == host);
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
