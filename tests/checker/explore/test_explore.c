/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer against oracles that are simpler than it is, with the stores as they
 * ship:
 *
 *	lazy search	   against deciding every line in flight before recovery
 *	reduced points	   against a power failure at each step and event
 *	a run		   against the same run again, alone and among others
 *	a failure	   against its replay, and against the replay of its shrunk self
 *
 * Then what must be found, and what must not. Runs are seeded, so each of these tests
 * does the same thing each time.
 */
#include "checker/campaign/campaign.h"
#include "checker/explore/visited.h"
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "checker/trace/shrink.h"
#include "core/rt/rt.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"
#include "faultinject/trace_source.h"

#define CLIENTS 3

/* A workload written out. Its name may end with a hardware knob ("w-r ddio=off"), or with
 * "nested": every image is also cut in its recovery. */
struct little {
	const char *name, *keys, *client[CLIENTS];
};

static struct bench *limited_bench(struct setup *s, const struct explore_limits *limits)
{
	workload_limit(&s->w, s->store);
	ck_assert_int_eq(setup_finish(s), 0);
	return make_bench(s, limits);
}

static bool is_nested(const struct little *l)
{
	return strstr(l->name, " nested");
}

static void little_knob(struct setup *s, const struct little *l)
{
	const char *blank = strchr(l->name, ' '), *equals = strchr(l->name, '='), *expected;
	char knob[32];

	if (!equals)
		return;
	snprintf(knob, sizeof(knob), "%.*s", (int)(equals - blank - 1), blank + 1);
	ck_assert_int_eq(setup_knob(s, knob, equals + 1, &expected), 0);
}

static struct bench *bench_little(const char *store, const char *variant, const struct little *l,
				  const struct explore_limits *limits)
{
	struct setup s;
	const char *expected = NULL;

	make_setup(&s, store_find(store), variant, "");
	little_knob(&s, l);
	ck_assert_int_eq(workload_parse_keys(&s.w, l->keys, &expected), 0);
	for (unsigned c = 0; c < CLIENTS && l->client[c]; c++)
		ck_assert_int_eq(workload_parse_client(&s.w, c + 1, l->client[c], &expected), 0);
	snprintf(s.w.name, sizeof(s.w.name), "%s", l->name);
	return limited_bench(&s, limits);
}

static struct bench *bench_named(const char *store, const char *variant, const char *workload,
				 const struct explore_limits *limits)
{
	struct setup s;

	make_setup(&s, store_find(store), variant, "");
	make_workload(&s.w, workload);
	return limited_bench(&s, limits);
}

/* The source of run `run`, as a campaign has it: run 0 is the plain one. */
static struct source *source_of(struct bench *b, uint64_t run)
{
	b->random.taken.n = 0;
	if (!run)
		return NULL;
	random_start(&b->random, 1000003 + run, 6);
	return &b->random.source;
}

static void explore_runs(struct bench *b, uint64_t from, uint64_t to)
{
	for (uint64_t run = from; run < to && explore_more(&b->ex); run++)
		ck_assert_int_eq(explore_run(&b->ex, source_of(b, run), &b->random.taken), 0);
}

static unsigned broken_set(const struct explorer *ex)
{
	unsigned set = 0;

	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		set |= ex->failure[c].found ? TM_BIT(c) : 0;
	return set;
}

static const char *set_text(unsigned set)
{
	static char text[2][120];
	static unsigned turn;
	char *out = text[turn++ % 2];

	out[0] = '\0';
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (set & TM_BIT(c)) {
			strcat(out, out[0] ? " " : "");
			strcat(out, contract_name(c));
		}
	}
	return out[0] ? out : "nothing";
}

/* --- lazy and eager --- */

#define LAZY_RUNS  400
#define ALL_IMAGES (1u << 20) /* no point of these workloads has so many */

/* Small enough that every image of every point is tried in both searches. */
static const struct little lazy[] = {
	{"w", "k1 8", {"put k1 8"}},
	{"w.40", "k1 40", {"put k1 40"}},
	{"w.160", "k1 160", {"put k1 160"}},
	{"wr", "k1 8", {"put k1 8, get k1"}},
	{"w-r", "k1 40", {"put k1 40", "get k1"}},
	{"ww", "k1 8", {"put k1 8, put k1 8"}},
	{"wd", "k1 8", {"put k1 8, del k1"}},
	{"dw", "k1 8", {"del k1, put k1 8"}},
	{"new-w", "k1 -", {"put k1 8"}},
	{"new-ww", "k1 -", {"put k1 8, put k1 8"}},
	{"w1w2", "k1 8, k2 8", {"put k1 8, put k2 8"}},
	{"w1-w2", "k1 8, k2 8", {"put k1 8", "put k2 8"}},
	{"w-w", "k1 8", {"put k1 8", "put k1 8"}},
	{"w-w-r", "k1 8", {"put k1 8", "put k1 8", "get k1"}},
	{"w line_torn=prefix", "k1 8", {"put k1 8"}},
	{"wr line_torn=prefix", "k1 8", {"put k1 8, get k1"}},
	{"w-r ddio=off", "k1 40", {"put k1 40", "get k1"}},
	{"w-r domain=mhp", "k1 40", {"put k1 40", "get k1"}},
	{"w-r dma_order=any", "k1 40", {"put k1 40", "get k1"}},
	/* Every image is also cut in its recovery. */
	{"w nested", "k1 8", {"put k1 8"}},
	{"wr nested", "k1 40", {"put k1 40, get k1"}},
	{"ww nested", "k1 8", {"put k1 8, put k1 8"}},
	{"new-w nested", "k1 -", {"put k1 8"}},
};

/* Each image is a boot of all servers, and all are looked at: with three that takes minutes, so two
 * have some of the workloads. */
static bool is_small(unsigned store, int i)
{
	struct setup s;
	setup_init(&s, stores[store]);
	const unsigned servers = store_servers(stores[store], &s.params);
	return servers == 1 || (servers == 2 && i % 4 == 0);
}

static void same_contracts(const struct bench *a, const char *a_is, const struct bench *b,
			   const char *b_is)
{
	ck_assert_msg(broken_set(&a->ex) == broken_set(&b->ex), "%s: %s breaks %s, %s breaks %s",
		      a->name, a_is, set_text(broken_set(&a->ex)), b_is,
		      set_text(broken_set(&b->ex)));
}

static void same_outcomes(const struct bench *a, const char *a_is, const struct bench *b,
			  const char *b_is)
{
	ck_assert_uint_gt(outcomes_count(a->ex.outcomes), 1);
	ck_assert_msg(outcomes_count(a->ex.outcomes) == outcomes_count(b->ex.outcomes) &&
			      outcomes_hash(a->ex.outcomes) == outcomes_hash(b->ex.outcomes),
		      "%s: %lu outcomes %s, %lu %s", a->name, outcomes_count(a->ex.outcomes), a_is,
		      outcomes_count(b->ex.outcomes), b_is);
}

static void lazy_is_eager_for(const char *store, const struct little *l)
{
	struct explore_limits limits = explore_default;

	limits.images_per_point = ALL_IMAGES;
	limits.nested_every = is_nested(l);
	struct bench *a = bench_little(store, "default", l, &limits);
	limits.eager = true;
	struct bench *b = bench_little(store, "default", l, &limits);
	ck_assert_int_eq(explore_collect_outcomes(&a->ex, !is_nested(l)), 0);
	ck_assert_int_eq(explore_collect_outcomes(&b->ex, !is_nested(l)), 0);
	explore_runs(a, 0, LAZY_RUNS);
	explore_runs(b, 0, LAZY_RUNS);
	printf("%-9s%-18s lazy %lu states, eager %lu; %lu outcomes; broken: %s\n", store, l->name,
	       a->ex.counts.states, b->ex.counts.states, outcomes_count(a->ex.outcomes),
	       set_text(broken_set(&a->ex)));
	ck_assert_uint_eq(a->ex.counts.points_bounded, 0);
	ck_assert_uint_eq(b->ex.counts.points_bounded, 0);
	same_outcomes(a, "lazy", b, "eager");
	same_contracts(a, "lazy", b, "eager");
	/* In a nested search, a line left undecided and one decided as its newest version are two
	 * points. */
	if (!is_nested(l))
		ck_assert_uint_le(a->ex.counts.states, b->ex.counts.states);
	bench_free(a);
	bench_free(b);
}

TESTS(lazy_is_eager, (int)(sizeof(lazy) / sizeof(lazy[0])))
{
	if (!in_share(_i))
		return;
	for (unsigned s = 0; stores[s]; s++)
		if (is_small(s, _i))
			lazy_is_eager_for(stores[s]->name, &lazy[_i]);
}

/* --- reduced points and anywhere --- */

#define ANYWHERE_RUNS 60

static const struct little anywhere[] = {
	{"w", "k1 40", {"put k1 40"}},
	{"wr", "k1 40", {"put k1 40, get k1"}},
	{"w-r", "k1 160", {"put k1 160", "get k1"}},
	{"w-rr", "k1 40", {"put k1 40", "get k1, get k1"}},
	{"ww", "k1 40", {"put k1 40, put k1 40"}},
	{"w-w", "k1 8", {"put k1 8", "put k1 8"}},
	{"w-w-r", "k1 8", {"put k1 8", "put k1 8", "get k1"}},
	{"wd", "k1 40", {"put k1 40, del k1"}},
	{"new-w", "k1 -", {"put k1 40"}},
	{"new-wd", "k1 -", {"put k1 40, del k1"}},
	{"d-r", "k1 40", {"del k1", "get k1"}},
	{"w1w2", "k1 8, k2 8", {"put k1 8, put k2 8"}},
	{"w1-r1r2", "k1 8, k2 8", {"put k1 8", "get k1, get k2"}},
	{"w-r ddio=off", "k1 160", {"put k1 160", "get k1"}},
	{"w-w ddio=off", "k1 40", {"put k1 40", "put k1 40"}},
	{"w-r domain=mhp", "k1 160", {"put k1 160", "get k1"}},
	{"w-w-r domain=mhp", "k1 160", {"put k1 160", "put k1 160", "get k1"}},
	{"w-r domain=wsp", "k1 160", {"put k1 160", "get k1"}},
	{"w1w2 domain=wsp", "k1 40, k2 40", {"put k1 40, put k2 40"}},
	{"w-r line_torn=prefix", "k1 40", {"put k1 40", "get k1"}},
	{"w nested", "k1 8", {"put k1 8"}},
	{"wr nested", "k1 40", {"put k1 40, get k1"}},
};

static void reduced_is_anywhere_for(const char *store, const char *variant, const struct little *l,
				    unsigned runs)
{
	struct explore_limits limits = explore_default;

	limits.images_per_point = ALL_IMAGES;
	limits.nested_every = is_nested(l);
	struct bench *a = bench_little(store, variant, l, &limits);
	limits.anywhere = true;
	struct bench *b = bench_little(store, variant, l, &limits);
	ck_assert_int_eq(explore_collect_outcomes(&a->ex, false), 0);
	explore_runs(a, 0, runs);
	if (!a->ex.counts.points) { /* the bug lets no client connect */
		bench_free(a);
		bench_free(b);
		return;
	}
	/* Into the same set: nothing is new. */
	uint64_t outcomes = outcomes_count(a->ex.outcomes);
	b->ex.outcomes = a->ex.outcomes;
	explore_runs(b, 0, runs);
	printf("%-44s reduced %lu points, %lu states; anywhere %lu, %lu; broken: %s\n", a->name,
	       a->ex.counts.points, a->ex.counts.states, b->ex.counts.points, b->ex.counts.states,
	       set_text(broken_set(&a->ex)));
	ck_assert_uint_eq(a->ex.counts.points_bounded, 0);
	ck_assert_uint_eq(b->ex.counts.points_bounded, 0);
	ck_assert_uint_gt(b->ex.counts.points, 2 * a->ex.counts.points);
	/* Several servers boot at once: which lines are touched, and so decided, is a matter of
	 * their timing, which the moment of the failure changes. */
	if (a->setup.servers == 1)
		ck_assert_uint_ge(b->ex.counts.states, a->ex.counts.states);
	ck_assert_uint_gt(outcomes, 1);
	ck_assert_msg(outcomes_count(a->ex.outcomes) == outcomes,
		      "%s: %lu outcomes reduced, and %lu more anywhere", a->name, outcomes,
		      outcomes_count(a->ex.outcomes) - outcomes);
	b->ex.outcomes = NULL;
	/* What was durable for sure is known best right after a fence (docs/model.md): a break of
	 * KEEP may show there alone. A store that promises it, and has no seeded bug, gives no such
	 * chance. */
	bool promised = a->setup.store->promises & TM_BIT(TM_KEEP) &&
			!strcmp(a->setup.variant, "default");
	if (!promised && !a->ex.failure[TM_KEEP].found)
		b->ex.failure[TM_KEEP].found = false;
	same_contracts(a, "reduced", b, "anywhere");
	bench_free(a);
	bench_free(b);
}

TESTS(reduced_is_anywhere, (int)(sizeof(anywhere) / sizeof(anywhere[0])))
{
	if (!in_share(_i))
		return;
	for (unsigned s = 0; stores[s]; s++)
		if (is_small(s, _i))
			reduced_is_anywhere_for(stores[s]->name, "default", &anywhere[_i],
						ANYWHERE_RUNS);
}

/* Stores with a bug best show a difference between what failures leave at different places. */
static const struct little anywhere_bugs[] = {
	{"wr", "k1 40", {"put k1 40, get k1"}},
	{"new-w-r", "k1 -", {"put k1 40", "get k1"}},
	{"wr domain=mhp", "k1 40", {"put k1 40, get k1"}},
	{"new-w domain=wsp", "k1 -", {"put k1 40"}},
	{"wr ddio=off", "k1 40", {"put k1 40, get k1"}},
};

TESTS(reduced_is_anywhere_with_bugs, (int)(sizeof(anywhere_bugs) / sizeof(anywhere_bugs[0])))
{
	int n = _i;
	for (unsigned s = 0; stores[s]; s++)
		for (const struct tm_variant *v = stores[s]->variants; v->name && is_small(s, _i);
		     v++)
			if (in_share(n++))
				reduced_is_anywhere_for(stores[s]->name, v->name,
							&anywhere_bugs[_i], 5);
}

/* --- the same again --- */

/* The hash of everything that happened in a run, and of what the clients saw. */
static uint64_t run_hash(struct bench *b, struct source *source)
{
	struct worlds *ws = &b->ex.worlds;
	world_run(ws, source, NULL, NULL);
	uint64_t hash = sim_hash(ws->world[0].sim) ^ ws->history->hash * 3 ^
			sim_now(ws->world[0].sim) * 5;
	world_end(ws, 0);
	return hash;
}

#define SAME_RUNS 100

static const char *const same[] = {"w-r", "ww-w", "w1r2-w2r1", "new-w-wr", "wd-r", "w-r.1500"};

/* A run, the run again, and the run by the list of its deviations. A plain run hashes packets where
 * a trace, which could name each line, hashes lines: it is compared by what the clients saw and by
 * its time. */
TESTS(run_is_deterministic, (int)(sizeof(same) / sizeof(same[0])))
{
	const uint64_t runs = rounds(SAME_RUNS);
	for (unsigned s = 0; stores[s]; s++) {
		struct bench *b = bench_named(stores[s]->name, "default", same[_i],
					      &explore_default);
		unsigned different = 0;
		uint64_t plain = run_hash(b, NULL);
		for (uint64_t run = 0; run < runs; run++) {
			struct trace_source ts;
			uint64_t hash = run_hash(b, source_of(b, run));
			ck_assert_uint_eq(run_hash(b, source_of(b, run)), hash);
			ck_assert_int_eq(trace_start(&ts, &b->random.taken), 0);
			uint64_t seen = b->ex.worlds.history->hash,
				 now = sim_now(b->ex.worlds.world[0].sim);
			ck_assert_msg(run_hash(b, &ts.source) == hash || !run,
				      "%s, run %lu, is not its trace", b->name, run);
			ck_assert_uint_eq(b->ex.worlds.history->hash, seen);
			ck_assert_uint_eq(sim_now(b->ex.worlds.world[0].sim), now);
			ck_assert_ptr_null(trace_unused(&ts));
			ck_assert_uint_eq(ts.taken.n, b->random.taken.n);
			trace_finish(&ts);
			different += hash != plain;
		}
		ck_assert_uint_gt(different, runs / 2);
		bench_free(b);
	}
}

static void same_results(const struct explorer *a, const struct explorer *b)
{
	ck_assert_mem_eq(&a->counts, &b->counts, sizeof(a->counts));
	ck_assert_mem_eq(a->broken, b->broken, sizeof(a->broken));
	ck_assert(!a->outcomes == !b->outcomes);
	if (a->outcomes) {
		ck_assert_uint_eq(outcomes_count(a->outcomes), outcomes_count(b->outcomes));
		ck_assert_uint_eq(outcomes_hash(a->outcomes), outcomes_hash(b->outcomes));
	}
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		ck_assert_int_eq(a->failure[c].found, b->failure[c].found);
		if (!a->failure[c].found)
			continue;
		ck_assert_uint_eq(a->failure[c].run, b->failure[c].run);
		ck_assert_uint_eq(a->failure[c].deviations.n, b->failure[c].deviations.n);
		ck_assert_str_eq(a->failure[c].text, b->failure[c].text);
	}
}

/* Two explorers, turn by turn, and each of them alone. */
TEST(explorers_do_not_meet)
{
	struct bench *together[2], *alone[2];

	for (unsigned i = 0; i < 2; i++) {
		const char *store = stores[i]->name, *workload = i ? "w-r" : "wd-r";
		together[i] = bench_named(store, "default", workload, &explore_default);
		alone[i] = bench_named(store, "default", workload, &explore_default);
		ck_assert_int_eq(explore_collect_outcomes(&together[i]->ex, true), 0);
		ck_assert_int_eq(explore_collect_outcomes(&alone[i]->ex, true), 0);
	}
	for (uint64_t run = 0; run < 60; run++)
		for (unsigned i = 0; i < 2; i++)
			explore_runs(together[i], run, run + 1);
	for (unsigned i = 0; i < 2; i++) {
		explore_runs(alone[i], 0, 60);
		ck_assert_uint_gt(alone[i]->ex.counts.nested_states, 0);
		same_results(&together[i]->ex, &alone[i]->ex);
		bench_free(together[i]);
		bench_free(alone[i]);
	}
}

static void images_are_restored(const struct bench *b)
{
	for (unsigned m = 0; m < WORLDS; m++) {
		const struct pmem *pm = b->ex.worlds.world[m].pm;
		ck_assert_uint_eq(pmem_length(pm), b->setup.pm_len);
		ck_assert_mem_eq(pmem_base(pm), b->setup.image, b->setup.pm_len);
	}
}

/* A run leaves nothing for the next one. */
TESTS(images_come_back, (int)(sizeof(same) / sizeof(same[0])))
{
	int n = _i;
	for (unsigned s = 0; stores[s]; s++) {
		if (!is_small(s, _i) || !in_share(n++))
			continue;
		struct bench *a = bench_named(stores[s]->name, "default", same[_i],
					      &explore_default);
		struct bench *b = bench_named(stores[s]->name, "default", same[_i],
					      &explore_default);
		ck_assert_int_eq(explore_collect_outcomes(&a->ex, true), 0);
		ck_assert_int_eq(explore_collect_outcomes(&b->ex, true), 0);
		for (uint64_t run = 0; run < 15; run++) {
			explore_runs(a, run, run + 1);
			explore_runs(b, run, run + 1);
			images_are_restored(a);
		}
		explore_restart(&a->ex);
		ck_assert_uint_eq(a->ex.counts.states, 0);
		explore_runs(a, 0, 15);
		same_results(&a->ex, &b->ex);
		bench_free(a);
		bench_free(b);
	}
}

/* --- campaigns --- */

static void open_campaign(struct campaign *c, const char *const *workload, unsigned workloads,
			  unsigned runs)
{
	memset(c, 0, sizeof(*c));
	c->configs = stores_by_default;
	c->workloads = workloads;
	c->config = calloc(c->configs, sizeof(*c->config));
	c->workload = calloc(workloads, sizeof(*c->workload));
	ck_assert(c->config && c->workload);
	for (unsigned i = 0; i < c->configs; i++) {
		c->config[i].store = stores[i];
		c->config[i].share.one_in = 1;
		make_setup(&c->config[i].setup, stores[i], "default", "");
	}
	for (unsigned i = 0; i < workloads; i++)
		make_workload(&c->workload[i], workload[i]);
	c->options = campaign_default;
	c->options.runs = runs;
}

TEST(some_workloads_get_all_runs)
{
	static const char *const workload[] = {"w", "w-r"};
	static const unsigned runs[] = {2, 40};
	struct campaign c;
	open_campaign(&c, workload, 2, 40);
	c.config[0].share = (struct campaign_share){.one_in = 20, .often = "w-"};
	for (unsigned i = 0; i < 2; i++) {
		struct campaign_unit unit = {0};
		campaign_explore(&c, i, 0, &unit, NULL);
		ck_assert_int_eq(unit.error, 0);
		ck_assert_uint_eq(unit.counts.runs, runs[i]);
	}
	campaign_free(&c);
}

TEST(runs_have_their_numbers_where_others_are_left_out)
{
	static const char *const workload[] = {"w-r"};
	struct campaign c;
	struct campaign_unit unit = {0};
	unsigned broken = 0;
	open_campaign(&c, workload, 1, 30);
	c.options.first = 20;
	campaign_explore(&c, 0, 0, &unit, NULL);
	ck_assert_uint_eq(unit.counts.runs, 10);
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		broken += unit.contract[k].found;
		ck_assert(!unit.contract[k].found || unit.contract[k].run >= 20);
		for (unsigned m = 0; m < unit.contract[k].modes.n; m++)
			ck_assert_uint_ge(unit.contract[k].modes.mode[m].run, 20);
	}
	ck_assert_uint_gt(broken, 0);
	campaign_free(&c);
}

static bool any_begins(const char *prefix)
{
	struct workload w;
	bool found = false;
	for (unsigned i = 0; !found && !workload_builtin(i, &w); i++) {
		found = !strncmp(w.name, prefix, strlen(prefix));
		workload_free(&w);
	}
	return found;
}

TEST(shapes_have_their_workloads)
{
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_shape *s = stores[i]->shapes; s && s->name; s++)
			ck_assert_msg(!s->often || any_begins(s->often),
				      "%s, shape %s: no workload begins with \"%s\"",
				      stores[i]->name, s->name, s->often);
}

/* A GET of bytes that two PUTs write is not asked which it saw; of others it is. */
TEST(shared_bytes_say_nothing)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct deviations none = {0};
	struct setup s;
	const char *expected;
	make_setup(&s, store_find("efactory"), NULL, "ack_early=off");
	ck_assert_ptr_nonnull(ex);
	ck_assert_int_eq(workload_parse_keys(&s.w, "k1 40", &expected), 0);
	ck_assert_int_eq(
		workload_parse_client(&s.w, 1,
				      "get k1, put k1 40 same 1, get k1, put k1 40, get k1, "
				      "put k1 40 same 1, get k1",
				      &expected),
		0);
	ck_assert_int_eq(setup_finish(&s), 0);
	ck_assert_mem_eq(setup_put_value(&s, 1, 1)->bytes, setup_put_value(&s, 1, 3)->bytes, 40);
	ck_assert_int_eq(explore_open(ex, &s, &explore_default), 0);
	world_run(&ex->worlds, NULL, NULL, NULL);
	const struct history *h = ex->worlds.history;
	/* The load phase, then the operations one after the other. */
	ck_assert_uint_eq(h->ops, 8);
	ck_assert_int_eq(h->op[1].value, 0);
	ck_assert_int_eq(h->op[5].value, 4);
	for (unsigned i = 3; i < 8; i += 4) {
		ck_assert_int_eq(h->op[i].value, VALUE_UNKNOWN);
		ck_assert_int_eq(h->op[i].error, -ENOTUNIQ);
	}
	world_end(&ex->worlds, 0);
	ex->limits.states = 500;
	ck_assert_int_eq(explore_run(ex, NULL, &none), 0);
	ck_assert_uint_gt(ex->counts.states, 100);
	ck_assert(!ex->broken[TM_RDA] && !ex->broken[TM_LIN] && !ex->broken[TM_MONO] &&
		  !ex->broken[TM_KEEP]);
	explore_close(ex);
	setup_free(&s);
	free(ex);
}

TEST(jobs_change_nothing)
{
	static const char *const workload[] = {"wr", "w-w", "dr", "w1w2"};
	struct campaign one, three;

	open_campaign(&one, workload, 4, 25);
	open_campaign(&three, workload, 4, 25);
	one.options.doublecheck = true;
	three.options.jobs = 3;
	ck_assert_int_eq(campaign_run(&one), 0);
	ck_assert_int_eq(campaign_run(&three), 0);
	for (unsigned u = 0; u < one.configs * one.workloads; u++) {
		const struct campaign_unit *a = &one.unit[u], *b = &three.unit[u];
		ck_assert_uint_eq(a->diverged, 0);
		ck_assert_mem_eq(&a->counts, &b->counts, sizeof(a->counts));
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			ck_assert_int_eq(a->contract[k].found, b->contract[k].found);
			ck_assert_uint_eq(a->contract[k].broken, b->contract[k].broken);
			ck_assert(!a->contract[k].found ||
				  a->contract[k].run == b->contract[k].run);
		}
	}
	for (unsigned i = 0; i < one.configs; i++) {
		ck_assert_mem_eq(&one.total[i], &three.total[i], sizeof(one.total[i]));
		ck_assert_uint_gt(one.total[i].states, 500);
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			ck_assert_int_eq(one.cell[i][k].broken, three.cell[i][k].broken);
			ck_assert_uint_eq(one.cell[i][k].unit, three.cell[i][k].unit);
			ck_assert_uint_eq(one.cell[i][k].mode.run, three.cell[i][k].mode.run);
			ck_assert_uint_eq(one.cell[i][k].broken_states,
					  three.cell[i][k].broken_states);
		}
	}
	campaign_free(&one);
	campaign_free(&three);
}

/* --- every change was seen --- */

/* A random source that also fails the power, and decides lines at random. */
struct breaker {
	struct random_source random; /* first */
	unsigned (*answer)(struct source *source, const struct choice_point *at, unsigned n);
	unsigned crash_in; /* points until the power fails */
	uint64_t state;
};

static unsigned breaker_answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct breaker *breaker = (struct breaker *)source;

	if (at->kind == CHOICE_CRASH)
		return breaker->crash_in-- == 0;
	if (at->kind == CHOICE_LINE)
		return (unsigned)(random_next(&breaker->state) % n);
	return breaker->answer(source, at, n);
}

static struct source *breaker_start(struct breaker *breaker, uint64_t seed, unsigned points)
{
	random_start(&breaker->random, seed, 6);
	breaker->answer = breaker->random.source.answer;
	breaker->random.source.answer = breaker_answer;
	breaker->random.source.skip[CHOICE_CRASH] = breaker->random.source.skip[CHOICE_LINE] = 0;
	breaker->state = seed;
	breaker->crash_in = (unsigned)(random_next(&breaker->state) % points);
	return &breaker->random.source;
}

static void all_seen(const struct bench *b, unsigned machine, uint64_t run)
{
	const struct world *w = &b->ex.worlds.world[machine];
	uint64_t off = 0;

	if (pmem_all_seen(w->pm, &off))
		return;
	char name[64];
	pmem_name(b->setup.region, b->setup.regions, off, name, sizeof(name));
	ck_abort_msg("%s, run %lu, machine %u: the byte at %s changed unseen", b->name, run,
		     machine, name);
}

/* The number of machines that ran. */
static unsigned run_and_fail(struct bench *b, struct breaker *breaker, uint64_t run)
{
	struct worlds *ws = &b->ex.worlds;
	unsigned machines = 1;

	world_run(ws, breaker_start(breaker, 3 * run, 24), NULL, NULL);
	all_seen(b, 0, run);
	while (machines < WORLDS && ws->world[machines - 1].result.end == SIM_POWER) {
		history_crash(ws->history);
		world_recover(ws, machines, breaker_start(breaker, 3 * run + machines, 8), NULL,
			      NULL, true);
		all_seen(b, machines++, run);
	}
	for (unsigned m = machines; m-- > 0;)
		world_end(ws, m);
	return machines;
}

static const char *const seen_variants[][2] = {
	{"efactory", "default"}, {"efactory", "racing_timeout"},
	{"erda", "default"},	 {"erda", "sure"},
	{"erda", "packed"},	 {"erda", "crowded"}};
static const char *const seen_workloads[] = {"ww-w",	 "wd-w",     "w1w2-r2r1",
					     "new-w-wr", "w-w.1500", "move-w3-r2r2"};

TESTS(every_change_is_seen, (int)(sizeof(seen_variants) / sizeof(seen_variants[0])))
{
	struct breaker breaker = {0};
	unsigned machines[WORLDS + 1] = {0};

	for (unsigned i = 0; i < ROWS_OF(seen_workloads); i++) {
		struct bench *b = bench_named(seen_variants[_i][0], seen_variants[_i][1],
					      seen_workloads[i], &explore_default);
		for (uint64_t run = 0; run < 400; run++) {
			machines[run_and_fail(b, &breaker, run)]++;
			if (run % 50 == 0)
				images_are_restored(b);
		}
		bench_free(b);
	}
	deviations_free(&breaker.random.taken);
	/* Runs that ended, that failed once, twice, three times. */
	for (unsigned m = 1; m <= WORLDS; m++)
		ck_assert_uint_gt(machines[m], 50);
}

/* --- replay --- */

static unsigned crashes(const struct deviations *list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++)
		n += list->d[i].kind == CHOICE_CRASH;
	return n;
}

static void replay_without_crash(struct setup *s, const struct deviations *list, unsigned contract)
{
	struct deviations rest = {0};

	for (unsigned i = 0; i < list->n; i++)
		if (list->d[i].kind != CHOICE_CRASH)
			deviations_add(&rest, &list->d[i]);
	const struct replay_outcome *out = replayed(s, &rest, contract);
	ck_assert(!out->verdict[contract].broken);
	ck_assert_uint_eq(out->failures, 0);
	deviations_free(&rest);
}

static void replay_failure(const struct campaign *c, unsigned config, unsigned contract)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	const struct campaign_break which = {cell->unit, contract, cell->mode, BREAK_ANY, 0};
	struct broken_run run;

	ck_assert_int_eq(campaign_again(c, &which, &run), 0);
	struct setup s = run.setup;
	struct deviations path = run.path;
	const char *text = run.text;
	const char *name = contract_name(contract);
	printf("%-9s%-6s%-10s run %lu, %u deviations: %s\n", s.store->name, name, s.w.name,
	       cell->mode.run, path.n, text);
	const struct replay_outcome *out = replayed(&s, &path, contract);
	ck_assert_msg(out->verdict[contract].broken, "%s %s", s.store->name, name);
	ck_assert_ptr_null(out->unused);
	ck_assert_uint_eq(out->failures, crashes(&path));
	ck_assert_str_eq(out->text[contract], text);
	const uint64_t hash = out->hash;
	out = replayed(&s, &path, contract);
	ck_assert(out->verdict[contract].broken && out->hash == hash);
	if (contract == TM_LIN)
		ck_assert_uint_eq(out->failures, 0);
	else if (contract != TM_NORES) /* which can break before the power fails */
		replay_without_crash(&s, &path, contract);
	deviations_free(&path);
	setup_free(&s);
}

TEST(failures_replay)
{
	static const char *const workload[] = {"w", "wr", "ww", "dr", "w-w", "w-r", "w1w2", "wd-r"};
	/* By design and by the default hardware: core/stores/NAME/expected.txt. That has all
	 * that may break, these do in so many runs. */
	static const unsigned known[] = {TM_BIT(TM_DUR) | TM_BIT(TM_BUF),
					 TM_BIT(TM_DUR) | TM_BIT(TM_BUF) | TM_BIT(TM_MONO) |
						 TM_BIT(TM_KEEP) | TM_BIT(TM_NORES),
					 0};
	struct campaign c;

	open_campaign(&c, workload, ROWS_OF(workload), 200);
	ck_assert_uint_eq(c.configs, ROWS_OF(known));
	ck_assert_int_eq(campaign_run(&c), 0);
	for (unsigned i = 0; i < c.configs; i++) {
		unsigned broken = 0;
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			broken |= c.cell[i][k].broken ? TM_BIT(k) : 0;
			if (c.cell[i][k].broken)
				replay_failure(&c, i, k);
		}
		ck_assert_msg((broken & known[i]) == known[i] &&
				      !(broken & expect_watched(c.config[i].store, "default")),
			      "%s: %s", c.config[i].store->name, set_text(broken));
	}
	campaign_free(&c);
}

/* --- samples --- */

struct seen_images {
	struct visited *set;
	uint64_t sum, images;
};

static void see_image(void *arg, const struct explorer *ex, unsigned machine)
{
	struct seen_images *seen = arg;
	const struct deviations *path = &ex->path[1];
	uint64_t hash = ex->point;
	bool is_new;

	if (machine != 1)
		return;
	for (unsigned i = 1; i < path->n; i++)
		hash = hash * 31 + deviation_key(&path->d[i]) + path->d[i].answer;
	visited_add(seen->set, hash, &is_new);
	if (!is_new)
		return;
	seen->sum += hash;
	seen->images++;
}

/* Where there are too many images, the sample is the same whether recovery is cut or not: else a
 * break that a campaign has seen in a sample would not be found again. */
TEST(samples_are_of_the_point)
{
	struct explore_limits limits = explore_default;
	struct seen_images seen[2] = {0};

	limits.images_per_point = 4;
	limits.life_every = 0;
	for (unsigned nested = 0; nested < 2; nested++) {
		limits.nested_every = nested ? 2 : 0;
		struct bench *b = bench_named("efactory", "default", "w1w2", &limits);
		seen[nested].set = visited_new();
		b->ex.image_done = see_image;
		b->ex.image_done_arg = &seen[nested];
		explore_runs(b, 0, 2);
		ck_assert_uint_gt(b->ex.counts.points_bounded, 0);
		ck_assert_int_eq(b->ex.counts.nested_states > 0, nested);
		visited_free(seen[nested].set);
		bench_free(b);
	}
	ck_assert_uint_gt(seen[0].images, 50);
	ck_assert_uint_eq(seen[0].images, seen[1].images);
	ck_assert_uint_eq(seen[0].sum, seen[1].sum);
}

/* --- shrinking --- */

static const struct {
	const char *store, *workload;
	unsigned contract;
	unsigned clients, ops; /* that stay */
} shrinks[] = {
	{"erda", "wr", TM_MONO, 1, 2},	    {"erda", "w-r", TM_MONO, 2, 2},
	{"erda", "w-w", TM_KEEP, 2, 2},	    {"erda", "w", TM_DUR, 1, 1},
	{"erda", "ww-rr", TM_MONO, 2, 3},   {"efactory", "w", TM_DUR, 1, 1},
	{"efactory", "w1w2", TM_DUR, 1, 1},
};

TESTS(failures_shrink, (int)(sizeof(shrinks) / sizeof(shrinks[0])))
{
	unsigned contract = shrinks[_i].contract;
	struct bench *b = bench_named(shrinks[_i].store, "default", shrinks[_i].workload,
				      &explore_default);
	struct deviations path = {0};
	char text[300];

	b->ex.stop_at = TM_BIT(contract);
	for (uint64_t run = 0; run < 2000 && !b->ex.failure[contract].found; run++)
		explore_runs(b, run, run + 1);
	ck_assert_msg(b->ex.failure[contract].found, "%s does not break %s", b->name,
		      contract_name(contract));
	for (unsigned i = 0; i < b->ex.failure[contract].deviations.n; i++)
		deviations_add(&path, &b->ex.failure[contract].deviations.d[i]);
	ck_assert_int_eq(shrink(&b->setup, &path, contract, text, sizeof(text), NULL, NULL), 0);
	printf("%s %s: %u clients, %u operations, %u deviations: %s\n", b->name,
	       contract_name(contract), b->setup.w.clients, workload_ops(&b->setup.w), path.n,
	       text);
	const struct replay_outcome *out = replayed(&b->setup, &path, contract);
	ck_assert(out->verdict[contract].broken);
	ck_assert_ptr_null(out->unused);
	ck_assert_uint_eq(out->failures, 1);
	ck_assert_str_eq(out->text[contract], text);
	ck_assert_uint_le(path.n, 6);
	ck_assert_uint_eq(b->setup.w.clients, shrinks[_i].clients);
	ck_assert_uint_le(workload_ops(&b->setup.w), shrinks[_i].ops);
	replay_without_crash(&b->setup, &path, contract);
	deviations_free(&path);
	bench_free(b);
}

/* --- structural checks --- */

/* A check that looks at the same thing 10,000 times is no livelock. */
static void check_slowly(const struct tm_env *env, struct tm_fsck *fsck)
{
	for (unsigned i = 0; i < 10000; i++)
		rt_yield();
}

static void check_for_ever(const struct tm_env *env, struct tm_fsck *fsck)
{
	for (;;)
		check_slowly(env, fsck);
}

static unsigned broken_with_check(void (*fsck)(const struct tm_env *, struct tm_fsck *))
{
	struct setup s;
	struct tm_store store = *store_find("ca");
	struct explore_limits limits = explore_default;

	store.fsck = fsck;
	limits.states = 20;
	make_setup(&s, &store, NULL, "");
	make_workload(&s.w, "w");
	struct bench *b = limited_bench(&s, &limits);
	explore_runs(b, 0, 1);
	ck_assert_uint_gt(b->ex.counts.states, 0);
	unsigned broken = broken_set(&b->ex);
	bench_free(b);
	return broken;
}

TEST(checks_take_their_time)
{
	ck_assert(!(broken_with_check(check_slowly) & TM_BIT(TM_LIVE)));
	ck_assert(broken_with_check(check_for_ever) & TM_BIT(TM_LIVE));
}

RUN_TESTS(NULL, NULL)
