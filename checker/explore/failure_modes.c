/* SPDX-License-Identifier: BSD-3-Clause */
/* See ways.h. */
#include "checker/explore/failure_modes.h"

unsigned way_kinds(const struct deviations *taken)
{
	unsigned kinds = 0;
	for (unsigned i = 0; i < taken->n; i++) {
		const struct deviation *d = &taken->d[i];
		bool server = d->kind == CHOICE_STEP && d->who[0] != 'c';
		kinds |= !server ? 1u << d->kind : d->op.kind ? WAY_SERVER : WAY_BACKGROUND;
	}
	return kinds;
}

bool way_includes(unsigned all, unsigned some)
{
	return (all & some) == some && (all & WAY_NOTHING) == (some & WAY_NOTHING);
}

void ways_add(struct ways *ways, unsigned kinds, uint64_t run)
{
	unsigned kept = 0, most = 0;
	for (unsigned i = 0; i < ways->n; i++)
		if (way_includes(kinds, ways->way[i].kinds))
			return;
	for (unsigned i = 0; i < ways->n; i++)
		if (!way_includes(ways->way[i].kinds, kinds))
			ways->way[kept++] = ways->way[i];
	ways->n = kept;
	if (kept < WAYS) {
		ways->way[ways->n++] = (struct way){run, kinds};
		return;
	}
	for (unsigned i = 1; i < WAYS; i++)
		if (__builtin_popcount(ways->way[i].kinds) >
		    __builtin_popcount(ways->way[most].kinds))
			most = i;
	if (__builtin_popcount(kinds) < __builtin_popcount(ways->way[most].kinds))
		ways->way[most] = (struct way){run, kinds};
}
