/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of store code that returned an error. A store's function that fails because of one returns
 * an error of its own, often another: the call itself says more.
 */
#include "core/rt/sim_state.h"

void sim_call_failed(struct sim *sim, const char *name, const char *how, uintptr_t pc)
{
	const struct traced about = {.kind = TRACED_REFUSED};
	assert(name && how);
	if (!sim || !sim->running)
		return;
	sim->running->failed = (struct sim_failed_call){name, how, pc};
	sim_trace_event(sim, &sim->running->actor, pc, &about, "%s fails: %s", name, how);
}

void sim_call_returned(struct sim *sim, const char *name, int error, uintptr_t pc)
{
	const char *how = strerrorname_np(error); /* a constant, as sim_call_failed() wants it */
	sim_call_failed(sim, name, how ? how : "no errno", pc);
}

struct sim_failed_call sim_failed_call(const struct sim *sim)
{
	return sim->running ? sim->running->failed : (struct sim_failed_call){0};
}

void sim_forget_failed_call(struct sim *sim)
{
	if (sim->running)
		sim->running->failed = (struct sim_failed_call){0};
}
