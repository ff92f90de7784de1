/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_SHARD_H
#define TM_CLI_SHARD_H
/*
 * Campaigns on several machines (docs/scale.md): a command that runs a campaign has the options
 * --shard and --results, and says between its parts what is to be done. `tidemark merge` calls the
 * same command, which then finds all results known.
 */
#include "checker/campaign/results.h"
#include "cli/options.h"

struct shard_request {
	const char *shard, *results;
};

/* The rows of a command whose struct has this member. */
#define ROWS_SHARD(type, member)                                                                  \
	{.help = "on several machines"},                                                          \
		{"shard", "I/N",                                                                  \
		 "do shard I, from 0 to N - 1, of N that come to all, and keep its results in a " \
		 "file, for tidemark merge",                                                      \
		 OPTION_FIELD(type, member.shard), .use = OPTION_WORKS},                          \
	{                                                                                         \
		"results", "FILE",                                                                \
			"that file (COMMAND-I-of-N.results); what it has already is not done "    \
			"again. Without --shard: all of the campaign",                            \
			OPTION_FIELD(type, member.results), .use = OPTION_WORKS                   \
	}

/* Is any of them given? */
bool shard_is_asked(const struct shard_request *q);
/* Is only a shard to be done, so that nothing is to be reported here? */
bool shard_is_part(const struct shard_request *q);
/* Before the campaign. *r: for driver_bounds.results; NULL: nothing is kept, or known. 0, or the
 * status after a message. */
int shard_begin(const struct shard_request *q, struct results **r);
/* After the campaign, with what driver_run() said. -1: report it; else the status, after a line or
 * a message. */
int shard_end(const struct shard_request *q, int error);
/* Results are merged, and not all are there: driver_run() said -EINTR. After shard_end(). */
bool shard_is_missing(void);
/* What is known comes from these, which stay the caller's: `tidemark merge`. */
void shard_merge(struct results *r);

#endif
