/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_SOON_H
#define TM_TESTS_SOON_H
/* Seeded bugs: how soon each is found, and which of two tests looks for it. */
#include "checker/hunt/mutants.h"
#include "tests/suite.h"

/* The order of the search finds each bug within so much; to exhaust one kind of hardware, or one
 * shape, after the other would take several times as much for some. */
#define SOON_RUNS   40000
#define SOON_STATES 250000

/* Does test_bug_causes look for number i? A half, and a sixth of those of several servers, which
 * take longest. */
static inline bool its_cause_is_told(const struct mutant *m, int i)
{
	return m->kind == MUTANT_STORE && i % (m->store->servers > 1 ? 6 : 2) == 0;
}

static inline void is_found_soon(const struct mutant *m, const struct mutant_result *r)
{
	ck_assert_msg(r->found, "%s %s: not found in %lu states (%s)", m->part, m->name, r->states,
		      m->what);
	if (r->searched) /* after all that is looked for so far, and up to the end of its bounds */
		return;
	/* With several servers there is one more thing that has to go wrong at the right time. */
	const unsigned times = m->store && m->store->servers > 1 ? 2 : 1;
	ck_assert_msg(r->runs <= times * SOON_RUNS && r->states <= times * SOON_STATES,
		      "%s %s: found after as many as %lu runs and %lu states", m->part, m->name,
		      r->runs, r->states);
	ck_assert_msg(r->contract < TM_CONTRACTS || r->text[0], "%s %s: found, but not how",
		      m->part, m->name);
}

#endif
