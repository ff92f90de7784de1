/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See finding_place.h. It is the place that the cause says to look at first; if none is known, the
 * store's recovery.
 */
#include "report/finding_place.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char tree[] = "core/stores/"; /* of Tidemark's own stores */

void finding_top(char top[FINDING_FILE])
{
	char cwd[FINDING_FILE] = "", git[FINDING_FILE + 8];
	if (!getcwd(cwd, sizeof(cwd)))
		cwd[0] = '\0';
	snprintf(top, FINDING_FILE, "%s", cwd);
	for (char *slash; (slash = strrchr(top, '/')); *slash = '\0') {
		snprintf(git, sizeof(git), "%s/.git", top);
		if (!access(git, F_OK))
			return;
	}
	snprintf(top, FINDING_FILE, "%s", cwd);
}

/* A path as the compiler was told it, from the top of the tree. */
static void set_file(const char *path, const char *top, struct finding *one)
{
	size_t len = strlen(top);
	char *real = realpath(path, NULL);
	const char *file = real ? real : path, *in_tree = strstr(file, tree);
	if (len && !strncmp(file, top, len) && file[len] == '/')
		file += len + 1;
	else if (in_tree)
		file = in_tree;
	snprintf(one->file, sizeof(one->file), "%s", file);
	free(real);
}

static bool place_at(struct where *where, uintptr_t pc, const char *top, struct finding *one)
{
	int line = 0;
	const char *path = where_source(where, pc, &line);
	if (!path || line < 1)
		return false;
	set_file(path, top, one);
	one->line = line;
	return true;
}

void finding_place(const struct event_trace *st, const char *top, struct finding *one)
{
	if (!place_at(st->where, st->cause.first, top, one))
		finding_place_of_store(st->trace->setup.store, top, one);
}

void finding_place_of_store(const struct tm_store *store, const char *top, struct finding *one)
{
	struct where *where = where_new();
	place_at(where, (uintptr_t)store->recover, top, one);
	where_free(where);
}
