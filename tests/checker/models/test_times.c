/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where an operation's time goes: a part is what its costs take, and laws that hold for any system
 * hold for all stores.
 */
#include <math.h>
#include "checker/models/count_advice.h"
#include "checker/models/figures.h"
#include "checker/models/times.h"
#include "core/text/text.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

static double part[TIME_KINDS][TIME_PARTS];

static struct ycsb ycsb(unsigned reads, unsigned clients, unsigned vlen)
{
	return (struct ycsb){.read_percent = reads,
			     .clients = clients,
			     .keys = 16,
			     .ops = 100 * clients,
			     .vlen = vlen,
			     .seed = 1};
}

static struct setup setup_of(const char *store)
{
	struct setup s;
	struct input_error error;
	setup_init(&s, store_find(store));
	ck_assert_str_eq(figure_profiles[1].name, "ef");
	ck_assert_int_eq(figure_profile(1, &s.profile, &error), 0);
	return s;
}

static struct times run(const struct setup *s, struct ycsb y)
{
	struct times t;
	char why[300] = "";
	ck_assert_msg(!times_run(s, &y, 0, &t, why), "%s", why);
	return t;
}

static struct times run_parts(const struct setup *s, struct ycsb y)
{
	struct times t;
	char why[300] = "";
	ck_assert_msg(!times_parts(s, &y, &t, part, why), "%s", why);
	return t;
}

static void check_near(double is, double wanted, double within)
{
	ck_assert_msg(fabs(is - wanted) <= within * wanted, "%g instead of %g", is, wanted);
}

/* Erda's client makes a checksum of what it puts, of what it gets, and nobody flushes. */
TEST(a_part_is_what_its_costs_take)
{
	struct setup s = setup_of("erda");
	struct times t = run_parts(&s, ycsb(50, 1, 4096));
	const double crc = s.profile.crc * 4096 / 1000.0;
	for (unsigned k = 0; k < TIME_KINDS; k++) {
		double sum = 0;
		for (unsigned p = 0; p < TIME_PARTS; p++)
			sum += part[k][p];
		check_near(part[k][TIME_CRC], crc, 0.03);
		check_near(sum, t.op[k].mean, 1e-9);
		/* But for who goes first. */
		ck_assert_double_le(fabs(part[k][TIME_FLUSH] + part[k][TIME_FENCE]), 10);
		ck_assert_double_le(t.op[k].median, t.op[k].p99);
	}
	/* One message of a PUT is handled; a GET has none. */
	check_near(part[TIME_PUT][TIME_HANDLE], s.profile.handle, 0.01);
	ck_assert_double_eq(part[TIME_GET][TIME_HANDLE], 0);
	s.profile.crc *= 3;
	check_near(run(&s, ycsb(0, 1, 4096)).op[TIME_PUT].mean, t.op[TIME_PUT].mean + 2 * crc,
		   0.03);
}

/* Nessie's GET is two READs and a checksum, and its PUT seven round trips and one. */
TEST(a_round_trip_is_what_is_said_of_it)
{
	struct setup s = setup_of("nessie");
	const double trip = count_round_trip_ns(&s.profile);
	s.profile.crc = 0;
	check_near(run(&s, ycsb(100, 1, 8)).op[TIME_GET].median, 2 * trip, 0.05);
	check_near(run(&s, ycsb(0, 1, 8)).op[TIME_PUT].median, 7 * trip, 0.05);
	s.profile.flight *= 3;
	check_near(run(&s, ycsb(100, 1, 8)).op[TIME_GET].median,
		   2 * count_round_trip_ns(&s.profile), 0.05);
}

/* Little's law: as many operations are under way as there are clients. */
TEST(as_many_are_under_way_as_there_are_clients)
{
	static const char *const some[] = {"efactory", "erda", "herd", "rfp", "mojim", "forca"};
	static const unsigned clients[] = {1, 4, 16, WORKLOAD_MAX_CLIENTS};
	for (unsigned i = 0; i < ROWS_OF(some); i++)
		for (unsigned k = 0; k < ROWS_OF(clients); k++) {
			struct setup s = setup_of(some[i]);
			struct times t = run(&s, ycsb(50, clients[k], 256));
			double ns = 0, n = 0;
			for (unsigned k = 0; k < TIME_KINDS; k++) {
				ns += t.op[k].mean * (double)t.op[k].n;
				n += (double)t.op[k].n;
			}
			check_near(t.rate * ns / n / 1e9, clients[k], 0.05);
		}
}

/* What limits one resource limits all clients together. */
TEST(limits_are_kept)
{
	struct setup s = setup_of("saw_imm");
	s.profile.pm_write = 100;
	ck_assert_double_le(run(&s, ycsb(0, 8, 4096)).rate, 100e6 / 4096);
	s = setup_of("erda");
	s.profile.wire = 100;
	ck_assert_double_le(run(&s, ycsb(100, 8, 4096)).rate, 100e6 / 4096);
	s = setup_of("erda");
	s.profile.packet = 10000;
	/* A GET's two READs are two requests at the server's port and two answers or more. */
	ck_assert_double_le(run(&s, ycsb(100, 8, 64)).rate, 1e9 / 10000 / 2);
}

/* A server that polls memory besides a completion queue is not late. */
TEST(who_polls_memory_is_soon)
{
	struct setup s = setup_of("herd");
	const double one = run(&s, ycsb(95, 1, 256)).rate;
	ck_assert_double_ge(one, 300e3);
	ck_assert_double_ge(run(&s, ycsb(100, 16, 256)).rate, 4 * one);
}

/* Many operations are several runs: all count, as in one, and as many are under way. */
TEST(many_operations_are_as_few)
{
	struct setup s = setup_of("mojim");
	struct ycsb y = ycsb(50, 4, 64);
	const struct times few = run(&s, y);
	y.ops = 20000;
	const struct times many = run(&s, y), again = run(&s, y);
	double ns = 0, n = 0;
	for (unsigned k = 0; k < TIME_KINDS; k++) {
		ns += many.op[k].mean * (double)many.op[k].n;
		n += (double)many.op[k].n;
		check_near(many.op[k].median, few.op[k].median, 0.05);
		ck_assert_double_eq(many.op[k].mean, again.op[k].mean);
	}
	check_near(n, y.ops, 0.01);
	check_near(many.rate * ns / n / 1e9, y.clients, 0.05);
}

/* FaRM's last client connects when the others would be done. */
TEST(all_are_at_work)
{
	struct setup s = setup_of("farm");
	const struct times t = run(&s, ycsb(0, 16, 64));
	ck_assert_uint_ge(t.op[TIME_PUT].n, 800); /* until the first of them has ended */
}

TEST(too_few_operations_are_told)
{
	struct setup s = setup_of("erda");
	struct ycsb y = ycsb(0, 4, 64);
	struct times t;
	char why[300] = "";
	y.ops = 4;
	ck_assert_int_eq(times_run(&s, &y, 0, &t, why), -EIO);
	ck_assert_str_eq(why, "too few operations for so many clients");
}

RUN_TESTS(NULL, NULL)
