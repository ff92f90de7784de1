/* SPDX-License-Identifier: BSD-3-Clause */
/* See surprise.h. */
#include "checker/judge/surprise.h"
#include <string.h>
#include "checker/judge/expect.h"

bool surprise_in_cell(const struct surprise_cell *cell, const char **why)
{
	const struct expectation *e = strcmp(cell->variant, "default")
					      ? NULL
					      : expect_find(cell->store->name, cell->config,
							    (int)cell->contract);
	*why = e ? e->why : NULL;
	if (cell->strange)
		return true;
	if (!e)
		return cell->broken && cell->store->promises & TM_BIT(cell->contract);
	/* Part of a campaign need not find everything. */
	return e->broken != cell->broken && (cell->broken || (cell->whole && !e->open));
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
