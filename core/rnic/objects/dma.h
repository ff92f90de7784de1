/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_DMA_H
#define TM_RNIC_OBJECTS_DMA_H
/* The RNIC's access to its host's memory: dma.c. */
#include "core/rnic/objects/mr.h"
#include "core/rnic/transport/packet.h"

/* The RNIC reads and writes memory, as memory.h says; see dma.c. */
bool dma_read(struct rnic_hca *hca, const struct rnic_mr *mr, const uint8_t *from, void *to,
	      uint32_t len);
bool dma_write(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
	       uint32_t len, const struct packet_name *name);
bool dma_flush(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
	       const struct packet_name *name);
/* As struct rnic_memory has it: commit(), of a range, or of a word and with it. */
bool dma_commit(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
		const struct packet_name *name);
bool dma_commit_word(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
		     const struct packet_name *name);
void dma_arrive(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
		uint32_t len, const struct packet_name *name);
/* The word that an atomic writes in place of the one that it finds; false: none. */
typedef bool dma_atomic_fn(const struct packet *request, uint64_t original, uint64_t *value);
/* Atomic against the program's CPUs, too: only where the memory has compare_swap(). */
bool dma_atomic(struct rnic_hca *hca, uint8_t *at, const struct packet *request,
		dma_atomic_fn *apply, uint64_t *original);

/* A scatter/gather list walked in pieces that are contiguous in memory. */
struct piece {
	struct rnic_mr *mr;
	uint8_t *host;
	uint32_t len;
};
/* The piece of at most `len` bytes at byte `off` of the list; false: it is not allowed (PD, access,
 * bounds), or the list ends there. */
bool sge_piece(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
	       unsigned sges, uint32_t off, uint32_t len, int access, struct piece *out);
/* Is [off, off + len) of the list allowed? */
bool sge_allowed(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint64_t off, uint64_t len, int access);
uint64_t sge_bytes(const struct ibv_sge *sge, unsigned sges);
/* Copy from the list's byte off on; false: not allowed. */
bool sge_gather(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		unsigned sges, uint32_t off, uint8_t *to, uint32_t len);
bool sge_scatter(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint32_t off, const uint8_t *from, uint32_t len,
		 const struct packet_name *name);

#endif
