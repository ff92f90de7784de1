/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_SIM_H
#define TM_RT_SIM_H
/*
 * The sim world: fibers, virtual time, one scheduler.
 *
 * A simulation is a queue of events in virtual time and a set of tasks (fibers).
 * One thing runs at a time. Tasks are not preempted unless sim_choose() says so: a
 * task runs until it yields, sleeps, ends, or is delayed at one of its steps. NIC
 * events that have become due run inline at a task's next step, on its stack.
 * Events due at the same time run in the order in which they were scheduled.
 *
 * Two simulations can live in one process, one running inside a callback of
 * another (the explorer runs a recovery inside a crash point of the main run).
 * The only per-thread state is "which simulation runs now".
 *
 * Memory: everything allocated in a simulation, malloc of store code included,
 * comes from its arena and is gone at sim_reset(). Nothing is allocated from the
 * system per run once the arena has grown to its size.
 */
#include <stdarg.h>
#include "core/hardware/profile.h"
#include "core/rt/durations.h"
#include "core/rt/source.h"
#include "core/rt/places.h"
#include "core/rt/config.h"
#include "core/rt/rt.h"
#include "core/rt/run.h"
#include "core/rt/process/statics.h"

struct sim;

#define HOST_SERVER 0 /* clients are hosts 1, 2, ... */
/* Servers of a store that has several: the first is HOST_SERVER's, the others' hosts count down
 * from the last one, so that a client's number does not depend on how many there are. */
#define SIM_HOSTS 128
static inline unsigned server_host(unsigned server)
{
	return server ? SIM_HOSTS - server : HOST_SERVER;
}
/* SIM_SERVERS: it is a client's. */
static inline unsigned host_server(unsigned host)
{
	if (host == HOST_SERVER)
		return 0;
	return host > SIM_HOSTS - SIM_SERVERS ? SIM_HOSTS - host : SIM_SERVERS;
}
static inline bool host_serves(unsigned host)
{
	return host_server(host) < SIM_SERVERS;
}

enum sim_end {
	SIM_DONE,   /* sim_stop() was called */
	SIM_IDLE,   /* nothing is left that could run */
	SIM_BUDGET, /* too many steps: a task does not terminate */
	SIM_FAULT,  /* store code crashed: bad memory access, abort, failed assert */
	SIM_POWER   /* the power failed (a choice said so) */
};

struct sim *sim_new(void); /* NULL: out of memory */
void sim_free(struct sim *sim);
/* Back to time 0: no tasks, no events, an empty arena, the given source (NULL: every answer is
 * 0). */
void sim_reset(struct sim *sim, struct source *source);
/* Change the source while the world runs: NULL during boot, the real one once clients start. */
void sim_source(struct sim *sim, struct source *source);
struct source *sim_get_source(const struct sim *sim);

/* What takes time, before any task begins: the profile stays the caller's. The default one after a
 * reset. */
void sim_set_profile(struct sim *sim, const struct profile *profile);
/* The current task works for so long; with so many picoseconds for each byte; flushes so many
 * bytes. Nothing where no task runs. */
void sim_work(struct sim *sim, uint64_t ns);
void sim_work_bytes(struct sim *sim, uint32_t ps, uint64_t bytes);
void sim_copy_bytes(struct sim *sim, uint64_t bytes);
void sim_flush_bytes(struct sim *sim, uint64_t bytes);
/* sim_now() with what the current task has not paid yet (sim_cpus.c). */
uint64_t sim_task_now(const struct sim *sim);
/* What a host's CPUs have done until now; 0: the profile has none. */
uint64_t sim_busy_ns(const struct sim *sim, unsigned host);

/* Run until an end. May be called again after SIM_DONE to go on. */
enum sim_end sim_run(struct sim *sim);
/* From a task or an event: sim_run() returns `end` before anything else runs. */
void sim_stop(struct sim *sim, enum sim_end end);
/* From a task: the same, and the task never returns. */
_Noreturn void sim_abandon(struct sim *sim, enum sim_end end);
/* The number of the machine's boot. The second one's clock is later, and its random numbers differ.
 * 0 after a reset. */
void sim_set_boot(struct sim *sim, unsigned boot);
/* Steps (hooked accesses, events) until SIM_BUDGET. Set at reset to a large number. */
void sim_set_step_budget(struct sim *sim, uint64_t steps);
/* Less than half of the budget is used up. */
bool sim_is_early(const struct sim *sim);
/* After SIM_FAULT: what happened ("segmentation fault", "assert(x) failed") and where (code address
 * or 0). */
const char *sim_fault(const struct sim *sim, uintptr_t *pc);

/* What the fault's words go on with: " in the store's code", or "", where they are a sentence. */
const char *sim_fault_where(const struct sim *sim);

/* The simulation that runs on this thread, NULL outside sim_run(). */
struct sim *sim_current(void);

uint64_t sim_now(const struct sim *sim); /* ns of virtual time */
/* The same and more, as long as the simulation lives; for hot paths of other rooms. */
struct run_state *sim_run_state(struct sim *sim);
uint64_t sim_events(const struct sim *sim); /* events and task switches so far, since sim_new() */

/* From a task: a name of all that the simulation goes on from but PM, within this process: its
 * clock, its events, the memory that it has handed out. Where an actor is in its program is not
 * looked at: only choices depend on it. 0: other tasks have begun, or it is too much. */
uint64_t sim_state_hash(const struct sim *sim);

/* Zeroed memory until the next reset; never NULL (out of memory ends the process, 70). */
void *sim_alloc(struct sim *sim, size_t bytes);

/* Call fn(sim, arg) after delay ns, from the scheduler or from a task's step. */
typedef void sim_fn(struct sim *sim, void *arg);
void sim_at(struct sim *sim, uint64_t delay_ns, sim_fn *fn, void *arg);
void sim_in_chain(struct sim *sim, uint64_t chain, uint64_t delay_ns, sim_fn *fn, void *arg);

/* The same when sim_choose() said "delay k" (0: it did not): `delay` more. When it is due at
 * the
 * latest. */
uint64_t sim_delay(struct sim *sim, uint64_t chain, unsigned k, uint64_t delay_ns, sim_fn *fn,
		   void *arg);

/*
 * From now on until a reset no clock says what comes next: whenever a task lets others go
 * (sim_turn(), a completion that is not there) and after each event, the scheduler chooses among
 * the tasks that can go on and each chain's oldest event. Nothing is delayed, and no due event runs
 * at a task's step; each event does the least that can happen at once: one line, one packet.
 */
void sim_set_scheduler(struct sim *sim, struct scheduler *scheduler);
bool sim_picks(const struct sim *sim);
/* The current task's next step is another turn. */
void sim_turn(struct sim *sim);
/* For the scheduler: see struct scheduler. Nothing where there is none. What is touched here is the
 * simulation's own state, as TOUCH_DRAM_READ or TOUCH_DRAM_WRITE. */
void sim_touch_state(struct sim *sim, enum touch what, const void *at, size_t len);
void sim_gives(struct sim *sim, const void *thing, uint64_t nth);
void sim_takes(struct sim *sim, const void *thing, uint64_t nth);
/* The others rest: the first of those delayed until then goes on. False: there is none. */
bool sim_let_go(struct sim *sim);
/* Which of the run's delays until quiescence are not over, as bits in the order in which they began
 * (at most SIM_DELAYS are known). *any: one of them may not go on yet. */
#define SIM_DELAYS 32
uint32_t sim_delayed(const struct sim *sim, bool *any);

/* Start a task on a host. `name` as in rt_spawn(); must outlive the task. */
int sim_spawn(struct sim *sim, unsigned host, const char *name, void (*fn)(void *), void *arg);
/* A new actor of a host: "server", "c2/notices", "c1/qp1". `what` may be "", number 0: none. */
void sim_name_actor(struct sim *sim, struct actor *actor, unsigned host, const char *what,
		    unsigned number);
/* A client connects once more. Tasks and queue pairs that it makes from now on are not those of
 * before, and named so: "c1/notices.2". */
void sim_connects_again(struct sim *sim, unsigned host);
/* The current task's actor; NULL when no task runs (an event from the scheduler). */
struct actor *sim_actor(struct sim *sim);
/* 0, 1, ...: number of the current task, -1 when none. At most SIM_TASKS. */
#define SIM_TASKS 256
int sim_task(const struct sim *sim);
unsigned sim_host(const struct sim *sim); /* of the current task */
/* Hosts' accept functions (rt_listen, rt_connect) are kept per simulation, at host 0. */

/* A step of the current task: `cost_ns` of virtual time pass, due events run, and
 * the task may be delayed. Outside a task: nothing. A poll is a step only when it
 * found something: how often a task polls in vain is no part of its program. */
void sim_step(struct sim *sim, enum step_kind kind, unsigned cost_ns);
/* The current task is about to begin an operation: the source may delay it. */
void sim_begin(struct sim *sim);
/* The current task is about to access memory that is not PM with an atomic instruction. */
void sim_atomic(struct sim *sim, const void *addr);
/* Use up one unit of step budget without a step (an access to DRAM). */
void sim_spend_step(struct sim *sim);

/* An operation begins, or returns. */
void sim_repeat_news(struct sim *sim);
/* From now on repetition is no livelock, or is again: a structural check may compare all with all.
 * The budget of steps still holds. */
void sim_repeat_allow(struct sim *sim, bool allowed);
bool sim_repeat_allowed(const struct sim *sim);
/* A delay that the source has chosen ends then, at the latest. */
void sim_repeat_pending(struct sim *sim, uint64_t due);
/* A task or a NIC accesses memory: the bytes that it reads; of a store also those that it is about
 * to replace, or those that take their place. Nothing but livelocks is found by it. */
void sim_saw(struct sim *sim, enum touch what, uint64_t where, const void *bytes, size_t len);
/* Does the simulation do the same things again and again, with nothing pending? */
bool sim_repeats(const struct sim *sim);

/* Hold the current task for ns of virtual time: rt_sleep(). */
void sim_sleep(struct sim *sim, uint64_t ns);
/* The current task found the thing that `key` names (a completion queue) empty: its next rt_yield()
 * waits for sim_wake(key). */
void sim_idle_on(struct sim *sim, const void *key);
void sim_wake(struct sim *sim, const void *key);
void sim_yield(struct sim *sim);

unsigned sim_choose(struct sim *sim, const struct choice_point *at, unsigned n);
/* May calls fail (CHOICE_FAIL)? If not, the source is not asked. Off after a reset. */
void sim_let_calls_fail(struct sim *sim, bool on);
bool sim_calls_fail(const struct sim *sim);
/* Is every answer 0 by construction? Lets hot paths skip the making of choice points. */
bool sim_plain(const struct sim *sim);

/* What was injected into the run that touches a host, bits. */
enum sim_injected {
	SIM_INJECTED_CALL = 1, /* a call of the host was told to fail */
	SIM_INJECTED_LINK =
		2, /* of a client: packets were lost, more often than they are repeated */
	SIM_INJECTED_DEATH = 4, /* the client is dead */
	SIM_INJECTED_DROP = 8	/* the server says that it has closed the client's connections */
};
void sim_inject(struct sim *sim, unsigned host, unsigned what);
unsigned sim_injected(const struct sim *sim, unsigned host);
/* The server's host has refused the client, because no one listened there. Has that happened since
 * this was asked the last time? */
void sim_refuse(struct sim *sim, unsigned host);
bool sim_take_refused(struct sim *sim, unsigned host);
/* Has any choice been answered otherwise than plainly? The power, and what it leaves, apart. */
bool sim_disturbed(const struct sim *sim);
/* A packet was lost, or delayed; `repeated`: its sender sends it again. */
void sim_packet_lost(struct sim *sim, unsigned from, unsigned to, bool repeated);
/* A NIC has sent a packet `tries` times without an answer, and now gives the connection up. */
void sim_link_given_up(struct sim *sim, unsigned from, unsigned to, unsigned tries);

/* A place where the power can fail. False: it does not. When it does, a task
 * never comes back from here; an event gets true and must return at once. */
bool sim_power_fails(struct sim *sim, const struct choice_point *at);
/* The same for the current task's next `place`. */
bool sim_power_fails_here(struct sim *sim, enum crash_place place);

/* The last call of store code on the current task that returned an error, if not forgotten. */
struct sim_failed_call {
	const char *name; /* "ibv_reg_mr"; NULL: none */
	const char *how;  /* "EINVAL", or the words of a completion's status */
	uintptr_t pc;	  /* of the caller */
};
/* Note one, and trace it. Nothing where no task runs. */
void sim_call_failed(struct sim *sim, const char *name, const char *how, uintptr_t pc);
/* Likewise, by its errno. */
void sim_call_returned(struct sim *sim, const char *name, int error, uintptr_t pc);
struct sim_failed_call sim_failed_call(const struct sim *sim);
void sim_forget_failed_call(struct sim *sim);

/* Is this the current task's own stack? */
bool sim_on_stack(const struct sim *sim, const void *addr);
/* How many bytes lie before this one in memory that a task has asked for (rt_alloc()), or in what
 * was handed out before it in the same piece; 0: it is other memory. */
size_t sim_allocated_before(const struct sim *sim, const void *addr);
/* The source is told of an access to memory, if it asked for that. */
void sim_touch(struct sim *sim, enum touch what, uint64_t where, uint64_t len);
/* May the source, or a scheduler, ask for touches? A source that stops asking never asks again;
 * without a source no choices are asked for a while. */
bool sim_wants_touches(const struct sim *sim);

/* Mix into the event hash: equal for equal runs, see --doublecheck. */
void sim_mix(struct sim *sim, uint64_t a, uint64_t b);
void sim_mix_bytes(struct sim *sim, const void *bytes, size_t len);
uint64_t sim_hash(const struct sim *sim);

/* Called before another task or event may run, and before choices about a crash:
 * the persistence model reads there what the last traced store wrote. */
void sim_set_commit(struct sim *sim, void (*commit_pending)(void *arg), void *arg);
/* The last traced store comes before what the current task does next. */
void sim_commit_pending(struct sim *sim);
/* Called where a thread locks, unlocks or the like, after the step (core/rt/threads/threads.h): a
 * locked instruction, so that what its CPU has stored is in memory. False: the object at this place
 * is in persistent memory. */
void sim_set_locked(struct sim *sim, bool (*locked)(void *arg, const void *at, uintptr_t pc),
		    void *arg);
/* Called at each crash point that the source answers with 0 (the explorer's way in). */
void sim_set_observer(struct sim *sim,
		      void (*crash_point)(void *arg, const struct choice_point *at), void *arg);
/*
 * Snapshots. at_rest() is called whenever no task runs, before the next one does or the next event
 * happens; off after a reset. There, if sim_has_snapshot(), the simulation can be kept:
 * sim_snapshot() puts all of it but persistent memory and the source. sim_resume(), in place of
 * sim_reset(), makes a simulation that does not run what it was then, and sim_run() goes on from
 * there. The source that it had then, if it had one, is `source` now. No snapshots where it is
 * traced, where a scheduler says what comes next, while livelocks are watched for, or with
 * AddressSanitizer, which knows nothing of stacks that are replaced.
 */
struct snapshot;
void sim_set_at_rest(struct sim *sim, void (*at_rest)(void *arg), void *arg);
bool sim_has_snapshot(const struct sim *sim);
void sim_snapshot(struct sim *sim, struct snapshot *s);
void sim_resume(struct sim *sim, struct snapshot *s, struct source *source);
/* From now on nothing happens but what the running task does, until it says so: its steps are no
 * points at which another runs, or the power fails. */
void sim_set_alone(struct sim *sim, bool on);
/* Tests: the power can also fail at each step and after each event (CRASH_ANYWHERE). Off after a
 * reset. */
void sim_set_anywhere(struct sim *sim, bool on);

/* Called when a host's tasks have run for the last time. `how`: DELAY_FOREVER, DEATH_PROCESS,
 * DEATH_MACHINE of a client, DEATH_SERVER of the server, or from DEATH_ONE on what has happened to
 * one of several, whose tasks run on if it is only cut off. A task of the server is never delayed
 * for ever. Without this function the server's process does not die. */
void sim_set_death(struct sim *sim, void (*death)(void *arg, unsigned host, unsigned how),
		   void *arg);
/* After DEATH_SERVER and the like: from now on the tasks and queue pairs of this server's host are
 * a new process's, and named so: "server2", "server2/verifier". */
void sim_server_again(struct sim *sim, unsigned server);
/* How many servers there are: 1 after a reset. Several are named "s1", "s2". So many of them may be
 * lost at once (tm_store.losses). */
void sim_set_servers(struct sim *sim, unsigned servers, unsigned losses);
/* The configuration of several servers, as the service has it. */
const struct rt_config *sim_config(const struct sim *sim);
void sim_set_config(struct sim *sim, const struct rt_config *config);
/* From now on it is called when a client's message for an operation reaches a server. NULL after a
 * reset. Which servers have become members again since, as bits. */
uint32_t sim_readmitted(const struct sim *sim);
void sim_set_reaches(struct sim *sim,
		     void (*reaches)(void *arg, struct op_label op, unsigned server), void *arg);
void sim_reaches(struct sim *sim, struct op_label op, unsigned from, unsigned to);
/* A packet of this host has left it at the given time; the source is told where there are several
 * servers. */
void sim_leaves(struct sim *sim, unsigned host, uint64_t at_ns);
void sim_set_alive(struct sim *sim, unsigned server, bool alive);
/* The service and a server do not hear each other, or do again: rt_config_get() and so on. */
void sim_set_cut(struct sim *sim, unsigned server, bool cut);
bool sim_is_cut(const struct sim *sim, unsigned server);
/* Each host's clock (rt_now()) may be ahead by so much: a choice when its tasks first look at it
 * while there is a source. 0 after a reset. */
void sim_set_clocks(struct sim *sim, uint64_t ns);
/* What its stores have measured since its reset (rt_duration()). */
const struct durations *sim_durations(const struct sim *sim);
/* A host has lost its power, or has it again: until then nothing that its NIC sends leaves it. */
void sim_set_power(struct sim *sim, unsigned host, bool on);
bool sim_has_power(const struct sim *sim, unsigned host);
/* When it lost its power last, ns; 0: it has not. */
uint64_t sim_power_off_at(const struct sim *sim, unsigned host);
/* Whose task it is: 0, 1, ... as sim_task() says. */
unsigned sim_task_host(const struct sim *sim, unsigned task);
/* A new process begins on a host: it has fresh static data, and no descriptor is open. */
void sim_new_process(struct sim *sim, unsigned host);
/* Has the host died by DEATH_MACHINE? */
bool sim_machine_died(const struct sim *sim, unsigned host);
/* Are all members gone for ever, or all that the configuration says have a copy of a part? */
bool sim_copies_lost(const struct sim *sim);
/* The other tasks of the current one's host, a client, never run again: their process has ended. */
void sim_end_others(struct sim *sim);
/* From an event: none of the host's tasks runs again. */
void sim_end_tasks(struct sim *sim, unsigned host);
/* Number of the servers' processes that came before those that there are. */
unsigned sim_server_life(const struct sim *sim);

/* What the runs do without, and where it is noted which places were reached. Either may be NULL, as
 * after a reset; else it stays the caller's. */
void sim_set_places(struct sim *sim, const struct places_without *without,
		    struct places_reached *reached);
/* Does the store do what is at this place? Notes that it was reached. */
bool sim_does(uintptr_t key);

/* What the compiler hooks look for while this simulation runs (the PM pool); NULL after a reset. */
void sim_set_memory(struct sim *sim, void *memory);
extern _Thread_local void *sim_memory;

/* The net that joins the hosts, for calls of store code that name no device; NULL after a reset. */
void sim_set_net(struct sim *sim, void *net);
void *sim_net(const struct sim *sim);

/*
 * The event trace (core/rt/run.h), made only in a replay: NULL normally. Text without a newline, or
 * "": an event that needs no words. `about` says the same to tracers that do more than print.
 */
typedef void sim_tracer(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
			const struct traced *about, const char *text);
void sim_set_tracer(struct sim *sim, sim_tracer *tracer, void *arg);
bool sim_tracing(const struct sim *sim);
/* This tracer wants no words: it gets "", and no events that have nothing else. */
void sim_trace_no_words(struct sim *sim);
bool sim_traces_words(const struct sim *sim);
void sim_trace(struct sim *sim, const struct actor *who, uintptr_t pc, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void sim_trace_event(struct sim *sim, const struct actor *who, uintptr_t pc,
		     const struct traced *about, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#endif
