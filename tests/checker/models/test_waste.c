/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes and fences that nothing needs, by the events of a run. */
#include "checker/models/waste.h"
#include "tests/suite.h"

static struct waste w;
static struct actor one, two;

/* A pool of 1 KiB on this hardware. */
static void start(enum domain domain, enum ddio ddio)
{
	struct setup s = {.pm_len = 1024};
	s.hw.domain = domain;
	s.hw.ddio = ddio;
	ck_assert_int_eq(waste_open(&w, &s), 0);
	actor_init(&one, "server");
	actor_init(&two, "server/2");
}

/* An event of operation 0, by `who`, from place 100 + kind. */
static void event(const struct actor *who, uint8_t kind, uint64_t off, uint64_t len)
{
	const struct traced about = {.kind = kind, .off = off, .len = len};
	waste_event(&w, who, 100 + kind, &about, 1);
}

static void expect(enum waste_sort sort, unsigned times, unsigned lines)
{
	unsigned t = 0, l = 0;
	for (unsigned i = 0; i < w.rows; i++) {
		if (w.row[i].sort != sort)
			continue;
		ck_assert_uint_eq(w.row[i].kinds, 1);
		t += w.row[i].times;
		l += w.row[i].lines;
	}
	ck_assert_uint_eq(t, times);
	ck_assert_uint_eq(l, lines);
}

static void finish(void)
{
	waste_close(&w);
}

TEST(what_is_needed)
{
	start(DOMAIN_DMP, DDIO_ON);
	event(&one, TRACED_STORE, 60, 8); /* two lines */
	event(&one, TRACED_LAND, 256, 64);
	event(&one, TRACED_FLUSH, 0, 128);
	event(&one, TRACED_FLUSH, 256, 1);
	event(&one, TRACED_FENCE, 0, 0);
	/* Written again, it has to be flushed again, fence or not. */
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	event(&one, TRACED_FENCE, 0, 0);
	ck_assert_uint_eq(w.rows, 0);
	finish();
}

TEST(flushed_in_vain)
{
	start(DOMAIN_DMP, DDIO_ON);
	event(&one, TRACED_FLUSH, 0, 128); /* never written */
	expect(WASTE_CLEAN, 1, 2);
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 128); /* one of two lines */
	expect(WASTE_CLEAN, 2, 3);
	event(&one, TRACED_FLUSH, 0, 8);
	expect(WASTE_AGAIN, 1, 1);
	event(&one, TRACED_FENCE, 0, 0);
	event(&one, TRACED_FLUSH, 0, 8);
	expect(WASTE_AGAIN, 1, 1);
	expect(WASTE_CLEAN, 3, 4);
	expect(WASTE_FENCE, 0, 0);
	finish();
}

TEST(fences_in_vain)
{
	start(DOMAIN_DMP, DDIO_ON);
	event(&one, TRACED_FENCE, 0, 0);
	expect(WASTE_FENCE, 1, 0);
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	event(&two, TRACED_FENCE, 0, 0); /* another one's */
	expect(WASTE_FENCE, 2, 0);
	event(&one, TRACED_FENCE, 0, 0);
	event(&one, TRACED_FENCE, 0, 0);
	expect(WASTE_FENCE, 3, 0);
	finish();
}

TEST(hardware)
{
	start(DOMAIN_MHP, DDIO_ON); /* caches survive */
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	expect(WASTE_CLEAN, 1, 1);
	finish();
	start(DOMAIN_DMP, DDIO_OFF);
	event(&one, TRACED_LAND, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	expect(WASTE_CLEAN, 1, 1);
	event(&one, TRACED_STORE, 0, 8);
	event(&one, TRACED_FLUSH, 0, 8);
	expect(WASTE_CLEAN, 1, 1);
	finish();
}

RUN_TESTS(NULL, NULL)
