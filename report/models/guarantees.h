/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_MODELS_GUARANTEES_H
#define TM_REPORT_MODELS_GUARANTEES_H
/*
 * What stores guarantee, and what it costs: a row for each store, with what its operations take,
 * and what is known of each contract there.
 *
 * What is known is what the store's expected.txt says, which campaigns hold against what they see;
 * or, if there is one, what a campaign's JSON says of it (`matrix`). Where neither says anything
 * there is the store's promise, and nothing else.
 */
#include <jansson.h>
#include "checker/campaign/campaign.h"
#include "checker/models/count.h"
#include "checker/models/times.h"

/* What is known of a store's contracts. `matrix`: the JSON of a campaign, or NULL. */
json_t *guarantees_row(const struct campaign_config *cfg, const json_t *matrix);
/* What it costs: counted in one run, and measured in another one. */
void guarantees_cost(json_t *row, const struct times *times, const struct count *count);
/* all["rows"], by what a PUT takes; and what else the text "guarantees" needs. Those that could not
 * be measured, which have "error", come last. */
void guarantees_end(json_t *all);

#endif
