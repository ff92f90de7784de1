/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a store in the sim world. See world.h.
 *
 * A run has two parts. Boot (recovery, serving, connecting) asks no source in world
 * 0: an orderly start is not what is tested. In later worlds it does: recovery meets
 * undecided lines, and may itself be cut. Then clients run their programs, and when
 * the last has ended the world runs on for a while, so that the store's background
 * work is seen too.
 */
#include "checker/world/world.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/pmem/coverage.h"
#include "core/rnic/host/store_calls.h"
#include "core/rnic/rnic.h"
#include "checker/world/checker_mutant.h"
#include "checker/world/explained.h"
#include "checker/world/where.h"
#include "checker/world/world_client.h"
#include "faultinject/deviation.h"

/* In virtual time: an operation that has not ended by then never will. */
#define GIVE_UP_NS   (60ull * 1000000000)
#define STEPS_BASE   1000000ull /* steps of a run ... */
#define STEPS_PER_OP 20000ull	/* ... and of each operation */
#define TICK_NS	     100000	/* a machine that has recovered serves from a multiple of it on */

/* --- boot --- */

/* `before`: closed, of the host's former process; NULL: it is the first. */
struct tm_env world_environment(struct world *w, unsigned host, struct ibv_context *before)
{
	struct tm_env env = {
		.params = &w->setup->params, .client = host, .servers = w->setup->servers};
	struct pmem *pm = host_serves(host) ? w->pm : NULL;
	env.verbs = before ? rnic_open_again(before, pm) : rnic_open(w->net, host, pm);
	calls_watch(env.verbs);
	if (host_serves(host)) {
		const struct setup_server *server = &w->setup->server[host_server(host)];
		env.client = 0;
		env.server = host_server(host);
		env.params = &server->params;
		env.pm = pmem_base(w->pm) + server->at;
		env.pm_len = server->len;
	}
	return env;
}

static void start_clients(struct world *w)
{
	unsigned readers = w->setup->w.clients + 1;
	unsigned first = w->machine || w->loading ? readers : 1,
		 last = w->machine || w->loading ? readers : w->setup->w.clients;
	void (*main)(void *) = w->loading ? load_main : w->machine ? reader_main : client_main;
	assert(last < sizeof(w->client) / sizeof(w->client[0]));
	assert(!w->opened && !w->ended);
	for (unsigned n = first; n <= last; n++) {
		w->client[n] = (struct world_client){.world = w, .number = n, .op = -1};
		sim_spawn(w->sim, n, NULL, main, &w->client[n]);
	}
	if (!first || first > last)
		sim_at(w->sim, AFTERMATH_NS, world_at_end, w);
}

/* The time that recovery took must not matter to what comes after it: else nearly each repair would
 * have a future of its own (checker/recall/rest.h). */
static void wait_for_tick(struct sim *sim)
{
	sim_sleep(sim, TICK_NS - sim_now(sim) % TICK_NS);
	sim_repeat_news(sim);
}

bool world_serves(const struct world *w)
{
	const unsigned primary = sim_config(w->sim)->primary;
	return w->serving >> primary & 1 && !sim_is_cut(w->sim, primary);
}

unsigned world_server_ends(const struct world *w)
{
	return sim_server_life(w->sim) + w->failures;
}

/* Recover, check and serve, or, while loading, make an empty store. */
void world_start_server(struct world *w, unsigned server)
{
	const struct tm_store *store = w->setup->store;
	struct source *source = sim_get_source(w->sim);
	sim_construct(w->sim);
	sim_forget_failed_call(w->sim);
	const struct tm_env *env = &w->server[server];
	int error = w->loading ? store->format(env) : store->recover(env);
	memcpy(w->result.recovery, sim_actor(w->sim)->count, sizeof(w->result.recovery));
	if (error) {
		world_refused(w, w->loading ? "format" : "recover", error,
			      "%s fails: ", w->loading ? "making an empty store" : "recovery");
		sim_abandon(w->sim, SIM_DONE);
	}
	if (w->machine || sim_server_life(w->sim)) {
		/* Nothing happens to the store while it is looked at; but what one of several has
		 * lost with its power is decided when it is read. One alone has lost nothing, and
		 * a source that is asked here would answer otherwise later. */
		if (!w->machine && w->setup->servers == 1)
			sim_source(w->sim, NULL);
		world_fsck(w, server, "recovery");
		sim_source(w->sim, source);
	}
	if (w->machine) {
		coverage_enter(COVERAGE_AFTER);
		wait_for_tick(w->sim);
	}
	if (w->recovered && !w->result.fsck_broken && w->recovered(w->recovered_arg, w))
		sim_abandon(w->sim, SIM_DONE);
	sim_forget_failed_call(w->sim);
	error = store->serve(env);
	if (error) {
		world_refused(w, "serve", error, "the server does not start: ");
		sim_abandon(w->sim, SIM_DONE);
	}
	w->serving |= 1u << server;
}

/* A server; the last one to serve starts the clients. */
static void boot(void *arg)
{
	struct world *w = arg;
	const unsigned server = host_server(sim_host(w->sim));
	w->server[server] = world_environment(w, server_host(server), NULL);
	world_start_server(w, server);
	if (w->machine && w->setup->servers > 1)
		sim_set_alive(w->sim, server, true);
	if ((w->serving | w->gone) == (1u << w->setup->servers) - 1)
		start_clients(w);
}

uint64_t worlds_inherited(const struct worlds *ws, unsigned machine)
{
	const struct world *failed = &ws->world[machine - 1];
	if (failed->setup->servers == 1)
		return 0;
	const struct rt_config *config = sim_config(failed->sim);
	uint64_t all[4 + 2 * RT_CONFIG_PARTS] = {config->epoch, config->members, config->primary,
						 failed->gone};
	for (unsigned p = 0; p < RT_CONFIG_PARTS; p++) {
		all[4 + 2 * p] = config->part[p].servers;
		all[5 + 2 * p] = config->part[p].primary;
	}
	return XXH3_64bits(all, sizeof(all)) | 1;
}

static void boot_servers(struct worlds *ws, struct world *w)
{
	/* The service has not failed; it has heard of no server since, and of one that is gone it
	 * never will. */
	w->gone = w->machine ? ws->world[w->machine - 1].gone : 0;
	if (w->machine)
		sim_set_config(w->sim, sim_config(ws->world[w->machine - 1].sim));
	else if (!w->loading)
		sim_set_config(w->sim, &ws->loaded);
	for (unsigned server = 0; server < w->setup->servers && w->machine; server++)
		sim_set_alive(w->sim, server, false);
	for (unsigned server = 0; server < w->setup->servers; server++)
		if (!(w->gone >> server & 1))
			sim_spawn(w->sim, server_host(server), NULL, boot, w);
}

/* Clients that read after the others have as much time as these had. */
static void give_up(struct sim *sim, void *arg)
{
	const struct world *w = arg;
	uint64_t until = w->reread ? w->reread_ns + GIVE_UP_NS : 0;
	if (sim_now(sim) < until)
		sim_at(sim, until - sim_now(sim), give_up, arg);
	else
		sim_stop(sim, SIM_BUDGET);
}

static void begin(struct worlds *ws, unsigned machine, struct source *source)
{
	struct world *w = &ws->world[machine];
	const struct setup *s = w->setup;
	assert(w->machine == machine && machine < WORLDS);
	sim_reset(w->sim, source);
	sim_set_profile(w->sim, &s->profile);
	sim_repeat_allow(w->sim, s->profile.cpus); /* nothing goes wrong where time is measured */
	sim_set_servers(w->sim, s->servers, s->store->losses);
	if (!machine && !w->loading)
		sim_set_clocks(w->sim, s->hw.clocks_us * 1000ull);
	sim_set_statics(w->sim, s->statics);
	/* What a machine does that boots after a power failure does not depend on how many came
	 * before (checker/recall). */
	sim_set_boot(w->sim, w->loading ? 0 : machine ? 2 : 1);
	pmem_begin(w->pm, w->sim, &s->hw);
	pmem_set_regions(w->pm, s->region, s->regions);
	pmem_set_hosts(w->pm, s->servers > 1 ? s->servers : 0);
	for (unsigned server = 0; server < s->servers && s->servers > 1; server++)
		pmem_set_host(w->pm, server, s->server[server].at);
	if (w->loading && !w->tracer)
		sim_set_tracer(w->sim, s->load_tracer, s->watcher_arg);
	else
		sim_set_tracer(w->sim, w->tracer, w->tracer_arg);
	if (w->wordless)
		sim_trace_no_words(w->sim);
	sim_set_anywhere(w->sim, w->anywhere);
	sim_let_calls_fail(w->sim, s->hw.calls_fail);
	if (!w->loading)
		sim_set_places(w->sim, &s->without, s->reached);
	if (s->dram_watcher)
		pmem_watch_dram(w->pm, s->dram_watcher, s->watcher_arg);
	if (machine && w->eager)
		pmem_decide_all(w->pm);
	w->net = rnic_net_new(w->sim, &s->hw);
	memset(&w->result, 0, sizeof(w->result));
	w->result.live_op = -1;
	w->opened = w->ended = 0;
	w->booted = w->reread = w->agreeing = false;
	w->serving = w->gone = 0;
	w->failures = 0;
	memset(w->failed, 0, sizeof(w->failed));
	w->gets.n = w->gets.events = w->gets.bytes = 0;
	life_begin(w);
	/* Where time is measured, each may have to look on while all others have their turn. */
	const unsigned lookers = s->profile.cpus ? s->w.clients : 1;
	sim_set_step_budget(
		w->sim, STEPS_BASE + STEPS_PER_OP * lookers *
					     (machine ? 2 * (s->w.keys + setup_looks(s)) + LIFE_OPS
						      : workload_ops(&s->w)));
	sim_at(w->sim, GIVE_UP_NS, give_up, w);
}

void world_observe(void *arg, const struct choice_point *at)
{
	struct world *w = arg;
	enum coverage_phase before = coverage_enter(COVERAGE_OUTSIDE);
	w->observer(w->observer_arg, w, at);
	coverage_enter(before);
}

/* In an operation that never ends, as the store has declared. */
static bool waits_for_others(const struct world_client *c)
{
	const struct world *w = c->world;
	if (!w || (c->op < 0 && !c->apart))
		return false;
	return hang_explained(w, c->number,
			      c->op < 0 ? c->apart : history_operation(w->history->op[c->op].kind));
}

/* What a GET did not answer once the machine had recovered cannot be read. */
static void note_never(struct world_client *c)
{
	struct world *w = c->world;
	if (!w->machine || c->op < 0 || w->history->op[c->op].kind != HISTORY_GET)
		return;
	history_never_returns(w->history, c->op);
	if (w->gets.kept)
		client_keep_return(c, &w->history->op[c->op]);
}

/* What a run's end means. */
static void conclude(struct world *w, enum sim_end end)
{
	uintptr_t pc;
	unsigned first = w->machine ? w->setup->w.clients + 1 : 1;
	unsigned last = w->machine ? first + w->life.second : w->setup->w.clients + w->reread;
	w->result.end = end;
	if (end == SIM_FAULT) {
		const char *what = sim_fault(w->sim, &pc);
		world_trouble_at(w, pc, "%s%s%s",
				 w->filling   ? "while it is filled: "
				 : w->loading ? "in the load phase: "
					      : "",
				 what, sim_fault_where(w->sim));
		for (unsigned n = first; n <= last && w->machine; n++)
			if (w->client[n].world)
				note_never(&w->client[n]);
		return;
	}
	if ((end != SIM_BUDGET && end != SIM_IDLE) || CHECKER_MUTANT(w->setup, LIVE_NEVER))
		return;
	const char *how = sim_repeats(w->sim) ? WORLD_REPEATS : "";
	if (w->loading) {
		world_trouble(w, true, "%s does not end%s",
			      w->filling ? "filling it" : "the load phase", how);
		return;
	}
	if (w->agreeing) {
		world_trouble(w, true, "asking the servers what they hold does not terminate%s",
			      how);
		return;
	}
	if (sim_copies_lost(w->sim))
		return; /* nobody can serve what nobody has */
	for (unsigned n = first; n <= last; n++) {
		struct world_client *c = &w->client[n];
		if (c->done || c->dead || (n > first && w->machine && c->op < 0) ||
		    waits_for_others(c))
			continue;
		if (!w->result.live_broken)
			w->result.live_op = c->world ? c->op : -1;
		if (c->world)
			note_never(c);
		if (w->machine)
			world_trouble(w, true, "after recovery, %s does not terminate%s",
				      w->life.on	      ? "an operation"
				      : w->result.live_op < 0 ? "recovery or connecting"
							      : "a GET",
				      how);
		else
			world_trouble(w, true, "client %u's operation does not terminate%s", n,
				      how);
	}
}

/* The machine runs until its end. */
static void run_machine(struct world *w)
{
	enum coverage_phase before = coverage_enter(w->machine == 0   ? COVERAGE_RUN
						    : w->machine == 1 ? COVERAGE_RECOVERY
								      : COVERAGE_AFTER);
	enum sim_end end = sim_run(w->sim);
	coverage_enter(before);
	conclude(w, end);
}

/* Let a source of choices and an observer take part in world 0's run. */
static void follow_run(struct world *w, struct source *source, world_observer *observer, void *arg)
{
	w->source = source;
	w->observer = observer;
	w->observer_arg = arg;
	sim_set_at_rest(w->sim, w->at_rest, w->rest_arg);
}

/* Has what any host's NIC acknowledges landed? */
static bool acks_visible(const struct setup *s)
{
	bool early = s->hw.ack_early || s->hw.transport != TRANSPORT_IB;
	for (unsigned server = 0; server < s->servers && !early; server++)
		early = hardware_of_server(&s->hw, server).ack_early;
	return !early;
}

void world_run(struct worlds *ws, struct source *source, world_observer *observer, void *arg)
{
	struct world *w = &ws->world[0];
	const struct setup *s = w->setup;
	history_reset(w->history, s->w.keys);
	if (ws->unloaded) {
		worlds_fail_again(ws);
		return;
	}
	w->history->ack_visible = acks_visible(s);
	for (unsigned v = 0; v < s->values; v++) {
		ws->op_of_value[v] = -1;
		if (s->value[v].client)
			continue;
		const struct workload_op put = {.kind = OP_PUT,
						.key = s->value[v].key,
						.nth = s->value[v].nth,
						.vlen = s->value[v].vlen};
		ws->op_of_value[v] = world_note_invoke(w, 0, HISTORY_PUT, &put);
		history_return(w->history, ws->op_of_value[v], 0, ws->op_of_value[v]);
	}
	memset(w->client, 0, sizeof(w->client));
	w->loading = false;
	begin(ws, 0, NULL);
	follow_run(w, source, observer, arg);
	sim_set_death(w->sim, world_dies, w);
	boot_servers(ws, w);
	run_machine(w);
}

void world_resume(struct worlds *ws, struct source *source, world_observer *observer, void *arg)
{
	struct world *w = &ws->world[0];
	follow_run(w, source, observer, arg);
	run_machine(w);
}

void world_recover(struct worlds *ws, unsigned machine, struct source *source,
		   world_observer *observer, void *arg, bool prove)
{
	struct world *w = &ws->world[machine];
	assert(machine > 0 && machine < WORLDS);
	assert(w->history->epoch == machine); /* history_crash() came first */
	begin(ws, machine, source);
	memset(&w->client[w->setup->w.clients + 1], 0, sizeof(w->client[0]));
	w->observer = observer;
	w->observer_arg = arg;
	w->booted = prove;
	if (observer)
		sim_set_observer(w->sim, world_observe, w);
	boot_servers(ws, w);
	run_machine(w);
}

void world_stand(struct worlds *ws, unsigned machine, struct source *source)
{
	assert(machine > 0 && machine < WORLDS);
	begin(ws, machine, source);
}

void world_end(struct worlds *ws, unsigned machine)
{
	/* After worlds_fail_again() nothing runs there. */
	if (machine || !(ws->unloaded || ws->unfilled) || pmem_running(ws->world[0].pm))
		pmem_end(ws->world[machine].pm);
}

/* --- opening --- */

/* What is wrong with a store that does not even start is that its operations fail, and if it
 * crashes or waits for ever, that they do not end. */
static void note_failed(struct worlds *ws)
{
	struct world_result *r = &ws->failed;
	*r = ws->world[0].result;
	r->ok_broken = true;
	r->live_broken = r->end != SIM_DONE;
	memcpy(r->ok_why, r->why, sizeof(r->ok_why));
}

/* The load phase, in an empty pool; `fill`: and on. Did it go well? */
static bool load(struct worlds *ws, bool fill)
{
	struct world *w = &ws->world[0];
	bool well;
	w->filling = fill;
	pmem_load(ws->stack, NULL, w->setup->pm_len);
	w->loading = true;
	begin(ws, 0, NULL);
	boot_servers(ws, w);
	run_machine(w);
	if (!fill)
		ws->loaded = *sim_config(w->sim);
	w->filling = w->loading = false;
	well = !w->result.live_broken && w->result.end == SIM_DONE;
	if (!well)
		note_failed(ws);
	return well;
}

/* The place of the call that failed is looked up here only: it takes long, and few runs end so. */
void worlds_why(const struct worlds *ws, char why[WORLDS_WHY])
{
	const struct world_result *r = &ws->failed;
	struct where *where = r->pc ? where_new() : NULL;
	char line[100] = "";
	where_print(where, r->pc, line, sizeof(line));
	where_free(where);
	snprintf(why, WORLDS_WHY, "%s%s%s%s", r->why, line[0] ? " (" : "", line,
		 line[0] ? ")" : "");
}

int worlds_fill(struct worlds *ws)
{
	struct world *w = &ws->world[0];
	ws->unfilled = !load(ws, true);
	pmem_end(w->pm);
	pmem_load(ws->stack, w->setup->image, w->setup->pm_len);
	return ws->unfilled ? -EIO : 0;
}

void worlds_fail_again(struct worlds *ws)
{
	struct world *w = &ws->world[0];
	assert(ws->unloaded || ws->unfilled);
	if (w->tracer) {
		load(ws, ws->unfilled);
		pmem_end(w->pm);
	}
	w->result = ws->failed;
}

int worlds_open(struct worlds *ws, struct setup *setup)
{
	memset(ws, 0, sizeof(*ws));
	ws->stack = pmem_stack_new(WORLDS, setup->pm_len);
	ws->history = calloc(1, sizeof(*ws->history));
	if (ws->history && (setup->store->judge || setup->own) && history_keep_details(ws->history))
		goto err;
	ws->op_of_value = calloc(setup->values + 1, sizeof(*ws->op_of_value));
	if (!ws->stack || !ws->history || !ws->op_of_value)
		goto err;
	for (unsigned m = 0; m < WORLDS; m++) {
		ws->world[m] = (struct world){.setup = setup,
					      .machine = m,
					      .history = ws->history,
					      .op_of_value = ws->op_of_value,
					      .pm = pmem_machine(ws->stack, m)};
		life_init(&ws->world[m]);
		ws->world[m].sim = sim_new();
		const unsigned looks = setup_looks(setup);
		struct world_gets *gets = &ws->world[m].gets;
		gets->longest = setup->params.max_vlen;
		if (setup_calls(setup) && gets->longest < TM_MAX_ANSWER)
			gets->longest = TM_MAX_ANSWER;
		gets->byte = malloc(
			(2 * (size_t)(setup->w.keys + looks) + LIFE_OPS) * gets->longest + 1);
		if (!ws->world[m].sim || !ws->world[m].gets.byte)
			goto err;
	}
	ws->unloaded = !load(ws, false);
	pmem_save(ws->world[0].pm, setup->image);
	pmem_end(ws->world[0].pm);
	if (ws->unloaded)
		return -EIO;
	pmem_load(ws->stack, setup->image, setup->pm_len);
	return 0;
err:
	worlds_close(ws);
	return -ENOMEM;
}

void worlds_close(struct worlds *ws)
{
	for (unsigned m = 0; m < WORLDS; m++) {
		sim_free(ws->world[m].sim);
		free(ws->world[m].gets.byte);
	}
	pmem_stack_free(ws->stack);
	history_free(ws->history);
	free(ws->op_of_value);
	memset(ws, 0, sizeof(*ws));
}

struct op_label world_op_label(const struct history *h, int op)
{
	static const uint8_t kinds[] = {[HISTORY_PUT] = OP_PUT,
					[HISTORY_GET] = OP_GET,
					[HISTORY_DEL] = OP_DEL,
					[HISTORY_CALL] = OP_CALL};
	struct op_label l = {0};
	if (op < 0 || !h->op[op].client)
		return l;
	const struct history_op *o = &h->op[op];
	l.client = o->client;
	l.kind = kinds[o->kind];
	for (int i = 0; i <= op; i++)
		l.nth += h->op[i].client == o->client && h->op[i].kind == o->kind &&
			 h->op[i].epoch == o->epoch;
	return l;
}

void world_op_name(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct op_label label = world_op_label(h, op);
	if (label.client)
		op_label_print(label, 1, buf, n);
	else
		snprintf(buf, n, "load %s", s->w.key[h->op[op].key].name);
}
