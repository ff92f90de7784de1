/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store has room for as many updates as it was made for, and answers when it is full
 * (worlds_fill()); and nothing of that is left when the workload runs.
 */
#include "checker/explore/explore.h"
#include <stdlib.h>
#include "core/rt/rt.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"

static const struct tm_store *real;
static unsigned updates, room;

static int put_until_full(void *client, const void *key, size_t klen, const void *value,
			  size_t vlen)
{
	return ++updates > room ? -ENOSPC : real->put(client, key, klen, value, vlen);
}

static int put_fails_when_full(void *client, const void *key, size_t klen, const void *value,
			       size_t vlen)
{
	return ++updates > room ? -EIO : real->put(client, key, klen, value, vlen);
}

/* A lock that is never released. */
static int put_waits_when_full(void *client, const void *key, size_t klen, const void *value,
			       size_t vlen)
{
	if (++updates == room + 1)
		return -ENOSPC;
	while (updates > room)
		rt_yield();
	return real->put(client, key, klen, value, vlen);
}

static int get_when_full(void *client, const void *key, size_t klen, void *value, size_t cap,
			 size_t *vlen)
{
	return updates > room ? -EBADMSG : real->get(client, key, klen, value, cap, vlen);
}

enum how { AS_IT_IS, FULL, FAILS, WAITS, NOT_READ };
static int (*const full_put[])(void *, const void *, size_t, const void *,
			       size_t) = {[FULL] = put_until_full,
					  [FAILS] = put_fails_when_full,
					  [WAITS] = put_waits_when_full,
					  [NOT_READ] = put_until_full};

static const struct {
	enum how how;
	int more; /* room for so many more than promised */
	int error;
	const char *why; /* a part of it */
} table[] = {
	{AS_IT_IS, 0, 0, NULL},
	{FULL, 0, 0, NULL},
	{FULL, 3, 0, NULL},
	{FULL, -1, -EIO, "for which it was made, fails: put() returns ENOSPC"},
	{FAILS, 1, -EIO, "put() returns EIO"},
	{WAITS, 0, -EIO, "filling it does not end"},
	{NOT_READ, 0, -EIO, "when it is full, GET k1 fails: get() returns EBADMSG"},
};

TESTS(is_filled, (int)(sizeof(table) / sizeof(table[0])))
{
	struct tm_store store;
	struct setup setup;
	struct worlds worlds;

	real = store_find("ca");
	store = *real;
	if (table[_i].how != AS_IT_IS)
		store.put = full_put[table[_i].how];
	if (table[_i].how == NOT_READ)
		store.get = get_when_full;
	make_whole_setup(&setup, &store, NULL, "", "ww");
	updates = 0;
	room = setup.params.updates + (unsigned)table[_i].more;
	ck_assert_int_eq(worlds_open(&worlds, &setup), 0);
	updates = 0;
	ck_assert_int_eq(worlds_fill(&worlds), table[_i].error);
	if (table[_i].why)
		ck_assert_msg(strstr(worlds.world[0].result.why, table[_i].why), "%s",
			      worlds.world[0].result.why);
	ck_assert(table[_i].how == AS_IT_IS || updates >= setup.params.updates);
	/* What the filling wrote is gone. */
	updates = 0;
	world_run(&worlds, NULL, NULL, NULL);
	ck_assert_int_eq(worlds.world[0].result.end, SIM_DONE);
	ck_assert(!worlds.world[0].result.live_broken && !worlds.world[0].result.ok_broken);
	world_end(&worlds, 0);
	worlds_close(&worlds);
	setup_free(&setup);
}

/* Updates of a store when an explorer opens. */
static unsigned fill_updates(const struct tm_store *store, const char *workload, bool shared)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct explore_limits limits = explore_default;
	struct setup setup;

	limits.fill = true;
	limits.share_tree = shared;
	make_whole_setup(&setup, store, NULL, "", workload);
	updates = 0;
	room = setup.params.updates + setup.w.keys; /* loaded twice */
	int error = explore_open(ex, &setup, &limits);
	ck_assert(!error && !ex->worlds.unloaded);
	explore_close(ex);
	setup_free(&setup);
	free(ex);
	return updates;
}

/* What has room under one workload has it under another one for which it is made alike. */
TEST(is_filled_once)
{
	static struct tm_store store; /* its place is a part of the name */

	real = store_find("ca");
	store = *real;
	store.put = put_until_full;
	const unsigned each = fill_updates(&store, "w", false);
	ck_assert_uint_gt(each, room);
	ck_assert_uint_eq(fill_updates(&store, "w", true), each);
	ck_assert_uint_lt(fill_updates(&store, "w", true), room);
	ck_assert_uint_lt(fill_updates(&store, "wr", true), room);
	/* One update more. */
	ck_assert_uint_gt(fill_updates(&store, "ww", true), room);
	/* One that has failed is tried again. */
	store.get = get_when_full;
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_gt(fill_updates(&store, "www", true), room);
}

RUN_TESTS(NULL, NULL)
