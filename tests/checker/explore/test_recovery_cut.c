/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power fails again in each phase of a recovery that has much to do. Erda's brings a cleaning
 * to its end, or takes it back; what the second recovery finds then tells how far the first one
 * came: which phase the log's head says, and how many of two keys' entries are done. Each of these
 * must have been met in the first runs of a default campaign.
 */
#include "checker/campaign/campaign.h"
#include "checker/campaign/schedule.h"
#include "core/stores/erda/layout.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

#define RUNS  200
#define KEYS  2
#define PHASE (CLEAN_REPLICATE + 1)

static const struct tm_store *real;
static unsigned depth, met[PHASE][KEYS + 1];

/* Number of entries of the first log that are as recovery leaves them. */
static unsigned entries_done(const struct erda_geo *geo, const void *pm, enum erda_clean phase,
			     unsigned from)
{
	const struct erda_entry *entry = erda_table(geo, (void *)(uintptr_t)pm);
	unsigned done = 0;

	for (uint32_t i = 0; i < geo->entries; i++) {
		uint64_t m = entry[i].region;

		if (m == ERDA_EMPTY)
			continue;
		done += phase == CLEAN_MERGE ? erda_oldoff(m) == ERDA_NO_OFFSET : (m & 1) != from;
	}
	return done;
}

static int recover(const struct tm_env *env)
{
	const struct erda_head *head = erda_heads(env->pm);
	enum erda_clean phase = erda_state_phase(head->state);
	struct erda_geo geo;
	unsigned done;
	int rc;

	erda_geo(&geo, env->params);
	done = entries_done(&geo, env->pm, phase, erda_state_region(head->state));
	/* The power may fail again in this recovery; then another one runs before it goes on. */
	if (depth && phase < PHASE && done <= KEYS)
		met[phase][done]++;
	depth++;
	rc = real->recover(env);
	depth--;
	return rc;
}

static void explore(struct setup *setup)
{
	struct explorer ex;
	struct schedule schedule;

	ck_assert_msg(!explore_open(&ex, setup, &campaign_default.limits), "%s", ex.why);
	ck_assert_int_eq(schedule_open(&schedule, &ex.worlds, campaign_default.seed,
				       campaign_default.deviations),
			 0);
	for (uint64_t run = 0; run < RUNS && explore_more(&ex); run++) {
		struct source *source = schedule_run(&schedule, run);

		ck_assert_int_eq(explore_run(&ex, source, &schedule.random.taken), 0);
		/* No recovery was given up: each that another one met was under way. */
		ck_assert_uint_eq(depth, 0);
	}
	ck_assert_uint_gt(ex.counts.nested_states, 0);
	schedule_close(&schedule);
	explore_close(&ex);
}

TEST(each_phase_is_cut)
{
	struct tm_store store;
	struct setup setup;
	const char *expected;
	bool all = true;

	real = store_find("erda");
	store = *real;
	store.recover = recover;
	setup_init(&setup, &store);
	ck_assert_int_eq(workload_parse_keys(&setup.w, "k1 160, k2 160", &expected), 0);
	ck_assert_int_eq(workload_parse_client(&setup.w, 1, "put k1 160, put k1 160", &expected),
			 0);
	ck_assert_int_eq(
		workload_parse_client(&setup.w, 2, "put k2 160, clean, put k2 160", &expected), 0);
	snprintf(setup.w.name, sizeof(setup.w.name), "two keys");
	ck_assert_int_eq(setup_finish(&setup), 0);
	explore(&setup);
	for (unsigned phase = CLEAN_MERGE; phase < PHASE; phase++)
		for (unsigned done = 0; done <= KEYS; done++) {
			printf("phase %u, %u of %u entries done: %u times\n", phase, done, KEYS,
			       met[phase][done]);
			all &= met[phase][done] > 0;
		}
	ck_assert(all);
	setup_free(&setup);
}

RUN_TESTS(NULL, NULL)
