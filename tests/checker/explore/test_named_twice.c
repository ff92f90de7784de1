/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair that works for no operation may give two choices one name. In a trace of the second
 * one's deviation the first one deviates, which is another run: the explorer, which compares some
 * runs with their trace, does not take that for a mistake of its own.
 */
#include "core/rt/asan.h"
#include "faultinject/trace_source.h"
#include "tests/checker/setups.h"

#define NAMES	   4096
#define PLAIN_RUNS 16 /* by then the plain run is recorded, and others go on from its marks */

/* Deviates where a name comes for the second time. */
struct second {
	struct source source;
	uint64_t wanted; /* the name; 0: what comes is noted */
	unsigned met;
	struct deviations taken;
	/* Names of what queue pairs do for no operation, and how often each came. */
	uint64_t name[NAMES];
	unsigned times[NAMES], names;
};

static void note(struct second *s, uint64_t name)
{
	unsigned i = 0;

	while (i < s->names && s->name[i] != name)
		i++;
	ck_assert_uint_lt(i, NAMES);
	s->name[i] = name;
	s->times[i]++;
	s->names += i == s->names;
}

static unsigned answer(struct source *source, const struct choice_point *at, unsigned n)
{
	struct second *s = (struct second *)source;
	const unsigned late = choice_delay_answer(CHOICE_LAND, DELAY_5MS);
	struct deviation d;

	if (at->op.kind || !strstr(at->who->name, "/qp"))
		return 0;
	if (!s->wanted)
		note(s, choice_key(at));
	if (choice_key(at) != s->wanted || ++s->met != 2)
		return 0;
	deviation_record(&d, at, late, n);
	deviations_add(&s->taken, &d);
	return late;
}

static void begin(struct second *s, uint64_t wanted)
{
	s->source = (struct source){.answer = answer};
	for (unsigned k = 0; k < CHOICE_KINDS; k++)
		s->source.skip[k] = k == CHOICE_LAND ? 0 : UINT32_MAX;
	s->wanted = wanted;
	s->met = 0;
	s->taken.n = 0;
}

static uint64_t run_hash(struct worlds *worlds, struct source *source)
{
	world_run(worlds, source, NULL, NULL);
	const uint64_t hash = sim_hash(worlds->world[0].sim) ^ worlds->history->hash;
	world_end(worlds, 0);
	return hash;
}

/* Is the run in which the second one of that name is late another one than its trace's? */
static bool trace_differs(struct explorer *ex, struct second *s, uint64_t name)
{
	struct trace_source trace;

	begin(s, name);
	const uint64_t hash = run_hash(&ex->worlds, &s->source);
	ck_assert_uint_eq(s->taken.n, 1);
	ck_assert_int_eq(trace_start(&trace, &s->taken), 0);
	const bool differs = run_hash(&ex->worlds, &trace.source) != hash;
	trace_finish(&trace);
	return differs;
}

/* A run that is the first to go on from a mark of the plain one is always compared. */
static void compare(const struct setup *setup, struct second *s, uint64_t name)
{
	struct explore_limits limits = explore_default;
	struct bench *b = make_bench(setup, &limits);
	const struct deviations none = {0};

	for (unsigned i = 0; i < PLAIN_RUNS; i++)
		ck_assert_int_eq(explore_run(&b->ex, NULL, &none), 0);
	begin(s, name);
	const int error = explore_run(&b->ex, &s->source, &s->taken);
	ck_assert_msg(!error, "%s", b->ex.wrong.text);
	ck_assert(TM_ASAN || b->ex.resumed); /* under AddressSanitizer no run goes on from a mark */
	ck_assert_uint_eq(s->taken.n, 1);
	explore_close(&b->ex);
	free(b);
}

TEST(second_of_a_name)
{
	static struct second s;
	struct explore_limits limits = explore_default;
	struct setup setup;
	unsigned compared = 0;

	make_whole_setup(&setup, store_find("erda"), NULL, "", "ww-cpcw");
	struct bench *b = make_bench(&setup, &limits);
	begin(&s, 0);
	run_hash(&b->ex.worlds, &s.source);
	for (unsigned i = 0; i < s.names; i++)
		if (s.times[i] > 1 && trace_differs(&b->ex, &s, s.name[i])) {
			compare(&setup, &s, s.name[i]);
			compared++;
		}
	ck_assert_uint_gt(compared, 0);
	deviations_free(&s.taken);
	bench_free(b);
}

RUN_TESTS(NULL, NULL)
