/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The taxonomy's table, the methods' acts, and what is chosen by them. None of this runs a method
 * but the last part, which counts what RemoteLog really posts and compares it with the acts that
 * were worked out from its steps.
 */
#include "checker/trace/replay.h"
#include "checker/models/taxonomy.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

static void read_good(struct taxonomy_table *t, const char *text)
{
	struct input_error where;
	int rc = taxonomy_read(t, text, &where);
	ck_assert_msg(!rc, "line %u: %s", where.line, where.message);
}

/* --- the table --- */

#define TWELVE "ok ok ok ok ok ok ok ok ok ok ok ok"
#define DOTS   ". . . . . . . . . . . ."

static const struct {
	const char *text, *says;
	unsigned line;
} bad[] = {
	{"", "at least one", 0},
	{"# nothing\n", "at least one", 0},
	{"row w1 ib : " TWELVE "\nrows w2 ib : " TWELVE,
	 "expected row, choice, like, with or silent", 2},
	{"row\n", "expected \"row METHOD", 1},
	{"row w1 rdma : " TWELVE, "expected ib, iwarp", 1},
	{"row w1 ib,ib : " TWELVE, "expected ib, iwarp", 1},
	{"row w1 : " TWELVE, "expected ib, iwarp", 1},
	{"row w1 ib " TWELVE, "expected \" : \"", 1},
	{"row w1 ib : ok ok", "2 words after the colon; expected 12", 1},
	{"row w1 ib : " TWELVE " ok", "more than 12", 1},
	{"row w1 ib : ok ok ok ok ok ok OK ok ok ok ok ok", "\"OK\": expected ok, L, O or LO", 1},
	{"row w1 ib : ok ok ok ok ok ok OL ok ok ok ok ok", "\"OL\": expected", 1},
	{"row w1 ib : " DOTS, "after a \"with\" only", 1},
	{"row w1 ib,iwarp : " TWELVE "\n\nrow w1 iwarp : " TWELVE,
	 "w1 twice; the other row is on line 1", 3},
	{"choice both write ib : " TWELVE, "expected singleton or compound", 1},
	{"choice compound read ib : " TWELVE, "expected write, writeimm or send", 1},
	{"choice compound write ib : w1", "1 words after", 1},
	{"with iio_in_mhp\n", "expected \"with NAME=VALUE\"", 1},
	{"silent crc\n", "expected \"silent NAME=VALUE\"", 1},
	{"like cw2f\n", "expected \"like METHOD METHOD\"", 1},
	{"row w1 ib : " TWELVE "\nlike w1 w2\n", "w1 has rows of its own", 2},
};

TESTS(bad_table, ROWS_OF(bad))
{
	struct taxonomy_table t;
	struct input_error where;
	ck_assert_int_lt(taxonomy_read(&t, bad[_i].text, &where), 0);
	ck_assert_msg(strstr(where.message, bad[_i].says) != NULL, "%s", where.message);
	ck_assert_uint_eq(where.line, bad[_i].line);
}

/* The one that is compiled in has all methods, of both transports. */
TEST(compiled_in)
{
	const struct taxonomy_knobs none = {NULL, 0};
	struct taxonomy_table t;
	unsigned with_rows = 0;
	read_good(&t, NULL);
	for (unsigned m = 0; m < taxonomy_methods(); m++) {
		with_rows += !taxonomy_like(&t, taxonomy_method(m));
		for (unsigned i = 0; i < TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS; i++)
			ck_assert_msg(taxonomy_says(&t, taxonomy_method(m), i / TAXONOMY_TRANSPORTS,
						    i % TAXONOMY_TRANSPORTS, &none, NULL) >= 0,
				      "%s", taxonomy_method(m));
	}
	ck_assert_uint_eq(with_rows, 29);
	for (unsigned i = 0; i < t.rows; i++)
		ck_assert_msg(taxonomy_find_method(t.row[i].method) >= 0, "%s", t.row[i].method);
	taxonomy_free(&t);
}

/* Switches add up; some silence it. */
TEST(switches)
{
	const char *const knob[] = {"iio_in_mhp=off", "flush_covers_send=off", "mtu=256",
				    "crc=off"};
	const char *const other[] = {"iio_in_mhp=off", "ack_early=off"};
	const struct taxonomy_knobs five = {other, 2};
	const struct taxonomy_knobs none = {knob, 0}, one = {knob, 1}, three = {knob, 3},
				    four = {knob, 4};
	const unsigned dmp_off_pm = 3, mhp_off = 6;
	struct taxonomy_table t;
	unsigned line = 0;
	read_good(&t, NULL);
	ck_assert_int_eq(taxonomy_says(&t, "cw3", mhp_off, TRANSPORT_IB, &none, NULL), 0);
	ck_assert_int_eq(taxonomy_says(&t, "cw3", mhp_off, TRANSPORT_IB, &one, &line),
			 TAXONOMY_DISORDERED);
	ck_assert_uint_gt(line, 0);
	ck_assert_int_eq(taxonomy_says(&t, "cw2", mhp_off, TRANSPORT_IB, &one, NULL), 0);
	ck_assert_int_eq(taxonomy_says(&t, "s3", dmp_off_pm, TRANSPORT_IB, &one, NULL), 0);
	ck_assert_int_eq(taxonomy_says(&t, "s3", dmp_off_pm, TRANSPORT_IB, &three, NULL),
			 TAXONOMY_LOST);
	ck_assert_int_eq(taxonomy_says(&t, "s3", dmp_off_pm, TRANSPORT_IB, &four, NULL), -1);
	/* The later one has the last word. */
	ck_assert_int_eq(taxonomy_says(&t, "w3", mhp_off, TRANSPORT_IB, &five, NULL),
			 TAXONOMY_LOST);
	ck_assert_int_eq(taxonomy_says(&t, "w3", mhp_off - 2, TRANSPORT_IB, &five, NULL), 0);
	ck_assert_int_eq(taxonomy_says(&t, "w9", 0, TRANSPORT_IB, &none, NULL), -1);
	ck_assert_str_eq(taxonomy_gives(&t, true, TAXONOMY_WRITE, mhp_off, TRANSPORT_IB, &none),
			 "cw3");
	ck_assert_str_eq(taxonomy_gives(&t, true, TAXONOMY_WRITE, mhp_off, TRANSPORT_IB, &three),
			 "cw2");
	ck_assert_ptr_null(taxonomy_gives(&t, true, TAXONOMY_WRITE, mhp_off, TRANSPORT_IB, &four));
	taxonomy_free(&t);
}

TEST(columns)
{
	struct hardware hw = hardware_default;
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		taxonomy_hardware(&hw, c, TRANSPORT_IWARP);
		ck_assert_uint_eq(taxonomy_column(&hw), c);
		ck_assert_uint_eq(hw.transport, TRANSPORT_IWARP);
	}
	taxonomy_hardware(&hw, 7, TRANSPORT_IB);
	ck_assert(hw.domain == DOMAIN_MHP && hw.ddio == DDIO_OFF && hw.rqwrb_pm &&
		  hw.transport == TRANSPORT_IB);
}

/* --- the cheapest --- */

/* Were each cell as the table says, would the cheapest be the methods that the papers give? */
TESTS(cheapest_is_the_papers, 6)
{
	static const char *const sets[][2] = {{"mtu=1024"},
					      {"iio_in_mhp=off"},
					      {"flush_covers_send=off"},
					      {"ack_early=off"},
					      {"ack_early=off", "iio_in_mhp=off"},
					      {"iio_in_mhp=off", "flush_covers_send=off"}};
	const struct taxonomy_knobs knobs = {sets[_i], sets[_i][1] ? 2 : 1};
	struct workload w = {0};
	const char *expected;
	unsigned wrong;
	struct taxonomy t;
	struct taxonomy_table table;
	ck_assert_int_eq(workload_named("w", &w, &expected), 0);
	const struct taxonomy_options options = {.knobs = knobs, .workload = &w};
	read_good(&table, NULL);
	ck_assert_int_eq(taxonomy_open(&t, &options, UINT64_MAX, &wrong, &expected), 0);
	for (unsigned i = 0; i < t.cells; i++) {
		struct taxonomy_cell *cell = &t.cell[i];
		cell->result = (struct taxonomy_result){.measured = true, .complete = true};
		cell->result.verdict = (uint8_t)taxonomy_says(&table, taxonomy_method(cell->method),
							      cell->column, cell->transport, &knobs,
							      NULL);
	}
	for (unsigned i = 0; i < 2 * TAXONOMY_PRIMITIVES * TAXONOMY_COLUMNS * TAXONOMY_TRANSPORTS;
	     i++) {
		unsigned transport = i % 2, c = i / 2 % TAXONOMY_COLUMNS,
			 k = i / 2 / TAXONOMY_COLUMNS;
		enum taxonomy_primitive p = (enum taxonomy_primitive)(k % TAXONOMY_PRIMITIVES);
		const struct taxonomy_cell *cheaper,
			*best = taxonomy_cheapest(&t, k >= TAXONOMY_PRIMITIVES, p, c, transport,
						  &cheaper);
		const char *gives = taxonomy_gives(&table, k >= TAXONOMY_PRIMITIVES, p, c,
						   transport, &knobs);
		ck_assert_ptr_nonnull(best);
		ck_assert_str_eq(taxonomy_method(best->method), gives);
		if (!cheaper)
			continue;
		struct method_cost less = taxonomy_cost(&t, cheaper),
				   cost = taxonomy_cost(&t, best);
		ck_assert_int_lt(method_cost_compare(&less, &cost), 0);
		ck_assert_uint_ne(cheaper->result.verdict, 0);
	}
	taxonomy_close(&t);
	taxonomy_free(&table);
	workload_free(&w);
}

TEST(order_of_costs)
{
	const struct method_cost cost[] = {{0, 9, 9, 9, 9}, {1, 0, 9, 9, 9}, {1, 1, 0, 9, 9},
					   {1, 1, 1, 0, 9}, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 1},
					   {2, 0, 0, 0, 0}};
	for (unsigned i = 0; i < ROWS_OF(cost); i++)
		for (unsigned k = 0; k < ROWS_OF(cost); k++)
			ck_assert_int_eq(method_cost_compare(&cost[i], &cost[k]),
					 i < k ? -1 : i > k);
}

/* --- the acts --- */

/* What the run did for its only PUT. */
struct posted {
	unsigned messages, bytes;
};

/* "c1/qp1: post WRITE, 216 bytes, log+0x80". The lock is RemoteLog's, not the method's; its word is
 * no PM. */
static void count_posts(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
			const struct traced *about, const char *text)
{
	struct posted *posted = arg;
	const char *post = strstr(text, ": post "), *comma = post ? strstr(post, ", ") : NULL;
	unsigned bytes = 0;
	if (!who || who->op.kind != OP_PUT || who->op.client != 1)
		return;
	if (!comma || strstr(text, "RECV") || strstr(text, "CMP_AND_SWP") ||
	    (strstr(text, "post WRITE,") && strstr(text, "key 0x")))
		return;
	ck_assert_int_eq(sscanf(comma, ", %u bytes", &bytes), 1);
	posted->messages++;
	if (!strstr(text, "post FLUSH") && !strstr(text, "post COMMIT"))
		posted->bytes += bytes;
}

/* A plain run posts just as many messages and bytes as the acts say. */
TESTS(posts, (int)taxonomy_methods())
{
	struct taxonomy_options options = {0};
	struct posted posted = {0};
	struct taxonomy_cell cell = {.method = (uint8_t)_i, .column = 3};
	struct taxonomy t = {0};
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *out = malloc(sizeof(*out));
	const struct replay_audience audience = {.tracer = count_posts, .arg = &posted};
	const struct deviations none = {0};
	struct workload w = {0};
	const char *expected;
	struct setup s;
	ck_assert(ex && out);
	ck_assert_int_eq(workload_named("w", &w, &expected), 0);
	options.workload = &w;
	t.options = options;
	taxonomy_setup(&t, &cell, &s);
	ck_assert_int_eq(workload_copy(&s.w, &w), 0);
	ck_assert_int_eq(setup_finish(&s), 0);
	ck_assert_int_eq(explore_open(ex, &s, &explore_default), 0);
	ck_assert_int_eq(replay(ex, &none, false, &audience, out), 0);
	struct method_cost cost = taxonomy_cost(&t, &cell);
	ck_assert_msg(posted.messages == cost.messages, "%s: %u messages, the acts say %u",
		      taxonomy_method(cell.method), posted.messages, cost.messages);
	ck_assert_msg(posted.bytes == cost.bytes, "%s: %u bytes, the acts say %u",
		      taxonomy_method(cell.method), posted.bytes, cost.bytes);
	explore_close(ex);
	setup_free(&s);
	workload_free(&w);
	free(ex);
	free(out);
}

/* Acts of a few methods, in full. */
static const struct {
	const char *method, *acts;
	unsigned column, transport;
	struct method_cost cost; /* but bytes */
} courses[] = {
	{"w2",
	 "WRITE a|FLUSH a|a lands|a drains|FLUSH is done*|",
	 2,
	 TRANSPORT_IB,
	 {1, 0, 0, 2, 0}},
	{"w2", "WRITE a|FLUSH a|a lands|FLUSH is done*|", 4, TRANSPORT_IB, {1, 0, 0, 2, 0}},
	{"w3", "WRITE a|has arrived*|a lands|", 8, TRANSPORT_IB, {1, 0, 0, 1, 0}},
	{"w3", "WRITE a|was sent*|a lands|", 8, TRANSPORT_IWARP, {0, 0, 0, 1, 0}},
	{"w1",
	 "WRITE a|SEND &a|a lands|receives &a|flush a|SEND ack*|",
	 0,
	 TRANSPORT_IB,
	 {1, 3, 0, 3, 0}},
	{"i2",
	 "WRITE_WITH_IMM a|FLUSH a|a lands|FLUSH is done*|receives &a|",
	 4,
	 TRANSPORT_IB,
	 {1, 0, 1, 2, 0}},
	{"s3",
	 "SEND a|FLUSH all|message lands|message drains|FLUSH is done*|receives it|copy a|flush a|",
	 3,
	 TRANSPORT_IB,
	 {1, 0, 3, 2, 0}},
	{"cw2f",
	 "WRITE a|FLUSH a|a lands|a drains|FLUSH is done|WRITE b (fenced)|FLUSH b|b lands|b "
	 "drains|FLUSH is "
	 "done*|",
	 2,
	 TRANSPORT_IB,
	 {2, 0, 0, 4, 0}},
	{"cs1x",
	 "SEND a, b|message lands (DRAM)|receives it|copy a|copy b|flush a|flush b|SEND ack*|",
	 0,
	 TRANSPORT_IB,
	 {1, 6, 0, 2, 0}},
	{"cs2",
	 "SEND a, b|message lands (DRAM)|receives it|copy a|copy b|SEND ack*|",
	 4,
	 TRANSPORT_IB,
	 {1, 4, 0, 2, 0}},
};

TESTS(course, ROWS_OF(courses))
{
	struct hardware hw = hardware_default;
	struct tm_params params = {0};
	char text[500] = "";
	struct acts acts;
	int method = taxonomy_find_method(courses[_i].method);
	ck_assert_int_ge(method, 0);
	params.knob[method_knob()] = (uint8_t)method;
	taxonomy_hardware(&hw, courses[_i].column, courses[_i].transport);
	method_acts(&params, &hw, 160, &acts);
	for (unsigned i = 0; i < acts.n; i++) {
		strcat(text, acts.act[i].text);
		strcat(text, i == acts.done ? "*|" : "|");
	}
	ck_assert_str_eq(text, courses[_i].acts);
	struct method_cost cost = method_cost(&acts);
	cost.bytes = 0;
	ck_assert_int_eq(method_cost_compare(&cost, &courses[_i].cost), 0);
}

RUN_TESTS(NULL, NULL)
