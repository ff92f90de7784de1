/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_MODELS_COUNT_REPORT_H
#define TM_REPORT_MODELS_COUNT_REPORT_H
/* What operations cost, as a table and as JSON. */
#include <jansson.h>
#include "checker/campaign/campaign.h"
#include "checker/models/count.h"
#include "checker/models/count_advice.h"
#include "checker/world/where.h"

/* The counts of one configuration, by value size. */
struct counted {
	const struct campaign_config *config;
	struct count *count;
};

struct count_report {
	struct counted *counted;
	unsigned configs;
	const unsigned *value; /* bytes */
	unsigned values, key;
	bool fields;	     /* also PM bytes by field */
	const char *profile; /* of the advice */
	struct profile costs;
	struct where *where; /* NULL: places have no lines */
	json_t *tree;	     /* for outputs_write(): "operations" and "without_need", lists */
};

#define COUNT_CELL 80 /* bytes */

/* "3+5": in the foreground and in the background; or "3". */
void count_put_figure(char cell[COUNT_CELL], uint64_t fore, uint64_t back);
/* What the taxonomy says of its PUTs, and what would be saved under the profile. */
void count_report_advice(const struct count_report *r, const struct counted *one,
			 const struct count_advice *advice);
/* One configuration: print it, and add it to r->tree. */
void count_report_config(const struct count_report *r, const struct counted *one);

#endif
