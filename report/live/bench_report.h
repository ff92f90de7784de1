/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LIVE_BENCH_REPORT_H
#define TM_REPORT_LIVE_BENCH_REPORT_H

#include <jansson.h>
#include "checker/live/load.h"

struct live_store;

void bench_print(const struct live_store *on, const struct load_options *o,
		 const struct load_result *r);
/* For outputs_write(). NULL without memory. */
json_t *bench_tree(const struct live_store *on, const struct load_options *o,
		   const struct load_result *r);

#endif
