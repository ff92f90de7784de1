/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store's object is linked with for real hardware (NAME.live.so, for `tidemark serve`), besides the compiler's hooks
 * (core/record/exact/stores.c), which do nothing there but for atomic operations, unless tidemark record is at work: the
 * marks of rt.h, which take nothing away, and intrinsics.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool rt_check(bool holds);
bool rt_waits(const void *caller);
bool rt_check(bool holds)
{
	return holds;
}

bool rt_waits(const void *caller)
{
	(void)caller;
	return true;
}

/* --- intrinsics (core/libc/include/tm_x86.h) --- */

void live_pmem_flush(const void *at, size_t bytes);
void live_pmem_drain(void);
void *live_pmem_memcpy_nodrain(void *to, const void *from, size_t bytes);

void sim_clwb(const volatile void *at);
void sim_clwb(const volatile void *at)
{
	live_pmem_flush((const void *)at, 1);
}

void sim_clflush(const volatile void *at);
void sim_clflush(const volatile void *at)
{
	live_pmem_flush((const void *)at, 1);
	live_pmem_drain();
}

void sim_sfence(void);
void sim_sfence(void)
{
	live_pmem_drain();
}

void sim_mfence(void);
void sim_mfence(void)
{
	live_pmem_drain();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void sim_stream(volatile void *to, const void *from, size_t bytes);
void sim_stream(volatile void *to, const void *from, size_t bytes)
{
	live_pmem_memcpy_nodrain((void *)to, from, bytes);
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
	static uint64_t state = 88172645463325252u; /* xorshift64: who wants secrets asks the system */
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
