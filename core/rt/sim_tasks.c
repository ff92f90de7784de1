/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: how they start, what a step of theirs is, how they sleep and are woken.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/rt/sim_state.h"

#define POLL_NS	    10000 /* first fallback wake-up of a task that waits for a completion queue */
#define SOON_NS	    200
#define LOOKS_NS    2000000    /* who has looked a hundred times in vain waits from then on */
#define POLL_MAX_NS 1000000000 /* the longest one */

void sim_name_actor(struct sim *sim, struct actor *actor, unsigned host, const char *what,
		    unsigned number)
{
	struct named *named = &sim->named[sim->actors++ % ACTORS_KNOWN];
	unsigned life = sim_process_life(sim, host);
	if (!*named->actor.name || named->host != host || named->number != number ||
	    named->life != life || strncmp(named->what, what, sizeof(named->what))) {
		char name[ACTOR_NAME];
		const bool serves = host_serves(host), one = serves && sim->servers == 1;
		int len = snprintf(name, sizeof(name),
				   one	    ? "server"
				   : serves ? "s%u"
					    : "c%u",
				   serves ? host_server(host) + 1 : host);
		/* The points of a later process are not those of an earlier one. */
		if (life && serves)
			len += snprintf(name + len, sizeof(name) - (size_t)len, one ? "%u" : ".%u",
					life + 1);
		if (*what)
			len += snprintf(name + len, sizeof(name) - (size_t)len, "/%s", what);
		if (number && len < ACTOR_NAME)
			len += snprintf(name + len, sizeof(name) - (size_t)len, "%u", number);
		if (life && !serves && (number || *what) && len < ACTOR_NAME)
			snprintf(name + len, sizeof(name) - (size_t)len, ".%u", life + 1);
		named->host = host;
		named->number = number;
		named->life = life;
		strncpy(named->what, what, sizeof(named->what));
		actor_init(&named->actor, name);
	}
	*actor = named->actor;
}

void sim_connects_again(struct sim *sim, unsigned host)
{
	struct one_host *at = sim_host_of(sim, host);
	assert(!host_serves(host) && at->connects < UINT16_MAX);
	at->connects++;
}

int sim_task(const struct sim *sim)
{
	return sim->running ? (int)sim->running->number : -1;
}

struct actor *sim_actor(struct sim *sim)
{
	return sim->running ? &sim->running->actor : NULL;
}

unsigned sim_host(const struct sim *sim)
{
	return sim->running ? sim->running->host : HOST_SERVER;
}

static void task_main(void *arg)
{
	struct sim *sim = sim_of_thread;
	struct task *task = arg;
	assert(sim->running == task);
	task->fn(task->arg);
	if (task->thread)
		sim_thread_returns(sim);
	sim_end_task(sim);
}

void sim_end_task(struct sim *sim)
{
	struct task *task = sim->running;
	sim_commit_pending(sim);
	assert(sim->running == task && task->used);
	task->used = false;
	fiber_exit(&task->fiber, &sim->main_fiber);
}

/* A place for a new task; NULL: all are in use. */
static struct task *free_task(struct sim *sim)
{
	if (sim->tasks == FEW_TASKS && !sim->more) {
		sim->more = calloc(SIM_TASKS - FEW_TASKS, sizeof(*sim->more));
		if (!sim->more)
			arena_exhausted();
	}
	if (sim->tasks < SIM_TASKS)
		return task_at(sim, sim->tasks);
	for (unsigned t = 0; t < SIM_TASKS; t++)
		if (task_at(sim, t)->again)
			return task_at(sim, t);
	return NULL;
}

int sim_new_task(struct sim *sim, unsigned host, const char *what, unsigned number,
		 void (*fn)(void *), void *arg, struct task **out)
{
	struct task *task = free_task(sim);
	if (!task)
		return -EAGAIN;
	bool again = sim->tasks == SIM_TASKS;
	assert(!task->used); /* those above sim->tasks are free */
	if (fiber_alloc(&task->fiber))
		return -ENOMEM;
	if (!again)
		task->number = (uint8_t)sim->tasks++;
	sim_name_actor(sim, &task->actor, host, what, number);
	task->host = task->code_host = host;
	task->error = 0;
	task->failed = (struct sim_failed_call){0};
	task->used = task->asleep = true;
	task->dead = task->of_store = task->again = task->timed = false;
	/* A sleep of the earlier task in this place, which ended, must not wake this one. */
	task->sleep = again ? task->sleep + 1 : 0;
	task->idles = 0;
	task->tls = NULL;
	task->thread = NULL;
	task->refused = NULL;
	task->backoff_ns = POLL_NS;
	task->owed = task->look_ns = 0;
	task->fn = fn;
	task->arg = arg;
	fiber_make(&task->fiber, task_main, task);
	sim_make_ready(sim, task);
	sim_repeat_news(sim);
	assert(!task->asleep && sim->ready_len);
	*out = task;
	return 0;
}

int sim_spawn(struct sim *sim, unsigned host, const char *name, void (*fn)(void *), void *arg)
{
	struct task *task;
	return sim_new_task(sim, host, name ? name : "", 0, fn, arg, &task);
}

static void put_ready(struct sim *sim, unsigned nth, const struct task *task)
{
	_Static_assert(SIM_TASKS - 1 <= UINT8_MAX, "a task's number fits");
	sim->ready[(sim->ready_first + nth) % SIM_TASKS] = task->number;
}

static void end_tasks(struct sim *sim, unsigned host, const struct task *but)
{
	unsigned left = 0;
	for (unsigned t = 0; t < sim->tasks; t++) {
		struct task *task = task_at(sim, t);
		if (task->host != host || task == but)
			continue;
		task->dead = true;
		if (task->timed)
			sim_take_wake_up(sim, task);
	}
	for (unsigned i = 0; i < sim->ready_len; i++) {
		struct task *task = ready_task(sim, i);
		if (!task->dead)
			put_ready(sim, left++, task);
	}
	sim->ready_len = left;
	assert(!but || !but->dead);
	sim_threads_ended(sim, host);
}

void sim_kill_tasks(struct sim *sim, unsigned host)
{
	assert(sim->running && (host_serves(host) || sim->running->host == host));
	if (!host_serves(host))
		sim_inject(sim, host, SIM_INJECTED_DEATH);
	end_tasks(sim, host, NULL);
}

void sim_end_others(struct sim *sim)
{
	assert(sim->running && !host_serves(sim->running->host));
	end_tasks(sim, sim->running->host, sim->running);
}

void sim_end_tasks(struct sim *sim, unsigned host)
{
	assert(!sim->running);
	end_tasks(sim, host, NULL);
}

void sim_make_ready(struct sim *sim, struct task *task)
{
	assert(task->used && task->asleep);
	assert(sim->ready_len < SIM_TASKS);
	if (task->dead)
		return;
	task->asleep = false;
	task->sleep++;
	if (task->timed)
		sim_take_wake_up(sim, task);
	if (sim->scheduler)
		sim->scheduler->enables(sim->scheduler,
					chain_name(task->actor.name_hash, CHAIN_TASK));
	put_ready(sim, sim->ready_len++, task);
}

void sim_run_task(struct sim *sim, unsigned nth)
{
	struct task *task = ready_task(sim, nth);
	assert(!sim->running);
	assert(!task->dead && !task->asleep);
	for (; nth; nth--)
		put_ready(sim, nth, ready_task(sim, nth - 1));
	sim->ready_first = (sim->ready_first + 1) % SIM_TASKS;
	sim->ready_len--;
	sim->events++;
	sim->running = task;
	sim_enter_host(sim, task->code_host);
	errno = task->error;
	fiber_switch(&sim->main_fiber, &task->fiber);
	task->error = errno;
	assert(sim->running == task);
	sim->running = NULL;
}

void sim_leave(struct sim *sim)
{
	struct task *task = sim->running;
	assert(task);
	sim_commit_pending(sim);
	fiber_switch(&task->fiber, &sim->main_fiber);
	assert(sim->running == task && !task->asleep && !task->dead);
}

/* The run stops in mid-step. If it is run again, this task is the first to go on. */
static void leave_first(struct sim *sim)
{
	struct task *task = sim->running;
	assert(sim->stopping && !task->asleep);
	sim_commit_pending(sim);
	assert(sim->ready_len < SIM_TASKS);
	sim->ready_first = (sim->ready_first + SIM_TASKS - 1) % SIM_TASKS;
	put_ready(sim, 0, task);
	sim->ready_len++;
	fiber_switch(&task->fiber, &sim->main_fiber);
}

static inline void sleep_until(struct sim *sim, uint64_t fallback_ns)
{
	struct task *task = sim->running;
	assert(task && !task->asleep);
	assert(fallback_ns <= UINT64_MAX / 4); /* a time that can be added to any other */
	if (spend(sim) && !task->idles)
		fallback_ns += sim_repeat_pause(sim);
	task->asleep = true;
	/* With a scheduler it sleeps until something wakes it: a poll that finds nothing tells it
	 * nothing. */
	task->timed = !sim->scheduler;
	if (task->timed)
		sim_push_event(sim, 0, sim->run.now + fallback_ns, NULL, task);
	sim_leave(sim);
}

void sim_sleep_until_woken(struct sim *sim, uint64_t fallback_ns)
{
	struct task *task = sim->running;
	const bool waits = task->idles;
	sleep_until(sim, fallback_ns);
	const bool woken = waits && !task->idles;
	task->idles = 0;
	if (woken && sim->run.cost->wake)
		sleep_until(sim, sim->run.cost->wake);
}

void sim_sleep_for_waker(struct sim *sim)
{
	struct task *task = sim->running;
	assert(task && !task->asleep && !task->idles);
	spend(sim);
	task->asleep = true;
	sim_leave(sim);
}

void sim_sleep(struct sim *sim, uint64_t ns)
{
	if (sim->cpus)
		sim_pay(sim);
	sim->running->idles = 0; /* a completion does not end a sleep */
	sleep_until(sim, ns < choice_delay_ns(DELAY_FOREVER) ? ns : choice_delay_ns(DELAY_FOREVER));
}

void sim_idle_on(struct sim *sim, const void *key)
{
	struct task *task = sim->running;
	if (!task)
		return;
	assert(key && task->idles <= IDLE_KEYS);
	assert(!task->asleep); /* it looks before it sleeps */
	for (unsigned i = 0; i < task->idles; i++)
		if (task->idle[i] == key)
			return;
	if (task->idles < IDLE_KEYS)
		task->idle[task->idles++] = key;
}

void sim_wake(struct sim *sim, const void *key)
{
	assert(key);
	for (unsigned t = 0; t < sim->tasks; t++) {
		struct task *task = task_at(sim, t);
		for (unsigned i = 0; i < task->idles; i++) {
			if (task->idle[i] != key)
				continue;
			task->backoff_ns = POLL_NS;
			task->idles = 0;
			if (task->asleep)
				sim_make_ready(sim, task);
			assert(!task->asleep || task->dead);
			break;
		}
	}
}

void sim_yield(struct sim *sim)
{
	if (sim->running)
		sim_yield_until(sim, UINT64_MAX);
}

static uint64_t longer(const struct sim *sim, uint64_t wait)
{
	return sim->cpus ? wait + wait / 16 : 2 * wait;
}

void sim_yield_until(struct sim *sim, uint64_t until)
{
	struct task *task = sim->running;
	uint64_t wait = task->backoff_ns, left = until - sim->run.now;
	assert(until > sim->run.now);
	const bool looks = task->owed; /* at memory, which costs time */
	/* A look that costs something else than the one before has found something. */
	if (looks && task->owed != task->look_ns)
		wait = POLL_NS;
	task->look_ns = task->owed;
	assert(wait >= POLL_NS && wait <= POLL_MAX_NS);
	task->backoff_ns = wait < POLL_MAX_NS / 2 ? longer(sim, wait) : POLL_MAX_NS;
	assert(task->backoff_ns >= wait);
	if (looks && wait < LOOKS_NS) {
		sim_pay(sim); /* what comes meanwhile is seen by looking once more */
		return;
	}
	/* A task that waits for nothing in particular polls memory: soon again. Others may do both;
	 * where time is measured what they see comes late by a fraction of how long they wait. */
	if (!task->idles)
		wait = SOON_NS;
	else if (sim->cpus)
		wait /= POLL_NS / SOON_NS;
	sim_sleep_until_woken(sim, wait < left ? wait : left);
	if (looks)
		sim_pay(sim);
}

void sim_spend_step(struct sim *sim)
{
	spend(sim);
}

/* What is due at the current task's step happens before it. */
static void run_due(struct sim *sim)
{
	const struct task *task = sim->running;
	assert(task && !sim->scheduler);
	while (sim->stopping || sim_event_due(sim)) {
		if (sim->stopping)
			leave_first(sim);
		else
			sim_run_first_event(sim);
	}
	assert(sim->running == task && !task->asleep);
	if (sim->anywhere)
		sim_power_fails_here(sim, CRASH_ANYWHERE);
}

/* Is one of these servers there, besides this one? One that has lost its power is not as good as
 * before until the others have agreed that it is. */
static bool another_is_up(const struct sim *sim, uint32_t servers, unsigned server)
{
	for (unsigned i = 0; i < sim->servers; i++)
		if (i != server && servers >> i & 1 && !sim->server[i].down &&
		    !sim->server[i].for_ever && !sim->server[i].failed)
			return true;
	return false;
}

/* No system survives the loss of its last member that is there, or of a part's last copy. */
static bool may_be_lost(const struct sim *sim, unsigned server)
{
	bool may = true, parts = false;
	for (unsigned p = 0; p < RT_CONFIG_PARTS; p++) {
		const uint32_t servers = sim->config.part[p].servers;
		parts |= servers != 0;
		may &= !servers || another_is_up(sim, servers, server);
	}
	return parts ? may : another_is_up(sim, sim->config.members, server);
}

bool sim_copies_lost(const struct sim *sim)
{
	uint32_t gone = 0;
	bool lost = false;
	for (unsigned i = 0; i < sim->servers; i++)
		gone |= (uint32_t)sim->server[i].for_ever << i;
	for (unsigned p = 0; p < RT_CONFIG_PARTS; p++)
		lost |= sim->config.part[p].servers && !(sim->config.part[p].servers & ~gone);
	return lost || (sim->config.members && !(sim->config.members & ~gone));
}

/* Are so many members gone for ever as the design survives the loss of at once? Until the others
 * have left one out nothing else happens to them. */
static bool misses_all(const struct sim *sim)
{
	unsigned misses = 0;
	for (unsigned i = 0; i < sim->servers; i++)
		misses += sim->config.members >> i & 1 && sim->server[i].for_ever;
	return misses >= sim->losses;
}

/* The server's tasks never run again. False: there is no server, or it has died too often. */
static bool kill_server(struct sim *sim, unsigned server)
{
	if (server >= sim->servers || sim->server[server].down || !sim->death ||
	    sim->server[server].life + 1 >= SERVER_LIVES)
		return false;
	sim_kill_tasks(sim, server_host(server));
	sim->server[server].down = true;
	sim->server[server].accept = NULL;
	return true;
}

/* Something happens to one of several servers. False: it cannot. */
static bool happens_to(struct sim *sim, unsigned server, enum server_event event)
{
	const bool for_ever = !server_events[event].lasts_ns;
	if (server >= sim->servers || !sim->death || sim->server[server].down || misses_all(sim) ||
	    (for_ever && !may_be_lost(sim, server)))
		return false;
	if (server_is_cut(event) ? sim->server[server].cut : !kill_server(sim, server))
		return false;
	sim->server[server].for_ever |= for_ever;
	sim->server[server].failed |= !server_is_cut(event);
	return true;
}

/* The current task is delayed, or something dies at its step. */
static void delay_or_die(struct sim *sim, unsigned k)
{
	struct task *task = sim->running;
	const unsigned nth = delay_befalls_one(k) ? death_server(k) : 0;
	bool server = k == DEATH_SERVER || delay_befalls_one(k);
	bool dies = k == DELAY_FOREVER || delay_kills(k);
	assert(k);
	assert(!dies || server || !host_serves(task->host));
	if (!dies) {
		sim_delay_task(sim, k);
		return;
	}
	if (delay_befalls_one(k) ? !happens_to(sim, nth, death_event(k))
				 : server && (sim->servers > 1 || !kill_server(sim, 0)))
		return;
	if (!server)
		sim_kill_tasks(sim, task->host);
	if (k == DEATH_MACHINE)
		sim_host_of(sim, task->host)->died = true;
	sim_repeat_news(sim);
	if (sim->death)
		sim->death(sim->death_arg, server ? server_host(nth) : task->host, k);
	if (task->dead)
		sim_delay_task(sim, DELAY_FOREVER);
}

bool sim_machine_died(const struct sim *sim, unsigned host)
{
	return sim_host_at(sim, host)->died;
}

void sim_server_again(struct sim *sim, unsigned server)
{
	assert(sim->server[server].down && !sim->server[server].accept);
	assert(sim->server[server].life + 1 < SERVER_LIVES);
	sim->server[server].down = false;
	sim->server[server].life++;
	sim_new_process(sim, server_host(server));
}

void sim_set_servers(struct sim *sim, unsigned servers, unsigned losses)
{
	assert(servers && servers <= SIM_SERVERS && !sim->tasks);
	sim->servers = servers;
	sim->losses = losses > 1 && servers > 2 ? losses : 1;
	sim->config = (struct rt_config){
		.epoch = 1, .members = (1u << servers) - 1, .alive = (1u << servers) - 1};
}

const struct rt_config *sim_config(const struct sim *sim)
{
	return &sim->config;
}

uint32_t sim_readmitted(const struct sim *sim)
{
	return sim->readmitted;
}

void sim_set_reaches(struct sim *sim, void (*reaches)(void *, struct op_label, unsigned), void *arg)
{
	sim->reaches = reaches;
	sim->reaches_arg = arg;
	sim->readmitted = 0;
}

void sim_reaches(struct sim *sim, struct op_label op, unsigned from, unsigned to)
{
	if (sim->reaches && op.kind && !host_serves(from) && host_serves(to))
		sim->reaches(sim->reaches_arg, op, host_server(to));
}

void sim_leaves(struct sim *sim, unsigned host, uint64_t at_ns)
{
	_Static_assert(SIM_HOSTS <= LEAVING_HOSTS, "each has its number there");
	if (sim->servers > 1 && host_serves(host))
		sim_touch(sim, TOUCH_LEAVES, leaving_touch(at_ns, host), 0);
}

void sim_set_config(struct sim *sim, const struct rt_config *config)
{
	sim_touch(sim, TOUCH_DRAM_WRITE, (uintptr_t)&sim->config, sizeof(sim->config));
	sim->readmitted |= config->members & ~sim->config.members;
	for (unsigned i = 0; i < sim->servers && config->epoch != sim->config.epoch; i++)
		sim->server[i].failed &= !(config->members >> i & 1) || sim->server[i].down;
	sim->config = *config;
	sim_wake(sim, &sim->config);
}

void sim_set_alive(struct sim *sim, unsigned server, bool alive)
{
	struct rt_config next = sim->config;
	assert(server < sim->servers);
	sim->server[server].lease += !alive;
	next.alive = (next.alive & ~(1u << server)) | (uint32_t)alive << server;
	sim_set_config(sim, &next);
}

void sim_set_cut(struct sim *sim, unsigned server, bool cut)
{
	assert(server < sim->servers && sim->server[server].cut != cut);
	sim->server[server].cut = cut;
	if (!cut)
		return;
	sim->server[server].cut_at = sim_now(sim);
	sim->server[server].heard = sim->config;
	sim_wake(sim, &sim->config); /* its own tasks wait no longer */
}

bool sim_is_cut(const struct sim *sim, unsigned server)
{
	assert(server < sim->servers);
	return sim->server[server].cut;
}

void sim_set_power(struct sim *sim, unsigned host, bool on)
{
	if (!on)
		sim_host_of(sim, host)->power_off_at = sim_now(sim);
	sim_host_of(sim, host)->powerless = !on;
}

uint64_t sim_power_off_at(const struct sim *sim, unsigned host)
{
	return sim_host_at(sim, host)->power_off_at;
}

bool sim_has_power(const struct sim *sim, unsigned host)
{
	return !sim_host_at(sim, host)->powerless;
}

unsigned sim_task_host(const struct sim *sim, unsigned task)
{
	assert(task < sim->tasks);
	return task_at(sim, task)->host;
}

void sim_new_process(struct sim *sim, unsigned host)
{
	sim_fresh_statics(sim, host);
	descriptors_forget(sim, host);
}

unsigned sim_server_life(const struct sim *sim)
{
	unsigned lives = 0;
	for (unsigned i = 0; i < sim->servers; i++)
		lives += sim->server[i].life;
	return lives;
}

/* May the current task be delayed at its nth step of that kind? */
static void delay_at_step(struct sim *sim, enum step_kind kind, uint32_t nth)
{
	struct task *task = sim->running;
	assert(kind != STEP_BEGIN && nth); /* sim_begin() asks for the other */
	assert(task && !task->asleep);
	struct choice_point at = {.kind = CHOICE_STEP,
				  .who = &task->actor,
				  .op = task->actor.op,
				  .occurrence = task->actor.occurrence,
				  .a = kind,
				  .b = nth};
	unsigned k = sim_choose(sim, &at, host_serves(task->host) ? DELAYS : DELAYS + 1);
	if (k)
		delay_or_die(sim, k);
	assert(sim->running == task && k != DELAY_FOREVER); /* the dead do not come back */
}

/* The simulation may do nothing new any more: then it does it more slowly. */
static void hold_repeating(struct sim *sim)
{
	uint64_t pause = sim_repeat_pause(sim);
	if (pause)
		sim_sleep(sim, pause);
}

/* Something is due, a source is asked, or the simulation may repeat itself. */
static __attribute__((noinline)) void step_slowly(struct sim *sim, enum step_kind kind,
						  uint32_t nth, bool look)
{
	if (sim->alone)
		return;
	if (sim->stopping || sim->anywhere || sim_event_due(sim))
		run_due(sim);
	if (!answered_plainly(sim->source, CHOICE_STEP))
		delay_at_step(sim, kind, nth);
	if (look)
		hold_repeating(sim);
}

/* The hot path: at most of a store's steps nothing is due and no source is asked. It calls nothing
 * but in place of its own return, so that it has no registers to keep. */
void sim_step(struct sim *sim, enum step_kind kind, unsigned cost_ns)
{
	struct task *task = sim->running;
	struct source *source = sim->source;
	if (!task)
		return;
	if (sim->cpus)
		sim_owe(sim, kind, cost_ns);
	else
		sim->run.now += cost_ns;
	uint32_t nth = ++task->actor.count[COUNT_STEP + kind];
	bool look = spend(sim);
	if (sim->scheduler)
		return;
	if (look || sim->stopping || sim->anywhere || sim_event_due(sim) ||
	    (source && !source->skip[CHOICE_STEP])) {
		step_slowly(sim, kind, nth, look);
		return;
	}
	if (source)
		source->skip[CHOICE_STEP]--;
}

/* A step of which only some sources want to know: others may come before it, and that is all. */
static void order_at_step(struct sim *sim, enum step_kind kind)
{
	struct task *task = sim->running;
	assert(task && !task->asleep);
	struct choice_point at = {.kind = CHOICE_STEP,
				  .who = &task->actor,
				  .op = task->actor.op,
				  .occurrence = task->actor.occurrence,
				  .a = kind,
				  .b = ++task->actor.count[COUNT_STEP + kind]};
	unsigned k = sim_choose(sim, &at, 1);
	assert(!k || k >= DELAY_QUIESCENCE); /* no clock ends it */
	if (k)
		delay_or_die(sim, k);
}

void sim_begin(struct sim *sim)
{
	if (sim->source && sim->source->begins)
		order_at_step(sim, STEP_BEGIN);
}

void sim_atomic(struct sim *sim, const void *addr)
{
	if (sim->running && sim->source && sim->source->atomics && !sim->alone && !sim->stopping &&
	    !sim_on_stack(sim, addr))
		order_at_step(sim, STEP_ATOMIC);
}

size_t sim_allocated_before(const struct sim *sim, const void *addr)
{
	return arena_before(&sim->arena, addr);
}

bool sim_on_stack(const struct sim *sim, const void *addr)
{
	return sim->running && (uintptr_t)addr - (uintptr_t)sim->running->fiber.stack <
				       sim->running->fiber.stack_bytes;
}
