/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment that a program is started with. */
#include <stdio.h>
#include <stdlib.h>
#include "cli/cli.h"

int environment_prepend(const char *variable, const char *first)
{
	const char *old = getenv(variable);
	char *value;
	int rc;

	if (asprintf(&value, "%s%s%s", first, old && *old ? ":" : "", old ? old : "") < 0)
		return -1;
	rc = setenv(variable, value, 1);
	free(value);
	return rc;
}
