/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_LITMUS_SLOW_MODEL_H
#define TM_TESTS_LITMUS_SLOW_MODEL_H
/*
 * All outcomes of a small litmus program, by the rules alone: slow_model.c opens with them.
 */
#include "tests/litmus/program.h"

struct outcome {
	uint8_t value[PROGRAM_PLACES]; /* in the order of program_places(); 0 of those that this
					  kind of outcome has not: memory after a crash, what is
					  left in a final one */
	uint32_t state;		       /* where it was met first */
};

struct outcomes {
	struct outcome *outcome; /* sorted by value */
	unsigned n, room;
};

struct slow_model;

/* For any number of programs, one after the other. Ends the process when memory is out. */
struct slow_model *slow_model_new(void);
void slow_model_free(struct slow_model *m);
/* False: more than `states` states; the outcomes are not all. */
bool slow_model_run(struct slow_model *m, const struct program *p, unsigned states);
const struct outcomes *slow_model_final(const struct slow_model *m);
const struct outcomes *slow_model_crash(const struct slow_model *m);
unsigned slow_model_states(const struct slow_model *m);
/* The steps from the start to the state in which the outcome was met: one of the shortest. */
void slow_model_witness(const struct slow_model *m, const struct outcome *outcome, FILE *out);

#endif
