/* SPDX-License-Identifier: BSD-3-Clause */
/* See failure_modes.h. */
#include "checker/explore/failure_modes.h"

unsigned failure_mode_kinds(const struct deviations *taken)
{
	unsigned kinds = 0;
	for (unsigned i = 0; i < taken->n; i++) {
		const struct deviation *d = &taken->d[i];
		if (delay_kills(choice_delay(d->kind, d->answer))) {
			kinds |= FAILURE_MODE_DEATH;
			continue;
		}
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

void failure_modes_add(struct failure_modes *modes, unsigned kinds, uint64_t run)
{
	unsigned left = 0, most = 0;
	for (unsigned i = 0; i < modes->n; i++)
		if (failure_mode_includes(kinds, modes->mode[i].kinds))
			return;
	for (unsigned i = 0; i < modes->n; i++)
		if (!failure_mode_includes(modes->mode[i].kinds, kinds))
			modes->mode[left++] = modes->mode[i];
	modes->n = left;
	if (left < FAILURE_MODES) {
		modes->mode[modes->n++] = (struct failure_mode){run, kinds};
		return;
	}
	for (unsigned i = 1; i < FAILURE_MODES; i++)
		if (__builtin_popcount(modes->mode[i].kinds) >
		    __builtin_popcount(modes->mode[most].kinds))
			most = i;
	if (__builtin_popcount(kinds) < __builtin_popcount(modes->mode[most].kinds))
		modes->mode[most] = (struct failure_mode){run, kinds};
}
