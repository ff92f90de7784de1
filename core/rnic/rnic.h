/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_RNIC_H
#define TM_RNIC_RNIC_H
/*
 * The soft RNIC: a verbs provider. Store code calls <infiniband/verbs.h>; in a
 * simulation its objects are linked with ibv_* renamed to rnic_* (core/stores/sim.syms).
 * ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq go through the context's ops table
 * as they do in libibverbs, ibv_create_qp_ex and ibv_query_device_ex through its extended table,
 * ibv_wr_* through the queue pair, and need no renaming.
 */
#include <infiniband/verbs.h>
#include "core/hardware/hardware.h"

struct link;
struct pmem;
struct rnic_ground;
struct rnic_memory;
struct rnic_net; /* the hosts' RNICs and the link between them */
struct sim;

/* In a simulation: RNICs of hosts 0, 1, ... on a simulated link. They are in the simulation's
 * arena, and gone at sim_reset(). `hw` is copied. */
struct rnic_net *rnic_net_new(struct sim *sim, const struct hardware *hw);
/* The RNIC of a host. `pm`: the host's pool or NULL. */
struct ibv_context *rnic_open(struct rnic_net *net, unsigned host, struct pmem *pm);

/* The same for a process of the host that begins when the one that had `old` has ended, and `old`
 * is closed. Keys and queue pair numbers go on where the old ones ended; or, knob restart_reuse,
 * begin again. NULL as above. */
struct ibv_context *rnic_open_again(struct ibv_context *old, struct pmem *pm);
/* What a kernel does when the process ends: destroys its queue pairs, after what they have let in
 * has landed, and deregisters its regions. */
void rnic_close(struct ibv_context *context);

/* The same when the host loses its power (sim_set_power()): nothing lands any more, and nothing
 * that its NIC has not sent leaves it. */
void rnic_power_off(struct ibv_context *context);

/* On any ground and link, for so many hosts, with the numbers [first, limit) for their queue
 * pairs. */
struct rnic_net *rnic_net_on(const struct rnic_ground *ground, const struct hardware *hw,
			     struct link *link, unsigned hosts, uint32_t first, uint32_t limit);
struct ibv_context *rnic_open_on(struct rnic_net *net, unsigned host,
				 const struct rnic_memory *memory, void *memory_arg);
/* Protection domains, regions, completion queues, queue pairs that the host has not given back. */
unsigned rnic_objects(struct ibv_context *context);

/* The verbs that are functions in libibverbs: same signatures, same errors. */
int rnic_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
/* In the context's table. */
int rnic_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t len);
/* `len`: of the caller's structure, which may be older. */
int rnic_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		       size_t len);
int rnic_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
/* Only what ibv_query_port() falls back to for a context that is not extended. */
int rnic_query_port(struct ibv_context *context, uint8_t port_num,
		    struct _compat_ibv_port_attr *attr);
int rnic_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);
int rnic_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey);
int rnic_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey);
const char *rnic_get_device_name(struct ibv_device *device);
struct ibv_pd *rnic_alloc_pd(struct ibv_context *context);
int rnic_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *rnic_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access);
int rnic_dereg_mr(struct ibv_mr *mr);
/* enum ibv_rereg_mr_err_code and errno; the region stays as it was. */
int rnic_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access);
/* These are in the context's tables. */
struct ibv_mr *rnic_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *rnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int rnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int rnic_dealloc_mw(struct ibv_mw *mw);
struct ibv_td *rnic_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int rnic_dealloc_td(struct ibv_td *td);
struct ibv_pd *rnic_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_cq *rnic_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
/* In the context's table, for ibv_create_cq_ex(); see cq_ex.c. */
struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
/* EINVAL: the queue has more entries in it. */
int rnic_resize_cq(struct ibv_cq *cq, int cqe);
int rnic_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int rnic_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *rnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* In the context's table, for ibv_create_qp_ex(); qp.c says what it may ask for. */
struct ibv_qp *rnic_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* NULL: not created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS. */
struct ibv_qp_ex *rnic_qp_to_qp_ex(struct ibv_qp *qp);
int rnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int rnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int rnic_destroy_qp(struct ibv_qp *qp);
struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rnic_destroy_ah(struct ibv_ah *ah);
int rnic_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *rnic_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num);
struct ibv_srq *rnic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
/* In the context's table, for ibv_create_srq_ex(): the basic type. */
struct ibv_srq *rnic_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int rnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int rnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
/* In the context's table, for ibv_get_srq_num(). */
int rnic_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int rnic_destroy_srq(struct ibv_srq *srq);
const char *rnic_wc_status_str(enum ibv_wc_status status);
const char *rnic_node_type_str(enum ibv_node_type type);
const char *rnic_port_state_str(enum ibv_port_state state);
/* As in enum ibv_wc_status, shortened. */
const char *rnic_wc_status_name(enum ibv_wc_status status);
const char *rnic_event_type_str(enum ibv_event_type type);
/* The context of an event's object; NULL: an event of the port. */
struct ibv_context *rnic_event_context(const struct ibv_async_event *event);

#endif
