/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_ACCESS_H
#define TM_PMEM_ACCESS_H
/*
 * Accesses that a library function makes for store code (core/libc/), as the store's own code would
 * make them. `pc`: where in the store the call is; traces name that line.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool access_is_pm(const void *addr);
/* Comes before the bytes are read: another task may run in between. */
void access_load(const void *addr, size_t len, uintptr_t pc);
/* A copy, loads and stores; from == NULL: len bytes of `byte`. Returns `to`. */
void *access_copy(void *to, const void *from, int byte, size_t len, uintptr_t pc);

#endif
