/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RemoteLog's methods while the power holds: no append gets lost or mixed up. Which of them is
 * sound in which configuration, core/stores/remotelog/claims.txt and
 * scenarios/taxonomy/taxonomy.txt say.
 */
#include "checker/campaign/campaign.h"
#include "checker/judge/names.h"
#include "core/stores/bits.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"

#define RUNS   100
#define STATES 500 /* the power is not what matters */

static const char *const methods[] = {
	"w1",  "w1n", "w2",  "w3",   "i1",   "i2",   "i3",  "s1",  "s2",  "s3",
	"s4",  "cw1", "cw2", "cw2p", "cw2c", "cw2f", "cw3", "cw4", "ci1", "ci2",
	"ci3", "ci4", "cs1", "cs1x", "cs2",  "cs3",  "cs4", "wc",  "cwc", "cwcp",
};

static void works(const char *method, const char *knobs, const char *workload)
{
	/* Appends of these end before the server has applied them. */
	const bool late = !strcmp(method, "s3") || !strcmp(method, "s4") ||
			  !strcmp(method, "cs3") || !strcmp(method, "cs4");
	struct explore_limits limits = campaign_default.limits;
	struct random_source random = {0};
	struct explorer ex;
	struct setup s;
	char switches[256];

	snprintf(switches, sizeof(switches), "method=%s domain=wsp rqwrb=pm ack_early=off %s",
		 method, knobs);
	make_whole_setup(&s, store_find("remotelog"), NULL, switches, workload);
	limits.states = STATES;
	limits.life_every = 0;
	ck_assert_msg(!explore_open(&ex, &s, &limits), "%s", ex.why);
	for (uint64_t run = 0; run < RUNS && explore_more(&ex); run++) {
		if (run)
			random_start(&random, campaign_default.seed * 1000003 + run,
				     campaign_default.deviations);
		ck_assert_int_eq(explore_run(&ex, run ? &random.source : NULL, &random.taken), 0);
	}
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		ck_assert_msg(!ex.failure[k].found ||
				      !(TM_BIT(k) & (RDA | FSCK | (late ? 0 : LIN))),
			      "%s, %s: %s breaks", switches, workload, contract_name(k));
	ck_assert_uint_gt(ex.counts.states, 0);
	explore_close(&ex);
	setup_free(&s);
	deviations_free(&random.taken);
}

/* Two writers at a time, records of several packets; many laps of a ring, readers beside writers:
 * what is looked for in log and table is found. */
TESTS(method_works, ROWS_OF(methods))
{
	const char *const workloads[] = {"w-rr", "ycsb-a:clients=2,keys=4,ops=40,vlen=100"};
	const char *const knobs[] = {"slots=2", "slots=4", "slots=4 get=server"};

	works(methods[_i], "", "w-w.1500");
	works(methods[_i], "get=server", "w1-w2r2");
	if (!in_share(_i))
		return;
	for (unsigned w = 0; w < 2; w++)
		for (unsigned k = 0; k < 3; k++)
			works(methods[_i], knobs[k], workloads[w]);
}

RUN_TESTS(NULL, NULL)
