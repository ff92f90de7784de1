/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Profiles: the default has the constants that runs always had, what a file says is what is set,
 * and what is wrong is refused with its line and what was expected.
 */
#include "core/hardware/profile.h"
#include "core/text/text.h"
#include "tests/suite.h"

/* Written down once more: traces and event hashes hang on each of these. */
TEST(default_is_what_it_was)
{
	static const struct {
		const char *name;
		uint32_t value;
	} was[] = {{"cpus", 0},	    {"load", 2},      {"store", 2},	 {"copy", 0},
		   {"crc", 0},	    {"flush", 30},    {"flush_line", 0}, {"fence", 60},
		   {"pm_write", 0}, {"lock", 20},     {"post", 50},	 {"poll", 20},
		   {"await", 20},   {"call", 500},    {"select", 100},	 {"wake", 0},
		   {"handle", 0},   {"doorbell", 50}, {"packet", 0},	 {"wire", 12000},
		   {"dma", 0},	    {"flight", 600},  {"land", 150},	 {"drain", 400}};
	unsigned i;

	for (i = 0; profile_cost(i)->name; i++) {
		ck_assert_uint_lt(i, sizeof(was) / sizeof(was[0]));
		ck_assert_str_eq(profile_cost(i)->name, was[i].name);
		ck_assert_uint_eq(profile_cost(i)->value, was[i].value);
		ck_assert_uint_eq(profile_value(&profile_default, i), was[i].value);
	}
	ck_assert_uint_eq(i, sizeof(was) / sizeof(was[0]));
	ck_assert_ptr_null(profile_cost(i + 1)->name);
}

static int parse(struct profile *p, const char *text, struct input_error *error)
{
	char copy[1000];

	ck_assert_uint_lt(strlen(text), sizeof(copy));
	strcpy(copy, text);
	*error = (struct input_error){0};
	return profile_parse(p, copy, strlen(copy), error);
}

TEST(what_it_says_is_set)
{
	struct input_error error;
	struct profile p, expected = profile_default;

	expected.fence = 150;
	expected.wire = 5000;
	ck_assert_int_eq(parse(&p,
			       "# a machine\n\nfence 150  # the paper, section 5\n"
			       "  wire\t5000 # 40 Gbit/s\n",
			       &error),
			 0);
	ck_assert_mem_eq(&p, &expected, sizeof(p));
	ck_assert_int_eq(parse(&p, "", &error), 0);
	ck_assert_mem_eq(&p, &profile_default, sizeof(p));
}

static const struct {
	const char *text;
	unsigned line;
	const char *expected;
} bad[] = {
	{"fence 150\n", 1, "expected where the value is from, after '#'"},
	{"fence 150 #  \n", 1, "expected where the value is from, after '#'"},
	{"# x\nfense 150 # y\n", 2, "expected the name of a cost"},
	{"fence -1 # y\n", 1, "expected a number of ns for fence, 0 to 1000000000"},
	{"fence 1.5 # y\n", 1, "expected a number of ns for fence"},
	{"fence # y\n", 1, "expected a number of ns for fence"},
	{"fence 1000000001 # y\n", 1, "expected a number of ns for fence"},
	{"wire 0 # y\n", 1, "expected a number of MB/s for wire, 1 to"},
	{"cpus 65 # y\n", 1, "expected a number of CPUs for cpus, 0 to 64"},
	{"fence 1 ns # y\n", 1, "expected '#' and where the value is from"},
	{"fence 1 # y\npost 2 # y\nfence 1 # y\n", 3, "fence is in line 1 already"},
	{"fence 1 # y\n\x01\n", 2, ""},
};

TESTS(garbage_is_refused, ROWS_OF(bad))
{
	struct input_error error;
	struct profile p;

	ck_assert_int_eq(parse(&p, bad[_i].text, &error), -EINVAL);
	ck_assert_uint_eq(error.line, bad[_i].line);
	ck_assert_msg(strstr(error.message, bad[_i].expected) != NULL, "%s: \"%s\"", bad[_i].text,
		      error.message);
}

RUN_TESTS(NULL, NULL)
