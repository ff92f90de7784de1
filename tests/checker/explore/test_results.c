/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of results: shards of any number do each unit once; merged in any order they are what one
 * machine has; what contradicts itself, and what cannot be written, is told. */
#include <sys/resource.h>
#include "checker/campaign/driver.h"
#include "checker/campaign/results.h"
#include "tests/suite.h"

#define UNITS  60
#define SHARDS 9

struct answer {
	unsigned value, noise;
	char text[100];
};

static struct answer results[UNITS];
static unsigned done, order_broken, last, noise;
static char path[SHARDS][32];

static void work(void *arg, unsigned unit, void *result)
{
	struct answer *a = result;
	a->value = unit * 7 + 1;
	a->noise = noise;
	memset(a->text, (int)unit, sizeof(a->text));
}

static void take(void *arg, unsigned unit, const void *result)
{
	results[unit] = *(const struct answer *)result;
	order_broken += done++ && unit < last;
	last = unit;
}

static uint64_t cost(const void *arg, unsigned unit)
{
	return unit % 3;
}

static bool ranked;

static uint64_t rank(const void *arg, unsigned unit)
{
	return UNITS - unit;
}

static bool same(const void *a, const void *b)
{
	const struct answer *x = a, *y = b;
	return x->value == y->value && !memcmp(x->text, y->text, sizeof(x->text));
}

/* Noise of results that this machine is to blame for. */
#define BLAMED 1000

static bool failed(const void *result)
{
	const struct answer *a = result;
	return a->noise == BLAMED && a->value % 2;
}

static int run(struct results *r, bool priced, bool noisy)
{
	struct driver_bounds bounds = {.results = r};
	struct driver d = {.units = UNITS,
			   .how = {.jobs = 2, .bounds = &bounds},
			   .result_bytes = sizeof(results[0]),
			   .work = work,
			   .take = take,
			   .cost = priced ? cost : NULL,
			   .rank = ranked ? rank : NULL,
			   .same = noisy ? same : NULL,
			   .failed = failed};
	done = order_broken = 0;
	memset(results, 0, sizeof(results));
	return driver_run(&d);
}

static int run_shard(unsigned shard, unsigned shards, bool priced)
{
	struct results r;
	json_t *campaign = json_string("this"), *shown = json_array();
	snprintf(path[shard], sizeof(path[shard]), "part-%u-%u", shards, shard);
	ck_assert_int_eq(results_open_shard(&r, path[shard], campaign, shown, shard, shards), 0);
	int error = run(&r, priced, true);
	results_close(&r);
	json_decref(campaign);
	json_decref(shown);
	return error;
}

static void check_all_values(void)
{
	ck_assert_uint_eq(done, UNITS);
	for (unsigned u = 0; u < UNITS; u++)
		ck_assert_uint_eq(results[u].value, u * 7 + 1);
}

static void check_all(void)
{
	check_all_values();
	ck_assert_uint_eq(order_broken, 0);
}

static void remove_all(unsigned shards)
{
	for (unsigned i = 0; i < shards; i++)
		unlink(path[i]);
}

TESTS(any_number_any_order, 2)
{
	for (unsigned shards = 1; shards <= SHARDS; shards++) {
		unsigned all = 0;
		for (unsigned i = 0; i < shards; i++) {
			ranked = i % 2; /* which unit is whose does not depend on it */
			ck_assert_int_eq(run_shard(i, shards, _i), 0);
			ranked = false;
			/* As many for each as can be. */
			ck_assert_uint_ge(done, UNITS / shards);
			ck_assert_uint_le(done, (UNITS + shards - 1) / shards);
			all += done;
		}
		ck_assert_uint_eq(all, UNITS);
		for (unsigned first = 0; first < shards; first++) {
			struct results r;
			results_open(&r);
			for (unsigned i = 0; i < shards; i++)
				ck_assert_int_eq(results_read(&r, path[(first + i * 2) % shards]),
						 0);
			int error = run(&r, _i, false);
			if (shards % 2) {
				ck_assert_int_eq(error, 0);
				check_all();
			} else if (error) { /* each second one only */
				ck_assert_int_eq(error, -EINTR);
				ck_assert_uint_eq(r.missing, UNITS - done);
				ck_assert(!results_lacks(&r, first, shards));
				ck_assert(results_lacks(&r, (first + 1) % shards, shards));
			}
			results_close(&r);
		}
		remove_all(shards);
	}
}

TEST(goes_on)
{
	ck_assert_int_eq(run_shard(1, 2, true), 0);
	ck_assert_int_eq(truncate(path[1], 900), 0);
	noise = 1;
	ck_assert_int_eq(run_shard(1, 2, true), 0);
	noise = 0;
	ck_assert_uint_eq(done, UNITS / 2);
	unsigned before = 0;
	for (unsigned u = 0; u < UNITS; u++)
		before += results[u].value && !results[u].noise;
	ck_assert_uint_gt(before, 2);
	ck_assert_uint_lt(before, UNITS / 2);
	remove_all(2);
}

/* Two results of one unit: those that differ in what differs each time are the same. */
TESTS(twice, 2)
{
	struct results r;
	ck_assert_int_eq(run_shard(0, 1, false), 0);
	rename(path[0], "other");
	noise = 1;
	ck_assert_int_eq(run_shard(0, 1, false), 0);
	noise = 0;
	results_open(&r);
	ck_assert_int_eq(results_read(&r, "other"), 0);
	ck_assert_int_eq(results_read(&r, path[0]), 0);
	ck_assert_int_eq(run(&r, false, _i), _i ? 0 : -EINVAL);
	if (_i)
		check_all();
	else
		ck_assert(strstr(r.why, " has one result in other and another in part-1-0"));
	results_close(&r);
	unlink("other");
	remove_all(1);
}

/* A unit is in the file of a shard that it is none of. */
TEST(of_another_shard)
{
	struct results r;
	ck_assert_int_eq(run_shard(0, 3, true), 0);
	results_open(&r);
	ck_assert_int_eq(results_read(&r, path[0]), 0);
	ck_assert_int_eq(run(&r, false, true), -EINVAL);
	ck_assert(strstr(r.why, " is none of shard 0/3"));
	results_close(&r);
	remove_all(1);
}

/* What this machine is to blame for is done again the next time. */
TEST(not_kept)
{
	noise = BLAMED;
	ck_assert_int_eq(run_shard(0, 1, false), 0);
	noise = 0;
	ck_assert_uint_eq(done, UNITS);
	ck_assert_int_eq(run_shard(0, 1, false), 0);
	check_all_values();
	for (unsigned u = 0; u < UNITS; u++)
		ck_assert_uint_eq(results[u].noise, results[u].value % 2 ? 0 : BLAMED);
	remove_all(1);
}

TEST(full)
{
	const struct rlimit limit = {600, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(run_shard(0, 1, false), -EFBIG);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	ck_assert_uint_gt(done, 0);
	ck_assert_uint_lt(done, UNITS);
	ck_assert_int_eq(run_shard(0, 1, false), 0);
	ck_assert_uint_eq(done, UNITS);
	remove_all(1);
}

int main(void)
{
	char dir[] = "/tmp/test_results.XXXXXX";

	if (!mkdtemp(dir) || chdir(dir))
		return EXIT_FAILURE;
	int failed = run_suite(listed_suite(NULL, NULL));
	rmdir(dir);
	return failed;
}
