/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: registration, keys, and who may touch which bytes.
 *
 * A key is host + 1 (8 bits), slot (16), generation (7), and one bit that tells
 * the remote key from the local one: small numbers that are equal in every run,
 * that never name another host's memory, and of which one used in place of the
 * other is an error here as on a real card. A slot is not given out again until
 * all have been, and then with the next generation, so a dead key stays dead.
 *
 * Knob rkey_reuse: a region of the same address, length and domain registered
 * again gets its old keys, so that a late WRITE of a client that still holds them
 * lands. A region is deregistered only after every write that was let in has
 * landed; that is what a card does when it invalidates its translation.
 *
 * Every packet's access is checked here again: key, domain, rights, bounds.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/rnic/device.h"
#include "core/rnic/placement.h"
#include "core/rnic/qp.h"

#define ACCESS_KNOWN                                                                                    \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                    \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

static uint32_t key_of(const struct rnic_hca *hca, uint32_t slot, uint8_t generation, bool remote)
{
	return (hca->host + 1) << 24 | slot << 8 | (uint32_t)generation << 1 | remote;
}

/* A slot with a dead or new region in it; NULL: all are in use. */
static struct rnic_mr *slot_get(struct rnic_hca *hca, uint32_t *slot)
{
	struct sim *sim = hca->net->sim;
	if (hca->mrs == MAX_MR) {
		for (uint32_t i = 0; i < MAX_MR; i++) {
			hca->mr_cursor = hca->mr_cursor % MAX_MR + 1;
			struct rnic_mr *mr = hca->mr[hca->mr_cursor];
			if (mr->live)
				continue;
			mr->generation = (mr->generation + 1) & 0x7f;
			*slot = hca->mr_cursor;
			return mr;
		}
		return NULL;
	}
	if (hca->mrs + 1 >= hca->mr_room) {
		uint32_t room = hca->mr_room ? 2 * hca->mr_room : 8;
		struct rnic_mr **mr = sim_alloc(sim, room * sizeof(struct rnic_mr *));
		if (hca->mr_room)
			memcpy(mr, hca->mr, hca->mr_room * sizeof(struct rnic_mr *));
		hca->mr = mr;
		hca->mr_room = room;
	}
	*slot = ++hca->mrs;
	return hca->mr[*slot] = sim_alloc(sim, sizeof(struct rnic_mr));
}

static struct rnic_mr *revive(struct rnic_hca *hca, struct ibv_pd *pd, void *addr, size_t length,
			      uint64_t iova)
{
	for (uint32_t slot = 1; slot <= hca->mrs; slot++) {
		struct rnic_mr *mr = hca->mr[slot];
		if (!mr->live && mr->host == addr && mr->len == length && mr->iova == iova &&
		    mr->ibv.pd == pd)
			return mr;
	}
	return NULL;
}

static int check_registration(void *addr, size_t length, uint64_t iova, unsigned access)
{
	if (access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if ((uintptr_t)addr + length < (uintptr_t)addr || iova + length < iova)
		return EINVAL;
	if (!addr && length)
		return EFAULT;
	if (!(access & IBV_ACCESS_ZERO_BASED) && ((iova ^ (uintptr_t)addr) & 4095))
		return EINVAL;
	return 0;
}

struct ibv_mr *rnic_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access)
{
	struct rnic_hca *hca = to_hca(pd->context);
	struct rnic_mr *mr = NULL;
	uint32_t slot;
	uint64_t first = 0, off = 0;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	int error = check_registration(addr, length, iova, access);
	bool in_pm = hca->pm && length && pmem_owns(hca->pm, addr, length, &off);
	/* Half in the pool: no card cares, but nothing a store would mean. */
	if (!error && hca->pm && length && !in_pm &&
	    (pmem_owns(hca->pm, addr, 1, &first) || pmem_owns(hca->pm, (char *)addr + length - 1, 1, &first)))
		error = EFAULT;
	if (!error && access & IBV_ACCESS_FLUSH_PERSISTENT && !in_pm)
		error = EINVAL;
	if (!error && sim_fails(FAIL_REG_MR))
		error = ENOMEM;
	if (!error && hca->net->hw.rkey_reuse)
		mr = revive(hca, pd, addr, length, iova);
	if (!error && !mr) {
		mr = slot_get(hca, &slot);
		if (mr) {
			mr->ibv.lkey = key_of(hca, slot, mr->generation, false);
			mr->ibv.rkey = key_of(hca, slot, mr->generation, true);
			mr->ibv.handle = slot;
		} else {
			error = ENOMEM;
		}
	}
	if (error) {
		errno = error;
		return NULL;
	}
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->iova = iova;
	mr->host = addr;
	mr->len = length;
	mr->access = (int)access;
	mr->live = true;
	mr->in_pm = in_pm;
	mr->pm_off = off;
	((struct rnic_pd *)pd)->users++;
	hca->objects++;
	return &mr->ibv;
}

struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return rnic_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

int rnic_dereg_mr(struct ibv_mr *ibv)
{
	struct rnic_mr *mr = (struct rnic_mr *)ibv;
	struct rnic_hca *hca = to_hca(ibv->context);
	struct rnic_pd *pd = (struct rnic_pd *)ibv->pd;
	if (!mr->live)
		return EINVAL;
	for (uint32_t i = 0; i < hca->net->qps; i++) {
		struct rnic_qp *qp = hca->net->qp[i];
		if (qp && qp->hca == hca)
			land_all(qp, mr);
	}
	mr->live = false;
	assert(pd->users);
	pd->users--;
	hca->objects--;
	return 0;
}

static struct rnic_mr *find_key(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t key, int access)
{
	uint32_t slot = key >> 8 & 0xffff;
	if (slot == 0 || slot > hca->mrs)
		return NULL;
	struct rnic_mr *mr = hca->mr[slot];
	bool live = mr->live || OWN_BUG(&hca->net->hw, NIC_KEY_DEAD);
	return live && mr->ibv.pd == pd && (mr->access & access) == access ? mr : NULL;
}

static struct rnic_mr *find(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t key, int access,
			    uint64_t va, uint64_t len)
{
	struct rnic_mr *mr = find_key(hca, pd, key, access);
	if (!mr)
		return NULL;
	if (OWN_BUG(&hca->net->hw, NIC_BOUNDS) && va >= mr->iova && va - mr->iova < mr->len)
		return mr;
	if (va < mr->iova || len > mr->len || va - mr->iova > mr->len - len)
		return NULL;
	return mr;
}

struct rnic_mr *mr_local(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t lkey, int access,
			 uint64_t va, uint64_t len)
{
	struct rnic_mr *mr = find(hca, pd, lkey, access, va, len);
	return mr && mr->ibv.lkey == lkey ? mr : NULL;
}

struct rnic_mr *mr_remote(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t rkey, int access,
			  uint64_t va, uint64_t len)
{
	struct rnic_mr *mr = find(hca, pd, rkey, access, va, len);
	return mr && mr->ibv.rkey == rkey ? mr : NULL;
}

struct rnic_mr *mr_remote_whole(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t rkey, int access)
{
	struct rnic_mr *mr = find_key(hca, pd, rkey, access);
	return mr && mr->ibv.rkey == rkey ? mr : NULL;
}

void rnic_key_place(const struct rnic_net *net, uint32_t rkey, uint64_t va, char *buf, size_t size)
{
	uint32_t host = (rkey >> 24) - 1, slot = rkey >> 8 & 0xffff;
	const struct rnic_mr *mr = NULL;
	if (host < RNIC_HOSTS && net->hca[host] && slot && slot <= net->hca[host]->mrs)
		mr = net->hca[host]->mr[slot];
	if (!mr || mr->ibv.rkey != rkey || va < mr->iova)
		snprintf(buf, size, "unknown key 0x%x", rkey);
	else if (mr->in_pm)
		pmem_place(net->hca[host]->pm, mr->pm_off + (va - mr->iova), buf, size);
	else
		snprintf(buf, size, "key 0x%x + 0x%llx", rkey, (unsigned long long)(va - mr->iova));
}
