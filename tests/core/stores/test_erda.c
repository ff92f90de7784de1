/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's parts by themselves: the bits of an entry, hopscotch hashing, pools that hold anything.
 *
 * What clients get, what a power failure leaves and what recovery makes of it, campaigns try:
 * erda.c has a seeded bug for each rule, which test_bugs sees them find. test_erda_clean.c looks at
 * cleaning.
 */
#include <isa-l/crc.h>
#include "core/stores/erda/erda.h"
#include "core/stores/erda/layout.h"
#include "core/stores/erda/recover.h"
#include "tests/checker/setups.h"
#define CLIENTS 1
#include "tests/core/stores/scripts.h"

static struct erda_geo geo;

/* The pool's length. */
static size_t prepare_erda(const char *knobs, unsigned keys, unsigned updates, unsigned max_vlen)
{
	struct setup s;

	make_setup(&s, &erda_store, NULL, knobs);
	prepare(&erda_store, keys, updates);
	memcpy(w.params.knob, s.params.knob, sizeof(w.params.knob));
	w.params.max_vlen = max_vlen;
	erda_geo(&geo, &w.params);
	return erda_store.pm_bytes(&w.params);
}

/* The server's script on this pool, then the client's if there is one. The pool is as it is left.
 */
static void run(uint8_t *pool, void (*server)(void), script *client)
{
	w.boot = server;
	w.script[1] = client;
	w.clients = w.ended = 0;
	begin_world(pool);
	run_task(server_main);
	pmem_save(w.pm, pool);
	end_world();
}

static void formats(void)
{
	ck_assert_int_eq(erda_store.format(&w.env[0]), 0);
}

TEST(region_bits)
{
	uint64_t m = ERDA_EMPTY;

	ck_assert_uint_eq(erda_newoff(m), ERDA_NO_OFFSET);
	ck_assert_uint_eq(erda_oldoff(m), ERDA_NO_OFFSET);
	m = erda_put_off(m, 0);
	ck_assert(m == (1ull << 63 | (uint64_t)ERDA_NO_OFFSET << 1));
	m = erda_put_off(m, 0x7ffffffe);
	ck_assert(m == (uint64_t)0x7ffffffe << 1);
	m = erda_put_off(m | 1, 0x55555555);
	ck_assert_uint_eq(erda_newoff(m), 0x55555555);
	ck_assert_uint_eq(erda_oldoff(m), 0x7ffffffe);
	ck_assert_uint_eq(m & 1, 1);
	m = erda_revert(m);
	ck_assert_uint_eq(erda_newoff(m), 0x7ffffffe);
	ck_assert_uint_eq(erda_oldoff(m), 0x7ffffffe);
	ck_assert_uint_eq(m >> 63, 1);
	/* A reverted first version at the log's start is not a free entry. */
	m = erda_revert(erda_put_off(erda_put_off(ERDA_EMPTY, 0), 8));
	ck_assert(m == 0 && m != ERDA_EMPTY);
}

static void check_table(const struct erda_index *index, unsigned keys)
{
	for (unsigned k = 0; k < keys; k++) {
		struct erda_place place;
		char key[16];
		int n = snprintf(key, sizeof(key), "key%u", k), slot;

		erda_place(index->geo, key, (size_t)n, &place);
		slot = erda_find(index, place.home, key, (size_t)n);
		ck_assert_int_ge(slot, 0);
		ck_assert_uint_eq(index->entry[slot].region, erda_put_off(ERDA_EMPTY, k));
	}
}

static void fills_up(void)
{
	uint64_t moves = 0;
	struct erda_index index = {
		.geo = &geo, .moves = &moves, .entry = erda_table(&geo, w.env[0].pm)};
	unsigned keys = 0;

	for (;; keys++) {
		struct erda_place place;
		char key[16];
		int n = snprintf(key, sizeof(key), "key%u", keys), slot;

		erda_place(&geo, key, (size_t)n, &place);
		ck_assert_int_eq(erda_find(&index, place.home, key, (size_t)n), -ENOENT);
		slot = erda_make_room(&index, place.home);
		if (slot == -ENOSPC)
			break;
		ck_assert_uint_lt((uint32_t)slot - place.home, geo.hop);
		ck_assert_uint_eq(index.entry[slot].region, ERDA_EMPTY);
		memcpy(index.entry[slot].key, key, (size_t)n);
		index.entry[slot].klen = (uint8_t)n;
		index.entry[slot].region = erda_put_off(ERDA_EMPTY, keys);
		if (keys % 64 == 0)
			check_table(&index, keys);
	}
	check_table(&index, keys);
	ck_assert_uint_gt(keys, 700); /* the store fills half of its slots at most */
	ck_assert_uint_gt(moves, 10);
	ck_assert_uint_eq(moves % 2, 0);
}

TEST(hopscotch_fills_up)
{
	size_t len = prepare_erda("crowd=off", 512, 1, 8);

	ck_assert_uint_eq(geo.slots, 1024);
	uint8_t *pool = calloc(1, len);
	run(pool, formats, NULL);
	run(pool, fills_up, NULL);
	free(pool);
}

/* Objects whose CRC agrees: their lengths alone say that they are none. */
static const struct {
	uint8_t tag, klen;
	int vlen;    /* besides the longest */
	size_t less; /* room than it needs */
	enum erda_state state;
} objects[] = {
	{0, 1, 0, 0, OBJECT_GOOD}, {1, TM_MAX_KEY, 0, 0, OBJECT_GOOD},	  {2, 1, 0, 0, OBJECT_BAD},
	{0, 0, 0, 0, OBJECT_BAD},  {0, TM_MAX_KEY + 1, 0, 0, OBJECT_BAD}, {0, 1, 1, 0, OBJECT_BAD},
	{0, 1, 0, 1, OBJECT_BAD},
};

static void looks_at_lengths(void)
{
	for (unsigned i = 0; i < ROWS_OF(objects); i++) {
		uint8_t bytes[128] = {objects[i].tag};
		uint32_t vlen = geo.max_vlen + (uint32_t)objects[i].vlen, crc;
		size_t len = ERDA_HEADER + objects[i].klen + vlen;
		struct erda_object object;

		bytes[ERDA_BODY_AT] = objects[i].klen;
		memcpy(bytes + ERDA_BODY_AT + 1, &vlen, sizeof(vlen));
		crc = crc32_gzip_refl(crc32_gzip_refl(0, bytes, 1), bytes + ERDA_BODY_AT,
				      len - ERDA_BODY_AT);
		memcpy(bytes + ERDA_CRC_AT, &crc, sizeof(crc));
		ck_assert_msg(erda_object_check(&geo, bytes, len, len - objects[i].less, NULL, 0,
						&object) == objects[i].state,
			      "row %u", i);
	}
}

TEST(lengths_and_places)
{
	uint8_t *pool = calloc(1, prepare_erda("crowd=off", 8, 1, 8));
	const uint32_t beyond = (uint32_t)(geo.region_len / geo.unit);

	run(pool, looks_at_lengths, NULL);
	free(pool);
	ck_assert_uint_eq(erda_room(&geo, geo.region_len - TM_LINE), TM_LINE);
	ck_assert_uint_eq(erda_room(&geo, geo.region_len), 0);
	ck_assert_uint_eq(erda_room(&geo, geo.unit), 0); /* no line begins there */
	ck_assert_uint_eq(recover_segment_end(&geo, 0), geo.seg_len);
	ck_assert_uint_eq(recover_segment_end(&geo, beyond - 1), geo.region_len);
	ck_assert_uint_eq(recover_segment_end(&geo, beyond), 0);
	ck_assert_uint_eq(recover_segment_end(&geo, ERDA_NO_OFFSET), 0);
}

static uint32_t rnd(uint32_t n)
{
	static uint32_t state = 1;

	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static void fill_with_garbage(uint8_t *pool)
{
	struct erda_entry *entry = erda_table(&geo, pool);

	for (uint64_t at = geo.log_off; at < geo.pool_len; at++)
		pool[at] = (uint8_t)(rnd(4) ? 0 : rnd(256));
	for (uint32_t i = 0; i < geo.entries; i++) {
		snprintf((char *)entry[i].key, sizeof(entry[i].key), "k%u", rnd(6));
		entry[i].klen = (uint8_t)(rnd(8) ? 2 : rnd(256));
		entry[i].head = (uint8_t)(rnd(8) ? 0 : rnd(256));
		entry[i].region = (uint64_t)rnd(1u << 24) << 40 | (uint64_t)rnd(1u << 24) << 16 |
				  rnd(65536);
		if (rnd(2))
			entry[i].region = erda_put_off(erda_put_off(ERDA_EMPTY, rnd(100) * 8),
						       rnd(100) * 8);
	}
}

static void complain(struct tm_fsck *fsck, const char *fmt, ...)
{
}

static void recovers(void)
{
	struct tm_fsck fsck = {complain};

	erda_store.fsck(&w.env[0], &fsck);
	ck_assert_int_eq(erda_store.recover(&w.env[0]), 0);
	ck_assert_int_eq(erda_store.serve(&w.env[0]), 0);
}

static void looks_around(unsigned client)
{
	char key[3] = "k0", value[300];
	void *handle;
	size_t len;

	ck_assert_int_eq(erda_store.open(&w.env[client], &handle), 0);
	for (; key[1] < '6'; key[1]++)
		erda_store.get(handle, key, 2, value, sizeof(value), &len);
	erda_store.put(handle, "k1", 2, value, 140);
	erda_store.get(handle, "k1", 2, value, sizeof(value), &len);
}

TESTS(garbage_does_no_harm, 2)
{
	size_t len = prepare_erda(_i ? "seg=small" : "packed=on heads=2", 5, 30, 300);
	uint8_t *pool = calloc(1, len), *garbage = calloc(1, len);
	run(pool, formats, NULL);
	for (unsigned round = 0; round < 150; round++) {
		memcpy(garbage, pool, len);
		fill_with_garbage(garbage);
		run(garbage, recovers, looks_around);
	}
	free(pool);
	free(garbage);
}

RUN_TESTS(NULL, NULL)
