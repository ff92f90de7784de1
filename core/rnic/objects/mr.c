/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: registration, keys, and which queue pair may touch which bytes.
 *
 * A key is an index (24 bits), a generation (7), and one bit that tells the remote key from the
 * local one, so that one used in place of the other is an error, as the specification wants it.
 * Many cards have one number for both; a net may do the same (equal_keys). Where
 * memory gives no random numbers (memory.h), the index is host + 1 (8 bits) and slot (16): small
 * numbers that are equal in every run and never name another host's memory. Else, where a hostile
 * peer may guess, index and generation are random, no two live or recently dead ones of the net
 * alike, and a hash leads from index to slot. A slot is not given out again until all have been,
 * and then with another generation, so a dead key stays dead. Windows (mw.c) have slots and indexes
 * of the same kind; the lower 8 bits of their keys are the user's.
 *
 * Knob rkey_reuse: a region of the same address, length and domain registered
 * again gets its old keys, so that a late WRITE of a client that still holds them
 * lands. A region is deregistered only after every write that was let in has
 * landed; that is what a card does when it invalidates its translation.
 *
 * Every packet's access is checked here again: key, domain, rights, bounds.
 */
#include "core/rnic/objects/mr.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "core/fail.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/pd.h"
#include "core/rnic/objects/qp.h"
#include "core/rnic/transport/landing.h"
#include "core/verbs_compat.h"

#define ACCESS_KNOWN                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL |       \
	 IBV_ACCESS_FLUSH_PERSISTENT)
#define HASHES	  8192
#define INDEX_MAX 0xffffffu

/* --- slots and keys --- */

static uint32_t *chain_of(struct rnic_hca *hca, uint32_t index)
{
	return &hca->slots[index % HASHES];
}

/* The slot of a key's index, 0: it has none. */
static uint32_t slot_of(const struct rnic_hca *hca, uint32_t index)
{
	uint32_t slot;
	if (!hca->memory->random) {
		slot = index & 0xffff;
		return slot <= hca->mrs ? slot : 0;
	}
	slot = hca->slots ? hca->slots[index % HASHES] : 0;
	while (slot && hca->mr[slot]->index != index)
		slot = hca->mr[slot]->next_slot;
	return slot;
}

static bool is_taken(const struct rnic_net *net, uint32_t index)
{
	for (unsigned i = 0; i < net->hosts; i++)
		if (net->hca[i] && slot_of(net->hca[i], index))
			return true;
	return false;
}

static void name_randomly(struct rnic_hca *hca, struct rnic_mr *mr, uint32_t slot)
{
	uint32_t *at, bits;
	if (!hca->slots)
		hca->slots = ground_alloc(&hca->net->ground, HASHES * sizeof(*hca->slots));
	if (mr->index) {
		at = chain_of(hca, mr->index);
		while (*at != slot) {
			assert(*at); /* a slot that has an index is in the chain of its hash */
			at = &hca->mr[*at]->next_slot;
		}
		*at = mr->next_slot;
	}
	do {
		bits = hca->memory->random();
		mr->index = bits & INDEX_MAX;
	} while (!mr->index || is_taken(hca->net, mr->index));
	mr->generation = (uint8_t)(bits >> 25);
	at = chain_of(hca, mr->index);
	mr->next_slot = *at;
	*at = slot;
	assert(slot_of(hca, mr->index) == slot);
}

/* A free slot; 0: there is none. */
static uint32_t find_slot(struct rnic_hca *hca)
{
	const struct rnic_ground *ground = &hca->net->ground;
	assert(hca->mrs <= MAX_MR);
	if (hca->mrs == MAX_MR) {
		for (uint32_t i = 0; i < MAX_MR; i++) {
			hca->mr_cursor = hca->mr_cursor % MAX_MR + 1;
			if (!hca->mr[hca->mr_cursor]->used)
				return hca->mr_cursor;
		}
		return 0;
	}
	if (hca->mrs + 1 >= hca->mr_room) {
		uint32_t room = hca->mr_room ? 2 * hca->mr_room : 8;
		struct rnic_mr **mr = ground_alloc(ground, room * sizeof(struct rnic_mr *));
		if (hca->mr_room)
			memcpy(mr, hca->mr, hca->mr_room * sizeof(struct rnic_mr *));
		hca->mr = mr;
		hca->mr_room = room;
	}
	assert(hca->mrs + 1 < hca->mr_room && !hca->mr[hca->mrs + 1]);
	hca->mr[hca->mrs + 1] = ground_alloc(ground, sizeof(struct rnic_mr));
	return ++hca->mrs;
}

struct rnic_mr *mr_slot(struct rnic_hca *hca)
{
	uint32_t slot = find_slot(hca);
	if (!slot)
		return NULL;
	struct rnic_mr *mr = hca->mr[slot];
	assert(!mr->used && !mr->live);
	assert(!mr->windows && !mr->region); /* nothing was left bound */
	mr->generation = mr->index ? (mr->generation + 1) & 0x7f : 0;
	if (hca->memory->random)
		name_randomly(hca, mr, slot);
	else
		mr->index = (hca->host + 1) << 16 | slot;
	mr->ibv.handle = slot;
	mr->used = true;
	mr->in_pm = false;
	mr->region = NULL;
	mr->windows = mr->qpn = 0;
	return mr;
}

uint32_t mr_key(const struct rnic_mr *mr, bool remote)
{
	bool marked = remote && !to_hca(mr->ibv.context)->net->equal_keys;
	return mr->index << 8 | (uint32_t)mr->generation << 1 | marked;
}

static struct rnic_mr *find_key(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t key,
				int access)
{
	uint32_t slot = slot_of(hca, key >> 8);
	if (!slot)
		return NULL;
	struct rnic_mr *mr = hca->mr[slot];
	bool live = mr->live || MUTANT(&hca->hw, NIC_KEY_DEAD);
	return live && same_pd(mr->ibv.pd, pd) && (mr->access & access) == access ? mr : NULL;
}

static bool is_within(const struct rnic_hca *hca, const struct rnic_mr *mr, uint64_t va,
		      uint64_t len)
{
	if (MUTANT(&hca->hw, NIC_BOUNDS) && va >= mr->iova && va - mr->iova < mr->len)
		return true;
	return va >= mr->iova && len <= mr->len && va - mr->iova <= mr->len - len;
}

struct rnic_mr *mr_local(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t lkey, int access,
			 uint64_t va, uint64_t len)
{
	struct rnic_mr *mr = find_key(hca, pd, lkey, access);
	return mr && mr->ibv.lkey == lkey && is_within(hca, mr, va, len) ? mr : NULL;
}

struct rnic_mr *mr_mixed_up(struct rnic_hca *hca, const struct ibv_pd *pd, uint32_t key, int access,
			    uint64_t va, uint64_t len, bool remote)
{
	struct rnic_mr *mr = find_key(hca, pd, key, access);
	if (!mr || mr->kind != MR_REGION || mr->ibv.lkey == mr->ibv.rkey ||
	    key != (remote ? mr->ibv.lkey : mr->ibv.rkey))
		return NULL;
	return is_within(hca, mr, va, len) ? mr : NULL;
}

struct rnic_mr *mr_remote_whole(const struct rnic_qp *qp, uint32_t rkey, int access)
{
	struct rnic_mr *mr = find_key(qp->hca, qp->ibv.pd, rkey, access);
	if (!mr || mr->ibv.rkey != rkey)
		return NULL;
	assert(!mr->region || mr->region->windows);
	if (mr->region) /* it may be bound or invalidated: the order of the two matters */
		ground_touch(qp_ground(qp), TOUCH_DRAM_READ, &mr->region, sizeof(mr->region));
	return !mr->qpn || mr->qpn == qp->ibv.qp_num ? mr : NULL;
}

struct rnic_mr *mr_remote(const struct rnic_qp *qp, uint32_t rkey, int access, uint64_t va,
			  uint64_t len)
{
	struct rnic_mr *mr = mr_remote_whole(qp, rkey, access);
	return mr && is_within(qp->hca, mr, va, len) ? mr : NULL;
}

struct rnic_mr *mr_of_lkey(struct rnic_hca *hca, uint32_t lkey)
{
	uint32_t slot = slot_of(hca, lkey >> 8);
	return slot && hca->mr[slot]->live && hca->mr[slot]->ibv.lkey == lkey ? hca->mr[slot]
									      : NULL;
}

struct rnic_mr *mr_of_window(struct rnic_hca *hca, uint32_t rkey)
{
	uint32_t slot = slot_of(hca, rkey >> 8);
	return slot && hca->mr[slot]->region && hca->mr[slot]->ibv.rkey == rkey ? hca->mr[slot]
										: NULL;
}

/* --- registration --- */

/* What a registration asks for, checked. */
struct place {
	uint8_t *host;
	uint64_t len, iova;
	unsigned access;
	struct pm_place pm;
};

static int check_access(unsigned access)
{
	if (access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return EINVAL;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static int check_place(struct rnic_hca *hca, struct place *place)
{
	uint64_t len = place->len;
	uint8_t *host = place->host;
	int error = check_access(place->access);
	if (error)
		return error;
	if (!len || (uintptr_t)host + len < (uintptr_t)host || place->iova + len < place->iova)
		return EINVAL;
	if (place->access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (!host)
		return EFAULT;
	if (!(place->access & IBV_ACCESS_ZERO_BASED) && ((place->iova ^ (uintptr_t)host) & 4095))
		return EINVAL;
	return hca->memory->check(hca->memory_arg, host, len, place->access, &place->pm);
}

static void take_place(struct rnic_mr *mr, const struct place *place)
{
	mr->ibv.addr = mr->host = place->host;
	mr->ibv.length = mr->len = place->len;
	mr->iova = place->iova;
	mr->access = (int)place->access;
	mr->in_pm = place->pm.in_pm;
	mr->pm_off = place->pm.off;
}

static struct rnic_mr *reboot_image(struct rnic_hca *hca, struct ibv_pd *pd,
				    const struct place *place)
{
	for (uint32_t slot = 1; slot <= hca->mrs; slot++) {
		struct rnic_mr *mr = hca->mr[slot];
		if (!mr->used && mr->kind == MR_REGION && mr->host == place->host &&
		    mr->len == place->len && mr->iova == place->iova && mr->ibv.pd == pd) {
			mr->used = true;
			return mr;
		}
	}
	return NULL;
}

static void begin(struct rnic_mr *mr, struct ibv_pd *pd, enum mr_kind kind)
{
	struct rnic_hca *hca = to_hca(pd->context);
	assert(mr->used && !mr->live && !mr->windows);
	assert(hca->mr[slot_of(hca, mr->index)] == mr); /* its keys will lead to it */
	mr->kind = kind;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.lkey = mr_key(mr, false);
	mr->ibv.rkey = kind == MR_NULL ? 0 : mr_key(mr, true);
	mr->live = true;
	((struct rnic_pd *)pd)->users++;
	hca->objects++;
}

struct ibv_mr *rnic_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access)
{
	struct rnic_hca *hca = to_hca(pd->context);
	struct rnic_mr *mr = NULL;
	struct place place = {.host = addr, .len = length, .iova = iova, .access = access};
	if (access & IBV_ACCESS_ZERO_BASED)
		place.iova = 0;
	int error = check_place(hca, &place);
	if (!error && ground_fails(&hca->net->ground, FAIL_REG_MR))
		error = ENOMEM;
	if (!error && hca->hw.rkey_reuse)
		mr = reboot_image(hca, pd, &place);
	if (!error && !mr) {
		mr = mr_slot(hca);
		error = mr ? 0 : ENOMEM;
	}
	if (error)
		return errno_null(error);
	take_place(mr, &place);
	begin(mr, pd, MR_REGION);
	return &mr->ibv;
}

struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return rnic_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *rnic_alloc_null_mr(struct ibv_pd *pd)
{
	const struct place everything = {.len = UINT64_MAX, .access = IBV_ACCESS_LOCAL_WRITE};
	struct rnic_hca *hca = to_hca(pd->context);
	struct rnic_mr *mr = ground_fails(&hca->net->ground, FAIL_REG_MR) ? NULL : mr_slot(hca);
	if (!mr)
		return errno_null(ENOMEM);
	take_place(mr, &everything);
	begin(mr, pd, MR_NULL);
	return &mr->ibv;
}

void mr_settle(struct rnic_hca *hca, const struct rnic_mr *mr)
{
	for (uint32_t i = 0; i < hca->net->qps; i++) {
		struct rnic_qp *qp = hca->net->qp[i];
		if (qp && qp->hca == hca)
			land_all(qp, mr);
	}
}

int rnic_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	struct rnic_mr *mr = (struct rnic_mr *)ibv;
	struct rnic_hca *hca = to_hca(ibv->context);
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION,
	     changes = flags & IBV_REREG_MR_CHANGE_ACCESS;
	struct place place = {.host = moves ? addr : mr->host,
			      .len = moves ? length : mr->len,
			      .access = (unsigned)(changes ? access : mr->access)};
	place.iova = moves || mr->access & IBV_ACCESS_ZERO_BASED ? (uintptr_t)place.host : mr->iova;
	if (place.access & IBV_ACCESS_ZERO_BASED)
		place.iova = 0;
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || (moves && (!addr || !length)) ||
	    (access && !changes) ||
	    (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != ibv->context)) || !mr->live ||
	    mr->kind != MR_REGION) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	int error = mr->windows ? EBUSY : check_place(hca, &place);
	if (!error && ground_fails(&hca->net->ground, FAIL_REG_MR))
		error = ENOMEM;
	if (error) {
		errno = error;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr_settle(hca, mr);
	assert(mr->used && mr->live && !mr->windows);
	assert(((struct rnic_pd *)ibv->pd)->users);
	take_place(mr, &place);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		((struct rnic_pd *)ibv->pd)->users--;
		ibv->pd = pd;
		((struct rnic_pd *)pd)->users++;
	}
	return 0;
}

int rnic_dereg_mr(struct ibv_mr *ibv)
{
	struct rnic_mr *mr = (struct rnic_mr *)ibv;
	struct rnic_hca *hca = to_hca(ibv->context);
	struct rnic_pd *pd = (struct rnic_pd *)ibv->pd;
	if (!mr->live)
		return EINVAL;
	if (mr->windows)
		return EBUSY;
	mr_settle(hca, mr);
	assert(mr->used && mr->live && !mr->windows); /* landing takes nothing away */
	mr->live = mr->used = false;
	assert(pd->users && hca->objects);
	pd->users--;
	hca->objects--;
	return 0;
}

void rnic_key_place(const struct rnic_net *net, uint32_t rkey, uint64_t va, char *buf, size_t size)
{
	uint32_t host = (rkey >> 24) - 1, slot = rkey >> 8 & 0xffff;
	const struct rnic_mr *mr = NULL;
	if (host < net->hosts && net->hca[host] && slot && slot <= net->hca[host]->mrs)
		mr = net->hca[host]->mr[slot];
	if (!mr || mr->ibv.rkey != rkey || va < mr->iova)
		snprintf(buf, size, "unknown key 0x%x", rkey);
	else if (mr->in_pm)
		net->hca[host]->memory->place_name(net->hca[host]->memory_arg,
						   mr->pm_off + (va - mr->iova), buf, size);
	else
		snprintf(buf, size, "key 0x%x + 0x%llx", rkey, (unsigned long long)(va - mr->iova));
}
