/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A register's histories against a search that tries every order: puts of equal values,
 * compare-and-set, answers that never came. And what is left of those that no order explains is
 * none either, though each of its operations could not go.
 */
#include "checker/judge/register.h"
#include "tests/suite.h"

#define OPS_MAX 8

/* Can the operations of `left` follow, the register being `value`? An operation may be next if no
 * other one of `left` was answered before it began; one without an answer may be left out. */
static bool follows(const struct register_op *op, unsigned n, unsigned left, int32_t value)
{
	bool done = true;
	for (unsigned i = 0; i < n; i++) {
		if (!(left >> i & 1))
			continue;
		done &= !op[i].answered;
		bool next = true;
		for (unsigned j = 0; j < n; j++)
			next &= !(left >> j & 1) || !op[j].answered || op[j].ended > op[i].begun;
		if (!next)
			continue;
		int32_t then = op[i].value;
		bool fits = true;
		if (op[i].kind == REGISTER_GET)
			fits = !op[i].answered || value == op[i].value;
		if (op[i].kind == REGISTER_CAS)
			fits = !op[i].answered || (value == op[i].old) != op[i].failed;
		if (op[i].kind == REGISTER_GET ||
		    (op[i].kind == REGISTER_CAS && value != op[i].old))
			then = value;
		if (fits && follows(op, n, left & ~(1u << i), then))
			return true;
	}
	return done;
}

static bool is_explained(const struct register_op *op, unsigned n)
{
	return follows(op, n, (1u << n) - 1, REGISTER_ABSENT);
}

static unsigned draw(unsigned n)
{
	return (unsigned)rand() / 7u % n;
}

/* Operations of three clients; `unique`: each value is put once, and there is no CAS. */
static unsigned draw_history(struct register_op *op, unsigned n, bool unique)
{
	uint32_t at = 0, free_at[3] = {0};
	for (unsigned i = 0; i < n; i++) {
		unsigned client = draw(3);
		at += 1 + draw(3);
		at = at > free_at[client] ? at : free_at[client] + 1;
		op[i] = (struct register_op){.kind = (uint8_t)draw(unique ? 3 : 4),
					     .answered = draw(6) > 0,
					     .value = (int32_t)draw(unique ? n : 2),
					     .begun = 16 * at,
					     .name = i};
		if (op[i].kind == REGISTER_PUT && unique)
			op[i].value = (int32_t)i;
		if (op[i].kind == REGISTER_GET && draw(4) == 0)
			op[i].value = REGISTER_ABSENT;
		if (op[i].kind == REGISTER_DEL)
			op[i].value = REGISTER_ABSENT;
		if (op[i].kind == REGISTER_CAS) {
			op[i].old = (int32_t)draw(2);
			op[i].failed = op[i].answered && draw(2);
		}
		free_at[client] = at + 1 + draw(5);
		op[i].begun += i;
		op[i].ended = 16 * free_at[client] + 8 + i % 8;
	}
	return n;
}

static void try_history(const struct register_op *op, unsigned n)
{
	struct register_op left[OPS_MAX], one_less[OPS_MAX];
	unsigned lost = 0;
	bool explained = is_explained(op, n);
	ck_assert_int_eq(register_judge(op, n, &lost), explained ? REGISTER_FITS : REGISTER_NONE);
	if (explained)
		return;
	ck_assert_uint_lt(lost, n);
	ck_assert(op[lost].answered);
	memcpy(left, op, n * sizeof(*op));
	unsigned fewer = register_shrink(left, n);
	ck_assert_uint_ge(fewer, 1);
	ck_assert(!is_explained(left, fewer));
	/* No answer that only looks is there for nothing. */
	for (unsigned i = 0; i < fewer; i++) {
		if (left[i].kind != REGISTER_GET && !left[i].failed)
			continue;
		memcpy(one_less, left, i * sizeof(*left));
		memcpy(one_less + i, left + i + 1, (fewer - i - 1) * sizeof(*left));
		ck_assert(is_explained(one_less, fewer - 1));
	}
}

TESTS(every_order, 2)
{
	struct register_op op[OPS_MAX];
	for (unsigned seed = 0; seed < 1500; seed++) {
		srand((unsigned)_i * 10000 + seed);
		try_history(op, draw_history(op, 2 + draw(OPS_MAX - 2), _i == 1));
	}
}

/* The values that may be there if the power fails: as if a GET of each came then. */
TEST(after_a_failure)
{
	struct register_op op[OPS_MAX + 1];
	for (unsigned seed = 0; seed < 1500; seed++) {
		struct model_search s = {.full = false};
		unsigned lost, n;
		srand(777777 + seed);
		n = draw_history(op, 2 + draw(OPS_MAX - 2), false);
		const uint32_t end = op[draw(n)].begun + 4;
		unsigned begun = 0;
		for (unsigned i = 0; i < n; i++)
			if (op[i].begun < end) {
				op[begun] = op[i];
				op[begun].answered &= op[i].ended < end;
				op[begun].failed &= op[begun].answered;
				begun++;
			}
		enum register_result result = register_follow(&s, op, begun, &lost);
		ck_assert_int_eq(result, is_explained(op, begun) ? REGISTER_FITS : REGISTER_NONE);
		for (int32_t value = REGISTER_ABSENT; value < 2 && result == REGISTER_FITS;
		     value++) {
			op[begun] = (struct register_op){.kind = REGISTER_GET,
							 .answered = true,
							 .value = value,
							 .begun = 1 << 20,
							 .ended = 1 << 21};
			ck_assert_int_eq(register_may_be(&s, value), is_explained(op, begun + 1));
		}
		model_set_free(&s.set);
	}
}

RUN_TESTS(NULL, NULL)
