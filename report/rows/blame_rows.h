/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_ROWS_BLAME_ROWS_H
#define TM_REPORT_ROWS_BLAME_ROWS_H
/* What breaks are blamed on, as rows of a file that is recorded: a store's causes.txt, a baseline.
 */
#include "checker/campaign/campaign.h"
#include "core/text/text.h"
#include "report/report.h"

struct blame_row {
	char key[REPORT_NAME + 64]; /* what it is about; "*": all that is written in one word */
	bool bare;		    /* as in checker/judge/known.c */
	struct blame blame;
	char words[BLAME_TEXT]; /* after the key */
};

struct blame_rows {
	struct blame_row *row;
	unsigned n, room;
	char *head; /* the file up to its first row */
};

/* Add it, unless it is a row with something added; rows that are it with something added go. 0 or
 * -ENOMEM. */
int blame_rows_add(struct blame_rows *rows, const struct blame_row *new);
/* Add causes that a unit of a campaign met. */
int blame_rows_add_strange(struct blame_rows *rows, const char *key, const struct setup *s,
			   const struct strange *strange);
/* Write them, in the order of their keys and words. `by_contract`: words in that of contracts. 0 or
 * -errno. */
int blame_rows_save(struct blame_rows *rows, const char *path, bool by_contract);
void blame_rows_free(struct blame_rows *rows);

/* Rows of a file that need not exist, which is to be recorded anew; *head: text_head(), to be freed
 * in any case. 0, -errno, or -EINVAL with *error. */
int recorded_read(const char *path, char **head, text_row *row, void *arg,
		  struct input_error *error);

#endif
