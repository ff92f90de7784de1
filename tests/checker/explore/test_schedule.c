/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs that stop a task twice: a run that is stopped is recorded, and the second stop is at a step
 * of the work as it is then, which the plain run does not have.
 */
#include "checker/campaign/schedule.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

#define RUNS	    1200
#define AGAIN_EVERY 4 /* as checker/campaign/schedule.c: runs of this residue stop twice */

struct scheduled {
	struct setup setup;
	struct worlds worlds;
	struct schedule schedule;
};

static struct scheduled *bench(const char *store, const char *workload, uint64_t seed)
{
	struct scheduled *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	make_whole_setup(&b->setup, store_find(store), NULL, "", workload);
	ck_assert_int_eq(worlds_open(&b->worlds, &b->setup), 0);
	/* One more deviation is drawn, at most. */
	ck_assert_int_eq(schedule_open(&b->schedule, &b->worlds, seed, 1), 0);
	return b;
}

static void free_bench(struct scheduled *b)
{
	schedule_close(&b->schedule);
	worlds_close(&b->worlds);
	setup_free(&b->setup);
	free(b);
}

static const struct deviations *run(struct scheduled *b, uint64_t n)
{
	struct source *source = schedule_run(&b->schedule, n);

	world_run(&b->worlds, source, NULL, NULL);
	world_end(&b->worlds, 0);
	return &b->schedule.random.taken;
}

/* A step of a task of the server that works for no operation. */
static bool in_background(const struct deviation *d)
{
	return d->kind == CHOICE_STEP && !strncmp(d->who, "server", 6) && d->op.kind == OP_NONE;
}

/* Does the plain run have that step? */
static bool is_plain(const struct stops *plain, const struct deviation *d)
{
	for (unsigned g = 0; g < STOP_GROUPS; g++)
		for (unsigned i = 0; i < plain->group[g].n; i++)
			if (plain->group[g].point[i].key == deviation_key(d))
				return true;
	return false;
}

TEST(second_stop_is_of_the_stopped_run)
{
	struct scheduled *b = bench("efactory", "ww-cpcw", 1);
	unsigned twice = 0, beyond = 0;

	for (uint64_t n = 1; n < RUNS; n += AGAIN_EVERY) {
		const struct deviations *list = run(b, n);
		unsigned stops = 0;
		for (unsigned i = 0; i < list->n; i++) {
			stops += in_background(&list->d[i]);
			beyond += stops == 2 && in_background(&list->d[i]) &&
				  !is_plain(&b->schedule.stops, &list->d[i]);
		}
		twice += stops >= 2;
	}
	ck_assert_uint_gt(twice, RUNS / AGAIN_EVERY / 4);
	ck_assert_uint_gt(beyond, 0);
	free_bench(b);
}

/* A run depends on its number and the seed alone, not on the runs before it. */
TEST(any_order)
{
	struct scheduled *b[2] = {bench("efactory", "ww-cpcw", 7), bench("efactory", "ww-cpcw", 7)};
	uint64_t history[100];
	unsigned deviations[100];

	for (unsigned n = 0; n < 100; n++) {
		deviations[n] = run(b[0], n)->n;
		history[n] = b[0]->worlds.history->hash;
	}
	for (unsigned n = 100; n-- > 0;) {
		ck_assert_uint_eq(run(b[1], n)->n, deviations[n]);
		ck_assert_uint_eq(b[1]->worlds.history->hash, history[n]);
	}
	free_bench(b[0]);
	free_bench(b[1]);
}

/* Where the server does nothing of its own, its handling of requests is stopped. */
TEST(handlers_stop_twice)
{
	struct scheduled *b = bench("ca", "w-w", 1);
	unsigned stopped = 0;

	for (uint64_t n = 1; n < 100; n += AGAIN_EVERY) {
		run(b, n);
		stopped += b->schedule.can_stop_again;
	}
	ck_assert_uint_gt(stopped, 0);
	free_bench(b);
}

/* No task can be held meanwhile: there is one client. */
TEST(nothing_to_stop_twice)
{
	struct scheduled *b = bench("ca", "w", 1);

	for (uint64_t n = 1; n < 100; n += AGAIN_EVERY) {
		run(b, n);
		ck_assert(!b->schedule.can_stop_again);
	}
	free_bench(b);
}

RUN_TESTS(NULL, NULL)
