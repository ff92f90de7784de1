/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeded bugs: each is found, by the search of `tidemark mutants` (checker/hunt/mutants.c),
 * and without a bug nothing is found.
 *
 * test_bugs [PART PARTS]: one part of so many, as they take long.
 */
#include "checker/hunt/mutants.h"
#include "checker/judge/names.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/hunt/soon.h"

#define SHRUNK	       16    /* one in so many is also shrunk, which takes longer than to find it */
#define CONTROL_STATES 10000 /* of one control; `tidemark mutants` gives it more */

static struct mutant mutant[MUTANTS_MAX];
static unsigned mutants;
static int part = 1, parts = 1;

TESTS(is_found, mutants)
{
	const struct mutant *m = &mutant[_i];
	struct mutant_options o = mutant_default;
	struct mutant_result r;

	if (!in_share(_i) || _i % parts != part - 1)
		return;
	if (in_share(1) && its_cause_is_told(m, _i))
		return; /* the whole list: test_bug_causes looks for it */
	o.shrink = _i % SHRUNK == 1;
	if (m->kind == MUTANT_CONTROL)
		o.states = CONTROL_STATES;
	ck_assert_int_eq(mutant_search(m, &o, &r), 0);
	if (m->kind == MUTANT_CONTROL) {
		ck_assert_msg(!r.found, "%s %s, %s, run %lu breaks %s: %s", m->part, m->name,
			      r.workload, r.run,
			      r.contract < TM_CONTRACTS ? contract_name(r.contract) : "a rule",
			      r.text);
		ck_assert_uint_ge(r.states, m->store ? CONTROL_STATES : 0);
		ck_assert_uint_gt(r.runs,
				  m->store ? 10 : 90); /* a run of Redo Logging has 600 states */
		return;
	}
	is_found_soon(m, &r);
	ck_assert_msg(!o.shrink || m->kind != MUTANT_STORE || r.shrunk,
		      "%s %s: the shrunk trace does not break %s", m->part, m->name,
		      contract_name(r.contract));
}

/* The same search again: the same runs and states, whatever the clock says. */
TESTS(search_is_deterministic, part == 1)
{
	for (unsigned i = 0; i < mutants; i += 23) {
		if (!in_share((int)i))
			continue;
		struct mutant_options o = mutant_default;
		struct mutant_result r[2];
		if (mutant[i].kind == MUTANT_CONTROL)
			continue;
		for (unsigned k = 0; k < 2; k++) {
			ck_assert_int_eq(mutant_search(&mutant[i], &o, &r[k]), 0);
			r[k].seconds = 0;
		}
		ck_assert_mem_eq(&r[0], &r[1], sizeof(r[0]));
	}
}

/* Few states are not enough: a search that ends without a find says so. */
TESTS(budget_counts, part == 1)
{
	struct mutant_options o = mutant_default;
	struct mutant_result r;
	unsigned i = 0;

	while (i < mutants && strcmp(mutant[i].name, "keep_duplicates"))
		i++;
	ck_assert_uint_lt(i, mutants);
	o.states = 100;
	ck_assert_int_eq(mutant_search(&mutant[i], &o, &r), 0);
	ck_assert(!r.found);
	ck_assert_uint_ge(r.states, 100);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		part = atoi(argv[1]);
		parts = atoi(argv[2]);
	}
	if (part < 1 || part > parts)
		return EXIT_FAILURE;
	mutants = mutants_list(mutant);
	return run_suite(listed_suite(NULL, NULL));
}
