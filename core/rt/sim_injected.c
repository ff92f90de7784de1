/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was injected into a run, host by host, so that an operation that fails can be judged: is
 * there a reason for it that does not lie in the store? Kept from one reset to the next.
 */
#include "core/rt/sim_state.h"

void sim_inject(struct sim *sim, unsigned host, unsigned what)
{
	sim_host_of(sim, host)->injected |= (uint8_t)what;
}

unsigned sim_injected(const struct sim *sim, unsigned host)
{
	return sim_host_at(sim, host)->injected;
}

void sim_refuse(struct sim *sim, unsigned host)
{
	sim_host_of(sim, host)->refused = true;
}

bool sim_take_refused(struct sim *sim, unsigned host)
{
	const bool refused = sim_host_at(sim, host)->refused;
	if (refused)
		sim_host_of(sim, host)->refused = false;
	return refused;
}

bool sim_disturbed(const struct sim *sim)
{
	return sim->disturbed;
}

void sim_packet_lost(struct sim *sim, unsigned from, unsigned to, bool repeated)
{
	unsigned host[] = {from, to};
	for (unsigned i = 0; i < 2; i++) {
		sim_host_of(sim, host[i])->lost++;
		/* The server has as many links as it has clients. */
		if (!repeated && !host_serves(host[i]))
			sim_inject(sim, host[i], SIM_INJECTED_LINK);
	}
}

void sim_link_given_up(struct sim *sim, unsigned from, unsigned to, unsigned tries)
{
	unsigned host[] = {from, to};
	for (unsigned i = 0; i < 2; i++)
		if (!host_serves(host[i]) && sim_host_at(sim, host[i])->lost >= tries)
			sim_inject(sim, host[i], SIM_INJECTED_LINK);
}
