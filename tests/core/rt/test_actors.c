/* SPDX-License-Identifier: BSD-3-Clause */
/* Actors' names outlive runs: as many as the lives of several servers and clients make. */
#include "core/rt/actors.h"
#include "tests/suite.h"

TEST(each_name_has_a_number)
{
	struct actors *actors = actors_new();
	struct actor who;
	char name[16];
	ck_assert_uint_eq(actors_number(actors, NULL), 0);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 1; i <= 1000; i++) {
			snprintf(name, sizeof(name), "s1/qp%u", i);
			actor_init(&who, name);
			ck_assert_uint_eq(actors_number(actors, &who), i);
		}
	for (unsigned i = 1; i <= 1000; i++) {
		snprintf(name, sizeof(name), "s1/qp%u", i);
		ck_assert_str_eq(actors_at(actors, (uint16_t)i)->name, name);
	}
	actors_free(actors);
}

RUN_TESTS(NULL, NULL)
