/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_FUZZ_FILES_H
#define TM_CLI_FUZZ_FILES_H
/* What tidemark fuzz reads and writes beside its results: known traces, and the corpus of inputs.
 */
#include "checker/hunt/fuzz_session.h"
#include "cli/arguments.h"

#define FUZZ_OUT "traces" /* where traces go if nothing is said */

/* Write the trace of a new case to the folder, and name it. 0, or -errno with t->why. */
int fuzz_save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run,
		   const char *dir);

/* Each 0, or the status after a message. */

/* fuzz_turn_round() failed: the status, after its message. */
int fuzz_fail(const struct fuzz_turn *t, int error);
/* Run the traces of --regress again, say how that went, and know those of --out. */
int fuzz_rerun_traces(struct fuzz_session *s, const struct arguments *a);
/* *dir: the store's folder, to be freed; NULL: no corpus was asked for. Its inputs are seeds. */
int fuzz_open_corpus(const struct arguments *a, struct fuzz_turn *t, char **dir);
/* The same again: inputs that other processes have written there since are seeds. */
int fuzz_reread_corpus(const char *dir, struct fuzz_turn *t);
/* Write the inputs from number *saved_inputs on. */
int fuzz_save_corpus(const char *dir, struct fuzz_turn *t, unsigned *saved_inputs);

#endif
