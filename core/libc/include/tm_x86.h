/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_X86_H
#define TM_LIBC_X86_H
/*
 * Intrinsics of x86 for store code (tidemark cc puts this folder before the compiler's headers): those
 * that write to memory, write it back, or order that past the compiler's hooks become calls of
 * functions that the persistence model sees (core/pmem/hooks.h). What has no such function does not
 * compile. Other intrinsics stay what they are; loads and stores of up to 16 bytes have hooks.
 *
 * Whichever header comes first, all of the compiler's are read first: with these macros in force
 * they would not be what they are.
 */
#include_next <x86intrin.h>

#ifdef __cplusplus
extern "C" {
#endif
void rt_yield(void);
void sim_clwb(const volatile void *addr);
void sim_clflush(const volatile void *addr);
void sim_sfence(void);
void sim_mfence(void);
void sim_stream(volatile void *to, const void *from, __SIZE_TYPE__ len);
void sim_reads(const volatile void *addr, __SIZE_TYPE__ len);
void sim_writes(volatile void *addr, __SIZE_TYPE__ len);
__UINT64_TYPE__ sim_tsc(void);
__UINT64_TYPE__ sim_random_word(void);
void tm_unseen(void)
	__attribute__((error("what this intrinsic does to memory is not seen: use plain stores, or _mm_stream_*")));
void tm_not_simulated(void) __attribute__((error("this instruction is not simulated")));
#ifdef __cplusplus
}
#endif

/* --- flushes and fences --- */

#define _mm_clwb(addr)		       sim_clwb(addr)
#define _mm_clflushopt(addr)	       sim_clwb(addr)
#define _mm_clflush(addr)	       sim_clflush(addr)
#define _mm_sfence()		       sim_sfence()
#define _mm_mfence()		       sim_mfence()
#define _mm_lfence()		       ((void)0) /* orders loads, which are in order */
#define _mm_pause()		       rt_yield()
#define __builtin_ia32_clwb(addr)      sim_clwb(addr)
#define __builtin_ia32_clflushopt(addr) sim_clwb(addr)
#define __builtin_ia32_clflush(addr)   sim_clflush(addr)
#define __builtin_ia32_sfence()	       sim_sfence()
#define __builtin_ia32_mfence()	       sim_mfence()
#define __builtin_ia32_lfence()	       ((void)0)
#define __builtin_ia32_pause()	       rt_yield()

/* --- non-temporal stores --- */

#define TM_STREAM(T, to, value)                         \
	__extension__({                                 \
		T tm_value = (value);                   \
		sim_stream((to), &tm_value, sizeof(T)); \
	})
#define _mm_stream_si32(to, value)	 TM_STREAM(int, to, value)
#define _mm_stream_si64(to, value)	 TM_STREAM(long long, to, value)
#define _mm_stream_pi(to, value)	 TM_STREAM(__m64, to, value)
#define _mm_stream_ps(to, value)	 TM_STREAM(__m128, to, value)
#define _mm_stream_pd(to, value)	 TM_STREAM(__m128d, to, value)
#define _mm_stream_si128(to, value)	 TM_STREAM(__m128i, to, value)
#define __builtin_ia32_movnti(to, value) TM_STREAM(int, to, value)
#define __builtin_ia32_movnti64(to, value) TM_STREAM(long long, to, value)
#define __builtin_ia32_movntq(to, value) TM_STREAM(unsigned long long, to, value)
#define __builtin_ia32_movntps(to, value) TM_STREAM(__m128, to, value)
#define __builtin_ia32_movntpd(to, value) TM_STREAM(__m128d, to, value)
#define __builtin_ia32_movntdq(to, value) TM_STREAM(__m128i, to, value)
#define __builtin_nontemporal_store(value, to) TM_STREAM(__typeof__(value), to, value)
#ifdef __AVX__
#define _mm256_stream_si256(to, value) TM_STREAM(__m256i, to, value)
#define _mm256_stream_pd(to, value)    TM_STREAM(__m256d, to, value)
#define _mm256_stream_ps(to, value)    TM_STREAM(__m256, to, value)
#endif
#ifdef __AVX512F__
#define _mm512_stream_si512(to, value) TM_STREAM(__m512i, to, value)
#define _mm512_stream_pd(to, value)    TM_STREAM(__m512d, to, value)
#define _mm512_stream_ps(to, value)    TM_STREAM(__m512, to, value)
#endif

/* --- loads and stores that are not seen by the compiler's hooks --- */

#define TM_LOAD(T, from)                                            \
	__extension__({                                             \
		T tm_loaded;                                        \
		const void *tm_from = (from);                       \
		sim_reads(tm_from, sizeof(T));                      \
		__builtin_memcpy(&tm_loaded, tm_from, sizeof(T));   \
		tm_loaded;                                          \
	})
