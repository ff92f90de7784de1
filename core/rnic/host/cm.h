/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_CM_H
#define TM_RNIC_HOST_CM_H
/*
 * The connection manager (core/cm) of a simulated host. One host listens, the server, and every
 * address is the server's: where it listens only the port counts. Messages are packets of the
 * simulated link: they take time, and are lost, delayed and duplicated as others are. Their sender
 * is the host's actor "cm": "c1/cm message 1 packet 1 try 1".
 *
 * Where a scheduler stands in the clock's place, nothing is lost: no message is sent again, and
 * TIME_WAIT has no end.
 */
#include "core/rnic/host/host.h"

/* The net carries its messages from now on. */
void host_cm_start(struct rnic_net *net);
void host_cm_init(struct host *host);
void host_cm_process_ended(struct host *host);

#endif
