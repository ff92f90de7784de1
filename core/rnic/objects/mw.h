/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_OBJECTS_MW_H
#define TM_RNIC_OBJECTS_MW_H
/* Memory windows: binding them and taking them away. mw.c */
#include "core/rnic/objects/mr.h"

struct wqe;

/* Bind, or invalidate, as the request says; IBV_WC_SUCCESS, or why not. */
enum ibv_wc_status mw_execute(struct rnic_qp *qp, const struct wqe *wqe);
/* May the peer of this queue pair invalidate the key? Do it. */
bool mw_may_invalidate(const struct rnic_qp *qp, uint32_t rkey);
void mw_invalidate(struct rnic_qp *qp, uint32_t rkey);
/* The queue pair goes: so do the windows that serve it alone. */
void mw_drop_qp(struct rnic_qp *qp);
/* Make the request, an IBV_WR_BIND_MW, bind this window as `rkey`. */
int mw_fill(struct rnic_qp *qp, struct wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	    const struct ibv_mw_bind_info *info);

#endif
