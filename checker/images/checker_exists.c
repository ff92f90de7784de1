/* SPDX-License-Identifier: BSD-3-Clause */
/* See checker_exists.h. */
#include "checker/images/checker_exists.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first word, if the shell takes it as it is written. False: it may be anything. */
static bool plain_word(const char *command, char *word, size_t n)
{
	size_t len = 0;
	command += strspn(command, " \t");
	while (isalnum((unsigned char)command[len]) ||
	       (command[len] && strchr("_./+-,@%:", command[len])))
		len++;
	if (!len || len >= n || !(command[len] == 0 || strchr(" \t", command[len])))
		return false;
	memcpy(word, command, len);
	word[len] = 0;
	return true;
}

/* A path: 0 or an errno. */
static int find_file(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return access(path, X_OK) ? errno : 0;
}

/* A name: the shell knows its own commands, and looks at PATH for others. */
static bool shell_knows(const char *name)
{
	int status = 0;
	pid_t child = fork();
	if (!child) {
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		execl("/bin/sh", "sh", "-c", "command -v -- \"$1\"", "sh", name, (char *)NULL);
		_exit(0);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return true;
	return child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}

static int command_exists(const char *command, char *why, size_t n)
{
	char word[PATH_MAX];
	int error = 0;
	if (!command || !plain_word(command, word, sizeof(word)))
		return 0;
	if (strchr(word, '/'))
		error = find_file(word);
	else if (!shell_knows(word))
		error = -1;
	if (!error)
		return 0;
	snprintf(why, n, "%.200s: %s; expected a checker that can be started", word,
		 error < 0 ? "no such command in PATH" : strerror(error));
	return -ENOENT;
}

int image_checker_exists(const struct image_checker *checker, char *why, size_t n)
{
	if (checker->recover && !checker->recover[strspn(checker->recover, " \t\n")]) {
		snprintf(why, n, "the command is empty; expected a program");
		return -ENOENT;
	}
	int error = command_exists(checker->recover, why, n);
	return error ? error : command_exists(checker->check, why, n);
}
