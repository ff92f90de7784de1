/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sentences of a campaign, and its text as a table for each configuration. */
#include "report/report.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/text.h"
#include "scenarios/stores.h"
#include "core/text/text.h"

bool same_group(const struct campaign_config *a, const struct campaign_config *b)
{
	return a->store == b->store && !strcmp(a->variant, b->variant);
}

void group_name(const struct campaign_config *cfg, char *buf, size_t n)
{
	bool variant = strcmp(cfg->variant, "default");
	snprintf(buf, n, "%s%s%s", cfg->store->name, variant ? " " : "",
		 variant ? cfg->variant : "");
}

void config_name(const struct campaign_config *cfg, char *buf, size_t n)
{
	group_name(cfg, buf, n);
	size_t len = strlen(buf);
	if (strcmp(cfg->name, "default"))
		snprintf(buf + len, n - len, " (%s)", cfg->name);
}

const char *report_surprise(const struct report_cell *cell)
{
	assert(cell->surprise);
	return cell->strange ? "BROKEN FOR ANOTHER CAUSE"
	       : cell->often ? "BROKEN FAR MORE OFTEN"
	       : cell->why   ? "NOT AS EXPECTED"
			     : "A PROMISE IS BROKEN";
}

void report_takes(const struct campaign_config *cfg, uint32_t takes, char *buf, size_t n)
{
	char value[64];
	*buf = '\0';
	for (unsigned k = 0; cfg->store->knobs[k].name; k++) {
		size_t len = strlen(buf);
		setup_knob_value(&cfg->setup, k, value, sizeof(value));
		if (takes & 1u << k)
			snprintf(buf + len, n - len, "%s%s=%s", len ? ", " : "",
				 cfg->store->knobs[k].name, value);
	}
}

/* Of a break for an unknown cause: what it is blamed on. */
static void blame_sentence(const struct report *r, unsigned config, unsigned k,
			   char sentence[REPORT_SENTENCE])
{
	const struct campaign_cell *cell = &r->campaign->cell[config][k];
	const struct campaign_config *cfg = &r->campaign->config[config];
	char words[BLAME_TEXT], column[KNOWN_WORDS];
	struct setup s;
	known_column_name(cfg->store, cfg->variant, campaign_like(cfg), column);
	if (!campaign_setup(r->campaign, cell->strange_unit, &s))
		blame_print(&cell->blame, s.region, s.regions, words, sizeof(words));
	else
		snprintf(words, sizeof(words), "%s", contract_name(k));
	setup_free(&s);
	if (cell->baselined) {
		snprintf(sentence, REPORT_SENTENCE,
			 "another cause than the baseline accepts, in %" PRIu64 " of %" PRIu64
			 " broken state%s, %" PRIu64 " run%s: %s",
			 cell->strange_states, cell->broken_states, plural(cell->broken_states),
			 cell->strange_runs, plural(cell->strange_runs), words);
		return;
	}
	snprintf(sentence, REPORT_SENTENCE,
		 "another cause than the known ones, in %" PRIu64 " of %" PRIu64
		 " broken state%s, %" PRIu64 " run%s; as a row of core/stores/%s/causes.txt: %s %s",
		 cell->strange_states, cell->broken_states, plural(cell->broken_states),
		 cell->strange_runs, plural(cell->strange_runs), cfg->store->name, column, words);
}

/* Of a break in far more runs than recorded: by how much. */
static void often_sentence(const struct report *r, unsigned config, unsigned k,
			   char sentence[REPORT_SENTENCE])
{
	const struct campaign *c = r->campaign;
	const struct campaign_cell *cell = &c->cell[config][k];
	snprintf(sentence, REPORT_SENTENCE,
		 "a known cause, but %" PRIu64 " runs show it and at most %" PRIu32
		 " are recorded of as many (core/stores/%s/causes.txt; told above %" PRIu64
		 "), most of them in workload %s; its row is %s",
		 cell->often_runs, cell->recorded, c->config[config].store->name,
		 known_limit(cell->recorded), c->workload[cell->often_unit % c->workloads].name,
		 known_words(cell->often_row));
}

bool report_cause(const struct report *r, unsigned config, unsigned k,
		  char sentence[REPORT_SENTENCE])
{
	const struct report_cell *cell = &r->cell[config][k];
	assert(!cell->strange || !cell->often);
	if (cell->strange)
		blame_sentence(r, config, k, sentence);
	else if (cell->often)
		often_sentence(r, config, k, sentence);
	return cell->strange || cell->often;
}

unsigned report_not_run(const struct campaign *c, unsigned config, char sentence[REPORT_SENTENCE])
{
	const struct campaign_config *cfg = &c->config[config];
	unsigned n[CAMPAIGN_USES] = {0}, not_run, len;
	char name[REPORT_NAME];
	for (unsigned w = 0; w < c->workloads; w++)
		n[campaign_use(c, config * c->workloads + w)]++;
	not_run = n[CAMPAIGN_MORE_KEYS] + n[CAMPAIGN_ANOTHER];
	group_name(cfg, name, sizeof(name));
	len = (unsigned)snprintf(
		sentence, REPORT_SENTENCE, "%s: %u of %u workload%s not run: ", name, not_run,
		not_run + n[CAMPAIGN_USED], not_run + n[CAMPAIGN_USED] == 1 ? " was" : "s were");
	if (n[CAMPAIGN_MORE_KEYS])
		len += (unsigned)snprintf(sentence + len, REPORT_SENTENCE - len,
					  "%u need%s more than %u key%s%s", n[CAMPAIGN_MORE_KEYS],
					  n[CAMPAIGN_MORE_KEYS] == 1 ? "s" : "",
					  cfg->store->max_keys, plural(cfg->store->max_keys),
					  n[CAMPAIGN_ANOTHER] ? ", " : "");
	if (n[CAMPAIGN_ANOTHER])
		snprintf(sentence + len, REPORT_SENTENCE - len,
			 "%u %s within the store's limits the same as another one",
			 n[CAMPAIGN_ANOTHER], n[CAMPAIGN_ANOTHER] == 1 ? "is" : "are");
	return not_run;
}

json_t *report_cell_of(const struct report *r, const json_t *tree, unsigned config, unsigned k)
{
	const struct campaign *c = r->campaign;
	int at = __builtin_popcount(store_judged(c->config[config].store) & (TM_BIT(k) - 1));
	for (unsigned i = 0; i < config; i++)
		at += __builtin_popcount(store_judged(c->config[i].store));
	return json_array_get(json_object_get(tree, "cells"), (size_t)at);
}

/* A configuration with its cells. */
static json_t *table_json(const struct report *r, const json_t *tree, unsigned config)
{
	const struct campaign *c = r->campaign;
	json_t *cells = json_array(), *hold = json_array(), *broken = json_array();
	char not_run[REPORT_SENTENCE];
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		bool breaks = c->cell[config][k].broken;
		if (!(store_judged(c->config[config].store) & TM_BIT(k)))
			continue;
		json_array_append(cells, report_cell_of(r, tree, config, k));
		if (breaks || c->config[config].store->promises & TM_BIT(k))
			json_array_append_new(breaks ? broken : hold,
					      json_string(contract_name(k)));
	}
	if (!report_not_run(c, config, not_run))
		*not_run = '\0';
	return json_pack("{s:O, s:o, s:o, s:o, s:b, s:i, s:s}", "config",
			 json_array_get(json_object_get(tree, "configs"), config), "cells", cells,
			 "hold", hold, "broken", broken, "traces_asked", r->out != NULL,
			 "workloads", (int)c->workloads, "all_not_run", not_run);
}

void report_tables(const struct report *r, const json_t *tree)
{
	const struct campaign *c = r->campaign;
	bool shapes = false; /* were printed last */
	text_print(tree, "crashtest_tables");
	for (unsigned i = 0; i < c->configs; i++) {
		bool in_short = report_in_short(r, i);
		if (in_short ? !report_is_whole(r, i) : !campaign_done(c, i))
			continue;
		if (in_short && !shapes)
			text_print(tree, "crashtest_shapes");
		shapes = in_short;
		json_t *table = table_json(r, tree, i);
		text_print(table, in_short ? "crashtest_short" : "crashtest_table");
		json_decref(table);
	}
	text_print(tree, "crashtest_bounds");
	report_end(r);
}
