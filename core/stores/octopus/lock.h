/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_OCTOPUS_LOCK_H
#define TM_STORES_OCTOPUS_LOCK_H
/*
 * The lock word of Octopus: bits 63..48 the node that writes, 47..32 its connection plus one;
 * bits 31..0 how many read.
 */
#include <stdbool.h>
#include <stdint.h>

/* The first two: false, and nothing done, if it is taken. */
bool octopus_lock_write(uint64_t *lock, uint32_t node, unsigned connection);
bool octopus_lock_read(uint64_t *lock);
void octopus_unlock_write(uint64_t *lock);
void octopus_unlock_read(uint64_t *lock);

#endif
