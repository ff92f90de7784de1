/* SPDX-License-Identifier: BSD-3-Clause */
/* See checkpoint.h. */
#include "checker/world/checkpoint.h"
#include <assert.h>
#include <string.h>

bool world_has_checkpoint(const struct worlds *ws)
{
	const struct world *w = &ws->world[0];
	return !w->between && !w->setup->dram_watcher && !w->loading && sim_has_snapshot(w->sim);
}

void world_checkpoint(const struct worlds *ws, struct checkpoint *c)
{
	const struct world *w = &ws->world[0];
	assert(world_has_checkpoint(ws) && !w->history->epoch);
	snapshot_begin(&c->bytes);
	pmem_snapshot(w->pm, &c->bytes);
	sim_snapshot(w->sim, &c->bytes);
	history_snapshot(w->history, &c->bytes);
	snapshot_put(&c->bytes, ws->op_of_value, w->setup->values * sizeof(*ws->op_of_value));
	snapshot_put(&c->bytes, w, sizeof(*w));
	c->booted = w->booted;
}

/* A seeded bug. `last`: the world as the last run left it. */
static void forget(struct world *w, const struct world *last, uint64_t now,
		   enum checkpoint_mutant mutant)
{
	const struct hardware *hw = &w->setup->hw;
	if (mutant == CHECKPOINT_NO_MEMORY) {
		pmem_end(w->pm);
		pmem_begin(w->pm, w->sim, hw);
	}
	if (mutant == CHECKPOINT_NO_CLOCK)
		sim_run_state(w->sim)->now = now;
	if (mutant == CHECKPOINT_NO_CLIENTS)
		memcpy(w->client, last->client, sizeof(w->client));
}

void checkpoint_return(struct worlds *ws, struct checkpoint *c, struct source *source,
		       enum checkpoint_mutant mutant)
{
	struct world *w = &ws->world[0];
	const struct world last = *w;
	const uint64_t now = sim_now(w->sim);
	const size_t values = w->setup->values * sizeof(*ws->op_of_value);
	snapshot_rewind(&c->bytes);
	pmem_resume(w->pm, &c->bytes);
	sim_resume(w->sim, &c->bytes, source);
	history_resume(w->history, &c->bytes);
	if (mutant == CHECKPOINT_NO_VALUES)
		snapshot_skip(&c->bytes, values);
	else
		snapshot_take(&c->bytes, ws->op_of_value, values);
	snapshot_take(&c->bytes, w, sizeof(*w));
	if (mutant)
		forget(w, &last, now, mutant);
}

void checkpoint_free(struct checkpoint *c)
{
	snapshot_free(&c->bytes);
}
