/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda without a simulator: bit arithmetic, hopscotch hashing, GETs that meet torn
 * objects, recovery and the structural check on hand-made and on crashed pools.
 *
 * Log cleaning has two tasks and is tested in test_erda_clean.c; here it never runs.
 *
 * The store's objects are linked with stand-ins, here in this file, for what is
 * below them. The RPC layer is a function call and copies memory. A "WRITE" of a
 * client can be told to stop half-way. What a power failure leaves, campaigns try; its
 * seeded bugs are found by test_bugs.
 */
#include <errno.h>
#include <libpmem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/rt.h"
#include "core/stores/erda/erda.h"
#include "core/stores/erda/layout.h"
#include "core/stores/rpc.h"
#include "tests/suite.h"

#define POOL (4u << 20) /* bytes */

static struct {
	struct tm_params params;
	struct tm_env server, client[2];
	uint8_t *pm;
	struct rpc_server *rpc;
	unsigned boots; /* servers started */
	uint64_t now;
	size_t write_limit; /* bytes of the next object that arrive; SIZE_MAX: all */
	unsigned reads, sleeps, sends;
	unsigned fsck_bad;
	char complaint[200];
	uint32_t random;
	void (*on_sleep)(void);
} w;

static uint32_t rnd(uint32_t n)
{
	w.random = w.random * 1664525u + 1013904223u;
	return (w.random >> 8) % n;
}

/* --- stand-ins: libpmem and the runtime --- */

void pmem_persist(const void *addr, size_t len)
{
}

int rt_spawn(const char *name, void (*fn)(void *), void *arg)
{
	return 0;
}

void rt_yield(void)
{
}

void rt_sleep(uint64_t ns)
{
	w.now += ns;
	w.sleeps++;
	if (w.on_sleep)
		w.on_sleep();
}

bool rt_pm_full(void)
{
	return false;
}

void rt_client_dropped(uint32_t client)
{
}

bool rt_check(bool holds)
{
	return holds;
}

bool rt_waits(const void *caller)
{
	return true;
}

uint64_t rt_now(void)
{
	return w.now;
}

/* --- stand-ins: the RPC layer --- */

int rpc_server_init(struct rpc_server *server, const struct tm_env *env, size_t msg_bytes,
		    rpc_handler *handler, void *arg)
{
	memset(server, 0, sizeof(*server));
	server->msg_bytes = msg_bytes;
	server->handler = handler;
	server->arg = arg;
	return 0;
}

int rpc_server_export_at(struct rpc_server *server, unsigned number, void *addr, size_t len,
			 int access)
{
	struct rpc_region *region = &server->region[number];

	region->base = (uintptr_t)addr;
	region->len = len;
	if (server->regions <= number)
		server->regions = number + 1;
	return 0;
}

int rpc_server_export(struct rpc_server *server, void *addr, size_t len, int access)
{
	return rpc_server_export_at(server, server->regions, addr, len, access);
}

/* --- what only the cleaner calls, which does not run here --- */

void rpc_server_unexport(struct rpc_server *server, unsigned region)
{
	abort();
}

int rpc_server_notify(struct rpc_server *server, unsigned index, const void *msg, size_t len)
{
	abort();
}

void rpc_server_drop(struct rpc_server *server, uint32_t client)
{
	abort();
}

void *pmem_memset_persist(void *to, int byte, size_t len)
{
	abort();
}

int rpc_wait(struct rpc_conn *conn, void *msg, size_t cap, size_t *len)
{
	return -EIO;
}

void rpc_set_region(struct rpc_conn *conn, unsigned region, const struct rpc_region *where)
{
	/* the server's own table is used */
}

int rpc_open_notices(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes,
		     const struct rpc_conn *with)
{
	ck_assert_ptr_nonnull(with);
	memset(conn, 0, sizeof(*conn));
	conn->word = w.rpc->word;
	return 0;
}

int rpc_server_listen(struct rpc_server *server)
{
	w.rpc = server;
	w.boots++;
	return 0;
}

unsigned rpc_server_poll(struct rpc_server *server)
{
	return 0;
}

int rpc_open(struct rpc_conn *conn, const struct tm_env *env, size_t msg_bytes, size_t data_bytes,
	     const struct rpc_conn *with)
{
	ck_assert_ptr_null(with);
	memset(conn, 0, sizeof(*conn));
	conn->data_bytes = data_bytes;
	conn->buf = malloc(data_bytes);
	return 0;
}

void rpc_close(struct rpc_conn *conn)
{
	free(conn->buf);
}

static uint8_t *remote(unsigned region, uint64_t off, size_t len)
{
	ck_assert_uint_lt(region, w.rpc->regions);
	if (off > w.rpc->region[region].len || len > w.rpc->region[region].len - off)
		return NULL;
	return (uint8_t *)(uintptr_t)w.rpc->region[region].base + off;
}

static int deliver(const struct rpc_msg *msg, void *rsp, size_t cap, size_t *rsp_len)
{
	static uint64_t reply[4096];
	size_t len;

	ck_assert_uint_le(w.rpc->msg_bytes, sizeof(reply));
	memset(reply, 0, sizeof(reply));

	len = w.rpc->handler(w.rpc->arg, msg, reply, w.rpc->msg_bytes);
	ck_assert_uint_le(len, sizeof(reply));
	if (rsp)
		memcpy(rsp, reply, len < cap ? len : cap);
	if (rsp_len)
		*rsp_len = len;
	return 0;
}

int rpc_call(struct rpc_conn *conn, const void *req, size_t len, void *rsp, size_t cap,
	     size_t *rsp_len)
{
	struct rpc_msg msg = {.bytes = req, .len = len};

	return deliver(&msg, rsp, cap, rsp_len);
}

int rpc_call_imm(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len,
		 uint32_t imm, void *rsp, size_t cap, size_t *rsp_len)
{
	struct rpc_msg msg = {.len = len, .has_imm = true, .imm = imm};
	uint8_t *to = remote(region, off, len);

	if (!to)
		return -ERANGE;
	memcpy(to, data, len);
	return deliver(&msg, rsp, cap, rsp_len);
}

int rpc_send(struct rpc_conn *conn, const void *bytes, size_t len)
{
	struct rpc_msg msg = {.bytes = bytes, .len = len};

	w.sends++;
	return deliver(&msg, NULL, 0, NULL);
}

int rpc_read(struct rpc_conn *conn, unsigned region, uint64_t off, size_t len, const void **data)
{
	uint8_t *from = remote(region, off, len);

	if (!from || len > conn->data_bytes)
		return -ERANGE;
	w.reads++;
	memcpy(conn->buf, from, len);
	*data = conn->buf;
	return 0;
}

int rpc_write(struct rpc_conn *conn, unsigned region, uint64_t off, const void *data, size_t len)
{
	uint8_t *to = remote(region, off, len);

	if (!to || len > conn->data_bytes)
		return -ERANGE;
	memcpy(to, data, len < w.write_limit ? len : w.write_limit);
	w.write_limit = SIZE_MAX;
	return 0;
}

/* --- a world --- */

static void complain(struct tm_fsck *fsck, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w.complaint, sizeof(w.complaint), fmt, ap);
	va_end(ap);
	w.fsck_bad++;
}

static unsigned fsck_of(uint8_t *pm)
{
	struct tm_fsck fsck = {complain};
	struct tm_env env = w.server;

	env.pm = pm;
	w.fsck_bad = 0;
	erda_fsck(&env, &fsck);
	return w.fsck_bad;
}

/* "name=value name=value" */
static void set_knobs(const char *text)
{
	char copy[200], *save = NULL;

	strcpy(copy, text);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '='), values[1000], *each, *save2 = NULL;
		const struct tm_knob *knob = erda_store.knobs;
		uint8_t nth = 0;

		ck_assert_ptr_nonnull(value);
		*value++ = '\0';
		while (knob->name && strcmp(knob->name, word))
			knob++;
		ck_assert_msg(knob->name != NULL, "no knob %s", word);
		strcpy(values, knob->values);
		for (each = strtok_r(values, " ", &save2); each && strcmp(each, value); nth++)
			each = strtok_r(NULL, " ", &save2);
		ck_assert_msg(each != NULL, "no value %s of %s", value, word);
		w.params.knob[knob - erda_store.knobs] = nth;
	}
}

static void *client[2];

static void connect_clients(void)
{
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(erda_open(&w.client[i], &client[i]), 0);
}

static void world(const char *knobs, unsigned keys, unsigned updates, unsigned max_vlen)
{
	uint8_t *pm = w.pm;

	memset(&w, 0, sizeof(w));
	w.pm = pm ? pm : aligned_alloc(64, POOL);
	memset(w.pm, 0, POOL);
	w.write_limit = SIZE_MAX;
	w.random = 1;
	w.now = 1000;
	w.params = (struct tm_params){
		.clients = 4, .keys = keys, .updates = updates, .max_vlen = max_vlen};
	set_knobs(knobs);
	w.server = (struct tm_env){
		.params = &w.params, .pm = w.pm, .pm_len = erda_store.pm_bytes(&w.params)};
	ck_assert_uint_le(w.server.pm_len, POOL);
	for (unsigned i = 0; i < 2; i++)
		w.client[i] = (struct tm_env){.params = &w.params, .client = i + 1};
	ck_assert_int_eq(erda_format(&w.server), 0);
	ck_assert_int_eq(erda_serve(&w.server), 0);
	connect_clients();
}

/* The power fails, and every dirty line survives, but those that the test has damaged. */
static void reboot(void)
{
	ck_assert_int_eq(erda_recover(&w.server), 0);
	w.now = 1000;
	ck_assert_int_eq(erda_serve(&w.server), 0);
	connect_clients();
}

static int put(unsigned c, const char *key, const char *value)
{
	return erda_put(client[c], key, strlen(key), value, strlen(value));
}

/* The value as a string, "-" if there is none, "!" and a number for an error. */
static const char *get(unsigned c, const char *key)
{
	static char value[70000];
	size_t vlen = 0;
	int rc = erda_get(client[c], key, strlen(key), value, sizeof(value) - 1, &vlen);

	if (rc == -ENOENT)
		return "-";
	if (rc)
		snprintf(value, sizeof(value), "!%d", rc);
	else
		value[vlen] = '\0';
	return value;
}

#define LONG(ten) ten ten ten ten ten ten ten ten ten ten ten ten ten ten
#define LONG_A	  LONG("aaaaaaaaaa")
#define LONG_B	  LONG("bbbbbbbbbb")
#define LONG_C	  LONG("cccccccccc")

/* A PUT whose object arrives up to `bytes`. */
static void put_part(unsigned c, const char *key, const char *value, size_t bytes)
{
	w.write_limit = bytes;
	ck_assert_int_eq(put(c, key, value), 0);
}

static uint64_t *region_of(const char *key)
{
	struct erda_geo geo;
	struct erda_place place;
	struct erda_index index = {.geo = &geo};
	int slot;

	erda_geo(&geo, &w.params);
	index.entry = erda_table(&geo, w.pm);
	erda_place(&geo, key, strlen(key), &place);
	slot = erda_find(&index, place.home, key, strlen(key));
	return slot < 0 ? NULL : &index.entry[slot].region;
}

static uint8_t *object_of(uint32_t off)
{
	struct erda_geo geo;

	erda_geo(&geo, &w.params);
	return w.pm + erda_region_off(&geo, 0, 0) + (uint64_t)off * geo.unit;
}

/* --- bits --- */

TEST(region_bits)
{
	uint64_t m = ERDA_EMPTY;

	ck_assert_uint_eq(erda_newoff(m), ERDA_NO_OFFSET);
	ck_assert_uint_eq(erda_oldoff(m), ERDA_NO_OFFSET);
	m = erda_put_off(m, 0);
	ck_assert(m == (1ull << 63 | (uint64_t)ERDA_NO_OFFSET << 1));
	ck_assert_uint_eq(erda_newoff(m), 0);
	ck_assert_uint_eq(erda_oldoff(m), ERDA_NO_OFFSET);
	m = erda_put_off(m, 0x7ffffffe);
	ck_assert(m == (uint64_t)0x7ffffffe << 1);
	ck_assert_uint_eq(erda_newoff(m), 0x7ffffffe);
	ck_assert_uint_eq(erda_oldoff(m), 0);
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

/* --- hopscotch --- */

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

TEST(hopscotch_fills_up)
{
	uint64_t moves = 0;
	struct erda_geo geo;
	struct erda_index index = {.geo = &geo, .moves = &moves};
	unsigned keys = 0;

	world("crowd=off", 512, 1, 8);
	erda_geo(&geo, &w.params);
	index.entry = erda_table(&geo, w.pm);
	ck_assert_uint_eq(geo.slots, 1024);
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

TEST(third_key_displaces_second)
{
	uint64_t *k2;

	world("crowd=on", 6, 20, 64);
	ck_assert_int_eq(put(0, "k1", "one"), 0);
	ck_assert_int_eq(put(0, "k2", "two"), 0);
	k2 = region_of("k2");
	ck_assert_str_eq(get(1, "k3"), "-");
	ck_assert_int_eq(put(0, "k3", "three"), 0);
	ck_assert_ptr_eq(region_of("k3"), k2);
	ck_assert_str_eq(get(1, "k1"), "one");
	ck_assert_str_eq(get(1, "k2"), "two");
	ck_assert_str_eq(get(1, "k3"), "three");
	w.sleeps = 0;
	ck_assert_str_eq(get(1, "k4"), "-"); /* counter changed: looks twice */
	ck_assert_uint_eq(w.sleeps, 1);
	for (const char *key = "k4\0k5\0k6\0"; *key; key += 3)
		ck_assert_int_eq(put(1, key, key), 0);
	for (const char *key = "k4\0k5\0k6\0"; *key; key += 3)
		ck_assert_str_eq(get(0, key), key);
	ck_assert_uint_eq(fsck_of(w.pm), 0);
}

/* --- operations --- */

static const char *const readings[] = {
	"request=write_imm", "request=send", "byte_offsets=on", "old_zero=on",
	"packed=on",	     "seg=small",    "heads=2",		"byte_offsets=on packed=on",
	"crowd=on",	     "confirm=on",   "scan_all=on",	"repair=unconditional",
};

TESTS(operations, ROWS_OF(readings))
{
	static char big[1100];

	world(readings[_i], 3, 100, 1024);
	memset(big, 'x', 1024);
	ck_assert_str_eq(get(0, "k1"), "-");
	ck_assert_int_eq(erda_del(client[0], "k1", 2), 0);
	ck_assert_ptr_null(region_of("k1"));
	for (unsigned i = 0; i < 40; i++) {
		char value[32];

		snprintf(value, sizeof(value), "value %u", i);
		ck_assert_int_eq(put(i % 2, "k1", value), 0);
		ck_assert_str_eq(get(0, "k1"), value);
		ck_assert_int_eq(put(0, "k2", value + 1), 0);
		ck_assert_str_eq(get(1, "k1"), value);
		ck_assert_str_eq(get(1, "k2"), value + 1);
	}
	ck_assert_int_eq(put(0, "k1", big), 0);
	ck_assert_str_eq(get(0, "k1"), big);
	ck_assert_str_eq(get(1, "k1"), big); /* longer than it had seen */
	ck_assert_int_eq(put(0, "k1", ""), 0);
	ck_assert_str_eq(get(1, "k1"), "");
	ck_assert_int_eq(erda_del(client[1], "k1", 2), 0);
	ck_assert_str_eq(get(0, "k1"), "-");
	ck_assert_int_eq(put(1, "k1", "back"), 0);
	ck_assert_str_eq(get(0, "k1"), "back");
	ck_assert_uint_eq(w.sends, 0);
	ck_assert_int_eq(erda_put(client[0], "", 0, "", 0), -EINVAL);
	ck_assert_int_eq(erda_put(client[0], "k", 1, big, 1025), -EMSGSIZE);
	reboot();
	ck_assert_uint_eq(fsck_of(w.pm), 0);
	ck_assert_str_eq(get(0, "k1"), "back");
	ck_assert_str_eq(get(0, "k2"), "alue 39");
	ck_assert_int_eq(put(0, "k3", "third"), 0);
	ck_assert_str_eq(get(1, "k3"), "third");
}

TESTS(room_for_all_updates, 2)
{
	static char big[201];

	memset(big, 'x', 200);
	world(_i ? "seg=small" : "seg=large", 4, 50, 200);
	for (unsigned i = 0; i < 50; i++) {
		ck_assert_int_eq(put(0, "k1", big), 0);
		if (i % 10 == 9)
			reboot();
	}
	for (unsigned i = 0; i < 100000; i++) {
		int rc = put(0, "k1", "small");

		if (rc) {
			ck_assert_int_eq(rc, -ENOSPC);
			ck_assert_str_eq(get(0, "k1"), i ? "small" : big);
			return;
		}
	}
	ck_abort_msg("the log never ends");
}

TEST(torn_newest_reads_previous)
{
	world("repair=cond+recheck+age", 2, 20, 300);
	put_part(0, "k1", LONG_A, 70);
	ck_assert_str_eq(get(1, "k1"), "-");
	ck_assert_uint_eq(w.sends, 0); /* no previous version, nothing to go back to */
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(0, "k1", LONG_B, 70);
	ck_assert_str_eq(get(1, "k1"), LONG_A);
	ck_assert_uint_eq(w.sends, 1);
	ck_assert_uint_ne(erda_newoff(*region_of("k1")), erda_oldoff(*region_of("k1")));
	w.now += 11000000000ull;
	ck_assert_str_eq(get(1, "k1"), LONG_A);
	ck_assert_uint_eq(erda_newoff(*region_of("k1")), erda_oldoff(*region_of("k1")));
	w.sends = 0;
	ck_assert_str_eq(get(1, "k1"), LONG_A);
	ck_assert_uint_eq(w.sends, 0);
	ck_assert_int_eq(put(1, "k1", LONG_C), 0);
	ck_assert_str_eq(get(0, "k1"), LONG_C);
}

TESTS(repair_rolls_back_a_slow_put, 5)
{
	static const struct {
		const char *knob;
		bool late, lost; /* the rest arrives before the report is handled or after; the PUT
				    is lost */
	} row[] = {
		{"repair=unconditional", false, true}, {"repair=cond", false, true},
		{"repair=cond+recheck", false, true},  {"repair=cond+recheck+age", false, false},
		{"timeout=1ms", false, false},
	};
	uint32_t off;

	world(row[_i].knob, 2, 20, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(0, "k1", LONG_B, 70);
	off = erda_newoff(*region_of("k1"));
	ck_assert_str_eq(get(1, "k1"), LONG_A);
	memset(object_of(off) + 12, 'b', strlen(LONG_B)); /* the rest */
	ck_assert_str_eq(get(1, "k1"), row[_i].lost ? LONG_A : LONG_B);
}

TESTS(torn_length_is_bounded, 9)
{
	static const uint32_t lengths[] = {0, 1, 141, 299, 300, 301, 4096, 0x7fffffff, 0xffffffff};

	world("seg=small", 2, 20, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	ck_assert_int_eq(put(0, "k1", LONG_B), 0);
	memcpy(object_of(erda_newoff(*region_of("k1"))) + 6, &lengths[_i], 4);
	w.reads = 0;
	ck_assert_str_eq(get(1, "k1"), LONG_A);
	ck_assert_uint_le(w.reads, 5);
	reboot();
	ck_assert_uint_eq(fsck_of(w.pm), 0);
	ck_assert_str_eq(get(1, "k1"), LONG_A);
}

static uint32_t arrives_at;

static void arrive(void)
{
	if (w.sleeps == 1000)
		erda_object_build(&(struct erda_geo){.bug = BUG_NONE}, object_of(arrives_at), 0,
				  "k1", 2, LONG_C, strlen(LONG_C));
}

TESTS(both_torn_ends, 3)
{
	static const char *const knob[] = {"give_up=not_found", "give_up=error",
					   "bug=retry_unbounded"};
	char again[16];

	world(knob[_i], 2, 20, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(0, "k1", LONG_B, 70);
	put_part(0, "k1", LONG_C, 70);
	arrives_at = erda_newoff(*region_of("k1"));
	w.on_sleep = arrive;
	snprintf(again, sizeof(again), "!%d", -EAGAIN);
	ck_assert_str_eq(get(1, "k1"), _i == 0 ? "-" : _i == 1 ? again : LONG_C);
	if (_i < 2)
		ck_assert_uint_lt(w.sleeps, 20);
}

/* --- recovery --- */

TEST(recovery_takes_the_intact_one)
{
	world("seg=small", 3, 30, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(0, "k2", LONG_A, 11);
	reboot(); /* k2 has never been complete: dropped */
	ck_assert_ptr_null(region_of("k2"));
	ck_assert_str_eq(get(0, "k1"), LONG_A);
	put_part(0, "k1", LONG_B, 70);
	reboot();
	ck_assert_uint_eq(fsck_of(w.pm), 0);
	ck_assert_uint_eq(erda_newoff(*region_of("k1")), erda_oldoff(*region_of("k1")));
	ck_assert_str_eq(get(0, "k1"), LONG_A);
	ck_assert_uint_eq(w.sends, 0);
	put_part(0, "k1", LONG_B, 70);
	put_part(0, "k1", LONG_C, 70);
	reboot();
	ck_assert_ptr_null(region_of("k1"));
	ck_assert_str_eq(get(0, "k1"), "-");
	ck_assert_int_eq(put(0, "k1", LONG_C), 0);
	ck_assert_str_eq(get(0, "k1"), LONG_C);
	ck_assert_uint_eq(fsck_of(w.pm), 0);
}

TESTS(earlier_segments_are_left_alone, 2)
{
	uint64_t before;

	world(_i ? "seg=small scan_all=on" : "seg=small", 3, 30, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(0, "k1", LONG_B, 70);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(put(0, "k2", LONG_C), 0);
	before = *region_of("k1");
	reboot();
	ck_assert_uint_eq(fsck_of(w.pm), 0);
	ck_assert((*region_of("k1") == before) == (_i == 0));
	ck_assert_str_eq(get(0, "k1"), LONG_A);
	/* Everything is old after a restart: the reader's report has mended it. */
	ck_assert_uint_eq(erda_newoff(*region_of("k1")), erda_oldoff(*region_of("k1")));
}

TEST(recovery_never_reuses_live_space)
{
	world("seg=small", 3, 60, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	for (unsigned i = 0; i < 8; i++) {
		uint32_t newest;

		put_part(0, "k2", LONG_B, i * 20);
		newest = erda_newoff(*region_of("k2"));
		reboot();
		ck_assert_int_eq(put(0, "k3", LONG_C), 0);
		ck_assert_uint_gt(erda_newoff(*region_of("k3")), newest);
		ck_assert_str_eq(get(0, "k1"), LONG_A);
	}
}

/* The object of a PUT survived, its entry's change did not: no reader meets the object where a
 * later PUT goes. */
TESTS(lost_put_stays_away, 2)
{
	uint64_t before;

	world(_i ? "seg=small" : "seg=large", 3, 60, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	reboot();
	before = *region_of("k1");
	ck_assert_int_eq(put(0, "k1", LONG_B), 0);
	*region_of("k1") = before;
	reboot();
	ck_assert_str_eq(get(0, "k1"), LONG_A);
	put_part(0, "k1", LONG_C, 0);
	ck_assert_str_eq(get(1, "k1"), LONG_A);
}

TESTS(duplicate_keeps_the_larger_offset, 2)
{
	struct erda_entry *entry;

	world("crowd=on", 3, 30, 300);
	ck_assert_int_eq(put(0, "k2", LONG_A), 0);
	ck_assert_int_eq(put(0, "k2", LONG_B), 0);
	entry = (struct erda_entry *)((uint8_t *)region_of("k2") -
				      offsetof(struct erda_entry, region));
	entry[1] = entry[0];
	if (_i)
		entry[1].region = erda_put_off(ERDA_EMPTY, erda_oldoff(entry[0].region));
	else
		entry[0].region = erda_put_off(ERDA_EMPTY, erda_oldoff(entry[1].region));
	ck_assert_uint_gt(fsck_of(w.pm), 0);
	reboot();
	ck_assert_uint_eq(fsck_of(w.pm), 0);
	ck_assert_uint_eq(entry[_i ? 1 : 0].region, ERDA_EMPTY);
	ck_assert_str_eq(get(0, "k2"), LONG_B);
}

TEST(garbage_does_no_harm)
{
	for (unsigned round = 0; round < 300; round++) {
		struct erda_geo geo;
		struct erda_entry *entry;

		world(round % 2 ? "seg=small" : "packed=on heads=2", 5, 30, 300);
		w.random = round + 1;
		erda_geo(&geo, &w.params);
		entry = erda_table(&geo, w.pm);
		for (uint64_t at = geo.log_off; at < geo.pool_len; at++)
			w.pm[at] = (uint8_t)(rnd(4) ? 0 : rnd(256));
		for (uint32_t i = 0; i < geo.entries; i++) {
			snprintf((char *)entry[i].key, sizeof(entry[i].key), "k%u", rnd(6));
			entry[i].klen = (uint8_t)(rnd(8) ? 2 : rnd(256));
			entry[i].head = (uint8_t)(rnd(8) ? 0 : rnd(256));
			entry[i].region = (uint64_t)rnd(1u << 24) << 40 |
					  (uint64_t)rnd(1u << 24) << 16 | rnd(65536);
			if (rnd(2))
				entry[i].region = erda_put_off(
					erda_put_off(ERDA_EMPTY, rnd(100) * 8), rnd(100) * 8);
		}
		reboot();
		fsck_of(w.pm);
		for (unsigned k = 0; k < 6; k++) {
			char key[3] = {'k', (char)('0' + k), '\0'};

			get(0, key);
		}
		put(0, "k1", LONG_A);
		get(0, "k1");
	}
}

TESTS(previous_of_a_new_key_is_foreign, 2)
{
	world(_i ? "old_zero=on" : "old_zero=on verify_obj_key=off", 3, 30, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	put_part(1, "k2", LONG_B, 70);
	ck_assert_str_eq(get(0, "k2"), _i ? "-" : LONG_A);
}

TESTS(narrow_offsets_wrap, 2)
{
	world(_i ? "byte_offsets=on offset_bits=9" : "offset_bits=9", 3, 10, 300);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	ck_assert_int_eq(put(0, "k1", LONG_B), 0);
	ck_assert_int_eq(put(0, "k1", LONG_A), 0);
	ck_assert_int_eq(put(0, "k1", LONG_C), 0);
	ck_assert_int_eq(strcmp(get(0, "k1"), LONG_C) == 0, _i == 0);
}

TEST(description_is_complete)
{
	struct tm_region region[8];
	unsigned knobs = 0, n;
	uint64_t end = 0;

	for (const struct tm_knob *knob = erda_store.knobs; knob->name; knob++, knobs++)
		ck_assert_ptr_nonnull(knob->what);
	ck_assert_uint_eq(knobs, sizeof(struct erda_knobs));
	for (const struct tm_variant *v = erda_store.variants; v->name; v++) {
		world(v->knobs, 4, 10, 100);
		ck_assert_uint_gt(strlen(v->what), 10);
		ck_assert_uint_eq(w.server.pm_len % 64, 0);
	}
	world("heads=2", 4, 10, 100);
	n = erda_store.regions(&w.params, region, 8);
	ck_assert_uint_eq(n, 7);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_eq(region[i].off, end);
		end += region[i].len;
	}
	ck_assert_uint_eq(end, w.server.pm_len);
	ck_assert_uint_eq(erda_store.regions(&w.params, region, 2), 2);
}

int main(void)
{
	return run_suite(listed_suite("erda", NULL, NULL));
}
