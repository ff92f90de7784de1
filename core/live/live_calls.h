/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_CALLS_H
#define TM_LIVE_CALLS_H
/*
 * What store sources see first when they are compiled for the live world: every call that
 * reaches outside of the store goes to a function with live_ in front of its name, which
 * may be told to fail (fails.h), and books what it hands out for the host (live.h). Calls
 * not named here, ibv_wr_start() for one, go straight to the library.
 *
 * The headers come before the names, so that it is the calls that are renamed.
 */
#include <infiniband/verbs.h>
#include <libpmem.h>
#include <stdlib.h>
#include "core/live/live_pm.h"
#include "core/live/live_flush.h"
#include "core/rt/config.h"
#include "core/rt/rt.h"

/* live.c */
int live_rt_spawn(const char *name, void (*fn)(void *arg), void *arg);
void live_rt_yield(void);
void live_rt_sleep(uint64_t ns);
uint64_t live_rt_now(void);
int live_rt_listen(rt_accept_fn *fn, void *arg);
int live_rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len);
bool live_rt_pm_full(void);
void live_rt_client_dropped(uint32_t client);

/* live_peers.c */
int live_rt_connect_to(unsigned server, const void *req, size_t req_len, void *rsp, size_t rsp_len);
int live_rt_config_get(struct rt_config *now);
int live_rt_config_set(const struct rt_config *next);
int live_rt_config_wait(struct rt_config *known);
uint64_t live_rt_config_lease(const struct rt_config *known);

/* live_memory.c */
void *live_malloc(size_t size);
void *live_calloc(size_t n, size_t size);
void *live_realloc(void *old, size_t size);
int live_posix_memalign(void **out, size_t align, size_t size);
void live_free(void *p);

/* live_verbs.c */
int live_destroy(void *object); /* of any kind */
struct ibv_pd *live_alloc_pd(struct ibv_context *context);
struct ibv_mr *live_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access);
struct ibv_cq *live_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int vector);
struct ibv_qp *live_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *live_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int live_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int live_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int live_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
int live_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
int live_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int live_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int live_wr_complete(struct ibv_qp_ex *qp);
int live_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);

#ifndef TM_LIVE_HOST_H /* not in the sources that implement these */

#define rt_spawn	live_rt_spawn
#define rt_yield	live_rt_yield
#define rt_sleep	live_rt_sleep
#define rt_now		live_rt_now
#define rt_listen	live_rt_listen
#define rt_connect	live_rt_connect
#define rt_connect_to	live_rt_connect_to
#define rt_config_get	live_rt_config_get
#define rt_config_set	live_rt_config_set
#define rt_config_wait	live_rt_config_wait
#define rt_config_lease live_rt_config_lease
#define rt_pm_full	live_rt_pm_full
/* Nothing is taken away from a live store. */
#define rt_check(holds)	 (holds)
#define rt_duration(ns)	 (ns)
#define rt_waits(caller) ((void)(caller), true)
/* Its errors are not judged. */
#define rt_client_dropped live_rt_client_dropped

#define malloc	       live_malloc
#define calloc	       live_calloc
#define realloc	       live_realloc
#define posix_memalign live_posix_memalign
#define free	       live_free

#undef ibv_reg_mr
#undef ibv_query_port
#define ibv_alloc_pd	 live_alloc_pd
#define ibv_dealloc_pd	 live_destroy
#define ibv_reg_mr	 live_reg_mr
#define ibv_dereg_mr	 live_destroy
#define ibv_create_cq	 live_create_cq
#define ibv_destroy_cq	 live_destroy
#define ibv_create_qp	 live_create_qp
#define ibv_create_qp_ex live_create_qp_ex
#define ibv_modify_qp	 live_modify_qp
#define ibv_destroy_qp	 live_destroy
#define ibv_query_device live_query_device
#define ibv_query_port	 live_query_port
#define ibv_query_gid	 live_query_gid
#define ibv_post_send	 live_post_send
#define ibv_post_recv	 live_post_recv
#define ibv_wr_complete	 live_wr_complete
#define ibv_wr_flush	 live_wr_flush
#define ibv_poll_cq	 live_poll_cq

#define pmem_flush	    live_pmem_flush
#define pmem_drain	    live_pmem_drain
#define pmem_persist	    live_pmem_persist
#define pmem_memcpy	    live_pmem_memcpy
#define pmem_memset	    live_pmem_memset
#define pmem_memcpy_persist live_pmem_memcpy_persist
#define pmem_memcpy_nodrain live_pmem_memcpy_nodrain
#define pmem_memset_persist live_pmem_memset_persist

#endif
#endif
