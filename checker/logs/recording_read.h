/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_RECORDING_READ_H
#define TM_CHECKER_LOGS_RECORDING_READ_H
/* Reads what `tidemark record` has written: core/record/format.h. Places in programs become
 * functions and lines where there is debug information. */
#include "checker/logs/pm_log.h"
#include "core/record/format.h"
#include "core/text/text.h"

/* Does a file that begins so hold a recording? */
bool recording_begins(const char *bytes, size_t len);
/* The checksum of some of its bytes. */
uint64_t recording_sum(const char *bytes, size_t len);
/* The record at `at`, before `end`; NULL: it is not whole. */
const struct record *recording_at(const char *bytes, uint64_t end, uint64_t at);
/* From `len` bytes. The files' content before is taken from it, too. 0, -EINVAL (*error), -ENOMEM.
 */
int recording_read_pm(struct pm_log *log, const char *bytes, size_t len, struct input_error *error);

#endif
