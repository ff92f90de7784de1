/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_PMEM_PMEM_H
#define TM_PMEM_PMEM_H
/*
 * The persistence model: one machine's PM pool. pmem.c opens with the model.
 *
 * Three sides use it: store code, through the compiler hooks and libpmem's
 * functions (hooks.h); the RNIC, through the three verbs "a NIC write arrived",
 * "a NIC write became visible" and "NIC writes are flushed"; the explorer, through crash images
 * (crash.h).
 */
#include "core/pmem/domain.h"
#include "core/rt/sim.h"

struct pmem;

/* Where a NIC write comes from, for names and the event trace. */
struct nic_where {
	const struct actor *qp;
	struct op_label op;
	uint16_t occurrence;
	uint32_t message, packet;
	uint64_t id;	   /* of the message; no other has it */
	uint8_t operation; /* core/rnic/opcode.h */
	bool send;	   /* data of a SEND, in a receive buffer */
};

/* --- the RNIC's side --- */

/* Does [addr, addr+len) lie in this pool? Sets *off to its offset. */
bool pmem_owns(const struct pmem *pm, const void *addr, size_t len, uint64_t *off);
/* Stage 1: bytes sit in the responder's NIC buffers. Under WSP they survive from here on. */
void pmem_nic_arrive(struct pmem *pm, uint64_t off, const void *data, size_t len,
		     const struct nic_where *from);
/* Stage 2: bytes become visible to CPU and NIC. At most one line (never crosses a line
 * boundary). */
void pmem_nic_land(struct pmem *pm, uint64_t off, const void *data, size_t len,
		   const struct nic_where *from);
/* Stage 3: what this queue pair made visible, and its request covers, leaves the integrated-I/O
 * buffers. With DDIO the data may be in the cache, where only a Commit reaches it. */
void pmem_nic_drain(struct pmem *pm, enum nic_request by, uint64_t off, size_t len,
		    const struct nic_where *from);
/* An aligned word becomes visible and durable at one moment, with the line's older content. */
void pmem_nic_commit_word(struct pmem *pm, uint64_t off, uint64_t word,
			  const struct nic_where *from);
/* The NIC reads (RDMA READ, gather of a send). Sees what the CPU sees. */
void pmem_nic_read(struct pmem *pm, uint64_t off, void *data, size_t len);

/* --- the CPU's side: a task of the server touches [off, off+len). Called by hooks.c --- */

void pmem_cpu_load(struct pmem *pm, uint64_t off, size_t len);
/* A store is about to happen: its bytes are read at the next event. */
void pmem_cpu_store(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc);
/* The same of a locked instruction, after pmem_cpu_empty(): it is visible at once. */
void pmem_cpu_locked_store(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc);
/* A copy into PM (data == NULL: `len` bytes of `byte`), performed here. */
void pmem_cpu_copy(struct pmem *pm, uint64_t off, const void *data, int byte, size_t len,
		   uintptr_t pc);
/* A copy by non-temporal stores: nt_store.c. Without buffers of their own (hardware.nt_stores) they
 * are stores that are flushed. */
bool pmem_has_nt_buffers(const struct pmem *pm);
void pmem_cpu_nt_copy(struct pmem *pm, uint64_t off, const void *data, int byte, size_t len,
		      uintptr_t pc);
void pmem_cpu_flush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc); /* clwb, clflushopt */
void pmem_cpu_fence(struct pmem *pm, uintptr_t pc);			      /* sfence */
void pmem_commit_pending(struct pmem *pm);
/* Does what a CPU stores survive a power failure without a flush? */
bool pmem_flushes_caches(const struct pmem *pm);
/* Are there store buffers (hardware.store_buffer, hardware.nt_stores)? Then, before a locked
 * instruction wherever its operand is: the CPU's buffer is empty, and what it has flushed is
 * durable. */
bool pmem_has_buffers(const struct pmem *pm);
void pmem_cpu_empty(struct pmem *pm, uintptr_t pc);
/* The server's process has ended. The kernel that switches away from it empties the buffers of its
 * CPU (IRET is serializing: Intel SDM, volume 3, "Serializing Instructions"), so nothing of them
 * comes after the next process has begun. */
void pmem_process_ended(struct pmem *pm);
/* Is a copy of more than a word made word by word (hardware.copy_order)? */
bool pmem_copies_words(const struct pmem *pm, size_t len);
/* The i-th of its words: the word's length, and *at, its offset in the bytes. */
size_t pmem_nth_word(const struct pmem *pm, uint64_t off, size_t len, size_t i, size_t *at);
/* A store to DRAM, while there is something in a store buffer (the window's `buffered`). */
void pmem_cpu_dram_store(struct pmem *pm, const void *addr);

/* --- the same without compiler hooks, and instructions that libpmem does not name --- */

/* A load: what this CPU sees. */
void pmem_cpu_read(struct pmem *pm, uint64_t off, void *data, size_t len);
/* clflush: the lines are durable as soon as it takes effect. */
void pmem_cpu_clflush(struct pmem *pm, uint64_t off, size_t len, uintptr_t pc);
/* mfence, and what a locked instruction does before it reads. */
void pmem_cpu_mfence(struct pmem *pm, uintptr_t pc);
/* The write of a locked instruction, right after pmem_cpu_mfence(): visible at once. */
void pmem_cpu_locked_write(struct pmem *pm, uint64_t off, const void *data, size_t len,
			   uintptr_t pc);
/* A doorbell: ring(arg) is called when the CPU's earlier stores are visible. */
void pmem_cpu_post(struct pmem *pm, void (*ring)(void *arg), void *arg);
/* What the hooks look at on each access; the first member of struct pmem. */
struct pmem_window {
	uint8_t *base; /* the pool's first byte */
	size_t len;
	uint32_t accesses_left; /* outside the pool, until the task counts as an endless loop */
	uint32_t buffered;	/* entries in the CPUs' store buffers */
};
static inline uint8_t *pmem_base(const struct pmem *pm)
{
	return ((const struct pmem_window *)pm)->base;
}
static inline size_t pmem_length(const struct pmem *pm)
{
	return ((const struct pmem_window *)pm)->len;
}
/* From now on until pmem_end(), tell the source of each access: to PM, and to DRAM but for a task's
 * own stack. */
void pmem_watch(struct pmem *pm);
/* The window's accesses_left have reached 0, with this access to DRAM. */
void pmem_accesses_spent(struct pmem *pm, const void *addr, size_t len, bool write, uintptr_t pc);
/* Receives each access to DRAM before it is made; pc: its place in the store. */
typedef void pmem_dram_watcher(void *arg, const void *addr, size_t len, bool write, uintptr_t pc);
/* From now on until pmem_end(). NULL: no longer. */
void pmem_watch_dram(struct pmem *pm, pmem_dram_watcher *watcher, void *arg);

/* For the event trace: a place of the pool in words, "log+0x240". */
void pmem_place(const struct pmem *pm, uint64_t off, char *buf, size_t len);

#endif
