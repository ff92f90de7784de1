/* SPDX-License-Identifier: BSD-3-Clause */
/* See surprise.h. */
#include "checker/judge/surprise.h"
#include <string.h>
#include "checker/judge/expect.h"
#include "scenarios/stores.h"

static const struct expectation *expected(const struct surprise_cell *cell, const char *config)
{
	return expect_find(cell->store->name, config, (int)cell->contract);
}

/* Where nothing is said of hardware, or a knob, that the default campaign does not have, the store
 * may break with it what it breaks by default; unless that is said of the default's hardware. */
static const struct expectation *expected_there(const struct surprise_cell *cell)
{
	const struct expectation *e = expected(cell, cell->config),
				 *plain = expected(cell, "default");
	bool named = is_default_config(cell->config) || store_has_column(cell->store, cell->config);
	return e || named || !plain || !plain->broken || plain->conditional ? e : plain;
}

/* A variant breaks what the rows that name it say (one that is a shape: what that column does), but
 * for what other hardware alone breaks; or mends, where no row that is about the variant alone says
 * that it breaks it whatever the hardware. NULL: nothing is said of it. */
static const struct expectation *expected_of_variant(const struct surprise_cell *cell)
{
	const struct expectation *plain = expected(cell, "default"), *there = expected_there(cell),
				 *mine = expected(cell, cell->variant);
	bool alone = mine && mine->broken && !store_has_column(cell->store, cell->variant);
	if (!strcmp(cell->config, "default") || alone)
		return mine;
	if ((there && there->broken) != (plain && plain->broken))
		return there;
	return mine;
}

const struct expectation *surprise_expected(const struct surprise_cell *cell)
{
	if (!strcmp(cell->variant, "default"))
		return expected_there(cell);
	if (store_shape(cell->store, cell->variant) || expected(cell, cell->variant))
		return expected_of_variant(cell);
	const struct expectation *e = expected(cell, cell->config);
	return e && e->conditional ? e : NULL;
}

bool surprise_in_cell(const struct surprise_cell *cell, const char **why)
{
	const struct expectation *e = surprise_expected(cell);
	const bool plain = !strcmp(cell->variant, "default");
	*why = e ? e->why : NULL;
	if (cell->strange)
		return true;
	if (!e)
		return cell->broken && cell->store->promises & TM_BIT(cell->contract);
	/* Part of a campaign need not find everything. */
	return e->broken != cell->broken && (cell->broken || (cell->whole && plain && !e->open));
}

unsigned surprise_at_any_hardware(const struct tm_store *store, bool visible)
{
	unsigned set = 0;
	for (int c = 0; c < TM_CONTRACTS; c++) {
		const struct expectation *e = visible ? expect_find(store->name, "ack_early=off", c)
						      : NULL;
		if (expect_holds(store->name, c) || (e && !e->broken))
			set |= TM_BIT(c);
	}
	return set;
}
