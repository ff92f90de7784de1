/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_LOGS_PMEMCHECK_WRITE_H
#define TM_CHECKER_LOGS_PMEMCHECK_WRITE_H
/*
 * Writes a log as pmemcheck would have, for pmreorder and its like: on one line, in stores of at
 * most eight bytes. The format knows neither threads nor RNICs: what an RNIC has landed is a store,
 * with its place in a frame; msync() and RDMA FLUSH are a flush and a fence; an acknowledgement is
 * the marker ACK.
 */
#include <stdio.h>
#include "checker/logs/pm_log.h"

/* 0 or -EIO. `log`: a struct pm_log. */
int pmemcheck_write(FILE *out, const void *log);

#endif
