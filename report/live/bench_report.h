/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_LIVE_BENCH_REPORT_H
#define TM_REPORT_LIVE_BENCH_REPORT_H

#include <jansson.h>
#include "checker/live/load.h"

struct live_store;

/* For outputs_write(), and for text_print(), as "bench". NULL without memory. */
json_t *bench_tree(const struct live_store *on, const struct load_options *o,
		   const struct load_result *r);

#endif
