/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures. */
#include "cli/cli.h"
#include "cli/taxonomy.h"

int taxonomy_pictures(const struct taxonomy_report *r, const char *dir)
{
	(void)r;
	(void)dir;
	return 0;
}
