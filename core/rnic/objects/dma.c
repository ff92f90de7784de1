/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RNIC's access to its host's memory: reading and writing within a region, and the walk along a
 * scatter/gather list. What memory there is, and what an access does to it, is the host's
 * (memory.h).
 */
#include "core/rnic/objects/dma.h"
#include <string.h>
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/transport/packet.h"

bool dma_read(struct rnic_hca *hca, const struct rnic_mr *mr, const uint8_t *from, void *to,
	      uint32_t len)
{
	if (mr->kind == MR_NULL) {
		memset(to, 0, len);
		return true;
	}
	return hca->memory->read(hca->memory_arg, mr, to, from, len);
}

bool dma_write(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
	       uint32_t len, const struct packet_name *name)
{
	if (mr->kind == MR_NULL)
		return true;
	return hca->memory->write(hca->memory_arg, mr, to, from, len, name);
}

bool dma_flush(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
	       const struct packet_name *name)
{
	return !hca->memory->flush || hca->memory->flush(hca->memory_arg, mr, at, len, name);
}

bool dma_commit(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t len,
		const struct packet_name *name)
{
	return !hca->memory->commit || hca->memory->commit(hca->memory_arg, mr, at, len, name);
}

bool dma_commit_word(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
		     const struct packet_name *name)
{
	if (mr->kind == MR_NULL)
		return true;
	if (!hca->memory->commit_word)
		return hca->memory->write(hca->memory_arg, mr, at, &word, sizeof(word), name);
	return hca->memory->commit_word(hca->memory_arg, mr, at, word, name);
}

void dma_arrive(struct rnic_hca *hca, const struct rnic_mr *mr, uint8_t *to, const void *from,
		uint32_t len, const struct packet_name *name)
{
	if (hca->memory->arrive)
		hca->memory->arrive(hca->memory_arg, mr, to, from, len, name);
}

/* Read, then replace what was read if it is still there: the first read is a guess. */
bool dma_atomic(struct rnic_hca *hca, uint8_t *at, const struct packet *request,
		dma_atomic_fn *apply, uint64_t *original)
{
	uint64_t *word = (uint64_t *)(void *)at, expected = request->compare, value;
	bool known = false;
	for (;;) {
		bool writes = apply(request, expected, &value);
		if (!writes && known)
			return true;
		if (!hca->memory->compare_swap(word, expected, writes ? value : expected, original,
					       &request->name))
			return false;
		if (*original == expected)
			return true;
		expected = *original;
		known = true;
	}
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
