/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that compute at the same time: profiles with cpus=N.
 *
 * What a task's steps cost is what it owes. It pays before others can see what it has done since:
 * before it posts, sleeps or lets others go, and every SLICE_NS. To pay is to have one of the
 * host's CPUs for so long, and to sleep until then. A CPU is given to tasks in the order in which
 * they ask; the one that is free first is taken. So a task's stores may be seen SLICE_NS too early,
 * and no message is.
 *
 * PM takes what CPUs flush at a limited rate, one after the other. The CPU waits for it.
 */
#include "core/rt/sim_state.h"

#define SLICE_NS    2000
#define COPY_INLINE 128 /* bytes, as profile.h says */

struct cpus {
	uint64_t free_at[SIM_HOSTS][PROFILE_CPUS];
	uint64_t busy_ns[SIM_HOSTS], pm_free_at[SIM_HOSTS];
};

void sim_set_profile(struct sim *sim, const struct profile *profile)
{
	assert(!sim->tasks && profile->cpus <= PROFILE_CPUS);
	sim->run.cost = profile;
	sim->cpus = profile->cpus ? sim_alloc(sim, sizeof(*sim->cpus)) : NULL;
}

/* The CPU of the host that is free first. */
static uint64_t *next_cpu(const struct sim *sim, unsigned host)
{
	uint64_t *cpu = sim->cpus->free_at[host];
	unsigned first = 0;
	for (unsigned i = 1; i < sim->run.cost->cpus; i++)
		if (cpu[i] < cpu[first])
			first = i;
	return &cpu[first];
}

void sim_pay(struct sim *sim)
{
	struct task *task = sim->running;
	assert(sim->cpus && task && task->host < SIM_HOSTS);
	if (!task->owed || sim->alone)
		return;
	uint64_t *free_at = next_cpu(sim, task->host), now = sim->run.now;
	*free_at = (*free_at > now ? *free_at : now) + task->owed;
	sim->cpus->busy_ns[task->host] += task->owed;
	task->owed = 0;
	task->idles = 0; /* a completion makes no work shorter */
	sim_sleep_until_woken(sim, *free_at - now);
}

void sim_owe(struct sim *sim, enum step_kind kind, uint64_t ns)
{
	sim->running->owed += ns;
	if (kind == STEP_POST || sim->running->owed >= SLICE_NS)
		sim_pay(sim);
}

void sim_work(struct sim *sim, uint64_t ns)
{
	if (!ns || !sim->running)
		return;
	if (sim->cpus)
		sim->running->owed += ns;
	else
		sim->run.now += ns;
}

void sim_work_bytes(struct sim *sim, uint32_t ps, uint64_t bytes)
{
	sim_work(sim, ps * bytes / 1000);
}

/* Small copies of known length are loads and stores, or calls, as a compiler likes: a call costs no
 * more. */
void sim_copy_bytes(struct sim *sim, uint64_t bytes)
{
	if (bytes > COPY_INLINE)
		sim_work_bytes(sim, sim->run.cost->copy, bytes - COPY_INLINE);
}

void sim_flush_bytes(struct sim *sim, uint64_t bytes)
{
	const uint64_t rate = sim->run.cost->pm_write;
	if (!rate || !sim->running)
		return;
	if (!sim->cpus) {
		sim->run.now += bytes * 1000 / rate;
		return;
	}
	uint64_t *free_at = &sim->cpus->pm_free_at[sim->running->host], now = sim_task_now(sim);
	*free_at = (*free_at > now ? *free_at : now) + bytes * 1000 / rate;
	sim->running->owed += *free_at - now;
}

uint64_t sim_task_now(const struct sim *sim)
{
	return sim->run.now + (sim->running ? sim->running->owed : 0);
}

uint64_t sim_busy_ns(const struct sim *sim, unsigned host)
{
	assert(host < SIM_HOSTS);
	return sim->cpus ? sim->cpus->busy_ns[host] : 0;
}
