/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes: their end, their environment, and what the machine says of itself. */
#include "core/libc/process.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "core/fail.h"
#include "core/hardware/hardware.h"
#include "core/libc/stdlib.h"
#include "core/libc/traced.h"
#include "core/rt/process/libc.h"
#include "core/rt/process/sim_libc.h"

#define PAGE	   4096
#define CPUS	   4
#define PID	   1000 /* of host 0 */
#define PIDS	   100	/* of a host's processes */
#define THREAD_IDS 10000

struct process *process(void)
{
	struct sim *sim = sim_current();
	struct process **mine = (struct process **)sim_process(sim);
	unsigned life = sim_process_number(sim).life;
	if (*mine && (*mine)->life == life)
		return *mine;
	*mine = sim_alloc(sim, sizeof(**mine));
	(*mine)->life = life;
	initstate_r(1, (*mine)->random_state, sizeof((*mine)->random_state), &(*mine)->random);
	srand48_r(0, &(*mine)->real);
	return *mine;
}

#define ENDS(name, how)                                              \
	void name(int status)                                        \
	{                                                            \
		char text[40];                                       \
		snprintf(text, sizeof(text), "%s(%d)", how, status); \
		sim_fault_at(PC, text);                              \
	}
ENDS(sim_exit, "exit")
ENDS(sim_exit_now, "_exit")
ENDS(sim_exit_quickly, "quick_exit")
ENDS(sim_exit_at_once, "_Exit")

/* A host's process ends by a failure alone, and then no handler runs. */
int sim_atexit(void (*fn)(void))
{
	(void)fn;
	return 0;
}

char *sim_getenv(const char *name)
{
	(void)name;
	return NULL;
}

char *sim_secure_getenv(const char *name) __attribute__((alias("sim_getenv")));

int sim_getpid(void)
{
	struct sim *sim = sim_current();
	return PID + (int)(sim_host(sim) * PIDS + sim_process_number(sim).life);
}

int sim_getppid(void)
{
	return 1;
}

int sim_gettid(void)
{
	return sim_task(sim_current()) + THREAD_IDS;
}

long sim_sysconf(int name)
{
	switch (name) {
	case _SC_PAGESIZE:
		return PAGE;
	case _SC_NPROCESSORS_CONF:
	case _SC_NPROCESSORS_ONLN:
		return CPUS;
	case _SC_CLK_TCK:
		return 100;
	case _SC_LEVEL1_DCACHE_LINESIZE:
		return LINE;
	default:
		errno = EINVAL;
		return -1;
	}
}

int sim_getpagesize(void)
{
	return PAGE;
}

int sim_get_nprocs(void)
{
	return CPUS;
}

int sim_get_nprocs_conf(void) __attribute__((alias("sim_get_nprocs")));

int sim_gethostname(char *to, size_t room)
{
	char name[16];
	unsigned host = sim_host(sim_current());
	size_t len = 1 + (size_t)(host == HOST_SERVER ? snprintf(name, sizeof(name), "server")
						      : snprintf(name, sizeof(name), "c%u", host));
	if (len > room)
		return errno_minus(ENAMETOOLONG);
	put(to, name, len, PC);
	return 0;
}
