/* SPDX-License-Identifier: BSD-3-Clause */
/* See places.h. */
#include "core/rt/places.h"
#include "core/rt/rt.h"
#include "core/rt/sim_state.h"

void sim_set_places(struct sim *sim, const struct places_without *without,
		    struct places_reached *reached)
{
	sim->without = without;
	sim->reached = reached;
}

static void note(struct places_reached *reached, uintptr_t key)
{
	unsigned lo = 0, hi = reached->n;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (reached->key[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < reached->n && reached->key[lo] == key)
		reached->bit[lo] = 1;
}

bool sim_does(uintptr_t key)
{
	struct sim *sim = sim_of_thread;
	if (!sim)
		return true;
	if (sim->reached)
		note(sim->reached, key);
	for (unsigned i = 0; sim->without && i < sim->without->n; i++)
		if (sim->without->key[i] == key)
			return false;
	return true;
}

bool rt_check(bool holds)
{
	uintptr_t pc = PC;
	struct sim *sim = sim_of_thread;
	bool answer = !sim_does(pc) || (sim_does(PLACE_PART(pc)) && holds);
	if (sim && sim->run.traced) {
		const struct traced about = {.kind = TRACED_CHECK, .code = answer};
		sim_trace_event(sim, sim_actor(sim), pc, &about, "%s", "");
	}
	return answer;
}

bool rt_waits(const void *caller)
{
	return sim_does((uintptr_t)caller - 1);
}
