/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/claims.h"
#include "cli/cli.h"
int claims_knobs(const struct claims_options *o, const struct claims *all)
{
	(void)o;
	(void)all;
	return EXIT_USAGE;
}
