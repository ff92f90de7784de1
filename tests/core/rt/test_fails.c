/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call that can fail does, once: in each store's format, recovery, start, connecting
 * and operations, for each failure point the first call there fails, in the next run the
 * second, and so on until no call is left; and again with all calls from that one on.
 *
 * Then nothing crashes, everything ends, and what clients saw is true: an acknowledged
 * PUT is there, an error is an error. A boot that fails says so, and leaves a pool that
 * boots when the calls work again. Clients that are left with a broken connection open another
 * one; when the calls work again, a new client finds a store that works.
 */
#include "checker/judge/contracts.h"
#include "checker/campaign/search.h"
#include "checker/world/setup.h"
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "faultinject/bytes.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"
#include "faultinject/trace_source.h"

#define CLIENTS	 2
#define FRESH	 (CLIENTS + 1) /* the client that comes when the calls work again */
#define KEYS	 3
#define VLEN	 96
#define UPDATES	 96
#define TRIES	 4 /* of a client to connect */
#define IMAGES	 40
#define US	 1000ull
#define MS	 (1000 * US)
#define S	 (1000 * MS)
#define SIM_ONLY FAIL_PM_MAP /* the points before this one are there in the sim world */

static const struct {
	const char *store, *variant, *knobs;
} cases[] = {
	{"efactory", "default", ""},
	{"efactory", "default", "room=tight"},
	{"erda", "sure", ""},
	{"erda", "sure", "log=tight"},
	{"erda", "sure", "request=send"},
	{"ca", "default", ""},
	{"forca", "default", ""},
	{"remotelog", "default", ""},
	{"remotelog", "ring", ""},
	{"remotelog", "cw2", ""},
	{"remotelog", "cw2", "flush=read_other_qp"},
	{"remotelog", "s1", ""},
	{"remotelog", "i1", "get=server"},
};
#define CASES ((int)(sizeof(cases) / sizeof(cases[0])))

static struct {
	struct setup setup;
	struct sim *sim;
	struct pmem_stack *stack;
	struct pmem *pm;
	struct rnic_net *net;
	struct tm_env env[FRESH + 1];
	struct history history;
	uint8_t *image; /* what the pool held at the last end */
	/* Which call fails. */
	struct source source;
	unsigned point, nth, calls;
	bool armed, for_ever;
	unsigned fired[FAIL_POINT_COUNT], recovery_calls;
	/* What came of it. */
	bool formats, only_recovers;
	int boot_rc;
	unsigned boots;
	unsigned ended;
	const char *name;
} r;

static unsigned answer(struct source *source, const struct choice_point *at, unsigned n)
{
	if (at->kind != CHOICE_FAIL || !r.armed || at->a != r.point)
		return 0;
	r.calls++;
	if (r.for_ever ? r.calls < r.nth : r.calls != r.nth)
		return 0;
	r.fired[at->a]++;
	return 1;
}

static bool may_wait_for_ever(const struct tm_store *store)
{
	for (const struct tm_error *e = store->errors; e && e->error; e++)
		if (e->error == -ETIMEDOUT && e->reasons & TM_PEER_FAILED)
			return true;
	return false;
}

#define FAILED(...) failed(__LINE__, __VA_ARGS__)
static void failed(int line, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ck_abort_msg("line %d: %s, call %u of %s fails%s: %s", line, r.name, r.nth,
		     fail_points[r.point].name, r.for_ever ? " and all after it" : "", what);
}

/* --- what a client does --- */

static void value_of(int op, uint8_t value[VLEN])
{
	for (unsigned i = 0; i < VLEN; i++)
		value[i] = (uint8_t)(op * 37 + (int)i * 11 + 1);
}

static int32_t named(const uint8_t *bytes, size_t len, unsigned key)
{
	uint8_t value[VLEN];

	for (unsigned op = 0; op < r.history.ops && len == VLEN; op++) {
		if (r.history.op[op].kind != HISTORY_PUT || r.history.op[op].key != key)
			continue;
		value_of((int)op, value);
		if (!memcmp(bytes, value, VLEN))
			return (int32_t)op;
	}
	return VALUE_FOREIGN;
}

/* 0, or -errno as the store says. -ENOENT of a GET is an answer. */
static int operate(void *handle, unsigned client, char what, unsigned key)
{
	const struct tm_store *store = r.setup.store;
	uint8_t value[VLEN];
	char name[8];
	size_t len = 0;
	int op, rc;

	snprintf(name, sizeof(name), "k%u", key);
	if (what == 'c') {
		rc = store->clean ? store->clean(handle) : 0;
		return rc == -EALREADY ? 0 : rc;
	}
	op = history_invoke(&r.history, client,
			    what == 'p'	  ? HISTORY_PUT
			    : what == 'g' ? HISTORY_GET
					  : HISTORY_DEL,
			    key);
	ck_assert_int_ge(op, 0);
	value_of(op, value);
	if (what == 'p') {
		rc = store->put(handle, name, 2, value, VLEN);
		history_return(&r.history, op, rc, op);
	} else if (what == 'd') {
		rc = store->del(handle, name, 2);
		history_return(&r.history, op, rc, VALUE_ABSENT);
	} else {
		rc = store->get(handle, name, 2, value, VLEN, &len);
		history_return(&r.history, op, rc == -ENOENT ? 0 : rc,
			       rc == -ENOENT ? VALUE_ABSENT : named(value, len, key));
		rc = rc == -ENOENT ? 0 : rc;
	}
	if (rc > 0)
		FAILED("an operation returns %d", rc);
	return rc;
}

/* NULL: it does not go. Then nothing is left of it. */
static void *connect(unsigned client)
{
	unsigned had = rnic_objects(r.env[client].verbs);

	for (unsigned i = 0; i < TRIES; i++) {
		void *handle = NULL;
		int rc = r.setup.store->open(&r.env[client], &handle);

		if (!rc)
			return handle;
		if (rc > 0)
			FAILED("open returns %d", rc);
		if (rnic_objects(r.env[client].verbs) != had)
			FAILED("a client that could not connect leaves %u objects of its RNIC",
			       rnic_objects(r.env[client].verbs) - had);
		sim_sleep(r.sim, MS);
	}
	return NULL;
}

static const char *const scripts[CLIENTS + 1] = {NULL, "p1 g1 p2 p1 d1 c0 p1 g2 p2 p1 g1 p2 p1",
						 "g1 p1 g2 p3 g3 p2 p1 g1 c0 p3 p1 d2 g2 p3 g3"};

static void client_main(void *arg)
{
	unsigned client = (unsigned)(uintptr_t)arg;
	void *handle = connect(client);

	for (const char *s = scripts[client]; handle && *s; s += 2) {
		s += *s == ' ';
		int rc = operate(handle, client, s[0], (unsigned)(s[1] - '0'));
		if (rc == -EIO)
			handle = connect(client);
		sim_sleep(r.sim, 700 * client);
	}
	if (++r.ended == CLIENTS)
		sim_stop(r.sim, SIM_DONE);
}

/* The calls work. Does the store? */
static void fresh_main(void *arg)
{
	void *handle = connect(FRESH);

	if (!handle)
		FAILED("no client can connect any more");
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned key = 1; key <= KEYS; key++) {
			static const char ops[] = "gpgdgpg";
			for (const char *op = ops; *op; op++) {
				int rc = operate(handle, FRESH, *op, key);
				/* Erda loses sight of a key after two PUTs that were not written,
				 * until the next: it says so. */
				if (rc == -EAGAIN && op == ops)
					continue;
				if (rc && rc != -ENOSPC)
					FAILED("the store does not work any more: '%c' k%u returns "
					       "%d",
					       *op, key, rc);
			}
		}
		operate(handle, FRESH, 'c', 0);
		sim_sleep(r.sim, 200 * US);
	}
	sim_stop(r.sim, SIM_DONE);
}

/* --- machines --- */

static void give_up(struct sim *sim, void *arg)
{
	sim_stop(sim, SIM_BUDGET);
}

static void boot(void *arg)
{
	const struct tm_store *store = r.setup.store;

	r.boot_rc = r.formats ? store->format(&r.env[0]) : store->recover(&r.env[0]);
	r.recovery_calls = r.calls;
	if (r.only_recovers) {
		sim_stop(r.sim, SIM_DONE);
		return;
	}
	if (!r.boot_rc)
		r.boot_rc = store->serve(&r.env[0]);
	if (r.boot_rc > 0)
		FAILED("the boot returns %d", r.boot_rc);
	for (unsigned c = 1; c <= CLIENTS && !r.boot_rc; c++)
		ck_assert_int_eq(sim_spawn(r.sim, c, NULL, client_main, (void *)(uintptr_t)c), 0);
	if (r.boot_rc)
		sim_stop(r.sim, SIM_DONE);
}

static void start(const uint8_t *image)
{
	sim_reset(r.sim, &r.source);
	r.source = (struct source){.answer = answer};
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		r.source.skip[k] = k == CHOICE_FAIL ? 0 : UINT32_MAX;
	pmem_load(r.stack, image, r.setup.pm_len);
	pmem_begin(r.pm, r.sim, &r.setup.hw);
	sim_let_calls_fail(r.sim, true);
	r.net = rnic_net_new(r.sim, &r.setup.hw);
	for (unsigned c = 0; c <= FRESH; c++)
		r.env[c] = (struct tm_env){.params = &r.setup.params,
					   .client = c,
					   .verbs = rnic_open(r.net, c, c ? NULL : r.pm),
					   .pm = c ? NULL : pmem_base(r.pm),
					   .pm_len = c ? 0 : r.setup.pm_len};
	sim_set_step_budget(r.sim, 60000000);
	sim_at(r.sim, 300 * S, give_up, NULL);
	r.ended = r.calls = 0;
	r.boots++;
	r.formats = !image;
	sim_spawn(r.sim, HOST_SERVER, NULL, boot, NULL);
}

/* False: it does not end, and need not. */
static bool go(const char *what, bool has_to_end)
{
	uintptr_t pc;
	enum sim_end end = sim_run(r.sim);

	if (end == SIM_FAULT)
		FAILED("%s: %s", what, sim_fault(r.sim, &pc));
	if (end != SIM_DONE && has_to_end)
		FAILED("%s does not end (%s, %llu us)", what,
		       end == SIM_BUDGET ? "steps" : "nothing happens",
		       (unsigned long long)sim_now(r.sim) / 1000);
	return end == SIM_DONE;
}

static void stop(void)
{
	pmem_save(r.pm, r.image);
	pmem_end(r.pm);
}

static void judge(void)
{
	static struct verdict verdict[TM_CONTRACTS];
	unsigned want = r.setup.store->promises &
			(TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_NORES));

	memset(verdict, 0, sizeof(verdict));
	contracts_judge(&r.history, want, NULL, verdict);
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (!(want & TM_BIT(c)) || !verdict[c].broken)
			continue;
		for (unsigned i = 0; i < r.history.ops; i++) {
			const struct history_op *o = &r.history.op[i];
			fprintf(stderr, "%u: client %u %s k%u: %d, error %d [%d %d]\n", i,
				o->client,
				o->kind == HISTORY_PUT	 ? "put"
				: o->kind == HISTORY_GET ? "get"
							 : "del",
				o->key, o->value, o->error, o->invoked, o->returned);
		}
		FAILED("contract %u is broken: operation %d against %d", c, verdict[c].op,
		       verdict[c].against);
	}
}

/* Boot from an image (NULL: an empty pool), run the clients, with the call that fails; then
 * without. */
static void run(const uint8_t *image, const struct history *before)
{
	if (before)
		r.history = *before;
	else
		history_reset(&r.history, KEYS + 1);
	r.history.ack_visible = true;
	r.armed = true;
	r.boots = 0;
	start(image);
	/* Where LIVE is not promised, or not then, a client that can do nothing any more may be in
	 * the way of others. */
	bool live = r.setup.store->promises & TM_BIT(TM_LIVE) && !may_wait_for_ever(r.setup.store);
	bool stuck = !go("the run", live || !r.for_ever);
	r.armed = false;
	if (r.boot_rc || stuck || (!live && r.for_ever)) {
		bool again = r.boot_rc && r.formats;
		stop();
		start(again ? NULL : r.image);
		go("the boot after the one that failed", true);
		if (r.boot_rc)
			FAILED("the boot after the one that failed returns %d", r.boot_rc);
	}
	sim_spawn(r.sim, FRESH, NULL, fresh_main, NULL);
	go("a new client", true);
	stop();
	judge();
}

/* --- images that have something to recover --- */

static void stop_now(struct sim *sim, void *arg)
{
	sim_stop(sim, SIM_DONE);
}

/* What the pool holds when the scripts have run for `at` ns, without failures. */
static void make_image(uint64_t at)
{
	history_reset(&r.history, KEYS + 1);
	r.armed = false;
	start(NULL);
	sim_at(r.sim, at, stop_now, NULL);
	go("without failures", true);
	stop();
}

/* Among several images the one at which recovery asks for memory most often: it was cut in a
 * cleaning. */
static void make_interesting_image(uint8_t *image, struct history *history)
{
	unsigned most = 0;

	for (unsigned i = 1; i <= IMAGES; i++) {
		make_image(i * 5 * US);
		struct history had = r.history;
		r.armed = true;
		r.point = FAIL_MEMORY;
		r.nth = 0;
		r.only_recovers = true;
		start(r.image);
		go("recovery", true);
		r.only_recovers = false;
		pmem_end(r.pm);
		if (i > 1 && r.recovery_calls <= most)
			continue;
		most = r.recovery_calls;
		memcpy(image, r.image, r.setup.pm_len);
		*history = had;
	}
	/* Ending a cleaning takes memory. */
	ck_assert(most || !r.setup.store->clean);
}

/* --- cases --- */

static void open_case(int i)
{
	static char name[128];

	memset(&r, 0, sizeof(r));
	snprintf(name, sizeof(name), "%s/%s %s", cases[i].store, cases[i].variant, cases[i].knobs);
	r.name = name;
	make_setup(&r.setup, store_find(cases[i].store), cases[i].variant, cases[i].knobs);
	r.setup.hw.ack_early = false;
	r.setup.params.clients = 40;
	r.setup.params.keys = KEYS;
	r.setup.params.updates = UPDATES;
	r.setup.params.max_vlen = VLEN;
	r.setup.pm_len = r.setup.store->pm_bytes(&r.setup.params);
	r.sim = sim_new();
	r.stack = pmem_stack_new(1, r.setup.pm_len);
	r.pm = pmem_machine(r.stack, 0);
	r.image = malloc(r.setup.pm_len);
	ck_assert(r.sim && r.stack && r.image);
}

static void close_case(void)
{
	pmem_stack_free(r.stack);
	sim_free(r.sim);
	free(r.image);
}

/* Each call of each point, alone and with all after it. */
static void each_call(void)
{
	unsigned fired;

	for (r.point = 0; r.point < SIM_ONLY; r.point++) {
		for (unsigned mode = 0; mode < 2; mode++) {
			r.for_ever = mode;
			r.nth = 0;
			do {
				r.nth++;
				fired = r.fired[r.point];
				run(NULL, NULL);
			} while (r.fired[r.point] > fired);
		}
	}
}

TESTS(from_an_empty_pool, CASES)
{
	if (!in_share(_i))
		return;
	open_case(_i);
	each_call();
	close_case();
}

/* Until the boot does not fail: then it has no further call. */
TESTS(boots_from_what_is_there, CASES)
{
	static struct history history;
	uint8_t *image;

	if (!in_share(_i + 1)) /* those that are left out above */
		return;
	open_case(_i);
	image = malloc(r.setup.pm_len);
	ck_assert_ptr_nonnull(image);
	make_interesting_image(image, &history);
	for (r.point = 0; r.point < SIM_ONLY; r.point++) {
		r.nth = 0;
		do {
			r.nth++;
			run(image, &history);
		} while (r.boots > 1);
	}
	ck_assert_uint_gt(r.fired[FAIL_MEMORY], 0);
	free(image);
	close_case();
}

/* --- answers --- */

#define CALLS 40

static struct {
	struct sim *sim;
	uint64_t failed; /* which of the calls, as bits */
} calls;

static void call_often(void *arg)
{
	for (unsigned i = 0; i < CALLS; i++) {
		if (i % 5 == 0)
			actor_label(sim_actor(calls.sim),
				    (struct op_label){1, OP_PUT, (uint16_t)(i / 5 + 1)});
		calls.failed |= (uint64_t)sim_fails(i % 5 == 4 ? FAIL_MEMORY : FAIL_POST_SEND) << i;
	}
	sim_stop(calls.sim, SIM_DONE);
}

static uint64_t call(struct source *source, bool may_fail)
{
	calls.failed = 0;
	sim_reset(calls.sim, source);
	sim_let_calls_fail(calls.sim, may_fail);
	ck_assert_int_eq(sim_spawn(calls.sim, 1, NULL, call_often, NULL), 0);
	ck_assert_int_eq(sim_run(calls.sim), SIM_DONE);
	return calls.failed;
}

/* What a seed draws is told, written, read, and happens again. */
TEST(seeds_and_traces)
{
	static const struct deviation_names names;
	struct random_source random = {0};
	struct trace_source trace;
	unsigned some = 0;

	calls.sim = sim_new();
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct deviations read = {0};

		random_start(&random, seed, 6);
		uint64_t failed_calls = call(&random.source, true);
		some += failed_calls != 0;
		ck_assert_uint_eq((unsigned)__builtin_popcountll(failed_calls), random.taken.n);
		for (unsigned i = 0; i < random.taken.n; i++) {
			char words[DEVIATION_TEXT];
			struct deviation d;
			const char *expected;
			deviation_print(&random.taken.d[i], &names, words, sizeof(words));
			ck_assert_int_eq(deviation_parse(&d, &names, words, &expected), 0);
			ck_assert_int_eq(deviations_add(&read, &d), 0);
		}
		ck_assert_int_eq(trace_start(&trace, &read), 0);
		ck_assert_uint_eq(call(&trace.source, true), failed_calls);
		ck_assert_ptr_null(trace_unused(&trace));
		trace_finish(&trace);
		deviations_free(&read);
		random_start(&random, seed, 6);
		ck_assert_uint_eq(call(&random.source, false), 0);
		ck_assert_uint_eq(random.taken.n, 0);
	}
	ck_assert_uint_gt(some, 50);
	ck_assert_uint_lt(some, 250);
	ck_assert_uint_eq(call(NULL, true), 0);
	deviations_free(&random.taken);
	sim_free(calls.sim);
}

TEST(bytes_that_fail_calls)
{
	/* The class of clients' deaths with its bit 7: the third call there is. */
	static const uint8_t third[] = {0x80 | RECORD_POST, 2, 77}, none[] = {RECORD_POST, 2, 77};
	struct byte_source bytes = {0};

	calls.sim = sim_new();
	bytes_start(&bytes, third, sizeof(third), true);
	ck_assert_uint_eq(call(&bytes.source, true), 1 << 2);
	ck_assert_uint_eq(bytes.taken.n, 1);
	ck_assert_uint_eq(bytes.taken.d[0].kind, CHOICE_FAIL);
	bytes_start(&bytes, none, sizeof(none), true);
	ck_assert_uint_eq(call(&bytes.source, true), 0);
	deviations_free(&bytes.taken);
	sim_free(calls.sim);
}

/* With calls=fail one call fails in each further run. */
TEST(systematic_search)
{
	const struct search_limits limits = {
		.faults = 1, .runs = 5000, .depends = search_default.depends};
	uint64_t runs[2];

	for (unsigned fail = 0; fail < 2; fail++) {
		struct setup setup;
		static struct explorer explorer;
		static struct search search;

		make_whole_setup(&setup, store_find("ca"), NULL, fail ? "calls=fail" : "calls=good",
				 "w");
		ck_assert_int_eq(explore_open(&explorer, &setup, &explore_default), 0);
		ck_assert_int_eq(search_run(&search, &explorer, &limits), 0);
		ck_assert(search.complete);
		runs[fail] = explorer.counts.runs;
		search_close(&search);
		explore_close(&explorer);
		setup_free(&setup);
	}
	/* The client posts a receive, a request and a write; the server finds room, replies, and
	 * posts its receive. */
	ck_assert_uint_eq(runs[1] - runs[0], 6);
}

/* A point at which nothing fails in any case is one that is not asked about. */
TEST(every_point)
{
	unsigned fired[FAIL_POINT_COUNT] = {0};

	for (unsigned point = 0; point < SIM_ONLY; point++) {
		for (int i = 0; i < CASES && !fired[point]; i++) {
			open_case(i);
			r.point = point;
			r.nth = 1;
			run(NULL, NULL);
			fired[point] = r.fired[point];
			close_case();
		}
		ck_assert_msg(fired[point], "%s never fails", fail_points[point].name);
	}
}

RUN_TESTS(NULL, NULL)
