/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_MODELS_LITMUS_REPORT_H
#define TM_REPORT_MODELS_LITMUS_REPORT_H
/* What litmus tests were run, and what is printed and written of them. */
#include <jansson.h>
#include "checker/models/litmus_batch.h"
#include "report/conclusion.h"

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
	const char *json_path, *junit_path;
	/* results */
	json_t *json;
	struct junit junit;
	unsigned count[VERDICT_UNSURE + 1]; /* conditions */
	unsigned done;			    /* tests */
	bool no_memory;			    /* something is missing in json */
};

/* The runs of one test: one, or one under each of the configurations. Count, print, keep for the
 * files. */
void litmus_report(struct litmus_job *job, const struct litmus_case *run, unsigned runs);
void litmus_report_bad(struct litmus_job *job);
void litmus_summary(const struct litmus_job *job);
void litmus_conclude(const struct litmus_job *job, struct conclusion *c);
/* Write what litmus_report() kept. 0 or -errno. */
int litmus_json(const struct litmus_job *job, const struct conclusion *c, const char *path);
void litmus_list(const struct litmus_job *job);

#endif
