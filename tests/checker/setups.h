/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_CHECKER_SETUPS_H
#define TM_TESTS_CHECKER_SETUPS_H
/* Setups and campaigns of tests. */
#include "checker/campaign/campaign.h"
#include "checker/trace/replay.h"
#include "checker/world/setup.h"
#include "faultinject/random_source.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

/* A store's variant (NULL: as the store is), and switches ("domain=mhp bug=none"; "": none). */
static inline void make_setup(struct setup *s, const struct tm_store *store, const char *variant,
			      const char *switches)
{
	char text[256], *save = NULL;
	const char *expected = NULL;

	ck_assert_ptr_nonnull(store);
	setup_init(s, store);
	if (variant)
		ck_assert_int_eq(setup_variant(s, variant), 0);
	snprintf(text, sizeof(text), "%s", switches);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		ck_assert_msg(!setup_switch(s, word, &expected), "%s: %s", word, expected);
}

static inline void make_workload(struct workload *w, const char *name)
{
	const char *expected = NULL;

	ck_assert_msg(!workload_named(name, w, &expected), "%s: %s", name, expected);
}

/* Of a workload that is built in, complete. */
static inline void make_whole_setup(struct setup *s, const struct tm_store *store,
				    const char *variant, const char *switches, const char *workload)
{
	make_setup(s, store, variant, switches);
	make_workload(&s->w, workload);
	ck_assert_int_eq(setup_finish(s), 0);
}

/* An explorer, and a source of its runs. */
struct bench {
	struct setup setup;
	struct explorer ex;
	struct random_source random;
	uint64_t run_states; /* of each run, as a campaign shares them out; 0: all that it has */
	char name[160];	     /* the store, its variant and the workload */
};

/* Of a setup, which the bench takes. */
static inline struct bench *make_bench(const struct setup *setup,
				       const struct explore_limits *limits)
{
	struct bench *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	b->setup = *setup;
	snprintf(b->name, sizeof(b->name), "%s %s %s", b->setup.store->name, b->setup.variant,
		 b->setup.w.name);
	ck_assert_msg(!explore_open(&b->ex, &b->setup, limits), "%s: %s", b->name, b->ex.why);
	return b;
}

static inline void bench_free(struct bench *b)
{
	explore_close(&b->ex);
	setup_free(&b->setup);
	deviations_free(&b->random.taken);
	free(b);
}

/* A campaign of one store under some workloads; NULL ends them. To be freed. */
static inline struct campaign make_campaign(const char *store, const char *variant,
					    const char *switches, const char *const *workload)
{
	struct campaign c = {.configs = 1, .options = campaign_default};

	while (workload[c.workloads])
		c.workloads++;
	c.config = calloc(1, sizeof(*c.config));
	c.workload = calloc(c.workloads, sizeof(*c.workload));
	ck_assert(c.config && c.workload);
	make_setup(&c.config->setup, store_find(store), variant, switches);
	c.config->store = c.config->setup.store;
	c.config->share.one_in = 1;
	snprintf(c.config->variant, sizeof(c.config->variant), "%s", variant);
	snprintf(c.config->name, sizeof(c.config->name), "default");
	for (unsigned i = 0; i < c.workloads; i++)
		make_workload(&c.workload[i], workload[i]);
	return c;
}

/* What comes of it when a run is replayed that has broken this contract. Valid until the next. */
static inline const struct replay_outcome *replayed(struct setup *s, const struct deviations *list,
						    unsigned contract)
{
	static struct replay_outcome out;
	struct explorer *ex = malloc(sizeof(*ex));

	ck_assert(ex && !explore_open(ex, s, &explore_default));
	ck_assert_int_eq(replay(ex, list, contract == TM_KEEP, NULL, &out), 0);
	explore_close(ex);
	free(ex);
	return &out;
}

#endif
