/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_OUTPUT_H
#define TM_REPORT_OUTPUT_H
/* Files that are written: their names, and that there is never half of one. */
#include <stdio.h>
#include "checker/campaign/campaign.h"

/* DIR/STORE-VARIANT-CONFIGURATION-CONTRACT and `tail`, to be freed. 0 or -ENOMEM. */
int trace_path(const struct campaign_config *cfg, unsigned contract, const char *dir,
	       const char *tail, char **name);
extern const char tidemark_version[];

#define STANDARD_OUTPUT "-" /* instead of a file's name */

/* Keep standard output for save_file(STANDARD_OUTPUT); from now on what is printed there goes to
 * standard error. Once. 0 or -errno. */
int output_takes_standard(void);
/* A file as `write` makes it, which returns 0 or -errno. 0 or -errno; nothing partial is left
 * behind, unless `path` is no plain file and is written as it stands. */
int save_file(const char *path, int (*write)(FILE *out, const void *arg), const void *arg);
/* trace_save(), likewise. */
int save_trace(const char *path, const struct setup *s, const struct deviations *d, int contract,
	       const char *text);

#endif
