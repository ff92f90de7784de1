/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The systematic search against a search that leaves out nothing: both must come to the
 * same states and outcomes, with the stores as they ship and with small programs made
 * for it. Reductions that are too greedy must be caught by the same comparison.
 *
 * Then what the search must find within its bounds, that what it found replays, and
 * that it says so when it has not looked at everything.
 */
#include "checker/campaign/campaign.h"
#include "checker/judge/names.h"
#include "checker/trace/replay.h"
#include "checker/campaign/search.h"
#include "checker/trace/shrink.h"
#include "core/pmem/hooks.h"
#include "core/rt/sim.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"

/* --- small programs --- */

/*
 * A store of one word, Y, whose PUT sets two tasks of the server to work and waits for
 * both; its GET returns Y. What Y is in the end depends on which of the two was held.
 */
enum program {
	LOAD_FIRST, /* a: Y = X      b: X = v           the order of a load and a store */
	DRAM_FIRST, /* a: Z = v, Y = D      b: D = v      the order of accesses to DRAM alone */
	STORE_LAST, /* a: Y = v      b: Y = old         the order of two stores */
	/* a: M = 1, A = 1      b: Y = M && !A ? old : v      between two atomics */
	MARK_FIRST,
};
static enum program program; /* of the test that is on */

#define WORD 8
#define X    0
#define Y    64
#define Z    128

struct word_server {
	uint8_t *pm;
	uint8_t value[WORD], old[WORD], dram[WORD], mine[WORD];
	bool go_a, go_b, a_done, b_done;
	uint64_t marked, acted;
};

/* The compiler's hooks, which this file calls by itself. */
uint64_t __tsan_atomic64_load(const volatile uint64_t *addr, int order);
void __tsan_atomic64_store(volatile uint64_t *addr, uint64_t value, int order);

struct word_client {
	struct word_server *server;
	unsigned number;
};

static void wait_for(bool *flag)
{
	while (!*flag) {
		sim_idle_on(sim_current(), flag);
		sim_yield(sim_current());
	}
	*flag = false;
}

static void done(bool *flag)
{
	*flag = true;
	sim_wake(sim_current(), flag);
}

static void task_a(void *arg)
{
	struct word_server *s = arg;

	for (;;) {
		wait_for(&s->go_a);
		sim_memcpy(s->mine, s->pm + Z, WORD); /* no other task uses it */
		switch (program) {
		case LOAD_FIRST:
			sim_memcpy(s->mine, s->pm + X, WORD);
			sim_memcpy(s->pm + Y, s->mine, WORD);
			break;
		case DRAM_FIRST:
			sim_memcpy(s->pm + Z, s->value, WORD);
			sim_memcpy(s->mine, s->dram, WORD);
			sim_memcpy(s->pm + Y, s->mine, WORD);
			break;
		case STORE_LAST:
			sim_memcpy(s->pm + Y, s->value, WORD);
			sim_memcpy(s->mine, s->pm + Z, WORD);
			break;
		case MARK_FIRST:
			__tsan_atomic64_store(&s->marked, 1, __ATOMIC_SEQ_CST);
			__tsan_atomic64_store(&s->acted, 1, __ATOMIC_SEQ_CST);
		}
		done(&s->a_done);
	}
}

static void task_b(void *arg)
{
	struct word_server *s = arg;
	bool half;

	for (;;) {
		wait_for(&s->go_b);
		switch (program) {
		case LOAD_FIRST:
			sim_memcpy(s->pm + X, s->value, WORD);
			break;
		case DRAM_FIRST:
			sim_memcpy(s->dram, s->value, WORD);
			break;
		case STORE_LAST:
			sim_memcpy(s->pm + Y, s->old, WORD);
			break;
		case MARK_FIRST:
			half = __tsan_atomic64_load(&s->marked, __ATOMIC_SEQ_CST) &&
			       !__tsan_atomic64_load(&s->acted, __ATOMIC_SEQ_CST);
			sim_memcpy(s->pm + Y, half ? s->old : s->value, WORD);
		}
		done(&s->b_done);
	}
}

static size_t word_bytes(const struct tm_params *params)
{
	return 192;
}

static unsigned word_regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	out[0] = (struct tm_region){.name = "words", .off = 0, .len = 192};
	return 1;
}

static int word_nothing(const struct tm_env *env)
{
	return 0;
}

static int word_accept(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	memcpy(rsp, &arg, rsp_len);
	return 0;
}

static int word_serve(const struct tm_env *env)
{
	struct word_server *s = sim_alloc(sim_current(), sizeof(*s));

	s->pm = env->pm;
	s->marked = s->acted = 0;
	sim_memcpy(s->old, s->pm + Y, WORD);
	memcpy(s->dram, s->old, WORD);
	rt_spawn("a", task_a, s);
	rt_spawn("b", task_b, s);
	return rt_listen(word_accept, s);
}

static void word_fsck(const struct tm_env *env, struct tm_fsck *fsck)
{
}

static int word_open(const struct tm_env *env, void **client)
{
	struct word_client *c = sim_alloc(sim_current(), sizeof(*c));

	c->number = env->client;
	*client = c;
	return rt_connect(NULL, 0, &c->server, sizeof(c->server));
}

static int word_put(void *client, const void *key, size_t klen, const void *value, size_t vlen)
{
	const struct word_client *c = client;
	struct word_server *s = c->server;

	memcpy(s->value, value, WORD);
	if (c->number != 1) {
		/* The load phase, and the proof of life: Y is the value. */
		sim_memcpy(s->pm + Y, value, WORD);
		sim_memcpy(s->pm + X, value, WORD);
		return 0;
	}
	done(&s->go_a);
	done(&s->go_b);
	wait_for(&s->a_done);
	wait_for(&s->b_done);
	return 0;
}

static int word_get(void *client, const void *key, size_t klen, void *value, size_t cap,
		    size_t *vlen)
{
	const struct word_client *c = client;

	sim_memcpy(value, c->server->pm + Y, WORD);
	*vlen = WORD;
	return 0;
}

static int word_del(void *client, const void *key, size_t klen)
{
	return -ENOSYS;
}

static const struct tm_knob no_knobs[] = {{.name = NULL}};
static const struct tm_variant no_variants[] = {{.name = NULL}};
static const struct tm_store word_store = {
	.name = "word",
	.knobs = no_knobs,
	.variants = no_variants,
	.pm_bytes = word_bytes,
	.regions = word_regions,
	.format = word_nothing,
	.recover = word_nothing,
	.serve = word_serve,
	.fsck = word_fsck,
	.open = word_open,
	.put = word_put,
	.get = word_get,
	.del = word_del,
};

/* --- searches --- */

#define ALL_IMAGES (1u << 20)

typedef bool depends(const struct footprint *others, const struct log_touch *touch);

struct searched {
	struct setup setup;
	struct explorer ex;
	struct search search;
	char name[160];
};

/* A store ("word": the program that is on) under a workload, and knobs. */
static struct searched *bench_new(const char *store, const char *workload, const char *knobs)
{
	struct explore_limits limits = explore_default;
	struct searched *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	limits.images_per_point = ALL_IMAGES;
	limits.nested_every = limits.life_every = 0;
	make_whole_setup(&b->setup, strcmp(store, "word") ? store_find(store) : &word_store, NULL,
			 knobs, workload);
	snprintf(b->name, sizeof(b->name), "%s %s %s", store, workload, knobs);
	ck_assert_msg(!explore_open(&b->ex, &b->setup, &limits), "%s: %s", b->name, b->ex.why);
	ck_assert_int_eq(explore_collect_outcomes(&b->ex, false), 0);
	return b;
}

/* d NULL: nothing is left out. */
static void bench_search(struct searched *b, unsigned preemptions, unsigned faults, depends *d)
{
	struct search_limits limits = search_default;

	limits.preemptions = preemptions;
	limits.faults = faults;
	limits.depends = d;
	limits.whole = !d;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &limits), 0);
	ck_assert_msg(b->search.complete, "%s: not complete", b->name);
	ck_assert_uint_eq(b->ex.counts.points_bounded, 0);
}

static void free_bench(struct searched *b)
{
	search_close(&b->search);
	explore_close(&b->ex);
	setup_free(&b->setup);
	free(b);
}

static uint64_t points(const struct searched *b)
{
	return b->ex.counts.points - b->ex.counts.points_seen;
}

/* The runs of one are among those of the other: what is equal in number is equal. */
static bool same(const struct searched *a, const struct searched *b)
{
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (a->ex.failure[c].found != b->ex.failure[c].found)
			return false;
	return outcomes_count(a->ex.outcomes) == outcomes_count(b->ex.outcomes) &&
	       outcomes_hash(a->ex.outcomes) == outcomes_hash(b->ex.outcomes) &&
	       a->ex.counts.states == b->ex.counts.states && points(a) == points(b);
}

/* --- reduced and unreduced --- */

struct compared {
	const char *store, *workload, *knobs;
	unsigned preemptions, faults;
	enum program program;
};

static const struct compared compared[] = {
	{"word", "w.8", "", 2, 0, LOAD_FIRST},
	{"word", "w.8", "", 2, 0, DRAM_FIRST},
	{"word", "w.8", "", 2, 0, STORE_LAST},
	{"word", "ww.8", "domain=mhp", 2, 0, STORE_LAST},
	{"word", "w.8", "", 2, 0, MARK_FIRST},
	{"efactory", "w", "", 2, 0, 0},
	{"efactory", "ww", "", 1, 0, 0},
	{"efactory", "w-r", "", 2, 0, 0},
	{"efactory", "w-w", "", 2, 0, 0},
	{"efactory", "w-w", "", 1, 1, 0},
	{"efactory", "w-wr", "", 1, 0, 0},
	{"efactory", "wd-r", "", 1, 0, 0},
	{"efactory", "new-w-r", "", 2, 0, 0},
	{"efactory", "w-r", "ack_early=off", 2, 0, 0},
	{"efactory", "w-r", "ddio=off", 2, 0, 0},
	{"efactory", "w-w", "domain=mhp", 1, 0, 0},
	{"efactory", "w-w", "domain=wsp", 1, 0, 0},
	{"efactory", "w-r.40", "dma_order=any", 2, 0, 0},
	{"efactory", "w-r", "line_torn=prefix", 1, 0, 0},
	{"efactory", "w-r", "bg_plain_store=on", 2, 0, 0},
	{"erda", "www", "", 1, 0, 0},
	{"erda", "w-r", "", 2, 0, 0},
	{"erda", "w-w", "", 2, 0, 0},
	{"erda", "w-w", "", 1, 1, 0},
	{"erda", "w-wr", "", 2, 0, 0},
	{"erda", "new-w-w", "", 2, 0, 0},
	{"erda", "w-r", "ack_early=off", 2, 0, 0},
	{"erda", "w-w", "ddio=off", 1, 0, 0},
	{"erda", "w-r", "domain=mhp", 2, 0, 0},
	{"erda", "w-r", "domain=wsp", 2, 0, 0},
};

TESTS(reduced_is_unreduced, (int)(sizeof(compared) / sizeof(compared[0])))
{
	const struct compared *c = &compared[_i];

	if (!in_share(_i))
		return;
	program = c->program;
	struct searched *reduced = bench_new(c->store, c->workload, c->knobs);
	struct searched *whole = bench_new(c->store, c->workload, c->knobs);
	bench_search(reduced, c->preemptions, c->faults, footprint_depends);
	bench_search(whole, c->preemptions, c->faults, NULL);
	printf("%-28s bounds %u+%u: %lu runs for %lu, %lu states, %lu outcomes\n", reduced->name,
	       c->preemptions, c->faults, reduced->ex.counts.runs, whole->ex.counts.runs,
	       whole->ex.counts.states, outcomes_count(whole->ex.outcomes));
	ck_assert_uint_eq(whole->ex.counts.spared, 0);
	ck_assert_uint_gt(reduced->ex.counts.spared, 0);
	ck_assert_uint_lt(reduced->ex.counts.runs, whole->ex.counts.runs);
	ck_assert_uint_gt(outcomes_count(whole->ex.outcomes), 1);
	ck_assert_msg(same(reduced, whole),
		      "%s: %lu outcomes, %lu points and %lu states, reduced %lu, %lu and %lu",
		      reduced->name, outcomes_count(whole->ex.outcomes), points(whole),
		      whole->ex.counts.states, outcomes_count(reduced->ex.outcomes),
		      points(reduced), reduced->ex.counts.states);
	free_bench(reduced);
	free_bench(whole);
}

/* --- reductions that are too greedy --- */

static bool never(const struct footprint *others, const struct log_touch *touch)
{
	return false;
}

static bool but_commits(const struct footprint *others, const struct log_touch *touch)
{
	return touch->what != TOUCH_COMMIT && touch->what != TOUCH_POWER &&
	       footprint_depends(others, touch);
}

static bool but_stores(const struct footprint *others, const struct log_touch *touch)
{
	return touch->what != TOUCH_WRITE && footprint_depends(others, touch);
}

static bool but_loads(const struct footprint *others, const struct log_touch *touch)
{
	return touch->what != TOUCH_READ && footprint_depends(others, touch);
}

static bool but_dram(const struct footprint *others, const struct log_touch *touch)
{
	return touch->what != TOUCH_DRAM_READ && touch->what != TOUCH_DRAM_WRITE &&
	       footprint_depends(others, touch);
}

static bool but_power(const struct footprint *others, const struct log_touch *touch)
{
	static struct footprint without;

	without = *others;
	without.power = false;
	return footprint_depends(&without, touch);
}

static const struct {
	depends *depends;
	const char *what;
	struct compared c;
} greedy[] = {
	{never, "nothing", {"word", "w.8", "", 2, 0, LOAD_FIRST}},
	{never, "nothing", {"efactory", "w", "", 1, 0, 0}},
	{never, "nothing", {"erda", "w-r", "", 1, 0, 0}},
	{but_loads, "no load", {"word", "w.8", "", 1, 0, LOAD_FIRST}},
	{but_dram, "no DRAM", {"word", "w.8", "", 1, 0, DRAM_FIRST}},
	{but_stores, "no store", {"word", "w.8", "", 1, 0, STORE_LAST}},
	{but_stores, "no store", {"efactory", "w-w", "", 1, 0, 0}},
	{but_commits, "no flush and fence", {"efactory", "w-w", "", 1, 0, 0}},
	{but_power, "no power failure", {"erda", "w", "", 1, 0, 0}},
};

TESTS(greed_is_caught, (int)(sizeof(greedy) / sizeof(greedy[0])))
{
	const struct compared *c = &greedy[_i].c;

	program = c->program;
	struct searched *reduced = bench_new(c->store, c->workload, c->knobs);
	struct searched *whole = bench_new(c->store, c->workload, c->knobs);
	bench_search(reduced, c->preemptions, c->faults, greedy[_i].depends);
	bench_search(whole, c->preemptions, c->faults, NULL);
	ck_assert_msg(!same(reduced, whole), "%s: %s depends on the order, and that is not noticed",
		      reduced->name, greedy[_i].what);
	free_bench(reduced);
	free_bench(whole);
}

/* --- where one of several servers fails --- */

static const struct {
	const char *store, *workload, *knobs;
	unsigned left_out; /* a place without which not all is found; 0: none is left out */
} alone[] = {
	{"octopus_tx", "w", "", 0},
	{"octopus_tx", "w", "domain=mhp", 0},
	{"nvfs", "w", "ddio=off", 0},
	{"nvfs", "w", "pipeline=first", 0},
	{"octopus_tx", "w", "bug=commit_early", PLACE_SHRINKS},
	{"nvfs", "w", "pipeline=first", PLACE_LEAVES},
};

TESTS(servers_fail_at_their_places, ROWS_OF(alone))
{
	if (!in_share(_i))
		return;
	struct searched *few = bench_new(alone[_i].store, alone[_i].workload, alone[_i].knobs);
	struct searched *all = bench_new(alone[_i].store, alone[_i].workload, alone[_i].knobs);
	struct outcomes *own = all->ex.outcomes;
	struct search_limits limits = search_default;
	bool found = true;

	/* The power of all servers finds some of it, too. */
	few->ex.limits.no_crash = all->ex.limits.no_crash = alone[_i].left_out;
	limits.preemptions = 0;
	limits.faults = 1;
	limits.places = PLACES_ALL & ~alone[_i].left_out;
	ck_assert_int_eq(search_run(&few->search, &few->ex, &limits), 0);
	const uint64_t outcomes = outcomes_count(few->ex.outcomes);
	all->ex.outcomes = few->ex.outcomes; /* are there more? */
	limits.places = alone[_i].left_out ? PLACES_ALL : PLACES_ALL | PLACE_ANY;
	ck_assert_int_eq(search_run(&all->search, &all->ex, &limits), 0);
	ck_assert(few->search.complete && all->search.complete);
	ck_assert_uint_lt(few->ex.counts.runs, all->ex.counts.runs);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		found &= few->ex.failure[c].found == all->ex.failure[c].found;
	found &= outcomes == outcomes_count(few->ex.outcomes);
	printf("%s: %lu runs for %lu, %lu outcomes\n", few->name, few->ex.counts.runs,
	       all->ex.counts.runs, outcomes);
	ck_assert_msg(found == !alone[_i].left_out, "%s: %s", few->name,
		      found ? "a place is left out, and that is not noticed"
			    : "its places are not enough");
	all->ex.outcomes = own;
	free_bench(few);
	free_bench(all);
}

/* --- what must be found --- */

static const struct {
	const char *store, *workload, *knobs;
	unsigned preemptions, contract;
} found[] = {
	{"erda", "w-r", "", 1, TM_MONO},
	{"erda", "wr", "", 1, TM_MONO},
	{"erda", "w-w", "", 1, TM_KEEP},
	{"erda", "w-r", "", 2, TM_LIN},
	{"efactory", "w-r", "", 2, TM_LIN},
	{"efactory", "w-r", "bug=get_no_flush ack_early=off", 2, TM_MONO},
	{"efactory", "w-r", "bug=born_durable", 2, TM_RDA},
	{"word", "w.8", "domain=wsp", 1, TM_DUR},
};
/* Its trace, shrunk, breaks the same contract again. */
TESTS(found_and_replayed, ROWS_OF(found))
{
	program = MARK_FIRST;
	struct searched *b = bench_new(found[_i].store, found[_i].workload, found[_i].knobs);
	unsigned contract = found[_i].contract;
	struct deviations path = {0};
	char text[300];

	bench_search(b, found[_i].preemptions, 0, footprint_depends);
	ck_assert_msg(b->ex.failure[contract].found, "%s: %s holds", b->name,
		      contract_name(contract));
	ck_assert_uint_le(b->search.failing[contract].n, found[_i].preemptions);
	ck_assert_int_eq(deviations_append(&path, &b->ex.failure[contract].deviations), 0);
	for (unsigned shrunk = 0; shrunk < 2; shrunk++) {
		if (shrunk)
			ck_assert_int_eq(
				shrink(&b->setup, &path, contract, text, sizeof(text), NULL, NULL),
				0);
		const struct replay_outcome *out = replayed(&b->setup, &path, contract);
		ck_assert_msg(out->verdict[contract].broken && !out->unused,
			      "%s: %s is not broken again%s", b->name, contract_name(contract),
			      shrunk ? ", shrunk" : "");
	}
	deviations_free(&path);
	free_bench(b);
}

/* Without faults nothing of this is lost; one is enough for a client that dies. */
TEST(more_bounds_find_more)
{
	uint64_t outcomes = 0;

	for (unsigned k = 0; k < 3; k++) {
		struct searched *b = bench_new("erda", "w-wr", "");
		bench_search(b, k, 0, footprint_depends);
		ck_assert_uint_gt(outcomes_count(b->ex.outcomes), outcomes);
		outcomes = outcomes_count(b->ex.outcomes);
		free_bench(b);
	}
}

/* A bound on runs or states leaves something out, and that is said. */
TEST(incomplete_is_told)
{
	struct search_limits limits = search_default;
	struct searched *b = bench_new("erda", "w-r", "");

	limits.runs = 100;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &limits), 0);
	ck_assert(!b->search.complete);
	ck_assert_uint_eq(b->ex.counts.runs, 100);
	search_close(&b->search);
	explore_restart(&b->ex);
	b->ex.limits.states = 50;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &search_default), 0);
	ck_assert(!b->search.complete);
	search_close(&b->search);
	/* Also where the only run ends early. */
	limits = search_default;
	limits.preemptions = 0;
	explore_restart(&b->ex);
	b->ex.limits.states = 3;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &limits), 0);
	ck_assert_uint_eq(b->ex.counts.runs, 1);
	ck_assert(!b->search.complete);
	free_bench(b);
}

/* A call that fails is a fault, and delays nothing. */
TEST(calls_that_fail)
{
	struct searched *b = bench_new("remotelog", "w", "calls=fail");
	struct search_limits limits = search_default;
	uint64_t runs;

	limits.preemptions = 1;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &limits), 0);
	ck_assert(b->search.complete);
	runs = b->ex.counts.runs;
	search_close(&b->search);
	explore_restart(&b->ex);
	limits.faults = 1;
	ck_assert_int_eq(search_run(&b->search, &b->ex, &limits), 0);
	ck_assert(b->search.complete);
	ck_assert_uint_gt(b->ex.counts.runs, runs);
	free_bench(b);
}

/* Both delays that no clock ends, in words and back. */
TEST(words)
{
	static const char *const lines[] = {
		"c2 c2.get1 before begin 1: delay until quiescence",
		"server/server c1.put1 before load 3: delay and switch",
		"c1/qp1 c1.put1 message 2 packet 1 try 1: delay and switch",
		"server/qp1 c1.put1 landing message 2 packet 1 line 1: delay until quiescence",
	};
	struct deviation_names names = {0};
	const char *expected;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char text[DEVIATION_TEXT];
		struct deviation d;
		ck_assert_msg(!deviation_parse(&d, &names, lines[i], &expected), "%s: %s", lines[i],
			      expected);
		deviation_print(&d, &names, text, sizeof(text));
		ck_assert_str_eq(text, lines[i]);
		unsigned k = choice_delay(d.kind, d.answer);
		ck_assert_uint_eq(k, strstr(text, "quiescence") ? DELAY_QUIESCENCE : DELAY_SWITCH);
		ck_assert(choice_allows(d.kind, 1, d.answer));
	}
}

RUN_TESTS(NULL, NULL)
