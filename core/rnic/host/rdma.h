/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_RDMA_H
#define TM_RNIC_HOST_RDMA_H
/* librdmacm's functions, for the store code of a simulation: core/stores/sim.syms renames them. */
#include <rdma/rdma_cma.h>

struct rdma_event_channel *sim_rdma_create_event_channel(void);
void sim_rdma_destroy_event_channel(struct rdma_event_channel *channel);
int sim_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int sim_rdma_ack_cm_event(struct rdma_cm_event *event);
const char *sim_rdma_event_str(enum rdma_cm_event_type event);

struct ibv_context **sim_rdma_get_devices(int *num);
void sim_rdma_free_devices(struct ibv_context **list);
int sim_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		       enum rdma_port_space ps);
int sim_rdma_destroy_id(struct rdma_cm_id *id);
int sim_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);
int sim_rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len);

int sim_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int sim_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms);
int sim_rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);
__be16 sim_rdma_get_src_port(struct rdma_cm_id *id);
__be16 sim_rdma_get_dst_port(struct rdma_cm_id *id);
int sim_rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res);
void sim_rdma_freeaddrinfo(struct rdma_addrinfo *res);

int sim_rdma_listen(struct rdma_cm_id *id, int backlog);
int sim_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int sim_rdma_establish(struct rdma_cm_id *id);
int sim_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int sim_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes);
int sim_rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);
int sim_rdma_disconnect(struct rdma_cm_id *id);

int sim_rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init);
int sim_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *init);
void sim_rdma_destroy_qp(struct rdma_cm_id *id);
int sim_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int sim_rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
void sim_rdma_destroy_srq(struct rdma_cm_id *id);
int sim_rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *init);
void sim_rdma_destroy_ep(struct rdma_cm_id *id);
int sim_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

#endif
