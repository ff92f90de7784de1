/* SPDX-License-Identifier: BSD-3-Clause */
/* The files and folders that a command will write: can they be written? */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cli.h"

int check_output(const char *what, const char *path)
{
	struct stat st;
	bool there = !lstat(path, &st);
	if (!*path)
		return fail(EXIT_USAGE, "%s: expected the name of a file, not an empty one", what);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "%s: a folder; expected the name of a file", path);
	if (there && access(path, W_OK))
		return fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
	if (there && !lstat(path, &st) && !S_ISREG(st.st_mode))
		return 0; /* written as it stands, its folder does not matter */
	char *copy = strdup(path);
	if (!copy)
		return fail(EXIT_INTERNAL, "out of memory");
	int error = access(dirname(copy), W_OK | X_OK) ? errno : 0;
	free(copy);
	return error ? fail(EXIT_USAGE, "%s: cannot be written: %s", path, strerror(error)) : 0;
}

int check_folder(const char *what, const char *dir, bool *made)
{
	struct stat st;
	if (!*dir)
		return fail(EXIT_USAGE, "%s: expected the name of a folder, not an empty one",
			    what);
	if (strlen(dir) > PATH_MAX - 512)
		return fail(EXIT_USAGE, "%s: a name of more than %d bytes", what, PATH_MAX - 512);
	*made = !mkdir(dir, 0777);
	if (!*made && errno != EEXIST)
		return fail(EXIT_USAGE, "%s: the folder cannot be made: %s", dir, strerror(errno));
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "%s: not a folder; %s wants one", dir, what);
	if (access(dir, W_OK | X_OK))
		return fail(EXIT_USAGE, "%s: nothing can be written there: %s", dir,
			    strerror(errno));
	return 0;
}

int saved(const char *path, int error)
{
	if (!error)
		return 0;
	return fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s", path,
		    strerror(-error));
}
