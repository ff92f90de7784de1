/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Experiments in virtual time: a profile's costs are what time passes by, and what it limits is
 * limited; garbage in the table of figures is refused with its line.
 */
#include "checker/models/figures.h"
#include "core/text/text.h"
#include "tests/suite.h"

static const char head[] = "figure T\nsource none\nsays nothing\npaper none\n";

/* One side's figure. */
static double measure(const char *how, const char *side, const struct profile *p)
{
	struct input_error error;
	struct figures all;
	char text[500], why[300] = "";
	double out = 0;

	snprintf(text, sizeof(text), "%smeasure %s\nside a %s\nside b %s\nexpect a b - -\n", head,
		 how, side, side);
	ck_assert_msg(!figures_read(&all, text, &error), "%s", error.message);
	ck_assert_msg(!figure_measure(&all.figure[0], &all.figure[0].side[0],
				      all.figure[0].value[0], p, &out, why),
		      "%s", why);
	figures_free(&all);
	return out;
}

static struct profile of_hosts(unsigned cpus)
{
	struct profile p = profile_default;

	p.cpus = cpus;
	return p;
}

/* A GET of two READs crosses the wire four times. */
TESTS(time_is_as_the_profile_says, 2)
{
	struct profile p = of_hosts((unsigned)_i);
	double before = measure("get values=64 reads=100 keys=1", "saw_imm", &p);

	p.flight += 1000;
	ck_assert_double_eq(measure("get values=64 reads=100 keys=1", "saw_imm", &p),
			    before + 4000);
	p.land += 100;
	ck_assert_double_ge(measure("get values=64 reads=100 keys=1", "saw_imm", &p),
			    before + 4200);
}

/* A PUT of w1: the server flushes one range, and fences once. */
TESTS(work_takes_its_time, 2)
{
	struct profile p = of_hosts((unsigned)_i);
	const double before = measure("put values=192 keys=1", "saw_imm/rpc", &p);
	double fence, copy;

	p.fence += 10000;
	fence = measure("put values=192 keys=1", "saw_imm/rpc", &p) - before;
	ck_assert_double_ge(fence, 10000);
	ck_assert(fence / 10000 == (double)(int)(fence / 10000));
	p = of_hosts((unsigned)_i);
	p.copy = 1000000;
	copy = measure("put values=192 keys=1", "saw_imm/rpc", &p) - before;
	ck_assert_double_ge(copy, 64000);
	ck_assert_double_le(copy, 64000 + 200000);
}

/* Operations a second of 8 clients. */
static double rate(const char *side, const char *how, const struct profile *p)
{
	char text[100];

	snprintf(text, sizeof(text), "throughput %s clients=8", how);
	return measure(text, side, p);
}

static void assert_limited(double rate, double limit)
{
	ck_assert_double_le(rate, 1.03 * limit); /* the window's ends are not both in */
	ck_assert_double_ge(rate, 0.85 * limit);
}

TEST(wire_limits)
{
	struct profile p = of_hosts(8);

	p.wire = 500;
	assert_limited(rate("saw_imm", "values=4096 reads=100", &p), 500e6 / (4096 + 58 + 64 + 58));
}

/* Two requests of each GET come to the server's NIC, and two responses leave it. */
TEST(messages_limit)
{
	struct profile p = of_hosts(8);

	p.packet = 5000;
	assert_limited(rate("saw_imm", "values=64 reads=100 keys=1", &p), 1e9 / (2 * 5000));
}

TEST(pm_limits)
{
	struct profile p = of_hosts(8);
	double got;

	p.pm_write = 100;
	got = rate("saw_imm/rpc", "values=4096", &p);
	ck_assert_double_le(got, 100e6 / 4096 * 1.03);
	ck_assert_double_ge(got, 100e6 / (4096 + 4 * 64) * 0.85);
}

TEST(cpu_limits)
{
	struct profile p = of_hosts(1);

	p.handle = 20000;
	assert_limited(rate("saw_imm/rpc", "values=64", &p), 1e9 / 20500);
}

/* What all clients send at once comes in through one port. */
TEST(receiving_limits)
{
	struct profile p = of_hosts(8);

	p.wire = 500;
	p.dma = 1;
	ck_assert_double_le(rate("saw_imm", "values=4096", &p), 1.03 * 500e6 / 4096);
}

static void works(void *arg)
{
	sim_work(sim_current(), 100000);
	sim_sleep(sim_current(), 1);
	*(uint64_t *)arg = sim_now(sim_current());
}

/* Two tasks of a host, and one of another. */
TESTS(tasks_share_cpus, 3)
{
	const struct profile p = of_hosts((unsigned)_i);
	const uint64_t last[] = {300001, 200001, 100001};
	uint64_t end[3] = {0}, latest = 0;
	struct sim *sim = sim_new();

	sim_set_profile(sim, &p);
	for (unsigned i = 0; i < 3; i++)
		sim_spawn(sim, i / 2, NULL, works, &end[i]);
	sim_run(sim);
	for (unsigned i = 0; i < 3; i++)
		latest = end[i] > latest ? end[i] : latest;
	ck_assert_uint_eq(latest, last[_i]);
	sim_free(sim);
}

/* N = X R. */
TESTS(littles_law, 3)
{
	static const char *const sides[] = {"saw_imm", "saw_imm/rpc", "efactory"};
	const unsigned clients[] = {1, 4, 16};
	struct profile p = of_hosts(4);
	char how[100];
	double x, r;

	p.handle = 2000;
	for (unsigned i = 0; i < 3; i++) {
		snprintf(how, sizeof(how), "throughput values=256 reads=50 ops=60 clients=%u",
			 clients[i]);
		x = measure(how, sides[_i], &p);
		snprintf(how, sizeof(how), "latency values=256 reads=50 ops=60 clients=%u",
			 clients[i]);
		r = measure(how, sides[_i], &p);
		ck_assert_double_le(x * r * 1e-9, 1.1 * clients[i]);
		ck_assert_double_ge(x * r * 1e-9, 0.9 * clients[i]);
	}
}

static const struct {
	const char *text;
	unsigned line;
	const char *expected;
} bad[] = {
	{"fig T\n", 1, "expected figure, source"},
	{"figure\n", 1, "expected a figure's name"},
	{"figure T\nprofile x\n", 2, "expected a profile"},
	{"figure T\nmeasure speed values=64\n", 2, "expected what is measured"},
	{"figure T\nmeasure put\n", 2, "expected values=N"},
	{"figure T\nmeasure put values=7\n", 2, "8 to 65536 bytes"},
	{"figure T\nmeasure put values=64 clients=97\n", 2, "a number that it may be"},
	{"figure T\nside a nostore\n", 2, "expected a store"},
	{"figure T\nside a erda/novariant\n", 2, "expected a store"},
	{"figure T\nside a erda\nexpect a b 1 2\n", 3, "expected two sides"},
	{"figure T\nside a erda\nexpect a a 2 1\n", 3, "expected the least and the greatest"},
	{"figure T\nside a erda\nexpect a a 1 2 at x\n", 3, "expected \"at\" and a length"},
	{"figure T\nside a erda\n", 1, "expected source, says, paper"},
};

TESTS(garbage_is_refused, ROWS_OF(bad))
{
	struct input_error error;
	struct figures all;

	ck_assert_int_eq(figures_read(&all, bad[_i].text, &error), -EINVAL);
	ck_assert_uint_eq(error.line, bad[_i].line);
	ck_assert_msg(strstr(error.message, bad[_i].expected) != NULL, "%s: \"%s\"", bad[_i].text,
		      error.message);
}

/* All that are shipped can be read, and each names its source in each line. */
TEST(profiles_are_good)
{
	struct input_error error;
	struct profile p;
	unsigned i;

	for (i = 0; figure_profiles[i].name; i++)
		ck_assert_msg(!figure_profile(i, &p, &error), "%s:%u: %s", figure_profiles[i].name,
			      error.line, error.message);
	ck_assert_uint_eq(i, 4);
}

RUN_TESTS(NULL, NULL)
