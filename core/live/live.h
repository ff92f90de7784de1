/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_H
#define TM_LIVE_H
/*
 * The live world: threads, real time, the system's libibverbs, real PM.
 *
 * A host is what runs one store program: the server, or one client's session. Its tasks
 * are threads that take turns, as on a machine with one core and no preemption: a task
 * runs until it yields, sleeps or ends. Hosts run beside each other, many in one process
 * if need be (the clients of a load generator).
 *
 * What a host's store code gets from the system (memory, protection domains, regions,
 * completion queues, queue pairs) belongs to the host; live_host_free() gives all of it
 * back. So a store needs no code for its end, in this world as in the other.
 *
 * Store sources are compiled once more for this world, with live_calls.h in front.
 */
#include <stddef.h>
#include <stdint.h>
#include "core/live/injected.h"

struct rendezvous;
struct ibv_context;
struct live_host;

/* Open an RDMA device by name; NULL or "": the first. The caller closes it with ibv_close_device().
 * -ENODEV.
 */
int live_device_open(const char *name, struct ibv_context **out);

/* Whom a host asks (rendezvous.h); it takes the connections over. */
struct live_peers {
	struct rendezvous *server;  /* a client's connection to the one server, or NULL */
	struct rendezvous *service; /* of several servers: to what keeps their configuration */
	const char *address;	    /* of the service */
	unsigned number;	    /* the host's own, at the service and at servers */
};
/* `verbs` is the caller's and outlives the host. `peers` NULL: nobody. 0 or -errno. */
int live_host_new(struct live_host **out, struct ibv_context *verbs,
		  const struct live_peers *peers);
/* Stops the host, waits for its tasks, closes its connections, and gives back all that its store
 * code has. No thread may be in live_call(). */
void live_host_free(struct live_host *host);

/* Run fn(arg) on this thread as a task of the host. What fn returns; -ECANCELED: the host was
 * stopped, fn has been left. */
int live_call(struct live_host *host, int (*fn)(void *arg), void *arg);
/* What was injected into the host's process and its connections until now. */
void live_injected(struct live_host *host, unsigned client, struct injected *out);
/* What the NIC told the host. */
struct bad_completion live_bad_completion(struct live_host *host);
/* For a client's host: ask the server for the same. 0 or -errno: it does not answer. Not while the
 * host is in live_call(). */
int live_ask_injected(struct live_host *host, struct injected *out);
/* From any thread: each task ends when it next yields, sleeps, or connects. */
void live_host_stop(struct live_host *host);
/* Of a host with a service, from any thread; each 0 or -errno. What the service says now. */
struct config_answer;
int live_ask_service(struct live_host *host, struct config_answer *answer);
/* Tell it that this server serves, there ("ADDRESS:PORT"). */
int live_ready(struct live_host *host, const char *address);
/* Connect to a server, there; what it serves: RENDEZVOUS_TEXT bytes. */
int live_greet(struct live_host *host, unsigned server, const char *address, char *text);
/* A client has connected: what the server's store answers (rt_listen). 0 or -errno. */
int live_accept(struct live_host *host, const void *req, size_t req_len, void *rsp, size_t rsp_len);

#endif
