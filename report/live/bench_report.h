/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LIVE_BENCH_REPORT_H
#define TM_REPORT_LIVE_BENCH_REPORT_H

#include "checker/live/load.h"

struct live_store;

void bench_print(const struct live_store *on, const struct load_options *o,
		 const struct load_result *r);
/* 0 or -errno. */
int bench_save_json(const struct live_store *on, const struct load_options *o,
		    const struct load_result *r, const char *path);

#endif
