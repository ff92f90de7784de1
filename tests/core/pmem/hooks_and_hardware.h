/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_CORE_PMEM_HOOKS_AND_HARDWARE_H
#define TM_TESTS_CORE_PMEM_HOOKS_AND_HARDWARE_H
#include "core/hardware/hardware.h"
#include "tests/suite.h"

/* As the compilers call them: core/pmem/hooks.c. With a sanitizer on, gcc knows them by other
 * types. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#endif
void __tsan_read8(void *addr);
void __tsan_write8(void *addr);
void __tsan_write16(void *addr);
void __tsan_unaligned_write8(void *addr);
void __tsan_write_range(void *addr, size_t len);
void __tsan_read_range(void *addr, size_t len);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic64_store(volatile uint64_t *addr, uint64_t value, int order);
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t *addr, uint64_t value, int order);
int __tsan_atomic64_compare_exchange_strong(volatile uint64_t *addr, uint64_t *expected,
					    uint64_t value, int success, int failure);

/* The default but for what the text says: "ddio=off domain=mhp". */
static inline struct hardware hardware(const char *config)
{
	struct hardware hw = hardware_default;
	char copy[200], *save = NULL;
	const char *expected;

	snprintf(copy, sizeof(copy), "%s", config);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		ck_assert_msg(!hardware_switch(&hw, word, &expected), "%s", word);
	return hw;
}

#endif
