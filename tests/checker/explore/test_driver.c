/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: all units once, whatever the number of processes; what is left when it leaves off. */
#include "core/clock.h"
#include "checker/campaign/driver.h"
#include "tests/suite.h"

#define UNITS	200
#define ENDLESS 8 /* the units from this one on do not end */

static unsigned results[UNITS];
static bool done[UNITS];
static volatile sig_atomic_t stop;

static unsigned result_of(unsigned unit)
{
	return unit * 7 + 1;
}

static void quick(void *arg, unsigned unit, void *result)
{
	*(unsigned *)result = result_of(unit);
}

static void endless(void *arg, unsigned unit, void *result)
{
	while (unit >= ENDLESS)
		pause();
	quick(arg, unit, result);
}

/* As a cost: the first unit first. As a rank: the last one. */
static uint64_t falls(const void *arg, unsigned unit)
{
	return UNITS - unit;
}

static void take_backwards(void *arg, unsigned unit, const void *result)
{
	unsigned *taken = arg;
	ck_assert_uint_eq(unit, UNITS - 1 - *taken);
	++*taken;
}

/* The processes are told as well, as by a terminal. */
static void stop_after_all(void *arg, unsigned unit, const void *result)
{
	unsigned *taken = arg;
	if (++*taken < ENDLESS)
		return;
	stop = 1;
	signal(SIGINT, SIG_IGN);
	kill(0, SIGINT);
}

static struct driver driver_of(unsigned jobs)
{
	return (struct driver){.units = UNITS,
			       .how.jobs = jobs,
			       .result_bytes = sizeof(results[0]),
			       .work = quick,
			       .results = results,
			       .done = done};
}

/* Number of results that have come; each of them is right, and nothing is left of the others. */
static unsigned check_results(const struct driver *d)
{
	unsigned n = 0;
	for (unsigned u = 0; u < UNITS; u++) {
		ck_assert_uint_eq(results[u], done[u] ? result_of(u) : 0);
		n += done[u];
	}
	ck_assert_uint_eq(n, d->at.done);
	return n;
}

TEST(every_unit_once)
{
	for (unsigned jobs = 1; jobs <= 3; jobs++) {
		struct driver d = driver_of(jobs);
		memset(results, 0, sizeof(results));
		memset(done, 0, sizeof(done));
		ck_assert_int_eq(driver_run(&d), 0);
		ck_assert_uint_eq(check_results(&d), UNITS);
	}
}

/* Ranks weigh more than costs. */
TEST(by_rank)
{
	struct driver d = driver_of(1);
	unsigned taken = 0;
	memset(results, 0, sizeof(results));
	d.rank = falls;
	d.cost = falls;
	d.take = take_backwards;
	d.arg = &taken;
	ck_assert_int_eq(driver_run(&d), 0);
	ck_assert_uint_eq(check_results(&d), UNITS);
}

TEST(stopped)
{
	struct driver_bounds bounds = {.stop = &stop};
	struct driver d = driver_of(2);
	unsigned taken = 0;
	setpgid(0, 0); /* of the processes that are signalled */
	d.work = endless;
	d.take = stop_after_all;
	d.arg = &taken;
	d.how.bounds = &bounds;
	ck_assert_int_eq(driver_run(&d), -EINTR);
	ck_assert_uint_eq(check_results(&d), ENDLESS);
}

TEST(out_of_time)
{
	struct driver_bounds bounds = {.stop = &stop, .until = clock_seconds() + 0.2};
	struct driver d = driver_of(2);
	d.work = endless;
	d.how.bounds = &bounds;
	ck_assert_int_eq(driver_run(&d), -EINTR);
	ck_assert_uint_le(check_results(&d), ENDLESS);
}

/* A process that ends in the middle of its work is no reason to wait, nor taken for a stop. */
static void dies(void *arg, unsigned unit, void *result)
{
	if (unit == ENDLESS)
		_exit(1);
	quick(arg, unit, result);
}

TEST(process_died)
{
	struct driver_bounds bounds = {.stop = &stop};
	struct driver d = driver_of(1);
	d.work = dies;
	d.how.bounds = &bounds;
	ck_assert_int_eq(driver_run(&d), -ECHILD);
	ck_assert_uint_eq(check_results(&d), ENDLESS);
}

RUN_TESTS(NULL, NULL)
