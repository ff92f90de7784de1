/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LIVE_TORN_H
#define TM_CHECKER_LIVE_TORN_H
/*
 * Live values in a pool, wherever they lie: how many are whole, and how many are torn,
 * that is, begin as a recorded PUT's value and go on as something else. A torn value is no
 * fault: a store has to cope with it. Once a log has been cleaned, a piece of an old
 * value may remain, and counts, too.
 */
#include "checker/live/recording.h"

struct torn_value {
	const struct recording_op *put;
	uint64_t off;	/* of its first byte in the pool */
	uint32_t bytes; /* so many of them, from the first on, are there */
	bool old;	/* other bytes follow them; else nothing was ever written there */
};

struct torn {
	unsigned whole, torn;
	struct torn_value first;
};

/* `put`: PUTs, sorted by id. */
void torn_scan(const uint8_t *pool, size_t len, const struct recording_op *const *put, size_t puts,
	       struct torn *out);

#endif
