/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_judge.h. */
#include "checker/images/image_judge.h"
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What the process that calls a library's function is asked. */
struct question {
	unsigned long acked;
	char path[IMAGE_PATH];
	char marker[256];
};

struct image_judge {
	struct image_checker checker;
	pid_t caller; /* the process that calls the library's function; 0: there is none */
	int ask, answer;
};

void image_verdict_words(struct image_verdict v, char *out, size_t n)
{
	switch ((enum image_how)v.how) {
	case IMAGE_GOOD:
		snprintf(out, n, "good");
		return;
	case IMAGE_EXIT:
		snprintf(out, n, "exit status %u", v.number);
		return;
	case IMAGE_SIGNAL:
		snprintf(out, n, "it was ended by signal %u (%s)", v.number, strsignal(v.number));
		return;
	case IMAGE_HANG:
		snprintf(out, n, "it did not end");
		return;
	}
}

static void silence(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
}

static void tell(unsigned long acked, const char *marker)
{
	char number[24];
	snprintf(number, sizeof(number), "%lu", acked);
	setenv("TIDEMARK_ACKED", number, 1);
	setenv("TIDEMARK_MARKER", marker, 1);
}

static struct image_verdict verdict_of(int status)
{
	if (WIFSIGNALED(status))
		return (struct image_verdict){IMAGE_SIGNAL, (uint8_t)WTERMSIG(status)};
	if (WEXITSTATUS(status))
		return (struct image_verdict){IMAGE_EXIT, (uint8_t)WEXITSTATUS(status)};
	return (struct image_verdict){IMAGE_GOOD, 0};
}

/* --- a command --- */

/* The command with each "{}" replaced by the path, to be freed. NULL without memory. */
static char *insert_path(const char *command, const char *path)
{
	size_t n = 0, len = strlen(path);
	for (const char *at = command; (at = strstr(at, "{}")) != NULL; at += 2)
		n++;
	char *out = malloc(strlen(command) + (n + 1) * (len + 3) + 1), *to = out;
	if (!out)
		return NULL;
	for (const char *at = command; *at;) {
		bool here = !strncmp(at, "{}", 2);
		to += sprintf(to, "%.*s", here ? (int)len : 1, here ? path : at);
		at += here ? 2 : 1;
	}
	*to = 0;
	if (!n)
		sprintf(to, " %s", path);
	return out;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Wait for it, and kill its process group if it takes too long. */
static int await(pid_t child, double patience, struct image_verdict *verdict)
{
	double until = seconds() + patience;
	sigset_t chld;
	int status = 0;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD); /* blocked by the caller */
	for (;;) {
		pid_t got = waitpid(child, &status, WNOHANG);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == child)
			break;
		double left = until - seconds();
		if (left <= 0) {
			kill(-child, SIGKILL);
			waitpid(child, &status, 0);
			*verdict = (struct image_verdict){IMAGE_HANG, 0};
			return 0;
		}
		struct timespec wait = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		sigtimedwait(&chld, NULL, &wait);
	}
	kill(-child, SIGKILL); /* what it has left running */
	*verdict = verdict_of(status);
	return 0;
}

static int run_command(struct image_judge *j, const char *command, const char *path,
		       unsigned long acked, const char *marker, struct image_verdict *verdict)
{
	char *line = insert_path(command, path);
	sigset_t chld, before;
	if (!line)
		return -ENOMEM;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	pid_t child = fork();
	if (!child) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &before, NULL);
		tell(acked, marker);
		if (!j->checker.show)
			silence();
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	int error = child < 0 ? -errno : await(child, j->checker.patience, verdict);
	sigprocmask(SIG_SETMASK, &before, NULL);
	free(line);
	return error;
}

/* --- a library --- */

static _Noreturn void call_library(const struct image_checker *c, int in, int out)
{
	struct question q;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	void *library = dlopen(c->library, RTLD_NOW);
	int (*function)(const char *) = NULL;
	if (library)
		*(void **)&function = dlsym(library, c->function);
	if (!function)
		_exit(127);
	if (!c->show)
		silence();
	while (read(in, &q, sizeof(q)) == (ssize_t)sizeof(q)) {
		tell(q.acked, q.marker);
		int result = function(q.path);
		uint8_t byte = !result || result & 255 ? (uint8_t)result : 255;
		if (write(out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static int start_caller(struct image_judge *j)
{
	int ask[2], answer[2];
	if (pipe2(ask, O_CLOEXEC))
		return -errno;
	if (pipe2(answer, O_CLOEXEC)) {
		int error = -errno;
		close(ask[0]);
		close(ask[1]);
		return error;
	}
	j->caller = fork();
	if (!j->caller) {
		close(ask[1]);
		close(answer[0]);
		call_library(&j->checker, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	j->ask = ask[1];
	j->answer = answer[0];
	if (j->caller > 0)
		return 0;
	j->caller = 0;
	close(j->ask);
	close(j->answer);
	return -EAGAIN;
}

/* Its exit status. */
static int stop_caller(struct image_judge *j, bool kill_it)
{
	int status = 0;
	if (!j->caller)
		return 0;
	if (kill_it)
		kill(j->caller, SIGKILL);
	close(j->ask);
	close(j->answer);
	waitpid(j->caller, &status, 0);
	j->caller = 0;
	return status;
}

static int ask_library(struct image_judge *j, const char *path, unsigned long acked,
		       const char *marker, struct image_verdict *verdict)
{
	struct question q = {.acked = acked};
	struct pollfd answer;
	uint8_t byte;
	int error = j->caller ? 0 : start_caller(j);
	if (error)
		return error;
	snprintf(q.path, sizeof(q.path), "%s", path);
	snprintf(q.marker, sizeof(q.marker), "%s", marker);
	_Static_assert(sizeof(q) > 4096, "a pipe takes it in pieces; nobody else writes");
	ssize_t n = write(j->ask, &q, sizeof(q));
	answer = (struct pollfd){.fd = j->answer, .events = POLLIN};
	if (n == (ssize_t)sizeof(q) && poll(&answer, 1, (int)(j->checker.patience * 1000)) == 0) {
		stop_caller(j, true);
		*verdict = (struct image_verdict){IMAGE_HANG, 0};
		return 0;
	}
	if (n == (ssize_t)sizeof(q) && read(j->answer, &byte, 1) == 1) {
		*verdict = (struct image_verdict){byte ? IMAGE_EXIT : IMAGE_GOOD, byte};
		return 0;
	}
	/* It has ended: that is the verdict; the next one is asked of another. */
	*verdict = verdict_of(stop_caller(j, false));
	if (verdict->how == IMAGE_GOOD)
		*verdict = (struct image_verdict){IMAGE_EXIT, 0};
	return 0;
}

/* --- both --- */

static int check_library(const struct image_checker *c, char *why, size_t n)
{
	void *library = dlopen(c->library, RTLD_NOW);
	if (!library) {
		snprintf(why, n, "%s", dlerror());
		return -ENOENT;
	}
	bool found = dlsym(library, c->function) != NULL;
	dlclose(library);
	if (found)
		return 0;
	snprintf(why, n, "%s: it has no function %s", c->library, c->function);
	return -ENOENT;
}

int image_judge_open(struct image_judge **judge, const struct image_checker *checker, char *why,
		     size_t n)
{
	struct image_judge *j = calloc(1, sizeof(*j));
	int error = j ? 0 : -ENOMEM;
	assert(!checker->recover != !checker->library);
	if (!error && checker->library)
		error = check_library(checker, why, n);
	else if (error)
		snprintf(why, n, "%s", strerror(ENOMEM));
	if (error) {
		free(j);
		return error;
	}
	j->checker = *checker;
	signal(SIGPIPE, SIG_IGN); /* a caller that has died */
	*judge = j;
	return 0;
}

void image_judge_close(struct image_judge *j)
{
	if (j)
		stop_caller(j, true);
	free(j);
}

int image_judge(struct image_judge *j, const struct image_files *files, unsigned long acked,
		const char *marker, struct image_verdict *verdict, bool *wrote)
{
	const struct image_checker *c = &j->checker;
	*verdict = (struct image_verdict){IMAGE_GOOD, 0};
	*wrote = true;
	for (unsigned i = 0; i < files->log->files && verdict->how == IMAGE_GOOD; i++) {
		const char *path = files->file[i].path;
		int error = c->library ? ask_library(j, path, acked, marker, verdict)
				       : run_command(j, c->recover, path, acked, marker, verdict);
		if (!error && c->check && verdict->how == IMAGE_GOOD)
			error = run_command(j, c->check, path, acked, marker, verdict);
		if (error)
			return error;
	}
	return 0;
}
