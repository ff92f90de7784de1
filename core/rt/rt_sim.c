/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt.h for the tasks of a simulation.
 */
#include <errno.h>
#include "core/rt/sim_state.h"

/* The error of one of these functions goes on to its caller. */
static int told(const char *name, int error, uintptr_t pc)
{
	if (error)
		sim_call_returned(sim_of_thread, name, -error, pc);
	return error;
}

int rt_spawn(const char *name, void (*fn)(void *), void *arg)
{
	struct task *task;
	int error = sim_fails(FAIL_SPAWN) ? -EAGAIN : 0;
	if (!error)
		error = sim_new_task(sim_of_thread, sim_host(sim_of_thread), name ? name : "", 0,
				     fn, arg, &task);
	if (!error)
		task->of_store = true;
	return told("rt_spawn", error, PC);
}

void rt_yield(void)
{
	sim_yield(sim_of_thread);
}

void rt_sleep(uint64_t ns)
{
	sim_sleep(sim_of_thread, ns);
}

void sim_set_clocks(struct sim *sim, uint64_t ns)
{
	sim->clocks_ns = ns;
	sim->durations.clocks_ns = (uint32_t)ns;
}

/* By how much the clock of the current task's host is ahead. */
static uint64_t clock_ahead(struct sim *sim)
{
	const unsigned host = sim->running->code_host;
	struct one_host *at_host = sim_host_of(sim, host);
	if (sim->source && !at_host->clock_known) {
		struct actor who;
		sim_name_actor(sim, &who, host, "", 0);
		const struct choice_point at = {.kind = CHOICE_CLOCK, .who = &who, .occurrence = 1};
		at_host->clock_ahead = sim_choose(sim, &at, 2);
		at_host->clock_known = true;
		if (at_host->clock_ahead)
			sim_trace(sim, &who, 0, "the clock is %llu us ahead",
				  (unsigned long long)sim->clocks_ns / 1000);
	}
	return at_host->clock_ahead ? sim->clocks_ns : 0;
}

uint64_t rt_now(void)
{
	struct sim *sim = sim_of_thread;
	return sim->run.now + (sim->clocks_ns && sim->running ? clock_ahead(sim) : 0);
}

uint64_t rt_duration(uint64_t ns)
{
	durations_add(&sim_of_thread->durations, ns);
	return ns;
}

const struct durations *sim_durations(const struct sim *sim)
{
	return &sim->durations;
}

void rt_client_dropped(uint32_t client)
{
	sim_inject(sim_of_thread, client, SIM_INJECTED_DROP);
}

/* The current task's server; NULL: a client's. */
static const struct one_server *own_server(void)
{
	const unsigned server = host_server(sim_host(sim_of_thread));
	return server < sim_of_thread->servers ? &sim_of_thread->server[server] : NULL;
}

static bool is_heard(void)
{
	const struct one_server *own = own_server();
	return !own || !own->cut;
}

/* A message to the service or back. False: it is lost, and the caller has waited in vain. */
static bool reaches(void)
{
	sim_sleep(sim_of_thread, RT_CONFIG_NS);
	if (is_heard())
		return true;
	sim_sleep(sim_of_thread, RT_CONFIG_PATIENCE_NS);
	return false;
}

int rt_config_get(struct rt_config *now)
{
	const bool heard = reaches();
	const struct one_server *own = own_server();
	sim_touch(sim_of_thread, TOUCH_DRAM_READ, (uintptr_t)&sim_of_thread->config, sizeof(*now));
	*now = heard ? sim_of_thread->config : own->heard;
	now->lease = own ? own->lease : 0;
	sim_step(sim_of_thread, STEP_POLL, 0);
	return heard ? 0 : -ETIMEDOUT;
}

int rt_config_set(const struct rt_config *next)
{
	struct rt_config now;
	if (!reaches())
		return -ETIMEDOUT;
	sim_step(sim_of_thread, STEP_POST, 0);
	now = sim_of_thread->config;
	if (next->epoch != now.epoch + 1)
		return -EAGAIN;
	const uint32_t alive = now.alive;
	now = *next;
	now.alive = alive;
	sim_set_config(sim_of_thread, &now);
	return reaches() ? 0 : -ETIMEDOUT;
}

int rt_config_wait(struct rt_config *known)
{
	const struct rt_config *now = &sim_of_thread->config;
	while (is_heard() && now->epoch == known->epoch && now->alive == known->alive) {
		sim_idle_on(sim_of_thread, now);
		sim_yield(sim_of_thread);
	}
	struct rt_config next;
	const int rc = rt_config_get(&next);
	if (!rc)
		*known = next;
	return rc;
}

uint64_t rt_config_lease(const struct rt_config *known)
{
	const struct one_server *own = own_server();
	const uint64_t now = sim_of_thread->run.now;
	if (!own)
		return UINT64_MAX;
	if (known->lease != own->lease)
		return 0;
	/* The service counts from when it got the renewal, this host from when it sent it. */
	return rt_now() - (own->cut ? now - own->cut_at : 0) + RT_LEASE_NS - RT_CONFIG_NS;
}

int rt_listen(rt_accept_fn *fn, void *arg)
{
	const unsigned server = host_server(sim_host(sim_of_thread));
	if (server == SIM_SERVERS || sim_of_thread->server[server].accept || sim_fails(FAIL_LISTEN))
		return told("rt_listen", -EADDRINUSE, PC);
	sim_of_thread->server[server].accept = fn;
	sim_of_thread->server[server].accept_arg = arg;
	return 0;
}

static int connect_to(unsigned server, const void *req, size_t req_len, void *rsp, size_t rsp_len,
		      uintptr_t pc)
{
	const unsigned host = server_host(server);
	if (server >= sim_of_thread->servers || !sim_of_thread->server[server].accept ||
	    sim_fails(FAIL_CONNECT))
		return told("rt_connect", -ECONNREFUSED, pc);
	if (sim_fails(FAIL_ACCEPT))
		return told("rt_connect", -EUSERS, pc);
	/* It is the server's function, on the client's task. */
	struct task *const task = sim_of_thread->running;
	jmp_buf refused;
	volatile int rc = -ECONNREFUSED;
	task->code_host = host;
	task->refused = &refused;
	task->failed = (struct sim_failed_call){0};
	sim_enter_host(sim_of_thread, host);
	if (!setjmp(refused))
		rc = sim_of_thread->server[server].accept(sim_of_thread->server[server].accept_arg,
							  req, req_len, rsp, rsp_len);
	task->refused = NULL;
	task->code_host = task->host;
	sim_enter_host(sim_of_thread, task->host);
	/* A call that failed in there says more. */
	return rc && task->failed.name ? rc : told("rt_connect", rc, pc);
}

int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	return connect_to(0, req, req_len, rsp, rsp_len, PC);
}

int rt_connect_to(unsigned server, const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	return connect_to(server, req, req_len, rsp, rsp_len, PC);
}
