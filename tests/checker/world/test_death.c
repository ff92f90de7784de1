/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deaths: of the server's process at each step of a run, after which a new one serves what is in
 * memory and caches; and of clients, whose NICs go on or stop, and some of which come back. Bugs
 * that only such a death shows are found with it, and not without.
 */
#include "checker/campaign/campaign.h"
#include "checker/campaign/schedule.h"
#include "core/rt/sim.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"

struct scheduled {
	struct setup setup;
	struct explorer ex;
	struct schedule schedule;
};

static struct scheduled *bench_of(const struct tm_store *store, const char *variant,
				  const char *switches, const char *workload, bool no_crash)
{
	struct scheduled *b = calloc(1, sizeof(*b));
	struct explore_limits limits = campaign_default.limits;

	ck_assert_ptr_nonnull(b);
	limits.no_crash = no_crash;
	limits.states = UINT64_MAX;
	make_whole_setup(&b->setup, store, variant, switches, workload);
	ck_assert_int_eq(explore_open(&b->ex, &b->setup, &limits), 0);
	ck_assert_int_eq(schedule_open(&b->schedule, &b->ex.worlds, 1, 1), 0);
	return b;
}

static struct scheduled *bench(const char *store, const char *variant, const char *workload,
			       bool no_crash)
{
	return bench_of(store_find(store), variant, "ack_early=off", workload, no_crash);
}

static void free_bench(struct scheduled *b)
{
	schedule_close(&b->schedule);
	explore_close(&b->ex);
	setup_free(&b->setup);
	free(b);
}

static const struct world *world(const struct scheduled *b)
{
	return &b->ex.worlds.world[0];
}

/* The run in which `k` happens at this step, and nothing else. */
static void die_at(struct scheduled *b, const struct stop_point *p, unsigned k)
{
	struct random_source *r = &b->schedule.random;

	random_start(r, 1, 1);
	random_stop(r, p->key, p->a, p->b, k);
	ck_assert_int_eq(explore_run(&b->ex, &r->source, &r->taken), 0);
	ck_assert_uint_eq(r->taken.n, 1);
	ck_assert_uint_eq(r->taken.d[0].answer, choice_delay_answer(CHOICE_STEP, k));
}

/* A reader that has no other part in the workload has got every key at the end. */
static void assert_reread(const struct scheduled *b)
{
	const struct history *h = b->ex.worlds.history;
	unsigned keys = b->setup.w.keys, reader = b->setup.w.clients + 1;

	ck_assert_uint_gt(h->ops, keys);
	for (unsigned i = h->ops - keys; i < h->ops; i++) {
		ck_assert_uint_eq(h->op[i].client, reader);
		ck_assert_uint_eq(h->op[i].kind, HISTORY_GET);
		ck_assert_int_eq(h->op[i].error, 0);
		ck_assert_int_ge(h->op[i].returned, 0);
	}
}

static void assert_kept(const struct scheduled *b)
{
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (b->setup.store->promises & TM_BIT(c))
			ck_assert_msg(!b->ex.broken[c], "contract %u: %s", c,
				      b->ex.failure[c].text);
}

static const struct {
	const char *store, *workload;
} sound[] = {
	{"efactory", "w-r"}, {"efactory", "wdw"}, {"erda", "w-r"},	{"erda", "wdw"},
	{"forca", "w-r"},    {"remotelog", "ww"}, {"remotelog", "w-r"}, {"ca", "w"},
};

/* At each step of the server's and every seventh of the clients': nothing that was acknowledged is
 * lost, and no operation hangs or fails for another reason. */
TESTS(server_dies_anywhere, ROWS_OF(sound))
{
	struct scheduled *b = bench(sound[_i].store, "default", sound[_i].workload, true);
	const struct stops *stops = &b->schedule.stops;
	unsigned deaths = 0;

	for (unsigned g = STOPS_SERVER; g <= STOPS_CLIENT; g++)
		for (unsigned i = 0; i < stops->group[g].n; i += g == STOPS_SERVER ? 1 : 7) {
			die_at(b, &stops->group[g].point[i], DEATH_SERVER);
			ck_assert_uint_eq(sim_server_life(world(b)->sim), 1);
			ck_assert_int_eq(world(b)->result.end, SIM_DONE);
			assert_reread(b);
			deaths++;
		}
	ck_assert_uint_ge(deaths, 4);
	assert_kept(b);
	free_bench(b);
}

/* What is acknowledged and not flushed survives the process that served it, wherever that dies; a
 * power failure takes it. */
TEST(caches_live)
{
	struct scheduled *b = bench("erda", "default", "w", true);
	const struct stops *stops = &b->schedule.stops;
	unsigned n = stops->group[STOPS_SERVER].n;

	for (unsigned i = 0; i < n; i++)
		die_at(b, &stops->group[STOPS_SERVER].point[i], DEATH_SERVER);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_eq(b->ex.broken[TM_DUR], 0);
	free_bench(b);
	b = bench("erda", "default", "w", false);
	ck_assert_int_eq(explore_run(&b->ex, NULL, &b->schedule.random.taken), 0);
	ck_assert_uint_gt(b->ex.broken[TM_DUR], 0);
	free_bench(b);
}

static const struct {
	const char *store, *workload;
} comes_back[] = {
	{"efactory", "wr-c"},	   {"erda", "ww-c"},	   {"forca", "ww-r"},
	{"saw_imm", "ww-r"},	   {"ca", "ww-r"},	   {"rdmp_kv", "ww-r"},
	{"redo_log", "w1w1-w2w2"}, {"pilaf", "w1w1-w2w2"}, {"rfp", "ww-r"},
	{"octopus", "w1w1-w2w2"},  {"herd", "ww-r"},	   {"hydradb", "w1w1-w2w2"},
	{"nessie", "w1w1-w2w2"},
};

/* Wherever a client's process dies, a new one does what it had not begun, and only that. */
TESTS(client_comes_back, ROWS_OF(comes_back))
{
	struct scheduled *b = bench(comes_back[_i].store, "default", comes_back[_i].workload, true);
	const struct stops *stops = &b->schedule.stops;
	const struct history *h = b->ex.worlds.history;
	unsigned back = 0;

	for (unsigned i = 0; i < stops->group[STOPS_CLIENT].n; i += 3) {
		const struct stop_point *p = &stops->group[STOPS_CLIENT].point[i];
		unsigned client = 1, begun = 0, last = 0;

		die_at(b, p, DEATH_PROCESS);
		while (client < b->setup.w.clients && !world(b)->client[client].died)
			client++;
		/* Its last operation was over; others wait for what it has begun, as they may; or
		 * its operation is a cleaning, which is not in the history. */
		if (!world(b)->client[client].died || world(b)->result.end != SIM_DONE ||
		    b->setup.w.client[client - 1].op[0].kind == OP_CLEAN)
			continue;
		for (unsigned k = 0; k < h->ops; k++)
			if (h->op[k].client == client) {
				begun++;
				last = k;
			}
		ck_assert_uint_eq(begun, b->setup.w.client[client - 1].ops);
		ck_assert_int_eq(h->op[last].returned >= 0, world(b)->client[client].done);
		back += world(b)->client[client].opens > 1;
	}
	ck_assert_uint_ge(back, 2);
	assert_kept(b);
	free_bench(b);
}

/* --- bugs --- */

static const struct {
	const char *store, *variant, *workload;
	unsigned breaks;
} bugs[] = {
	{"efactory", "recover_cached", "ww", TM_BIT(TM_MONO)},
	{"remotelog", "recover_cached", "ww", TM_BIT(TM_DUR)},
};

static bool found(const char *variant, int i, bool deaths)
{
	struct scheduled *b = bench(bugs[i].store, variant, bugs[i].workload, false);
	uint64_t broken;

	b->ex.stop_at = bugs[i].breaks;
	for (uint64_t run = 1; run < 600 && explore_more(&b->ex); run++) {
		struct random_source *r = &b->schedule.random;

		random_start(r, run, campaign_default.deviations);
		if (deaths)
			stops_kill(&b->schedule.stops, run, r);
		ck_assert_int_eq(explore_run(&b->ex, &r->source, &r->taken), 0);
	}
	broken = b->ex.broken[__builtin_ctz(bugs[i].breaks)];
	free_bench(b);
	return broken;
}

TESTS(bug_needs_a_death, ROWS_OF(bugs))
{
	ck_assert(found(bugs[_i].variant, _i, true));
	ck_assert(!found(bugs[_i].variant, _i, false));
	ck_assert(!found("default", _i, true));
}

/* A pair of servers whose pools differ in size and in regions. */
static const struct tm_store *alike;

static size_t own_lines(const struct tm_params *params)
{
	return (params->server ? 3 : 1) * TM_LINE;
}

static size_t roles_bytes(const struct tm_params *params)
{
	return alike->pm_bytes(params) + own_lines(params);
}

static unsigned roles_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	unsigned n = alike->regions(params, out, max);

	ck_assert_uint_lt(n, max);
	out[n] = (struct tm_region){params->server ? "archive" : "journal", alike->pm_bytes(params),
				    own_lines(params)};
	return n + 1;
}

static int roles_serve(const struct tm_env *env)
{
	ck_assert_uint_eq(env->params->server, env->server);
	ck_assert_uint_eq(env->pm_len, roles_bytes(env->params));
	return alike->serve(env);
}

TEST(each_has_its_pool)
{
	struct tm_store store = *(alike = store_find("mojim"));
	unsigned n = 0;
	struct scheduled *b;

	store.pm_bytes = roles_bytes;
	store.regions = roles_regions;
	store.serve = roles_serve;
	b = bench_of(&store, "default", "", "w-r", true);
	const unsigned servers = b->setup.servers;
	ck_assert_uint_eq(servers, 2);
	for (unsigned s = 0; s < servers; s++) {
		const struct setup_server *server = &b->setup.server[s];
		const uint64_t last = server->at + server->len - TM_LINE;
		ck_assert_uint_eq(setup_server_at(&b->setup, last), s);
		ck_assert_uint_eq(server->at, s ? b->setup.server[s - 1].len : 0);
		ck_assert_str_eq(b->setup.region[setup_region(&b->setup, last)].name,
				 s ? "s2/archive" : "s1/journal");
	}
	ck_assert_uint_eq(b->setup.pm_len, b->setup.server[0].len + b->setup.server[1].len);
	for (unsigned i = 0; i < b->schedule.stops.group[STOPS_SERVER].n; i++, n++)
		die_at(b, &b->schedule.stops.group[STOPS_SERVER].point[i],
		       death_of(SERVER_POWER, n % servers));
	ck_assert_uint_gt(n, 10);
	assert_kept(b);
	free_bench(b);
}

RUN_TESTS(NULL, NULL)
