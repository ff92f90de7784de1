/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_STORE_CALLS_H
#define TM_RNIC_HOST_STORE_CALLS_H
/* See store_calls.c, whose functions store code calls by other names. */
struct ibv_context;

/* The device of a simulated process that runs store code: its calls through the context's tables
 * are told of, too. */
void calls_watch(struct ibv_context *context);

#endif
