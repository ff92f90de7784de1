/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See long_copy.h.
 *
 * A store to a line that another core used last fetches the line first. Between cores that share a
 * cache this costs little. Between cores that do not, it costs more than writing past the caches to
 * memory (non-temporal stores), and the reader gains as much again. A program does not know on
 * which cores it runs, and may be moved. So the time of the plain copy is measured, and the
 * non-temporal copy is used while the plain one takes more than twice as long. (At less than that
 * the reader, which has to fetch from memory, loses more than the writer gains.) The other method
 * is tried now and then.
 */
#include "core/provider/base/long_copy.h"

#include <stdbool.h>
#include <string.h>
#include "core/hardware/hardware.h"

#if defined(__x86_64__)
#include <emmintrin.h>

#define TRY_EVERY 64

/* Cycles that 4 KiB take, each way, a running mean: plain, past the caches. 0: not known yet. */
static uint64_t cost[2];
static unsigned copies;

static void copy_past_caches(uint8_t *to, const uint8_t *from, size_t len)
{
	for (; len >= LINE; len -= LINE, to += LINE, from += LINE) {
		__m128i a = _mm_loadu_si128((const __m128i *)from),
			b = _mm_loadu_si128((const __m128i *)(from + 16)),
			c = _mm_loadu_si128((const __m128i *)(from + 32)),
			d = _mm_loadu_si128((const __m128i *)(from + 48));

		_mm_stream_si128((__m128i *)to, a);
		_mm_stream_si128((__m128i *)(to + 16), b);
		_mm_stream_si128((__m128i *)(to + 32), c);
		_mm_stream_si128((__m128i *)(to + 48), d);
	}
	memcpy(to, from, len);
	_mm_sfence(); /* before the word that announces them */
}

/* Ignore a copy during which the thread lost its CPU. */
static void note_cost(uint64_t *mean, uint64_t cycles)
{
	if (!*mean)
		*mean = cycles;
	else
		*mean = *mean - *mean / 8 + (cycles < 2 * *mean ? cycles : 2 * *mean) / 8;
}

void long_copy_out(uint8_t *to, const uint8_t *from, size_t len)
{
	bool past = cost[0] > 2 * cost[1];
	uint64_t start = __builtin_ia32_rdtsc();

	past ^= copies++ % TRY_EVERY == 0;
	past &= (uintptr_t)to % LINE == 0;
	if (past)
		copy_past_caches(to, from, len);
	else
		memcpy(to, from, len);
	note_cost(&cost[past], (__builtin_ia32_rdtsc() - start) * 4096 / len);
}

/* The processor's own loop has more fetches under way at a time than memcpy(). */
void long_copy_in(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t words = (uintptr_t)to % 8 ? 0 : len / 8;

	len -= words * 8;
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	memcpy(to, from, len);
}

#else

void long_copy_out(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
}

void long_copy_in(uint8_t *to, const uint8_t *from, size_t len)
{
	memcpy(to, from, len);
}

#endif
