/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_HUNT_FOREVER_PAGE_H
#define TM_REPORT_HUNT_FOREVER_PAGE_H
/* How a campaign of tidemark fuzz without an end is doing, as one HTML page that needs nothing
 * else: sums, coverage and speed over time, and what breaks, by cause. Its times are those of the
 * clock. */
#include <jansson.h>
#include "checker/hunt/fuzz_session.h"

struct forever_page {
	json_t *began;	       /* when, s since 1970 */
	const json_t *samples; /* of the statistics (cli/forever_folder.h), at least one */
	const struct fuzz_session *session;
	const struct fuzz_turn *turn; /* a store each */
	unsigned turns;
	bool running;
};

/* For save_file(); `page` is a struct forever_page. */
int forever_page(FILE *out, const void *page);

#endif
