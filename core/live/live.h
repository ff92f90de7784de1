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

/* `verbs` is the caller's and outlives the host. `server`: a client's connection to the server,
 * which the host takes over (rendezvous.h); NULL: this is the server. 0 or -errno. */
int live_host_new(struct live_host **out, struct ibv_context *verbs, struct rendezvous *server);
/* Stops the host, waits for its tasks, closes `server`, and gives back all that its store code
 * has. No thread may be in live_call(). */
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
/* From any thread, also from a signal's: each task ends when it next yields, sleeps, or
 * connects. */
void live_host_stop(struct live_host *host);
/* A client has connected: what the server's store answers (rt_listen). 0 or -errno. */
int live_accept(struct live_host *host, const void *req, size_t req_len, void *rsp, size_t rsp_len);

#endif
