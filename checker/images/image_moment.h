/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_IMAGE_MOMENT_H
#define TM_CHECKER_IMAGES_IMAGE_MOMENT_H
/* What was known when the power failed: a checker is told of it in its environment. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct image_moment {
	uint64_t acked;	  /* TIDEMARK_ACKED: acknowledgements that had been given */
	uint64_t ns;	  /* TIDEMARK_CUT_NS: when it failed, by CLOCK_MONOTONIC; 0: not told */
	uint64_t event;	  /* that it came before; not told */
	char marker[256]; /* TIDEMARK_MARKER: the latest one */
};

static inline bool image_moment_equal(const struct image_moment *a, const struct image_moment *b)
{
	return a->acked == b->acked && a->ns == b->ns && !strcmp(a->marker, b->marker);
}

#endif
