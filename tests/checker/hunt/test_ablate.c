/* SPDX-License-Identifier: BSD-3-Clause */
/* The places of the stores' code: they are found, and named so that a name means one; without a
 * place that is needed something breaks, without another nothing; the list of those. */
#include "checker/hunt/ablate.h"
#include "checker/hunt/plan.h"
#include "checker/trace/shrink.h"
#include "checker/trace/trace.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

static struct place_list places;

static void find(void)
{
	ck_assert_int_eq(places_find(&places), 0);
}

static void forget(void)
{
	places_free(&places);
}

TEST(places_are_found)
{
	static const struct {
		const char *name;
		enum place_kind kind;
	} some[] = {
		{"efactory/verifier.c:persist_value:pmem_flush", PLACE_FLUSH},
		{"efactory/verifier.c:persist_value:pmem_drain", PLACE_FENCE},
		{"efactory/server.c:publish_new:pmem_persist#3", PLACE_PERSIST},
		{"efactory/server.c:publish_new:pmem_persist#3.fence", PLACE_PERSIST},
		{"efactory/clean.c:set_stage:atomic_store", PLACE_ORDER},
		{"erda/clean.c:wipe:pmem_memset_persist", PLACE_PERSIST},
		{"erda/client.c:update_by_write:rpc_write", PLACE_WAIT},
		{"erda/object.c:erda_object_check:rt_check", PLACE_CHECK},
		{"erda/object.c:erda_object_check:rt_check#2.never", PLACE_CHECK},
		{"remotelog/append.c:do_step:post_and_wait", PLACE_WAIT},
		{"kv.c:kv_call:rpc_call", PLACE_WAIT},
	};

	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		const struct place *p = places_named(&places, some[i].name);
		ck_assert_msg(p != NULL, "%s", some[i].name);
		ck_assert_int_eq(p->kind, some[i].kind);
	}
	ck_assert_ptr_null(places_named(&places, "efactory/server.c:publish_new:pmem_persist#9"));
	/* What only waits for its own caller is no place of its own. */
	ck_assert_ptr_null(places_named(&places, "rpc_client.c:conn_reply:conn_wait"));
}

/* A line of the source has the call that the place's name speaks of. */
static void check_line(const struct place *p)
{
	char path[256], line[512] = "", call[64];
	const char *name = strrchr(p->name, ':') + 1;
	unsigned number = (unsigned)strtoul(strrchr(p->where, ':') + 1, NULL, 10);

	snprintf(path, sizeof(path), "%.*s", (int)strcspn(p->where, ":"), p->where);
	snprintf(call, sizeof(call), "%.*s", (int)strcspn(name, "#."), name);
	FILE *in = fopen(path, "r");
	ck_assert_msg(in != NULL, "%s", path);
	for (unsigned i = 0; i < number; i++)
		ck_assert_msg(fgets(line, sizeof(line), in) != NULL, "%s", p->where);
	fclose(in);
	ck_assert_msg(strstr(line, call) != NULL, "%s: %s is not in: %s", p->where, call, line);
}

TEST(names_are_places)
{
	ck_assert_uint_gt(places.n, 100);
	for (unsigned i = 0; i < places.n; i++) {
		const struct place *p = &places.place[i];
		ck_assert_ptr_eq(places_named(&places, p->name), p);
		for (unsigned j = 0; j < i; j++)
			ck_assert_uint_ne(places.place[j].key, p->key);
		if (p->part) {
			ck_assert_uint_gt(i, 0);
			ck_assert(!p[-1].part);
			ck_assert_uint_eq(PLACE_PART(p[-1].key), p->key);
			ck_assert_uint_eq(strncmp(p[-1].name, p->name, strlen(p[-1].name)), 0);
		}
		check_line(p);
	}
}

/* --- without one --- */

static const struct ablated *named(const struct ablation *a, const char *name)
{
	for (unsigned i = 0; i < a->places; i++)
		if (!strcmp(a->place[i].place.name, name))
			return &a->place[i];
	ck_abort_msg("no place %s", name);
	return NULL;
}

/* One small workload. */
static void run(struct ablation *a, struct campaign *c, const struct ablate_options *o,
		const char *store, const char *workload)
{
	const char *const workloads[] = {workload, NULL};

	memset(a, 0, sizeof(*a));
	*c = make_campaign(store, "default", "", workloads);
	a->options = *o;
	a->base = c->config;
	a->workload = c->workload;
	a->workloads = 1;
	ck_assert_int_eq(ablate_run(a), 0);
}

TEST(needed_and_not)
{
	const struct ablate_options o = {
		.seed = 1, .runs = 20, .states = 500, .how.jobs = 2, .only_base = true};
	struct ablation a;
	struct campaign c;
	const struct ablate_result *r;

	run(&a, &c, &o, "remotelog", "w");
	ck_assert_uint_eq(a.lanes, 1);
	r = &named(&a, "remotelog/server.c:persist_record:pmem_persist")->result;
	ck_assert(r->reached && r->broken);
	ck_assert_uint_eq(r->contract, TM_DUR);
	ck_assert_uint_eq(r->operations, 1);
	ck_assert_str_eq(r->trace, "");
	r = &named(&a, "remotelog/server.c:persist_record:pmem_persist.fence")->result;
	ck_assert(r->broken && r->contract == TM_DUR);
	/* Acknowledged before the server has it. */
	r = &named(&a, "remotelog/append.c:call:rpc_call")->result;
	ck_assert(r->broken && r->contract == TM_DUR);
	/* Only a ring collects. */
	r = &named(&a, "remotelog/collect.c:take_record:pmem_persist")->result;
	ck_assert(!r->reached && !r->broken);
	ck_assert_uint_eq(r->runs, 0);
	ablate_free(&a);
	campaign_free(&c);
}

/* What so few runs do not show, the campaign that the store's list names does. */
TEST(rare)
{
	const struct ablate_options o = {
		.seed = 1, .runs = 4, .states = 100, .how.jobs = 2, .only_base = true};
	const struct ablated *p;
	struct ablation a;
	struct campaign c;

	run(&a, &c, &o, "forca", "new-w");
	p = named(&a, "forca/forca.c:recover:pmem_persist");
	ck_assert_ptr_nonnull(p->row);
	ck_assert_int_eq(p->row->verdict, ABLATE_RARE);
	ck_assert(p->result.reached && !p->result.broken && p->rare.broken && !p->surprise);
	ck_assert_uint_eq(p->rare.contract, p->row->contract);
	ck_assert_uint_gt(p->rare.runs, 0);
	/* It names none. */
	p = named(&a, "forca/forca.c:recover:pmem_persist#2");
	ck_assert(!p->rare.broken && !p->rare.runs);
	ablate_free(&a);
	campaign_free(&c);
}

/* A trace of a run without a place: written, read, and as broken as before. */
TEST(trace_replays)
{
	const char *expected, *path = "test_ablate.trace";
	struct campaign_config config = {.store = store_find("remotelog"), .share = {.one_in = 1}};
	struct campaign c = {.config = &config, .configs = 1, .options = campaign_default};
	struct campaign_unit *u = calloc(1, sizeof(*u));
	struct broken_run run;
	struct input_error error;
	struct workload w;
	struct trace t;
	bool whole;

	setup_init(&config.setup, config.store);
	ck_assert_int_eq(workload_named("w", &w, &expected), 0);
	c.workload = &w;
	c.workloads = 1;
	c.options.runs = 3;
	const struct place *place = places_named(&places,
						 "remotelog/server.c:persist_record:pmem_persist");
	ck_assert_int_eq(setup_without(&config.setup, place), 0);
	campaign_explore(&c, 0, TM_BIT(TM_DUR), u, &run);
	ck_assert_uint_eq(run.contract, TM_DUR);
	ck_assert_int_eq(broken_run_shrink(&run, TM_DUR, &whole), 0);
	ck_assert(!whole);
	ck_assert_int_eq(trace_save(path, &run.setup, &run.path, TM_DUR, run.text), 0);
	ck_assert_int_eq(trace_read(path, &t, store_find, &error), 0);
	remove(path);
	for (unsigned without = 1; without < 2; without--) {
		ck_assert_uint_eq(t.setup.without.n, 1);
		t.setup.without.n = without;
		const struct replay_outcome *out = replayed(&t.setup, &t.deviations, TM_DUR);
		ck_assert_int_eq(out->verdict[TM_DUR].broken, without);
		t.setup.without.n = 1;
	}
	trace_free(&t);
	broken_run_free(&run);
	workload_free(&w);
	free(u);
}

/* --- the list --- */

TEST(list_is_read)
{
	struct ablate_list list;
	struct input_error error;
	const struct ablate_row *row;

	ck_assert_int_eq(ablate_list_parse(&list,
					   "# comment\n\nx.c:f:pmem_flush blind  why it is so\n"
					   "x.c:f:pmem_flush#2 redundant\n"
					   "x.c:f:pmem_flush#3 rare a+b=c wr FSCK  and why\n",
					   &error),
			 0);
	ck_assert_uint_eq(list.n, 3);
	row = ablate_list_find(&list, "x.c:f:pmem_flush#3");
	ck_assert_int_eq(row->verdict, ABLATE_RARE);
	ck_assert_str_eq(row->config, "a+b=c");
	ck_assert_str_eq(row->workload, "wr");
	ck_assert_uint_eq(row->contract, TM_FSCK);
	ck_assert_str_eq(row->why, "and why");
	row = ablate_list_find(&list, "x.c:f:pmem_flush");
	ck_assert_int_eq(row->verdict, ABLATE_BLIND);
	ck_assert_str_eq(row->why, "why it is so");
	row = ablate_list_find(&list, "x.c:f:pmem_flush#2");
	ck_assert_int_eq(row->verdict, ABLATE_REDUNDANT);
	ck_assert_str_eq(row->why, "why it is so");
	ck_assert_ptr_null(ablate_list_find(&list, "x.c:f:pmem_drain"));
	ablate_list_free(&list);
}

TEST(list_mistakes)
{
	static const struct {
		const char *text, *message;
		unsigned line;
	} bad[] = {
		{"a blind why\na blind\n", "a twice", 2},
		{"a blind\n", "no reason is given", 1},
		{"# x\na needed why\n", "the second field is none of: elsewhere", 2},
		{"a\n", "the second field", 1},
		{"a rare default w\n", "expected a configuration, a workload and a contract", 1},
		{"a rare default w FSK why\n", "expected a configuration", 1},
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ablate_list list;
		struct input_error error;
		ck_assert_int_eq(ablate_list_parse(&list, bad[i].text, &error), -EINVAL);
		ck_assert_uint_eq(error.line, bad[i].line);
		ck_assert_msg(strstr(error.message, bad[i].message) != NULL, "%s", error.message);
		ablate_list_free(&list);
	}
}

RUN_TESTS(find, forget)
