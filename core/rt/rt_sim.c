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

uint64_t rt_now(void)
{
	return sim_of_thread->run.now;
}

void rt_client_dropped(uint32_t client)
{
	sim_inject(sim_of_thread, client, SIM_INJECTED_DROP);
}

/* A request to the service and its answer. */
#define CONFIG_NS 2000

void rt_config_get(struct rt_config *now)
{
	sim_sleep(sim_of_thread, CONFIG_NS);
	*now = sim_of_thread->config;
	sim_step(sim_of_thread, STEP_POLL, 0);
}

int rt_config_set(const struct rt_config *next)
{
	struct rt_config now;
	sim_sleep(sim_of_thread, CONFIG_NS);
	sim_step(sim_of_thread, STEP_POST, 0);
	now = sim_of_thread->config;
	if (next->epoch != now.epoch + 1)
		return -EAGAIN;
	const uint32_t alive = now.alive;
	now = *next;
	now.alive = alive;
	sim_set_config(sim_of_thread, &now);
	sim_sleep(sim_of_thread, CONFIG_NS);
	return 0;
}

void rt_config_wait(struct rt_config *known)
{
	const struct rt_config *now = &sim_of_thread->config;
	while (now->epoch == known->epoch && now->alive == known->alive) {
		sim_idle_on(sim_of_thread, now);
		sim_yield(sim_of_thread);
	}
	rt_config_get(known);
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
