/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs' functions of address handles. */
#include "core/provider/verbs/verbs.h"

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return MADE_OF(pd, NAMED(LOCKED(struct ibv_ah *, rnic_create_ah(pd, attr))));
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	return CALL_OF(ah, rnic_destroy_ah(ah));
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	return LOCKED(int, rnic_init_ah_from_wc(context, port, wc, grh, attr));
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port)
{
	return MADE_OF(pd,
		       NAMED(LOCKED(struct ibv_ah *, rnic_create_ah_from_wc(pd, wc, grh, port))));
}
