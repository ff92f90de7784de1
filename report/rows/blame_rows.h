/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_ROWS_BLAME_ROWS_H
#define TM_REPORT_ROWS_BLAME_ROWS_H
/* What breaks are blamed on, as rows of a file that is recorded: a store's causes.txt, a baseline.
 */
#include "checker/campaign/campaign.h"
#include "checker/judge/known.h"
#include "report/report.h"

struct blame_row {
	char key[REPORT_NAME + 64]; /* what it is about; "*": all that is written in one word */
	bool bare, counted;	    /* as in struct known_row */
	struct blame blame;
	char words[BLAME_TEXT]; /* after the key */
	uint32_t runs[KNOWN_COLUMNS];
};

struct blame_rows {
	struct blame_row *row;
	unsigned n, room;
	char *head; /* the file up to its first row */
	struct known_columns columns;
};

/* Add it, unless it is a row with something added; rows that are it with something added go. 0 or
 * -ENOMEM. */
int blame_rows_add(struct blame_rows *rows, const struct blame_row *new);
/* Add causes that a unit of a campaign met. */
int blame_rows_add_strange(struct blame_rows *rows, const char *key, const struct setup *s,
			   const struct strange *strange);
/* Sort them by keys and words. `by_contract`: words in the order of contracts. */
void blame_rows_sort(struct blame_rows *rows, bool by_contract);
/* 0 or -errno. */
int blame_rows_save(struct blame_rows *rows, const char *path);
void blame_rows_free(struct blame_rows *rows);

/* Rows of a file that need not exist, which is to be recorded anew; *head: text_head(), to be freed
 * in any case. 0, -errno, or -EINVAL with *error. */
int recorded_read(const char *path, char **head, text_row *row, void *arg,
		  struct input_error *error);

#endif
