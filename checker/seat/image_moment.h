/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_SEAT_IMAGE_MOMENT_H
#define TM_CHECKER_SEAT_IMAGE_MOMENT_H
/* What was known when the power failed: a checker is told of it in its environment. */
#include <stdbool.h>
#include <stdint.h>

struct image_moment {
	uint64_t acked; /* TIDEMARK_ACKED: acknowledgements that had been given */
	uint64_t ns;	/* TIDEMARK_CUT_NS: when it failed, by CLOCK_MONOTONIC; 0: not told */
	uint64_t event; /* that it came before; not told */
	/* PMREORDER_MARKERS: how many bytes of all markers (board.markers), those so far;
	 * TIDEMARK_MARKER: where the latest one begins. */
	uint64_t markers, marker;
};

/* In PMREORDER_MARKERS; with more it is not set, as a variable of a new program has no room. */
#define IMAGE_MARKERS_MAX 128000

static inline bool image_moment_equal(const struct image_moment *a, const struct image_moment *b)
{
	return a->acked == b->acked && a->ns == b->ns && a->markers == b->markers;
}

#endif
