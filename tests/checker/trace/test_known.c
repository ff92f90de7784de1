/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The known causes of expected breaks: words and sets; and that a bug whose only symptom is a break
 * that is expected anyway is a surprise, with a trace, in the store's default variant.
 */
#include "checker/judge/known.h"
#include "checker/trace/minimized.h"
#include "checker/trace/replay.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

static struct blame blame_of(const char *words)
{
	struct blame b;
	char text[BLAME_TEXT];
	snprintf(text, sizeof(text), "%s", words);
	const char *wrong = blame_parse(&b, text);
	ck_assert_msg(!wrong, "%s: %s", words, wrong);
	return b;
}

TEST(words_come_back)
{
	static const struct tm_region region[] = {{"table", 0, 64}, {"log", 64, 64}};
	static const char *const rows[] = {
		"DUR value put lost:log:nic:put:own",
		"DUR nothing load open open2",
		"NORES value delete late:delete:own lost:table:background:-:other",
		"OK error - step packet background clean up death",
		"DUR value get open life kept",
		"DUR value get others lost:log:nic:put:other",
		"LIVE - -",
		"MONO foreign get fault again life late:put:other lost:pm:client:clean:other",
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct blame b = blame_of(rows[i]), c;
		char text[BLAME_TEXT];
		blame_print(&b, region, 2, text, sizeof(text));
		c = blame_of(text);
		ck_assert_str_eq(text, rows[i]);
		ck_assert_mem_eq(&b, &c, sizeof(b));
	}
}

TEST(mistakes_are_told)
{
	static const struct {
		const char *words, *wrong;
	} bad[] = {
		{"", "a contract"},
		{"DURABLE value put", "a contract"},
		{"DUR something put", "what was seen"},
		{"DUR value scan", "contradicts"},
		{"DUR value put opened", "parts"},
		{"DUR value put lost:log:nic:put", "parts"},
		{"DUR value put lost:log:nic:put:own:own", "parts"},
		{"DUR value put lost::nic:put:own", "parts"},
		{"DUR value put lost:log:dma:put:own", "parts"},
		{"DUR value put late:scan:own", "parts"},
		{"DUR value put late:put:mine", "parts"},
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct blame b;
		char text[BLAME_TEXT];
		snprintf(text, sizeof(text), "%s", bad[i].words);
		const char *wrong = blame_parse(&b, text);
		ck_assert_msg(wrong && strstr(wrong, bad[i].wrong), "%s: %s", bad[i].words, wrong);
	}
}

TEST(more_of_the_same_is_the_same)
{
	struct blame lost = blame_of("DUR value put lost:log:nic:put:own"),
		     more = blame_of("DUR value put open again lost:log:nic:put:own "
				     "lost:table:server:put:own"),
		     none = blame_of("DUR value put"), other = blame_of("DUR nothing put");
	ck_assert(blame_includes(&more, &lost));
	ck_assert(!blame_includes(&lost, &more));
	ck_assert(blame_includes(&lost, &none));
	ck_assert(!blame_includes(&none, &lost));
	ck_assert(!blame_includes(&more, &other));
	ck_assert(!blame_includes(&more, &(struct blame){.contract = TM_BUF}));
	/* A row keeps what was lost for the operation; else whether anything was. */
	blame_coarsen(&more);
	ck_assert_uint_eq(more.parts, 2);
	struct blame others = blame_of("DUR value put others lost:log:nic:put:other"),
		     row = blame_of("DUR value put others");
	blame_coarsen(&others);
	ck_assert_mem_eq(&others, &row, sizeof(row));
	struct blame open = blame_of("DUR value put step packet open2 again kept"),
		     kept = blame_of("DUR value put kept");
	blame_coarsen(&open);
	ck_assert_mem_eq(&open, &kept, sizeof(kept));
	ck_assert(!blame_includes(&lost, &kept));
}

TEST(too_many_parts_are_not_judged)
{
	static const char *const regions[] = {"a", "b", "c", "d", "e", "f", "g"};
	struct known known;
	struct blame b = {.contract = TM_DUR};
	for (unsigned i = 0; i < 7; i++)
		for (unsigned op = OP_PUT; op <= OP_DEL; op++)
			blame_add(&b, blame_loss(regions[i], WRITER_NIC, (enum op_kind)op, true));
	ck_assert(b.full);
	ck_assert_uint_eq(b.parts, BLAME_PARTS);
	known_nothing(store_find("efactory"), "default", "default", &known);
	ck_assert(known_explains(&known, &b, NULL));
}

TEST(what_is_compared)
{
	const struct tm_store *store = store_find("efactory");
	struct known known;
	struct blame lost = blame_of("DUR value put lost:log-a:nic:put:own"),
		     cut = blame_of("DUR value put kept");
	ck_assert_ptr_null(known_mistake());
	known_find(store, "default", "default", &known);
	ck_assert(known.compared & TM_BIT(TM_DUR));
	ck_assert(!(known.compared & TM_BIT(TM_MONO))); /* a surprise for any cause */
	ck_assert(known_explains(&known, &lost, NULL));
	ck_assert(!known_explains(&known, &cut, NULL));
	known_nothing(store, "default", "default", &known);
	ck_assert(!known_explains(&known, &lost, NULL));
	/* What is expected differs by configuration, and so does what is compared. */
	known_find(store, "default", "ack_early=off", &known);
	ck_assert(!(known.compared & TM_BIT(TM_LIN)));
	/* Hardware of which nothing has been said. */
	known_find(store, "default", "mtu=256", &known);
	ck_assert_uint_eq(known.compared, 0);
	/* A variant that needs no rows of its own, and one that has some. What it promises is a
	 * surprise for any cause, unless a row of expected.txt says that it breaks. */
	known_find(store, "tight", "ack_early=off", &known);
	ck_assert(!(known.compared & TM_BIT(TM_LIN)));
	known_find(store, "tight", "default", &known);
	ck_assert(known.compared & TM_BIT(TM_DUR));
	ck_assert(known.compared & TM_BIT(TM_LIN));
	ck_assert(known_explains(&known, &lost, NULL));
	ck_assert(!known_explains(&known, &cut, NULL));
	known_find(store, "literal", "default", &known);
	ck_assert(known_explains(&known, &lost, NULL));
	ck_assert(known_explains(&known, &cut, NULL));
	ck_assert(!(known.compared & TM_BIT(TM_LIN)));
	known_find(store_find("erda"), "live", "default", &known);
	ck_assert(known.compared & TM_BIT(TM_DUR));
	known_find(store_find("erda"), "live", "mtu=256", &known);
	ck_assert_uint_eq(known.compared, 0);
}

/* What a variant breaks by design, or does not promise, hides no other cause either. */
TEST(each_variant_is_compared)
{
	unsigned variants = 0;
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_variant *v = stores[i]->variants; v && v->name; v++) {
			struct known known;
			/* A store without the file is not compared. */
			if (v->breaks || !known_rows(stores[i], "default", "default", &known))
				continue;
			ck_assert_msg(known_rows(stores[i], v->name, "default", &known),
				      "%s/causes.txt does not name the variant %s", stores[i]->name,
				      v->name);
			variants++;
		}
	ck_assert_uint_gt(variants, 30);
}

/* The default variant, but with its knob `bug` set. */
static struct campaign campaign_with(const char *store, const char *bug,
				     const char *const *workload)
{
	char switches[64];
	snprintf(switches, sizeof(switches), "bug=%s", bug);
	struct campaign c = make_campaign(store, "default", switches, workload);
	c.options.runs = 600;
	c.options.states = 9000;
	return c;
}

/* Bugs that break nothing but what the store breaks anyway. */
static const struct {
	const char *store, *bug;
	unsigned contract;
	const char *workload[4];
} hidden[] = {
	{"efactory", "entry_lazy", TM_DUR, {"w", "w-r", "d-rr", NULL}},
};
#define HIDDEN (int)(sizeof(hidden) / sizeof(hidden[0]))

/* The smallest failure with an unknown cause still has one, and breaks when it is replayed. */
static void check_minimized(const struct campaign *c, unsigned contract)
{
	struct minimized *failures = malloc(sizeof(*failures));
	ck_assert_ptr_nonnull(failures);
	ck_assert_int_eq(minimized_strange(c, 0, contract, failures), 0);
	ck_assert_uint_eq(failures->n, 1);
	struct minimized_failure *one = &failures->found[0];
	ck_assert(!one->whole);
	ck_assert_uint_eq(one->setup.unknown_only, TM_BIT(contract));
	const struct replay_outcome *out = replayed(&one->setup, &one->path, contract);
	ck_assert(out->verdict[contract].broken);
	ck_assert_ptr_null(out->unused);
	minimized_free(failures);
	free(failures);
}

TESTS(hidden_bugs_are_surprises, HIDDEN)
{
	const unsigned k = hidden[_i].contract;
	struct campaign bug = campaign_with(hidden[_i].store, hidden[_i].bug, hidden[_i].workload);
	struct campaign none = campaign_with(hidden[_i].store, "none", hidden[_i].workload);
	ck_assert_int_eq(campaign_run(&none), 0);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		ck_assert_msg(!none.cell[0][c].strange, "%s %s", hidden[_i].store, hidden[_i].bug);
	ck_assert_int_eq(campaign_run(&bug), 0);
	ck_assert_msg(bug.cell[0][k].strange, "%s %s", hidden[_i].store, hidden[_i].bug);
	ck_assert_uint_gt(bug.cell[0][k].strange_states, 0);
	ck_assert_uint_ge(bug.cell[0][k].broken_states, bug.cell[0][k].strange_states);
	check_minimized(&bug, k);
	campaign_free(&none);
	campaign_free(&bug);
}

/* A bug whose breaks have a cause that the design has as well, but in more runs. */
TEST(frequent_breaks_are_surprises)
{
	static const char *const workload[] = {"w-d-r", "d-wr", "d-w", NULL};
	static const char row[] = "* DUR value delete others";
	struct campaign bug = campaign_with("ca", "tail_short", workload),
			none = campaign_with("ca", "none", workload);
	struct campaign *const both[] = {&none, &bug};
	for (unsigned i = 0; i < 2; i++) {
		both[i]->options.runs = campaign_default.runs;
		both[i]->options.states = campaign_default.states;
		both[i]->options.shares = true;
		ck_assert_int_eq(campaign_run(both[i]), 0);
	}
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		ck_assert(!none.cell[0][c].often);
	const struct campaign_cell *cell = &bug.cell[0][TM_DUR];
	ck_assert(cell->often);
	ck_assert_uint_gt(cell->often_runs, known_limit(cell->recorded));
	ck_assert_str_eq(known_words(cell->often_row), row);
	/* The run that is kept shows it, and so does its replay. */
	const struct campaign_break which = campaign_often(&bug, 0, TM_DUR);
	struct broken_run run;
	ck_assert_int_eq(campaign_again(&bug, &which, &run), 0);
	ck_assert(run.setup.known.inverted);
	ck_assert(replayed(&run.setup, &run.path, TM_DUR)->verdict[TM_DUR].broken);
	broken_run_free(&run);
	campaign_free(&bug);
	campaign_free(&none);
}

/* Nor does it matter whether what comes of an image is known. */
TEST(processes_change_nothing)
{
	static const char *const workload[] = {"w", "w-r", "d-rr", NULL};
	struct campaign c[3];
	for (unsigned i = 0; i < 3; i++) {
		c[i] = campaign_with("efactory", "entry_lazy", workload);
		c[i].options.jobs = i == 1 ? 2 : 1;
		c[i].options.limits.no_tree = i == 2;
		ck_assert_int_eq(campaign_run(&c[i]), 0);
	}
	for (unsigned u = 0; u < 3; u++)
		for (unsigned i = 1; i < 3; i++) {
			const struct campaign_unit *one = &c[0].unit[u], *other = &c[i].unit[u];
			ck_assert_mem_eq(one->shown, other->shown, sizeof(one->shown));
			ck_assert_mem_eq(one->shown_run, other->shown_run, sizeof(one->shown_run));
			for (unsigned k = 0; k < TM_CONTRACTS; k++)
				ck_assert_mem_eq(&one->contract[k].strange,
						 &other->contract[k].strange,
						 sizeof(struct strange));
		}
	ck_assert(c[0].cell[0][TM_DUR].strange);
	for (unsigned i = 0; i < 3; i++)
		campaign_free(&c[i]);
}

RUN_TESTS(NULL, NULL)
