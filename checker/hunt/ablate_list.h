/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_HUNT_ABLATE_LIST_H
#define TM_CHECKER_HUNT_ABLATE_LIST_H
/*
 * The places of a store that break nothing when they are taken away, and why: the file
 * ablation.txt of its folder, compiled in.
 *
 *	PLACE elsewhere|redundant|blind|unreached SENTENCE
 *	PLACE rare CONFIGURATION WORKLOAD CONTRACT SENTENCE
 *
 * PLACE is as in checker/world/places.h. elsewhere: other hardware needs it. redundant: nothing
 * that is modelled needs it. rare: the store needs it, and so few runs do not show that, but as
 * many runs of this workload as the default campaign makes break this contract; CONFIGURATION is
 * "default", or variants and hardware as "name=value" with '+' between them. blind: the store needs
 * it, and Tidemark does not see that. unreached: no workload gets there. Lines that begin with '#'
 * and blank ones are skipped. A row without a sentence has that of the row above.
 */
#include <stdbool.h>
#include "checker/world/places.h"
#include "core/text/text.h"
#include "core/tidemark.h"

enum ablate_verdict {
	ABLATE_ELSEWHERE,
	ABLATE_REDUNDANT,
	ABLATE_BLIND,
	ABLATE_UNREACHED,
	ABLATE_RARE
};
extern const char ablate_verdicts[]; /* "elsewhere redundant ..." */
const char *ablate_verdict_name(enum ablate_verdict v);

#define ABLATE_WORD 64

struct ablate_row {
	char place[PLACE_TEXT];
	enum ablate_verdict verdict;
	const char *why;
	/* ABLATE_RARE: the campaign that shows it. */
	char config[ABLATE_WORD], workload[ABLATE_WORD];
	unsigned contract;
};

struct ablate_list {
	struct ablate_row *row;
	unsigned n;
	char *text; /* the sentences */
};

/* Read such a text. 0, -ENOMEM, or -EINVAL with *error filled. To be freed in any case. */
int ablate_list_parse(struct ablate_list *list, const char *text, struct input_error *error);
/* The store's list; an empty one if it has none. 0, -ENOMEM, or -EILSEQ with "FILE:LINE: what". */
int ablate_list_read(struct ablate_list *list, const struct tm_store *store, char *mistake,
		     size_t n);
void ablate_list_free(struct ablate_list *list);
const struct ablate_row *ablate_list_find(const struct ablate_list *list, const char *place);

#endif
