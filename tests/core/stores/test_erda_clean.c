/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda's log cleaning while the power holds: where versions are afterwards, that space is
 * used again, and what happens to clients that are in the middle of something.
 *
 * Each test is a run in the sim world, written as a trace: the workload, and which task is delayed
 * where. When it has ended the test looks at the pool, and at what clients got.
 */
#include <stdarg.h>
#include "checker/trace/trace.h"
#include "checker/world/world.h"
#include "core/stores/erda/erda.h"
#include "core/stores/erda/layout.h"
#include "faultinject/trace_source.h"
#include "scenarios/stores.h"
#include "tests/suite.h"

struct run {
	struct trace t;
	struct worlds ws;
	struct trace_source source;
	struct history *h;
	struct erda_geo geo;
	uint8_t *pm;
	unsigned complaints;
	char complaint[200];
};

static struct run r;

/* All that stands between the first line of a trace and the last. False: a deviation does not
 * apply. */
static bool run(const char *fmt, ...)
{
	struct input_error err;
	char text[4096];
	va_list ap;
	int n = snprintf(text, sizeof(text), "tidemark-trace 1\nstore erda\n");

	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "broken none\n");
	ck_assert_int_lt(n, (int)sizeof(text));
	FILE *in = fmemopen(text, (size_t)n, "r");
	ck_assert_ptr_nonnull(in);
	memset(&r, 0, sizeof(r));
	ck_assert_msg(!trace_read_file(in, &r.t, store_find, &err), "line %u: %s\n%s", err.line,
		      err.message, text);
	fclose(in);
	ck_assert_msg(!worlds_open(&r.ws, &r.t.setup), "%s", r.ws.world[0].result.why);
	ck_assert_int_eq(trace_start(&r.source, &r.t.deviations), 0);
	world_run(&r.ws, &r.source.source, NULL, NULL);
	ck_assert_msg(!r.ws.world[0].result.live_broken, "%s", r.ws.world[0].result.why);
	r.h = r.ws.history;
	r.pm = pmem_base(r.ws.world[0].pm);
	erda_geo(&r.geo, &r.t.setup.params);
	return !trace_unused(&r.source);
}

static void complain(struct tm_fsck *fsck, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r.complaint, sizeof(r.complaint), fmt, ap);
	va_end(ap);
	r.complaints++;
}

/* The store's own code runs on a task only. */
static void check_main(void *arg)
{
	struct tm_env env = {.params = &r.t.setup.params, .pm = r.pm, .pm_len = r.t.setup.pm_len};
	struct tm_fsck fsck = {complain};

	erda_store.fsck(&env, &fsck);
	sim_stop(arg, SIM_DONE);
}

/* The pool is in order. */
static void end(void)
{
	struct sim *sim = r.ws.world[0].sim;

	ck_assert_int_eq(sim_spawn(sim, HOST_SERVER, "check", check_main, sim), 0);
	ck_assert_int_eq(sim_run(sim), SIM_DONE);
	ck_assert_msg(r.complaints == 0, "%s", r.complaint);
	trace_finish(&r.source);
	world_end(&r.ws, 0);
	worlds_close(&r.ws);
	trace_free(&r.t);
}

static const struct erda_head *head(void)
{
	return erda_heads(r.pm);
}

/* The n-th operation of a client, from 1. */
static const struct history_op *op(unsigned client, unsigned nth)
{
	for (unsigned i = 0; i < r.h->ops; i++) {
		if (r.h->op[i].client == client && --nth == 0)
			return &r.h->op[i];
	}
	ck_abort_msg("client %u has no such operation", client);
	return NULL;
}

static uint64_t *entry_of(const char *key)
{
	struct erda_index index = {.geo = &r.geo, .entry = erda_table(&r.geo, r.pm)};
	struct erda_place place;
	int slot;

	erda_place(&r.geo, key, strlen(key), &place);
	slot = erda_find(&index, place.home, key, strlen(key));
	return slot < 0 ? NULL : &index.entry[slot].region;
}

/* The object that an entry's newest half names in a region. */
static bool object_of(const char *key, unsigned region, struct erda_object *object)
{
	const uint64_t *m = entry_of(key);

	ck_assert_ptr_nonnull(m);
	return erda_object_at(&r.geo, r.pm + erda_region_off(&r.geo, 0, region), erda_newoff(*m),
			      key, strlen(key), object) == OBJECT_GOOD;
}

/* Number of objects in a region, whatever state the entries are in. */
static unsigned objects_in(unsigned region)
{
	const uint8_t *log = r.pm + erda_region_off(&r.geo, 0, region);
	unsigned n = 0;

	for (uint64_t at = 0; at < r.geo.region_len; at += r.geo.align) {
		if (erda_object_at(&r.geo, log, (uint32_t)(at / r.geo.unit), NULL, 0, NULL) ==
		    OBJECT_GOOD)
			n++;
	}
	return n;
}

TEST(versions_move)
{
	struct erda_object object;

	run("keys k1 160, k2 40\nclient 1: put k1 96, clean, get k1, get k2, get k1, get k2\n");
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, 1));
	for (const char *key = "k1\0k2\0"; *key; key += 3) {
		ck_assert_uint_eq(*entry_of(key) & 1, 1);
		ck_assert_uint_eq(erda_oldoff(*entry_of(key)), ERDA_NO_OFFSET);
		ck_assert(object_of(key, 1, &object));
		ck_assert_uint_eq(object.vlen, key[1] == '1' ? 96 : 40);
	}
	ck_assert_uint_eq(objects_in(1), 2);
	for (unsigned i = 2; i <= 5; i++)
		ck_assert_int_eq(op(1, i)->value,
				 i % 2 ? 1 : op(1, 1)->value); /* 1: what k2 was loaded with */
	end();
}

TESTS(deleted_keys_go, 2)
{
	run("keys k1 160, k2 160\nclient 1: put k1 160, del k1, clean, get k1, get k1, put k1 96, "
	    "get k1%s\n",
	    _i ? ", del k1, clean" : "");
	ck_assert_int_eq(op(1, 3)->value, VALUE_ABSENT);
	ck_assert_int_eq(op(1, 4)->value, VALUE_ABSENT);
	ck_assert_int_eq(op(1, 6)->value, op(1, 5)->value);
	ck_assert((entry_of("k1") == NULL) == (_i == 1));
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, !_i));
	end();
}

/* Far more PUTs than a region has room for. */
TEST(space_is_used_again)
{
	char puts[2000] = "";

	for (unsigned i = 0; i < 60; i++)
		strcat(puts, "put k1 160, ");
	run("knob log=tight\nkeys k1 160, k2 160\nclient 1: %sget k1\nclient 2: %sget k2\n", puts,
	    puts);
	ck_assert_uint_lt(r.geo.region_len / r.geo.seg_len, 20);
	for (unsigned i = 1; i <= 60; i++) {
		ck_assert_int_eq(op(1, i)->error, 0);
		ck_assert_int_eq(op(2, i)->error, 0);
	}
	ck_assert_int_eq(op(2, 61)->value, 1); /* never put since it was loaded */
	end();
}

/* The region of two cleanings ago holds what is alive, and nothing else. */
TESTS(region_is_wiped, 2)
{
	run("knob wipe=%s\nkeys k1 160\nclient 1: put k1 160, put k1 160, put k1 160, clean, "
	    "clean, get k1\n",
	    _i ? "off" : "on");
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, 0));
	if (_i)
		ck_assert_uint_gt(objects_in(0), 1);
	else
		ck_assert_uint_eq(objects_in(0), 1);
	ck_assert_int_eq(op(1, 4)->value, op(1, 3)->value);
	end();
}

/* Sixteen objects at most, of which fourteen are alive: cleaning makes room for one at a time. */
TEST(full_is_said)
{
	const struct history_op *last = NULL;
	unsigned failed = 0;

	run("knob log=tight\nknob offset_bits=9\nkeys k1 160, k2 160, k3 160, k4 160, k5 160, k6 "
	    "160, k7 "
	    "160, "
	    "k8 160, k9 160, k10 160, k11 160, k12 160, k13 160, k14 160, k15 160\n"
	    "client 1: put k1 160, put k1 160, put k1 160, put k1 160, get k1, get k15\n");
	for (unsigned i = 1; i <= 4; i++) {
		if (op(1, i)->error)
			ck_assert_int_eq(op(1, i)->error, -ENOSPC);
		else
			last = op(1, i);
		failed += op(1, i)->error != 0;
	}
	ck_assert_uint_gt(failed, 0);
	ck_assert_int_eq(op(1, 5)->value, last ? last->value : 0);
	ck_assert_int_eq(op(1, 6)->value, 14);
	end();
}

/* A client that sleeps in an operation does not acknowledge, and is dropped or waited for. */
TESTS(silent_client, 6)
{
	static const struct {
		const char *knob, *hold;
		bool cleaned, served;
	} row[] = {
		{"slow_client=drop", "delay 200us", true, false},
		{"slow_client=drop", "delay for ever", true, false},
		{"slow_client=drop", "delay 30us", true, true},
		{"slow_client=wait", "delay 200us", true, true},
		{"slow_client=wait", "delay for ever", false, false},
		{"slow_client=drop_1s", "delay 100ms", true, true},
	};

	run("knob %s\nkeys k1 160\nclient 1: get k1, get k1\nclient 2: clean, put k1 160, get k1\n"
	    "deviate c1 c1.get1 before post 1: %s\n",
	    row[_i].knob, row[_i].hold);
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, row[_i].cleaned));
	if (op(1, 1)->returned >= 0)
		ck_assert_int_eq(op(1, 1)->error, row[_i].served ? 0 : -EIO);
	else
		ck_assert(!row[_i].served);
	ck_assert_int_eq(op(2, 1)->error, 0);
	ck_assert_int_eq(op(2, 2)->value, op(2, 1)->value);
	end();
}

/* Between the server's reply and its WRITE: the cleaning waits, and moves what has arrived then. */
TESTS(put_is_waited_for, 2)
{
	struct erda_object object;
	bool applies = run(
		"knob request=%s\nkeys k1 160\nclient 1: put k1 96\nclient 2: clean, get k1\n"
		"deviate c1 c1.put1 before post 3: delay 30us\n",
		_i ? "send" : "write_imm");

	ck_assert(applies);
	ck_assert_int_eq(op(1, 1)->error, 0);
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, 1));
	ck_assert(object_of("k1", 1, &object));
	ck_assert_uint_eq(object.vlen, 96);
	end();
}

/* The client is gone before its WRITE: the version before is moved, also if that is two PUTs
 * ago. */
TESTS(dead_put_is_left_out, 2)
{
	run("keys k1 160\nclient 1: put k1 96\nclient 2: %sget k1\nclient 3: clean, clean, get k1\n"
	    "deviate c1 c1.put1 before post 3: delay for ever\n%s",
	    _i ? "put k1 80, " : "",
	    _i ? "deviate c2 c2.put1 before post 3: delay for ever\n" : "");
	ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, 0));
	ck_assert_ptr_nonnull(entry_of("k1"));
	ck_assert_uint_eq(*entry_of("k1") & 1, 0);
	ck_assert(object_of("k1", 0, NULL));
	if (!_i)
		ck_assert_int_eq(op(2, 1)->value, 0);
	end();
}

/* Updates that come while the cleaner stands still, at each of its stores and fences. */
TESTS(updates_in_each_phase, 3)
{
	static const char *const steps[] = {"store", "fence", "load"};
	unsigned at = 1;

	while (run("keys k1 160, k2 160, k3 -\nclient 1: put k2 96, clean\n"
		   "client 2: put k1 80, put k1 96, del k2, put k3 96, get k1, get k2, get k3\n"
		   "deviate server/cleaner - before %s %u: delay 30us\n",
		   steps[_i], at)) {
		ck_assert_int_eq(op(2, 5)->value, op(2, 2)->value);
		ck_assert_int_eq(op(2, 6)->value, VALUE_ABSENT);
		ck_assert_int_eq(op(2, 7)->value, op(2, 4)->value);
		ck_assert_uint_eq(head()->state, erda_state_word(CLEAN_NONE, 1));
		ck_assert(object_of("k1", 1, NULL) && object_of("k3", 1, NULL));
		end();
		at++;
	}
	end();
	ck_assert_uint_gt(at, 10);
}

RUN_TESTS(NULL, NULL)
