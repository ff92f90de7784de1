/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workloads: the data structure, value bytes, the textual form there and back,
 * the built-in ones, YCSB's distributions, and recorded operation lists.
 *
 * Nothing here is random: where a tolerance is given, the number compared is the
 * same in every run.
 */
#include <ctype.h>
#include <math.h>
#include "scenarios/workload/workload.h"
#include "tests/suite.h"

/* --- helpers --- */

/* Of a test. */
static struct workload w;
static const char *expected;
static struct input_error err;

static void free_workload(void)
{
	workload_free(&w);
}

/* The text that a print function writes. To be freed. */
static char *print_keys(const struct workload *w)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	workload_print_keys(w, out);
	fclose(out);
	return text;
}

static char *print_client(const struct workload *w, unsigned client)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	workload_print_client(w, client, out);
	fclose(out);
	return text;
}

static void assert_keys(const struct workload *w, const char *want)
{
	char *text = print_keys(w);

	ck_assert_str_eq(text, want);
	free(text);
}

static void assert_client(const struct workload *w, unsigned client, const char *want)
{
	char *text = print_client(w, client);

	ck_assert_str_eq(text, want);
	free(text);
}

static void assert_same(const struct workload *a, const struct workload *b)
{
	ck_assert_uint_eq(a->keys, b->keys);
	ck_assert_uint_eq(a->clients, b->clients);
	for (unsigned k = 0; k < a->keys; k++) {
		ck_assert_str_eq(a->key[k].name, b->key[k].name);
		ck_assert_uint_eq(a->key[k].klen, b->key[k].klen);
		ck_assert_int_eq(a->key[k].loaded, b->key[k].loaded);
	}
	for (unsigned c = 0; c < a->clients; c++) {
		ck_assert_uint_eq(a->client[c].ops, b->client[c].ops);
		for (unsigned i = 0; i < a->client[c].ops; i++) {
			const struct workload_op *x = &a->client[c].op[i], *y = &b->client[c].op[i];

			ck_assert_uint_eq(x->kind, y->kind);
			ck_assert_uint_eq(x->key, y->key);
			ck_assert_uint_eq(x->nth, y->nth);
			ck_assert_uint_eq(x->vlen, y->vlen);
		}
	}
}

/* Print all of *w and read it back. */
static void round_trip(const struct workload *w)
{
	struct workload back = {0};
	const char *expected = NULL;
	char *text = print_keys(w);

	ck_assert_int_eq(workload_parse_keys(&back, text, &expected), 0);
	free(text);
	for (unsigned c = 1; c <= w->clients; c++) {
		text = print_client(w, c);
		ck_assert_int_eq(workload_parse_client(&back, c, text, &expected), 0);
		free(text);
	}
	assert_same(w, &back);
	workload_free(&back);
}

/* --- the data structure --- */

TEST(add_and_count)
{
	ck_assert_uint_eq(workload_max_vlen(&w), 0);
	ck_assert_int_eq(workload_key_add(&w, "k1", 2, 100), 0);
	ck_assert_int_eq(workload_key_add(&w, "k2", 2, -1), 1);
	ck_assert_int_eq(workload_key_add(&w, "k1", 2, -1), 0);
	ck_assert_int_eq(w.key[0].loaded, 100);
	ck_assert_int_eq(workload_key_find(&w, "k2", 2), 1);
	ck_assert_int_eq(workload_key_find(&w, "k", 1), -ENOENT);
	ck_assert_uint_eq(w.keys, 2);
	ck_assert_int_eq(workload_op_add(&w, 3, OP_PUT, 0, 5), 0);
	ck_assert_int_eq(workload_op_add(&w, 3, OP_GET, 1, 77), 0);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_DEL, 1, 0), 0);
	ck_assert_int_eq(workload_op_add(&w, 3, OP_PUT, 1, 200), 0);
	ck_assert_uint_eq(w.clients, 3);
	ck_assert_uint_eq(workload_ops(&w), 4);
	ck_assert_uint_eq(workload_updates(&w), 4);
	ck_assert_uint_eq(workload_max_vlen(&w), 200);
	assert_keys(&w, "k1 100, k2 -");
	assert_client(&w, 1, "del k2");
	assert_client(&w, 2, "");
	assert_client(&w, 3, "put k1 5, get k2, put k2 200");
	ck_assert_uint_eq(w.client[2].op[2].nth, 2);
	round_trip(&w);
	workload_free(&w);
	ck_assert_uint_eq(w.keys + w.clients, 0);
}

TEST(add_refuses)
{
	ck_assert_int_eq(workload_key_add(&w, "", 0, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "a b", 3, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "a,b", 3, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "a#b", 3, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "a\0b", 3, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "\xc3\xa4", 2, -1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "123456789012345678901234567890123", 33, -1),
			 -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "k", 1, TM_MAX_VALUE + 1), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "k", 1, -2), -EINVAL);
	ck_assert_int_eq(workload_key_add(&w, "12345678901234567890123456789012", 32, 0), 0);
	ck_assert_int_eq(w.key[0].loaded, 0);
	ck_assert_int_eq(workload_op_add(&w, 0, OP_PUT, 0, 8), -EINVAL);
	ck_assert_int_eq(workload_op_add(&w, WORKLOAD_MAX_CLIENTS + 1, OP_PUT, 0, 8), -EINVAL);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_NONE, 0, 8), -EINVAL);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_OPEN, 0, 8), -EINVAL);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_PUT, 1, 8), -EINVAL);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_PUT, 0, TM_MAX_VALUE + 1), -EINVAL);
	ck_assert_uint_eq(w.clients, 0);
}

TEST(limits)
{
	char name[16];

	for (int k = 0; k < WORKLOAD_MAX_KEYS; k++) {
		snprintf(name, sizeof(name), "k%d", k);
		ck_assert_int_eq(workload_key_add(&w, name, strlen(name), -1), k);
	}
	ck_assert_int_eq(workload_key_add(&w, "more", 4, -1), -ENOSPC);
	ck_assert_int_eq(workload_key_add(&w, "k7", 2, -1), 7);
	for (int i = 0; i < WORKLOAD_MAX_OPS; i++)
		ck_assert_int_eq(workload_op_add(&w, i % 3 + 1, OP_PUT, i % WORKLOAD_MAX_KEYS, 8),
				 0);
	ck_assert_int_eq(workload_op_add(&w, 4, OP_PUT, 0, 8), -ENOSPC);
	ck_assert_uint_eq(workload_ops(&w), WORKLOAD_MAX_OPS);
	round_trip(&w);
}

/* A copy has memory and room of its own, at every length: ASan sees to that. */
TEST(copies)
{
	struct workload copy;

	for (unsigned n = 0; n < 20; n++) {
		ck_assert_int_eq(workload_copy(&copy, &w), 0);
		assert_same(&w, &copy);
		ck_assert_int_eq(workload_key_add(&copy, "other", 5, -1), (int)n);
		ck_assert_int_eq(workload_op_add(&copy, 2, OP_DEL, n, 0), 0);
		ck_assert_uint_eq(workload_ops(&w), n);
		ck_assert_uint_eq(workload_ops(&copy), n + 1);
		workload_free(&copy);
		ck_assert_int_eq(workload_key_add(&w, &"abcdefghijklmnopqrstuvwxyz"[n], 1, 8),
				 (int)n);
		ck_assert_int_eq(workload_op_add(&w, 2, OP_PUT, n, n), 0);
	}
}

TEST(remove_renumbers)
{
	ck_assert_int_eq(workload_parse_client(&w, 1, "put a 10, get a, put b 20, get b, put c 30",
					       &expected),
			 0);
	workload_op_remove(&w, 1, 0);
	assert_client(&w, 1, "get a, put b 20, get b, put c 30");
	ck_assert_uint_eq(w.client[0].op[1].nth, 1);
	ck_assert_uint_eq(w.client[0].op[2].nth, 2);
	ck_assert_uint_eq(w.client[0].op[3].nth, 2);
	workload_op_remove(&w, 1, 3);
	ck_assert_int_eq(workload_op_add(&w, 1, OP_PUT, 0, 9), 0);
	ck_assert_uint_eq(w.client[0].op[3].nth, 2);
	for (unsigned i = 0; i < 4; i++)
		workload_op_remove(&w, 1, 0);
	ck_assert_uint_eq(workload_ops(&w), 0);
	ck_assert_uint_eq(w.clients, 1);
}

/* What is left of a transaction is one, too. */
TEST(transactions)
{
	static const char text[] =
		"T{get a, put b 10}, put a 8, T{put c 9}, T{get a, get b, del c}";
	static const struct {
		const char *text, *expected;
	} wrong[] = {
		{"T{get a, put b 1", "the end"},
		{"T{get a, T{get b}}", "the end"},
		{"T{get a, die}", "put, get and del alone"},
		{"T{clean}", "put, get and del alone"},
		{"T{}", "an operation"},
		{"T{get a, get a, get a, get a, get a, get a, get a, get a, get a}", "at most 8"}};
	struct workload w = {0}, other = {0};
	const char *expected;

	ck_assert_int_eq(workload_parse_client(&w, 1, text, &expected), 0);
	assert_client(&w, 1, text);
	round_trip(&w);
	ck_assert_uint_eq(workload_txn_size(&w, 1, 0), 2);
	ck_assert_uint_eq(workload_txn_size(&w, 1, 2), 0);
	ck_assert_uint_eq(workload_txn_size(&w, 1, 3), 1);
	workload_op_remove(&w, 1, 4);
	workload_op_remove(&w, 1, 0);
	assert_client(&w, 1, "T{put b 10}, put a 8, T{put c 9}, T{get b, del c}");
	ck_assert_int_eq(workload_parse_client(
				 &other, 1, "put b 10, put a 8, put c 9, get b, del c", &expected),
			 0);
	ck_assert(!workload_same(&w, &other));
	workload_free(&w);
	workload_free(&other);
	for (unsigned i = 0; i < ROWS_OF(wrong); i++) {
		ck_assert_int_eq(workload_parse_client(&w, 1, wrong[i].text, &expected), -EINVAL);
		ck_assert_ptr_nonnull(strstr(expected, wrong[i].expected));
		workload_free(&w);
	}
}

/* --- values --- */

static int compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* 17 * 12 * 16 values of 24 words, none shared; and no byte is zero. */
TEST(values_unique)
{
	enum { NTH = 12, KEYS = 16, WORDS = 24 };
	size_t n = 0, max = (size_t)(TM_MAX_CLIENTS + 1) * NTH * KEYS * WORDS;
	uint64_t *word = malloc(max * sizeof(*word));

	ck_assert_ptr_nonnull(word);
	for (unsigned client = 0; client <= TM_MAX_CLIENTS; client++)
		for (unsigned nth = 1; nth <= NTH; nth++)
			for (unsigned key = 0; key < KEYS; key++) {
				workload_value(client, nth, key, (uint8_t *)(word + n), WORDS * 8);
				n += WORDS;
			}
	ck_assert_uint_eq(n, max);
	for (size_t i = 0; i < n * 8; i++)
		ck_assert(((uint8_t *)word)[i]);
	qsort(word, n, sizeof(*word), compare_words);
	for (size_t i = 1; i < n; i++)
		ck_assert(word[i] != word[i - 1]);
	free(word);
}

/* Identities over the whole range of numbers, in steps. */
TEST(identities_unique)
{
	enum { STEPS = 64 };
	size_t n = 0;
	uint64_t *id = malloc((TM_MAX_CLIENTS + 1) * STEPS * STEPS * sizeof(*id));

	ck_assert_ptr_nonnull(id);
	for (unsigned client = 0; client <= TM_MAX_CLIENTS; client++)
		for (unsigned nth = 0; nth < STEPS; nth++)
			for (unsigned key = 0; key < STEPS; key++)
				workload_value(client, nth * 1040 + 15, key * 1040 + 15,
					       (uint8_t *)&id[n++], 8);
	qsort(id, n, sizeof(*id), compare_words);
	for (size_t i = 1; i < n; i++)
		ck_assert(id[i] != id[i - 1]);
	free(id);
}

/* Equal for one key and number, and different from all others: the load phase's, another key's. */
TEST(values_shared)
{
	uint8_t value[WORKLOAD_MAX_SAME + 1][16], other[16];

	for (unsigned same = 1; same <= WORKLOAD_MAX_SAME; same++) {
		workload_value_same(same, 3, value[same], 16);
		for (unsigned before = 1; before < same; before++)
			ck_assert_mem_ne(value[same], value[before], 16);
		workload_value_same(same, 4, other, 16);
		ck_assert_mem_ne(value[same], other, 16);
	}
	for (unsigned nth = 1; nth <= WORKLOAD_MAX_KEYS; nth++) {
		workload_value(0, nth, 3, other, 16);
		for (unsigned same = 1; same <= WORKLOAD_MAX_SAME; same++)
			ck_assert(memcmp(value[same], other, 16));
	}
}

TEST(values_pure)
{
	/* Fixed for ever: traces and images are compared across builds. */
	static const uint8_t first[8] = {0x9d, 0x15, 0xd0, 0xe9, 0x6f, 0x7b, 0x2c, 0x0a};
	static uint8_t longest[TM_MAX_VALUE];

	workload_value(1, 1, 0, longest, TM_MAX_VALUE);
	ck_assert_mem_eq(longest, first, 8);
	for (uint32_t vlen = 1; vlen < 300; vlen++) {
		uint8_t *value = malloc(vlen);

		workload_value(1, 1, 0, value, vlen);
		ck_assert_mem_eq(value, longest, vlen);
		free(value);
	}
}

/* --- the textual form --- */

TEST(parse_blanks)
{
	ck_assert_int_eq(workload_parse_keys(&w, " \t", &expected), 0);
	ck_assert_int_eq(workload_parse_keys(&w, "\tk1  96 ,k2 -", &expected), 0);
	ck_assert_int_eq(workload_parse_client(&w, 2, "  put  k1 96,get k1 , del\tk3 ", &expected),
			 0);
	ck_assert_int_eq(workload_parse_client(&w, 3, "put k1 8 \tsame 7,put k1 8", &expected), 0);
	ck_assert_uint_eq(w.client[2].op[0].same, 7);
	ck_assert_uint_eq(w.client[2].op[1].same, 0);
	assert_client(&w, 3, "put k1 8 same 7, put k1 8");
	assert_keys(&w, "k1 96, k2 -, k3 -");
	assert_client(&w, 2, "put k1 96, get k1, del k3");
	ck_assert_uint_eq(w.clients, 3);
	round_trip(&w);
}

static const struct {
	unsigned client; /* 0: a keys' line */
	const char *text, *expected;
} bad_text[] = {
	{1, "push k1", "put, get, del, clean, leave, die or pause"},
	{1, "get k1,", "put, get, del, clean, leave, die or pause"},
	{1, "get k1,,get k1", "put, get, del, clean, leave, die or pause"},
	{1, "put k1", "put KEY LENGTH"},
	{1, "put k1 8 9", "put KEY LENGTH"},
	{1, "put k1 8 same", "put KEY LENGTH"},
	{1, "put k1 8 same 1 2", "put KEY LENGTH"},
	{1, "put k1 8 same 0", "from 1 to 99"},
	{1, "get k1 same 1", "get KEY"},
	{1, "get", "get KEY"},
	{1, "put k1 x", "0 to 65536"},
	{1, "put k1 65537", "0 to 65536"},
	{1, "put a#b 8", "1 to 32 printable"},
	{17, "get k1", "1 to 16"},
	{0, "k1", "KEY LENGTH"},
	{0, "k1 8,", "KEY LENGTH"},
	{0, "k1 8, k1 8", "once"},
};

TESTS(parse_refuses, ROWS_OF(bad_text))
{
	int rc;

	if (bad_text[_i].client)
		rc = workload_parse_client(&w, bad_text[_i].client, bad_text[_i].text, &expected);
	else
		rc = workload_parse_keys(&w, bad_text[_i].text, &expected);
	ck_assert_int_eq(rc, -EINVAL);
	ck_assert_ptr_nonnull(expected);
	ck_assert_msg(strstr(expected, bad_text[_i].expected) != NULL, "'%s': %s",
		      bad_text[_i].text, expected);
}

/* --- built-in --- */

TEST(builtins)
{
	struct workload w, other, named = {0};
	unsigned i, j;

	for (i = 0; workload_builtin(i, &w) == 0; i++) {
		ck_assert_ptr_nonnull(workload_what(i));
		ck_assert_ptr_null(strchr(workload_what(i), '\n'));
		ck_assert_uint_lt(strlen(workload_what(i)), 72);
		ck_assert_uint_eq(strspn(w.name, "abcdefghijklmnopqrstuvwxyz0123456789.-"),
				  strlen(w.name));
		ck_assert_uint_ge(workload_ops(&w), 1);
		round_trip(&w);
		for (unsigned k = 0; k < w.keys; k++)
			ck_assert((w.key[k].loaded < 0) ==
				  (!strncmp(w.name, "new-", 4) ||
				   (!strncmp(w.name, "move-", 5) && k == 2)));
		ck_assert_int_eq(workload_named(w.name, &named, &expected), 0);
		ck_assert_str_eq(named.name, w.name);
		assert_same(&w, &named);
		workload_free(&named);
		for (j = 0; j < i; j++) {
			ck_assert_int_eq(workload_builtin(j, &other), 0);
			ck_assert_str_ne(other.name, w.name);
			workload_free(&other);
		}
		workload_free(&w);
	}
	ck_assert_uint_ge(i, 40);
	ck_assert_int_eq(workload_builtin(i, &w), -ENOENT);
	ck_assert_ptr_null(workload_what(i));
}

/* What the workload does, as its name would say it. To be freed. */
static char *name_of(const struct workload *w)
{
	static const char letter[OP_KINDS] = {
		[OP_PUT] = 'w',	  [OP_GET] = 'r', [OP_DEL] = 'd',  [OP_CLEAN] = 'c',
		[OP_LEAVE] = 'l', [OP_DIE] = 'x', [OP_PAUSE] = 'p'};
	unsigned vlen = workload_max_vlen(w);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (w->key[0].loaded < 0)
		fputs("new-", out);
	else if (w->key[w->keys - 1].loaded < 0)
		fputs("move-", out);
	for (unsigned c = 0; c < w->clients; c++) {
		if (c)
			fputc('-', out);
		for (unsigned i = 0; i < w->client[c].ops; i++) {
			const struct workload_op *op = &w->client[c].op[i];

			fputc(letter[op->kind], out);
			if (w->keys > 1 && workload_op_keyed(op->kind))
				fputs(w->key[op->key].name + 1, out);
			if (op->kind == OP_PUT && op->vlen != vlen)
				vlen = 0;
		}
	}
	if (!vlen)
		fputs(".mixed", out);
	else if (vlen != 160)
		fprintf(out, ".%u", vlen);
	fclose(out);
	return text;
}

TEST(names_say_what_happens)
{
	for (unsigned i = 0; workload_builtin(i, &w) == 0; workload_free(&w), i++) {
		char *name = name_of(&w);

		if (strncmp(w.name, "ycsb", 4))
			ck_assert_str_eq(w.name, name);
		free(name);
	}
}

static const struct {
	const char *name;
	int rc;
	const char *expected;
} bad_name[] = {
	{"", -ENOENT, "tidemark list"},
	{"ycsb", -ENOENT, "tidemark list"},
	{"nix:clients=2", -ENOENT, "tidemark list"},
	{"ww:clients=2", -EINVAL, "no parameters"},
	{"ycsb-a:", -EINVAL, "clients=, keys="},
	{"ycsb-a:threads=2", -EINVAL, "clients=, keys="},
	{"ycsb-a:clients=", -EINVAL, "clients=1 to"},
	{"ycsb-a:clients=0", -EINVAL, "clients=1 to"},
	{"ycsb-a:clients=2x", -EINVAL, "clients=1 to"},
	{"ycsb-a:keys=0", -EINVAL, "keys=1 to keys=1024"},
	{"ycsb-a:ops=0", -EINVAL, "ops=1 to ops=4096"},
	{"ycsb-a:vlen=65537", -EINVAL, "vlen=0 to vlen=65536"},
	{"ycsb-a:seed=4294967296", -EINVAL, "seed=0 to seed=4294967295"},
	{"ycsb-a:keys=2,keys=2", -EINVAL, "at most once"},
};

TESTS(named_refuses, ROWS_OF(bad_name))
{
	ck_assert_int_eq(workload_named(bad_name[_i].name, &w, &expected), bad_name[_i].rc);
	ck_assert_msg(strstr(expected, bad_name[_i].expected) != NULL, "'%s': %s",
		      bad_name[_i].name, expected);
	ck_assert_uint_eq(w.keys + w.clients, 0);
}

/* --- YCSB --- */

TEST(ycsb_sizes)
{
	static const char full[] =
		"ycsb-a:clients=16,keys=1024,ops=4096,vlen=65536,seed=4294967295";

	ck_assert_int_eq(workload_named("ycsb-a", &w, &expected), 0);
	ck_assert_str_eq(w.name, "ycsb-a");
	ck_assert_uint_eq(w.keys, 8);
	ck_assert_uint_eq(w.clients, 2);
	ck_assert_uint_eq(workload_ops(&w), 40);
	ck_assert_str_eq(w.key[7].name, "user0000000000000000000000000007");
	ck_assert_uint_eq(w.key[7].klen, TM_MAX_KEY);
	ck_assert_int_eq(w.key[7].loaded, 64);
	workload_free(&w);
	ck_assert_int_eq(workload_named("ycsb-b:vlen=256,ops=7,clients=3,keys=8", &w, &expected),
			 0);
	ck_assert_str_eq(w.name, "ycsb-b:clients=3,ops=7,vlen=256");
	ck_assert_uint_eq(w.client[0].ops, 3);
	ck_assert_uint_eq(w.client[2].ops, 2);
	ck_assert_uint_eq(workload_max_vlen(&w), 256);
	workload_free(&w);
	ck_assert_int_eq(workload_named(full, &w, &expected), 0);
	ck_assert_str_eq(w.name, full);
	workload_free(&w);
	ck_assert_int_eq(workload_named("ycsb-u:keys=1,ops=1,clients=16", &w, &expected), 0);
	ck_assert_uint_eq(w.clients, 16);
	ck_assert_uint_eq(workload_ops(&w), 1);
}

static const struct {
	const char *name;
	double reads;
} mix[] = {{"ycsb-a", 0.50}, {"ycsb-b", 0.95}, {"ycsb-c", 1}, {"ycsb-u", 0}};

/* 5 seeds of 4096 draws: three standard deviations are 0.0105 at most. */
TESTS(ycsb_proportions, ROWS_OF(mix))
{
	unsigned reads = 0, all = 0;

	for (unsigned seed = 0; seed < 5; seed++) {
		struct workload w;
		char name[64];

		snprintf(name, sizeof(name), "%s:ops=4096,seed=%u", mix[_i].name, seed);
		ck_assert_int_eq(workload_named(name, &w, &expected), 0);
		for (unsigned c = 0; c < w.clients; c++)
			for (unsigned i = 0; i < w.client[c].ops; i++, all++)
				reads += w.client[c].op[i].kind == OP_GET;
		workload_free(&w);
	}
	ck_assert_uint_eq(all, 5 * 4096);
	if (mix[_i].reads == 0 || mix[_i].reads == 1)
		ck_assert_uint_eq(reads, (unsigned)(mix[_i].reads * all));
	else
		ck_assert_double_eq_tol((double)reads / all, mix[_i].reads, 0.0105);
}

static int compare_down(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x > y ? -1 : x < y;
}

/*
 * Each key's share against i^-0.99 / sum of j^-0.99, as libm computes it, for 50
 * seeds of 4096 draws. Every seed has its own permutation, so a seed's counts are
 * sorted first, which shifts neighbouring tail ranks by less than their noise:
 * within 1.3 % (three standard deviations) for rank 1, within 6 % for ranks 2 to 8.
 */
TEST(ycsb_zipf)
{
	enum { KEYS = 64, SEEDS = 50, OPS = 4096 };
	double sum[KEYS] = {0}, zeta = 0;

	for (unsigned i = 1; i <= KEYS; i++)
		zeta += pow(i, -0.99);
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		struct workload w;
		double count[KEYS] = {0};
		char name[64];

		snprintf(name, sizeof(name), "ycsb-u:keys=%d,ops=%d,seed=%u", KEYS, OPS, seed);
		ck_assert_int_eq(workload_named(name, &w, &expected), 0);
		for (unsigned c = 0; c < w.clients; c++)
			for (unsigned i = 0; i < w.client[c].ops; i++)
				count[w.client[c].op[i].key]++;
		qsort(count, KEYS, sizeof(count[0]), compare_down);
		for (unsigned k = 0; k < KEYS; k++)
			sum[k] += count[k];
		workload_free(&w);
	}
	for (unsigned i = 1; i <= 8; i++) {
		double share = sum[i - 1] / SEEDS / OPS, want = pow(i, -0.99) / zeta;

		ck_assert_msg(fabs(share / want - 1) < (i == 1 ? 0.013 : 0.06),
			      "rank %u: %f, expected %f", i, share, want);
	}
}

/* The popular keys are not simply the first ones, and another seed has others. */
TEST(ycsb_scrambled)
{
	unsigned first = 0;

	for (unsigned seed = 0; seed < 100; seed++) {
		struct workload w;
		unsigned count[16] = {0}, best = 0;
		char name[64];

		snprintf(name, sizeof(name), "ycsb-u:keys=16,ops=400,seed=%u", seed);
		ck_assert_int_eq(workload_named(name, &w, &expected), 0);
		for (unsigned i = 0; i < w.client[0].ops; i++)
			count[w.client[0].op[i].key]++;
		for (unsigned k = 1; k < 16; k++)
			best = count[k] > count[best] ? k : best;
		first += best == 0;
		workload_free(&w);
	}
	ck_assert_uint_ge(first, 1);
	ck_assert_uint_le(first, 15);
}

/* The same on every compiler, optimisation and machine. */
TEST(ycsb_fixed)
{
	static const char want[] = "w919 r190 w665 w260 r39 w430 w12 r277 w730 r831 w300 r345";
	char got[13 * 8], *p = got;

	ck_assert_int_eq(workload_named("ycsb-a:keys=1000,clients=1,ops=12,seed=7", &w, &expected),
			 0);
	for (unsigned i = 0; i < w.client[0].ops; i++)
		p += sprintf(p, "%s%c%u", i ? " " : "",
			     w.client[0].op[i].kind == OP_GET ? 'r' : 'w',
			     (unsigned)w.client[0].op[i].key);
	ck_assert_str_eq(got, want);
}

/* --- operation lists --- */

static int read_bytes(const char *text, size_t len, struct workload *w, struct input_error *err)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, len ? len : 1, "r");
	int rc;

	ck_assert_ptr_nonnull(in);
	if (!len)
		(void)getc(in);
	rc = workload_read_ops(in, w, err);
	fclose(in);
	return rc;
}

static int read_text(const char *text, struct workload *w, struct input_error *err)
{
	return read_bytes(text, strlen(text), w, err);
}

TEST(ops_good)
{
	static const char text[] = "# recorded\r\n"
				   "\r\n"
				   "LOAD k2 40 # caf\xc3\xa9\n"
				   "load,k3,100\n"
				   "  1 put k1 160\r\n"
				   "\t3,PUT , k2,7\n"
				   "1 Get k1 -\n"
				   "3,get,nobody,\n"
				   "1 del k1\n"
				   "3 get k2#c\n"
				   "0003 put k2 065536";

	ck_assert_msg(read_text(text, &w, &err) == 0, "line %u: %s", err.line, err.message);
	assert_keys(&w, "k2 40, k3 100, k1 -, nobody -");
	assert_client(&w, 1, "put k1 160, get k1, del k1");
	assert_client(&w, 2, "");
	assert_client(&w, 3, "put k2 7, get nobody, get k2, put k2 65536");
	ck_assert_uint_eq(w.clients, 3);
	ck_assert_str_eq(w.name, "ops");
	ck_assert_uint_eq(err.line, 0);
	round_trip(&w);
}

#define KEY33 "123456789012345678901234567890123"

static const struct {
	const char *text;
	unsigned line;
	const char *message;
} bad_ops[] = {
	{"", 0, "no operations"},
	{"1 put k1 8\n1 puts k1 8\n", 2,
	 "operation 'puts'; expected put, get, del, clean, leave, die or pause"},
	{"client,op,key,len\n", 1, "client 'client' is not a number; expected 1 to 16"},
	{"0 put k1 8\n", 1, "client '0' is too small; expected 1 to 16"},
	{"17 put k1 8\n", 1, "client '17' is too large; expected 1 to 16"},
	{",put,k1,8\n", 1, "client is missing"},
	{"1\n", 1, "the operation is missing"},
	{"\r\n1 get\n", 2, "the key is missing"},
	{"1 put k1\n", 1, "the length is missing"},
	{"1 put k1 -\n", 1, "length '-' is not a number; expected 0 to 65536"},
	{"1 put k1 8x\n", 1, "length '8x' is not a number"},
	{"1 put k1 65537\n", 1, "length '65537' is too large; expected 0 to 65536"},
	{"1 put k1 8 9\n", 1, "5 fields; expected at most four"},
	{"1 get k1 8\n", 1, "extra field '8'; only put has a length"},
	{"1 get " KEY33 "\n", 1,
	 "key '123456789012345678901234567890123' has 33 bytes; expected at most 32"},
	{"1 get k\x01\n", 1, "byte 0x01 at column 8; expected printable ASCII"},
	{"1 get k1 # \x1b[31m\n", 1, "byte 0x1b at column 12"},
	{"\xef\xbb\xbf"
	 "1 get k1\n",
	 1, "byte 0xef at column 1"},
	{"1 get k1\r2 get k1\n", 1, "byte 0x0d at column 9"},
	{"1 get k1\nload k1 8\n", 2, "'load' after the first operation"},
	{"load k1\n", 1, "2 fields; expected three: load, key, length"},
	{"load k1 8 9\n", 1, "extra field '9'"},
	{"load k1 8\nload k1 9\n", 2, "key 'k1' is loaded twice"},
	{"load ,, 8\n1 get k1\n", 1, "the key is missing"},
};

TESTS(ops_bad, ROWS_OF(bad_ops))
{
	ck_assert_int_eq(read_text(bad_ops[_i].text, &w, &err), -EINVAL);
	ck_assert_msg(err.line == bad_ops[_i].line && strstr(err.message, bad_ops[_i].message),
		      "'%s': line %u: %s", bad_ops[_i].text, err.line, err.message);
	ck_assert_uint_eq(w.keys + w.clients, 0);
	for (const char *p = err.message; *p; p++)
		ck_assert(isprint((unsigned char)*p));
}

TEST(ops_nul)
{
	static const char text[] = "1 get k1\n1 get k\0\n";

	ck_assert_int_eq(read_bytes(text, sizeof(text) - 1, &w, &err), -EINVAL);
	ck_assert_uint_eq(err.line, 2);
	ck_assert_ptr_nonnull(strstr(err.message, "NUL"));
}

/* A line may have 4096 bytes, and not one more; a megabyte of digits is no trouble. */
TEST(ops_long_lines)
{
	static const size_t size[] = {4096, 4097, 1 << 20};
	char *text = malloc((1 << 20) + 2);

	for (unsigned i = 0; i < ROWS_OF(size); i++)
		for (int comment = 0; comment < 2; comment++) {
			int rc;

			memset(text, comment ? 'x' : ' ', size[i]);
			memcpy(text, "1 get k1 #", comment ? 10 : 8);
			text[size[i]] = '\n';
			rc = read_bytes(text, size[i] + 1, &w, &err);
			ck_assert_int_eq(rc, size[i] > 4096 ? -EINVAL : 0);
			if (rc) {
				ck_assert_uint_eq(err.line, 1);
				ck_assert_ptr_nonnull(strstr(err.message, "more than 4096 bytes"));
			}
			workload_free(&w);
		}
	free(text);
}

/* Long fields are shortened in messages. */
TEST(ops_long_fields)
{
	char text[3000];

	for (int field = 0; field < 4; field++) {
		static const char *const before[] = {"", "1 ", "1 get ", "1 put k1 "};

		memset(text, 'z', sizeof(text));
		memcpy(text, before[field], strlen(before[field]));
		ck_assert_int_eq(read_bytes(text, sizeof(text), &w, &err), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err.message, "zzz...'"));
		ck_assert_ptr_nonnull(strstr(err.message, "expected"));
		ck_assert_uint_lt(strlen(err.message), sizeof(err.message) - 1);
	}
}

TEST(ops_too_many)
{
	FILE *f = tmpfile();

	for (int i = 0; i < 4097; i++)
		fprintf(f, "%d put k%d 8\n", i % 16 + 1, i % 64);
	rewind(f);
	ck_assert_int_eq(workload_read_ops(f, &w, &err), -EINVAL);
	ck_assert_uint_eq(err.line, 4097);
	ck_assert_str_eq(err.message, "more than 4096 operations; split the list");
	fclose(f);
	f = tmpfile();
	for (int i = 0; i < 65; i++)
		fprintf(f, "1 get k%d\n", i);
	rewind(f);
	ck_assert_int_eq(workload_read_ops(f, &w, &err), -EINVAL);
	ck_assert_uint_eq(err.line, 65);
	ck_assert_str_eq(err.message, "more than 64 keys; split the list");
	fclose(f);
}

TEST(ops_unreadable)
{
	FILE *f = fopen("/", "r"); /* a directory opens, and cannot be read */

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(workload_read_ops(f, &w, &err), -EIO);
	ck_assert_ptr_nonnull(strstr(err.message, "reading failed: "));
	fclose(f);
}

RUN_TESTS(NULL, free_workload)
