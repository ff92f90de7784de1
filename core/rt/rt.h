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

#ifdef __cplusplus
extern "C" {
#endif

/* Start a task on this host. `name` ("verifier") must outlive the task. 0 or -errno. */
int rt_spawn(const char *name, void (*fn)(void *arg), void *arg);

/* Let others run. In a polling loop: call it after a round that found nothing.
 * The task is woken when one of the completion queues that it last found empty
 * has an entry, and every now and then in any case. */
void rt_yield(void);

void rt_sleep(uint64_t ns);

/* Nanoseconds on this host's clock; never goes back. All clocks began at one time, and with the
 * hardware's knob `clocks` those of two hosts differ. */
uint64_t rt_now(void);

/*
 * `ns`, for how long something holds, where a store compares clocks: `if (rt_now() - since >
 * rt_duration(LEASE_NS))`, `end = rt_now() + rt_duration(LEASE_NS)`. It is a mark: random runs of
 * the simulated world delay tasks for about as long.
 */
uint64_t rt_duration(uint64_t ns);

/*
 * Connecting, out of band (what rdma_cm or a TCP socket does on real hosts).
 * The server registers a function that is given a client's request bytes and
 * fills the reply: queue pair numbers, keys, offsets. 0 or -errno, which the
 * client gets from rt_connect. It must not block.
 */
typedef int rt_accept_fn(void *arg, const void *req, size_t req_len, void *rsp, size_t rsp_len);
int rt_listen(rt_accept_fn *fn, void *arg);
int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len);
/* The same to one of several servers, from 0; rt_connect() is to the first. */
int rt_connect_to(unsigned server, const void *req, size_t req_len, void *rsp, size_t rsp_len);

/* The server says that it closes a client's connections for good, as it does by design with one
 * that keeps it waiting: from now on that client's operations may fail. It says so before it closes
 * them, or ends the client's access to memory: the client may notice at once. */
void rt_client_dropped(uint32_t client);

/*
 * `holds`, where a store compares a checksum, a flag or a name: `if (rt_check(crc == sum))`. It is
 * a mark for `tidemark ablate`, which has one such comparison hold always, or never
 * (docs/ablation.md).
 */
bool rt_check(bool holds);

/*
 * Asked by a function that waits for what its caller has posted, of its caller: RT_WAITS. If false,
 * it returns without waiting: `tidemark ablate` has taken the caller's wait away.
 */
bool rt_waits(const void *caller);
#define RT_WAITS rt_waits(__builtin_return_address(0))

/* Asked where a store looks for room in its pool, so that a full pool can be tested: if true, there
 * is none (core/rt/fails.h, pm/full). */
bool rt_pm_full(void);

#ifdef __cplusplus
}
#endif

#endif
