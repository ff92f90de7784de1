/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_WORLD_PLACES_H
#define TM_CHECKER_WORLD_PLACES_H
/*
 * The places of store code that can be taken away (core/rt/places.h), found in this process's own
 * machine code, and their names.
 *
 * A name is "FOLDER/FILE:FUNCTION:CALL", such as "erda/log.c:log_take:pmem_persist". The second
 * call of that kind in the function, by line, has "#2" after it. So a name outlives edits elsewhere
 * in the file, and a trace that has it replays after them.
 */
#include <stddef.h>
#include "core/rt/places.h"

#define PLACE_TEXT 112 /* bytes */

enum place_kind {
	PLACE_FLUSH,   /* a flush without a fence */
	PLACE_FENCE,   /* a fence */
	PLACE_PERSIST, /* both */
	PLACE_WAIT,    /* for the completion of what was posted, or for a reply */
	PLACE_ORDER,   /* a store or a fence that is sequentially consistent */
	PLACE_CHECK,   /* a comparison: it holds always, or never */
	PLACE_KINDS
};

extern const char *const place_kinds[PLACE_KINDS];

struct place {
	uintptr_t key;
	enum place_kind kind;
	bool part; /* of the place before it in the list: see PLACE_PART */
	char name[PLACE_TEXT];
	char where[PLACE_TEXT]; /* "core/stores/erda/log.c:41" */
};

struct place_list {
	struct place *place; /* by file, line, and address within it */
	unsigned n;
};

/* All there are in this program. 0; -ENOMEM; -ENOENT: there is no debug information to find them
 * with. */
int places_find(struct place_list *list);
void places_free(struct place_list *list);
const struct place *places_named(const struct place_list *list, const char *name); /* or NULL */

#endif
