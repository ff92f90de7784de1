/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of recoveries is wrong, by a mutant of it: each function that explores returns
 * -ENOTRECOVERABLE, and gives the run with which it was wrong, or says where its trace is. What the
 * commands make of that is in tests/cli/test_wrong_tree.sh.
 */
#include "checker/hunt/claims.h"
#include "checker/hunt/fuzz_session.h"
#include "checker/hunt/mutants.h"
#include "checker/hunt/soak.h"
#include "checker/judge/expect.h"
#include "checker/trace/minimized.h"
#include "checker/trace/shrink.h"
#include "checker/trace/wrong.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

#define TREE_BUG "mutant=tree_line_left_out"
#define RUNS	 200

/* A campaign with a bug that breaks DUR; it runs every image. */
static struct campaign broken_campaign(void)
{
	static const char *const workload[] = {"w1r2-w2r1", NULL};
	struct campaign c = make_campaign("efactory", "one_flush", TREE_BUG, workload);

	c.options.runs = RUNS;
	c.options.limits.no_tree = true;
	ck_assert_int_eq(campaign_run(&c), 0);
	ck_assert(c.cell[0][TM_DUR].broken);
	return c;
}

static struct campaign_break first_break(const struct campaign *c)
{
	const struct campaign_cell *cell = &c->cell[0][TM_DUR];

	return (struct campaign_break){cell->unit, TM_DUR, cell->mode, BREAK_ANY, 0};
}

/* Check a run with which the tree was wrong, which knows images of power failures only. */
static void check_run(const struct setup *s, const struct deviations *path, const char *text)
{
	unsigned crashes = 0;

	ck_assert_ptr_nonnull(strstr(text, "another outcome"));
	ck_assert(s->regions && s->w.keys);
	for (unsigned i = 0; i < path->n; i++)
		crashes += path->d[i].kind == CHOICE_CRASH;
	ck_assert_uint_ge(crashes, 1);
}

static void check_broken(struct broken_run *run)
{
	check_run(&run->setup, &run->path, run->text);
	broken_run_free(run);
}

static void check_told(const char *why)
{
	ck_assert_ptr_nonnull(strstr(why, "another outcome"));
	ck_assert_ptr_nonnull(strstr(why, WRONG_TRACE));
	ck_assert_int_eq(unlink(WRONG_TRACE), 0);
}

TEST(unit)
{
	struct campaign c = broken_campaign();
	struct campaign_unit u = {0};

	c.options.limits.no_tree = false;
	wrong_explore(&c, 0, 0, &u, NULL);
	ck_assert_int_eq(u.error, -ENOTRECOVERABLE);
	check_told(u.why);
	memset(&u, 0, sizeof(u));
	c.options.exhaustive = true;
	wrong_explore(&c, 0, 0, &u, NULL);
	ck_assert_int_eq(u.error, -ENOTRECOVERABLE);
	check_told(u.why);
	campaign_free(&c);
}

/* Two points with one name: one of them would never be looked at. With whole names there are none.
 */
TEST(names_of_points)
{
	static const char *const workload[] = {"w1r2-w2r1", "ww-rr", "w1-w2-r1r2", NULL};
	static const char *const knob[] = {"mutant=none", "mutant=seen_24_bits"};
	for (unsigned i = 0; i < 2; i++) {
		struct campaign c = make_campaign("efactory", "default", knob[i], workload);
		unsigned wrong = 0;
		c.options.runs = 1000;
		for (unsigned unit = 0; unit < 3; unit++) {
			struct campaign_unit u = {0};
			wrong_explore(&c, unit, 0, &u, NULL);
			wrong += u.error == -ENOTRECOVERABLE;
			ck_assert(!u.error || strstr(u.why, "have one name"));
			if (u.error)
				ck_assert_int_eq(unlink(WRONG_TRACE), 0);
		}
		ck_assert_int_eq(wrong > 0, i);
		campaign_free(&c);
	}
}

TEST(again)
{
	struct campaign c = broken_campaign();
	struct campaign_break which = first_break(&c);
	struct broken_run run;

	/* All of its runs, as the one that is named does not break it. */
	which.mode.run = RUNS;
	which.contract = TM_RDA;
	c.options.limits.no_tree = false;
	ck_assert_int_eq(campaign_again(&c, &which, &run), -ENOTRECOVERABLE);
	check_broken(&run);
	campaign_free(&c);
}

TEST(shrinker)
{
	struct campaign c = broken_campaign();
	const struct campaign_break which = first_break(&c);
	struct broken_run run;
	bool broken;

	ck_assert_int_eq(campaign_again(&c, &which, &run), 0);
	ck_assert_int_eq(broken_run_shrink(&run, TM_DUR, &broken), -ENOTRECOVERABLE);
	check_broken(&run);
	/* That was not one of the contracts that it breaks: so all of its images are tried. */
	ck_assert_int_eq(campaign_again(&c, &which, &run), 0);
	ck_assert_int_eq(
		shrink_breaks(&run.setup, &run.path, TM_RDA, run.text, sizeof(run.text), &broken),
		-ENOTRECOVERABLE);
	check_broken(&run);
	campaign_free(&c);
}

TEST(minimizer)
{
	struct campaign c = broken_campaign();
	struct minimized *found = calloc(1, sizeof(*found));

	ck_assert_ptr_nonnull(found);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq((i ? minimized_first : minimized_find)(&c, 0, TM_DUR, found),
				 -ENOTRECOVERABLE);
		check_run(&found->found[0].setup, &found->found[0].path, found->found[0].text);
		minimized_free(found);
	}
	free(found);
	campaign_free(&c);
}

/* A replay looks at all images of the run for KEEP. Few are enough in some workload. */
TEST(replayed)
{
	const struct deviations none = {0};
	struct replay_outcome *out = malloc(sizeof(*out));
	struct explorer *ex = malloc(sizeof(*ex));
	int error = 0, last = 0;

	ck_assert(out && ex);
	for (unsigned i = 0; !error && !last; i++) {
		struct setup s;
		make_setup(&s, store_find("efactory"), NULL, TREE_BUG);
		last = workload_for_store(s.store, i, &s.w);
		ck_assert_int_eq(setup_finish(&s), 0);
		ck_assert_int_eq(explore_open(ex, &s, &explore_default), 0);
		ck_assert_int_eq(replay(ex, &none, false, NULL, out), 0);
		error = replay(ex, &none, true, NULL, out);
		explore_close(ex);
		setup_free(&s);
	}
	ck_assert_int_eq(error, -ENOTRECOVERABLE);
	free(ex);
	free(out);
}

TEST(fuzzer)
{
	const struct fuzz_options o = {.seed = 1, .runs = 4000};
	struct setup base;
	struct fuzz f;
	int error = 0;

	make_setup(&base, store_find("efactory"), NULL, TREE_BUG);
	ck_assert_int_eq(fuzz_open(&f, &base, &o), 0);
	while (!error && fuzz_more(&f))
		error = fuzz_round(&f);
	ck_assert_int_eq(error, -ENOTRECOVERABLE);
	check_told(f.why);
	fuzz_close(&f);
}

TEST(soaking)
{
	const struct soak_options o = {.seed = 1, .knob = {TREE_BUG}, .knobs = 1};
	unsigned wrong = 0;

	for (uint64_t round = 0; round < 20; round++) {
		struct deviations path = {0};
		struct soak_result r;
		struct setup s;
		int error = soak_round(&o, round, &s, &path, &r);
		ck_assert(!error || error == -ENOTRECOVERABLE);
		if (error)
			check_run(&s, &path, r.text);
		wrong += error != 0;
		deviations_free(&path);
		setup_free(&s);
	}
	ck_assert_uint_gt(wrong, 0);
}

/* A canary of a store may name a knob: so the mutant can be on in a search for seeded bugs. */
TEST(seeded_bugs)
{
	const struct expect_canary with = {
		.store = "efactory", .variant = "one_flush", .workload = NULL, .knob = TREE_BUG};
	const struct mutant m = {.kind = MUTANT_CHECKER,
				 .part = "explorer",
				 .name = "crash_no_older",
				 .canary = &with};
	struct mutant_options o = mutant_default;
	struct mutant_result r;

	ck_assert_int_eq(mutant_search(&m, &o, &r), -ENOTRECOVERABLE);
	check_told(r.text);
}

static const char claims_text[] = "claim X\n"
				  "source nobody\n"
				  "says nothing is torn\n"
				  "case pass RDA efactory " TREE_BUG " : w1r2-w2r1\n";

TEST(claimed)
{
	struct claims claims;
	struct claims_error where = {0};

	ck_assert_msg(!claims_read(&claims, claims_text, &where), "%s", where.text.message);
	const struct claim *claim = &claims.claim[0];
	struct claims_run r = {
		.claim = &claim, .claims = 1, .budget = {.seed = 1, .states = 20000}};
	ck_assert_int_eq(claims_run(&r), -ENOTRECOVERABLE);
	check_told(r.why);
	claims_run_free(&r);
	claims_free(&claims);
}

int main(void)
{
	char dir[] = "/tmp/tidemark-wrong-XXXXXX";

	if (!mkdtemp(dir) || chdir(dir))
		return EXIT_FAILURE;
	int failed = run_suite(listed_suite(NULL, NULL));
	rmdir(dir);
	return failed;
}
