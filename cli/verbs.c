/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark verbs: small verbs programs on the soft RNIC or on a device of the system, and what they
 * print. Each runs in a process of its own, for a bounded time, so that one that crashes or hangs
 * says so and the others go on. docs/nic/reference.md says what the programs are for.
 */
#include "scenarios/verbs.h"
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"

#define SECONDS \
	60 /* that a program may take: it waits 4 s for the first completion that does not come */

struct choice {
	const char *device;
	bool live, list;
	const struct verbs_table *table;
};

static bool take_sim(const struct option_row *row, void *into, const char *value)
{
	(void)row;
	(void)value;
	((struct choice *)into)->live = false;
	return true;
}

static bool take_device(const struct option_row *row, void *into, const char *value)
{
	struct choice *choice = into;
	(void)row;
	choice->live = true;
	choice->device = *value ? value : NULL;
	return true;
}

static const struct option_row rows[] = {
	{"sim", NULL, "on the soft RNIC (the default)", OPTION_CALL(take_sim)},
	{"device", "NAME", "on this device of libibverbs; \"\": the first",
	 OPTION_CALL(take_device)},
	{"list", NULL, "the programs and what they do", OPTION_FIELD(struct choice, list)},
	OPTION_END};

static const struct options options = {
	"verbs", "[PROGRAM...] [OPTION...]",
	"Runs small verbs programs, all or those that are named, on the soft RNIC or on a device "
	"of the system, and prints what happened: errors of calls, completions, memory, states. "
	"The same lines on both mean that both do the same. docs/nic/reference.md says where they "
	"differ, and which is right.",
	rows,
	"0, 1 a program crashed or hung, 2 usage or bad input, 70 internal error, 77 there is no "
	"such device"};

/* Written at once, so that a crash loses nothing. */
static void put_line(void *arg, const char *text)
{
	(void)arg;
	dprintf(STDOUT_FILENO, "%s\n", text);
}

/* The child's part; its exit status is a parent's to see. */
static int run_here(const struct choice *choice, const struct verbs_program *program)
{
	const struct verbs_out out = {.line = put_line};
	char why[128] = "";
	int error = choice->live ? verbs_run_live(program, choice->device, &out)
				 : verbs_run_sim(program, &out, why, sizeof(why));
	if (error == -ENODEV)
		return fail(EXIT_SKIPPED, "no RDMA device%s%s", choice->device ? " " : "",
			    choice->device ? choice->device : "");
	if (error == -EFAULT && !choice->live)
		printf("crashed: %s\n", why);
	else if (error == -ETIME)
		puts("does not end");
	else if (error)
		return fail(EXIT_INTERNAL, "%s: %s", program->name, strerror(-error));
	fflush(stdout);
	return error ? EXIT_BROKEN : EXIT_HELD;
}

/* How the child has ended; killed when its time is over. A process that hangs in the kernel is left
 * behind.
 */
static bool reap(pid_t child, int *status)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	for (unsigned ms = 0; ms < (SECONDS + 2) * 1000; ms++) {
		if (waitpid(child, status, WNOHANG) == child)
			return true;
		if (ms == SECONDS * 1000)
			kill(child, SIGKILL);
		nanosleep(&moment, NULL);
	}
	return false;
}

static int run_one(const struct choice *choice, const struct verbs_program *program)
{
	int status;
	printf("== %s\n", program->name);
	fflush(stdout);
	pid_t child = fork();
	if (child < 0)
		return fail(EXIT_INTERNAL, "no process: %s", strerror(errno));
	if (!child)
		_exit(run_here(choice, program));
	if (!reap(child, &status)) {
		puts("hangs in the kernel");
		return EXIT_BROKEN;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGKILL)
		puts("hangs");
	else
		printf("crashed: %s\n", strsignal(WTERMSIG(status)));
	return EXIT_BROKEN;
}

/* The i-th program, NULL: there are no more. */
static const struct verbs_program *program_at(const struct verbs_table *table, unsigned i)
{
	for (unsigned g = 0; table->groups[g]; g++)
		for (const struct verbs_program *p = table->groups[g]; p->name; p++)
			if (i-- == 0)
				return p;
	return NULL;
}

static const struct verbs_program *find(const struct verbs_table *table, const char *name)
{
	const struct verbs_program *program;
	for (unsigned i = 0; (program = program_at(table, i)); i++)
		if (!strcmp(program->name, name))
			return program;
	return NULL;
}

static int unknown(const struct verbs_table *table, const char *name)
{
	const struct verbs_program *program;
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned i = 0; (program = program_at(table, i)); i++)
		nearest_try(&n, program->name);
	return fail(EXIT_USAGE, "no verbs program \"%.40s\"%s (tidemark verbs --list)", name,
		    n.hint);
}

static int list_programs(const struct verbs_table *table)
{
	const struct verbs_program *program;
	for (unsigned i = 0; (program = program_at(table, i)); i++)
		printf("%-24s %s\n", program->name, program->what);
	return EXIT_HELD;
}

/* The worse of two. */
static int worse(int a, int b)
{
	return a > b ? a : b;
}

int verbs_main(int argc, char **argv)
{
	struct choice choice = {0};
	const struct verbs_program *program;
	int status = options_read(&options, &choice, argc, argv);
	if (status >= 0)
		return status;
	choice.table = choice.live ? &verbs_live : &verbs_sim;
	if (choice.list)
		return list_programs(choice.table);
	for (int i = optind; i < argc; i++)
		if (!find(choice.table, argv[i]))
			return unknown(choice.table, argv[i]);
	status = EXIT_HELD;
	for (int i = optind; i < argc; i++)
		status = worse(status, run_one(&choice, find(choice.table, argv[i])));
	for (unsigned i = 0; optind == argc && (program = program_at(choice.table, i)); i++) {
		status = worse(status, run_one(&choice, program));
		if (status == EXIT_SKIPPED)
			break;
	}
	return status;
}
