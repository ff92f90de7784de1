/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RNIC_HOST_HOST_H
#define TM_RNIC_HOST_HOST_H
/*
 * What the libraries and the kernel of a simulated host add to its RNIC: libibverbs' list of
 * devices, its completion channels and asynchronous events, and librdmacm. Calls of store code come
 * here by core/stores/sim.syms.
 *
 *   host.c     hosts and their processes
 *   devices.c  the list of devices; names
 *   events.c   waiting; the ground of completion channels and asynchronous events
 *   cm.c       the ground of the connection manager (core/cm)
 *
 * The kernel of a host lives as long as its machine, longer than the process: it closes what the
 * process leaves open, and answers for it. Nothing of all this exists before the first call that
 * needs it.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include "core/cm/cm.h"
#include "core/rnic/events.h"
#include "core/rnic/objects/device.h"
#include "core/rt/sim.h"

struct descriptor_kind;
struct place;

/* A process of a host, from its first call on. */
struct process {
	struct host *host;
	struct rnic_hca *hca;
	struct async_events async; /* without a descriptor: it has not opened the device */
	struct ibv_pd *pd;	   /* of librdmacm; NULL: not needed yet */
};

/* The part of a host that lives as long as the machine. */
struct host {
	struct hosts *all;
	unsigned number;
	struct process *process; /* NULL: none that has made such a call */
	/* The connection manager's. */
	struct cm cm;
	struct actor talker;  /* sends its messages; its name is empty until the first one */
	uint32_t last_number; /* communication IDs given out */
	uint16_t last_port;   /* ephemeral ports given out */
	uint32_t psn;	      /* of queue pair 1 */
};

struct hosts {
	struct rnic_net *net;
	struct happened *free_happened;
	struct place *free_place; /* identifiers of connection managers */
	struct cm_event *free_event;
	struct host *host[SIM_HOSTS];
};

/* The host with this number, made if need be. */
struct host *host_of(struct rnic_net *net, unsigned number);
/* The process of a context. */
struct process *process_of(struct ibv_context *context);
/* The same if it has made a call of these before; else NULL. */
struct process *process_known(struct ibv_context *context);
/* The current task's; NULL: its host has no RNIC, and errno is ENODEV. */
struct process *process_here(void);
struct sim *host_sim(const struct host *host);

/* --- events.c --- */

/* The program is about to wait for what `key` stands for: let others run. */
void host_wait(const struct host *host, const void *key);
/* The program takes something out of `list`: wait until there is something, as `object` of this
 * kind says, and take the step that the taking is. False: there is nothing, and the descriptor is
 * set not to wait; errno is EAGAIN. */
bool host_await(const struct host *host, const struct descriptor_kind *kind, const void *object,
		const void *list, int fd);
/* A call of the program acts on its kernel, as a posted request does on its NIC: a step of the
 * task, which may be delayed before it. */
void host_call(const struct host *host);
/* It has taken the nth of all the things that `list` has received. */
void host_took(const struct host *host, const void *list, uint64_t nth);
/* Something was put into a list: tasks that wait for `key`, or poll, look. */
void host_put(const struct host *host, const void *list, uint64_t nth);

/* A descriptor for the process's asynchronous events. False: errno. */
bool host_open_async(struct process *process);

/* --- cm.c --- */

/* The net carries the connection managers' messages from now on. */
void host_cm_start(struct rnic_net *net);
void host_cm_init(struct host *host);
void host_cm_process_ended(struct host *host);

/* --- libibverbs' functions --- */

struct ibv_device **rnic_get_device_list(int *num);
void rnic_free_device_list(struct ibv_device **list);
struct ibv_context *rnic_open_device(struct ibv_device *device);
int rnic_close_device(struct ibv_context *context);
__be64 rnic_get_device_guid(struct ibv_device *device);
int rnic_get_device_index(struct ibv_device *device);
int rnic_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
ssize_t rnic_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t most, uint32_t flags, size_t entry_size);

struct ibv_comp_channel *rnic_create_comp_channel(struct ibv_context *context);
int rnic_destroy_comp_channel(struct ibv_comp_channel *channel);
/* The RNIC's own functions, which then wait until the object's events are acknowledged. */
int rnic_host_destroy_cq(struct ibv_cq *cq);
int rnic_host_destroy_qp(struct ibv_qp *qp);
int rnic_host_destroy_srq(struct ibv_srq *srq);

#endif
