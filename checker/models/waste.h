/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_MODELS_WASTE_H
#define TM_CHECKER_MODELS_WASTE_H
/*
 * What a CPU does to make PM durable, and need not: from the events of a run, as count.c has them.
 * It would be durable without; whether what is needed for a contract is more, `tidemark ablate`
 * finds out.
 */
#include "checker/world/world.h"

#define WASTE_ROWS  64 /* of a run; the cost of further ones is not reported */
#define WASTE_TASKS 64

enum waste_sort {
	WASTE_CLEAN, /* a flush of lines that no cache holds a change of */
	WASTE_AGAIN, /* the same, and no fence has come since the first flush */
	WASTE_FENCE, /* a fence of a task that has flushed nothing since its last one */
	WASTE_SORTS
};
extern const char *const waste_words[WASTE_SORTS];

struct waste_row {
	uintptr_t pc;	       /* the call */
	uint8_t sort;	       /* enum waste_sort */
	uint32_t kinds;	       /* bits, of the caller: for which operations */
	uint32_t times, lines; /* calls, and the lines that they flushed in vain */
};

struct waste {
	struct waste_row row[WASTE_ROWS];
	unsigned rows;
	/* Private. */
	uint8_t *line; /* by line of the pool: of enum waste_line */
	size_t lines;
	bool durable_at_once, nic_past_caches;
	struct {
		const struct actor *who;
		bool flushed;
	} task[WASTE_TASKS];
};

/* 0 or -ENOMEM. */
int waste_open(struct waste *w, const struct setup *s);
void waste_close(struct waste *w);
/* An event; `kind`: a bit for the operation that is on, or 0: nothing is noted of it. */
void waste_event(struct waste *w, const struct actor *who, uintptr_t pc, const struct traced *about,
		 uint32_t kind);

#endif
