/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a campaign that are searched systematically, beside those of random runs. */
#include "checker/hunt/plan.h"
#include "checker/judge/surprise.h"
#include "tests/checker/setups.h"

/* A campaign of little more than such a row. */
static void campaign_of(struct campaign *c, const char *store, const char *variant, bool searches)
{
	static const char *const names[] = {"w", "w-r", "wr"};
	const struct plan p = {
		.store = {&store, 1}, .variant = {&variant, variant ? 1 : 0}, .searches = searches};
	char why[PLAN_TEXT];
	memset(c, 0, sizeof(*c));
	c->config = calloc(PLAN_CONFIGS, sizeof(*c->config));
	ck_assert_ptr_nonnull(c->config);
	ck_assert_int_eq(plan_configs(c, &p, why), 0);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct workload w;
		make_workload(&w, names[i]);
		ck_assert_int_eq(plan_add_workload(c, &w), 0);
	}
	c->options = campaign_default;
	c->options.runs = 100;
	c->options.states = 1000;
}

/* Its row is the last one. */
static const struct campaign_cell *searched_cell(const struct campaign *c, unsigned contract)
{
	ck_assert_str_eq(c->config[c->configs - 1].name, "exhaustive");
	return &c->cell[c->configs - 1][contract];
}

/* The client asks to be answered otherwise between two steps of the server. */
TEST(finds_what_comes_between_two_steps)
{
	struct campaign with, without;
	struct broken_run run;
	campaign_of(&with, "rfp", "mode_first", true);
	campaign_of(&without, "rfp", "mode_first", false);
	ck_assert_int_eq(campaign_run(&with), 0);
	ck_assert_int_eq(campaign_run(&without), 0);

	ck_assert(searched_cell(&with, TM_LIVE)->broken);
	ck_assert_ptr_null(campaign_left_out(&with, with.configs - 1));
	for (unsigned i = 0; i < without.configs; i++) {
		ck_assert(!without.cell[i][TM_LIVE].broken);
		ck_assert_ptr_nonnull(campaign_left_out(&with, i));
	}
	/* Random runs are what they were. */
	ck_assert_uint_eq(with.configs, without.configs + 1);
	ck_assert_mem_eq(with.unit, without.unit,
			 without.configs * without.workloads * sizeof(*with.unit));
	const struct campaign_cell *cell = searched_cell(&with, TM_LIVE);
	const struct campaign_break which = {cell->unit, TM_LIVE, cell->mode, BREAK_ANY, 0};
	ck_assert_int_eq(campaign_again(&with, &which, &run), 0);
	ck_assert_uint_ge(run.path.n, 1);
	broken_run_free(&run);
	campaign_free(&with);
	campaign_free(&without);
}

/* What the design breaks is as expected, if it is so under the hardware of the row. */
TEST(design_is_expected)
{
	struct campaign c;
	const char *why;
	campaign_of(&c, "saw_imm", NULL, true);
	ck_assert_int_eq(campaign_run(&c), 0);
	const struct campaign_cell *cell = searched_cell(&c, TM_MONO);
	const struct explore_counts *total = &c.total[c.configs - 1];
	struct surprise_cell judged = {.store = c.config->store,
				       .variant = "default",
				       .config = campaign_like(&c.config[c.configs - 1]),
				       .contract = TM_MONO,
				       .broken = true};
	ck_assert(cell->broken && !cell->strange_states);
	ck_assert(!surprise_in_cell(&judged, &why));
	judged.store = store_find("efactory");
	judged.contract = TM_LIN;
	ck_assert(surprise_in_cell(&judged, &why));
	/* These are no part of a systematic search. */
	ck_assert_uint_eq(total->nested_states + total->lives, 0);
	campaign_free(&c);
}

static const struct {
	const char *store, *variant;
	unsigned contract;
} caused[] = {
	{"saw_imm", "tail_forgotten", TM_MONO},
	/* The first run that breaks it does so by design. */
	{"forca", "short_timeout", TM_DUR},
};

/* Another cause is told although few runs show it. */
TESTS(causes_decide, ROWS_OF(caused))
{
	struct campaign c;
	struct broken_run run;
	const unsigned contract = caused[_i].contract;
	campaign_of(&c, caused[_i].store, caused[_i].variant, true);
	ck_assert_int_eq(campaign_run(&c), 0);
	const struct campaign_cell *cell = searched_cell(&c, contract);
	ck_assert(cell->strange && cell->strange_runs < STRANGE_RUNS);
	const struct campaign_break which = campaign_strange(&c, c.configs - 1, contract);
	ck_assert_int_eq(campaign_again(&c, &which, &run), 0);
	ck_assert_uint_ge(run.path.n, 1);
	broken_run_free(&run);
	campaign_free(&c);
}

static unsigned searched_rows(const struct plan *p)
{
	struct campaign c = {.config = calloc(PLAN_CONFIGS, sizeof(*c.config))};
	char why[PLAN_TEXT];
	unsigned n = 0;
	ck_assert_ptr_nonnull(c.config);
	ck_assert_int_eq(plan_configs(&c, p, why), 0);
	for (unsigned i = 0; i < c.configs; i++) {
		n += c.config[i].searched != NULL;
		ck_assert(!n || c.config[i].searched); /* after all others */
	}
	free(c.config);
	return n;
}

TEST(stores_of_one_server_have_such_a_row)
{
	static const char *const several[] = {"mojim", "erda", "rfp"}, *const knob = "ddio=off";
	struct plan p = {.store = {several, 3}};
	ck_assert_uint_eq(searched_rows(&p), 0);
	p.searches = true;
	ck_assert_uint_eq(searched_rows(&p), 2);
	p.knob = (struct plan_names){&knob, 1};
	ck_assert_uint_eq(searched_rows(&p), 0);
	p = (struct plan){.all_stores = true, .searches = true};
	ck_assert_uint_ge(searched_rows(&p), 14);
}

RUN_TESTS(NULL, NULL)
