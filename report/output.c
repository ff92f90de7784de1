/* SPDX-License-Identifier: BSD-3-Clause */
/* See output.h. */
#include "report/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/judge/names.h"
#include "checker/trace/trace.h"

int trace_path(const struct campaign_config *cfg, unsigned contract, const char *dir,
	       const char *tail, char **name)
{
	char middle[CAMPAIGN_NAME + 64] = "";
	if (strcmp(cfg->variant, "default"))
		snprintf(middle, sizeof(middle), "-%s", cfg->variant);
	if (strcmp(cfg->name, "default"))
		snprintf(middle + strlen(middle), sizeof(middle) - strlen(middle), "-%s",
			 cfg->name);
	for (char *p = middle; *p; p++)
		if (*p == ' ' || *p == '/')
			*p = '-';
	return asprintf(name, "%s/%s%s-%s%s.trace", dir, cfg->store->name, middle,
			contract_name(contract), tail) < 0
		       ? -ENOMEM
		       : 0;
}

const char tidemark_version[] = TM_VERSION;

static int standard = -1; /* standard output, if it is kept for a file */

int output_takes_standard(void)
{
	fflush(stdout);
	standard = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return standard < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -errno : 0;
}

static int write_open(FILE *out, int (*write)(FILE *out, const void *arg), const void *arg)
{
	errno = 0;
	int error = write(out, arg);
	if (!error && (fflush(out) || ferror(out)))
		error = errno ? -errno : -EIO;
	if (error == -EIO && errno)
		error = -errno;
	if (fclose(out) && !error)
		error = -errno;
	return error;
}

/* The reader of a FIFO may have left meanwhile: nobody waits for another one. */
static FILE *open_in_place(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	if (fd < 0)
		return NULL;
	int flags = fcntl(fd, F_GETFL);
	FILE *out = flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) ? NULL : fdopen(fd, "w");
	if (!out)
		close(fd);
	return out;
}

static int save(const char *path, int (*write)(FILE *out, const void *arg), const void *arg)
{
	char host[HOST_NAME_MAX + 1] = "", *name;
	struct stat st;
	if (!strcmp(path, STANDARD_OUTPUT)) {
		FILE *out = fdopen(standard, "w");
		int error = out ? write_open(out, write, arg) : -errno;
		return error == -EPIPE ? 0 : error; /* its reader has seen enough */
	}
	/* Renaming would replace a device or a link as readily as a file. */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode)) {
		FILE *out = open_in_place(path);
		return out ? write_open(out, write, arg) : -errno;
	}
	/* Other machines may have the folder, too, and processes of the same numbers. */
	if (gethostname(host, sizeof(host) - 1))
		return -errno;
	if (asprintf(&name, "%s.tmp.%s.%ld", path, host, (long)getpid()) < 0)
		return -ENOMEM;
	FILE *out = fopen(name, "wxe");
	int error = out ? write_open(out, write, arg) : -errno;
	if (!error && rename(name, path))
		error = -errno;
	if (error && out)
		unlink(name);
	free(name);
	return error;
}

/* The signals that people send wait, so that no half-written file is left. */
static void hold_signals(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(how, &set, NULL);
	driver_hold(how);
}

int save_file(const char *path, int (*write)(FILE *out, const void *arg), const void *arg)
{
	hold_signals(SIG_BLOCK);
	int error = save(path, write, arg);
	hold_signals(SIG_UNBLOCK);
	return error;
}

int save_trace(const char *path, const struct setup *s, const struct deviations *d, int contract,
	       const char *text)
{
	hold_signals(SIG_BLOCK);
	int error = trace_save(path, s, d, contract, text);
	hold_signals(SIG_UNBLOCK);
	return error;
}
