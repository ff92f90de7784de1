/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs programs on the soft RNIC: a simulation for each, two hosts on one link, one task that
 * is the program. All answers are 0: an ordinary run.
 */
#include <errno.h>
#include <stdio.h>
#include "core/rnic/rnic.h"
#include "core/rt/sim.h"
#include "scenarios/verbs.h"

struct sim_run {
	struct sim *sim;
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
	struct rnic_net *net = rnic_net_new(run->sim, &hardware_default);
	run->world.host[0] = rnic_open(net, HOST_SERVER, NULL);
	run->world.host[1] = rnic_open(net, 1, NULL);
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
	run.sim = sim_new();
	if (!run.sim)
		return -ENOMEM;
	sim_reset(run.sim, NULL);
	int error = sim_spawn(run.sim, 1, "", run_task, &run);
	if (!error) {
		enum sim_end end = sim_run(run.sim);
		if (end == SIM_FAULT)
			snprintf(why, size, "%s", sim_fault(run.sim, NULL));
		error = end == SIM_DONE ? 0 : end == SIM_FAULT ? -EFAULT : -ETIME;
	}
	sim_free(run.sim);
	return error;
}
