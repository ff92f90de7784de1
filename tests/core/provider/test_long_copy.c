/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * core/provider/base/long_copy.c: whatever the alignment and the length, and whichever way is
 * taken, all bytes arrive and none around them changes. Both ways are taken within 64 copies.
 */
#include "core/provider/base/long_copy.h"
#include "tests/suite.h"

#define ROOM   (32 * 1024)
#define COPIES 65
#define GUARD  0xa5

static _Alignas(64) uint8_t from[ROOM], to[ROOM];

typedef void copy_fn(uint8_t *to, const uint8_t *from, size_t len);

static void check(copy_fn *copy, size_t to_off, size_t from_off, size_t len)
{
	for (unsigned n = 0; n < COPIES; n++) {
		memset(to, GUARD, sizeof(to));
		from[from_off] = (uint8_t)n;
		from[from_off + len - 1] = (uint8_t)~n;
		copy(to + to_off, from + from_off, len);
		ck_assert_mem_eq(to + to_off, from + from_off, len);
		for (size_t i = 1; i <= 64; i++) {
			ck_assert_uint_eq(to[to_off + len - 1 + i], GUARD);
			if (to_off >= i)
				ck_assert_uint_eq(to[to_off - i], GUARD);
		}
	}
}

static void check_all(copy_fn *copy)
{
	static const size_t offs[] = {0, 1, 8, 64}, lens[] = {LONG_COPY, 8193, 8200, 16384, 16447};

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t a = 0; a < sizeof(offs) / sizeof(*offs); a++)
		for (size_t b = 0; b < sizeof(offs) / sizeof(*offs); b++)
			for (size_t c = 0; c < sizeof(lens) / sizeof(*lens); c++)
				check(copy, offs[a], offs[b], lens[c]);
}

TEST(out)
{
	check_all(long_copy_out);
}

TEST(in)
{
	check_all(long_copy_in);
}

RUN_TESTS(NULL, NULL)
