/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment that a program is started with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"

int environment_prepend(const char *variable, const char *first)
{
	const char *old = getenv(variable);
	char *value;

	if (asprintf(&value, "%s%s%s", first, old && *old ? ":" : "", old ? old : "") < 0)
		return -1;
	int rc = setenv(variable, value, 1);
	free(value);
	return rc;
}

const char *environment_preload_name(const char *library)
{
	const char *slash = strrchr(library, '/');

	if (!slash || !strchr(library, ' '))
		return library;
	char *folder = strndup(library, (size_t)(slash - library));
	int rc = folder ? environment_prepend("LD_LIBRARY_PATH", folder) : -1;
	free(folder);
	return rc ? NULL : slash + 1;
}

int environment_preload(const char *library)
{
	const char *name = environment_preload_name(library);

	return name ? environment_prepend("LD_PRELOAD", name) : -1;
}
