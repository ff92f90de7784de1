/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_BITS_H
#define TM_STORES_BITS_H
/* Contracts by their names alone, for the tables in which a store says what it promises and what
 * its variants break, and for tests of them. Only a file with such a table includes it. */
#include "core/tidemark.h"

enum contract_bit {
#define X(name, judged, what) name = TM_BIT(TM_##name),
	TM_CONTRACT_ROWS(X)
#undef X
};

#endif
