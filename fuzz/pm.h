/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FUZZ_PM_H
#define TM_FUZZ_PM_H
#include "checker/logs/pm_log.h"

/*
 * A log that a reader has taken: replay it under all models, with every content that each dirty
 * line may have; then write it as pmemcheck's, and read that again, which must be possible. A log
 * whose files are large is left out.
 */
void pm_walk(struct pm_log *log);

#endif
