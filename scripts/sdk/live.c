/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store's object is linked with for real hardware (NAME.live.so, for `tidemark serve`): the compiler's hooks, which do
 * nothing there, but for those that stand for atomic operations; and the marks of rt.h, which take nothing away.
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

#define NOTHING(name, ...) \
	void name(__VA_ARGS__); \
	void name(__VA_ARGS__) \
	{ \
	}
NOTHING(__tsan_init, void)
NOTHING(__tsan_func_entry, void *at)
NOTHING(__tsan_func_exit, void)
NOTHING(__tsan_read_range, void *at, size_t bytes)
NOTHING(__tsan_write_range, void *at, size_t bytes)
NOTHING(__tsan_vptr_update, void **at, void *value)
NOTHING(__tsan_vptr_read, void **at)
#define ACCESS(bytes) \
	NOTHING(__tsan_read##bytes, void *at) \
	NOTHING(__tsan_write##bytes, void *at) \
	NOTHING(__tsan_unaligned_read##bytes, void *at) \
	NOTHING(__tsan_unaligned_write##bytes, void *at)
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

/* The strongest order serves for each. */
#define FETCH(bits, T, name, builtin) \
	T __tsan_atomic##bits##_##name(volatile T *at, T value, int order); \
	T __tsan_atomic##bits##_##name(volatile T *at, T value, int order) \
	{ \
		(void)order; \
		return builtin(at, value, __ATOMIC_SEQ_CST); \
	}
#define EXCHANGE(bits, T, name) \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile T *at, T *expected, T value, int success, int failure); \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile T *at, T *expected, T value, int success, int failure) \
	{ \
		(void)success, (void)failure; \
		return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	}
#define ATOMICS(bits, T) \
	T __tsan_atomic##bits##_load(const volatile T *at, int order); \
	T __tsan_atomic##bits##_load(const volatile T *at, int order) \
	{ \
		(void)order; \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
	} \
	void __tsan_atomic##bits##_store(volatile T *at, T value, int order); \
	void __tsan_atomic##bits##_store(volatile T *at, T value, int order) \
	{ \
		(void)order; \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
	} \
	T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T expected, T value, int success, int failure); \
	T __tsan_atomic##bits##_compare_exchange_val(volatile T *at, T expected, T value, int success, int failure) \
	{ \
		(void)success, (void)failure; \
		__atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return expected; \
	} \
	EXCHANGE(bits, T, strong) \
	EXCHANGE(bits, T, weak) \
	FETCH(bits, T, exchange, __atomic_exchange_n) \
	FETCH(bits, T, fetch_add, __atomic_fetch_add) \
	FETCH(bits, T, fetch_sub, __atomic_fetch_sub) \
	FETCH(bits, T, fetch_and, __atomic_fetch_and) \
	FETCH(bits, T, fetch_or, __atomic_fetch_or) \
	FETCH(bits, T, fetch_xor, __atomic_fetch_xor) \
	FETCH(bits, T, fetch_nand, __atomic_fetch_nand)
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
NOTHING(__tsan_atomic_signal_fence, int order)

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

NOTHING(sim_reads, const volatile void *at, size_t bytes)
NOTHING(sim_writes, volatile void *at, size_t bytes)

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
