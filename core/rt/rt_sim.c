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

int rt_listen(rt_accept_fn *fn, void *arg)
{
	if (sim_of_thread->accept || sim_fails(FAIL_LISTEN))
		return told("rt_listen", -EADDRINUSE, PC);
	sim_of_thread->accept = fn;
	sim_of_thread->accept_arg = arg;
	return 0;
}

int rt_connect(const void *req, size_t req_len, void *rsp, size_t rsp_len)
{
	if (!sim_of_thread->accept || sim_fails(FAIL_CONNECT))
		return told("rt_connect", -ECONNREFUSED, PC);
	if (sim_fails(FAIL_ACCEPT))
		return told("rt_connect", -EUSERS, PC);
	/* It is the server's function, on the client's task. */
	struct task *const task = sim_of_thread->running;
	jmp_buf refused;
	volatile int rc = -ECONNREFUSED;
	task->code_host = HOST_SERVER;
	task->refused = &refused;
	task->failed = (struct sim_failed_call){0};
	sim_enter_host(sim_of_thread, HOST_SERVER);
	if (!setjmp(refused))
		rc = sim_of_thread->accept(sim_of_thread->accept_arg, req, req_len, rsp, rsp_len);
	task->refused = NULL;
	task->code_host = task->host;
	sim_enter_host(sim_of_thread, task->host);
	/* A call that failed in there says more. */
	return rc && task->failed.name ? rc : told("rt_connect", rc, PC);
}
