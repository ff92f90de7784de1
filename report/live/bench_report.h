/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LIVE_BENCH_REPORT_H
#define TM_REPORT_LIVE_BENCH_REPORT_H
/* Loads on live servers, for people and for machines. */
#include "checker/live/live_bench.h"

void live_bench_print(const struct live_bench *b);
/* A file: 0 or -errno. */
int live_bench_json(const struct live_bench *b, const char *path);

#endif
