/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store's object is linked with for real hardware (NAME.live.so, for `tidemark serve`), besides the compiler's hooks
 * (core/record/exact/stores.c), which do nothing there but for atomic operations, unless tidemark record is at work: the
 * marks of rt.h, which take nothing away, and intrinsics. With -DPLAIN: what a program is linked with (tidemark cc -o program)
 * that is no store, whose intrinsics are instructions, and are told to tidemark record.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- where the program goes on, flushes and fences; `pc` is in the function that asks for them --- */

#define PC __builtin_return_address(0)

#ifdef PLAIN

#include "core/record/record_hooks.h"

/* An instruction that is told of. */
#define TEXT(...)  TEXT_(__VA_ARGS__)
#define TEXT_(...) #__VA_ARGS__
#define TOLD	   ".byte " TEXT(RECORD_TOLD_MARK) "\n\t"

void rt_yield(void);
void rt_yield(void)
{
	__builtin_ia32_pause();
}

static inline void flush(const volatile void *at, const void *pc)
{
	if (tidemark_record_flushes)
		tidemark_record_flushes((const void *)at, 1, pc);
	__asm__ volatile(TOLD "clflush %0" : "+m"(*(volatile char *)at)); /* which each processor has */
}

static inline void drain(const void *pc)
{
	if (tidemark_record_fences)
		tidemark_record_fences(pc);
	__asm__ volatile(TOLD "mfence" : : : "memory");
}

static void *copy(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(uint32_t); i++)
		__asm__ volatile(TOLD "movnti %1, %0" : "=m"(((uint32_t *)to)[i]) : "r"(((const uint32_t *)from)[i]));
	return to;
}

static inline void stream(void *to, const void *from, size_t bytes, const void *pc)
{
	if (tidemark_record_streams)
		tidemark_record_streams(to, from, bytes, copy, pc);
	else
		copy(to, from, bytes);
}

#else

bool rt_check(bool holds);
bool rt_waits(const void *caller);
uint64_t rt_duration(uint64_t ns);
bool rt_check(bool holds)
{
	return holds;
}

bool rt_waits(const void *caller)
{
	(void)caller;
	return true;
}

uint64_t rt_duration(uint64_t ns)
{
	return ns;
}

void live_pmem_flush(const void *at, size_t bytes);
void live_pmem_drain(void);
void *live_pmem_memcpy_nodrain(void *to, const void *from, size_t bytes);

/* The last call of a function is a jump: the recorder sees where that was called. */
static inline void flush(const volatile void *at, const void *pc)
{
	(void)pc;
	live_pmem_flush((const void *)at, 1);
}

static inline void drain(const void *pc)
{
	(void)pc;
	live_pmem_drain();
}

static inline void stream(void *to, const void *from, size_t bytes, const void *pc)
{
	(void)pc;
	live_pmem_memcpy_nodrain(to, from, bytes);
}

#endif

/* Coverage is of simulated stores. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
}

/* --- intrinsics (core/libc/include/tm_x86.h) --- */

void sim_clwb(const volatile void *at);
void sim_clwb(const volatile void *at)
{
	flush(at, PC);
}

void sim_clflush(const volatile void *at);
void sim_clflush(const volatile void *at)
{
	flush(at, PC);
	drain(PC);
}

void sim_sfence(void);
void sim_sfence(void)
{
	drain(PC);
}

void sim_mfence(void);
void sim_mfence(void)
{
	drain(PC);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sim_stream(volatile void *to, const void *from, size_t bytes);
void sim_stream(volatile void *to, const void *from, size_t bytes)
{
	stream((void *)to, from, bytes, PC);
}

void sim_reads(const volatile void *at, size_t bytes);
void sim_reads(const volatile void *at, size_t bytes)
{
	(void)at, (void)bytes;
}

void __tsan_write_range(void *at, size_t bytes);
void sim_writes(volatile void *at, size_t bytes);
void sim_writes(volatile void *at, size_t bytes)
{
	__tsan_write_range((void *)at, bytes);
}

uint64_t sim_tsc(void);
uint64_t sim_tsc(void)
{
	return __builtin_ia32_rdtsc();
}

uint64_t sim_random_word(void);
uint64_t sim_random_word(void)
{
	static uint64_t state = 88172645463325252u; /* xorshift64: not for secrets */
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
