/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contract OK of cleanings, which are in no history: one that fails for no reason breaks it, in a
 * workload and in a life after recovery, with a sentence that says so, and its trace replays. One
 * that fails as the store declares does not; which injected faults explain an error is in
 * test_explained.c.
 */
#include "checker/campaign/campaign.h"
#include "checker/trace/replay.h"
#include "faultinject/life.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"

static int clean_fails(void *client)
{
	return -EIO;
}

static int clean_is_busy(void *client)
{
	return -EALREADY;
}

/* A store that does not wait for a reply may return other bytes in its place. */
static int clean_is_wrong(void *client)
{
	return 5;
}

enum how { AS_IT_IS, FAILS, BUSY, WRONG, NO_CLEANING };

static struct bench *bench(enum how how, const char *workload)
{
	static int (*const cleans[])(void *) = {
		[FAILS] = clean_fails, [BUSY] = clean_is_busy, [WRONG] = clean_is_wrong};
	static struct tm_store store; /* each test has a process of its own */
	struct explore_limits limits = campaign_default.limits;
	struct setup setup;

	store = *store_find("efactory");
	if (how != AS_IT_IS)
		store.clean = how == NO_CLEANING ? NULL : cleans[how];
	make_whole_setup(&setup, &store, NULL, "", workload);
	limits.states = 400;
	return make_bench(&setup, &limits);
}

static const struct {
	enum how how;
	bool broken;
	const char *text;
} table[] = {
	{AS_IT_IS, false, NULL},
	{BUSY, false, NULL},
	{NO_CLEANING, false, NULL},
	{FAILS, true, "client 1's cleaning failed with EIO for no reason that was injected"},
	{WRONG, true, "client 1's cleaning failed with EPROTO for no reason that was injected"},
};

TESTS(in_a_workload, ROWS_OF(table))
{
	struct bench *b = bench(table[_i].how, "wc");
	const struct failure *f = &b->ex.failure[TM_OK];

	ck_assert_int_eq(explore_run(&b->ex, NULL, &b->random.taken), 0);
	ck_assert_int_eq(f->found, table[_i].broken);
	/* It is asked for again at the end, and again, until it is done. */
	ck_assert_int_eq(b->ex.failure[TM_LIVE].found, table[_i].how == BUSY);
	if (table[_i].how == BUSY)
		ck_assert_str_eq(b->ex.failure[TM_LIVE].text, "a cleaning does not end");
	if (f->found) {
		struct replay_outcome out;

		ck_assert_str_eq(f->text, table[_i].text);
		ck_assert_int_eq(replay(&b->ex, &f->deviations, false, NULL, &out), 0);
		ck_assert(out.verdict[TM_OK].broken && !out.verdict[TM_LIVE].broken);
		ck_assert_str_eq(out.text[TM_OK], table[_i].text);
	}
	bench_free(b);
}

/* After a recovery an error breaks LIVE, too. */
TESTS(in_a_life, ROWS_OF(table))
{
	struct bench *b = bench(table[_i].how, "w");
	struct life_plan plan[WORLDS] = {0};
	bool broken = table[_i].broken;

	plan[1].answer[0][0] = LIFE_CLEAN;
	plan[1].cut = LIFE_WHOLE;
	b->ex.plan = plan;
	ck_assert_int_eq(explore_run(&b->ex, NULL, &b->random.taken), 0);
	ck_assert_uint_gt(b->ex.counts.lives, 0);
	ck_assert_int_eq(b->ex.failure[TM_OK].found, broken);
	ck_assert_int_eq(b->ex.failure[TM_LIVE].found, broken);
	if (broken)
		ck_assert_ptr_nonnull(strstr(b->ex.failure[TM_OK].text, "a reader's cleaning"));
	bench_free(b);
}

RUN_TESTS(NULL, NULL)
