/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frequencies of known causes: the table's text and its mistakes, what is far above it, which
 * column a variant is compared with, and that the tables that ship here have all rows and columns
 * of the default campaign.
 */
#include "checker/judge/known.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

static struct known_columns columns;
static struct known_row row[4];
static unsigned rows;

static int read_row(struct text *t, char *line, void *arg)
{
	(void)arg;
	int rc = known_read(t, line, &columns, &row[rows]);
	rows += rc == 0;
	return rc > 0 ? 0 : rc;
}

static int read_text(const char *words, struct input_error *error)
{
	struct text t;
	char *bytes = strdup(words);
	ck_assert_ptr_nonnull(bytes);
	columns = (struct known_columns){0};
	rows = 0;
	memset(error, 0, sizeof(*error));
	text_start(&t, bytes, strlen(bytes), error);
	int rc = text_rows(&t, read_row, NULL);
	free(bytes);
	return rc;
}

TEST(table_is_read)
{
	struct input_error error;
	ck_assert_int_eq(read_text("# a comment\n\ncolumn default\ncolumn ddio=off\n"
				   "* DUR value  put kept   |  12   .\n"
				   "* LIVE - - up | . 4000000000\nv/* compared\n",
				   &error),
			 0);
	ck_assert_uint_eq(columns.n, 2);
	ck_assert_uint_eq(rows, 3);
	ck_assert_int_eq(known_column(&columns, "ddio=off"), 1);
	ck_assert_int_eq(known_column(&columns, "ddio=on"), -1);
	ck_assert_str_eq(row[0].words, "* DUR value put kept");
	ck_assert(row[0].counted);
	ck_assert_uint_eq(row[0].blame.contract, TM_DUR);
	ck_assert_uint_eq(row[0].runs[0], 12);
	ck_assert_uint_eq(row[0].runs[1], 0);
	ck_assert_uint_eq(row[1].runs[1], 4000000000);
	ck_assert(row[2].bare && !row[2].counted);
}

TEST(mistakes_are_told)
{
	static const struct {
		const char *text, *wrong;
		unsigned line;
	} bad[] = {
		{"column \n", "a configuration's name", 1},
		{"column default ddio=off\n", "a configuration's name", 1},
		{"column default\n\ncolumn default\n", "twice", 3},
		{"column default\n* LIVE - - | 1\ncolumn ddio=off\n", "columns come first", 3},
		{"column default\n* LIVE - - 1\n", "expected parts", 2},
		{"column default\n| 1\n", "a contract", 2},
		{"column default\n* LIVE - - |\n", "for each column", 2},
		{"column default\n* LIVE - - | 0\n", "for each column", 2},
		{"column default\n* LIVE - - | -1\n", "for each column", 2},
		{"column default\n* LIVE - - | 5000000000\n", "for each column", 2},
		{"column default\n* LIVE - - | 1 2\n", "more numbers", 2},
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct input_error error;
		ck_assert_int_eq(read_text(bad[i].text, &error), -EINVAL);
		ck_assert_msg(strstr(error.message, bad[i].wrong) != NULL, "%s: %s", bad[i].text,
			      error.message);
		ck_assert_uint_eq(error.line, bad[i].line);
	}
}

/* A half more, and 20 more: neither a few runs nor what chance does to many are told. */
TEST(what_is_far_above)
{
	ck_assert_uint_eq(known_limit(0), 20);
	ck_assert_uint_eq(known_limit(100), 170);
	ck_assert_uint_eq(known_limit(10000), 15020);
	ck_assert_uint_eq(known_limit(UINT32_MAX), 6442450942 + 20);
}

static const char *column_of(const char *store, const char *variant)
{
	static char name[KNOWN_WORDS];
	known_column_name(store_find(store), variant, "ack_early=off", name);
	return name;
}

TEST(bugs_are_compared_with_what_they_are_put_into)
{
	uint32_t runs;
	ck_assert_str_eq(column_of("ca", "default"), "ack_early=off");
	ck_assert_str_eq(column_of("ca", "tail_short"), "ack_early=off");
	ck_assert_str_eq(column_of("ca", "unreachable_left"), "crowded/ack_early=off");
	ck_assert_str_eq(column_of("ca", "crowded"), "crowded/ack_early=off");
	unsigned first, rows = known_store_rows(store_find("ca"), &first);
	ck_assert_uint_gt(rows, 0);
	ck_assert(known_share(store_find("ca"), "tail_short", "default", first, &runs));
	ck_assert_uint_gt(runs, 0);
	ck_assert(!known_share(store_find("ca"), "crowded", "default", first, &runs));
	ck_assert(!known_share(store_find("ca"), "default", "mtu=256", first, &runs));
}

static void check_column(const struct tm_store *store, const char *config)
{
	unsigned first, rows = known_store_rows(store, &first);
	uint32_t runs;
	for (unsigned i = first; i < first + rows; i++)
		if (!strchr(known_words(i), '/'))
			ck_assert_msg(known_share(store, "default", config, i, &runs),
				      "core/stores/%s/causes.txt has no number for \"%s\", %s: "
				      "scripts/shares %s",
				      store->name, known_words(i), config, store->name);
}

/* Rows that are new have no numbers until these are recorded. */
TEST(what_ships_is_complete)
{
	ck_assert_msg(!known_mistake(), "%s", known_mistake());
	for (unsigned s = 0; stores[s]; s++) {
		for (unsigned d = 0; default_configs[d]; d++)
			check_column(stores[s], default_configs[d]);
		check_column(stores[s], sizes_config);
		for (const struct tm_shape *shape = stores[s]->shapes; shape && shape->name;
		     shape++)
			check_column(stores[s], shape->name);
	}
}

RUN_TESTS(NULL, NULL)
