/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_EXPLAINED_H
#define TM_CHECKER_WORLD_EXPLAINED_H
/*
 * Contract OK: does anything that was injected explain why an operation fails?
 *
 * What is known is what has happened in this life of the machine until now, host by host
 * (core/rt/sim_injected.c). A lost link of the client, and a call that was told to fail, at the
 * client or at the server, explain every error: the store is not asked what it makes of them. So
 * does the server's word that it has dropped the client, unless nothing at all was held up: then it
 * had no reason; and the death of the process that the client has connected to. Everything else
 * explains the errors alone that the store declares (struct tm_error).
 */
#include "checker/world/world.h"

/* Do these reasons (enum tm_reason, bits) explain the error of an operation of this store? */
bool reasons_explain(const struct tm_store *store, unsigned reasons, enum tm_operation operation,
		     int error);
/* Has the server's process died since the client connected? */
bool connection_is_lost(const struct world *w, unsigned client);
bool error_explained(const struct world *w, unsigned client, enum tm_operation operation,
		     int error);
/* Likewise, that one never ends: only what the store has declared as -ETIMEDOUT. */
bool hang_explained(const struct world *w, unsigned client, enum tm_operation operation);

#endif
