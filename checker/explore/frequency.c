/* SPDX-License-Identifier: BSD-3-Clause */
/* See frequency.h. */
#include "checker/explore/frequency.h"
#include <assert.h>
#include <string.h>

void frequency_run(struct frequency *f, unsigned first, uint64_t run)
{
	for (unsigned w = 0; w < KNOWN_ROWS / 64; w++)
		for (uint64_t left = f->shown.bits[w]; left; left &= left - 1) {
			unsigned row = w * 64 + (unsigned)__builtin_ctzll(left) - first;
			assert(row < KNOWN_STORE_ROWS);
			if (!f->runs[row]++)
				f->run[row] = run < UINT32_MAX ? (uint32_t)run : UINT32_MAX;
		}
	f->accepted |= f->shown.accepted;
	memset(&f->shown, 0, sizeof(f->shown));
}
