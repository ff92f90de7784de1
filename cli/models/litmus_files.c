/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading the files of litmus tests: all of them, also after a bad one, with a message for each
 * that is wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/array.h"
#include "cli/cli.h"
#include "cli/models/litmus_files.h"

#define FILE_MAX (1u << 20) /* bytes: a longer file is none of ours */

/* Keep, and say, why a file is not run. */
static int bad_file(struct litmus_job *job, const char *path, const struct input_error *error)
{
	char *copy = strdup(path);
	if (!copy || !ARRAY_ROOM_FOR_ONE(job->bad, job->bads)) {
		free(copy);
		return no_memory();
	}
	job->bad[job->bads++] = (struct litmus_bad){copy, *error};
	fail(EXIT_USAGE, "%s%s: %s", path, input_place(error).text, error->message);
	return 0;
}

static int unreadable(struct litmus_job *job, const char *path, const char *why)
{
	struct input_error error = {0};
	snprintf(error.message, sizeof(error.message), "%s", why);
	return bad_file(job, path, &error);
}

static int parse(struct litmus_job *job, const char *path, const char *text, size_t len)
{
	struct input_error error;
	bool room = ARRAY_ROOM_FOR_ONE(job->file, job->files);
	struct litmus_file file = {strdup(path), malloc(sizeof(*file.test))};
	int rc = room && file.path && file.test ? litmus_parse(file.test, text, len, &error)
						: -ENOMEM;
	if (!rc) {
		job->file[job->files++] = file;
		return 0;
	}
	if (rc == -EINVAL)
		litmus_free(file.test);
	free(file.path);
	free(file.test);
	return rc == -EINVAL ? bad_file(job, path, &error) : no_memory();
}

static int read_open(struct litmus_job *job, const char *path, FILE *in)
{
	char *text = malloc(FILE_MAX + 1);
	int status;
	if (!text)
		return no_memory();
	errno = 0;
	size_t len = fread(text, 1, FILE_MAX + 1, in);
	if (ferror(in))
		status = unreadable(job, path, strerror(errno ? errno : EIO));
	else if (len > FILE_MAX)
		status = unreadable(job, path, "more than 1 MiB; expected a litmus test");
	else
		status = parse(job, path, text, len);
	free(text);
	return status;
}

static int read_file(struct litmus_job *job, const char *path)
{
	FILE *in = fopen(path, "re");
	if (!in)
		return unreadable(job, path, strerror(errno));
	int status = read_open(job, path, in);
	fclose(in);
	return status;
}

/* --- folders --- */

static int is_litmus(const struct dirent *e)
{
	size_t len = strlen(e->d_name);
	return len > 7 && e->d_name[0] != '.' && !strcmp(e->d_name + len - 7, ".litmus");
}

/* By bytes, whatever the language. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(struct litmus_job *job, const char *path)
{
	struct dirent **entry;
	size_t len = strlen(path);
	int n = scandir(path, &entry, is_litmus, by_name), status = 0;
	if (n < 0)
		return unreadable(job, path, strerror(errno));
	if (!n)
		status = unreadable(job, path, "no file in this folder ends in .litmus");
	for (int i = 0; i < n; i++) {
		char *name = NULL;
		if (!status && asprintf(&name, "%s%s%s", path, path[len - 1] == '/' ? "" : "/",
					entry[i]->d_name) < 0) {
			name = NULL;
			status = no_memory();
		}
		if (!status)
			status = read_file(job, name);
		free(name);
		free(entry[i]);
	}
	free(entry);
	return status;
}

int litmus_read(struct litmus_job *job, const char *path)
{
	struct stat st;
	if (!strcmp(path, "-"))
		return read_open(job, path, stdin);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return read_folder(job, path);
	return read_file(job, path);
}

void litmus_files_free(struct litmus_job *job)
{
	for (unsigned i = 0; i < job->files; i++) {
		litmus_free(job->file[i].test);
		free(job->file[i].test);
		free(job->file[i].path);
	}
	for (unsigned i = 0; i < job->bads; i++)
		free(job->bad[i].path);
	free(job->file);
	free(job->bad);
}
