/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_EVENTS_H
#define TM_RNIC_HOST_EVENTS_H
/* Completion channels and asynchronous events: what the RNIC reports (events.c). */
#include "core/rnic/host/host.h"

void events_completion(struct rnic_cq *cq);
void events_async(struct rnic_hca *hca, enum ibv_event_type type, void *element);
/* A descriptor for the process's asynchronous events: -errno. */
int events_open_async(struct process *process);

#endif
