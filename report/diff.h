/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_DIFF_H
#define TM_REPORT_DIFF_H
/*
 * What has changed between the results of two campaigns, of any command that writes JSON.
 *
 * Results are entries: objects in a list, which have a name made of what they are about ("store",
 * "contract", "operation", ...) and of the entry that they are in. All else in them is compared,
 * but for how long it took and how much was tried.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct diff {
	json_t *entries[2]; /* by name: an object of fields, each with a text */
	bool figures;	    /* compare what depends on the budget, too */
	unsigned same, changed, only[2];
};

/* 0 or -ENOMEM. To be freed in any case. */
int diff_open(struct diff *d, const json_t *before, const json_t *after, bool figures);
/* Has anything but the campaigns themselves the same name in both? */
bool diff_comparable(const struct diff *d);
void diff_free(struct diff *d);
/* Count, and make a tree of the entries that have changed, for text_print(); `name`: of the two
 * files. */
json_t *diff_tree(struct diff *d, const char *const name[2]);

#endif
