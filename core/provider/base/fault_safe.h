/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_BASE_FAULT_SAFE_H
#define TM_PROVIDER_BASE_FAULT_SAFE_H
/*
 * The program's memory, as the NIC of the live world touches it (struct rnic_memory).
 *
 * What was registered may have been unmapped, protected, or cut off a file since. An access to such
 * memory faults; the fault is caught, and the access fails instead of the program. See copy.c.
 */
#include "core/rnic/objects/device.h"

extern const struct rnic_memory fault_safe_memory;

/* Have faults caught from now on; again whenever somebody may have taken the handlers away. */
void fault_safe_guard(void);

#endif
