/* SPDX-License-Identifier: BSD-3-Clause */
/* See coverage.h. */
#include "core/pmem/coverage.h"

struct coverage coverage;

void tidemark_ran(const void *pc)
{
	const uintptr_t at = (uintptr_t)pc - coverage.begin;

	if (coverage.ran && at < coverage.bytes)
		coverage.ran[at] |= (uint8_t)(1 << coverage.phase);
}
