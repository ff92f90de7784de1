/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_FUZZ_SHARD_H
#define TM_CLI_FUZZ_SHARD_H
/*
 * Fuzzing on several machines. A shard draws from a seed of its own, and keeps what reaches new
 * states and what breaks something. Who merges runs all of these inputs once, the shortest first:
 * those that still reach something new are the corpus, and what breaks is shrunk and told by cause.
 */
#include "checker/explore/results.h"
#include "checker/hunt/fuzz_session.h"

/* Of the shard's changes. */
uint64_t fuzz_shard_seed(const struct results *r, uint64_t seed);
/* Each 0, or the status after a message. */

/* Before any store. */
int fuzz_shard_begin(struct results *r);
/* The inputs that are known of a store, number `store`: they are seeds. */
int fuzz_shard_load(struct results *r, unsigned store, struct fuzz *f);
/* A round, whose inputs are kept: of the corpus from number *kept on, and what breaks. */
int fuzz_shard_round(struct results *r, unsigned store, struct fuzz_turn *t, unsigned *kept);

#endif
