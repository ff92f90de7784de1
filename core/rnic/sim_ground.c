/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RNIC's ground and its hosts' memory in a simulation: ground.h on core/rt, memory.h on
 * core/pmem. Each function below is the simulator's or the persistence model's under the
 * interface's name.
 */
#include "core/rnic/ground.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include "core/pmem/pmem.h"
#include "core/rnic/memory.h"
#include "core/rnic/objects/device.h"
#include "core/rnic/objects/mr.h"
#include "core/rnic/objects/post.h"
#include "core/rnic/sim_ground.h"
#include "core/verbs_compat.h"

/* --- events --- */

static void call(struct sim *sim, void *arg)
{
	const struct rnic_event *event = arg;
	if (event->fn)
		event->fn(event->arg);
}

static void later(void *sim, uint64_t chain, uint64_t delay_ns, const struct rnic_event *event)
{
	sim_in_chain(sim, chain, delay_ns, call, (void *)event);
}

static void *alloc(void *sim, size_t bytes)
{
	return sim_alloc(sim, bytes);
}

/* --- tasks --- */

static const void *caller(void *sim)
{
	return sim_actor(sim);
}

static void yield(void *sim)
{
	sim_spend_step(sim);
	sim_yield(sim);
}

static bool serves(struct sim *sim)
{
	return sim_actor(sim) && host_serves(sim_host(sim));
}

static void idle(struct sim *sim, const void *key)
{
	sim_spend_step(sim);
	sim_idle_on(sim, key);
}

/* --- choices --- */

static uint64_t delay(struct sim *sim, unsigned k, const struct rnic_event *event)
{
	if (delay_is_timed(k)) {
		sim_repeat_pending(sim, sim_now(sim) + choice_delay_ns(k));
		return sim_now(sim) + choice_delay_ns(k);
	}
	return sim_delay(sim, CHAIN_OTHER, k, 0, call, (void *)event);
}

/* --- what is watched --- */

static void trace(struct sim *sim, const struct actor *who, const struct traced *about,
		  const char *text)
{
	sim_trace_event(sim, who, 0, about, "%s", text);
}

static const struct rnic_explorer explorer = {
	.choose = sim_choose,
	.delay = delay,
	.fails = sim_fails,
	.given_up = sim_link_given_up,
	.task = sim_actor,
	.serves = serves,
	.step = sim_step,
	.work = sim_work,
	.commit_pending = sim_commit_pending,
	.idle = idle,
	.wake = sim_wake,
	.name = sim_name_actor,
	.label = actor_label,
	.touch = sim_touch_state,
	.gives = sim_gives,
	.takes = sim_takes,
	.mix_bytes = sim_mix_bytes,
	.trace = trace,
};

struct rnic_ground sim_ground(struct sim *sim)
{
	return (struct rnic_ground){
		.world = sim,
		.run = sim_run_state(sim),
		.alloc = alloc,
		.later = later,
		.caller = caller,
		.yield = yield,
		.explorer = &explorer,
	};
}

struct sim *sim_of_ground(const struct rnic_ground *ground)
{
	assert(ground->explorer == &explorer);
	return ground->world;
}

/* --- memory: DRAM, with `memory` the host's RNIC; PM in it, if it has some --- */

static struct nic_where where(const struct packet_name *name)
{
	return (struct nic_where){.qp = name->who,
				  .op = name->op,
				  .occurrence = name->occurrence,
				  .message = name->message,
				  .packet = name->index,
				  .id = name->id,
				  .operation = name->operation,
				  .send = name->send};
}

static uint64_t pm_offset(const struct rnic_mr *mr, const uint8_t *at, uint64_t len)
{
	assert(mr->in_pm && at >= mr->host && (uint64_t)(at - mr->host) + len <= mr->len);
	return mr->pm_off + (uint64_t)(at - mr->host);
}

static int check_dram(void *memory, const void *at, uint64_t len, unsigned access,
		      struct pm_place *place)
{
	return access & IBV_ACCESS_FLUSH_PERSISTENT ? EINVAL : 0;
}

static bool read_dram(void *memory, const struct rnic_mr *mr, void *to, const uint8_t *from,
		      uint32_t len)
{
	sim_touch(sim_of_ground(mr_ground(mr)), TOUCH_DRAM_READ, (uintptr_t)from, len);
	sim_saw(sim_of_ground(mr_ground(mr)), TOUCH_DRAM_READ, (uintptr_t)from, from, len);
	memcpy(to, from, len);
	return true;
}

static bool write_dram(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
		       uint32_t len, const struct packet_name *name)
{
	sim_touch(sim_of_ground(mr_ground(mr)), TOUCH_DRAM_WRITE, (uintptr_t)to, len);
	sim_saw(sim_of_ground(mr_ground(mr)), TOUCH_DRAM_WRITE, (uintptr_t)to, from, len);
	memcpy(to, from, len);
	return true;
}

static const struct rnic_memory dram = {
	.check = check_dram,
	.read = read_dram,
	.write = write_dram,
};

static int check_pm(void *pm, const void *at, uint64_t len, unsigned access, struct pm_place *place)
{
	const uint8_t *first = at;
	uint64_t off;
	place->in_pm = pmem_owns(pm, at, len, &place->off);
	/* A region that is half in the pool: no card minds, but no store means it. */
	if (!place->in_pm &&
	    (pmem_owns(pm, first, 1, &off) || pmem_owns(pm, first + len - 1, 1, &off)))
		return EFAULT;
	return access & IBV_ACCESS_FLUSH_PERSISTENT && !place->in_pm ? EINVAL : 0;
}

static bool read_pm(void *pm, const struct rnic_mr *mr, void *to, const uint8_t *from, uint32_t len)
{
	if (!mr->in_pm)
		return read_dram(pm, mr, to, from, len);
	pmem_nic_read(pm, pm_offset(mr, from, len), to, len);
	sim_saw(sim_of_ground(mr_ground(mr)), TOUCH_READ, pm_offset(mr, from, len), to, len);
	return true;
}

static bool write_pm(void *pm, const struct rnic_mr *mr, uint8_t *to, const void *from,
		     uint32_t len, const struct packet_name *name)
{
	if (!mr->in_pm)
		return write_dram(pm, mr, to, from, len, name);
	struct nic_where at = where(name);
	sim_saw(sim_of_ground(mr_ground(mr)), TOUCH_WRITE, pm_offset(mr, to, len), from, len);
	while (len) {
		uint32_t part = mr_line_left(mr, to);
		if (part > len)
			part = len;
		pmem_nic_land(pm, pm_offset(mr, to, part), from, part, &at);
		to += part;
		from = (const uint8_t *)from + part;
		len -= part;
	}
	return true;
}

static bool flush_pm(void *pm, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
		     const struct packet_name *name)
{
	struct nic_where from = where(name);
	bool in_pm = mr && mr->in_pm;
	pmem_nic_drain(pm, mr ? NIC_FLUSH : NIC_READ, in_pm ? pm_offset(mr, at, len) : 0,
		       in_pm ? len : 0, &from);
	return true;
}

static bool commit_pm(void *pm, const struct rnic_mr *mr, const uint8_t *at, uint64_t len,
		      const struct packet_name *name)
{
	struct nic_where from = where(name);
	if (mr->in_pm)
		pmem_nic_drain(pm, NIC_COMMIT, pm_offset(mr, at, len), len, &from);
	return true;
}

static bool commit_word_pm(void *pm, const struct rnic_mr *mr, uint8_t *at, uint64_t word,
			   const struct packet_name *name)
{
	if (!mr->in_pm)
		return write_dram(pm, mr, at, &word, sizeof(word), name);
	struct nic_where from = where(name);
	uint64_t off = pm_offset(mr, at, sizeof(word));
	sim_saw(sim_of_ground(mr_ground(mr)), TOUCH_WRITE, off, &word, sizeof(word));
	pmem_nic_commit_word(pm, off, word, &from);
	return true;
}

static void arrive_pm(void *pm, const struct rnic_mr *mr, uint8_t *to, const void *from,
		      uint32_t len, const struct packet_name *name)
{
	if (!mr->in_pm || !len)
		return;
	struct nic_where at = where(name);
	pmem_nic_arrive(pm, pm_offset(mr, to, len), from, len, &at);
}

static void load_pm(void *pm, void *to, const void *from, size_t len)
{
	uint64_t off;
	if (pmem_owns(pm, from, len, &off))
		pmem_nic_read(pm, off, to, len);
	else
		memcpy(to, from, len);
}

static bool has_store_buffers(const void *pm)
{
	return pmem_has_buffers(pm);
}

static void post_pm(void *pm, rnic_event_fn *ring, void *arg)
{
	pmem_cpu_post(pm, ring, arg);
}

static void place_name(const void *pm, uint64_t off, char *buf, size_t len)
{
	pmem_place(pm, off, buf, len);
}

static const struct rnic_memory dram_and_pm = {
	.check = check_pm,
	.read = read_pm,
	.write = write_pm,
	.flush = flush_pm,
	.commit = commit_pm,
	.commit_word = commit_word_pm,
	.arrive = arrive_pm,
	.load = load_pm,
	.has_store_buffers = has_store_buffers,
	.post = post_pm,
	.place_name = place_name,
};

/* --- memory of a host that has no power --- */

static bool read_nothing(void *memory, const struct rnic_mr *mr, void *to, const uint8_t *from,
			 uint32_t len)
{
	(void)memory;
	(void)mr;
	(void)from;
	memset(to, 0, len);
	return true;
}

static bool write_nothing(void *memory, const struct rnic_mr *mr, uint8_t *to, const void *from,
			  uint32_t len, const struct packet_name *name)
{
	(void)memory;
	(void)mr;
	(void)to;
	(void)from;
	(void)len;
	(void)name;
	return true;
}

static const struct rnic_memory powerless = {
	.check = check_dram,
	.read = read_nothing,
	.write = write_nothing,
	.place_name = place_name,
};

void rnic_power_off(struct ibv_context *context)
{
	struct rnic_hca *hca = to_hca(context);
	struct sim *sim = sim_of_ground(&hca->net->ground);
	sim_set_power(sim, hca->host, false);
	hca->memory = &powerless;
	rnic_close(context);
}

struct ibv_context *rnic_open(struct rnic_net *net, unsigned host, struct pmem *pm)
{
	struct ibv_context *context = rnic_open_on(net, host, pm ? &dram_and_pm : &dram, pm);
	if (context && host_serves(host))
		to_hca(context)->hw = hardware_of_server(&net->hw, host_server(host));
	return context;
}

struct ibv_context *rnic_open_again(struct ibv_context *old, struct pmem *pm)
{
	const struct rnic_hca *before = to_hca(old);
	struct ibv_context *context = rnic_open(before->net, before->host, pm);
	if (context)
		rnic_follow(context, old);
	return context;
}
