/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_JUDGE_SHARES_H
#define TM_CHECKER_JUDGE_SHARES_H
/*
 * The file shares.txt of a store's folder, compiled in, says how often the store breaks what it is
 * expected to break. A bug whose breaks have a known cause cannot be told from the design, but it
 * makes them more frequent. `scripts/shares` writes the file.
 *
 *	column CONFIG
 *	...
 *	ROW | RUNS ...
 *
 * ROW is a row of causes.txt, word by word. RUNS has a number for each column: of the runs of a
 * campaign with the default budget and all workloads, so many broke a contract in a way that the
 * row explains, at most, over several seeds; "." is 0. A column is a configuration of the store,
 * "VARIANT/CONFIG" of a variant that is no seeded bug; one of a seeded bug is compared with that
 * of what it is put into. Lines that begin with '#' and blank ones are skipped.
 *
 * Runs are counted, not states: one run that leaves many lines in flight has thousands of broken
 * states, so that their number varies with the seed by a factor of ten; the number of runs hardly
 * varies more than if each was drawn for itself. It is counted for each row and each column,
 * because in a sum the few breaks that a bug adds would be lost among those of the design.
 */
#include <stdint.h>
#include "checker/judge/known.h"
#include "core/text/text.h"

#define SHARES_COLUMNS 64

struct shares {
	char column[SHARES_COLUMNS][64];
	unsigned columns, lines, room;
	struct shares_line {
		char row[KNOWN_WORDS];
		uint32_t runs[SHARES_COLUMNS];
	} * line;
};

/* Add what a row says to the table. */
text_row shares_row;
/* Its column of that name, or -1; the line of a row, or NULL. */
int shares_column(const struct shares *s, const char *name);
struct shares_line *shares_line(const struct shares *s, const char *row);
void shares_free(struct shares *s);

#define SHARES_NAME 180 /* bytes of a column's name */
void shares_column_name(const struct tm_store *store, const char *variant, const char *config,
			char name[SHARES_NAME]);
/* *runs: those that a row of the store is recorded to explain. False: nothing is recorded of it. */
bool shares_recorded(const struct tm_store *store, const char *variant, const char *config,
		     unsigned row, uint32_t *runs);
/* More than this are far more than what is recorded. */
uint64_t shares_limit(uint32_t recorded);
/* A mistake in one of the files: "FILE:LINE: what"; NULL: there is none. */
const char *shares_mistake(void);

#endif
