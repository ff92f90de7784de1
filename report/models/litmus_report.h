/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_MODELS_LITMUS_REPORT_H
#define TM_REPORT_MODELS_LITMUS_REPORT_H
/* What litmus tests were run, and what is printed and written of them. */
#include "checker/models/litmus_batch.h"
#include "report/tree.h"

#define LITMUS_KNOBS 32

struct litmus_bad {
	char *path;
	struct input_error error; /* line 0: the file cannot be read */
};

/* What was asked for, and how it went. */
struct litmus_job {
	struct litmus_file *file;
	struct litmus_bad *bad;
	unsigned files, bads;
	const char *knob[LITMUS_KNOBS];
	unsigned knobs, jobs;
	struct litmus_limits limits;
	bool quiet, witness, configs, list;
	/* results */
	json_t *tree;
	unsigned count[VERDICT_UNSURE + 1]; /* conditions */
	unsigned done;			    /* tests */
};

/* The runs of one test: one, or one under each of the configurations. Count, print, keep for the
 * files. */
void litmus_report(struct litmus_job *job, const struct litmus_case *run, unsigned runs);
void litmus_conclude(const struct litmus_job *job, struct conclusion *c);
/* What litmus_report() kept, for outputs_write(); and for text_print(), as "litmus_summary". */
json_t *litmus_tree(const struct litmus_job *job);
void litmus_list(const struct litmus_job *job);

#endif
