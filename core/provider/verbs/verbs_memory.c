/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' functions for memory: protection domains, thread and parent domains, regions,
 * windows. verbs_none.c refuses what a device may lack, such as device memory.
 */
#include "core/provider/base/fault_safe.h"
#include "core/provider/base/recorded_memory.h"
#include "core/provider/verbs/verbs.h"

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return MADE_OF(pd, LOCKED(struct ibv_mw *, rnic_alloc_mw(pd, type)));
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return CALL(rnic_bind_mw(qp, mw, bind));
}

static int dealloc_mw(struct ibv_mw *mw)
{
	return CALL(nic_has_mw(mw) ? rnic_dealloc_mw(mw) : ENOENT);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	return MADE_OF(pd, LOCKED(struct ibv_mr *, rnic_alloc_null_mr(pd)));
}

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	return LOCKED(struct ibv_td *, rnic_alloc_td(context, attr));
}

static int dealloc_td(struct ibv_td *td)
{
	return CALL(rnic_dealloc_td(td));
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr)
{
	return NAMED(LOCKED(struct ibv_pd *, rnic_alloc_parent_domain(context, attr)));
}

void verbs_enable_memory(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);
	struct ibv_context_ops *ops = &context->ops;

	fault_safe_guard();
	ops->alloc_mw = alloc_mw;
	ops->bind_mw = bind_mw;
	ops->dealloc_mw = dealloc_mw;
	hca->verbs.alloc_null_mr = alloc_null_mr;
	hca->verbs.alloc_td = alloc_td;
	hca->verbs.dealloc_td = dealloc_td;
	hca->verbs.alloc_parent_domain = alloc_parent_domain;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	return NAMED(LOCKED(struct ibv_pd *, rnic_alloc_pd(context)));
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return CALL_OF(pd, rnic_dealloc_pd(pd));
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return MADE_OF(pd, LOCKED(struct ibv_mr *, rnic_reg_mr(pd, addr, length, access)));
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access)
{
	return MADE_OF(pd,
		       LOCKED(struct ibv_mr *, rnic_reg_mr_iova2(pd, addr, length, iova, access)));
}

EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access)
{
	return CALL(rnic_rereg_mr(mr, flags, pd, addr, length, access));
}

static int dereg_mr(struct ibv_mr *mr)
{
	if (!nic_has_mr(mr))
		return ENOENT;
	process_deregisters(mr->addr, mr->length);
	return rnic_dereg_mr(mr);
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	return CALL(dereg_mr(mr));
}
