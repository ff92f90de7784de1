/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The traces that a campaign has written, by name, and those beside them that are of the same
 * stores and of earlier campaigns. Nothing is deleted: it may be that somebody wants them.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/report.h"
#include "report/terminal.h"
#include "core/text/text.h"

#define NAMES_MAX 24 /* more are counted only */

/* The file without its folder. */
static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_written(const struct report *r, const char *name)
{
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++)
		for (unsigned n = 0; n < MINIMIZED_MAX; n++) {
			const char
				*trace = r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].one[n].trace;
			if (trace && !strcmp(base(trace), name))
				return true;
		}
	return false;
}

/* Is it a trace's name (trace_path()), of a store of this campaign? */
static bool is_of_store(const struct report *r, const char *name)
{
	static const char tail[] = ".trace";
	size_t len = strlen(name), end = sizeof(tail) - 1;
	if (len < end || strcmp(name + len - end, tail) != 0)
		return false;
	for (unsigned i = 0; i < r->campaign->configs; i++) {
		const char *store = r->campaign->config[i].store->name;
		size_t own = strlen(store);
		if (!strncmp(name, store, own) && name[own] == '-')
			return true;
	}
	return false;
}

/* "3 traces WHAT: a.trace, b.trace, c.trace", of the files that are `written` or not. */
static void print_files(const struct report *r, struct dirent **file, int files, bool written)
{
	char *text = NULL;
	size_t size;
	unsigned n = 0, listed = 0;
	for (int i = 0; i < files; i++)
		n += is_of_store(r, file[i]->d_name) && is_written(r, file[i]->d_name) == written;
	FILE *out = n || written ? open_memstream(&text, &size) : NULL;
	if (!out)
		return;
	if (written)
		fprintf(out, "%u trace%s written to %s", n, plural(n), r->out);
	else
		fprintf(out, "%u older trace%s there, of an earlier campaign", n,
			n == 1 ? " lies" : "s lie");
	for (int i = 0; i < files && n <= NAMES_MAX; i++)
		if (is_of_store(r, file[i]->d_name) && is_written(r, file[i]->d_name) == written)
			fprintf(out, "%s%s", listed++ ? ", " : ": ", file[i]->d_name);
	if (!fclose(out))
		print_wrapped(2, text);
	free(text);
}

void report_written(const struct report *r)
{
	struct dirent **file = NULL;
	int files = scandir(r->out, &file, NULL, alphasort);
	print_files(r, file, files, true);
	print_files(r, file, files, false);
	for (int i = 0; i < files; i++)
		free(file[i]);
	free(file);
}
