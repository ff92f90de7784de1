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
#include "report/text.h"

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

void report_written(const struct report *r)
{
	json_t *names[2] = {json_array(),
			    json_array()}; /* older ones, and those that are written */
	struct dirent **file = NULL;
	int files = scandir(r->out, &file, NULL, alphasort), n[2];
	for (int i = 0; i < files; i++) {
		const char *name = file[i]->d_name;
		if (is_of_store(r, name))
			json_array_append_new(names[is_written(r, name)], json_text(name));
		free(file[i]);
	}
	free(file);
	for (unsigned i = 0; i < 2; i++) {
		n[i] = (int)json_array_size(names[i]);
		if (n[i] > NAMES_MAX)
			json_array_clear(names[i]);
	}
	json_t *all = json_pack("{s:o, s:i, s:o, s:i, s:o}", "out", json_text(r->out), "written",
				n[1], "names", names[1], "older", n[0], "older_names", names[0]);
	text_print(all, "crashtest_written");
	json_decref(all);
}
