/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of hardware transactional memory: core/rt/htm.h. */
#include "core/rt/htm.h"
#include "core/pmem/hooks.h"
#include "core/pmem/model.h"

/* The running task's; NULL: outside of the simulation, where each region is aborted. */
static struct htm *own(struct pmem *pm)
{
	if (!pm)
		return NULL;
	const unsigned server = host_server(sim_host(pm->sim));
	assert(server < SIM_SERVERS);
	return &pm->htm[server];
}

static void end(struct pmem *pm, struct htm *htm)
{
	pm->htms -= htm->open;
	*htm = (struct htm){0};
}

void htm_host_fails(struct pmem *pm, uint64_t off, uint64_t len)
{
	for (unsigned i = 0; i < SIM_SERVERS; i++)
		if (pm->htm[i].lines && (uint64_t)pm->htm[i].line[0] * LINE - off < len)
			end(pm, &pm->htm[i]);
}

void htm_touched(struct pmem *pm, uint32_t first, uint32_t last, bool write)
{
	const int task = sim_task(pm->sim); /* < 0: it is the NIC */
	for (unsigned i = 0; i < SIM_SERVERS; i++) {
		struct htm *htm = &pm->htm[i];
		if (task == htm->task || (task >= 0 && !write))
			continue;
		for (uint32_t k = 0; k < htm->lines; k++)
			htm->aborted |= htm->line[k] >= first && htm->line[k] <= last;
	}
}

void rt_htm_begin(void)
{
	struct pmem *pm = sim_memory;
	struct htm *htm = own(pm);
	if (!htm)
		return;
	end(pm, htm); /* of another task, or of a process that died */
	htm->open = true;
	htm->task = sim_task(pm->sim);
	pm->htms++;
}

void rt_htm_touches(const void *addr, size_t len)
{
	struct pmem *pm = sim_memory;
	struct htm *htm = own(pm);
	uint64_t off;
	if (!htm || !htm->open || htm->task != sim_task(pm->sim))
		return;
	assert(len);
	if (!pmem_owns(pm, addr, len, &off))
		assert(!"a region has lines of PM alone");
	for (uint64_t l = off / LINE; l <= (off + len - 1) / LINE; l++) {
		if (htm->lines < RT_HTM_LINES)
			htm->line[htm->lines++] = (uint32_t)l;
		else
			htm->aborted = true;
	}
}

void rt_htm_abort(void)
{
	struct pmem *pm = sim_memory;
	struct htm *htm = own(pm);
	if (htm && htm->task == sim_task(pm->sim))
		end(pm, htm);
}

bool rt_htm_commits(void)
{
	struct pmem *pm = sim_memory;
	struct htm *htm = own(pm);
	if (!htm)
		return false;
	pmem_cpu_empty(pm, PC); /* its end is a locked instruction's */
	sim_step(pm->sim, STEP_STORE, 0);
	if (!htm->open || htm->task != sim_task(pm->sim))
		return false;
	pm->htm_commits = !htm->aborted;
	if (pm->htm_commits)
		sim_set_alone(pm->sim, true);
	end(pm, htm);
	return pm->htm_commits;
}

void rt_htm_end(void)
{
	struct pmem *pm = sim_memory;
	pmem_commit_pending(pm);
	pm->htm_commits = false;
	sim_set_alone(pm->sim, false);
}
