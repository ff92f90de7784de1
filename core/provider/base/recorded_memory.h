/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PROVIDER_RECORDED_MEMORY_H
#define TM_PROVIDER_RECORDED_MEMORY_H
/* The program's memory (fault_safe.h), and the recorder, if there is one, is told what RNICs land
 * in persistent memory (core/record/record_hooks.h). */
#include "core/rnic/memory.h"

/* The one that this process's RNIC is to use. */
const struct rnic_memory *process_memory(void);
/* A region is about to go. */
void process_deregisters(const void *at, size_t len);
/* The program at `caller` is about to post a send: what it has done becomes known to others. */
void process_posts(const void *caller);

#endif
