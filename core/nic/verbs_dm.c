/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory: memory of the card, which programs register and reach by copies only. The soft card's is the
 * process's, like all that it has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/nic/context.h"
#include "core/nic/verbs.h"

#define MAX_ALIGN_LOG 20

struct nic_dm {
	struct ibv_dm ibv;
	uint8_t *bytes;
	size_t len;
};

static bool holds(const struct nic_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->len && length <= dm->len - offset;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	struct nic_dm *dm = (struct nic_dm *)ibv;

	if (!holds(dm, offset, length))
		return EINVAL;
	memcpy(dm->bytes + offset, from, length);
	return 0;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	struct nic_dm *dm = (struct nic_dm *)ibv;

	if (!holds(dm, offset, length))
		return EINVAL;
	memcpy(to, dm->bytes + offset, length);
	return 0;
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct nic_dm *dm;
	size_t align;

	if (attr->comp_mask || !attr->length || attr->length > MAX_DM || attr->log_align_req > MAX_ALIGN_LOG) {
		errno = attr->comp_mask ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
	/* A region's address and what it counts from lie alike in their pages. */
	align = (size_t)1 << (attr->log_align_req < 12 ? 12 : attr->log_align_req);
	dm = calloc(1, sizeof(*dm));
	if (dm)
		dm->bytes = aligned_alloc(align, (attr->length + align - 1) / align * align);
	if (!dm || !dm->bytes) {
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	memset(dm->bytes, 0, attr->length);
	dm->len = attr->length;
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	return &dm->ibv;
}

/* Is any region in it registered? */
static bool is_used(const struct nic_dm *dm)
{
	const struct rnic_hca *hca = to_hca(dm->ibv.context);

	for (uint32_t i = 1; i <= hca->mrs; i++) {
		const struct rnic_mr *mr = hca->mr[i];

		if (mr && mr->live && mr->host >= dm->bytes && mr->host <= dm->bytes + dm->len)
			return true;
	}
	return false;
}

static int free_dm(struct ibv_dm *ibv)
{
	struct nic_dm *dm = (struct nic_dm *)ibv;

	if (LOCKED(bool, is_used(dm)))
		return EBUSY;
	free(dm->bytes);
	free(dm);
	return 0;
}

/* Addresses count from 0 only: nobody knows where a card's memory is. */
static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
				unsigned access)
{
	struct nic_dm *dm = (struct nic_dm *)ibv;
	struct ibv_mr *mr;

	if (!(access & IBV_ACCESS_ZERO_BASED) || !holds(dm, offset, length) || dm->ibv.context != pd->context) {
		errno = EINVAL;
		return NULL;
	}
	mr = LOCKED(struct ibv_mr *, rnic_reg_mr(pd, dm->bytes + offset, length, (int)access));
	if (mr)
		mr->addr = NULL;
	return mr;
}

void nic_dm_calls(struct verbs_context *verbs)
{
	verbs->alloc_dm = alloc_dm;
	verbs->free_dm = free_dm;
	verbs->reg_dm_mr = reg_dm_mr;
}
