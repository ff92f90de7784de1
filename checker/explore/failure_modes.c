/* SPDX-License-Identifier: BSD-3-Clause */
/* See ways.h. */
#include "checker/explore/failure_modes.h"

unsigned failure_mode_kinds(const struct deviations *taken)
{
	unsigned kinds = 0;
	for (unsigned i = 0; i < taken->n; i++) {
		const struct deviation *d = &taken->d[i];
		bool server = d->kind == CHOICE_STEP && d->who[0] != 'c';
		kinds |= !server      ? 1u << d->kind
			 : d->op.kind ? FAILURE_MODE_SERVER
				      : FAILURE_MODE_BACKGROUND;
	}
	return kinds;
}

bool failure_mode_includes(unsigned all, unsigned some)
{
	return (all & some) == some &&
	       (all & FAILURE_MODE_NOTHING) == (some & FAILURE_MODE_NOTHING);
}

void failure_modes_add(struct failure_modes *ways, unsigned kinds, uint64_t run)
{
	unsigned kept = 0, most = 0;
	for (unsigned i = 0; i < ways->n; i++)
		if (failure_mode_includes(kinds, ways->way[i].kinds))
			return;
	for (unsigned i = 0; i < ways->n; i++)
		if (!failure_mode_includes(ways->way[i].kinds, kinds))
			ways->way[kept++] = ways->way[i];
	ways->n = kept;
	if (kept < FAILURE_MODES) {
		ways->way[ways->n++] = (struct failure_mode){run, kinds};
		return;
	}
	for (unsigned i = 1; i < FAILURE_MODES; i++)
		if (__builtin_popcount(ways->way[i].kinds) >
		    __builtin_popcount(ways->way[most].kinds))
			most = i;
	if (__builtin_popcount(kinds) < __builtin_popcount(ways->way[most].kinds))
		ways->way[most] = (struct failure_mode){run, kinds};
}
