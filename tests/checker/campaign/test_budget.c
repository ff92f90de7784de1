/* SPDX-License-Identifier: BSD-3-Clause */
/* Budgets: what each gives a workload, what is expected of it, and which of the runs it makes. */
#include "checker/campaign/budget.h"
#include "tests/checker/setups.h"

TEST(each_gives_more)
{
	char names[] = BUDGET_NAMES, *save = NULL;
	uint64_t runs = 0, states = 0;
	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		const struct budget *b = budget_find(name);
		ck_assert_ptr_nonnull(b);
		ck_assert_uint_gt(b->runs, runs);
		ck_assert_uint_gt(b->states, states);
		ck_assert_ptr_eq(budget_of(b->runs, b->states), b);
		runs = b->runs;
		states = b->states;
	}
	ck_assert_ptr_null(budget_find("all"));
	ck_assert_ptr_null(budget_of(runs, states + 1));
	/* What other searches call a campaign. */
	ck_assert_uint_eq(budget_whole->runs, campaign_default.runs);
	ck_assert_uint_eq(budget_whole->states, campaign_default.states);
}

/* One table of what is recorded is enough. */
TEST(less_is_expected_of_less)
{
	const uint64_t whole = budget_whole->runs;
	for (uint64_t recorded = 0; recorded < 3000; recorded += 7) {
		uint64_t before = 0;
		for (uint64_t runs = 1; runs <= whole; runs += 37) {
			const uint64_t n = budget_expected(recorded, runs);
			ck_assert_uint_ge(n, before);
			ck_assert_uint_le(n, recorded);
			/* As many as its part, at least. */
			ck_assert_uint_ge(n * whole, recorded * runs);
			before = n;
		}
		ck_assert_uint_eq(budget_expected(recorded, whole), recorded);
		ck_assert_uint_eq(budget_expected(recorded, 10 * whole), recorded);
	}
	ck_assert_uint_eq(budget_expected(1, 1), 1);
	ck_assert_uint_eq(budget_expected(100, whole / 4), 40);
}

static const char *const names[] = {"w", "w-r", "w-w", "ww-r", "d-r", "wd", "w-rr", "ww"};
#define NAMES (sizeof(names) / sizeof(names[0]))

/* The last run of each workload that broke a contract first; these cannot break so soon. */
static void explore_all(uint64_t runs, uint64_t states, uint64_t last[NAMES])
{
	struct campaign_config config = {.store = store_find("efactory"), .share = {.one_in = 1}};
	struct campaign c = {.config = &config, .configs = 1, .options = campaign_default};
	struct workload w[NAMES];
	struct campaign_unit *u = calloc(1, sizeof(*u));
	snprintf(config.name, sizeof(config.name), "default");
	snprintf(config.variant, sizeof(config.variant), "default");
	setup_init(&config.setup, config.store);
	for (unsigned i = 0; i < NAMES; i++)
		make_workload(&w[i], names[i]);
	c.workload = w;
	c.workloads = NAMES;
	c.options.runs = runs;
	c.options.states = states;
	for (unsigned i = 0; i < NAMES; i++) {
		memset(u, 0, sizeof(*u));
		campaign_explore(&c, i, 0, u, NULL);
		ck_assert_int_eq(u->error, 0);
		ck_assert_uint_eq(u->counts.runs, runs);
		last[i] = 0;
		for (unsigned k = 0; k < KNOWN_STORE_ROWS; k++)
			last[i] = u->shown_run[k] > last[i] ? u->shown_run[k] : last[i];
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			if (u->contract[k].found && u->contract[k].run > last[i])
				last[i] = u->contract[k].run;
	}
	for (unsigned i = 0; i < NAMES; i++)
		workload_free(&w[i]);
	free(u);
}

/* Workloads do not all make the first runs, but each of them one part of those of `whole`; where it
 * is not a budget that is asked for, they are the first ones. */
TEST(workloads_make_other_runs)
{
	const struct budget *quick = budget_find("quick");
	uint64_t last[NAMES], again[NAMES];
	unsigned late = 0, windows = 0;
	explore_all(quick->runs, quick->states, last);
	explore_all(quick->runs, quick->states, again);
	ck_assert_mem_eq(last, again, sizeof(last));
	for (unsigned i = 0; i < NAMES; i++) {
		ck_assert_uint_lt(last[i], budget_whole->runs);
		late += last[i] >= quick->runs;
		windows += i && last[i] / quick->runs != last[i - 1] / quick->runs;
	}
	ck_assert_uint_gt(late, NAMES / 2);
	ck_assert_uint_gt(windows, NAMES / 2);
	explore_all(quick->runs, quick->states - 1, last);
	for (unsigned i = 0; i < NAMES; i++)
		ck_assert_uint_lt(last[i], quick->runs);
}

RUN_TESTS(NULL, NULL)
