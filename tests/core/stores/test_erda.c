/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's parts by themselves: the bits of an entry, hopscotch hashing, pools that hold anything.
 *
 * What clients get, what a power failure leaves and what recovery makes of it, campaigns try:
 * erda.c has a seeded bug for each rule, which test_bugs sees them find. test_erda_clean.c looks at
 * cleaning.
 */
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "core/rt/sim.h"
#include "core/stores/erda/erda.h"
#include "core/stores/erda/layout.h"
#include "tests/checker/setups.h"

static struct {
	struct sim *sim;
	struct setup setup;
	struct tm_env env[2]; /* of the server and of a client */
	struct erda_geo geo;
	void (*script[2])(void);
	size_t len;
} w;

static void prepare(const char *knobs, unsigned keys, unsigned updates, unsigned max_vlen)
{
	memset(&w, 0, sizeof(w));
	make_setup(&w.setup, &erda_store, NULL, knobs);
	w.setup.params.clients = 1;
	w.setup.params.keys = keys;
	w.setup.params.updates = updates;
	w.setup.params.max_vlen = max_vlen;
	w.len = erda_store.pm_bytes(&w.setup.params);
	erda_geo(&w.geo, &w.setup.params);
}

static void client_main(void *arg)
{
	w.script[1]();
	sim_stop(w.sim, SIM_DONE);
}

static void server_main(void *arg)
{
	w.script[0]();
	if (!w.script[1])
		sim_stop(w.sim, SIM_DONE);
	else
		ck_assert_int_eq(sim_spawn(w.sim, 1, NULL, client_main, NULL), 0);
}

/* The server's script on this pool, then the client's if there is one. The pool is as it is left.
 */
static void run(uint8_t *pool, void (*server)(void), void (*client)(void))
{
	struct pmem_stack *stack = pmem_stack_new(1, w.len);
	struct pmem *pm = pmem_machine(stack, 0);

	w.sim = sim_new();
	sim_reset(w.sim, NULL);
	pmem_load(stack, pool, w.len);
	pmem_begin(pm, w.sim, &hardware_default);
	struct rnic_net *net = rnic_net_new(w.sim, &hardware_default);
	for (unsigned host = 0; host < 2; host++)
		w.env[host] = (struct tm_env){.params = &w.setup.params,
					      .client = host,
					      .verbs = rnic_open(net, host, host ? NULL : pm)};
	w.env[0].pm = pmem_base(pm);
	w.env[0].pm_len = w.len;
	w.script[0] = server;
	w.script[1] = client;
	ck_assert_int_eq(sim_spawn(w.sim, HOST_SERVER, NULL, server_main, NULL), 0);
	ck_assert_int_eq(sim_run(w.sim), SIM_DONE);
	pmem_save(pm, pool);
	pmem_end(pm);
	pmem_stack_free(stack);
	sim_free(w.sim);
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
		.geo = &w.geo, .moves = &moves, .entry = erda_table(&w.geo, w.env[0].pm)};
	unsigned keys = 0;

	for (;; keys++) {
		struct erda_place place;
		char key[16];
		int n = snprintf(key, sizeof(key), "key%u", keys), slot;

		erda_place(&w.geo, key, (size_t)n, &place);
		ck_assert_int_eq(erda_find(&index, place.home, key, (size_t)n), -ENOENT);
		slot = erda_make_room(&index, place.home);
		if (slot == -ENOSPC)
			break;
		ck_assert_uint_lt((uint32_t)slot - place.home, w.geo.hop);
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
	prepare("crowd=off", 512, 1, 8);
	ck_assert_uint_eq(w.geo.slots, 1024);
	uint8_t *pool = calloc(1, w.len);
	run(pool, formats, NULL);
	run(pool, fills_up, NULL);
	free(pool);
}

static uint32_t rnd(uint32_t n)
{
	static uint32_t state = 1;

	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static void fill_with_garbage(uint8_t *pool)
{
	struct erda_entry *entry = erda_table(&w.geo, pool);

	for (uint64_t at = w.geo.log_off; at < w.geo.pool_len; at++)
		pool[at] = (uint8_t)(rnd(4) ? 0 : rnd(256));
	for (uint32_t i = 0; i < w.geo.entries; i++) {
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

static void looks_around(void)
{
	char key[3] = "k0", value[300];
	void *handle;
	size_t len;

	ck_assert_int_eq(erda_store.open(&w.env[1], &handle), 0);
	for (; key[1] < '6'; key[1]++)
		erda_store.get(handle, key, 2, value, sizeof(value), &len);
	erda_store.put(handle, "k1", 2, value, 140);
	erda_store.get(handle, "k1", 2, value, sizeof(value), &len);
}

TESTS(garbage_does_no_harm, 2)
{
	prepare(_i ? "seg=small" : "packed=on heads=2", 5, 30, 300);
	uint8_t *pool = calloc(1, w.len), *garbage = calloc(1, w.len);
	run(pool, formats, NULL);
	for (unsigned round = 0; round < 150; round++) {
		memcpy(garbage, pool, w.len);
		fill_with_garbage(garbage);
		run(garbage, recovers, looks_around);
	}
	free(pool);
	free(garbage);
}

RUN_TESTS(NULL, NULL)
