/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LITMUS_REPORT_H
#define TM_REPORT_LITMUS_REPORT_H
/* What litmus tests were run, and what is printed and written of them. */
#include <jansson.h>
#include "checker/models/litmus.h"
#include "report/junit.h"

#define LITMUS_KNOBS   32
#define LITMUS_CONFIGS 6 /* domains, with ddio on and off */

enum litmus_verdict { VERDICT_HOLDS, VERDICT_FAILS, VERDICT_UNSURE };

struct litmus_file {
	char *path;
	struct litmus_test *test;
};

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
	bool no_memory;			    /* something is missing in json */
};

/* A test under one hardware. */
struct litmus_case {
	const struct litmus_file *file;
	struct hardware hw;
	bool own; /* the hardware that the test and the user ask for */
	struct litmus_result result;
	char *witness[LITMUS_CONDITIONS]; /* lines, or NULL */
};

/* --- litmus_files.c --- */

/* Read a file, "-", or the files of a folder. What cannot be read is kept in job->bad, and a
 * message is on stderr. 0, or EXIT_INTERNAL after a message. */
int litmus_read(struct litmus_job *job, const char *path);
void litmus_files_free(struct litmus_job *job);

/* --- litmus_report.c --- */

enum litmus_verdict litmus_judge(const struct litmus_case *run, unsigned condition);
/* Does one outcome decide it, so that there is a run to show? */
bool litmus_decided(const struct litmus_case *run, unsigned condition);
/* The runs of one test: one, or one under each of the configurations. Count, print, keep for the
 * files. */
void litmus_report(struct litmus_job *job, const struct litmus_case *run, unsigned runs);
void litmus_report_bad(struct litmus_job *job);
void litmus_summary(const struct litmus_job *job);
/* Write what litmus_report() kept. 0 or -errno. */
int litmus_json(const struct litmus_job *job, const char *path);
void litmus_list(const struct litmus_job *job);

#endif
