/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIBC_X86_H
#define TM_LIBC_X86_H
/*
 * Intrinsics of x86 for store code (tidemark cc puts this folder before the compiler's headers):
 * those that write to memory, write it back, or order that past the compiler's hooks become calls
 * of functions that the persistence model sees (core/pmem/hooks.h). What has no such function does
 * not compile. Other intrinsics stay what they are; loads and stores of up to 16 bytes have hooks.
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
#ifdef __cplusplus
}
#endif

/* --- flushes and fences --- */

#define _mm_clwb(addr)			sim_clwb(addr)
#define _mm_clflushopt(addr)		sim_clwb(addr)
#define _mm_clflush(addr)		sim_clflush(addr)
#define _mm_sfence()			sim_sfence()
#define _mm_mfence()			sim_mfence()
#define _mm_lfence()			((void)0) /* orders loads, which are in order */
#define _mm_pause()			rt_yield()
#define __builtin_ia32_clwb(addr)	sim_clwb(addr)
#define __builtin_ia32_clflushopt(addr) sim_clwb(addr)
#define __builtin_ia32_clflush(addr)	sim_clflush(addr)
#define __builtin_ia32_sfence()		sim_sfence()
#define __builtin_ia32_mfence()		sim_mfence()
#define __builtin_ia32_lfence()		((void)0)
#define __builtin_ia32_pause()		rt_yield()

/* --- non-temporal stores --- */

#define TM_STREAM(T, to, value)                         \
	__extension__({                                 \
		T tm_value = (value);                   \
		sim_stream((to), &tm_value, sizeof(T)); \
	})
#define _mm_stream_si32(to, value)	       TM_STREAM(int, to, value)
#define _mm_stream_si64(to, value)	       TM_STREAM(long long, to, value)
#define _mm_stream_pi(to, value)	       TM_STREAM(__m64, to, value)
#define _mm_stream_ps(to, value)	       TM_STREAM(__m128, to, value)
#define _mm_stream_pd(to, value)	       TM_STREAM(__m128d, to, value)
#define _mm_stream_si128(to, value)	       TM_STREAM(__m128i, to, value)
#define __builtin_ia32_movnti(to, value)       TM_STREAM(int, to, value)
#define __builtin_ia32_movnti64(to, value)     TM_STREAM(long long, to, value)
#define __builtin_ia32_movntq(to, value)       TM_STREAM(unsigned long long, to, value)
#define __builtin_ia32_movntps(to, value)      TM_STREAM(__m128, to, value)
#define __builtin_ia32_movntpd(to, value)      TM_STREAM(__m128d, to, value)
#define __builtin_ia32_movntdq(to, value)      TM_STREAM(__m128i, to, value)
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

/* --- loads and stores that have no hook --- */

#define _mm_stream_load_si128(from) \
	(*(const __m128i *)(from)) /* of memory: a load like any other */
#define _mm_lddqu_si128(from) _mm_loadu_si128(from)

/* clang reports no access of more than 16 bytes; gcc does. `real` is the intrinsic itself. */
#if defined(__clang__) && defined(__AVX__)
#define TM_WIDE_LOAD(bytes, real, from)                  \
	__extension__({                                  \
		__typeof__((from) + 0) tm_from = (from); \
		sim_reads(tm_from, bytes);               \
		real(tm_from);                           \
	})
#define TM_WIDE_STORE(bytes, real, to, value)        \
	__extension__({                              \
		__typeof__((to) + 0) tm_to = (to);   \
		__typeof__(value) tm_wide = (value); \
		sim_writes(tm_to, bytes);            \
		real(tm_to, tm_wide);                \
	})
#define _mm256_load_si256(from)	       TM_WIDE_LOAD(32, _mm256_load_si256, from)
#define _mm256_store_si256(to, value)  TM_WIDE_STORE(32, _mm256_store_si256, to, value)
#define _mm256_loadu_si256(from)       TM_WIDE_LOAD(32, _mm256_loadu_si256, from)
#define _mm256_storeu_si256(to, value) TM_WIDE_STORE(32, _mm256_storeu_si256, to, value)
#define _mm256_load_pd(from)	       TM_WIDE_LOAD(32, _mm256_load_pd, from)
#define _mm256_store_pd(to, value)     TM_WIDE_STORE(32, _mm256_store_pd, to, value)
#define _mm256_loadu_pd(from)	       TM_WIDE_LOAD(32, _mm256_loadu_pd, from)
#define _mm256_storeu_pd(to, value)    TM_WIDE_STORE(32, _mm256_storeu_pd, to, value)
#define _mm256_load_ps(from)	       TM_WIDE_LOAD(32, _mm256_load_ps, from)
#define _mm256_store_ps(to, value)     TM_WIDE_STORE(32, _mm256_store_ps, to, value)
#define _mm256_loadu_ps(from)	       TM_WIDE_LOAD(32, _mm256_loadu_ps, from)
#define _mm256_storeu_ps(to, value)    TM_WIDE_STORE(32, _mm256_storeu_ps, to, value)
#ifdef __AVX512F__
#define _mm512_load_si512(from)	       TM_WIDE_LOAD(64, _mm512_load_si512, from)
#define _mm512_store_si512(to, value)  TM_WIDE_STORE(64, _mm512_store_si512, to, value)
#define _mm512_loadu_si512(from)       TM_WIDE_LOAD(64, _mm512_loadu_si512, from)
#define _mm512_storeu_si512(to, value) TM_WIDE_STORE(64, _mm512_storeu_si512, to, value)
#define _mm512_load_pd(from)	       TM_WIDE_LOAD(64, _mm512_load_pd, from)
#define _mm512_store_pd(to, value)     TM_WIDE_STORE(64, _mm512_store_pd, to, value)
#define _mm512_loadu_pd(from)	       TM_WIDE_LOAD(64, _mm512_loadu_pd, from)
#define _mm512_storeu_pd(to, value)    TM_WIDE_STORE(64, _mm512_storeu_pd, to, value)
#define _mm512_load_ps(from)	       TM_WIDE_LOAD(64, _mm512_load_ps, from)
#define _mm512_store_ps(to, value)     TM_WIDE_STORE(64, _mm512_store_ps, to, value)
#define _mm512_loadu_ps(from)	       TM_WIDE_LOAD(64, _mm512_loadu_ps, from)
#define _mm512_storeu_ps(to, value)    TM_WIDE_STORE(64, _mm512_storeu_ps, to, value)
#endif
#endif

/* --- refused: no compiler reports what these do to memory, or they are not simulated --- */

#pragma GCC poison _mm_maskmoveu_si128 _mm_maskmove_si64 _m_maskmovq _mm_stream_sd _mm_stream_ss
#pragma GCC poison _directstoreu_u32 _directstoreu_u64 _movdir64b _mm256_stream_load_si256
#pragma GCC poison _mm512_stream_load_si512 _mm256_lddqu_si256 _mm_maskstore_epi32
#pragma GCC poison _mm_maskload_epi32 _mm256_maskstore_epi32 _mm256_maskload_epi32
#pragma GCC poison _mm_maskstore_epi64 _mm_maskload_epi64 _mm256_maskstore_epi64
#pragma GCC poison _mm256_maskload_epi64 _mm_maskstore_ps _mm_maskload_ps _mm256_maskstore_ps
#pragma GCC poison _mm256_maskload_ps _mm_maskstore_pd _mm_maskload_pd _mm256_maskstore_pd
#pragma GCC poison _mm256_maskload_pd _mm_i32gather_epi32 _mm_mask_i32gather_epi32
#pragma GCC poison _mm_i32scatter_epi32 _mm_mask_i32scatter_epi32 _mm_i32gather_epi64
#pragma GCC poison _mm_mask_i32gather_epi64 _mm_i32scatter_epi64 _mm_mask_i32scatter_epi64
#pragma GCC poison _mm_i32gather_ps _mm_mask_i32gather_ps _mm_i32scatter_ps _mm_mask_i32scatter_ps
#pragma GCC poison _mm_i32gather_pd _mm_mask_i32gather_pd _mm_i32scatter_pd _mm_mask_i32scatter_pd
#pragma GCC poison _mm_i64gather_epi32 _mm_mask_i64gather_epi32 _mm_i64scatter_epi32
#pragma GCC poison _mm_mask_i64scatter_epi32 _mm_i64gather_epi64 _mm_mask_i64gather_epi64
#pragma GCC poison _mm_i64scatter_epi64 _mm_mask_i64scatter_epi64 _mm_i64gather_ps
#pragma GCC poison _mm_mask_i64gather_ps _mm_i64scatter_ps _mm_mask_i64scatter_ps _mm_i64gather_pd
#pragma GCC poison _mm_mask_i64gather_pd _mm_i64scatter_pd _mm_mask_i64scatter_pd
#pragma GCC poison _mm_mask_storeu_epi8 _mm_mask_loadu_epi8 _mm_maskz_loadu_epi8
#pragma GCC poison _mm_mask_compressstoreu_epi8 _mm_mask_expandloadu_epi8
#pragma GCC poison _mm_maskz_expandloadu_epi8 _mm_mask_storeu_epi16 _mm_mask_loadu_epi16
#pragma GCC poison _mm_maskz_loadu_epi16 _mm_mask_compressstoreu_epi16 _mm_mask_expandloadu_epi16
#pragma GCC poison _mm_maskz_expandloadu_epi16 _mm_mask_storeu_epi32 _mm_mask_loadu_epi32
#pragma GCC poison _mm_maskz_loadu_epi32 _mm_mask_compressstoreu_epi32 _mm_mask_expandloadu_epi32
#pragma GCC poison _mm_maskz_expandloadu_epi32 _mm_mask_storeu_epi64 _mm_mask_loadu_epi64
#pragma GCC poison _mm_maskz_loadu_epi64 _mm_mask_compressstoreu_epi64 _mm_mask_expandloadu_epi64
#pragma GCC poison _mm_maskz_expandloadu_epi64 _mm_mask_storeu_ps _mm_mask_loadu_ps
#pragma GCC poison _mm_maskz_loadu_ps _mm_mask_compressstoreu_ps _mm_mask_expandloadu_ps
#pragma GCC poison _mm_maskz_expandloadu_ps _mm_mask_storeu_pd _mm_mask_loadu_pd _mm_maskz_loadu_pd
#pragma GCC poison _mm_mask_compressstoreu_pd _mm_mask_expandloadu_pd _mm_maskz_expandloadu_pd
#pragma GCC poison _mm_mask_store_epi32 _mm_mask_load_epi32 _mm_maskz_load_epi32
#pragma GCC poison _mm_mask_store_epi64 _mm_mask_load_epi64 _mm_maskz_load_epi64 _mm_mask_store_ps
#pragma GCC poison _mm_mask_load_ps _mm_maskz_load_ps _mm_mask_store_pd _mm_mask_load_pd
#pragma GCC poison _mm_maskz_load_pd _mm256_i32gather_epi32 _mm256_mask_i32gather_epi32
#pragma GCC poison _mm256_i32scatter_epi32 _mm256_mask_i32scatter_epi32 _mm256_i32gather_epi64
#pragma GCC poison _mm256_mask_i32gather_epi64 _mm256_i32scatter_epi64 _mm256_mask_i32scatter_epi64
#pragma GCC poison _mm256_i32gather_ps _mm256_mask_i32gather_ps _mm256_i32scatter_ps
#pragma GCC poison _mm256_mask_i32scatter_ps _mm256_i32gather_pd _mm256_mask_i32gather_pd
#pragma GCC poison _mm256_i32scatter_pd _mm256_mask_i32scatter_pd _mm256_i64gather_epi32
#pragma GCC poison _mm256_mask_i64gather_epi32 _mm256_i64scatter_epi32 _mm256_mask_i64scatter_epi32
#pragma GCC poison _mm256_i64gather_epi64 _mm256_mask_i64gather_epi64 _mm256_i64scatter_epi64
#pragma GCC poison _mm256_mask_i64scatter_epi64 _mm256_i64gather_ps _mm256_mask_i64gather_ps
#pragma GCC poison _mm256_i64scatter_ps _mm256_mask_i64scatter_ps _mm256_i64gather_pd
#pragma GCC poison _mm256_mask_i64gather_pd _mm256_i64scatter_pd _mm256_mask_i64scatter_pd
#pragma GCC poison _mm256_mask_storeu_epi8 _mm256_mask_loadu_epi8 _mm256_maskz_loadu_epi8
#pragma GCC poison _mm256_mask_compressstoreu_epi8 _mm256_mask_expandloadu_epi8
#pragma GCC poison _mm256_maskz_expandloadu_epi8 _mm256_mask_storeu_epi16 _mm256_mask_loadu_epi16
#pragma GCC poison _mm256_maskz_loadu_epi16 _mm256_mask_compressstoreu_epi16
#pragma GCC poison _mm256_mask_expandloadu_epi16 _mm256_maskz_expandloadu_epi16
#pragma GCC poison _mm256_mask_storeu_epi32 _mm256_mask_loadu_epi32 _mm256_maskz_loadu_epi32
#pragma GCC poison _mm256_mask_compressstoreu_epi32 _mm256_mask_expandloadu_epi32
#pragma GCC poison _mm256_maskz_expandloadu_epi32 _mm256_mask_storeu_epi64 _mm256_mask_loadu_epi64
#pragma GCC poison _mm256_maskz_loadu_epi64 _mm256_mask_compressstoreu_epi64
#pragma GCC poison _mm256_mask_expandloadu_epi64 _mm256_maskz_expandloadu_epi64
#pragma GCC poison _mm256_mask_storeu_ps _mm256_mask_loadu_ps _mm256_maskz_loadu_ps
#pragma GCC poison _mm256_mask_compressstoreu_ps _mm256_mask_expandloadu_ps
#pragma GCC poison _mm256_maskz_expandloadu_ps _mm256_mask_storeu_pd _mm256_mask_loadu_pd
#pragma GCC poison _mm256_maskz_loadu_pd _mm256_mask_compressstoreu_pd _mm256_mask_expandloadu_pd
#pragma GCC poison _mm256_maskz_expandloadu_pd _mm256_mask_store_epi32 _mm256_mask_load_epi32
#pragma GCC poison _mm256_maskz_load_epi32 _mm256_mask_store_epi64 _mm256_mask_load_epi64
#pragma GCC poison _mm256_maskz_load_epi64 _mm256_mask_store_ps _mm256_mask_load_ps
#pragma GCC poison _mm256_maskz_load_ps _mm256_mask_store_pd _mm256_mask_load_pd
#pragma GCC poison _mm256_maskz_load_pd _mm512_i32gather_epi32 _mm512_mask_i32gather_epi32
#pragma GCC poison _mm512_i32scatter_epi32 _mm512_mask_i32scatter_epi32 _mm512_i32gather_epi64
#pragma GCC poison _mm512_mask_i32gather_epi64 _mm512_i32scatter_epi64 _mm512_mask_i32scatter_epi64
#pragma GCC poison _mm512_i32gather_ps _mm512_mask_i32gather_ps _mm512_i32scatter_ps
#pragma GCC poison _mm512_mask_i32scatter_ps _mm512_i32gather_pd _mm512_mask_i32gather_pd
#pragma GCC poison _mm512_i32scatter_pd _mm512_mask_i32scatter_pd _mm512_i64gather_epi32
#pragma GCC poison _mm512_mask_i64gather_epi32 _mm512_i64scatter_epi32 _mm512_mask_i64scatter_epi32
#pragma GCC poison _mm512_i64gather_epi64 _mm512_mask_i64gather_epi64 _mm512_i64scatter_epi64
#pragma GCC poison _mm512_mask_i64scatter_epi64 _mm512_i64gather_ps _mm512_mask_i64gather_ps
#pragma GCC poison _mm512_i64scatter_ps _mm512_mask_i64scatter_ps _mm512_i64gather_pd
#pragma GCC poison _mm512_mask_i64gather_pd _mm512_i64scatter_pd _mm512_mask_i64scatter_pd
#pragma GCC poison _mm512_mask_storeu_epi8 _mm512_mask_loadu_epi8 _mm512_maskz_loadu_epi8
#pragma GCC poison _mm512_mask_compressstoreu_epi8 _mm512_mask_expandloadu_epi8
#pragma GCC poison _mm512_maskz_expandloadu_epi8 _mm512_mask_storeu_epi16 _mm512_mask_loadu_epi16
#pragma GCC poison _mm512_maskz_loadu_epi16 _mm512_mask_compressstoreu_epi16
#pragma GCC poison _mm512_mask_expandloadu_epi16 _mm512_maskz_expandloadu_epi16
#pragma GCC poison _mm512_mask_storeu_epi32 _mm512_mask_loadu_epi32 _mm512_maskz_loadu_epi32
#pragma GCC poison _mm512_mask_compressstoreu_epi32 _mm512_mask_expandloadu_epi32
#pragma GCC poison _mm512_maskz_expandloadu_epi32 _mm512_mask_storeu_epi64 _mm512_mask_loadu_epi64
#pragma GCC poison _mm512_maskz_loadu_epi64 _mm512_mask_compressstoreu_epi64
#pragma GCC poison _mm512_mask_expandloadu_epi64 _mm512_maskz_expandloadu_epi64
#pragma GCC poison _mm512_mask_storeu_ps _mm512_mask_loadu_ps _mm512_maskz_loadu_ps
#pragma GCC poison _mm512_mask_compressstoreu_ps _mm512_mask_expandloadu_ps
#pragma GCC poison _mm512_maskz_expandloadu_ps _mm512_mask_storeu_pd _mm512_mask_loadu_pd
#pragma GCC poison _mm512_maskz_loadu_pd _mm512_mask_compressstoreu_pd _mm512_mask_expandloadu_pd
#pragma GCC poison _mm512_maskz_expandloadu_pd _mm512_mask_store_epi32 _mm512_mask_load_epi32
#pragma GCC poison _mm512_maskz_load_epi32 _mm512_mask_store_epi64 _mm512_mask_load_epi64
#pragma GCC poison _mm512_maskz_load_epi64 _mm512_mask_store_ps _mm512_mask_load_ps
#pragma GCC poison _mm512_maskz_load_ps _mm512_mask_store_pd _mm512_mask_load_pd
#pragma GCC poison _mm512_maskz_load_pd _xbegin _xend _xabort _xtest

/* --- time and chance --- */

#undef __rdtsc
#define __rdtsc() sim_tsc()
#undef _rdtsc
#define _rdtsc() sim_tsc()
#undef __builtin_ia32_rdtsc
#define __builtin_ia32_rdtsc() sim_tsc()
#undef __rdtscp
#define __rdtscp(cpu) (*(cpu) = 0, sim_tsc())
#undef __builtin_ia32_rdtscp
#define __builtin_ia32_rdtscp(cpu) (*(cpu) = 0, sim_tsc())
#undef _rdrand16_step
#define _rdrand16_step(to) (*(to) = (unsigned short)sim_random_word(), 1)
#undef _rdrand32_step
#define _rdrand32_step(to) (*(to) = (unsigned)sim_random_word(), 1)
#undef _rdrand64_step
#define _rdrand64_step(to) (*(to) = (unsigned long long)sim_random_word(), 1)
#undef _rdseed16_step
#define _rdseed16_step(to) (*(to) = (unsigned short)sim_random_word(), 1)
#undef _rdseed32_step
#define _rdseed32_step(to) (*(to) = (unsigned)sim_random_word(), 1)
#undef _rdseed64_step
#define _rdseed64_step(to) (*(to) = (unsigned long long)sim_random_word(), 1)

#endif
