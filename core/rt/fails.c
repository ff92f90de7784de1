/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of failure points, and the answers of the sim world. See fails.h. */
#include "core/rt/fails.h"
#include "core/rt/sim.h"

const struct fail_point_name fail_points[FAIL_POINT_COUNT] = {
#define X(id, name, what) [FAIL_##id] = {name, what},
	FAIL_POINTS(X)
#undef X
};

bool sim_fails(enum fail_point point)
{
	struct sim *sim = sim_current();
	struct actor *actor = sim && sim_calls_fail(sim) ? sim_actor(sim) : NULL;
	if (!actor)
		return false;
	struct choice_point at = {.kind = CHOICE_FAIL,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence,
				  .a = point,
				  .b = ++actor->count[COUNT_FAIL + point]};
	if (!sim_choose(sim, &at, 2))
		return false;
	sim_inject(sim, sim_host(sim), SIM_INJECTED_CALL);
	sim_trace(sim, actor, 0, "%s fails", fail_points[point].name);
	return true;
}

bool rt_pm_full(void)
{
	return sim_fails(FAIL_PM_FULL);
}
