/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_ROWS_H
#define TM_CHECKER_JUDGE_ROWS_H
/*
 * The tables with which the verdicts on stores are compared (expect.h, known.h): each
 * store's folder has its part of them, compiled in. A table is read at the first question, and
 * constant from then on, so that threads need no lock.
 */
#include "core/text/text.h"
#include "scenarios/stores.h"

struct row_table {
	enum store_text text;
	text_row *row; /* arg: the store, const; the line stays, so that rows may point into it */
	/* what rows_read() needs */
	bool is_read;
	char mistake[300];
};

/* Read the table, unless that has been done. A mistake in one of its files, "FILE:LINE: what", at
 * which reading ended; NULL: there is none. */
const char *rows_read(struct row_table *table);

#endif
