/* SPDX-License-Identifier: BSD-3-Clause */
/* See checkpoint.h. */
#include "checker/world/checkpoint.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

bool world_has_checkpoint(const struct worlds *ws)
{
	const struct world *w = &ws->world[0];
	return !w->between && !w->setup->dram_watcher && !w->loading && sim_has_snapshot(w->sim);
}

/* What is left of world 0 besides its simulation and its memory. It has no life, and its GETs are
 * not kept. */
static void exchange(struct worlds *ws, struct snapshot *s)
{
	struct world *w = &ws->world[0];
	history_exchange(w->history, s);
	snapshot_exchange(s, ws->op_of_value, w->setup->values * sizeof(*ws->op_of_value));
	snapshot_exchange(s, w, offsetof(struct world, life));
}

void world_checkpoint(struct worlds *ws, struct snapshot *c)
{
	struct world *w = &ws->world[0];
	assert(world_has_checkpoint(ws));
	snapshot_begin(c);
	pmem_snapshot(w->pm, c);
	sim_snapshot(w->sim, c);
	exchange(ws, c);
}

static void go_back(struct worlds *ws, struct snapshot *c, struct source *source)
{
	snapshot_rewind(c);
	pmem_resume(ws->world[0].pm, c);
	sim_resume(ws->world[0].sim, c, source);
	exchange(ws, c);
}

/* The same with a seeded bug: something stays as the last run left it. */
static void go_back_wrongly(struct worlds *ws, struct snapshot *c, struct source *source,
			    enum checkpoint_mutant mutant)
{
	struct world *w = &ws->world[0];
	const struct world last = *w;
	const uint64_t now = sim_now(w->sim);
	const size_t values = w->setup->values * sizeof(*ws->op_of_value);
	int32_t *of_value = malloc(values + 1);
	if (!of_value)
		arena_exhausted();
	memcpy(of_value, ws->op_of_value, values);
	go_back(ws, c, source);
	if (mutant == CHECKPOINT_NO_MEMORY) {
		pmem_end(w->pm);
		pmem_begin(w->pm, w->sim, &w->setup->hw);
	}
	if (mutant == CHECKPOINT_NO_CLOCK)
		sim_run_state(w->sim)->now = now;
	if (mutant == CHECKPOINT_NO_VALUES)
		memcpy(ws->op_of_value, of_value, values);
	if (mutant == CHECKPOINT_NO_CLIENTS)
		memcpy(w->client, last.client, sizeof(w->client));
	free(of_value);
}

void checkpoint_return(struct worlds *ws, struct snapshot *c, struct source *source,
		       enum checkpoint_mutant mutant)
{
	if (mutant)
		go_back_wrongly(ws, c, source, mutant);
	else
		go_back(ws, c, source);
}
