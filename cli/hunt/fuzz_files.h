/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_HUNT_FUZZ_FILES_H
#define TM_CLI_HUNT_FUZZ_FILES_H
/* What the two sorts of fuzzing share: known traces, the corpus of inputs, a store's turn. */
#include <dirent.h>
#include "checker/hunt/fuzz_session.h"
#include "cli/arguments.h"

#define FUZZ_OUT "traces" /* where traces go if nothing is said */

/* Write the trace of a new case to the folder, and name it. 0, or -errno with t->why. */
int fuzz_save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run,
		   const char *dir);

/* How far a turn is, on the line of progress: "", or what else is to be said. */
void fuzz_progress(const struct fuzz_turn *t, const char *else_said);
void fuzz_show_shrinking(const struct fuzz_turn *t, unsigned contract);

/* Each 0, or the status after a message. */

/* Begin a store's turn: t->session, config, save and arg are set. `until`: when it ends; 0: never.
 */
int fuzz_begin(struct fuzz_turn *t, const struct arguments *a, uint64_t seed, double until,
	       struct driver_bounds *bounds);
/* `each` with every file of the folder that the filter takes, in the order of their names, until
 * one returns a status that is not 0. */
int each_file(const char *dir, int (*filter)(const struct dirent *),
	      int (*each)(void *arg, const char *path), void *arg);
/* What may be an input or a trace, by its name; and what a process that was killed has left. */
int is_plain_file(const struct dirent *e);
int is_left_over(const struct dirent *e);

/* fuzz_turn_round() failed: the status, after its message. */
int fuzz_fail(const struct fuzz_turn *t, int error);
/* Run the traces of --regress again, say how that went, and know those of --out. */
int fuzz_rerun_traces(struct fuzz_session *s, const struct arguments *a);
/* *dir: the store's folder, to be freed; NULL: no corpus was asked for. Its inputs are seeds. */
int fuzz_open_corpus(const struct arguments *a, struct fuzz_turn *t, char **dir);
/* Write the inputs from number *saved_inputs on. */
int fuzz_save_corpus(const char *dir, struct fuzz_turn *t, unsigned *saved_inputs);

#endif
