/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_RT_H
#define TM_RT_RT_H
/*
 * The runtime interface of store code: tasks, clock, connecting. The sim world
 * (core/rt/sim.h) implements it with fibers and virtual time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start a task on this host. `name` ("verifier") must outlive the task. 0 or -errno. */
int rt_spawn(const char *name, void (*fn)(void *arg), void *arg);

/* Let others run. In a polling loop: call it after a round that found nothing.
 * The task is woken when one of the completion queues that it last found empty
 * has an entry, and every now and then in any case. */
void rt_yield(void);

void rt_sleep(uint64_t ns);

/* Nanoseconds since this host's start; never goes back. */
uint64_t rt_now(void);

/*
 * Connecting, out of band (what rdma_cm or a TCP socket does on real hosts).
 * The server registers a function that is given a client's request bytes and
 * fills the reply: queue pair numbers, keys, offsets. 0 or -errno, which the
 * client gets from rt_connect. It must not block.
 */
typedef int rt_accept_fn(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len);
int rt_listen(rt_accept_fn *fn, void *arg);
int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len);

/* Asked where a store looks for room in its pool, so that a full pool can be tested: if true, there
 * is none (core/rt/fails.h, pm/full). */
bool rt_pm_full(void);

#endif
