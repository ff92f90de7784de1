/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_PROCESS_LIBC_H
#define TM_RT_PROCESS_LIBC_H
/*
 * What store objects call instead of libc in the sim world (core/stores/sim.syms
 * renames the symbols): memory that a reset takes back, and deaths that the
 * scheduler survives. The functions that read and write memory are in core/pmem/hooks.c.
 */
#include <stddef.h>
#include <stdint.h>

void *sim_malloc(size_t bytes);
void *sim_calloc(size_t count, size_t bytes);
void *sim_realloc(void *memory, size_t bytes);
void sim_free_memory(void *memory);
int sim_posix_memalign(void **memory, size_t align, size_t bytes);
void *sim_aligned_alloc(size_t align, size_t bytes);
/* Bytes of a block in use; 0: NULL. */
size_t sim_usable_size(void *memory);
_Noreturn void sim_abort(void);
_Noreturn void sim_assert_fail(const char *what, const char *file, unsigned line,
			       const char *function);

/* For the functions that replace libc's: memory that free() takes, at once, whatever calls are made
 * to fail. */
void *sim_take(size_t bytes);
/* The store's process ends here, as by a fault. */
_Noreturn void sim_fault_at(uintptr_t pc, const char *what);

#endif
