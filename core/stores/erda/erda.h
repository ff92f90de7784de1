/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_ERDA_ERDA_H
#define TM_STORES_ERDA_ERDA_H
/*
 * Erda: a key-value store whose clients write objects into the server's log with
 * one-sided WRITEs, and where nothing is flushed. A reader tells a torn object by
 * its CRC and falls back to the previous version, whose offset is beside the newest one in the same
 * atomic 8-byte word of the hash entry.
 *
 * After "Write-Optimized and Consistent RDMA-based Non-Volatile Main Memory
 * Systems" (Erda), sections 3 and 4. docs/erda.md says what it does, what it
 * promises, and where it departs from the paper.
 */
#include "core/tidemark.h"

extern const struct tm_store erda_store;

#endif
