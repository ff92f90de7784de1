/* SPDX-License-Identifier: BSD-3-Clause */
/* See statics.h. */
#include "core/rt/process/statics.h"
#include "core/rt/sim_state.h"

void sim_set_statics(struct sim *sim, struct statics *statics)
{
	assert(!sim->running && !sim->tasks);
	sim->statics = statics;
}

/* The host's copy, made where there is none. */
static uint8_t *copy_of(struct sim *sim, unsigned host)
{
	const struct statics *s = sim->statics;
	struct one_host *at = sim_host_of(sim, host);
	if (!at->statics) {
		at->statics = sim_alloc(sim, s->len);
		memcpy(at->statics, s->fresh, s->len);
	}
	return at->statics;
}

void sim_static_owner(struct statics *s, uint8_t *owner)
{
	if (s->owner == owner)
		return;
	if (s->owner)
		memcpy(s->owner, s->live, s->len);
	memcpy(s->live, owner, s->len);
	s->owner = owner;
}

void sim_exchange_statics(struct sim *sim, unsigned host)
{
	assert(sim->statics);
	sim_static_owner(sim->statics, copy_of(sim, host));
}

void sim_save_statics(const struct sim *sim)
{
	const struct statics *s = sim->statics;
	if (s && s->owner)
		memcpy(s->owner, s->live, s->len);
}

/* What is live is not to be kept. */
static void forget(struct sim *sim, struct one_host *host)
{
	if (host->statics && sim->statics->owner == host->statics)
		sim->statics->owner = NULL;
	host->statics = NULL;
}

void sim_forget_statics(struct sim *sim)
{
	for (unsigned i = 0; sim->statics && i < sim->hosts; i++)
		forget(sim, &sim->host[i]);
	sim->statics = NULL;
}

void sim_fresh_statics(struct sim *sim, unsigned host)
{
	if (!sim->statics)
		return;
	forget(sim, sim_host_of(sim, host));
	if (sim->running && sim->running->code_host == host)
		sim_exchange_statics(sim, host);
}

void sim_construct(struct sim *sim)
{
	static char *none[] = {NULL};
	const struct statics *s = sim->statics;
	assert(sim->running);
	for (unsigned i = 0; s && i < s->begins; i++)
		s->begin[i](0, none, none);
}

/* --- thread-local data --- */

struct tls_index {
	unsigned long module, offset;
};

void *sim_tls_get_addr(const struct tls_index *index);

void *sim_tls_get_addr(const struct tls_index *index)
{
	struct sim *sim = sim_of_thread;
	struct task *task = sim->running;
	const struct statics *s = sim->statics;
	assert(task && s && index->offset < s->tls_len);
	if (!task->tls) {
		uint8_t *bytes = sim_alloc(sim, s->tls_len + s->tls_align);
		task->tls = bytes + -(uintptr_t)bytes % s->tls_align;
		memcpy(task->tls, s->tls, s->tls_filled);
	}
	return task->tls + index->offset;
}
