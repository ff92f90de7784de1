/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_HISTORY_READ_H
#define TM_CHECKER_LOGS_HISTORY_READ_H
/* A history by itself: a file of the lines that clients announce (core/record/announcement.h). */
#include "checker/logs/pm_log.h"
#include "core/text/text.h"

#define HISTORY_FILE_MAX (1u << 30) /* bytes */

/* Adds the announcements to an open log. 0 or -errno: -EINVAL with *error. `bytes` end with a NUL,
 * and are changed. */
int history_read(struct pm_log *log, char *bytes, size_t len, struct input_error *error);

#endif
