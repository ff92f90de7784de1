/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_FUZZ_REPORT_H
#define TM_REPORT_HUNT_FUZZ_REPORT_H
/* What fuzzing found: text turn by turn, a tree at the end. */
#include "checker/hunt/fuzz_session.h"
#include "report/tree.h"

/* What is kept for the files. Starts as all zeros, ends in fuzz_tree(). */
struct fuzz_report {
	const struct fuzz_session *session;
	struct conclusion conclusion;
	json_t *tree;
	double seconds;
};

/* The traces of a folder that were run again; nothing if there were none. */
void fuzz_report_reruns(const struct fuzz_session *s, const char *dir);
/* A store's turn is over: print it, and keep it for the tree. */
void fuzz_report_turn(struct fuzz_report *r, const struct fuzz_turn *t);
/* What it comes to; before the files. */
void fuzz_conclude(struct fuzz_report *r, bool failed, bool interrupted);
/* What was kept, for outputs_write(); once. */
json_t *fuzz_tree(struct fuzz_report *r, uint64_t seed, bool interrupted);

#endif
