/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_PD_H
#define TM_RNIC_OBJECTS_PD_H
/* Protection domains, and parent domains, which stand for one: pd.c. */
#include <infiniband/verbs.h>
#include <stdbool.h>

struct rnic_pd {
	struct ibv_pd ibv;
	unsigned users; /* memory regions, windows, queue pairs, shared receive queues, address
			   handles, parent domains */
	struct rnic_pd *base; /* of a parent domain: the one that it stands for; NULL: itself */
	struct ibv_td *td;
	bool dead;
};
/* A parent domain may be used wherever its own domain may. */
static inline bool same_pd(const struct ibv_pd *a, const struct ibv_pd *b)
{
	const struct rnic_pd *x = (const struct rnic_pd *)a, *y = (const struct rnic_pd *)b;
	return x == y || (x->base ? x->base : x) == (y->base ? y->base : y);
}

#endif
