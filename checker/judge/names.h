/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_NAMES_H
#define TM_CHECKER_JUDGE_NAMES_H
/* What the rows of TM_CONTRACT_ROWS say: the contracts' names, and which are judged when. */
#include <stddef.h>
#include "core/tidemark.h"

/* "RDA", as it is in tables, on the command line and in traces. `contract` is below
 * TM_CONTRACTS. */
const char *contract_name(enum tm_contract contract);
/* What it says, one sentence. */
const char *contract_what(enum tm_contract contract);
/* The enum tm_contract of a name in capitals, or -EINVAL. */
int contract_parse(const char *name);
/* "RDA LIN DUR ...": all of them, in the order of enum tm_contract. */
const char *contract_names(void);

#define CONTRACT_LIST 80 /* bytes of all of them, with ", " between */
/* Those of a set of TM_BIT()s, "DUR, LIN", with this between them, in `buf`, which is returned. */
const char *contract_list(unsigned set, const char *between, char *buf, size_t n);

/* TM_BIT()s of the contracts whose row has one of these. Constants: judging a crash state takes a
 * microsecond. */
enum contract_set {
#define SET(name, judged, flag) | ((judged) & (flag) ? TM_BIT(TM_##name) : 0)
#define X(name, judged, what)	SET(name, judged, TM_IN_RUN)
	CONTRACTS_IN_RUN = 0 TM_CONTRACT_ROWS(X),
#undef X
#define X(name, judged, what) SET(name, judged, TM_AFTER_CRASH)
	CONTRACTS_AFTER_CRASH = 0 TM_CONTRACT_ROWS(X),
#undef X
#define X(name, judged, what) SET(name, judged, TM_ON_MACHINE)
	CONTRACTS_ON_MACHINE = 0 TM_CONTRACT_ROWS(X),
#undef X
#define X(name, judged, what) SET(name, judged, TM_IF_LIN)
	CONTRACTS_IF_LIN = 0 TM_CONTRACT_ROWS(X),
#undef X
#define X(name, judged, what) SET(name, judged, TM_NAMES_MISSED)
	CONTRACTS_NAMING_MISSED = 0 TM_CONTRACT_ROWS(X),
#undef X
#define X(name, judged, what) SET(name, judged, TM_BY_RUNNING)
	CONTRACTS_BY_RUNNING = 0 TM_CONTRACT_ROWS(X),
#undef X
#undef SET
	CONTRACTS_OF_HISTORY = CONTRACTS_IN_RUN | CONTRACTS_AFTER_CRASH | CONTRACTS_ON_MACHINE
};
/* Those of a run of so many servers. One of several loses its power in it, and clients go on: what
 * they miss then is a matter of durability. */
static inline unsigned contracts_in_run(unsigned servers)
{
	return CONTRACTS_IN_RUN | (servers > 1 ? TM_BIT(TM_DUR) : 0);
}

#endif
