/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One minimized failure for each cause: which failure modes stay, that a budget of states does not
 * end the runs and is not used up by recovery alone, and that the minimized failures of a campaign
 * are small and differ.
 */
#include "checker/trace/minimized.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

#define CLIENT (1u << CHOICE_STEP)
#define LAND   (1u << CHOICE_LAND)
#define PACKET (1u << CHOICE_PACKET)

TEST(ways_do_not_include_each_other)
{
	struct failure_modes modes = {0};
	failure_modes_add(&modes, CLIENT | LAND, 3);
	failure_modes_add(&modes, CLIENT | LAND | FAILURE_MODE_CRASH,
			  4); /* that, with something added */
	ck_assert_uint_eq(modes.n, 1);
	failure_modes_add(&modes, PACKET, 5);
	failure_modes_add(&modes, CLIENT | LAND | FAILURE_MODE_NOTHING,
			  6); /* a reader saw something else */
	ck_assert_uint_eq(modes.n, 3);
	failure_modes_add(&modes, LAND, 7); /* takes the place of the first */
	ck_assert_uint_eq(modes.n, 3);
	ck_assert_uint_eq(modes.mode[0].run, 5);
	ck_assert_uint_eq(modes.mode[2].run, 7);
	ck_assert_uint_eq(modes.mode[2].kinds, LAND);
	failure_modes_add(&modes, 0, 8);
	ck_assert_uint_eq(modes.n,
			  2); /* and what needs nothing includes all but who found nothing */
}

TEST(of_too_many_ways_the_plainest_stay)
{
	struct failure_modes modes = {0};
	const unsigned rare = CLIENT | LAND | PACKET;
	failure_modes_add(&modes, rare, 100);
	for (unsigned i = 0; i < FAILURE_MODES; i++) /* pairs, none in another or in `rare` */
		failure_modes_add(&modes,
				  FAILURE_MODE_CRASH | 1u << (CHOICE_ORDER + i % 4) |
					  (i < 4 ? FAILURE_MODE_SERVER : FAILURE_MODE_BACKGROUND),
				  i);
	ck_assert_uint_eq(modes.n, FAILURE_MODES);
	failure_modes_add(&modes, FAILURE_MODE_CRASHES, 200);
	ck_assert_uint_eq(modes.n, FAILURE_MODES);
	bool found = false;
	for (unsigned i = 0; i < modes.n; i++)
		found |= modes.mode[i].run == 200;
	ck_assert(found);
}

TEST(runs_go_on_when_states_are_used_up)
{
	static const char *const workload[] = {"wr-c", NULL};
	struct campaign c = make_campaign("efactory", "default", "ack_early=off", workload);
	struct campaign_unit few = {0}, all = {0};
	c.options.limits.life_every = 0;
	c.options.runs = 120;
	c.options.states = 300;
	campaign_explore(&c, 0, 0, &few, NULL);
	ck_assert_int_eq(few.error, 0);
	ck_assert_uint_eq(few.counts.runs, 120);
	ck_assert(!few.complete);
	ck_assert_uint_lt(few.counts.states, 1000);
	ck_assert_uint_gt(few.counts.nested_states, 0);
	c.options.runs = 1;
	c.options.states = 20000;
	campaign_explore(&c, 0, 0, &few, NULL);
	memset(&few, 0, sizeof(few));
	campaign_explore(&c, 0, 0, &few, NULL);
	c.options.limits.nested_half = false;
	campaign_explore(&c, 0, 0, &all, NULL);
	ck_assert(few.complete);
	/* Recovery after a cleaning has long ways; without the bound they are most of it. */
	ck_assert_uint_gt(all.counts.nested_states, all.counts.states * 3 / 4);
	ck_assert_uint_lt(few.counts.nested_states, few.counts.states * 3 / 4);
	/* The rest differs by the images that were looked at once more, to stand at their
	 * failures. */
	ck_assert_uint_ge(all.counts.states - all.counts.nested_states,
			  few.counts.states - few.counts.nested_states);
	campaign_free(&c);
}

static bool takes(const struct minimized_failure *one, const char *knob)
{
	for (unsigned k = 0; one->setup.store->knobs[k].name; k++)
		if (!strcmp(one->setup.store->knobs[k].name, knob))
			return one->takes & 1u << k;
	return false;
}

TEST(each_cause_has_a_case)
{
	static const char *const workload[] = {"w-r", "wr-c", NULL};
	static const char *const knob[] = {"timeout", "copy_inflight", "compress_get"};
	struct campaign c = make_campaign("efactory", "literal", "ack_early=off", workload);
	struct minimized *failures = malloc(sizeof(*failures));
	c.options.states = 2000;
	ck_assert_ptr_nonnull(failures);
	ck_assert_int_eq(campaign_run(&c), 0);
	ck_assert(c.cell[0][TM_LIN].broken);
	ck_assert_int_eq(minimized_find(&c, 0, TM_LIN, failures), 0);
	for (unsigned i = 0; i < 3; i++) {
		unsigned found = 0;
		for (unsigned n = 0; n < failures->n; n++)
			found += takes(&failures->found[n], knob[i]);
		ck_assert_msg(found, "no failure that takes %s", knob[i]);
	}
	for (unsigned n = 0; n < failures->n; n++) {
		ck_assert_uint_le(workload_ops(&failures->found[n].setup.w), 3);
		for (unsigned m = 0; m < n; m++)
			ck_assert(!fingerprint_contains(&failures->found[n].fingerprint,
							&failures->found[m].fingerprint) ||
				  failures->found[n].fingerprint.nothing !=
					  failures->found[m].fingerprint.nothing);
	}
	minimized_free(failures);
	free(failures);
	campaign_free(&c);
}

/* The break is in a life of a point that its run alone meets elsewhere first. */
TEST(a_break_is_found_again)
{
	static const char *const workload[] = {"w", NULL};
	struct campaign c = make_campaign("efactory", "entry_unfenced", "ack_early=off", workload);
	struct minimized *failures = malloc(sizeof(*failures));
	const char *expected;
	ck_assert_ptr_nonnull(failures);
	ck_assert_int_eq(setup_knob(&c.config[0].setup, "ack_early", "on", &expected), 0);
	c.options.runs = 1;
	ck_assert_int_eq(campaign_run(&c), 0);
	ck_assert(c.cell[0][TM_MONO].broken);
	ck_assert_int_eq(minimized_find(&c, 0, TM_MONO, failures), 0);
	ck_assert_uint_eq(failures->n, 1);
	minimized_free(failures);
	free(failures);
	campaign_free(&c);
}

RUN_TESTS(NULL, NULL)
