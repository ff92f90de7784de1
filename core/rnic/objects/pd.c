/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains; parent domains, each of which stands for a protection domain in every call;
 * thread domains.
 *
 * Each call of the soft RNIC is safe for threads, whichever thread made the objects. So the promise
 * of a thread domain is not needed, and it is only counted. Rings are not put into memory of the
 * user's, so a parent domain's allocators are never asked, as an allocator may always be passed
 * over.
 */
#include "core/rnic/objects/pd.h"
#include <assert.h>
#include <errno.h>
#include "core/fail.h"
#include "core/rnic/objects/device.h"

struct rnic_td {
	struct ibv_td ibv;
	unsigned users;
	bool dead;
};

struct ibv_pd *rnic_alloc_pd(struct ibv_context *context)
{
	if (to_hca(context)->pds == MAX_OBJECTS ||
	    ground_fails(&to_hca(context)->net->ground, FAIL_ALLOC_PD))
		return errno_null(ENOMEM);
	struct rnic_pd *pd = ground_alloc(&to_hca(context)->net->ground, sizeof(*pd));
	pd->ibv.context = context;
	to_hca(context)->objects++;
	to_hca(context)->pds++;
	assert(to_hca(context)->pds <= MAX_OBJECTS && hca_adds_up(to_hca(context)));
	assert(!pd->users && !pd->dead);
	return &pd->ibv;
}

int rnic_dealloc_pd(struct ibv_pd *ibv)
{
	struct rnic_pd *pd = (struct rnic_pd *)ibv;
	struct rnic_td *td = (struct rnic_td *)pd->td;
	if (pd->dead)
		return EINVAL;
	if (pd->users)
		return EBUSY;
	/* What has a user is not given back. */
	assert(!pd->base || (pd->base->users && !pd->base->dead));
	assert(!td || (td->users && !td->dead));
	if (pd->base)
		pd->base->users--;
	if (td)
		td->users--;
	pd->dead = true;
	assert(to_hca(ibv->context)->pds && hca_adds_up(to_hca(ibv->context)));
	to_hca(ibv->context)->objects--;
	to_hca(ibv->context)->pds--;
	return 0;
}

struct ibv_td *rnic_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	if (attr->comp_mask)
		return errno_null(EINVAL);
	struct rnic_td *td = ground_alloc(&to_hca(context)->net->ground, sizeof(*td));
	td->ibv.context = context;
	to_hca(context)->objects++;
	return &td->ibv;
}

int rnic_dealloc_td(struct ibv_td *ibv)
{
	struct rnic_td *td = (struct rnic_td *)ibv;
	if (td->dead)
		return EINVAL;
	if (td->users)
		return EBUSY;
	td->dead = true;
	assert(to_hca(ibv->context)->objects);
	to_hca(ibv->context)->objects--;
	assert(hca_adds_up(to_hca(ibv->context)));
	return 0;
}

struct ibv_pd *rnic_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct rnic_pd *base = (struct rnic_pd *)attr->pd, *pd;
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	if (!base || base->dead || base->base || base->ibv.context != context ||
	    attr->comp_mask & ~known ||
	    (attr->td && (attr->td->context != context || ((struct rnic_td *)attr->td)->dead)))
		return errno_null(EINVAL);
	pd = (struct rnic_pd *)rnic_alloc_pd(context);
	if (!pd)
		return NULL;
	pd->base = base;
	base->users++;
	pd->td = attr->td;
	if (pd->td)
		((struct rnic_td *)pd->td)->users++;
	assert(same_pd(&pd->ibv, &base->ibv));
	assert(!base->base); /* one step leads to the domain that it stands for */
	return &pd->ibv;
}
