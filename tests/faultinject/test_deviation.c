/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deviations: every kind of choice point there and back through words, with its
 * name unchanged; the words themselves; and what is not accepted.
 */
#include "faultinject/deviation.h"
#include "tests/suite.h"

static const struct tm_region region[] = {
	{"table", 0, 0x100}, {"log", 0x100, 0x1000}, {"log2", 0x1100, 0x40}};
static const struct deviation_names names = {region, ROWS_OF(region)};

static bool same(const struct deviation *a, const struct deviation *b)
{
	return a->kind == b->kind && !strcmp(a->who, b->who) && op_label_equal(a->op, b->op) &&
	       a->occurrence == b->occurrence && a->a == b->a && a->b == b->b && a->c == b->c &&
	       a->answer == b->answer;
}

/* Print, parse, compare; the name is that of the point. Asserts only what failed: an assertion
 * costs a system call. */
static void round_trip(const struct choice_point *at, unsigned answer, unsigned n,
		       uint32_t versions)
{
	struct deviation d, back;
	char words[DEVIATION_TEXT], again[DEVIATION_TEXT];
	const char *expected = "";

	deviation_record(&d, at, answer, n);
	if (at->kind == CHOICE_LINE)
		d.c = versions;
	deviation_print(&d, &names, words, sizeof(words));
	if (deviation_parse(&back, &names, words, &expected))
		ck_abort_msg("%s: expected %s", words, expected);
	if (!same(&d, &back))
		ck_abort_msg("another deviation: %s", words);
	if (deviation_key(&d) != choice_key(at) || deviation_key(&back) != choice_key(at))
		ck_abort_msg("another name: %s", words);
	deviation_print(&back, &names, again, sizeof(again));
	if (strcmp(words, again) != 0)
		ck_abort_msg("%s is printed as %s", words, again);
}

/* --- there and back --- */

static const char *const who[] = {"c1", "server", "c16/qp12", "server/verifier",
				  "c2/abcdefghijklmnopqrst"};
static const struct {
	struct op_label op;
	uint16_t occurrence;
} labels[] = {
	{{1, OP_PUT, 1}, 1},  {{16, OP_GET, 4096}, 2}, {{17, OP_DEL, UINT16_MAX}, UINT16_MAX},
	{{2, OP_OPEN, 1}, 1}, {{0, OP_NONE, 0}, 0},    {{0, OP_NONE, 0}, 1},
	{{0, OP_NONE, 0}, 2},
};
static const uint32_t numbers[] = {0,
				   1,
				   7,
				   255,
				   256,
				   65535,
				   65536,
				   0x7fffff,
				   0x800001,
				   0x1000002,
				   (1u << 28) - 1,
				   1u << 28,
				   (2u << 28) + 5,
				   3u << 28,
				   UINT32_MAX};

/*
 * Points of a kind, whose a is fixed or runs through the numbers (-1), with all
 * answers: everybody with every label, and all pairs of numbers for a and b.
 */
static void sweep(enum choice_kind kind, int64_t a, bool b, bool c, unsigned answers)
{
	unsigned whose = (unsigned)ROWS_OF(who) + 1, all = whose * (unsigned)ROWS_OF(labels),
		 n = (unsigned)ROWS_OF(numbers);

	for (unsigned i = 0; i < all * n; i++) {
		struct actor actor;
		unsigned pair = i / n, w = pair % whose, l = pair / whose;
		struct choice_point at = {.kind = (uint8_t)kind,
					  .op = labels[l].op,
					  .occurrence = labels[l].occurrence};
		if (w) {
			actor_init(&actor, who[w - 1]);
			at.who = &actor;
		}
		at.a = a < 0 ? numbers[i % n] : (uint32_t)a;
		at.b = b ? numbers[(i + pair) % n] : 0;
		at.c = c ? numbers[(i + 3 * pair) % n] : 0;
		for (unsigned answer = 1; answer < answers; answer++)
			round_trip(&at, answer, answers, 0);
	}
}

/* The table of kinds: each has words for a point and for each kind of answer, and a class of
 * records of its own. (The words of a line are tried below.) */
TEST(each_kind)
{
	static const uint8_t record[] = {
#define X(name, class, ...) class,
		CHOICES(X)
#undef X
	};
	struct actor actor;

	actor_init(&actor, "c1");
	for (unsigned k = 0; k < CHOICE_KINDS; k++) {
		const struct choice_traits *traits = &choice_traits[k];
		struct choice_point at = {
			.kind = (uint8_t)k, .who = &actor, .op = {1, OP_PUT, 1}, .occurrence = 1};
		for (unsigned other = 0; other < k; other++)
			ck_assert(record[k] == NO_RECORD || record[k] != record[other]);
		ck_assert_uint_le(traits->delay, traits->delay ? traits->faults + 1u : 0);
		if (k == CHOICE_LINE)
			continue;
		round_trip(&at, 1, 2, 0);
		if (traits->faults)
			round_trip(&at, traits->faults, traits->faults + 1u, 0);
		if (traits->delay)
			round_trip(&at, choice_delay_answer(k, DELAY_SWITCH), 2, 0);
		if (traits->delay)
			round_trip(&at, choice_delay_answer(k, delay_of_ns(DELAY_NS_MOST)), 2, 0);
		if (traits->counted)
			round_trip(&at, 7, 8, 0);
	}
}

TEST(steps)
{
	for (unsigned step = 0; step < STEP_KINDS; step++)
		sweep(CHOICE_STEP, step, true, false, DELAYS);
}

/* Only a client's process or machine can be dead; the server's process is, at any task's step. */
TEST(dead_clients)
{
	struct actor actor;
	struct choice_point at = {
		.kind = CHOICE_STEP, .who = &actor, .op = {1, OP_PUT, 1}, .occurrence = 1, .b = 3};

	actor_init(&actor, "c1");
	round_trip(&at, DELAY_FOREVER, DELAYS + 1, 0);
	for (unsigned k = DEATH_SERVER; k < DEATHS_END; k++)
		round_trip(&at, k, DELAYS + 1, 0);
	ck_assert(!choice_allows(CHOICE_STEP, DELAYS + 1, DEATHS_END));
	ck_assert(!choice_allows(CHOICE_BUFFER, DELAYS, DEATH_SERVER));
	actor_init(&actor, "server2/verifier");
	round_trip(&at, DEATH_SERVER, DELAYS, 0);
}

TEST(packets)
{
	sweep(CHOICE_PACKET, -1, true, true, PACKET_DELAY + DELAYS - 1);
}

TEST(lines_of_packets)
{
	sweep(CHOICE_LAND, -1, true, true, DELAYS);
	sweep(CHOICE_ORDER, -1, true, true, 12);
	sweep(CHOICE_FETCH, -1, true, true, DELAYS);
	sweep(CHOICE_DRAIN, -1, true, true, DELAYS);
}

TEST(caches)
{
	sweep(CHOICE_EVICT, 0, false, false, 100);
}

TEST(store_buffers)
{
	sweep(CHOICE_BUFFER, -1, false, false, DELAYS);
}

TEST(calls)
{
	for (unsigned point = 0; point < FAIL_POINT_COUNT; point++)
		sweep(CHOICE_FAIL, point, true, false, 2);
}

TEST(lives)
{
	sweep(CHOICE_LIFE, -1, false, false, 40);
}

TEST(power)
{
	for (unsigned place = 0; place < CRASH_PLACES; place++)
		if (place == CRASH_AT_END)
			round_trip(&(struct choice_point){.kind = CHOICE_CRASH, .a = place}, 1, 2,
				   0);
		else
			sweep(CHOICE_CRASH, place, true,
			      place == CRASH_BEFORE_LAND || place == CRASH_BEFORE_DRAIN, 2);
}

TEST(lines_of_memory)
{
	for (uint32_t versions = 1; versions < 9; versions++)
		for (uint32_t line = 0; line <= 0x2000 / LINE; line += 1 + 9 * versions)
			for (uint32_t crash = 1; crash <= 2; crash++) {
				struct choice_point at = {
					.kind = CHOICE_LINE, .a = line, .b = crash};
				unsigned answers = pmem_answers(versions, TORN_ANY);
				for (unsigned answer = 1; answer < answers; answer++)
					round_trip(&at, answer,
						   answer <= versions
							   ? pmem_answers(versions, TORN_OFF)
							   : answers,
						   versions);
			}
	round_trip(&(struct choice_point){.kind = CHOICE_LINE, .a = UINT32_MAX, .b = 1}, 1, 2, 1);
}

/* --- the words --- */

static const char *const good[] = {
	"c1 c1.put2 before store 3: delay 500ns",
	"c1 c1.get1#2 before load 1: delay for ever",
	"server c1.put1 before fence 1: delay 5ms",
	"server/verifier - before completion 40: delay 100ms",
	"server/verifier -#2 before post 1: delay 100ns",
	"c2 c2.del1 before flush 9: delay 30us",
	"server/verifier c2.del1 before flush 9: server dies",
	"server2 c1.put1 before fence 1: delay 5ms",
	"c1 c1.get1#2 before load 1: process dies",
	"c2 c2.put1 before post 1: machine dies",
	"c1/qp1 c1.put2 message 2 packet 1 try 1: lose",
	"c1/qp1 c1.put2 message 2 packet 0 try 1: duplicate",
	"c1/qp1 c1.put2 message 2 packet 0 try 1 copy 1: delay 2us",
	"c1 c1.put1 before begin 1: delay 250us",
	"server/qp4 c2.get1 reading message 2 packet 1 line 3: delay 165102ns",
	"c1 c1.put1 buffer store 3: delay 1073ms",
	"server/qp1 c1.get1 message 1 ack 0 try 2: lose",
	"server/qp1 c1.get1 message 1 reply 3 try 1: delay 200us",
	"server/qp1 c1.put2 landing message 2 packet 1 line 3: delay 8us",
	"server/qp1 c1.put2 order message 2 packet 0 landed 1: 3 ahead",
	"server/qp1 c1.put2 order message 2 packet 0 fetched 1: 3 ahead",
	"server/qp1 c1.put2 order message 2 packet 0 fetched 0 try 2 copy 1: 1 ahead",
	"server/qp1 c1.get2 reading message 1 packet 0 line 2: delay 8us",
	"server/qp1 c1.get2 reading message 1 packet 0 line 2 try 2: delay 8us",
	"server/qp1 c1.get2 reading message 1 packet 0 line 2 try 1 copy 1: delay 8us",
	"server/qp1 c1.put2 draining message 2 packet 1 line 9: delay 8us",
	"c1 c1.put2 cache: write back all",
	"c1 c1.put2 cache: write back dirty line 2",
	"c2 c2.get1 power after return 1: fails",
	"server c1.put1 power before fence 2: fails",
	"server c1.put1 power before store 7: fails",
	"server/qp1 c1.put1 power before landing message 1 packet 2 line 300: fails",
	"server/qp1 c1.put1 power before drain message 1 packet 2 line 300: fails",
	"c1 c1.put1 power before write-back 1: fails",
	"- - power at end: fails",
	"server c1.put2 call verbs/post_send 1: fails",
	"c1 c1.open1 call memory 3: fails",
	"c2 - life 1: clean",
	"c2 - life 1: put key 1",
	"c3 - life 2: put key 2 long",
	"c3 - life 3: get key 64",
	"c3 - life 2: del key 10",
	"c1 c1.put1 power anywhere 5: fails",
	"line table+0x0: version 0 of 1",
	"line log+0x240: version 0 of 2",
	"line log+0x240 at crash 2: version 1 of 2",
	"line log2+0x0: version 2 of 2 cut after word 7",
	"line pm+0x1140: version 0 of 1",
};

TESTS(good_words, ROWS_OF(good))
{
	struct deviation d;
	char words[DEVIATION_TEXT];
	const char *expected = "";

	ck_assert_msg(!deviation_parse(&d, &names, good[_i], &expected), "%s: expected %s",
		      good[_i], expected);
	deviation_print(&d, &names, words, sizeof(words));
	ck_assert_str_eq(words, good[_i]);
}

/* Words of older versions are read, and printed as they are said now. */
static const struct {
	const char *old, *now;
} older[] = {
	{"c1 c1.put2 before store 3: hold 500ns", "c1 c1.put2 before store 3: delay 500ns"},
	{"c1 - before store 3: hold for ever", "c1 - before store 3: delay for ever"},
	{"c2 c2.get1 before begin 1: hold until rest",
	 "c2 c2.get1 before begin 1: delay until quiescence"},
	{"c1/qp1 c1.put1 message 2 packet 1 try 1: hold and switch",
	 "c1/qp1 c1.put1 message 2 packet 1 try 1: delay and switch"},
};

TESTS(older_words, ROWS_OF(older))
{
	struct deviation d;
	char words[DEVIATION_TEXT];
	const char *expected = "";

	ck_assert_msg(!deviation_parse(&d, &names, older[_i].old, &expected), "%s: expected %s",
		      older[_i].old, expected);
	deviation_print(&d, &names, words, sizeof(words));
	ck_assert_str_eq(words, older[_i].now);
}

/* A prefix of good words, or good words with a byte too many, means nothing. */
TESTS(damaged_words, ROWS_OF(good))
{
	struct deviation d;
	const char *expected;
	char words[DEVIATION_TEXT];

	for (size_t len = 0; len < strlen(good[_i]); len++) {
		memcpy(words, good[_i], len);
		words[len] = '\0';
		int rc = deviation_parse(&d, &names, words, &expected);
		/* ".. line 12" is a good beginning of ".. line 123"; so is all before " cut". */
		if (!rc) {
			char again[DEVIATION_TEXT];
			deviation_print(&d, &names, again, sizeof(again));
			ck_assert_str_eq(words, again);
		}
	}
	strcat(strcpy(words, good[_i]), "x");
	ck_assert_int_eq(deviation_parse(&d, &names, words, &expected), -EINVAL);
	strcat(strcpy(words, good[_i]), " ");
	ck_assert_int_eq(deviation_parse(&d, &names, words, &expected), -EINVAL);
}

static const struct {
	const char *words, *expected;
} bad[] = {
	{"", "WHO OPERATION POINT: ANSWER"},
	{"c1", "WHO OPERATION POINT: ANSWER"},
	{"c1 c1.put1: lose", "WHO OPERATION POINT: ANSWER"},
	{"c1 c1.put1 cache", "WHO OPERATION POINT: ANSWER"},
	{" c1.put1 cache: write back all", "who: such as"},
	{"c123456789012345678901234 - cache: write back all", "who: such as"},
	{"c1 c1.puts1 cache: write back all", "an operation such as"},
	{"c1 c1.put cache: write back all", "an operation such as"},
	{"c1 c1.put0 cache: write back all", "an operation such as"},
	{"c1 c1.put-1 cache: write back all", "an operation such as"},
	{"c1 c1.put01 cache: write back all", "an operation such as"},
	{"c1 c1.put65536 cache: write back all", "an operation such as"},
	{"c1 c1.put4294967297 cache: write back all", "an operation such as"},
	{"c1 c0.put1 cache: write back all", "an operation such as"},
	{"c1 c24.put1 cache: write back all", "an operation such as"},
	{"c1 c1.put1#1 cache: write back all", "an operation such as"},
	{"c1 c1.put1#0 cache: write back all", "an operation such as"},
	{"c1 c1.put1#65536 cache: write back all", "an operation such as"},
	{"c1 c1.none1 cache: write back all", "an operation such as"},
	{"c1 - caches: write back all", "a point such as"},
	{"c1 - before lunch 1: delay 2us", "a point such as"},
	{"c1 - before store 1: delay 0ns", "TIME such as"},
	{"c1 - before store 1: delay 250000ns", "TIME such as"}, /* one name for each */
	{"c1 - before store 1: delay 1074ms", "TIME such as"},
	{"c1 - before store 1: delay 1073741809ns", "TIME such as"},
	{"c1 - before store -1: delay 2us", "a point such as"},
	{"c1 - before store 4294967296: delay 2us", "a point such as"},
	{"c1 - before store 99999999999999999999999: delay 2us", "a point such as"},
	{"c1 - before store  3: delay 2us", "a point such as"},
	{"c1 - message 1 packet 268435456 try 1: lose", "a point such as"},
	{"c1 - message 1 ack 268435456 try 1: lose", "a point such as"},
	{"c1 - message 1 packet 1 try 65537: lose", "a point such as"},
	{"c1 - message 1 packet 1 try 1 copy 0: lose", "a point such as"},
	{"c1 - reading message 1 packet 1 line 8388608: delay 2us", "a point such as"},
	{"c1 - reading message 1 packet 1 line 1 try 1: delay 2us", "a point such as"},
	{"c1 - reading message 1 packet 1 line 1 try 257: delay 2us", "a point such as"},
	{"c1 - power before landing message 1 packet 65536 line 1: fails", "a point such as"},
	{"c1 - power before landing message 1 packet 1 line 65536: fails", "a point such as"},
	{"c1 - power at night 1: fails", "a point such as"},
	{"c1 - power at end 1: fails", "a point such as"},
	{"c1 c1.put1 power at end: fails", "nobody's"},
	{"- -#2 power at end: fails", "nobody's"},
	{"c1 - before store 3: hold 3us", "\"delay TIME\""},
	{"c1 - before store 3: lose", "for ever"},
	{"c1 - before store 3: hold", "\"delay TIME\""},
	{"c1 - before store 3: delay 3 us", "\"delay TIME\""},
	{"c1 - before store 3: delay", "\"delay TIME\""},
	{"c1 - before store 3: delay hold 2us", "\"delay TIME\""},
	{"server - before store 3: delay for ever", "TIME such as"},
	{"c1/qp1 - landing message 1 packet 1 line 1: delay for ever", "TIME such as"},
	{"c1/qp1 - message 1 packet 1 try 1: delay for ever", "\"lose\""},
	{"c1/qp1 - message 1 packet 1 try 1: deliver", "\"lose\""},
	{"c1/qp1 - order message 1 packet 1 landed 1: 0 ahead", "N ahead"},
	{"c1/qp1 - order message 1 packet 1 landed 1: 65536 ahead", "N ahead"},
	{"c1/qp1 - order message 1 packet 1 fetched 1: 0 ahead", "N ahead"},
	{"c1 - cache: write back dirty line 0", "write back all"},
	{"c1 - power after return 1: holds", "fails"},
	{"c1 c1.put1 call verbs/post_send 1: works", "fails"},
	{"c1 c1.put1 call verbs/post 1: fails", "a point such as"},
	{"c1 c1.put1 call verbs/post_send: fails", "a point such as"},
	{"c1 c1.put1 call verbs/post_send -1: fails", "a point such as"},
	{"line log+0x240", "line REGION"},
	{"line log+240: version 0 of 2", "name of a line"},
	{"line log+0x241: version 0 of 2", "name of a line"},
	{"line log+0x1000: version 0 of 2", "name of a line"},
	{"line nix+0x0: version 0 of 2", "name of a line"},
	{"line pm+0x4000000000: version 0 of 2", "name of a line"},
	{"line pm+0x10000000000000000: version 0 of 2", "name of a line"},
	{"line log+0x0 at crash 0: version 0 of 2", "line REGION"},
	{"line log+0x0 at crash 1: version 0 of 2", "line REGION"},
	{"line log+0x0 at crash 9: version 0 of 2", "line REGION"},
	{"line log+0x0: version 2 of 2", "version K of N"},
	{"line log+0x0: version 3 of 2", "version K of N"},
	{"line log+0x0: version -1 of 2", "version K of N"},
	{"line log+0x0: version 4294967296 of 2", "version K of N"},
	{"line log+0x0: version  0 of 2", "version K of N"},
	{"line log+0x0: version 0 of 2 cut after word 1", "version K of N"},
	{"line log+0x0: version 1 of 2 cut after word 8", "version K of N"},
	{"line log+0x0: the newest", "version K of N"},
};

TESTS(bad_words, ROWS_OF(bad))
{
	struct deviation d;
	const char *expected = "";

	ck_assert_msg(deviation_parse(&d, &names, bad[_i].words, &expected) == -EINVAL,
		      "accepted: %s", bad[_i].words);
	ck_assert_msg(strstr(expected, bad[_i].expected) != NULL, "%s: expected %s", bad[_i].words,
		      expected);
}

TEST(long_words)
{
	struct deviation d;
	const char *expected = "";
	char *words = malloc(1 << 20);

	memset(words, 'c', (1 << 20) - 1);
	words[(1 << 20) - 1] = '\0';
	ck_assert_int_eq(deviation_parse(&d, &names, words, &expected), -EINVAL);
	memcpy(words, "line ", 5);
	ck_assert_int_eq(deviation_parse(&d, &names, words, &expected), -EINVAL);
	free(words);
}

/* --- lists --- */

TEST(lists)
{
	struct deviations list = {0};

	for (unsigned i = 0; i < 1000; i++) {
		struct deviation d = {.kind = CHOICE_STEP, .b = i};
		ck_assert_int_eq(deviations_add(&list, &d), 0);
	}
	ck_assert_uint_eq(list.n, 1000);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_uint_eq(list.d[i].b, i);
	deviations_free(&list);
	ck_assert_uint_eq(list.n, 0);
	ck_assert_ptr_null(list.d);
}

RUN_TESTS(NULL, NULL)
