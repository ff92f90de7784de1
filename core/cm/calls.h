/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CM_CALLS_H
#define TM_CM_CALLS_H
/*
 * librdmacm's functions. Their symbols are librdmacm's in the provider's libraries; in a simulation
 * those that store code is linked with (core/stores/sim.syms), also that which was compiled long
 * ago.
 */
#include <rdma/rdma_cma.h>

#ifdef TM_CM_PROVIDER
#define CALL(name) __asm__("rdma_" #name) __attribute__((visibility("default")))
#else
#define CALL(name) __asm__("sim_rdma_" #name)
#endif

struct rdma_event_channel *cm_create_event_channel(void) CALL(create_event_channel);
void cm_destroy_event_channel(struct rdma_event_channel *channel) CALL(destroy_event_channel);
int cm_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
	CALL(get_cm_event);
int cm_ack_cm_event(struct rdma_cm_event *event) CALL(ack_cm_event);
const char *cm_event_str(enum rdma_cm_event_type event) CALL(event_str);

struct ibv_context **cm_get_devices(int *num) CALL(get_devices);
void cm_free_devices(struct ibv_context **list) CALL(free_devices);
int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		 enum rdma_port_space ps) CALL(create_id);
int cm_destroy_id(struct rdma_cm_id *id) CALL(destroy_id);
int cm_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel) CALL(migrate_id);
int cm_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
	CALL(set_option);
int cm_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece) CALL(set_local_ece);
int cm_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece) CALL(get_remote_ece);

int cm_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr) CALL(bind_addr);
int cm_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		    int timeout_ms) CALL(resolve_addr);
int cm_resolve_route(struct rdma_cm_id *id, int timeout_ms) CALL(resolve_route);
__be16 cm_get_src_port(struct rdma_cm_id *id) CALL(get_src_port);
__be16 cm_get_dst_port(struct rdma_cm_id *id) CALL(get_dst_port);
int cm_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo **res) CALL(getaddrinfo);
void cm_freeaddrinfo(struct rdma_addrinfo *res) CALL(freeaddrinfo);

int cm_listen(struct rdma_cm_id *id, int backlog) CALL(listen);
int cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *param) CALL(connect);
int cm_establish(struct rdma_cm_id *id) CALL(establish);
int cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *param) CALL(accept);
int cm_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes) CALL(reject);
int cm_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t bytes) CALL(reject_ece);
int cm_notify(struct rdma_cm_id *id, enum ibv_event_type event) CALL(notify);
int cm_disconnect(struct rdma_cm_id *id) CALL(disconnect);

int cm_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
	CALL(create_qp);
int cm_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init) CALL(create_qp_ex);
void cm_destroy_qp(struct rdma_cm_id *id) CALL(destroy_qp);
int cm_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask) CALL(init_qp_attr);
int cm_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
	CALL(create_srq);
void cm_destroy_srq(struct rdma_cm_id *id) CALL(destroy_srq);
int cm_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *init) CALL(create_ep);
void cm_destroy_ep(struct rdma_cm_id *id) CALL(destroy_ep);
int cm_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id) CALL(get_request);

#endif
