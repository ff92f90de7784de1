/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Store code that crashes: a bad pointer, an arithmetic fault, an abort. The signal's handler sends
 * the task to sim_abandon(), and the run ends with SIM_FAULT.
 */
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include "core/rt/sim_state.h"

static void fault_landing(void)
{
	sim_abandon(sim_of_thread, SIM_FAULT);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	(void)info;
	if (!sim_of_thread || !sim_of_thread->running) {
		/* Our own fault: let it kill the process as it would have. */
		signal(sig, SIG_DFL);
		return;
	}
#if defined(__x86_64__)
	sim_of_thread->fault_pc = uc->uc_mcontext.gregs[REG_RIP];
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fault_landing;
	/* The task never comes back: its stack is used from the top, aligned as after a call, even
	 * if it was too short. */
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)(fiber_top(&sim_of_thread->running->fiber) - 8);
#elif defined(__aarch64__)
	sim_of_thread->fault_pc = uc->uc_mcontext.pc;
	uc->uc_mcontext.pc = (uintptr_t)fault_landing;
	uc->uc_mcontext.sp = fiber_top(&sim_of_thread->running->fiber);
#else
#error "on_fault: say how to continue elsewhere on this machine"
#endif
	snprintf(sim_of_thread->fault, sizeof(sim_of_thread->fault), "%s",
		 sig == SIGSEGV	 ? "segmentation fault"
		 : sig == SIGBUS ? "bus error"
				 : "arithmetic fault");
}

void sim_catch_faults(void)
{
	static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaction(caught[i], &action, NULL);
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
