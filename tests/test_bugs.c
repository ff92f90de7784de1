/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeded bugs: every variant that says it breaks something is found to break it, by
 * the runs that a campaign makes and within a campaign's budget; and the stores that
 * are not broken are not found to break what they promise.
 *
 * When a failure counts. A store that breaks a contract anyway proves nothing about a
 * bug, so each variant has a control: the same switches with "bug=none". Where a
 * switch itself is the bug, the control is "default", or for a variant with
 * "confirm=on" the variant "sure", which has that switch too. A failure counts if
 *
 *	- its contract is one of those that the variant names (tm_variant.breaks),
 *	- the control is expected to keep that contract: LIN holds only where a WRITE is
 *	  visible when it completes, so it counts with ack_early=off, and with Erda's
 *	  "sure" also at the default hardware; the others are never among the contracts
 *	  that their store breaks by design (MONO, KEEP and FSCK of eFactory, RDA, LIVE
 *	  and FSCK of Erda),
 *	- and the control, under the same workload and the same runs up to this one, at
 *	  the same hardware, does not break it.
 *
 * How it is searched. Nothing is known of the bug: all built-in workloads are tried in
 * their order, first with one run each, then with more, then with as many as a campaign
 * makes (campaign_default). The first failure that counts ends the search. What a run
 * breaks while the power holds (RDA, LIN, LIVE) is looked for by runs without power
 * failures first, which cost little; a run that breaks something is then explored like
 * all others, after the runs before it and within the states that a campaign allows.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign.h"
#include "checker/names.h"
#include "scenarios/stores.h"

#define MAX_BUGS 128

struct bug {
	const struct tm_store *store;
	const struct tm_variant *variant;
};

static struct bug bugs[MAX_BUGS];
static unsigned bug_count;

static void list_bugs(void)
{
	for (unsigned s = 0; stores[s]; s++) {
		for (const struct tm_variant *v = stores[s]->variants; v->name; v++) {
			if (!v->breaks)
				continue;
			if (bug_count == MAX_BUGS)
				abort();
			bugs[bug_count++] = (struct bug){stores[s], v};
		}
	}
}

/* What is run: a store's variant at some hardware, under the i-th workload. */
struct subject {
	const struct tm_store *store;
	const char *variant;
	bool ack_early;
	unsigned workload;
	bool no_bug; /* the variant's other switches only */
};

/* What came of it. */
struct finding {
	unsigned contract; /* TM_CONTRACTS: none */
	uint64_t run;
	struct explore_counts counts;
	char text[300];
};

/* One subject and its explorer. */
struct bench {
	struct setup setup;
	struct explorer ex;
	struct random_source random;
};

/* NULL: no such workload. */
static struct bench *bench_open(const struct subject *subject)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct explore_limits limits = campaign_default.limits;
	const char *expected;

	ck_assert_ptr_nonnull(b);
	setup_init(&b->setup, subject->store);
	ck_assert_int_eq(setup_variant(&b->setup, subject->variant), 0);
	ck_assert_int_eq(setup_knob(&b->setup, "ack_early", subject->ack_early ? "on" : "off", &expected), 0);
	if (subject->no_bug)
		ck_assert_int_eq(setup_knob(&b->setup, "bug", "none", &expected), 0);
	if (workload_builtin(subject->workload, &b->setup.w)) {
		free(b);
		return NULL;
	}
	limits.states = campaign_default.states;
	ck_assert_int_eq(setup_finish(&b->setup), 0);
	ck_assert_msg(!explore_open(&b->ex, &b->setup, &limits), "%s: %s", subject->variant, b->ex.why);
	return b;
}

static void bench_close(struct bench *b)
{
	deviations_free(&b->random.taken);
	explore_close(&b->ex);
	setup_free(&b->setup);
	free(b);
}

/* The source of a campaign's run. */
static struct source *source_of(struct bench *b, uint64_t run)
{
	b->random.taken.n = 0;
	if (!run)
		return NULL;
	random_start(&b->random, campaign_default.seed * 1000003 + run, campaign_default.deviations);
	return &b->random.source;
}

/* Up to `runs` runs and their power failures, until one of the contracts in `want` breaks. */
static void explore(struct bench *b, unsigned want, uint64_t runs, struct finding *out)
{
	memset(out, 0, sizeof(*out));
	out->contract = TM_CONTRACTS;
	b->ex.stop_at = want;
	for (uint64_t run = 0; run < runs && explore_more(&b->ex); run++) {
		struct source *source = source_of(b, run);
		explore_run(&b->ex, source, &b->random.taken);
	}
	for (unsigned c = TM_CONTRACTS; c-- > 0;) {
		if (!(want & TM_BIT(c)) || !b->ex.failure[c].found)
			continue;
		out->contract = c;
		out->run = b->ex.failure[c].run;
		snprintf(out->text, sizeof(out->text), "%s", b->ex.failure[c].text);
	}
	out->counts = b->ex.counts;
}

/* The first of `runs` runs that breaks one of the contracts in `want` while the power holds; `runs`: none
 * does. */
static uint64_t probe(struct bench *b, unsigned want, uint64_t runs)
{
	struct world *w = &b->ex.worlds.world[0];
	struct judge *judge = calloc(1, sizeof(*judge));
	uint64_t run;

	ck_assert_ptr_nonnull(judge);
	judge_reset(judge);
	for (run = 0; run < runs; run++) {
		struct verdict v[TM_CONTRACTS] = {0};
		struct source *source = source_of(b, run);
		world_run(&b->ex.worlds, source, NULL, NULL);
		judge_prepare(judge, b->ex.worlds.history);
		judge_recovered(judge, b->ex.worlds.history, want & (TM_BIT(TM_RDA) | TM_BIT(TM_LIN)), NULL,
				v);
		bool live_broken = w->result.live_broken && want & TM_BIT(TM_LIVE);
		world_end(&b->ex.worlds, 0);
		if (v[TM_RDA].broken || v[TM_LIN].broken || live_broken)
			break;
	}
	free(judge);
	return run;
}

static bool is_sure(const struct bug *bug)
{
	return strstr(bug->variant->knobs, "confirm=on");
}

/* Contracts of the variant that its control keeps. */
static unsigned countable(const struct bug *bug, bool ack_early)
{
	unsigned set = bug->variant->breaks;

	return ack_early && !is_sure(bug) ? set & ~TM_BIT(TM_LIN) : set;
}

/* Does the control, too, break it by then? */
static bool control_breaks(const struct bug *bug, const struct subject *subject, const struct finding *hit)
{
	struct subject control = *subject;
	struct finding f;

	control.no_bug = strstr(bug->variant->knobs, "bug=");
	if (!control.no_bug)
		control.variant = is_sure(bug) ? "sure" : "default";
	struct bench *b = bench_open(&control);
	explore(b, TM_BIT(hit->contract), hit->run + 1, &f);
	bench_close(b);
	return f.contract == hit->contract;
}

struct phase {
	uint64_t runs, states; /* 0: as many as a campaign allows */
	bool probe;
};

/* One workload. 1: a failure that counts was found; 0: none; -1: no such workload. */
static int try_workload(const struct bug *bug, const struct subject *subject, const struct phase *phase,
			uint64_t *states)
{
	unsigned want = countable(bug, subject->ack_early);
	uint64_t runs = phase->runs ? phase->runs : campaign_default.runs;
	struct finding hit = {.contract = TM_CONTRACTS};
	struct bench *b = bench_open(subject);

	if (!b)
		return -1;
	if (phase->probe) {
		uint64_t run = probe(b, want, runs);
		runs = run < runs ? run + 1 : 0;
	}
	if (phase->states)
		b->ex.limits.states = phase->states;
	if (runs)
		explore(b, want, runs, &hit);
	*states += hit.counts.states;
	bool counts = hit.contract < TM_CONTRACTS && !control_breaks(bug, subject, &hit);
	if (hit.contract < TM_CONTRACTS)
		printf("%-9s%-20s%-6s%-14s run %-5lu%7lu states%s%s\n", bug->store->name, bug->variant->name,
		       contract_name(hit.contract), b->setup.w.name, hit.run, hit.counts.states,
		       subject->ack_early ? "" : ", ack_early=off",
		       counts ? "" : ": does not count, the control breaks it too");
	bench_close(b);
	return counts;
}

START_TEST(bug_is_found)
{
	static const struct phase phases[] = {
		{1, 400, false}, {20, 0, true},	  {20, 2000, false},
		{400, 0, true},	 {200, 0, false}, {0, 0, false},
	};
	const unsigned powered = TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_LIVE),
		       alone = TM_BIT(TM_LIN) | TM_BIT(TM_LIVE);
	const struct bug *bug = &bugs[_i];
	uint64_t states = 0;

	for (unsigned p = 0; p < sizeof(phases) / sizeof(phases[0]); p++) {
		struct phase phase = phases[p];
		for (int early = 1; early >= 0; early--) {
			struct subject subject = {bug->store, bug->variant->name, early, 0, false};
			unsigned want = countable(bug, early);
			int found = 0;
			/* Nothing to look for; or only what needs no power failure, and the probes are not
			 * done. */
			if (!want || (phase.probe && !(want & powered)) ||
			    (!phase.probe && !(want & ~alone) && p < 4))
				continue;
			for (; found >= 0; subject.workload++) {
				found = try_workload(bug, &subject, &phase, &states);
				if (found > 0)
					return;
			}
		}
	}
	ck_abort_msg("%s %s: not found in %lu states (%s)", bug->store->name, bug->variant->name, states,
		     bug->variant->what);
}
END_TEST

/* --- the controls --- */

#define CONTROL_STATES 50000 /* of all together, at least */

static const struct {
	const char *store, *variant;
	bool ack_early;
	unsigned keeps;
} controls[] = {
	{"efactory", "default", true,
	 TM_BIT(TM_RDA) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) | TM_BIT(TM_NORES) | TM_BIT(TM_LIVE) |
		 TM_BIT(TM_FSCK)},
	{"efactory", "default", false,
	 TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_MONO) | TM_BIT(TM_KEEP) | TM_BIT(TM_NORES) |
		 TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK)},
	{"erda", "default", true, TM_BIT(TM_RDA) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK)},
	{"erda", "default", false, TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK)},
	{"erda", "sure", true, TM_BIT(TM_RDA) | TM_BIT(TM_LIN) | TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK)},
};

START_TEST(control_keeps_its_promises)
{
	struct subject subject = {store_find(controls[_i].store), controls[_i].variant,
				  controls[_i].ack_early, 0, false};
	uint64_t states = 0;
	struct finding f;
	struct bench *b;

	ck_assert_ptr_nonnull(subject.store);
	for (; (b = bench_open(&subject)) != NULL; subject.workload++) {
		b->ex.limits.states = CONTROL_STATES / 128;
		explore(b, controls[_i].keeps, 20, &f);
		ck_assert_msg(f.contract == TM_CONTRACTS, "%s %s, %s, run %lu breaks %s: %s",
			      subject.store->name, subject.variant, b->setup.w.name, f.run,
			      contract_name(f.contract), f.text);
		ck_assert_uint_eq(f.counts.unsure, 0);
		states += f.counts.states;
		bench_close(b);
	}
	printf("%-9s%-20s%lu states%s\n", subject.store->name, subject.variant, states,
	       subject.ack_early ? "" : ", ack_early=off");
	ck_assert_uint_ge(states, CONTROL_STATES / 5);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bugs");
	TCase *tc = tcase_create("bugs");
	SRunner *runner;
	int failed;

	list_bugs();
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, bug_is_found, 0, (int)bug_count);
	tcase_add_loop_test(tc, control_keeps_its_promises, 0, (int)(sizeof(controls) / sizeof(controls[0])));
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
