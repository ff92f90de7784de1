/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that says what a live server serves: what is printed can be read, a text cut off
 * anywhere is refused, and what is wrong is named with its line. And live clients' values: one that
 * is torn at any word, cut, or another key's counts as written by no PUT.
 */
#include "scenarios/knobs.h"
#include "scenarios/live_store.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

static const char sample[] = "tidemark-pool 1\n"
			     "store efactory\n"
			     "variant default\n"
			     "knob room=tight\n"
			     "clients 8\n"
			     "keys 1000\n"
			     "updates 20000\n"
			     "value 256\n"
			     "pool 67108864\n"
			     "boot 3\n"
			     "state running\n";

static int parse(struct live_store *s, const char *text, unsigned *line, const char **expected)
{
	static struct input_error error;
	int rc = live_store_parse(s, text, store_find, &error);
	*line = error.line;
	*expected = error.message;
	return rc;
}

static void assert_printed(const struct live_store *s, const char *text)
{
	char buf[4096];
	ck_assert_int_eq(live_store_print(s, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, text);
}

TEST(sample_is_read)
{
	struct live_store s;
	unsigned line;
	const char *expected = "";
	ck_assert_msg(!parse(&s, sample, &line, &expected), "%u: %s", line, expected);
	ck_assert_ptr_eq(s.store, store_find("efactory"));
	ck_assert_str_eq(s.variant, "default");
	ck_assert_uint_eq(s.params.clients, 8);
	ck_assert_uint_eq(s.params.keys, 1000);
	ck_assert_uint_eq(s.params.updates, 20000);
	ck_assert_uint_eq(s.params.max_vlen, 256);
	ck_assert_uint_eq(s.pool_bytes, 67108864);
	ck_assert_uint_eq(s.boot, 3);
	ck_assert(s.running);
	assert_printed(&s, sample);
}

/* Each value of each knob of each store, and each variant's name. */
TEST(round_trip)
{
	unsigned line;
	const char *expected = "";
	for (unsigned i = 0; stores[i]; i++) {
		struct live_store s = {.store = stores[i], .boot = 1}, again;
		char text[4096];
		s.params = (struct tm_params){
			.clients = 4, .keys = 8, .updates = 50, .max_vlen = 64};
		for (unsigned k = 0; stores[i]->knobs[k].name; k++) {
			unsigned values = 1;
			for (const char *c = stores[i]->knobs[k].values; *c; c++)
				values += *c == ' ';
			for (unsigned v = 0; v < values; v++) {
				snprintf(s.variant, sizeof(s.variant), "%s",
					 v && stores[i]->variants[0].name
						 ? stores[i]->variants[0].name
						 : "default");
				s.params.knob[k] = (uint8_t)v;
				s.pool_bytes = stores[i]->pm_bytes(&s.params);
				ck_assert_int_eq(live_store_print(&s, text, sizeof(text)), 0);
				ck_assert_msg(!parse(&again, text, &line, &expected), "%s%u: %s",
					      text, line, expected);
				ck_assert_mem_eq(again.params.knob, s.params.knob,
						 sizeof(s.params.knob));
				ck_assert_str_eq(again.variant, s.variant);
				ck_assert(!again.running);
				assert_printed(&again, text);
			}
			s.params.knob[k] = 0;
		}
	}
}

TEST(cut_text_is_refused)
{
	struct live_store s;
	unsigned line;
	const char *expected;
	char text[sizeof(sample)];
	for (size_t n = 0; n < sizeof(sample) - 1; n++) {
		memcpy(text, sample, n);
		text[n] = '\0';
		ck_assert_int_eq(parse(&s, text, &line, &expected), -EINVAL);
	}
}

TEST(no_room)
{
	struct live_store s;
	unsigned line;
	const char *expected;
	char text[sizeof(sample)];
	ck_assert_int_eq(parse(&s, sample, &line, &expected), 0);
	for (size_t n = 0; n < sizeof(sample); n++)
		ck_assert_int_eq(live_store_print(&s, text, n), -ENOSPC);
	ck_assert_int_eq(live_store_print(&s, text, sizeof(sample)), 0);
}

static const struct {
	const char *from, *to; /* in the sample */
	unsigned line;
	const char *expected; /* is part of what is said */
} wrong[] = {
	{"tidemark-pool 1", "tidemark-pool 2", 1, "tidemark-pool 1"},
	{"tidemark-pool 1", "tidemark-trace 1", 1, "tidemark-pool 1"},
	{"store efactory", "store nonesuch", 2, "store"},
	{"store efactory", "shop efactory", 2, "store"},
	{"variant default", "variant nonesuch", 3, "variant"},
	{"knob room=tight", "knob room", 4, "name=value"},
	{"knob room=tight", "knob room=3", 4, "ample"},
	{"knob room=tight", "knob domain=mhp", 4, "name=value"},
	{"clients 8", "clients 0", 5, "1 to 16"},
	{"clients 8", "clients 17", 5, "1 to 16"},
	{"clients 8", "clients 8x", 5, "1 to 16"},
	{"clients 8", "clients -8", 5, "1 to 16"},
	{"clients 8", "clients ", 5, "1 to 16"},
	{"clients 8\n", "", 5, "clients"},
	{"keys 1000", "keys 99999999999999999999999", 6, "keys"},
	{"keys 1000", "keys 4294967296", 6, "keys"},
	{"value 256", "value 15", 8, "16 to 65536"},
	{"value 256", "value 65537", 8, "16 to 65536"},
	{"pool 67108864", "pool 64", 9, "room"},
	{"boot 3", "boot three", 10, "boot"},
	{"state running", "state walking", 11, "running or stopped"},
	{"state running\n", "state running\nmore 1\n", 12, "nothing"},
};

TESTS(wrong_line_is_named, sizeof(wrong) / sizeof(wrong[0]))
{
	struct live_store s;
	unsigned line = 0;
	const char *expected = "", *at = strstr(sample, wrong[_i].from);
	char text[2 * sizeof(sample)];
	ck_assert_ptr_nonnull(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - sample), sample, wrong[_i].to,
		 at + strlen(wrong[_i].from));
	ck_assert_int_eq(parse(&s, text, &line, &expected), -EINVAL);
	ck_assert_msg(strstr(expected, wrong[_i].expected), "%s", expected);
	ck_assert_uint_eq(line, wrong[_i].line);
}

TEST(keys)
{
	char key[LIVE_KEY_LEN + 1];
	live_key(7, key);
	ck_assert_str_eq(key, "user0000000007");
	live_key(UINT32_MAX, key);
	ck_assert_str_eq(key, "user4294967295");
}

TEST(values_are_known_again)
{
	static const size_t lengths[] = {16, 17, 23, 24, 100, 256, 4096, 65536};
	static uint8_t bytes[65536];
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t id = live_put_id(3, 2, (uint32_t)i + 1), found = 0;
		live_value(id, 9, bytes, lengths[i]);
		ck_assert(live_value_id(9, bytes, lengths[i], &found));
		ck_assert_uint_eq(found, id);
		ck_assert(!live_value_id(8, bytes, lengths[i], &found));
		ck_assert(!live_value_id(9, bytes, lengths[i] - 1, &found));
		for (size_t at = 0; at < lengths[i]; at += 1 + lengths[i] / 64) {
			bytes[at] ^= 0x10;
			ck_assert(!live_value_id(9, bytes, lengths[i], &found));
			bytes[at] ^= 0x10;
		}
	}
	memset(bytes, 0, sizeof(bytes));
	uint64_t found;
	ck_assert(!live_value_id(0, bytes, 256, &found));
	ck_assert(!live_value_id(0, bytes, 15, &found));
}

/* The words up to any are one PUT's, the rest another's. */
TEST(torn_value_is_nobodys)
{
	uint8_t old[128], new[128], torn[128];
	uint64_t found;
	live_value(live_put_id(1, 1, 1), 5, old, sizeof(old));
	live_value(live_put_id(1, 1, 2), 5, new, sizeof(new));
	for (size_t at = 8; at < sizeof(old); at += 8) {
		memcpy(torn, new, at);
		memcpy(torn + at, old + at, sizeof(old) - at);
		ck_assert(!live_value_id(5, torn, sizeof(torn), &found));
	}
}

/* A value's bytes stand in recordings and on media: they never change. */
TEST(value_is_fixed)
{
	static const uint8_t expected[24] = {
		1,    0,    0,	  0,	2,    0,    0,	  3,	0x36, 0x8b, 0x89, 0xee,
		0xe4, 0x5a, 0xce, 0xed, 0x9d, 0x76, 0x70, 0xff, 0xbc, 0xdc, 0xa1, 0x0f,
	};
	uint8_t bytes[24];
	live_value(live_put_id(3, 2, 1), 4, bytes, sizeof(bytes));
	ck_assert_mem_eq(bytes, expected, sizeof(bytes));
}

RUN_TESTS(NULL, NULL)
