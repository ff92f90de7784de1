/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Livelocks: a loop that reads the same bytes for ever ends soon, and none of these does before its
 * time: a loop that counts, one that waits for a time, for a delayed event or for another task, and
 * one that reads something new in each round.
 */
#include "core/rt/rt.h"
#include "core/rt/sim.h"
#include "tests/suite.h"

#define BUDGET	   1000000
#define GIVE_UP_NS 60000000000u
#define SOON	   20000 /* steps, a livelock included */

static struct sim *sim;
static unsigned steps; /* of the loop */
static uint64_t word, ended_at;

static void setup(void)
{
	sim = sim_new();
	ck_assert_ptr_nonnull(sim);
}

static void teardown(void)
{
	sim_free(sim);
}

static void give_up(struct sim *s, void *arg)
{
	sim_stop(s, SIM_BUDGET);
}

static uint64_t read_at(uint64_t where)
{
	steps++;
	sim_step(sim, STEP_LOAD, 5);
	sim_saw(sim, TOUCH_READ, where, &word, sizeof(word));
	return word;
}

static void over(void)
{
	ended_at = sim_now(sim);
	sim_stop(sim, SIM_DONE);
}

static enum sim_end run(void (*task)(void *))
{
	word = 0;
	steps = 0;
	ended_at = 0;
	sim_reset(sim, NULL);
	sim_set_step_budget(sim, BUDGET);
	sim_at(sim, GIVE_UP_NS, give_up, NULL);
	sim_spawn(sim, 1, NULL, task, NULL);
	return sim_run(sim);
}

static void set_word(struct sim *s, void *arg)
{
	word = 1;
}

/* --- loops without an end --- */

static void spin(void *arg)
{
	while (!read_at(0))
		;
}

static void poll_and_yield(void *arg)
{
	while (!read_at(0) && !read_at(8))
		rt_yield();
}

static void yield_only(void *arg)
{
	for (;; steps++)
		rt_yield();
}

/* A cycle in a list of 100 places. */
static void go_round(void *arg)
{
	for (uint64_t i = 0;; i++)
		read_at(i % 100);
}

static void two_of_them(void *arg)
{
	if (!arg)
		sim_spawn(sim, 2, NULL, two_of_them, &word);
	poll_and_yield(NULL);
}

TESTS(livelocks, 5)
{
	static void (*const loops[])(void *) = {spin, poll_and_yield, yield_only, go_round,
						two_of_them};

	ck_assert_int_eq(run(loops[_i]), SIM_BUDGET);
	ck_assert_uint_eq(sim_now(sim), GIVE_UP_NS);
	ck_assert(sim_repeats(sim));
	ck_assert_uint_gt(steps, 1000);
	ck_assert_uint_lt(steps, SOON);
}

/* --- loops that end --- */

static void count(void *arg)
{
	for (unsigned i = 0; i < 3000; i++)
		read_at(0);
	over();
}

TEST(counts)
{
	ck_assert_int_eq(run(count), SIM_DONE);
	ck_assert_uint_eq(ended_at, 3000 * 5);
}

/* A check that compares all with all, and one that never ends. */
static void compares(void *arg)
{
	sim_repeat_allow(sim, true);
	for (unsigned i = 0; i < BUDGET / 2; i++)
		read_at(i % 100);
	sim_repeat_allow(sim, false);
	over();
}

static void compares_for_ever(void *arg)
{
	sim_repeat_allow(sim, true);
	for (;;)
		read_at(0);
}

static void compares_and_spins(void *arg)
{
	sim_repeat_allow(sim, true);
	sim_repeat_allow(sim, false);
	spin(NULL);
}

TEST(allowed)
{
	ck_assert_int_eq(run(compares), SIM_DONE);
	ck_assert_uint_eq(ended_at, BUDGET / 2 * 5);
	ck_assert_int_eq(run(compares_for_ever), SIM_BUDGET);
	ck_assert_uint_ge(steps, BUDGET);
	ck_assert_int_eq(run(spin), SIM_BUDGET);
	ck_assert_uint_lt(steps, SOON);
	ck_assert_int_eq(run(compares_and_spins), SIM_BUDGET);
	ck_assert_uint_lt(steps, SOON);
}

static void wait_for_a_time(void *arg)
{
	while (rt_now() < 5000000000u)
		read_at(0);
	over();
}

TEST(waits_for_a_time)
{
	ck_assert_int_eq(run(wait_for_a_time), SIM_DONE);
	ck_assert_uint_ge(ended_at, 5000000000u);
	ck_assert_uint_lt(ended_at, 2 * 5000000000u);
	ck_assert_uint_lt(steps, SOON);
}

static void wait_for_the_delayed(void *arg)
{
	sim_delay(sim, 0, 7, 0, set_word, NULL); /* 5 ms */
	while (!read_at(0))
		;
	over();
}

/* It is held up late, and never beyond the end of the delay. */
TEST(waits_for_the_delayed)
{
	ck_assert_int_eq(run(wait_for_the_delayed), SIM_DONE);
	ck_assert_uint_lt(ended_at, choice_delay_ns(7) + 1000);
	ck_assert_uint_gt(steps, 50000);
}

/* A delay of so many steps that the budget would be used up before it ends. */
static void wait_for_100_ms(void *arg)
{
	sim_delay(sim, 0, 8, 0, set_word, NULL);
	while (!read_at(0))
		;
	over();
}

static void wait_for_a_task(void *arg)
{
	if (arg) {
		sim_repeat_pending(sim, choice_delay_ns(8));
		rt_sleep(choice_delay_ns(8));
		word = 1;
		return;
	}
	sim_spawn(sim, 2, NULL, wait_for_a_task, &word);
	poll_and_yield(NULL);
	over();
}

TESTS(waits_for_a_long_delay, 2)
{
	static void (*const loops[])(void *) = {wait_for_100_ms, wait_for_a_task};

	ck_assert_uint_gt(choice_delay_ns(8) / 5, BUDGET);
	ck_assert_int_eq(run(loops[_i]), SIM_DONE);
	ck_assert_uint_ge(ended_at, choice_delay_ns(8));
	ck_assert_uint_lt(ended_at, choice_delay_ns(8) + 1000);
	ck_assert(!sim_repeats(sim));
}

/* Once it has ended, and still nothing is new, time passes faster as ever. */
static void wait_in_vain(void *arg)
{
	sim_repeat_pending(sim, choice_delay_ns(8));
	spin(NULL);
}

TEST(waits_in_vain)
{
	ck_assert_int_eq(run(wait_in_vain), SIM_BUDGET);
	ck_assert_uint_eq(sim_now(sim), GIVE_UP_NS);
	ck_assert(sim_repeats(sim));
	ck_assert_uint_lt(steps, 5 * SOON);
}

static void wait_for_an_event(void *arg)
{
	sim_at(sim, 3000000000ull, set_word, NULL);
	while (!read_at(0))
		rt_yield();
	over();
}

TEST(waits_for_an_event)
{
	ck_assert_int_eq(run(wait_for_an_event), SIM_DONE);
	ck_assert_uint_ge(ended_at, 3000000000ull);
	ck_assert_uint_lt(ended_at, 2 * 3000000000ull);
}

static void always_new(void *arg)
{
	for (uint64_t i = 0; i < 100000; i++) {
		word = i;
		read_at(0);
	}
	over();
}

TEST(reads_something_new)
{
	ck_assert_int_eq(run(always_new), SIM_DONE);
	ck_assert_uint_eq(ended_at, 100000 * 5);
}

/* Operations begin: each may take as many steps as the first. */
static void many_operations(void *arg)
{
	for (unsigned op = 0; op < 20; op++) {
		sim_repeat_news(sim);
		for (unsigned i = 0; i < 3000; i++)
			read_at(0);
	}
	over();
}

TEST(operations_are_news)
{
	ck_assert_int_eq(run(many_operations), SIM_DONE);
	ck_assert_uint_eq(ended_at, 20 * 3000 * 5);
}

/* What was seen before an operation began is new to it: a place after each 3000 reads. */
static void places_of_before(void *arg)
{
	for (unsigned i = 0; i < 3000; i++)
		read_at(8 * (i % 10));
	sim_repeat_news(sim);
	for (unsigned i = 0; i < 30000; i++)
		read_at(i % 3000 ? 0 : 8 * (i / 3000));
	over();
}

TEST(forgets_what_was_seen)
{
	ck_assert_int_eq(run(places_of_before), SIM_DONE);
	ck_assert_uint_eq(ended_at, 33000 * 5);
}

RUN_TESTS(setup, teardown)
