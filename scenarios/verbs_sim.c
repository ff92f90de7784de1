/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs programs on the soft RNIC: a simulation for each, two hosts on one link, the server's
 * with persistent memory, one task that is the program. All answers are 0: an ordinary run.
 */
#include <errno.h>
#include <stdio.h>
#include "core/pmem/crash.h"
#include "core/rnic/rnic.h"
#include "scenarios/verbs.h"

#define PM_BYTES (2u << 20)

struct sim_run {
	struct sim *sim;
	struct pmem *pm;
	const struct verbs_program *program;
	const struct verbs_out *out;
	struct lab_world world;
};

static void sim_rest(void *arg)
{
	(void)arg;
	rt_yield();
}

static uint64_t sim_clock(void *arg)
{
	const struct sim_run *run = arg;
	return sim_now(run->sim);
}

static void run_task(void *arg)
{
	struct sim_run *run = arg;
	pmem_begin(run->pm, run->sim, &hardware_default);
	struct rnic_net *net = rnic_net_new(run->sim, &hardware_default);
	run->world.host[0] = rnic_open(net, HOST_SERVER, run->pm);
	run->world.host[1] = rnic_open(net, 1, NULL);
	run->world.pm = pmem_base(run->pm);
	run->world.pm_len = pmem_length(run->pm);
	verbs_sim.run(&run->world, run->program);
	sim_stop(run->sim, SIM_DONE);
}

static void sim_line(void *arg, const char *text)
{
	const struct sim_run *run = arg;
	run->out->line(run->out->arg, text);
}

int verbs_run_sim(const struct verbs_program *program, const struct verbs_out *out, char *why,
		  size_t size)
{
	struct pmem_stack *stack;
	struct sim_run run = {
		.program = program,
		.out = out,
		.world = {.arg = &run,
			  .rest = sim_rest,
			  .now = sim_clock,
			  .line = sim_line,
			  .create_qp = rnic_create_qp_ex,
			  .flush = ibv_wr_flush},
	};
	if (program->how & LATER) {
		out->line(out->arg, "not there yet");
		return 0;
	}
	stack = pmem_stack_new(1, PM_BYTES);
	if (!stack)
		return -ENOMEM;
	run.sim = sim_new();
	if (!run.sim) {
		pmem_stack_free(stack);
		return -ENOMEM;
	}
	pmem_load(stack, NULL, PM_BYTES);
	run.pm = pmem_machine(stack, 0);
	sim_reset(run.sim, NULL);
	int error = sim_spawn(run.sim, 1, "", run_task, &run);
	if (!error) {
		enum sim_end end = sim_run(run.sim);
		if (end == SIM_FAULT)
			snprintf(why, size, "%s", sim_fault(run.sim, NULL));
		error = end == SIM_DONE ? 0 : end == SIM_FAULT ? -EFAULT : -ETIME;
	}
	pmem_end(run.pm);
	sim_free(run.sim);
	pmem_stack_free(stack);
	return error;
}
