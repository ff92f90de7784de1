/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts and their processes. See host.h. */
#include "core/rnic/host/host.h"
#include <assert.h>
#include <errno.h>
#include "core/rnic/sim_ground.h"

struct sim *host_sim(const struct host *host)
{
	return sim_of_ground(&host->all->net->ground);
}

static struct hosts *hosts_of(struct rnic_net *net)
{
	if (!net->programs) {
		net->programs = ground_alloc(&net->ground, sizeof(*net->programs));
		net->programs->net = net;
		host_cm_start(net);
	}
	return net->programs;
}

struct host *host_of(struct rnic_net *net, unsigned number)
{
	struct hosts *hosts = hosts_of(net);

	assert(number < SIM_HOSTS);
	if (!hosts->host[number]) {
		struct host *host = ground_alloc(&net->ground, sizeof(*host));
		host->all = hosts;
		host->number = number;
		host_cm_init(host);
		hosts->host[number] = host;
	}
	return hosts->host[number];
}

/* The process ends: the kernel closes what it had open. */
static void ended(struct rnic_hca *hca)
{
	struct process *process = hca->hooks.arg;
	struct host *host = process->host;

	host_cm_process_ended(host);
	host->process = NULL;
}

struct process *process_of(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);
	struct host *host = host_of(hca->net, hca->host);

	if (hca->hooks.ended != ended) {
		struct process *process = ground_alloc(&hca->net->ground, sizeof(*process));
		process->host = host;
		process->hca = hca;
		events_init(&process->async.events, host);
		hca->hooks = (struct rnic_hooks){.completion = events_completion,
						 .event = events_async,
						 .ended = ended,
						 .arg = process};
	}
	host->process = hca->hooks.arg;
	assert(host->process->hca == hca);
	return host->process;
}

struct process *process_known(struct ibv_context *context)
{
	const struct rnic_hca *hca = to_hca(context);

	return hca->hooks.ended == ended ? hca->hooks.arg : NULL;
}

struct process *process_here(void)
{
	struct sim *sim = sim_current();
	struct rnic_net *net = sim_net(sim);
	struct rnic_hca *hca = net ? net->hca[sim_host(sim)] : NULL;

	if (hca)
		return process_of(&hca->verbs.context);
	errno = ENODEV;
	return NULL;
}
