/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of schedules: what is found is what was noted under that name; it keeps to its room, and
 * drops what was of no use for the longest time. */
#include "checker/explore/stretch.h"
#include "faultinject/random_source.h"
#include "tests/suite.h"

#define ROOM  (64 << 10)
#define NOTES 300 /* questions of a stretch at most: it grows on the way */

static void note(struct stretches *t, struct stretch *s, uint64_t mark)
{
	struct actor actor;
	struct choice_point at = {.kind = CHOICE_LAND, .who = &actor, .a = (uint32_t)mark};

	actor_init(&actor, "c1");
	stretch_note(t, s, &at, 2);
}

/* Branches at random. A stretch's questions tell whose they are. */
TEST(within_its_room)
{
	static struct stretches t;
	uint64_t random = 1;
	unsigned found = 0, dropped = 0;

	ck_assert_int_eq(stretches_init(&t, ROOM), 0);
	for (unsigned round = 0; round < 4000; round++) {
		struct stretch *s = &t.root;
		for (unsigned depth = 0; s && depth < 4; depth++) {
			const uint32_t question = (uint32_t)(random_next(&random) % 8);
			const uint64_t mark = (s->name ^ question) & UINT32_MAX;
			struct stretch *child = stretches_find(&t, s, question, 1);
			const bool seen = stretches_seen(&t, s, question, 1);
			found += child != NULL;
			dropped += !child && seen;
			stretches_see(&t, s, question, 1);
			ck_assert(stretches_seen(&t, s, question, 1));
			if (!child) {
				child = stretches_add(&t, s, question, 1);
				ck_assert_ptr_nonnull(child);
				for (uint64_t i = random_next(&random) % NOTES + 1; i; i--)
					note(&t, child, mark);
			}
			ck_assert_ptr_eq(child->parent, s);
			ck_assert_ptr_eq(stretches_find(&t, s, question, 1), child);
			for (uint32_t i = 0; i < child->questions; i++)
				ck_assert_uint_eq(child->question[i].at.a, mark);
			stretches_use(&t, child);
			s = child;
		}
		ck_assert_uint_le(t.bytes, 2 * ROOM);
	}
	ck_assert_uint_gt(found, 0);
	ck_assert_uint_gt(dropped, 0);
	stretches_clear(&t);
	ck_assert_ptr_null(stretches_find(&t, &t.root, 0, 1));
	stretches_free(&t);
	ck_assert_uint_eq(t.bytes, 0);
}

/* The branch that was used last stays. */
TEST(oldest_goes)
{
	static struct stretches t;

	ck_assert_int_eq(stretches_init(&t, SIZE_MAX), 0);
	struct stretch *first = stretches_add(&t, &t.root, 0, 1);
	for (uint32_t i = 1; i < STRETCHES; i++)
		stretches_add(&t, &t.root, i, 1);
	stretches_use(&t, first);
	stretches_add(&t, &t.root, STRETCHES, 1);
	ck_assert_ptr_eq(stretches_find(&t, &t.root, 0, 1), first);
	ck_assert_ptr_null(stretches_find(&t, &t.root, 1, 1));
	ck_assert_ptr_nonnull(stretches_find(&t, &t.root, STRETCHES, 1));
	stretches_free(&t);
}

RUN_TESTS(NULL, NULL)
