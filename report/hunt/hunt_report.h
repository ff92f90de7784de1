/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_HUNT_REPORT_H
#define TM_REPORT_HUNT_HUNT_REPORT_H
/* What came of hunts. A tree is for outputs_write(), NULL without memory; most texts are made of
 * it. */
#include "checker/hunt/ablate.h"
#include "checker/hunt/claims.h"
#include "checker/hunt/fuzz_session.h"
#include "checker/hunt/mutants.h"
#include "checker/hunt/soak.h"
#include "report/case.h"
#include "report/tree.h"

/* --- what each place of a store is good for --- */

void ablate_conclude(const struct ablation *a, struct conclusion *c);
json_t *ablate_tree(const struct ablation *a);

/* --- claims, and the knobs that their files speak of --- */

struct claims_report {
	const struct claims_run *run;
	struct report_case *one; /* by run->cases; of those that broke */
	double seconds;
};

void claims_conclude(const struct claims_report *r, struct conclusion *c);
json_t *claims_tree(const struct claims_report *r);
/* What would be tested. */
void claims_list_print(const struct claim *const *claim, unsigned claims);
/* How many knobs' values do otherwise than the file says. */
unsigned sensitivity_print(const struct sensitivity *f);

/* --- the seeded bugs that were looked for --- */

void mutants_conclude(const struct mutants_run *r, struct conclusion *c);
json_t *mutants_tree(const struct mutants_run *r);

/* --- rounds of soaking, as they pass --- */

/* How far it is, after so many seconds. */
void soak_print_line(const struct soak_totals *t, double seconds);
/* A round that broke what should hold, and the trace of it. */
void soak_print_broken(const struct soak_options *o, uint64_t round, const struct soak_result *r,
		       const char *trace);
void soak_print_summary(const struct soak_totals *t, double seconds);

/* --- fuzzing: text turn by turn, a tree at the end --- */

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
