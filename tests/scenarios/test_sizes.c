/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths at edges: which are drawn, what they leave as it was, and a store's limits. */
#include "scenarios/workload/workload.h"
#include "tests/suite.h"

#define SEEDS 3000
#define MTU   256

static const struct tm_overhead overheads[] = {{"object", 10, true}, {NULL, 0, false}};
static const struct tm_store plain = {.name = "plain", .overheads = overheads};
static const struct tm_store limited = {
	.name = "limited", .min_vlen = 9, .max_vlen = 200, .max_keys = 2};

static void make(struct workload *w)
{
	const char *expected;

	memset(w, 0, sizeof(*w));
	ck_assert_int_eq(workload_parse_keys(w, "k1 160, k2 -", &expected), 0);
	ck_assert_int_eq(workload_parse_client(w, 1, "put k1 160, put k1 160, get k2", &expected),
			 0);
	ck_assert_int_eq(workload_parse_client(w, 2, "put k2 160, clean", &expected), 0);
}

TEST(edges_are_drawn)
{
	static bool alone[2000], summed[2000];
	unsigned shorter = 0, longer = 0, same = 0, largest = 0, full = 0;
	static const unsigned edges[] = {63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513};

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		struct workload w;

		make(&w);
		workload_resize(&w, &plain, MTU, seed);
		uint32_t first = w.client[0].op[0].vlen, second = w.client[0].op[1].vlen;
		if (first < 2000)
			alone[first] = true;
		if (first + 10 + w.key[0].klen < 2000)
			summed[first + 10 + w.key[0].klen] = true;
		shorter += second < first;
		longer += second > first;
		same += second == first;
		full += w.key[0].klen == TM_MAX_KEY && w.key[1].klen == TM_MAX_KEY &&
			second == first && w.key[0].loaded == (int32_t)first &&
			(10 + TM_MAX_KEY + first) % 64 == 0;
		largest += w.key[0].loaded == TM_MAX_VALUE;
		workload_free(&w);
	}
	for (unsigned n = 0; n < sizeof(edges) / sizeof(edges[0]); n++)
		ck_assert_msg(alone[edges[n]] && summed[edges[n]], "%u", edges[n]);
	for (unsigned n = 7; n <= 9; n++)
		ck_assert(alone[n]);
	ck_assert(alone[0] && alone[1]);
	ck_assert(shorter > SEEDS / 4 && longer > SEEDS / 8 && same > SEEDS / 20 && largest > 0);
	ck_assert(full > SEEDS / 12 && full < SEEDS / 4);
}

TEST(the_rest_stays)
{
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		struct workload w, again;

		make(&w);
		make(&again);
		workload_resize(&w, &plain, MTU, seed);
		workload_resize(&again, &plain, MTU, seed);
		ck_assert(w.keys == 2 && w.key[0].loaded >= 0 && w.key[1].loaded == -1);
		ck_assert_str_eq(w.key[0].name, again.key[0].name);
		ck_assert_str_ne(w.key[0].name, w.key[1].name);
		ck_assert_uint_eq(strlen(w.key[0].name), w.key[0].klen);
		ck_assert_int_eq(w.key[0].name[w.key[0].klen - 1], '1');
		ck_assert(w.client[0].ops == 3 && w.client[1].ops == 2);
		ck_assert(!w.client[0].op[2].vlen && w.client[1].op[1].kind == OP_CLEAN);
		for (unsigned i = 0; i < 2; i++)
			ck_assert_uint_eq(w.client[0].op[i].vlen, again.client[0].op[i].vlen);
		workload_free(&w);
		workload_free(&again);
	}
}

TEST(limits_are_kept)
{
	char expected[WORKLOAD_EXPECTED];
	struct workload w;

	for (unsigned seed = 0; seed < SEEDS; seed++) {
		make(&w);
		workload_resize(&w, &limited, MTU, seed);
		ck_assert_int_eq(workload_check(&w, &limited, expected), 0);
		workload_free(&w);
	}
	make(&w);
	w.client[0].op[1].vlen = 201;
	ck_assert_int_eq(workload_check(&w, &limited, expected), -EINVAL);
	ck_assert_str_eq(expected, "limited takes values of 9 to 200 bytes");
	ck_assert_int_eq(workload_check(&w, &plain, expected), 0);
	w.client[0].op[1].vlen = 200;
	w.key[0].loaded = 8;
	ck_assert_int_eq(workload_check(&w, &limited, expected), -EINVAL);
	workload_limit(&w, &limited);
	ck_assert_int_eq(workload_check(&w, &limited, expected), 0);
	ck_assert_int_eq(w.key[0].loaded, 9);
	ck_assert_int_eq(workload_key_add(&w, "k3", 2, -1), 2);
	ck_assert_int_eq(workload_check(&w, &limited, expected), -EINVAL);
	ck_assert_str_eq(expected, "limited takes at most 2 keys");
	workload_free(&w);
}

/* A workload as a trace has it, and what it is within a store's limits; NULL: it cannot be. */
static const struct {
	uint32_t min, max, keys;
	const char *of[3], *becomes[3]; /* keys, client 1, client 2 */
} scaled[] = {
	/* What fits stays, what is longer stays longer. */
	{0, 100, 0, {"k1 160", "put k1 160", ""}, {"k1 100", "put k1 100", ""}},
	{0, 100, 0, {"k1 160", "put k1 8, put k1 0", ""}, {"k1 100", "put k1 8, put k1 0", ""}},
	{0,
	 100,
	 0,
	 {"k1 160", "put k1 40, put k1 1500", ""},
	 {"k1 70", "put k1 40, put k1 100", ""}},
	{0, 100, 0, {"k1 160", "put k1 1500", ""}, {"k1 50", "put k1 100", ""}},
	{0,
	 1000,
	 0,
	 {"k1 160", "put k1 40, put k1 1500", ""},
	 {"k1 160", "put k1 40, put k1 1000", ""}},
	{0, 8, 0, {"k1 160", "put k1 8, put k1 0", ""}, {"k1 8", "put k1 4, put k1 0", ""}},
	{9, 200, 0, {"k1 0", "put k1 8, put k1 160", ""}, {"k1 9", "put k1 10, put k1 160", ""}},
	/* One length, or fewer than there are. */
	{64, 64, 0, {"k1 160", "put k1 8, put k1 0", ""}, {"k1 64", "put k1 64, put k1 64", ""}},
	{0, 1, 0, {"k1 160", "put k1 8, put k1 40", ""}, {"k1 1", "put k1 1, put k1 1", ""}},
	/* Keys that are only there go, different ones stay different. */
	{0, 0, 2, {"k1 8, k2 8, k3 8, k4 8", "get k4", ""}, {"k1 8, k4 8", "get k4", ""}},
	{0, 0, 1, {"k1 8, k2 8, k3 8", "put k2 8", "get k2"}, {"k2 8", "put k2 8", "get k2"}},
	{0,
	 0,
	 2,
	 {"k1 8, k2 8, k3 -", "put k3 8, get k1", ""},
	 {"k1 8, k3 -", "put k3 8, get k1", ""}},
	{0, 0, 1, {"k1 8, k2 8", "put k1 8", "put k2 8"}, {NULL}},
	{0, 0, 2, {"k1 8, k2 8, k3 8", "put k1 8, get k3", "get k2"}, {NULL}},
	/* Many are drawn. */
	{0,
	 0,
	 3,
	 {"a 8, b 8, c 8, d 8, e 8", "get a, get b, get c, get d", "get e, get a"},
	 {"a 8, b 8, c 8", "get a, get b, get c, get a", "get b, get a"}},
	{0, 0, 3, {"a 8, b 8, c 8, d -", "get a, get b, get c, get d", ""}, {NULL}},
};

static void parse(struct workload *w, const char *const text[3])
{
	const char *expected;

	memset(w, 0, sizeof(*w));
	ck_assert_int_eq(workload_parse_keys(w, text[0], &expected), 0);
	for (unsigned c = 1; c <= 2; c++)
		ck_assert_int_eq(workload_parse_client(w, c, text[c], &expected), 0);
}

TESTS(limits_keep_the_shape, sizeof(scaled) / sizeof(scaled[0]))
{
	const struct tm_store store = {.name = "small",
				       .min_vlen = scaled[_i].min,
				       .max_vlen = scaled[_i].max,
				       .max_keys = scaled[_i].keys};
	const bool can = scaled[_i].becomes[0];
	struct workload w, right;

	parse(&w, scaled[_i].of);
	parse(&right, can ? scaled[_i].becomes : scaled[_i].of);
	ck_assert(workload_limit(&w, &store) == can);
	ck_assert(workload_same(&w, &right));
	workload_free(&w);
	workload_free(&right);
}

RUN_TESTS(NULL, NULL)
