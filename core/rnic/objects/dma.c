/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RNIC's hands on host memory: read, write, and the walk along a scatter/
 * gather list. DRAM is plain memory. PM belongs to the persistence model, which
 * is told when bytes arrive in the RNIC's buffers and when each line becomes
 * visible, and which shows the RNIC what a CPU would see.
 *
 * In the live world all memory is the program's, which may have taken it away since it
 * registered it: there each access goes through struct rnic_memory, and may fail.
 */
#include <assert.h>
#include <string.h>
#include "core/rnic/objects/device.h"

static struct nic_where where(const struct packet_name *name)
{
	return (struct nic_where){.qp = name->who,
				  .op = name->op,
				  .occurrence = name->occurrence,
				  .message = name->message,
				  .packet = name->index,
				  .send = name->send};
}

static uint64_t pm_offset(const struct rnic_mr *mr, const uint8_t *at, uint64_t len)
{
	assert(at >= mr->host && (uint64_t)(at - mr->host) + len <= mr->len);
	return mr->pm_off + (uint64_t)(at - mr->host);
}

bool dma_read(struct rnic_hca *hca, const struct rnic_mr *mr, const uint8_t *from, void *to,
	      uint32_t len)
{
	if (mr->in_pm) {
		pmem_nic_read(hca->pm, pm_offset(mr, from, len), to, len);
		return true;
	}
	if (mr->kind == MR_NULL) {
		memset(to, 0, len);
		return true;
	}
	if (hca->memory)
		return hca->memory->read(to, from, len);
	sim_touch(hca->net->sim, TOUCH_DRAM_READ, (uintptr_t)from, len);
	memcpy(to, from, len);
	return true;
}

void dma_flush(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
	       bool sends, const struct packet_name *name)
{
	struct nic_where from = where(name);
	uint64_t off = 0;
	if (!hca->pm)
		return;
	if (!mr)
		len = pmem_length(hca->pm);
	else if (mr->in_pm)
		off = pm_offset(mr, at, len);
	else
		len = 0;
	pmem_nic_flush(hca->pm, off, len, sends, &from);
}

void dma_arrive(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
		uint32_t len, const struct packet_name *name)
{
	if (!mr->in_pm || !len)
		return;
	struct nic_where at = where(name);
	pmem_nic_arrive(hca->pm, pm_offset(mr, to, len), from, len, &at);
}

bool dma_write(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
	       uint32_t len, const struct packet_name *name)
{
	if (mr->kind == MR_NULL)
		return true;
	if (hca->memory)
		return hca->memory->write(to, from, len);
	if (!mr->in_pm) {
		sim_touch(hca->net->sim, TOUCH_DRAM_WRITE, (uintptr_t)to, len);
		memcpy(to, from, len);
		return true;
	}
	struct nic_where at = where(name);
	while (len) {
		uint32_t part = mr_line_left(mr, to);
		if (part > len)
			part = len;
		pmem_nic_land(hca->pm, pm_offset(mr, to, part), from, part, &at);
		to += part;
		from = (const uint8_t *)from + part;
		len -= part;
	}
	return true;
}

bool dma_atomic(struct rnic_hca *hca, uint8_t *at, const struct packet *request, uint64_t *original)
{
	uint64_t *word = (uint64_t *)(void *)at;
	if (request->opcode == OP_FETCH_ADD)
		return hca->memory->fetch_add(word, request->swap_add, original);
	return hca->memory->compare_swap(word, request->compare, request->swap_add, original);
}

bool dma_persist(struct rnic_hca *hca, const uint8_t *at, uint64_t len)
{
	return hca->memory->persist(at, len);
}

uint64_t sge_bytes(const struct ibv_sge *sge, unsigned sges)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < sges; i++)
		bytes += sge[i].length;
	return bytes;
}

bool sge_piece(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
	       unsigned sges, uint32_t off, uint32_t len, int access, struct piece *out)
{
	for (unsigned i = 0; i < sges; i++) {
		if (off >= sge[i].length) {
			off -= sge[i].length;
			continue;
		}
		out->len = sge[i].length - off < len ? sge[i].length - off : len;
		out->mr = mr_local(hca, pd, sge[i].lkey, access, sge[i].addr + off, out->len);
		if (!out->mr)
			return false;
		out->host = mr_host(out->mr, sge[i].addr + off);
		return true;
	}
	return false;
}

bool sge_allowed(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint64_t off, uint64_t len, int access)
{
	for (unsigned i = 0; i < sges && len; i++) {
		if (off >= sge[i].length) {
			off -= sge[i].length;
			continue;
		}
		uint64_t part = sge[i].length - off < len ? sge[i].length - off : len;
		if (!mr_local(hca, pd, sge[i].lkey, access, sge[i].addr + off, part))
			return false;
		len -= part;
		off = 0;
	}
	return len == 0;
}

bool sge_gather(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		unsigned sges, uint32_t off, uint8_t *to, uint32_t len)
{
	struct piece piece;
	while (len) {
		if (!sge_piece(hca, pd, sge, sges, off, len, 0, &piece))
			return false;
		if (!dma_read(hca, piece.mr, piece.host, to, piece.len))
			return false;
		off += piece.len;
		to += piece.len;
		len -= piece.len;
	}
	return true;
}

bool sge_scatter(struct rnic_hca *hca, const struct ibv_pd *pd, const struct ibv_sge *sge,
		 unsigned sges, uint32_t off, const uint8_t *from, uint32_t len,
		 const struct packet_name *name)
{
	struct piece piece;
	while (len) {
		if (!sge_piece(hca, pd, sge, sges, off, len, IBV_ACCESS_LOCAL_WRITE, &piece))
			return false;
		dma_arrive(hca, piece.mr, piece.host, from, piece.len, name);
		if (!dma_write(hca, piece.mr, piece.host, from, piece.len, name))
			return false;
		off += piece.len;
		from += piece.len;
		len -= piece.len;
	}
	return true;
}
