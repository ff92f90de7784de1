/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings of several machines, made by hand, become one (recording_merge.h). What each machine
 * does is a string of words, and so is the order that is expected:
 *
 *	x		the marker x
 *	>2:7  <1:7	packet 7 leaves for machine 2; comes from machine 1
 *	+2:10 -1:10	something is written to the connection with machine 2, after 10 bytes; 10
 *bytes of that with machine 1 have come
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/images/recording_merge.h"
#include "checker/images/recording_read.h"
#include "core/record/message.h"
#include "core/rt/asan.h"
#include "tests/suite.h"

#define MACHINES 4
#define ROOM	 16384

struct made {
	_Alignas(8) char bytes[ROOM];
	size_t len;
};
static struct made made[MACHINES];
static const char *const name[MACHINES] = {"1.rec", "2.rec", "3.rec", "4.rec"};
static struct merge_recording input[MACHINES];
static char why[1024];

/* --- recordings --- */

static void begin(struct made *m)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->bytes, RECORD_MAGIC, sizeof(RECORD_MAGIC));
	m->len = RECORD_HEAD;
}

static void end(struct made *m)
{
	struct record_head *head = (void *)m->bytes;
	head->used = head->room = m->len;
	head->ended = 1;
}

static struct record *add(struct made *m, enum record_kind kind, const void *payload, size_t len)
{
	struct record *r = (void *)(m->bytes + m->len);
	r->bytes = (uint32_t)(sizeof(*r) + (len + 7) / 8 * 8);
	m->len += r->bytes;
	ck_assert_uint_le(m->len, ROOM);
	r->kind = kind;
	r->len = (uint32_t)len;
	r->ns = 5;
	memcpy(r->payload, payload, len);
	return r;
}

static void add_file(struct made *m, unsigned file, const char *path)
{
	struct record *r = add(m, RECORD_FILE, path, strlen(path));
	r->off = 4096;
	r->file = file;
}

static uint32_t address_of(unsigned machine)
{
	return 0x0a000000u + machine;
}

static struct record_end end_of(unsigned machine)
{
	return (struct record_end){.address = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)machine},
				   .port = {1, (uint8_t)machine}};
}

/* What `word` says happens at machine `own`. */
static void add_word(struct made *m, unsigned own, const char *word)
{
	unsigned other, number;
	if (sscanf(word + 1, "%u:%u", &other, &number) != 2) {
		add(m, RECORD_MARK, word, strlen(word));
	} else if (*word == '>' || *word == '<') {
		struct record *r = add(m, *word == '>' ? RECORD_PACKET_OUT : RECORD_PACKET_IN, "",
				       0);
		r->source = address_of(own);
		r->file = address_of(other);
		r->message = 17;
		r->off = record_packet(number * 77, number, 4);
	} else {
		struct record_connection c = {end_of(own), end_of(other)};
		struct record *r = add(m, *word == '+' ? RECORD_SOCKET_OUT : RECORD_SOCKET_IN, &c,
				       sizeof(c));
		r->off = number;
	}
}

static void make(unsigned i, const char *words)
{
	char copy[200], *rest = copy;
	snprintf(copy, sizeof(copy), "%s", words);
	begin(&made[i]);
	for (char *word; (word = strsep(&rest, " "));)
		add_word(&made[i], i + 1, word);
	end(&made[i]);
	input[i] = (struct merge_recording){name[i], made[i].bytes, made[i].len};
}

/* --- the one that comes of them --- */

struct merged {
	char *bytes;
	size_t len;
};

static int merge(unsigned n, struct merged *to)
{
	struct merge *m;
	int error = merge_open(&m, input, n, why, sizeof(why));
	if (!error) {
		FILE *out = open_memstream(&to->bytes, &to->len);
		ck_assert_int_eq(merge_write(out, m), 0);
		fclose(out);
	}
	merge_close(m);
	return error;
}

static void read_merged(const struct merged *from, struct pm_log *log)
{
	struct input_error error = {0};
	ck_assert_int_eq(pm_log_open(log), 0);
	ck_assert_msg(!recording_read_pm(log, from->bytes, from->len, &error), "%s", error.message);
}

/* Its markers, in order. */
static void order_of(const struct merged *from, char *words, size_t len)
{
	struct pm_log log;
	size_t at = 0;
	words[0] = 0;
	read_merged(from, &log);
	for (size_t i = 0; i < log.events; i++)
		if (log.event[i].kind == PM_MARK)
			at += (size_t)snprintf(words + at, len - at, "%s%s", at ? " " : "",
					       log.source[log.event[i].source]);
	pm_log_close(&log);
}

/* What machines do, the first one first; the order; and where the last is given first. */
static const struct {
	const char *name, *machine[MACHINES], *order, *backwards;
} orders[] = {
	{"a landing comes after its post, and the completion after the landing",
	 {"post >2:1 posted <2:2 done", "before <1:1 landed >1:2 after"},
	 "post posted before landed done after",
	 "before post landed after posted done"},
	{"who does not wait goes on in the order that is given",
	 {"a b >2:1 c", "1 <1:1 2"},
	 "a b c 1 2",
	 "1 a b 2 c"},
	{"requests and answers of both",
	 {"a >2:1 <2:2 b >2:3 <2:4 c", "<1:1 A >1:2 <1:3 B >1:4 C"},
	 "a A b B c C",
	 "a A b B C c"},
	{"a packet that is sent again, and comes twice",
	 {"a >2:1 b >2:1 c", "<1:1 1 <1:1 2"},
	 "a b c 1 2",
	 "a 1 b 2 c"},
	{"one that was lost once", {"a >2:1 b >2:1 c", "<1:1 1"}, "a b c 1", "a 1 b c"},
	{"one that the network doubles", {"a >2:1 b", "<1:1 1 <1:1 2"}, "a b 1 2", "a 1 2 b"},
	{"one that never comes", {"a >2:1 >2:2 b", "1 <1:1 2"}, "a b 1 2", "1 a 2 b"},
	{"bytes of a connection",
	 {"a +2:0 b +2:10 c +2:20 d", "1 -1:10 2 -1:11 3 -1:20 4 -1:21 5"},
	 "a b c d 1 2 3 4 5",
	 "1 a 2 b 3 4 c 5 d"},
	{"a connection in both directions",
	 {"a +2:0 -2:4 b +2:8 -2:8 c", "-1:8 A +1:0 -1:16 B +1:4 C"},
	 "a A b B c C",
	 "a A b B C c"},
	{"nothing was seen to be written",
	 {"a +2:10 b", "1 -1:10 2 -1:12 3"},
	 "a b 1 2 3",
	 "1 2 a 3 b"},
	{"a chain of three",
	 {"a >2:1 b", "1 <1:1 2 >3:2 3", "x <2:2 y"},
	 "a b 1 2 3 x y",
	 "x 1 a 2 y 3 b"},
	{"an acknowledgement by a third",
	 {"put >2:1 put2 <3:9 known", "<1:1 landed >3:5 more", "<2:5 told >1:9 rest"},
	 "put put2 landed more told known rest",
	 "put landed told rest more put2 known"},
	{"packets between processes of one machine",
	 {"a >1:4 b <1:4 c >2:1 d", "<1:1 1"},
	 "a b c d 1",
	 "a b c 1 d"},
};

static void add_pm(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		add_file(&made[i], 0, name[i]);
		end(&made[i]);
		input[i].len = made[i].len;
	}
}

START_TEST(order)
{
	char got[400];
	struct merged one = {0}, again = {0};
	unsigned n = 0;
	for (; n < MACHINES && orders[_i].machine[n]; n++)
		make(n, orders[_i].machine[n]);
	add_pm(n);
	ck_assert_msg(!merge(n, &one), "%s: %s", orders[_i].name, why);
	order_of(&one, got, sizeof(got));
	ck_assert_msg(!strcmp(got, orders[_i].order), "%s: %s, not %s", orders[_i].name, got,
		      orders[_i].order);
	ck_assert_int_eq(merge(n, &again), 0);
	ck_assert_uint_eq(one.len, again.len);
	ck_assert_mem_eq(one.bytes, again.bytes, one.len);
	free(again.bytes);
	free(one.bytes);
	for (unsigned i = 0; i < n / 2; i++) {
		struct merge_recording first = input[i];
		input[i] = input[n - 1 - i];
		input[n - 1 - i] = first;
	}
	ck_assert_int_eq(merge(n, &one), 0);
	order_of(&one, got, sizeof(got));
	ck_assert_msg(!strcmp(got, orders[_i].backwards), "%s, backwards: %s, not %s",
		      orders[_i].name, got, orders[_i].backwards);
	free(one.bytes);
}
END_TEST

/* --- what cannot be --- */

static const struct {
	const char *machine[MACHINES], *why;
} wrongs[] = {
	{{"a", "b"}, "2.rec: no message goes from or to the other machines"},
	{{"a >2:1 b", "1"}, "2.rec: no message goes from or to the other machines"},
	{{"a >2:1 b", "<1:1", "c >2:1"}, "3.rec: no message goes from or to the other machines"},
	{{"a >2:1", "<1:1 <3:8"}, "2.rec: packets came from 10.0.0.3, and none of the recordings"},
	{{"a >2:1", "<1:2"}, "2.rec: a packet came from 10.0.0.1, and that machine's recording"},
	{{"<2:1 >2:2", "<1:2 >1:1"}, "1.rec and 2.rec each have something come before"},
	{{"-2:5 +2:0", "-1:5 +1:0"}, "1.rec and 2.rec each have something come before"},
	{{">2:5 <3:1 >2:2", "<1:5 <1:2 >3:3", "<2:3 >1:1"}, "1.rec and 3.rec each have"},
};

START_TEST(wrong)
{
	struct merged none;
	unsigned n = 0;
	for (; n < MACHINES && wrongs[_i].machine[n]; n++)
		make(n, wrongs[_i].machine[n]);
	ck_assert_int_eq(merge(n, &none), -EINVAL);
	ck_assert_msg(!strncmp(why, wrongs[_i].why, strlen(wrongs[_i].why)), "%s, not %s", why,
		      wrongs[_i].why);
}
END_TEST

static void refused(const char *expected)
{
	struct merged none;
	ck_assert_int_eq(merge(2, &none), -EINVAL);
	ck_assert_msg(!!strstr(why, expected), "%s, not %s", why, expected);
}

static void make_two(void)
{
	make(0, "post >2:1 <2:2 done");
	make(1, "<1:1 landed >1:2");
}

START_TEST(not_whole)
{
	struct record_head *head = (void *)made[1].bytes;
	make_two();
	input[1].len--;
	refused("2.rec: it says that it has");
	make_two();
	head->used -= 8;
	refused("2.rec: the record at byte ");
	make_two();
	head->full = 1;
	refused("2.rec: it was full");
	make_two();
	input[1].len = 100;
	refused("2.rec: it is shorter than the head");
	made[1].bytes[0] = 'x';
	refused("2.rec: expected a recording");
	make_two();
	input[1] = input[0];
	refused("1.rec and 1.rec are both of 10.0.0.1");
	make_two();
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned file = 0; file < 9; file++)
			add_file(&made[i], file, (char[]){'a' + (char)i, '0' + (char)file, 0});
		end(&made[i]);
		input[i].len = made[i].len;
	}
	refused("2.rec: with it there are more than 16 files");
}
END_TEST

/* --- numbers and names that both have --- */

START_TEST(shared_numbers)
{
	struct merged one = {0};
	struct pm_log log;
	make_two();
	for (unsigned i = 0; i < 2; i++) {
		struct record *r;
		struct record_head *head = (void *)made[i].bytes;
		add_file(&made[i], 0, i ? "/second" : "/first");
		add_file(&made[i], 1, "/both");
		add(&made[i], RECORD_SOURCE, "place", 5)->source = 1;
		add(&made[i], RECORD_SOURCE, i ? "there" : "here", i ? 5 : 4)->source = 2;
		r = add(&made[i], RECORD_STORE, "stored", 6);
		r->file = 1;
		r->thread = r->process = 40;
		r->source = 2;
		r = add(&made[i], RECORD_LAND, "landed", 6);
		r->thread = RECORD_RNIC | 17;
		r->process = 40;
		r = add(&made[i], RECORD_CALL, "put a 1", 7);
		r->off = 3;
		r->process = 41 + i;
		head->exact = 2 + i;
		head->stores = 1 + i;
		end(&made[i]);
		input[i].len = made[i].len;
	}
	ck_assert_msg(!merge(2, &one), "%s", why);
	const struct record_head *head = (void *)one.bytes;
	ck_assert(head->exact == 5 && head->stores == 2 && head->ended && head->files == 4);
	read_merged(&one, &log);
	ck_assert_uint_eq(log.files, 4);
	ck_assert_str_eq(log.file[0].name, "/first");
	ck_assert_str_eq(log.file[1].name, "1.rec:/both");
	ck_assert_str_eq(log.file[2].name, "/second");
	ck_assert_str_eq(log.file[3].name, "2.rec:/both");
	const struct pm_event *store[2], *land[2];
	unsigned stores = 0, lands = 0;
	for (size_t i = 0; i < log.events; i++) {
		ck_assert_uint_eq(log.event[i].ns, 0);
		if (log.event[i].kind == PM_STORE)
			store[stores++] = &log.event[i];
		if (log.event[i].kind == PM_LAND)
			land[lands++] = &log.event[i];
	}
	ck_assert(stores == 2 && lands == 2);
	ck_assert(store[0]->file == 1 && store[1]->file == 3);
	ck_assert_str_eq(log.source[store[0]->source], "here");
	ck_assert_str_eq(log.source[store[1]->source], "there");
	ck_assert(land[0]->file == 0 && land[1]->file == 2);
	/* The first keeps its numbers; 41 and 42 are taken. */
	ck_assert(store[0]->thread == 40 && store[0]->process == 40 && land[0]->process == 40);
	ck_assert(store[1]->thread == 43 && store[1]->process == 43 && land[1]->process == 43);
	ck_assert_uint_eq(land[0]->thread, RECORD_RNIC | 17);
	ck_assert_uint_eq(land[1]->thread, RECORD_RNIC | 18);
	ck_assert_uint_eq(log.calls, 2);
	ck_assert(log.call[0].client == 3 && log.call[1].client == 4);
	pm_log_close(&log);
	free(one.bytes);
}
END_TEST

/* --- anything --- */

static uint64_t state = 7;

static uint32_t rnd(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

/* Bytes that are not what they were: an order or a sentence, and nothing else. */
/* Some have PM of gigabytes then, of which the sanitizer makes a map each time. */
#define DAMAGES (TM_ASAN ? 1000 : 3000)

START_TEST(damaged)
{
	for (unsigned i = 0; i < DAMAGES; i++) {
		struct merged one = {0};
		make(0, "a >2:1 +2:5 <2:2 b -2:9 c");
		make(1, "<1:1 1 -1:9 2 >1:2 +1:1 3");
		add_pm(2);
		for (unsigned k = 0; k < 1 + rnd(4); k++) {
			unsigned of = rnd(2);
			size_t at = RECORD_HEAD + rnd((uint32_t)input[of].len - RECORD_HEAD);
			made[of].bytes[at] = (char)(rnd(3) ? rnd(16) : rnd(256));
		}
		if (!merge(2, &one)) {
			struct pm_log log;
			struct input_error error = {0};
			ck_assert_int_eq(pm_log_open(&log), 0);
			recording_read_pm(&log, one.bytes, one.len, &error);
			pm_log_close(&log);
		}
		free(one.bytes);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recording_merge");
	TCase *tc = tcase_create("machines");
	tcase_add_loop_test(tc, order, 0, sizeof(orders) / sizeof(*orders));
	tcase_add_loop_test(tc, wrong, 0, sizeof(wrongs) / sizeof(*wrongs));
	tcase_add_test(tc, not_whole);
	tcase_add_test(tc, shared_numbers);
	tcase_add_test(tc, damaged);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
