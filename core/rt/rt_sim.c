/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt.h for the tasks of a simulation.
 */
#include <errno.h>
#include "core/rt/sim_state.h"

int rt_spawn(const char *name, void (*fn)(void *), void *arg)
{
	struct task *task;
	if (sim_fails(FAIL_SPAWN))
		return -EAGAIN;
	int error = sim_new_task(sim_of_thread, sim_host(sim_of_thread), name ? name : "", 0, fn,
				 arg, &task);
	if (!error)
		task->of_store = true;
	return error;
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

int rt_listen(rt_accept_fn *fn, void *arg)
{
	if (sim_of_thread->accept || sim_fails(FAIL_LISTEN))
		return -EADDRINUSE;
	sim_of_thread->accept = fn;
	sim_of_thread->accept_arg = arg;
	return 0;
}

int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	if (!sim_of_thread->accept || sim_fails(FAIL_CONNECT))
		return -ECONNREFUSED;
	if (sim_fails(FAIL_ACCEPT))
		return -EUSERS;
	/* It is the server's function, on the client's task. */
	struct task *const task = sim_of_thread->running;
	jmp_buf refused;
	volatile int rc = -ECONNREFUSED;
	task->code_host = HOST_SERVER;
	task->refused = &refused;
	sim_enter_host(sim_of_thread, HOST_SERVER);
	if (!setjmp(refused))
		rc = sim_of_thread->accept(sim_of_thread->accept_arg, req, req_len, rsp, rsp_len);
	task->refused = NULL;
	task->code_host = task->host;
	sim_enter_host(sim_of_thread, task->host);
	return rc;
}
