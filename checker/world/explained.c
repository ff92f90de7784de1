/* SPDX-License-Identifier: BSD-3-Clause */
/* See explained.h. */
#include "checker/world/explained.h"
#include <assert.h>
#include <errno.h>
#include "checker/world/world_client.h"

#define OF_ANY_STORE (TM_LINK_LOST | TM_CALL_FAILED | TM_DROPPED | TM_SERVER_DIED)

bool connection_is_lost(const struct world *w, unsigned client)
{
	assert(w->client[client].life <= world_server_ends(w));
	return !w->machine && !w->loading &&
	       (!world_serves(w) || w->client[client].life != world_server_ends(w) ||
		w->client[client].primary != sim_config(w->sim)->primary);
}

/* What there is to explain an error of a client's operation, enum tm_reason. */
static unsigned reasons_of(const struct world *w, unsigned client)
{
	unsigned own = sim_injected(w->sim, client), server = sim_injected(w->sim, HOST_SERVER);
	unsigned reasons = TM_ALWAYS;

	if (own & SIM_INJECTED_LINK)
		reasons |= TM_LINK_LOST;
	if ((own | server) & SIM_INJECTED_CALL)
		reasons |= TM_CALL_FAILED;
	if (connection_is_lost(w, client))
		reasons |= TM_SERVER_DIED;
	if (sim_disturbed(w->sim))
		reasons |= TM_DISTURBED;
	if (own & SIM_INJECTED_DROP && sim_disturbed(w->sim))
		reasons |= TM_DROPPED;
	for (unsigned host = 1; host < SIM_HOSTS; host++)
		if (host != client && sim_injected(w->sim, host))
			reasons |= TM_PEER_FAILED;
	/* The process that the client was before. */
	if (own & SIM_INJECTED_DEATH)
		reasons |= TM_PEER_FAILED;
	return reasons;
}

static bool is_declared(const struct tm_store *store, enum tm_operation operation, int error,
			unsigned reasons)
{
	const struct tm_error *declared = store->errors;

	for (; declared && declared->error; declared++)
		if (declared->error == error && declared->operations & operation &&
		    declared->reasons & reasons)
			return true;
	return false;
}

bool reasons_explain(const struct tm_store *store, unsigned reasons, enum tm_operation operation,
		     int error)
{
	assert(error);
	/* A DELETE may say that there was nothing to delete. */
	if (reasons & OF_ANY_STORE || (operation == TM_DEL && error == -ENOENT))
		return true;
	return is_declared(store, operation, error, reasons);
}

bool error_explained(const struct world *w, unsigned client, enum tm_operation operation, int error)
{
	assert(client != HOST_SERVER);
	return reasons_explain(w->setup->store, reasons_of(w, client), operation, error);
}

bool hang_explained(const struct world *w, unsigned client, enum tm_operation operation)
{
	assert(client != HOST_SERVER);
	return is_declared(w->setup->store, operation, -ETIMEDOUT, reasons_of(w, client));
}
