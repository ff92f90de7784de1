/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_HOOKS_H
#define TM_PMEM_HOOKS_H
/*
 * What store objects call in the sim world instead of libc, ISA-L and libpmem
 * (core/stores/sim.syms renames the symbols). The compiler's own hooks, __tsan_*,
 * are in hooks.c and need no declaration.
 */
#include <stddef.h>
#include <stdint.h>

void *sim_memcpy(void *to, const void *from, size_t len);
void *sim_memmove(void *to, const void *from, size_t len);
void *sim_memset(void *to, int byte, size_t len);
int sim_memcmp(const void *a, const void *b, size_t len);
uint32_t sim_crc32_gzip_refl(uint32_t init, const unsigned char *buf, uint64_t len);

void sim_pmem_flush(const void *addr, size_t len);
void sim_pmem_drain(void);
void sim_pmem_persist(const void *addr, size_t len);
void *sim_pmem_memcpy(void *to, const void *from, size_t len, unsigned flags);
void *sim_pmem_memset(void *to, int byte, size_t len, unsigned flags);
void *sim_pmem_memcpy_persist(void *to, const void *from, size_t len);
void *sim_pmem_memcpy_nodrain(void *to, const void *from, size_t len);
void *sim_pmem_memset_persist(void *to, int byte, size_t len);
void *sim_pmem_memset_nodrain(void *to, int byte, size_t len);
void *sim_pmem_memmove(void *to, const void *from, size_t len, unsigned flags);
void *sim_pmem_memmove_persist(void *to, const void *from, size_t len);
void *sim_pmem_memmove_nodrain(void *to, const void *from, size_t len);
void sim_pmem_deep_flush(const void *addr, size_t len);
int sim_pmem_deep_drain(const void *addr, size_t len);
int sim_pmem_deep_persist(const void *addr, size_t len);
int sim_pmem_msync(const void *addr, size_t len);
int sim_msync(void *addr, size_t len, int flags);
int sim_pmem_is_pmem(const void *addr, size_t len);
int sim_pmem_has_auto_flush(void);
int sim_pmem_has_hw_drain(void);

/* What core/libc/include puts in the place of intrinsics. sim_reads() and sim_writes() come
 * before an access that no compiler reports. */
void sim_clwb(const volatile void *addr); /* also clflushopt */
void sim_clflush(const volatile void *addr);
void sim_sfence(void);
void sim_mfence(void);
void sim_stream(volatile void *to, const void *from, size_t len);
void sim_reads(const volatile void *addr, size_t len);
void sim_writes(volatile void *addr, size_t len);

#endif
