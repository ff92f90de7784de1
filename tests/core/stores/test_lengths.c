/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores take the keys that they may be given: each store runs each built-in workload with lengths
 * that are drawn from several seeds, and one of whose keys many want the same place.
 */
#include "checker/hunt/plan.h"
#include "core/stores/kv.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"

#define FIRST_SEED 5 /* draws ten keys of 31 bytes each for one workload */
#define SEEDS	   6

/* One run of each workload, for as long as it takes to see that the load phase goes well. */
static void make(struct campaign *c, const struct tm_store *store, bool one_config)
{
	const struct plan plan = {.store = {&store->name, 1}, .one_config = one_config};
	char why[PLAN_TEXT];

	*c = (struct campaign){.options = campaign_default};
	c->options.runs = 1;
	c->options.states = 1;
	c->options.all_causes = true;
	c->options.unfilled = true; /* test_room's business, and what takes longest */
	c->config = calloc(PLAN_CONFIGS, sizeof(*c->config));
	ck_assert_ptr_nonnull(c->config);
	ck_assert_int_eq(plan_configs(c, &plan, why), 0);
}

static void run(const struct campaign *c, unsigned unit)
{
	struct campaign_unit *u = calloc(1, sizeof(*u));

	ck_assert_ptr_nonnull(u);
	campaign_explore(c, unit, 0, u, NULL);
	ck_assert_msg(!u->error, "seed %u, %s, workload %s: %s", (unsigned)c->options.seed,
		      c->config[unit / c->workloads].name, c->workload[unit % c->workloads].name,
		      u->why);
	free(u);
}

static int all_stores(void)
{
	int n = 0;

	while (stores[n])
		n++;
	return n;
}

TESTS(every_store_runs_what_is_drawn, all_stores())
{
	struct campaign c;

	make(&c, stores[_i], false);
	ck_assert_int_eq(plan_builtin_workloads(&c), 0);
	for (unsigned i = 0; i < rounds(SEEDS); i++) {
		c.options.seed = FIRST_SEED + i;
		for (unsigned unit = 0; unit < c.configs * c.workloads; unit++)
			if (c.config[unit / c.workloads].share.sized)
				run(&c, unit);
	}
	campaign_free(&c);
}

#define MEETING	 12
#define FILLED	 64
#define LOW_BITS 255 /* of the hash: they name a slot of a table that is a quarter full then */

/* Where a table of Pilaf's, which has the fewest entries for a key, begins to look for it. */
static uint64_t slot(const uint8_t key[TM_MAX_KEY])
{
	return kv_hash(key) * 0x9e3779b97f4a7c15 >> 32 & LOW_BITS;
}

TESTS(keys_that_meet_have_room, all_stores())
{
	struct workload w = {.name = "meeting"};
	struct campaign c;
	const char *expected;
	uint64_t home = 0;

	if (stores[_i]->calls && !stores[_i]->put)
		return; /* it has no keys */
	for (unsigned n = 0; w.keys < FILLED; n++) {
		uint8_t key[TM_MAX_KEY] = {0};
		char name[16];
		int len = snprintf(name, sizeof(name), "k%u", n);

		memcpy(key, name, (size_t)len);
		if (!n)
			home = slot(key);
		if (w.keys >= MEETING || slot(key) == home)
			ck_assert_int_ge(workload_key_add(&w, name, (size_t)len, 8), 0);
	}
	ck_assert_int_eq(workload_parse_client(&w, 1, "get k0", &expected), 0);
	make(&c, stores[_i], true);
	ck_assert_int_eq(plan_add_workload(&c, &w), 0);
	run(&c, 0);
	campaign_free(&c);
}

RUN_TESTS(NULL, NULL)
