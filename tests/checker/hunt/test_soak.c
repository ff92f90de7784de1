/* SPDX-License-Identifier: BSD-3-Clause */
/* Soaking: a round depends on its number alone; what counts; a break is found, shrunk and
 * replays. */
#include "checker/trace/replay.h"
#include "checker/hunt/soak.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"

#define ROUNDS 300

static const struct soak_options plain = {.seed = 7};

TEST(rounds_differ)
{
	unsigned hardware = 0, ycsb = 0, erda = 0, lin = 0, from_right = 0;

	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct setup s;
		unsigned want;

		ck_assert_int_eq(soak_setup(&plain, round, &s, &want), 0);
		ck_assert_uint_eq(s.hw.mutant, 0);
		/* eFactory says that this switch breaks it; for the other stores it is drawn. */
		ck_assert(!s.hw.read_right || strcmp(s.store->name, "efactory"));
		from_right += s.hw.read_right;
		hardware += !!memcmp(&s.hw, &hardware_default, sizeof(s.hw));
		ycsb += !strncmp(s.w.name, "ycsb", 4);
		erda += !strcmp(s.store->name, "erda");
		ck_assert(want & TM_BIT(TM_RDA) && want & TM_BIT(TM_LIVE) &&
			  want & TM_BIT(TM_FSCK));
		/* RDMP-KV's server answers when all is there and durable. */
		bool sure = !strcmp(s.store->name, "rdmp_kv");
		ck_assert_int_eq(!!(want & TM_BIT(TM_DUR)), sure);
		ck_assert_int_eq(!!(want & TM_BIT(TM_BUF)), sure);
		/* LIN counts where a WRITE is visible when it completes, and for eFactory only. */
		bool visible = !s.hw.ack_early && s.hw.transport == TRANSPORT_IB;
		ck_assert_int_eq(!!(want & TM_BIT(TM_LIN)),
				 sure || (visible && strcmp(s.store->name, "erda")));
		lin += !!(want & TM_BIT(TM_LIN));
		setup_free(&s);
	}
	ck_assert_uint_gt(hardware, ROUNDS / 2);
	ck_assert_uint_gt(erda, ROUNDS / 4);
	ck_assert_uint_lt(erda, ROUNDS - ROUNDS / 4);
	ck_assert_uint_gt(ycsb, ROUNDS / 8);
	ck_assert_uint_gt(lin, ROUNDS / 40);
	ck_assert_uint_gt(from_right, ROUNDS / 20);
}

TEST(round_is_deterministic)
{
	for (uint64_t round = 3; round < 3 + rounds(3); round++) {
		struct soak_result r[2];
		for (unsigned i = 0; i < 2; i++) {
			struct deviations path = {0};
			struct setup s;
			ck_assert_int_eq(soak_round(&plain, round, &s, &path, &r[i]), 0);
			ck_assert_uint_eq(r[i].contract, TM_CONTRACTS);
			ck_assert_uint_gt(r[i].counts.states, 0);
			ck_assert_uint_gt(r[i].rss_kib, 0);
			r[i].rss_kib = r[i].peak_kib = 0;
			deviations_free(&path);
			setup_free(&s);
		}
		ck_assert_mem_eq(&r[0], &r[1], sizeof(r[0]));
	}
}

/* With a bug of the memory something breaks soon, and its smallest case replays. */
TEST(break_is_found)
{
	const struct soak_options o = {.seed = 1, .knob = {"mutant=pm_fence_one"}, .knobs = 1};
	struct deviations path = {0};
	struct soak_result r = {.contract = TM_CONTRACTS};
	struct setup s;

	for (uint64_t round = 0; round < ROUNDS && r.contract == TM_CONTRACTS; round++) {
		if (round)
			setup_free(&s);
		ck_assert_int_eq(soak_round(&o, round, &s, &path, &r), 0);
	}
	ck_assert_uint_lt(r.contract, TM_CONTRACTS);
	const struct replay_outcome *again = replayed(&s, &path, r.contract);
	ck_assert_ptr_null(again->unused);
	ck_assert(again->verdict[r.contract].broken);
	deviations_free(&path);
	setup_free(&s);
}

TEST(growth_takes_rounds)
{
	struct soak_totals t = {.rounds = SOAK_FEW_ROUNDS, .early_kib = 20000, .late_kib = 90000};
	ck_assert(soak_grows(&t));
	t.late_kib = t.early_kib;
	ck_assert(!soak_grows(&t));
	t.late_kib = 90000;
	t.rounds--; /* caches may still fill */
	ck_assert(!soak_grows(&t));
}

RUN_TESTS(NULL, NULL)
