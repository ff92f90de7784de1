/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of recoveries, and the tree of schedules, by which runs go on from checkpoints of
 * earlier ones or are not made again: with both, all that is counted and found is as without; each
 * of their mutants is noticed, by that comparison or by the canary; the tree keeps to its room, and
 * is kept for the next explorer.
 */
#include <sys/wait.h>
#include "checker/campaign/campaign.h"
#include "checker/campaign/schedule.h"
#include "checker/campaign/search.h"
#include "core/rt/asan.h"
#include "faultinject/bytes.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"
#include "faultinject/random_source.h"

#define RUNS	   40
#define SMALL_TREE 3000	     /* bytes: less than a case takes */
#define FEW_RUNS   (1 << 20) /* likewise: few of the runs that were made find room in this */

/* With fewer, no run repeats another one. */
static uint64_t many_runs(void)
{
	return TM_ASAN ? RUNS / 2 : is_quick() ? RUNS : 3 * RUNS;
}

struct tried {
	const char *store, *variant, *workload, *knob;
};

/* Stores that hold and stores that break, in each contract; lives, second failures, a tearing
 * machine, more images than are tried. */
static const struct tried tried[] = {
	{"efactory", "default", "w-r", "ddio=on"},
	{"efactory", "default", "w1r2-w2r1", "ddio=on"},
	{"efactory", "default", "w1w2-c", "ddio=on"},
	{"efactory", "recover_no_crc", "w1r2-w2r1", "ddio=on"},
	{"efactory", "default", "w-r", "line_torn=any"},
	{"erda", "default", "w1r2-w2r1", "ddio=on"},
	{"erda", "default", "w-w-r", "ddio=off"},
	{"erda", "scan_all", "ww-rr", "ddio=on"},
	{"efactory", "recover_next", "ww", "ddio=on"},
	{"ca", "default", "w-r", "ddio=on"},
	{"forca", "default", "w1r2-w2r1", "ddio=on"},
	{"herd", "default", "w-r", "ddio=on"},
	{"remotelog", "default", "w1r2-w2r1", "store_buffer=4"},
	{"efactory", "default", "w1r2-w2r1", "domain=wsp"},
	{"efactory", "default", "w1r2-w2r1", "store_buffer=8"},
	{"erda", "default", "w1r2-w2r1", "nt_stores=buffered"},
	{"efactory", "default", "c-lrwr", "ddio=on"},
	{"efactory", "default", "new-w-wr", "ddio=on"},
	{"efactory", "default", "w-rr", "ddio=on"},
	{"efactory", "default", "w1w2-c", "domain=mhp"},
	{"nessie", "literal", "w1r2-w2r1", "ddio=on"},
};

static struct bench *bench(const struct tried *t, const struct explore_limits *limits)
{
	struct setup setup;

	make_whole_setup(&setup, store_find(t->store), t->variant, t->knob, t->workload);
	return make_bench(&setup, limits);
}

static void explore_runs(struct bench *b, uint64_t runs)
{
	struct schedule schedule;

	ck_assert_int_eq(schedule_open(&schedule, &b->ex.worlds, 1, campaign_default.deviations),
			 0);
	int error = 0;
	for (uint64_t run = 0; run < runs && !error; run++) {
		b->ex.run_states = b->run_states * (run + 1);
		error = explore_run(&b->ex, schedule_run(&schedule, run), &schedule.random.taken);
	}
	ck_assert_int_eq(error, b->ex.wrong.found ? -ENOTRECOVERABLE : 0);
	schedule_close(&schedule);
}

static struct bench *explored(const struct tried *t, const struct explore_limits *limits,
			      uint64_t runs)
{
	struct bench *b = bench(t, limits);

	explore_runs(b, runs);
	return b;
}

/* What was tried of eFactory. */
static const struct tried *tried_with(const char *workload, const char *knob)
{
	const struct tried *t = tried;

	while (strcmp(t->store, "efactory") || strcmp(t->workload, workload) ||
	       strcmp(t->knob, knob))
		ck_assert(++t < tried + ROWS_OF(tried));
	return t;
}

/* Is all that the explorers say the same? */
static bool alike(const struct explorer *a, const struct explorer *b)
{
	if (memcmp(&a->counts, &b->counts, sizeof(a->counts)) ||
	    memcmp(a->broken, b->broken, sizeof(a->broken)) ||
	    memcmp(a->modes, b->modes, sizeof(a->modes)))
		return false;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct failure *x = &a->failure[c], *y = &b->failure[c];
		if (x->found != y->found)
			return false;
		if (x->found && (x->run != y->run || strcmp(x->text, y->text) ||
				 x->deviations.n != y->deviations.n))
			return false;
		for (unsigned i = 0; x->found && i < x->deviations.n; i++)
			if (deviation_key(&x->deviations.d[i]) !=
				    deviation_key(&y->deviations.d[i]) ||
			    x->deviations.d[i].answer != y->deviations.d[i].answer)
				return false;
	}
	return true;
}

/* Inputs of the fuzzer, each a change of an earlier one, or the same: the first run of a kind is
 * seen to end, the second one is noted. */
static void explore_inputs(struct bench *b, unsigned inputs)
{
	uint8_t input[6 * RECORD_BYTES] = {0};
	struct byte_source source = {0};
	uint64_t random = 1;

	int error = b->ex.wrong.found ? -ENOTRECOVERABLE : 0;
	for (unsigned i = 0; i < inputs && !error; i++) {
		uint8_t *record = input + random_next(&random) % 6 * RECORD_BYTES;
		if (i % 4 && random_next(&random) % 4)
			record = (uint8_t[RECORD_BYTES]){0};
		record[0] = (uint8_t)random_next(&random);
		record[1] = (uint8_t)(random_next(&random) % 32);
		record[2] = (uint8_t)random_next(&random);
		bytes_start(&source, input, sizeof(input), false);
		error = explore_run(&b->ex, &source.source, &source.taken);
	}
	ck_assert_int_eq(error, b->ex.wrong.found ? -ENOTRECOVERABLE : 0);
	deviations_free(&source.taken);
}

static void explore_all(struct bench *b, uint64_t runs, bool inputs)
{
	explore_runs(b, runs);
	if (inputs)
		explore_inputs(b, (unsigned)runs);
}

/* Does the tree with these limits contradict plain runs of one of the cases? */
static bool is_noticed(const struct explore_limits *limits, uint64_t runs, uint64_t run_states)
{
	struct explore_limits plain = *limits;

	plain.no_tree = true;
	for (unsigned i = 0; i < ROWS_OF(tried); i++) {
		struct bench *without = bench(&tried[i], &plain), *with = bench(&tried[i], limits);
		without->run_states = with->run_states = run_states;
		bool inputs = limits->checkpoint_mutant == PREFIX_BROKEN;
		explore_all(with, runs, inputs);
		bool noticed = with->ex.wrong.found;
		if (!noticed) { /* the canary says nothing: is there a difference? */
			explore_all(without, runs, inputs);
			noticed = !alike(&with->ex, &without->ex);
		}
		bench_free(with);
		bench_free(without);
		if (noticed)
			return true;
	}
	return false;
}

/* Both say the same, and the canary says nothing. */
static void free_alike(struct bench *with, struct bench *without)
{
	ck_assert(!with->ex.wrong.found);
	ck_assert(alike(&with->ex, &without->ex));
	bench_free(with);
	bench_free(without);
}

TESTS(same_with_tree, ROWS_OF(tried))
{
	struct explore_limits plain = campaign_default.limits, limits = plain;

	plain.no_tree = true;
	struct bench *without = bench(&tried[_i], &plain), *with = bench(&tried[_i], &limits);
	explore_runs(without, many_runs());
	explore_runs(with, many_runs());
	ck_assert_uint_gt(with->ex.recall.recalled, with->ex.counts.states / 8);
	ck_assert_uint_gt(with->ex.recall.led, 0);
	ck_assert_uint_eq(without->ex.recall.recalled, 0);
	ck_assert_uint_eq(without->ex.resumed, 0);
	ck_assert_uint_eq(without->ex.repeated, 0);
	if (!TM_ASAN)
		ck_assert_uint_gt(with->ex.resumed + with->ex.repeated, with->ex.counts.runs / 2);
	free_alike(with, without);
}

/* With little room it forgets, and is right all the same. */
TESTS(small_tree, ROWS_OF(tried) / 3)
{
	struct explore_limits plain = campaign_default.limits, limits = plain;
	struct tree_counts counts;

	plain.no_tree = true;
	limits.tree_bytes = SMALL_TREE;
	struct bench *without = bench(&tried[3 * _i], &plain),
		     *with = bench(&tried[3 * _i], &limits);
	explore_runs(without, RUNS);
	explore_runs(with, RUNS);
	tree_count(with->ex.recall.tree, &counts);
	ck_assert_uint_gt(counts.forgotten, 0);
	free_alike(with, without);
}

TESTS(mutant_is_noticed, TREE_MUTANTS)
{
	if (_i <= TREE_MUTANT_NONE || !in_share(_i))
		return;
	struct explore_limits limits = campaign_default.limits;

	limits.tree_mutant = (enum tree_mutant)_i;
	limits.share_tree = true;
	if (_i == TREE_WRONG_LEAF)
		limits.tree_bytes = SMALL_TREE;
	if (_i == TREE_LIFE_MACHINE) { /* the same life on two machines is rare */
		limits.life_every = 1;
		limits.life_percent = 0;
	}
	ck_assert(is_noticed(&limits, _i == TREE_LIFE_MACHINE ? 2 : RUNS, 0));
}

TESTS(checkpoint_mutant_is_noticed, CHECKPOINT_MUTANTS)
{
	if (_i <= CHECKPOINT_MUTANT_NONE)
		return;
	struct explore_limits limits = campaign_default.limits;

	if (TM_ASAN) /* there are no checkpoints */
		return;
	limits.checkpoint_mutant = (enum checkpoint_mutant)_i;
	if (_i == PREFIX_STALE)
		limits.tree_bytes = FEW_RUNS;
	/* Runs that many others go on from, or repeat, are rare in the beginning. */
	const uint64_t runs = _i < CHECKPOINT_OTHER_BRANCH ? RUNS
			      : _i < PREFIX_BROKEN	   ? 5 * RUNS
							   : 10 * RUNS;
	/* Some are noticed by an assertion; then the process ends, as one of a campaign would. */
	pid_t child = fork();
	int status = 0;
	ck_assert_int_ge(child, 0);
	if (!child) {
		fclose(stderr);
		_exit(is_noticed(&limits, runs, _i == PREFIX_CUT_SHORT ? 20 : 0));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_ne(status, 0);
}

/* The canary alone notices what the runs of a search without a tree could not tell. */
TEST(canary_names_the_run)
{
	struct explore_limits limits = campaign_default.limits;

	if (TM_ASAN)
		return;
	limits.checkpoint_mutant = CHECKPOINT_NO_CLOCK;
	struct bench *b = bench(tried_with("w1w2-c", "ddio=on"), &limits);
	explore_runs(b, RUNS);
	ck_assert(b->ex.wrong.found);
	ck_assert_ptr_nonnull(strstr(b->ex.wrong.text, "checkpoint"));
	bench_free(b);
}

/* The same for a run that is only taken for one that was made before. */
TEST(canary_names_the_repetition)
{
	struct explore_limits limits = campaign_default.limits;

	if (TM_ASAN)
		return;
	limits.checkpoint_mutant = PREFIX_WRONG_RUN;
	struct bench *b = bench(tried_with("w1r2-w2r1", "ddio=on"), &limits);
	explore_runs(b, 100 * RUNS);
	ck_assert(b->ex.wrong.found);
	ck_assert_uint_gt(b->ex.repeated, 0);
	ck_assert_ptr_nonnull(strstr(b->ex.wrong.text, "taken for another"));
	bench_free(b);
}

/* As in a campaign, where each run has a share of the states: what is left out in one may be done
 * in a later one that is the same. And with room for few of the runs that were made. */
TESTS(repeated_runs, 2)
{
	struct explore_limits plain = campaign_default.limits, limits = plain;
	const uint64_t run_states = _i % 2 ? 20 : 0;

	if (TM_ASAN) /* no run is led along a tree */
		return;
	plain.no_tree = true;
	if (run_states)
		limits.tree_bytes = FEW_RUNS;
	for (unsigned i = 0; i < ROWS_OF(tried); i += 3) {
		struct bench *without = bench(&tried[i], &plain), *with = bench(&tried[i], &limits);
		without->run_states = with->run_states = run_states;
		explore_runs(without, many_runs());
		explore_runs(with, many_runs());
		if (!run_states)
			ck_assert_uint_gt(with->ex.repeated, 0);
		free_alike(with, without);
	}
}

TESTS(repeated_inputs, ROWS_OF(tried) / 3)
{
	struct explore_limits plain = campaign_default.limits, limits = plain;

	if (TM_ASAN) /* no run is led along a tree */
		return;
	plain.no_tree = true;
	struct bench *without = bench(&tried[3 * _i], &plain),
		     *with = bench(&tried[3 * _i], &limits);
	explore_inputs(without, (unsigned)many_runs());
	explore_inputs(with, (unsigned)many_runs());
	ck_assert_uint_gt(with->ex.repeated, 0);
	free_alike(with, without);
}

/* The first run that goes on from a checkpoint, and so is looked at by the canary, uses up the
 * budget: it ends early, and the whole run does not. */
static bool ends_early(uint64_t seed)
{
	struct explore_limits limits = campaign_default.limits;
	struct schedule schedule;
	struct bench *b = bench(tried_with("w1r2-w2r1", "ddio=on"), &limits);

	ck_assert_int_eq(schedule_open(&schedule, &b->ex.worlds, seed, campaign_default.deviations),
			 0);
	for (uint64_t run = 0; !b->ex.resumed; run++) {
		b->ex.limits.states = run == b->ex.record.at ? b->ex.counts.states + 1 : UINT64_MAX;
		ck_assert_int_eq(
			explore_run(&b->ex, schedule_run(&schedule, run), &schedule.random.taken),
			0);
	}
	const bool early = b->ex.counts.states >= b->ex.limits.states;
	schedule_close(&schedule);
	bench_free(b);
	return early;
}

TEST(budget_ends_a_run)
{
	unsigned early = 0;

	for (uint64_t seed = 1; seed <= 20 && !TM_ASAN; seed++)
		early += ends_early(seed);
	ck_assert(early || TM_ASAN);
}

static bool search_all(struct bench *b, struct search *search)
{
	struct search_limits limits = search_default;

	limits.faults = 1;
	ck_assert_int_eq(search_run(search, &b->ex, &limits), 0);
	const bool complete = search->complete;
	search_close(search);
	return complete;
}

static const struct tried searched[] = {
	{"remotelog", "default", "w", "store_buffer=4"},
	{"erda", "default", "w-w", "ddio=on"},
	{"erda", "default", "ww", "ddio=off"},
	{"efactory", "default", "w-r", "ddio=on"},
};

/* A systematic search goes on from marks of the runs that it branches off. */
TESTS(search_with_marks, ROWS_OF(searched))
{
	if (!in_share(_i))
		return;
	struct explore_limits limits = campaign_default.limits, plain = limits;
	struct search *search = malloc(sizeof(*search));
	bool complete;

	ck_assert_ptr_nonnull(search);
	plain.no_tree = true;
	struct bench *without = bench(&searched[_i], &plain);
	complete = search_all(without, search);
	for (unsigned m = 0; m < 2; m++) {
		limits.checkpoint_mutant = m ? CHECKPOINT_NO_POINTS : CHECKPOINT_MUTANT_NONE;
		struct bench *with = bench(&searched[_i], &limits);
		const bool same = search_all(with, search) == complete &&
				  alike(&with->ex, &without->ex);
		ck_assert_int_eq(same, !m || TM_ASAN);
		bench_free(with);
	}
	bench_free(without);
	free(search);
}

/* The second of two explorers with equal parameters finds what the first one has learnt, and says
 * what it says without a tree. With other hardware it finds nothing. */
TEST(shared_tree)
{
	const struct tried *first = tried_with("w-r", "ddio=on"),
			   *equal = tried_with("w-rr", "ddio=on"),
			   *other = &(struct tried){"efactory", "default", "w-rr", "domain=mhp"};
	struct explore_limits plain = campaign_default.limits, limits = plain;

	plain.no_tree = true;
	ck_assert(limits.share_tree);
	bench_free(explored(first, &limits, RUNS));
	struct bench *with = explored(other, &limits, 0);
	ck_assert_uint_eq(with->ex.recall.learnt, 0);
	bench_free(with);
	with = bench(equal, &limits);
	ck_assert_uint_gt(with->ex.recall.learnt, 0);
	explore_runs(with, RUNS);
	struct bench *without = explored(equal, &plain, RUNS);
	free_alike(with, without);
}

/* The run that the canary gave up is there to be looked at. */
TEST(canary_names_the_image)
{
	struct explore_limits limits = campaign_default.limits;

	limits.tree_mutant = TREE_LINE_LEFT_OUT;
	struct bench *b = bench(tried_with("w1r2-w2r1", "ddio=on"), &limits);
	explore_runs(b, 10 * RUNS);
	ck_assert(b->ex.wrong.found);
	ck_assert(!explore_more(&b->ex));
	const struct deviations *list = &b->ex.wrong.deviations;
	unsigned crashes = 0;
	for (unsigned i = 0; i < list->n; i++)
		crashes += list->d[i].kind == CHOICE_CRASH;
	ck_assert_uint_ge(crashes, 1);
	bench_free(b);
}

RUN_TESTS(NULL, NULL)
