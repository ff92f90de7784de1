/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU's stores to PM, each in its place. A program that was compiled by gcc with
 * -fsanitize=thread calls a function before each load and store; this library has these functions,
 * and stands in the place of libtsan.so.2 (tidemark record), so that the program need not be linked
 * anew. The same functions are in a store that tidemark cc makes for real hardware
 * (scripts/sdk/live.c).
 *
 * A hook comes before its store: what was stored is read at the thread's next hook, or before its
 * next event. Loads are of no interest but for that. Atomic accesses are not made by the program at
 * all but by their hooks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/record/record_hooks.h"

/* A function that compilers declare by themselves. */
#define HOOK(T, name, parameters)                                 \
	__attribute__((visibility("default"))) T name parameters; \
	__attribute__((visibility("default"))) T name parameters
#define HERE __builtin_return_address(0)

static _Thread_local struct {
	uintptr_t at;
	size_t len;  /* 0: nothing is pending */
	bool loaded; /* a load came after it */
	const void *pc;
} pending;

static void tell_pending(void)
{
	size_t len = pending.len;
	pending.len = 0;
	if (len)
		tidemark_record_stored((const void *)pending.at, len, pending.pc);
}

static inline void settle(void)
{
	if (__builtin_expect(pending.len != 0, 0))
		tell_pending();
}

/* Where a structure is copied, its store has its hook first, then the load: the store is still to
 * come. A thread that goes on loading, as it waits for another one, has made it. */
static inline void load(void)
{
	if (__builtin_expect(pending.len != 0, 0) && pending.loaded)
		tell_pending();
	pending.loaded = true;
}

/* A recording is on, and the store is to PM, or near it. */
static void keep(uintptr_t at, size_t len, const void *pc)
{
	static bool known;
	tidemark_record_stores((const void *)at, len, pc);
	if (!known)
		tidemark_record_settles(tell_pending);
	known = true;
	pending.at = at;
	pending.len = len;
	pending.loaded = false;
	pending.pc = pc;
}

static inline void store(const volatile void *at, size_t len, const void *pc)
{
	settle();
	if (!&tidemark_record_window || /* no recording is on */
	    (uintptr_t)at - tidemark_record_window.first >= tidemark_record_window.len)
		return;
	keep((uintptr_t)at, len, pc);
}

/* --- plain accesses --- */

#define LOADS(name)                  \
	HOOK(void, name, (void *at)) \
	{                            \
		(void)at;            \
		load();              \
	}
#define STORES(name, len)             \
	HOOK(void, name, (void *at))  \
	{                             \
		store(at, len, HERE); \
	}
#define PLAIN(len)                               \
	LOADS(__tsan_read##len)                  \
	STORES(__tsan_write##len, len)           \
	LOADS(__tsan_unaligned_read##len)        \
	STORES(__tsan_unaligned_write##len, len) \
	LOADS(__tsan_volatile_read##len)         \
	STORES(__tsan_volatile_write##len, len)

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

HOOK(void, __tsan_read_range, (void *at, size_t len))
{
	(void)at;
	(void)len;
	load();
}

HOOK(void, __tsan_write_range, (void *at, size_t len))
{
	store(at, len, HERE);
}

/* What clang calls since version 15 where a structure is copied or set. */
HOOK(void *, __tsan_memcpy, (void *to, const void *from, size_t len))
{
	store(to, len, HERE);
	return __builtin_memcpy(to, from, len);
}

HOOK(void *, __tsan_memmove, (void *to, const void *from, size_t len))
{
	store(to, len, HERE);
	return __builtin_memmove(to, from, len);
}

HOOK(void *, __tsan_memset, (void *to, int byte, size_t len))
{
	store(to, len, HERE);
	return __builtin_memset(to, byte, len);
}

HOOK(void, __tsan_vptr_update, (void *at, void *value))
{
	(void)value;
	store(at, sizeof(void *), HERE);
}

HOOK(void, __tsan_vptr_read, (void *at))
{
	(void)at;
	settle();
}

HOOK(void, __tsan_init, (void))
{
}

HOOK(void, __tsan_func_entry, (void *pc))
{
	(void)pc;
	settle();
}

HOOK(void, __tsan_func_exit, (void))
{
	settle();
}

/* --- atomics: made here, all of them with the strongest order --- */

HOOK(void, __tsan_atomic_thread_fence, (int order))
{
	(void)order;
	settle();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

HOOK(void, __tsan_atomic_signal_fence, (int order))
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define CHANGES(bits, T, name, builtin)                                              \
	HOOK(T, __tsan_atomic##bits##_##name, (volatile T * at, T value, int order)) \
	{                                                                            \
		(void)order;                                                         \
		store(at, sizeof(T), HERE);                                          \
		T was = builtin(at, value, __ATOMIC_SEQ_CST);                        \
		settle();                                                            \
		return was;                                                          \
	}
#define EXCHANGES(bits, T, name)                                                                 \
	HOOK(int, __tsan_atomic##bits##_compare_exchange_##name,                                 \
	     (volatile T * at, T * expected, T value, int order, int fails))                     \
	{                                                                                        \
		(void)order;                                                                     \
		(void)fails;                                                                     \
		store(at, sizeof(T), HERE);                                                      \
		int done = __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST, \
						       __ATOMIC_SEQ_CST);                        \
		settle();                                                                        \
		return done;                                                                     \
	}
#define ATOMICS(bits, T)                                                                           \
	HOOK(T, __tsan_atomic##bits##_load, (const volatile T *at, int order))                     \
	{                                                                                          \
		(void)order;                                                                       \
		settle();                                                                          \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                      \
	}                                                                                          \
	HOOK(void, __tsan_atomic##bits##_store, (volatile T * at, T value, int order))             \
	{                                                                                          \
		(void)order;                                                                       \
		store(at, sizeof(T), HERE);                                                        \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                     \
		settle();                                                                          \
	}                                                                                          \
	CHANGES(bits, T, exchange, __atomic_exchange_n)                                            \
	CHANGES(bits, T, fetch_add, __atomic_fetch_add)                                            \
	CHANGES(bits, T, fetch_sub, __atomic_fetch_sub)                                            \
	CHANGES(bits, T, fetch_and, __atomic_fetch_and)                                            \
	CHANGES(bits, T, fetch_or, __atomic_fetch_or)                                              \
	CHANGES(bits, T, fetch_xor, __atomic_fetch_xor)                                            \
	CHANGES(bits, T, fetch_nand, __atomic_fetch_nand)                                          \
	EXCHANGES(bits, T, strong)                                                                 \
	EXCHANGES(bits, T, weak)                                                                   \
	HOOK(T, __tsan_atomic##bits##_compare_exchange_val,                                        \
	     (volatile T * at, T expected, T value, int order, int fails))                         \
	{                                                                                          \
		__tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, fails); \
		return expected;                                                                   \
	}

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
