/* SPDX-License-Identifier: BSD-3-Clause */
/* See names.h. */
#include "checker/judge/names.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *what;
} row[] = {
#define X(name, judged, what) {#name, what},
	TM_CONTRACT_ROWS(X)
#undef X
};
/* Each can be judged, from histories or while the store runs, and not both. */
static_assert((CONTRACTS_OF_HISTORY | CONTRACTS_BY_RUNNING) == TM_BIT(TM_CONTRACTS) - 1, "");
static_assert(!(CONTRACTS_OF_HISTORY & CONTRACTS_BY_RUNNING), "");

const char *contract_name(enum tm_contract contract)
{
	assert((unsigned)contract < TM_CONTRACTS);
	return row[contract].name;
}

const char *contract_what(enum tm_contract contract)
{
	assert((unsigned)contract < TM_CONTRACTS);
	return row[contract].what;
}

int contract_parse(const char *name)
{
	for (int c = 0; c < TM_CONTRACTS; c++)
		if (!strcmp(row[c].name, name))
			return c;
	return -EINVAL;
}

const char *contract_names(void)
{
#define X(name, judged, what) " " #name
	return &TM_CONTRACT_ROWS(X)[1];
#undef X
}

const char *contract_list(unsigned set, const char *between, char *buf, size_t n)
{
	size_t at = 0;
	buf[0] = '\0';
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (set & TM_BIT(c))
			at += (size_t)snprintf(buf + at, at < n ? n - at : 0, "%s%s",
					       at ? between : "", contract_name(c));
	return buf;
}
