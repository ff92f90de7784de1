/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals: an interrupted program leaves a clean terminal, and its child processes end with it. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "cli/cli.h"
#include "core/clock.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static pid_t parent;
/* Not 0: leave off. The signal that said so, or NO_SIGNAL. */
static volatile sig_atomic_t stopped;
#define NO_SIGNAL (-1)
static void (*drop)(void); /* signals_drop() */

/* The program dies of the signal, as its caller expects, but leaves the terminal's line clean. */
static void end(int sig)
{
	if (!progress_erase())
		_Exit(EXIT_INTERNAL);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* The processes of a campaign end with their parent: without it nothing reads their results. */
static void child_starts(void)
{
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (signal(ending[i], SIG_DFL) == SIG_IGN)
			signal(ending[i], SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_Exit(EXIT_INTERNAL);
	parent = getpid(); /* of its own children */
}

void signals_begin(void)
{
	parent = getpid();
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (signal(ending[i], end) == SIG_IGN)
			signal(ending[i], SIG_IGN); /* nohup, or in the background of a script */
	pthread_atfork(NULL, NULL, child_starts);
}

void signals_catch(void (*handler)(int))
{
	struct sigaction old, new = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_RESETHAND};
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (!handler)
			new = (struct sigaction){.sa_handler = end};
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ending[i], &new, NULL);
	}
}

static int awaited = -1; /* readable when it has come */

static void has_come(int sig)
{
	const uint64_t one = 1;
	int error = errno;
	(void)sig;
	if (write(awaited, &one, sizeof(one)) < 0)
		_exit(EXIT_INTERNAL);
	errno = error;
}

int signals_await(void)
{
	awaited = eventfd(0, EFD_CLOEXEC);
	if (awaited < 0)
		return -errno;
	signals_catch(has_come);
	return 0;
}

void signals_wait(void)
{
	uint64_t n;
	while (read(awaited, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/* timeout(1) signals its child and then the child's group: what follows the first signal so soon is
 * the same interruption. */
#define SAME_S 0.5

/* Whatever a second one has to wait for, a third one does not. */
static void end_of_third(int sig)
{
	sigset_t set;
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		signal(ending[i], SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void stop(int sig)
{
	static double first;
	if (stopped > 0 && clock_seconds() - first >= SAME_S) {
		end_of_third(sig);
		if (drop)
			drop();
		end(sig);
	}
	if (stopped <= 0)
		first = clock_seconds();
	stopped = stopped > 0 ? stopped : sig;
}

const volatile sig_atomic_t *signals_stop(void)
{
	struct sigaction old, new = {.sa_handler = stop, .sa_flags = SA_RESTART};
	for (unsigned i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(ending[i], &new, NULL);
	return &stopped;
}

void signals_drop(void (*what)(void))
{
	drop = what;
}

void signals_set_stop(bool stop)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (stopped <= 0)
		stopped = stop ? NO_SIGNAL : 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int signals_stopped(void)
{
	return stopped > 0 ? stopped : 0;
}
