/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_MODELS_LITMUS_FILES_H
#define TM_CLI_MODELS_LITMUS_FILES_H
/* The files of litmus tests that tidemark litmus was given. */
#include "report/models/litmus_report.h"

/* Read a file, "-", or the files of a folder. What cannot be read is kept in job->bad, and a
 * message is on stderr. 0, or EXIT_INTERNAL after a message. */
int litmus_read(struct litmus_job *job, const char *path);
void litmus_files_free(struct litmus_job *job);

#endif
