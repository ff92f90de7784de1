/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are written: whether they can be, their names, and that there is never half of one. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/explore/campaign.h"
#include "checker/judge/names.h"
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

static int save(const char *path, int (*write)(FILE *out, const void *arg), const void *arg)
{
	struct stat st;
	char *name;
	/* Renaming would replace a device or a link as readily as a file. */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode)) {
		FILE *out = fopen(path, "we");
		return out ? write_open(out, write, arg) : -errno;
	}
	if (asprintf(&name, "%s.tmp.%ld", path, (long)getpid()) < 0)
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

int save_file(const char *path, int (*write)(FILE *out, const void *arg), const void *arg)
{
	signals_hold();
	int error = save(path, write, arg);
	signals_release();
	return error;
}

void put_escaped(FILE *out, unsigned char c)
{
	if (c == '&')
		fputs("&amp;", out);
	else if (c == '<')
		fputs("&lt;", out);
	else if (c == '>')
		fputs("&gt;", out);
	else if (c == '"')
		fputs("&quot;", out);
	else
		fputc(c, out);
}
