/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORES_BITS_H
#define TM_STORES_BITS_H
/* Contracts by their names alone, for the tables in which a store says what it promises and what
 * its variants break, and for tests of them. Only a file with such a table includes it. */
#include "core/tidemark.h"

#define RDA   TM_BIT(TM_RDA)
#define LIN   TM_BIT(TM_LIN)
#define DUR   TM_BIT(TM_DUR)
#define BUF   TM_BIT(TM_BUF)
#define MONO  TM_BIT(TM_MONO)
#define KEEP  TM_BIT(TM_KEEP)
#define NORES TM_BIT(TM_NORES)
#define OK    TM_BIT(TM_OK)
#define LIVE  TM_BIT(TM_LIVE)
#define FSCK  TM_BIT(TM_FSCK)

#endif
