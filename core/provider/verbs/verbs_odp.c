/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paging on demand. The soft RNIC touches memory as the program does, so pages come when they are
 * touched; advice (ibv_advise_mr(3)) has them come before.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/provider/base/context.h"
#include "core/provider/verbs/verbs.h"

/* Linux has them from 5.14 on. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

void nic_odp_caps(struct ibv_odp_caps *caps)
{
	const uint32_t send = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			      IBV_ODP_SUPPORT_SRQ_RECV;

	caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = send | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
					       IBV_ODP_SUPPORT_ATOMIC;
	caps->per_transport_caps.uc_odp_caps = (send | IBV_ODP_SUPPORT_WRITE) &
					       ~IBV_ODP_SUPPORT_SRQ_RECV;
	caps->per_transport_caps.ud_odp_caps = send;
}

uint32_t nic_odp_xrc_caps(void)
{
	return IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE |
	       IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
}

/* May the range be advised on? */
static int check(struct ibv_pd *pd, const struct ibv_sge *sge, bool writes)
{
	const struct rnic_mr *mr = mr_of_lkey(to_hca(pd->context), sge->lkey);

	if (!mr)
		return EFAULT;
	if (!same_pd(mr->ibv.pd, pd))
		return EPERM;
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (sge->addr < mr->iova || sge->length > mr->len ||
	    sge->addr - mr->iova > mr->len - sge->length)
		return EFAULT;
	return writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE) ? EPERM : 0;
}

/* The lists's memory, in the program's addresses. */
static void *place_of(struct ibv_pd *pd, const struct ibv_sge *sge)
{
	const struct rnic_mr *mr = mr_of_lkey(to_hca(pd->context), sge->lkey);

	return mr ? mr_host(mr, sge->addr) : NULL;
}

/* What is not mapped cannot come; a kernel that does not know how to fetch pages leaves them where
 * they
 * are. */
static int fetch(void *at, size_t len, bool writes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at & ~(page - 1);
	uintptr_t end = ((uintptr_t)at + len + page - 1) & ~(page - 1);

	if (madvise((void *)first, 0, MADV_POPULATE_READ))
		return 0;
	if (madvise((void *)first, end - first, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return EFAULT;
	return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *list, uint32_t n)
{
	bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !n)
		return EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		int error = LOCKED(int, check(pd, &list[i], writes));

		if (error)
			return error;
	}
	for (uint32_t i = 0; i < n && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; i++) {
		void *at = LOCKED(void *, place_of(pd, &list[i]));
		int error = at ? fetch(at, list[i].length, writes) : EFAULT;

		if (error && flags & IBV_ADVISE_MR_FLAG_FLUSH)
			return error; /* without it nobody waits for what comes of it */
	}
	return 0;
}

void nic_odp_calls(struct verbs_context *verbs)
{
	verbs->advise_mr = advise_mr;
}
