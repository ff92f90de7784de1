/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FAULT_SAFE_H
#define TM_PROVIDER_BASE_FAULT_SAFE_H
/*
 * Fault-safe memory access: how the NIC of the live world accesses the program's memory (struct
 * rnic_memory).
 *
 * Registered memory may have been unmapped or protected since, or its file truncated. An access to
 * such memory faults. The fault is caught, and the access fails instead of the program. See
 * fault_safe.c.
 */

#include "core/rnic/memory.h"

extern const struct rnic_memory fault_safe_memory;

/* Catch faults from now on. To be called again whenever the program may have replaced the
 * handlers. */
void fault_safe_guard(void);

#endif
