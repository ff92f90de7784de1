/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): the soft RNIC's own is memory of the process that the program
 * cannot reach but by ibv_memcpy_*_dm() and by work requests. A region of it is like any other, and
 * counts from zero.
 *
 * Offsets and lengths are multiples of four bytes, as with cards whose memory is reached by words.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/provider/base/context.h"
#include "core/provider/verbs/verbs.h"

#define WORD	  4  /* bytes */
#define MAX_ALIGN 12 /* log 2 */

struct dm {
	struct ibv_dm ibv; /* first: what the program holds */
	uint8_t *memory;
	size_t length;
};

/* What of the device's memory is taken, by whichever context. */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
static size_t taken;
static uint32_t handles;

static bool within(const struct dm *dm, uint64_t off, size_t length)
{
	return off % WORD == 0 && length % WORD == 0 && off <= dm->length &&
	       length <= dm->length - off;
}

static int to_dm(struct ibv_dm *ibv, uint64_t off, const void *from, size_t length)
{
	struct dm *dm = (struct dm *)ibv;

	if (!within(dm, off, length))
		return EINVAL;
	memcpy(dm->memory + off, from, length);
	return 0;
}

static int from_dm(void *to, struct ibv_dm *ibv, uint64_t off, size_t length)
{
	const struct dm *dm = (const struct dm *)ibv;

	if (!within(dm, off, length))
		return EINVAL;
	memcpy(to, dm->memory + off, length);
	return 0;
}

/* Take so many bytes of what there is; the new object's number, 0: there is not as much. */
static uint32_t take(size_t length)
{
	uint32_t handle = 0;

	pthread_mutex_lock(&taking);
	if (length <= NIC_DM_BYTES - taken) {
		taken += length;
		handle = ++handles;
	}
	pthread_mutex_unlock(&taking);
	return handle;
}

static void give_back(size_t length)
{
	pthread_mutex_lock(&taking);
	taken -= length;
	pthread_mutex_unlock(&taking);
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	size_t align = (size_t)1 << (attr->log_align_req < 6 ? 6 : attr->log_align_req);
	struct dm *dm;

	if (attr->comp_mask || !attr->length || attr->length > NIC_DM_BYTES ||
	    attr->log_align_req > MAX_ALIGN) {
		errno = EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->ibv.handle = take(attr->length);
	if (!dm->ibv.handle) {
		free(dm);
		errno = ENOMEM;
		return NULL;
	}
	dm->length = attr->length;
	dm->memory = aligned_alloc(align, (attr->length + align - 1) / align * align);
	if (!dm->memory) {
		give_back(dm->length);
		free(dm);
		return NULL;
	}
	memset(dm->memory, 0, attr->length);
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = to_dm;
	dm->ibv.memcpy_from_dm = from_dm;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	return &dm->ibv;
}

/* Is there a region of it? */
static bool registered(const struct dm *dm)
{
	struct rnic_hca *hca = to_hca(dm->ibv.context);

	for (uint32_t i = 1; i <= hca->mrs; i++) {
		const struct rnic_mr *mr = hca->mr[i];

		if (mr && mr->live && mr->host >= dm->memory && mr->host < dm->memory + dm->length)
			return true;
	}
	return false;
}

static int free_dm(struct ibv_dm *ibv)
{
	struct dm *dm = (struct dm *)ibv;

	if (LOCKED(bool, registered(dm)))
		return EBUSY;
	free(dm->memory);
	give_back(dm->length);
	free(dm);
	return 0;
}

/* Of no bytes, too: then there is nothing that a work request may reach. */
static struct ibv_mr *reg(struct ibv_pd *pd, struct dm *dm, uint64_t off, size_t length,
			  unsigned access)
{
	struct ibv_mr *mr = rnic_reg_mr_iova2(pd, dm->memory + (length ? off : 0),
					      length ? length : WORD, 0, access);

	if (!mr)
		return NULL;
	mr->addr = NULL; /* nobody knows where a card's memory is */
	if (!length)
		mr->length = ((struct rnic_mr *)mr)->len = 0;
	return mr;
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t off, size_t length,
				unsigned access)
{
	struct dm *dm = (struct dm *)ibv;

	if (!(access & IBV_ACCESS_ZERO_BASED) || !within(dm, off, length) ||
	    pd->context != ibv->context) {
		errno = EINVAL;
		return NULL;
	}
	return LOCKED(struct ibv_mr *, reg(pd, dm, off, length, access));
}

void nic_dm_calls(struct verbs_context *verbs)
{
	verbs->alloc_dm = alloc_dm;
	verbs->free_dm = free_dm;
	verbs->reg_dm_mr = reg_dm_mr;
}
