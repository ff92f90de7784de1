/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_RECALL_SHARED_H
#define TM_CHECKER_RECALL_SHARED_H
/*
 * Trees that outlive their explorer: what is known of recoveries under one workload holds under
 * another one, if all that a machine is made of which boots after a power failure is equal: the
 * store, its variant and knobs, the hardware, the keys and how long values are, how many clients
 * there were, and the pool that the load phase left. Schedules and operations are not part of it.
 * What an explorer finds does not depend on what it finds in such a tree.
 */
#include "checker/recall/recall.h"

/* A name of all that; 0: the explorer has to see the runs themselves. After worlds_open(). */
uint64_t shared_key(const struct setup *s, size_t bytes, enum tree_mutant mutant);
/* The trees with this name that were given back; false: there are none. */
bool shared_take(uint64_t key, struct recall *r);
/* Has a store with this name been filled, and had the room that it needs? It would have it again.
 */
bool shared_filled(uint64_t key, const struct setup *s);
void shared_note_filled(uint64_t key, const struct setup *s);
/* They are kept for the next one, or closed. All that is kept takes SHARED_BYTES at most; what was
 * not taken for the longest time goes. */
#define SHARED_BYTES (TREE_BYTES / 2)
void shared_give(uint64_t key, struct recall *r);

#endif
