/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From recordings of one key to its history: the order in time, what came before, what is
 * left out; and that leaving out never makes a break of a history that has none.
 */
#include "checker/live/recorded_history.h"
#include "tests/suite.h"

#define OPS_MAX 20000

static struct recording_op op[OPS_MAX];
static const struct recording_op *pointer[OPS_MAX];
static unsigned ops;
static struct recorded_history *past;
static bool unsure; /* the search ran out of room */

static void setup(void)
{
	ops = 0;
	past = malloc(sizeof(*past));
	ck_assert_ptr_nonnull(past);
}

static void teardown(void)
{
	free(past);
}

static struct recording_op *add(uint32_t boot, unsigned client, enum history_kind kind,
				uint64_t value, uint64_t from, uint64_t to)
{
	struct recording_op *o = &op[ops++];

	ck_assert_uint_le(ops, OPS_MAX);
	*o = (struct recording_op){.invoked_ns = from,
				   .returned_ns = to,
				   .value = value,
				   .boot = boot,
				   .client = (uint16_t)client,
				   .kind = (uint8_t)kind,
				   .found = kind == HISTORY_GET && value};
	return o;
}

static int by_time(const void *a, const void *b)
{
	const struct recording_op *x = *(const struct recording_op *const *)a,
				  *y = *(const struct recording_op *const *)b;

	if (x->boot != y->boot)
		return x->boot < y->boot ? -1 : 1;
	return x->invoked_ns < y->invoked_ns ? -1 : x->invoked_ns > y->invoked_ns;
}

static struct key_state value(uint64_t id)
{
	return (struct key_state){id ? KEY_VALUE : KEY_ABSENT, id};
}

/* Which contracts break, where recovery shows `shown`. */
static unsigned broken(uint32_t first, uint32_t last, struct key_state start,
		       struct key_state shown)
{
	const unsigned want = (TM_BIT(TM_LIVE) - 1) & ~TM_BIT(TM_BUF);
	struct recorded_key key = {
		pointer, ops, first, last, start, &shown.id, shown.state == KEY_VALUE};
	struct verdict v[TM_CONTRACTS] = {0};
	unsigned set = 0;

	for (unsigned i = 0; i < ops; i++)
		pointer[i] = &op[i];
	qsort(pointer, ops, sizeof(pointer[0]), by_time);
	ck_assert_int_eq(recorded_make(past, &key), 0);
	if (past->trouble)
		return TM_BIT(TM_CONTRACTS);
	recorded_judge(past, &shown, past->start, want, v);
	for (unsigned c = 0; c < TM_LIVE; c++)
		set |= v[c].broken ? TM_BIT(c) : 0;
	unsure = v[TM_DUR].unsure;
	return set;
}

static const struct key_state absent = {KEY_ABSENT, 0}, unknown = {KEY_UNKNOWN, 0},
			      foreign = {KEY_FOREIGN, 0};

TEST(one_boot)
{
	ck_assert_uint_eq(broken(1, 1, absent, absent), 0);
	add(1, 1, HISTORY_PUT, 11, 10, 20);
	add(1, 2, HISTORY_GET, 11, 15, 25);
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0);
	ck_assert_uint_eq(broken(1, 1, absent, unknown), 0);
	ck_assert_uint_eq(broken(1, 1, absent, absent), TM_BIT(TM_DUR) | TM_BIT(TM_MONO));
	ck_assert_uint_eq(broken(1, 1, absent, foreign), TM_BIT(TM_RDA));
	add(1, 1, HISTORY_DEL, 0, 30, 40);
	ck_assert_uint_eq(broken(1, 1, absent, absent), 0);
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), TM_BIT(TM_DUR) | TM_BIT(TM_NORES));
	add(1, 1, HISTORY_GET, 11, 50, 60);
	ck_assert_uint_eq(broken(1, 1, absent, absent) & TM_BIT(TM_LIN), TM_BIT(TM_LIN));
}

TEST(the_same_time_is_concurrent)
{
	add(1, 1, HISTORY_PUT, 11, 10, 20);
	add(1, 2, HISTORY_PUT, 12, 20, 30);
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0);
	op[1].invoked_ns = 21;
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), TM_BIT(TM_DUR));
}

TEST(what_ended_with_its_connection_may_have_happened)
{
	static const int errors[] = {-EIO, -ECANCELED, -ETIMEDOUT};

	add(1, 1, HISTORY_PUT, 11, 10, 20);
	add(1, 2, HISTORY_PUT, 12, 30, 40);
	for (unsigned i = 0; i < 3; i++) {
		op[1].error = errors[i];
		ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0);
		ck_assert_uint_eq(broken(1, 1, absent, value(12)), 0);
	}
	op[1].returned_ns = 0;
	op[1].error = 0;
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0);
	ck_assert_uint_eq(broken(1, 1, absent, value(12)), 0);
	op[1].returned_ns = 40;
	op[1].error = -ENOSPC; /* the client was told so */
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0);
	ck_assert_uint_eq(broken(1, 1, absent, value(12)), TM_BIT(TM_NORES));
}

TEST(several_boots)
{
	/* The second machine's clock began anew. */
	add(1, 1, HISTORY_PUT, 11, 1000, 2000);
	add(2, 1, HISTORY_PUT, 12, 10, 20);
	add(2, 1, HISTORY_GET, 12, 30, 40);
	ck_assert_uint_eq(broken(1, 2, absent, value(12)), 0);
	ck_assert_uint_eq(broken(1, 2, absent, value(11)), TM_BIT(TM_DUR) | TM_BIT(TM_MONO));
	ck_assert_uint_eq(broken(1, 1, absent, value(11)), 0); /* the second boot was not cut yet */
	add(2, 1, HISTORY_GET, 0, 1, 5);
	ck_assert_uint_eq(broken(1, 2, absent, value(12)), TM_BIT(TM_DUR));
}

TEST(where_a_key_stood)
{
	const unsigned older = TM_BIT(TM_DUR) | TM_BIT(TM_KEEP);

	/* Boot 1 is over: 12 was there, 11 came before it. */
	add(1, 1, HISTORY_PUT, 11, 10, 20);
	add(1, 1, HISTORY_PUT, 12, 30, 40);
	ck_assert_uint_eq(broken(2, 2, value(12), value(12)), 0);
	ck_assert_uint_eq(broken(2, 2, value(12), value(11)), older);
	ck_assert_uint_eq(broken(2, 2, value(12), absent), older);
	add(2, 2, HISTORY_GET, 11, 10, 20);
	ck_assert_uint_eq(broken(2, 2, value(12), value(12)) & TM_BIT(TM_LIN), TM_BIT(TM_LIN));
	/* 12 was lost. No DEL had deleted it. */
	ops = 2;
	ck_assert_uint_eq(broken(2, 2, absent, absent), 0);
	ck_assert_uint_eq(broken(2, 2, absent, value(12)), TM_BIT(TM_DUR));
	/* Now one has. */
	add(1, 1, HISTORY_DEL, 0, 50, 60);
	ck_assert_uint_eq(broken(2, 2, absent, value(12)), TM_BIT(TM_DUR) | TM_BIT(TM_NORES));
	/* In a later boot, whose clock began anew. */
	op[2].boot = 2;
	op[2].invoked_ns = 1;
	op[2].returned_ns = 2;
	ck_assert_uint_eq(broken(3, 3, absent, value(12)), TM_BIT(TM_DUR) | TM_BIT(TM_NORES));
	/* Its place in the order is not known: it decides at the first look. */
	ck_assert_uint_eq(broken(2, 2, unknown, value(12)), 0);
	ck_assert_uint_eq(broken(2, 2, unknown, absent), 0);
	/* Without the recordings of boot 1. */
	ops = 0;
	ck_assert_uint_eq(broken(2, 2, value(12), value(11)), older);
	ck_assert_uint_eq(broken(2, 2, absent, value(11)), TM_BIT(TM_DUR));
}

TEST(what_cannot_be_judged_is_told)
{
	add(1, 1, HISTORY_PUT, 11, 10, 20);
	broken(1, 1, absent, value(99));
	ck_assert_int_eq(past->trouble, RECORDED_UNKNOWN_PUT);
	ck_assert_uint_eq(past->strange, 99);
	add(1, 2, HISTORY_GET, 11, 1, 9);
	broken(1, 1, absent, value(11));
	ck_assert_int_eq(past->trouble, RECORDED_CLOCKS);
	ops = 0;
	for (unsigned i = 0; i < HISTORY_CRASHES; i++)
		add(i + 1, 1, HISTORY_GET, 0, 10, 20);
	broken(1, HISTORY_CRASHES, absent, absent);
	ck_assert_int_eq(past->trouble, RECORDED_LONG);
}

/* --- a register that is right --- */

static uint64_t state;

static unsigned draw(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

/* `n` operations of 8 clients on a register, each with effect somewhere between its ends. What it
 * has at the end; *before: the last PUT that was acknowledged. */
static uint64_t make_register(uint32_t boot, unsigned n, unsigned gets, unsigned dels, uint64_t now,
			      uint64_t *before)
{
	uint64_t free_at[9] = {0}, clock = 1000;
	static uint64_t nth;

	for (unsigned i = 0; i < n; i++) {
		unsigned client = 1 + draw(8), what = draw(100);
		uint64_t at, from, to;

		clock += 1 + draw(30);
		at = clock;
		from = at - draw(100);
		if (from <= free_at[client])
			from = free_at[client] + 1;
		if (from > at) {
			i--;
			continue;
		}
		to = at + draw(100);
		free_at[client] = to;
		if (what < gets) {
			add(boot, client, HISTORY_GET, now, from, to);
			continue;
		}
		bool fails = draw(40) == 0, takes_effect = !fails || draw(2);
		uint64_t id = what < gets + dels ? 0 : (uint64_t)client << 56 | ++nth;
		struct recording_op *o = add(boot, client, id ? HISTORY_PUT : HISTORY_DEL, id, from,
					     to);
		if (fails)
			o->error = -EIO;
		if (id && !fails)
			*before = id;
		if (takes_effect)
			now = id;
	}
	return now;
}

static const struct {
	unsigned ops, gets, dels;
	bool trimmed;
} registers[] = {
	{300, 50, 5, false},  {3000, 50, 0, false}, {3000, 20, 20, false},
	{9000, 50, 0, true},  {9000, 95, 0, true},  {9000, 5, 0, true},
	{9000, 40, 20, true}, {9000, 2, 96, true},  {OPS_MAX - 10, 30, 5, true},
};

TESTS(a_good_register_is_never_broken, sizeof(registers) / sizeof(registers[0]))
{
	for (unsigned round = 0; round < 3; round++) {
		uint64_t before = 0, last;

		state = 88172645463325252ull + round * 1000003 + (unsigned)_i;
		ops = 0;
		last = make_register(1, registers[_i].ops, registers[_i].gets, registers[_i].dels,
				     0, &before);
		/* Something for certain after all that is concurrent. */
		uint64_t end = UINT64_C(1) << 40, newest = UINT64_C(9) << 56 | 7;
		ck_assert_uint_eq(broken(1, 1, absent, value(last)), 0);
		ck_assert_int_eq(past->left_out > 0, registers[_i].trimmed);
		add(1, 1, HISTORY_PUT, newest, end, end + 1);
		add(1, 2, HISTORY_GET, newest, end + 2, end + 3);
		ck_assert_uint_eq(broken(1, 1, absent, value(newest)), 0);
		/* Trimming has not taken away what breaks, nor what recovery shows. */
		const struct recording_op *first = op;
		while (first->kind != HISTORY_PUT || first->error)
			first++;
		ck_assert(broken(1, 1, absent, value(first->value)) & TM_BIT(TM_MONO));
		unsigned set = broken(1, 1, absent, value(before));
		ck_assert(set & TM_BIT(TM_MONO));
		ck_assert(set & TM_BIT(TM_DUR) || unsure);
	}
}

/* The DELETE that was invoked last is not the one that came last. */
TEST(deletes_at_one_time_are_kept)
{
	uint64_t id = UINT64_C(1) << 56;

	for (unsigned i = 1; i < 5000; i++)
		add(1, 1, HISTORY_PUT, id + i, 10 * i, 10 * i + 1);
	add(1, 1, HISTORY_DEL, 0, 60000, 60100);
	add(1, 2, HISTORY_DEL, 0, 60010, 60020);
	add(1, 3, HISTORY_PUT, id + 5000, 60030, 60040);
	ck_assert_uint_eq(broken(1, 1, absent, absent), 0);
	ck_assert_uint_gt(past->left_out, 0);
	op[4999].returned_ns = 60025;
	ck_assert_uint_eq(broken(1, 1, absent, absent), TM_BIT(TM_DUR));
}

TESTS(a_good_register_over_boots, sizeof(registers) / sizeof(registers[0]))
{
	uint64_t before = 0, now = 0, was = 0;

	state = 1234567 + (unsigned)_i;
	for (uint32_t boot = 1; boot <= 5; boot++) {
		was = now;
		now = make_register(boot, registers[_i].ops / 5, registers[_i].gets,
				    registers[_i].dels, now, &before);
	}
	ck_assert_uint_eq(broken(1, 5, absent, value(now)), 0);
	ck_assert_uint_eq(broken(5, 5, value(was), value(now)), 0);
}

RUN_TESTS(setup, teardown)
