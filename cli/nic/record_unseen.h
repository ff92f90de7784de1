/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CLI_NIC_RECORD_UNSEEN_H
#define TM_CLI_NIC_RECORD_UNSEEN_H
/* At the end of a recording: what the files of PM hold that it knows nothing of. */
#include <stdbool.h>
#include "core/record/format.h"

/* Compare each file of PM with its shadow, set record_head.unseen, and print a line of each file
 * that differs, unless `quiet`. `path`: the recording's. */
void record_unseen(struct record_head *head, const char *path, bool quiet);

#endif
