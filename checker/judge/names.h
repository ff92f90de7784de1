/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_NAMES_H
#define TM_CHECKER_JUDGE_NAMES_H
/* The contracts' names, as they stand in tables, on the command line and in traces. */
#include "core/tidemark.h"

/* "RDA". `contract` is below TM_CONTRACTS. */
const char *contract_name(enum tm_contract contract);
/* The enum tm_contract of a name in capitals, or -EINVAL. */
int contract_parse(const char *name);
/* "RDA LIN DUR ...": all of them, in the order of enum tm_contract. */
const char *contract_names(void);

#endif
