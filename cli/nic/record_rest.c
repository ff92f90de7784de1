/* SPDX-License-Identifier: BSD-3-Clause */
/* See record.h. */
#include "cli/nic/record.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/cli.h"

void record_rest_begin(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int record_rest_program(pid_t program)
{
	int status;
	pid_t ended;
	while ((ended = waitpid(-1, &status, 0)) != program)
		if (ended < 0 && errno != EINTR)
			return EXIT_INTERNAL;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}

/* Is it a child that the program has left? The watcher of the soft RNIC (cli/nic/run.c) is not, and
 * may stay for programs that are not recorded. */
static bool is_left(const char *process)
{
	char path[32], text[512];
	char state;
	int parent;
	snprintf(path, sizeof(path), "/proc/%.10s/stat", process);
	FILE *in = fopen(path, "re"); /* "12 (name) S 1 ...", and a name may have blanks */
	if (!in)
		return false;
	text[fread(text, 1, sizeof(text) - 1, in)] = 0;
	fclose(in);
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	return name && end && sscanf(end, ") %c %d", &state, &parent) == 2 && state != 'Z' &&
	       parent == getpid() &&
	       strncmp(name, "(" RUN_WATCHER ")", sizeof(RUN_WATCHER) + 1) != 0;
}

static unsigned count_left(void)
{
	unsigned n = 0;
	DIR *proc = opendir("/proc");
	for (const struct dirent *e; proc && (e = readdir(proc)) != NULL;)
		n += isdigit((unsigned char)e->d_name[0]) && is_left(e->d_name);
	if (proc)
		closedir(proc);
	return n;
}

void record_rest_wait(const char *name, bool interactive)
{
	sigset_t set;
	unsigned left;
	int sig = SIGCHLD;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (interactive)
		sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (sig == SIGCHLD || sig < 0) { /* -1: a lease was taken back */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		left = count_left();
		if (!left)
			return;
		if (name)
			fprintf(stderr,
				"tidemark: %s: the program has ended, and %u process%s of it %s "
				"not: recorded until then, or until SIGINT (Ctrl-C) or SIGTERM\n",
				name, left, left == 1 ? "" : "es", left == 1 ? "has" : "have");
		name = NULL;
		sig = sigwaitinfo(&set, NULL);
	}
}
