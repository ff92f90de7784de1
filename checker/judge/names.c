/* SPDX-License-Identifier: BSD-3-Clause */
/* See names.h. */
#include "checker/judge/names.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[TM_RDA] = "RDA",     [TM_LIN] = "LIN",	  [TM_DUR] = "DUR",
	[TM_BUF] = "BUF",     [TM_MONO] = "MONO", [TM_KEEP] = "KEEP",
	[TM_NORES] = "NORES", [TM_LIVE] = "LIVE", [TM_FSCK] = "FSCK",
};
static_assert(sizeof(names) / sizeof(names[0]) == TM_CONTRACTS, "each contract has a name");

const char *contract_name(enum tm_contract contract)
{
	assert((unsigned)contract < TM_CONTRACTS);
	return names[contract];
}

int contract_parse(const char *name)
{
	for (int c = 0; c < TM_CONTRACTS; c++)
		if (!strcmp(names[c], name))
			return c;
	return -EINVAL;
}

const char *contract_names(void)
{
	return "RDA LIN DUR BUF MONO KEEP NORES LIVE FSCK";
}
