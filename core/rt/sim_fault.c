/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store code that crashes: a bad pointer, an arithmetic fault, an abort. The signal's handler sends
 * the task to sim_abandon(), and the run ends with SIM_FAULT.
 *
 * Likewise store code that loops for ever without a step that the simulation would see: a timer
 * that counts processor time finds at two of its ticks that nothing has happened in between.
 * Nothing that ends takes seconds without a step.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>
#include "core/rt/sim_state.h"

static void fault_landing(void)
{
	sim_abandon(sim_of_thread, SIM_FAULT);
}

/* Where the task goes on. It never comes back: its stack is used from the top, aligned as after a
 * call, even if it was too short. */
static void land(ucontext_t *uc)
{
#if defined(__x86_64__)
	sim_of_thread->fault_pc = uc->uc_mcontext.gregs[REG_RIP];
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fault_landing;
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)(fiber_abandon(&sim_of_thread->running->fiber) -
						  8);
#elif defined(__aarch64__)
	sim_of_thread->fault_pc = uc->uc_mcontext.pc;
	uc->uc_mcontext.pc = (uintptr_t)fault_landing;
	uc->uc_mcontext.sp = fiber_abandon(&sim_of_thread->running->fiber);
#else
#error "land: say how to continue elsewhere on this machine"
#endif
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (!sim_of_thread || !sim_of_thread->running) {
		/* Our own fault: let it kill the process as it would have. */
		signal(sig, SIG_DFL);
		return;
	}
	land(context);
	snprintf(sim_of_thread->fault, sizeof(sim_of_thread->fault), "%s",
		 sig == SIGSEGV	 ? "segmentation fault"
		 : sig == SIGBUS ? "bus error"
		 : sig == SIGILL ? "illegal instruction"
				 : "arithmetic fault");
}

/* --- loops without a step --- */

#define TICK_MS	      4000
#define SHORT_TICK_MS 250 /* once one was found: there are more, most likely */

static void set_timer(unsigned ms)
{
	const struct timeval tick = {ms / 1000, ms % 1000 * 1000};
	const struct itimerval every = {tick, tick};
	setitimer(ITIMER_VIRTUAL, &every, NULL);
}

static void on_tick(int sig, siginfo_t *info, void *context)
{
	static _Thread_local struct {
		const struct sim *sim;
		uint64_t runs, events, steps;
	} last;
	struct sim *sim = sim_of_thread;
	(void)sig, (void)info;
	if (!sim || !sim->running) {
		last.sim = NULL;
		return;
	}
	bool same = last.sim == sim && last.runs == sim_runs && last.events == sim->events &&
		    last.steps == sim->step_budget;
	last.sim = sim;
	last.runs = sim_runs;
	last.events = sim->events;
	last.steps = sim->step_budget;
	if (!same)
		return;
	last.sim = NULL;
	land(context);
	/* Where it was is a matter of time. */
	sim->fault_pc = 0;
	snprintf(sim->fault, sizeof(sim->fault), "an endless loop without a step");
	set_timer(SHORT_TICK_MS);
}

static _Thread_local bool watched;

/* A process does not have its parent's timers. */
static void watch_anew(void)
{
	watched = false;
}

void sim_watch_for_loops(void)
{
	if (watched)
		return;
	watched = true;
	set_timer(TICK_MS);
}

void sim_catch_faults(void)
{
	struct sigaction tick = {.sa_sigaction = on_tick,
				 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART};
	static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
	sigemptyset(&tick.sa_mask);
	sigaction(SIGVTALRM, &tick, NULL);
	pthread_atfork(NULL, NULL, watch_anew);
}

void sim_give_signal_stack(void)
{
	static _Thread_local _Alignas(64) char stack[64 * 1024];
	static _Thread_local bool has_one; /* asking the kernel in each run costs a microsecond */
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, there;
	if (has_one)
		return;
	has_one = true;
	/* Not in place of one that is there: a sanitizer takes its own back when the thread
	 * ends. */
	if (!sigaltstack(NULL, &there) && there.ss_flags & SS_DISABLE)
		sigaltstack(&alternate, NULL);
}

const char *sim_fault(const struct sim *sim, uintptr_t *pc)
{
	if (pc)
		*pc = sim->fault_pc;
	return sim->fault;
}

const char *sim_fault_where(const struct sim *sim)
{
	return sim->fault_said ? "" : " in the store's code";
}

void sim_set_fault(struct sim *sim, uintptr_t pc, const char *what)
{
	sim->fault_pc = pc;
	snprintf(sim->fault, sizeof(sim->fault), "%s", what);
}
