/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sees the stores and loads of store code without annotation.
 *
 * Store sources for the sim world are compiled with -fsanitize=thread and linked
 * with these functions instead of the sanitizer's runtime. gcc and clang call them
 * before each plain access with the address, and instead of each atomic one. The
 * return address is where in the store's source the access is.
 *
 * Library functions are not compiled so: memcpy and the like, the CRC and libpmem
 * are replaced by functions here that touch the range first. A library call on PM
 * that is not replaced would be invisible; a test holds the stores' undefined
 * symbols against the list of those that are known.
 */
#include "core/nontemporal.h"
#include "core/pmem/hooks.h"
#include <isa-l/crc.h>
#include <libpmem.h>
#include <stdbool.h>
#include <string.h>
#include "core/pmem/access.h"
#include "core/pmem/pmem.h"

/* Nearly all that store code accesses is memory that is not PM: its path through a hook is a few
 * instructions and keeps no register. What else there is to do is done out of line. */
#define UNLIKELY(what) __builtin_expect(!!(what), 0)

static inline size_t clip(const struct pmem *pm, uint64_t off, size_t len)
{
	return len < pmem_length(pm) - off ? len : pmem_length(pm) - off;
}

/* An access to memory that is not PM has to be looked at. */
static __attribute__((noinline, cold)) void look_at_dram(struct pmem_window *window,
							 const void *addr, size_t len, bool write,
							 bool spent, uintptr_t pc)
{
	if (spent)
		pmem_accesses_spent((struct pmem *)window, addr, len, write, pc);
	if (write && window->buffered)
		pmem_cpu_dram_store((struct pmem *)window, addr);
}

/* An access to memory that is not PM. */
static inline void dram(struct pmem_window *window, const void *addr, size_t len, bool write,
			uintptr_t pc)
{
	bool spent = --window->accesses_left == 0;
	if (UNLIKELY(spent || (write && window->buffered)))
		look_at_dram(window, addr, len, write, spent, pc);
}

/* The pool of the running simulation and the offset in it, or NULL: not PM. */
static inline struct pmem *pool(const void *addr, uint64_t *off, size_t len, bool write,
				uintptr_t pc)
{
	struct pmem_window *window = sim_memory;
	if (!window)
		return NULL;
	*off = (uintptr_t)addr - (uintptr_t)window->base;
	if (*off < window->len)
		return (struct pmem *)window;
	dram(window, addr, len, write, pc);
	return NULL;
}

/* Is neither of two accesses to PM, and nothing to be looked at for them? Then make them now. */
static inline bool both_dram(const void *to, const void *from, bool write)
{
	struct pmem_window *window = sim_memory;
	if (!window)
		return true;
	if ((uintptr_t)to - (uintptr_t)window->base < window->len ||
	    (uintptr_t)from - (uintptr_t)window->base < window->len || window->accesses_left <= 2 ||
	    (write && window->buffered))
		return false;
	window->accesses_left -= 2;
	return true;
}

static __attribute__((noinline)) void load_pm(struct pmem *pm, uint64_t off, size_t len)
{
	if (len)
		pmem_cpu_load(pm, off, clip(pm, off, len));
}

static __attribute__((noinline)) void store_pm(struct pmem *pm, uint64_t off, size_t len,
					       uintptr_t pc)
{
	if (len)
		pmem_cpu_store(pm, off, clip(pm, off, len), pc);
}

static inline void load(const void *addr, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(addr, &off, len, false, pc);
	if (UNLIKELY(pm))
		load_pm(pm, off, len);
}

static inline void store(void *addr, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(addr, &off, len, true, pc);
	if (UNLIKELY(pm))
		store_pm(pm, off, len, pc);
}

/* A locked instruction begins: its CPU's store buffer is emptied before it reads. */
static inline void locked(uintptr_t pc)
{
	struct pmem *pm = sim_memory;
	if (pm && pmem_has_buffers(pm))
		pmem_cpu_empty(pm, pc);
}

/* It writes. */
static inline void locked_store(void *addr, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(addr, &off, len, true, pc);
	if (pm && len)
		pmem_cpu_locked_store(pm, off, clip(pm, off, len), pc);
}

/* --- the compiler's hooks: their names and signatures are the compilers' --- */

/* A function that compilers declare by themselves. */
#define HOOK(T, name, parameters) \
	T name parameters;        \
	T name parameters

HOOK(void, __tsan_init, (void))
{
}

HOOK(void, __tsan_read_range, (void *addr, size_t len))
{
	load(addr, len, PC);
}

HOOK(void, __tsan_write_range, (void *addr, size_t len))
{
	store(addr, len, PC);
}

HOOK(void, __tsan_atomic_thread_fence, (int order))
{
	if (order == __ATOMIC_SEQ_CST && sim_does(PC))
		locked(PC);
}

HOOK(void, __tsan_atomic_signal_fence, (int order))
{
	(void)order;
}

#define ACCESS(name, access, n)        \
	HOOK(void, name, (void *addr)) \
	{                              \
		access(addr, n, PC);   \
	}
#define PLAIN(n)                                  \
	ACCESS(__tsan_read##n, load, n)           \
	ACCESS(__tsan_write##n, store, n)         \
	ACCESS(__tsan_unaligned_read##n, load, n) \
	ACCESS(__tsan_unaligned_write##n, store, n)

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

/* A C++ object's pointer to its class's virtual functions. */
HOOK(void, __tsan_vptr_update, (void **vptr, void *value))
{
	(void)value;
	store(vptr, sizeof(*vptr), PC);
}

HOOK(void, __tsan_vptr_read, (void **vptr))
{
	load(vptr, sizeof(*vptr), PC);
}

/*
 * An atomic's hook performs it. The fiber scheduler runs one task at a time, so
 * between hook entry and the operation nothing else can happen. What x86 makes of it: whatever
 * reads and writes, and a store that is sequentially consistent, is a locked instruction; others
 * are plain.
 */
static void settle_now(void)
{
	struct pmem *pm = sim_memory;
	if (pm)
		pmem_commit_pending(pm);
}

/* An access to PM is a step by itself; before one to other memory others may come as well. */
static inline void before_atomic(const volatile void *addr)
{
	if (sim_memory && !access_is_pm((const void *)addr))
		sim_atomic(sim_current(), (const void *)addr);
}

#define FETCH(bits, T, name, expr)                                                     \
	HOOK(T, __tsan_atomic##bits##_##name, (volatile T * addr, T value, int order)) \
	{                                                                              \
		(void)order;                                                           \
		before_atomic(addr);                                                   \
		locked(PC);                                                            \
		locked_store((void *)addr, sizeof(T), PC);                             \
		T old = *addr;                                                         \
		*addr = (T)(expr);                                                     \
		settle_now();                                                          \
		return old;                                                            \
	}

#define EXCHANGE(bits, T, name)                                                    \
	HOOK(int, __tsan_atomic##bits##_compare_exchange_##name,                   \
	     (volatile T * addr, T * expected, T value, int success, int failure)) \
	{                                                                          \
		(void)success, (void)failure;                                      \
		T old = compare_exchange##bits(addr, *expected, value, PC);        \
		bool done = old == *expected;                                      \
		*expected = old;                                                   \
		return done;                                                       \
	}

#define ATOMICS(bits, T)                                                                     \
	HOOK(T, __tsan_atomic##bits##_load, (const volatile T *addr, int order))             \
	{                                                                                    \
		(void)order;                                                                 \
		before_atomic(addr);                                                         \
		load((const void *)addr, sizeof(T), PC);                                     \
		return *addr;                                                                \
	}                                                                                    \
	HOOK(void, __tsan_atomic##bits##_store, (volatile T * addr, T value, int order))     \
	{                                                                                    \
		before_atomic(addr);                                                         \
		if (order == __ATOMIC_SEQ_CST && sim_does(PC)) {                             \
			locked(PC);                                                          \
			locked_store((void *)addr, sizeof(T), PC);                           \
		} else {                                                                     \
			store((void *)addr, sizeof(T), PC);                                  \
		}                                                                            \
		*addr = value;                                                               \
		settle_now();                                                                \
	}                                                                                    \
	static T compare_exchange##bits(volatile T *addr, T expected, T value, uintptr_t pc) \
	{                                                                                    \
		before_atomic(addr);                                                         \
		locked(pc);                                                                  \
		load((const void *)addr, sizeof(T), pc);                                     \
		T old = *addr;                                                               \
		if (old != expected)                                                         \
			return old;                                                          \
		/* Other tasks may run at the step before the store: look again. */          \
		locked_store((void *)addr, sizeof(T), pc);                                   \
		old = *addr;                                                                 \
		if (old == expected)                                                         \
			*addr = value;                                                       \
		settle_now();                                                                \
		return old;                                                                  \
	}                                                                                    \
	HOOK(T, __tsan_atomic##bits##_compare_exchange_val,                                  \
	     (volatile T * addr, T expected, T value, int success, int failure))             \
	{                                                                                    \
		(void)success, (void)failure;                                                \
		return compare_exchange##bits(addr, expected, value, PC);                    \
	}                                                                                    \
	EXCHANGE(bits, T, strong)                                                            \
	EXCHANGE(bits, T, weak)                                                              \
	FETCH(bits, T, exchange, value)                                                      \
	FETCH(bits, T, fetch_add, old + value)                                               \
	FETCH(bits, T, fetch_sub, old - value)                                               \
	FETCH(bits, T, fetch_and, old &value)                                                \
	FETCH(bits, T, fetch_or, old | value)                                                \
	FETCH(bits, T, fetch_xor, old ^ value)                                               \
	FETCH(bits, T, fetch_nand, ~(old & value))

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
ATOMICS(128, unsigned __int128)

/* --- libc and ISA-L on PM --- */

/* A copy out of PM, word by word. */
static void copy_out(struct pmem *pm, uint8_t *to, uint64_t off, const uint8_t *from, size_t len)
{
	for (size_t done = 0, part, at, i = 0; done < len; done += part) {
		part = pmem_nth_word(pm, off, len, i++, &at);
		pmem_cpu_load(pm, off + at, part);
		memcpy(to + at, from + at, part);
	}
}

static void *copy(void *to, const void *from, int byte, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm;
	if (!len)
		return to;
	bool words = sim_memory && pmem_copies_words((struct pmem *)sim_memory, len);
	if (from && !words)
		load(from, len, pc);
	pm = pool(to, &off, len, true, pc);
	if (pm) {
		size_t inside = clip(pm, off, len);
		pmem_cpu_copy(pm, off, from, byte, inside, pc);
		if (inside < len)
			*((volatile uint8_t *)to +
			  inside) = 0; /* past the pool's end: it faults there, as on hardware */
	} else if (from && words && (pm = pool(from, &off, len, false, pc)) != NULL) {
		size_t inside = clip(pm, off, len);
		copy_out(pm, to, off, from, inside);
		memmove((uint8_t *)to + inside, (const uint8_t *)from + inside, len - inside);
	} else if (from) {
		if (pool(from, &off, len, false, pc))
			sim_copy_bytes(sim_current(), len);
		memmove(to, from, len);
	} else {
		memset(to, byte, len);
	}
	return to;
}

void *sim_memcpy(void *to, const void *from, size_t len)
{
	if (len && both_dram(to, from, true))
		return memmove(to, from, len);
	return copy(to, from, 0, len, PC);
}

/* Upwards onto itself: from the end. */
static bool moves_up(const void *to, const void *from, size_t len)
{
	return (uintptr_t)to - (uintptr_t)from < len;
}

static void *move_up(void *to, const void *from, size_t len, uintptr_t pc)
{
	uint8_t piece[LINE];
	load(from, len, pc);
	while (len) {
		size_t part = len < LINE ? len : LINE;
		len -= part;
		memcpy(piece, (const uint8_t *)from + len, part);
		copy((uint8_t *)to + len, piece, 0, part, pc);
	}
	return to;
}

void *sim_memmove(void *to, const void *from, size_t len)
{
	return moves_up(to, from, len) ? move_up(to, from, len, PC) : copy(to, from, 0, len, PC);
}

void *sim_memset(void *to, int byte, size_t len)
{
	return copy(to, NULL, byte, len, PC);
}

/* What clang calls since version 15 where a structure is copied or set. */
void *__tsan_memcpy(void *to, const void *from, size_t len) __attribute__((alias("sim_memcpy")));
void *__tsan_memmove(void *to, const void *from, size_t len) __attribute__((alias("sim_memmove")));
void *__tsan_memset(void *to, int byte, size_t len) __attribute__((alias("sim_memset")));

static __attribute__((noinline)) int compare(const void *a, const void *b, size_t len, uintptr_t pc)
{
	load(a, len, pc);
	load(b, len, pc);
	return memcmp(a, b, len);
}

int sim_memcmp(const void *a, const void *b, size_t len)
{
	if (both_dram(a, b, false))
		return memcmp(a, b, len);
	return compare(a, b, len, PC);
}

uint32_t sim_crc32_gzip_refl(uint32_t init, const unsigned char *buf, uint64_t len)
{
	load(buf, len, PC);
	/* Pools are checked outside of the simulation, too. */
	if (sim_current())
		sim_work_bytes(sim_current(), sim_run_state(sim_current())->cost->crc, len);
	return crc32_gzip_refl(init, buf, len);
}

/* --- for the other functions of libc --- */

bool access_is_pm(const void *addr)
{
	const struct pmem_window *window = sim_memory;
	return window && (uintptr_t)addr - (uintptr_t)window->base < window->len;
}

void access_load(const void *addr, size_t len, uintptr_t pc)
{
	load(addr, len, pc);
}

void *access_copy(void *to, const void *from, int byte, size_t len, uintptr_t pc)
{
	return copy(to, from, byte, len, pc);
}

/* --- libpmem --- */

static void flush(const void *addr, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(addr, &off, 0, false, pc);
	if (pm)
		pmem_cpu_flush(pm, off, clip(pm, off, len), pc);
}

/* A flush and a fence; either all of it can be taken away, or the fence. */
static void persist(const void *addr, size_t len, uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(addr, &off, 0, false, pc);
	if (!pm || !sim_does(pc))
		return;
	pmem_cpu_flush(pm, off, clip(pm, off, len), pc);
	if (sim_does(PLACE_PART(pc)))
		pmem_cpu_fence(pm, pc);
}

void sim_pmem_flush(const void *addr, size_t len)
{
	if (sim_does(PC))
		flush(addr, len, PC);
}

static void drain(uintptr_t pc)
{
	struct pmem *pm = sim_memory;
	if (pm && sim_does(pc))
		pmem_cpu_fence(pm, pc);
}

void sim_pmem_drain(void)
{
	drain(PC);
}

void sim_pmem_persist(const void *addr, size_t len)
{
	persist(addr, len, PC);
}

_Static_assert(COPY_NODRAIN == PMEM_F_MEM_NODRAIN && COPY_NONTEMPORAL == PMEM_F_MEM_NONTEMPORAL &&
		       COPY_TEMPORAL == PMEM_F_MEM_TEMPORAL && COPY_WC == PMEM_F_MEM_WC &&
		       COPY_WB == PMEM_F_MEM_WB && COPY_NOFLUSH == PMEM_F_MEM_NOFLUSH,
	       "the flags are libpmem's");

/*
 * What libpmem does with these flags. The bytes are copied in any case; the flush and the fence can
 * be taken away.
 */
static void *copy_with(void *to, const void *from, int byte, size_t len, unsigned flags,
		       uintptr_t pc)
{
	uint64_t off;
	struct pmem *pm = pool(to, &off, 0, false, pc);
	bool flushes = pm && !(flags & PMEM_F_MEM_NOFLUSH) && sim_does(pc);
	bool fences = flushes && !(flags & PMEM_F_MEM_NODRAIN) && sim_does(PLACE_PART(pc));
	bool up = from && moves_up(to, from, len);
	bool nt = flushes && !up && pmem_has_nt_buffers(pm) && copies_nontemporally(len, flags);
	if (nt) {
		if (from)
			load(from, len, pc);
		pmem_cpu_nt_copy(pm, off, from, byte, clip(pm, off, len), pc);
	} else {
		if (up)
			move_up(to, from, len, pc);
		else
			copy(to, from, byte, len, pc);
		if (flushes)
			pmem_cpu_flush(pm, off, clip(pm, off, len), pc);
	}
	if (fences)
		pmem_cpu_fence(pm, pc);
	return to;
}

void *sim_pmem_memcpy(void *to, const void *from, size_t len, unsigned flags)
{
	return copy_with(to, from, 0, len, flags, PC);
}

void *sim_pmem_memset(void *to, int byte, size_t len, unsigned flags)
{
	return copy_with(to, NULL, byte, len, flags, PC);
}

void *sim_pmem_memcpy_persist(void *to, const void *from, size_t len)
{
	return copy_with(to, from, 0, len, 0, PC);
}

void *sim_pmem_memcpy_nodrain(void *to, const void *from, size_t len)
{
	return copy_with(to, from, 0, len, PMEM_F_MEM_NODRAIN, PC);
}

void *sim_pmem_memset_persist(void *to, int byte, size_t len)
{
	return copy_with(to, NULL, byte, len, 0, PC);
}

void *sim_pmem_memset_nodrain(void *to, int byte, size_t len)
{
	return copy_with(to, NULL, byte, len, PMEM_F_MEM_NODRAIN, PC);
}

/* memmove's copy upwards onto itself is made with stores of the usual kind, and flushed. */
void *sim_pmem_memmove(void *to, const void *from, size_t len, unsigned flags)
{
	return copy_with(to, from, 0, len, flags, PC);
}

void *sim_pmem_memmove_persist(void *to, const void *from, size_t len)
{
	return copy_with(to, from, 0, len, 0, PC);
}

void *sim_pmem_memmove_nodrain(void *to, const void *from, size_t len)
{
	return copy_with(to, from, 0, len, PMEM_F_MEM_NODRAIN, PC);
}

/* What is durable is so in the memory that a power failure leaves: there is nothing deeper. */
void sim_pmem_deep_flush(const void *addr, size_t len)
{
	if (sim_does(PC))
		flush(addr, len, PC);
}

int sim_pmem_deep_drain(const void *addr, size_t len)
{
	(void)addr, (void)len;
	drain(PC);
	return 0;
}

int sim_pmem_deep_persist(const void *addr, size_t len)
{
	persist(addr, len, PC);
	return 0;
}

int sim_pmem_msync(const void *addr, size_t len)
{
	persist(addr, len, PC);
	return 0;
}

/* The same by the system's name. Without effect on other memory. */
int sim_msync(void *addr, size_t len, int flags)
{
	(void)flags;
	persist(addr, len, PC);
	return 0;
}

int sim_pmem_is_pmem(const void *addr, size_t len)
{
	uint64_t off;
	return sim_memory && pmem_owns((struct pmem *)sim_memory, addr, len, &off);
}

int sim_pmem_has_auto_flush(void)
{
	return sim_memory && pmem_flushes_caches((struct pmem *)sim_memory);
}

int sim_pmem_has_hw_drain(void)
{
	return 0; /* no x86 machine has one */
}

/* --- instructions: what core/libc/include puts in the place of intrinsics --- */

void sim_clwb(const volatile void *addr)
{
	if (sim_does(PC))
		flush((const void *)addr, 1, PC);
}

void sim_clflush(const volatile void *addr)
{
	uint64_t off;
	struct pmem *pm = pool((const void *)addr, &off, 0, false, PC);
	if (pm && sim_does(PC))
		pmem_cpu_clflush(pm, off, 1, PC);
}

void sim_sfence(void)
{
	drain(PC);
}

void sim_mfence(void)
{
	struct pmem *pm = sim_memory;
	if (pm && sim_does(PC))
		pmem_cpu_mfence(pm, PC);
}

/* A fence makes non-temporal stores durable, without a flush. */
void sim_stream(volatile void *to, const void *from, size_t len)
{
	uint64_t off;
	struct pmem *pm = pool((const void *)to, &off, 0, false, PC);
	if (pm && len <= pmem_length(pm) - off)
		pmem_cpu_nt_copy(pm, off, from, 0, len, PC);
	else
		copy((void *)to, from, 0, len, PC);
}

void sim_reads(const volatile void *addr, size_t len)
{
	load((const void *)addr, len, PC);
}

void sim_writes(volatile void *addr, size_t len)
{
	store((void *)addr, len, PC);
}
