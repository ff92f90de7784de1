/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_IMAGES_PM_SEQUENCE_H
#define TM_CHECKER_IMAGES_PM_SEQUENCE_H
/*
 * The sequences in which pmreorder's engines apply the stores of one barrier, one after another and
 * in pmreorder's order. A sequence is a list of numbers of stores. Nothing is kept of those before.
 *
 * ReorderPartial draws three of the selections: of each length the first 1,000, as there. Here the
 * draw has a seed, and the same log gives the same states.
 */
#include "checker/images/pm_sections.h"

#define PM_PARTIAL_SEQUENCES 3

struct pm_sequence {
	enum pm_engine engine;
	unsigned n;   /* stores */
	unsigned *at; /* the sequence: `len` numbers of stores */
	unsigned len;
	bool *used; /* by store: it is in the sequence */
	unsigned room;
	uint64_t given, count;
	uint64_t drawn[PM_PARTIAL_SEQUENCES]; /* of a PARTIAL: places in the list of selections */
};

void pm_sequence_init(struct pm_sequence *s);
void pm_sequence_free(struct pm_sequence *s);
/* 0 or -ENOMEM. */
int pm_sequence_begin(struct pm_sequence *s, enum pm_engine engine, unsigned n, uint64_t seed);
/* The next one: s->at, s->len. False: that was all. */
bool pm_sequence_next(struct pm_sequence *s);
/* How many there are; UINT64_MAX: so many, or more. */
uint64_t pm_sequence_count(enum pm_engine engine, unsigned n);

#endif
