/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cells of a campaign's report: which of them are not as expected; and of each broken one the
 * smallest cases, with their traces.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/judge/surprise.h"
#include "report/output.h"
#include "report/report.h"
#include "report/terminal.h"

/* --- verdicts --- */

/* Where all causes are collected, none is a surprise. */
static bool is_strange(const struct campaign *c, unsigned config, unsigned k)
{
	return c->cell[config][k].strange && !c->options.all_causes;
}

/* Of two reasons, an unknown cause is told. */
static bool is_often(const struct campaign *c, unsigned config, unsigned k)
{
	return c->cell[config][k].often && !is_strange(c, config, k);
}

static bool judge_cell(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	const struct surprise_cell cell = {.store = cfg->store,
					   .variant = cfg->variant,
					   .config = cfg->name,
					   .contract = k,
					   .broken = r->campaign->cell[config][k].broken,
					   .strange = is_strange(r->campaign, config, k) ||
						      is_often(r->campaign, config, k),
					   .whole = r->whole};
	r->cell[config][k].surprise = surprise_in_cell(&cell, &r->cell[config][k].why);
	r->cell[config][k].strange = is_strange(r->campaign, config, k);
	r->cell[config][k].often = is_often(r->campaign, config, k);
	return r->cell[config][k].surprise;
}

int report_open(struct report *r)
{
	const struct campaign *c = r->campaign;
	r->cell = calloc(c->configs, sizeof(*r->cell));
	if (!r->cell)
		return -ENOMEM;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		r->surprises += judge_cell(r, i / TM_CONTRACTS, i % TM_CONTRACTS);
	for (unsigned i = 0; i < c->configs; i++)
		r->open += c->options.exhaustive && campaign_left_out(c, i);
	return 0;
}

void report_close(struct report *r)
{
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++)
		for (unsigned n = 0; n < MINIMIZED_MAX; n++)
			free(r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].one[n].trace);
	free(r->cell);
}

/* --- traces --- */

/* Write one case down; `number` of its cell. */
static int write_case(const struct report *r, unsigned config, unsigned contract, unsigned number,
		      const struct minimized_failure *found, char why[REPORT_WHY])
{
	struct report_case *one = &r->cell[config][contract].one[number];
	char tail[16] = "";
	if (number)
		snprintf(tail, sizeof(tail), "-%u", number + 1);
	snprintf(one->text, sizeof(one->text), "%s", found->text);
	one->whole = found->whole;
	one->takes = found->takes;
	int error = trace_path(&r->campaign->config[config], contract, r->out, tail, &one->trace);
	if (!error)
		error = report_case_save(one, &found->setup, &found->path, contract);
	if (error) {
		snprintf(why, REPORT_WHY, "%s: %s", one->trace ? one->trace : r->out,
			 strerror(-error));
		free(one->trace);
		one->trace = NULL;
	}
	return error;
}

static int not_again(const struct campaign *c, unsigned config, unsigned contract,
		     char why[REPORT_WHY])
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	snprintf(why, REPORT_WHY,
		 "%s %s: run %" PRIu64 " of workload %s does not break it a second time",
		 c->config[config].store->name, contract_name(contract), cell->mode.run,
		 c->workload[cell->unit % c->workloads].name);
	return -EPROTO;
}

/* The smallest cases of one broken cell: one that was expected has one, others one for each
 * cause. */
static int write_cell(const struct report *r, unsigned config, unsigned contract,
		      char why[REPORT_WHY])
{
	const struct campaign *c = r->campaign;
	struct report_cell *cell = &r->cell[config][contract];
	struct minimized *cases = malloc(sizeof(*cases));
	int error = !cases			   ? -ENOMEM
		    : cell->strange || cell->often ? minimized_strange(c, config, contract, cases)
		    : cell->why || c->options.exhaustive
			    ? minimized_first(c, config, contract, cases)
			    : minimized_find(c, config, contract, cases);
	if (error) {
		free(cases);
		return not_again(c, config, contract, why);
	}
	for (unsigned i = 0; i < cases->n && !error; i++, cell->cases++)
		error = write_case(r, config, contract, i, &cases->found[i], why);
	cell->left = cases->left;
	minimized_free(cases);
	free(cases);
	return error;
}

/* How one cell breaks, of the first run that broke it. */
static int look_again(const struct report *r, unsigned config, unsigned contract,
		      char why[REPORT_WHY])
{
	const struct campaign_cell *cell = &r->campaign->cell[config][contract];
	struct report_cell *more = &r->cell[config][contract];
	const struct campaign_break which = more->strange ? campaign_strange(r->campaign, config,
									     contract)
					    : more->often
						    ? campaign_often(r->campaign, config, contract)
						    : (struct campaign_break){cell->unit, contract,
									      cell->mode, BREAK_ANY,
									      0};
	struct broken_run run;
	int error = campaign_again(r->campaign, &which, &run);
	memcpy(more->one[0].text, run.text, sizeof(more->one[0].text));
	broken_run_free(&run);
	more->cases = !error;
	return error ? not_again(r->campaign, config, contract, why) : 0;
}

bool report_in_short(const struct report *r, unsigned config)
{
	bool surprise = false;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		surprise |= r->cell[config][k].surprise;
	return r->campaign->config[config].shape && !surprise;
}

int report_traces(struct report *r, bool quiet, char why[REPORT_WHY])
{
	const struct campaign *c = r->campaign;
	unsigned broken = 0, done = 0;
	int error = 0;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		broken += c->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].broken;
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS && !error; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		const struct report_cell *cell = &r->cell[config][k];
		if (!c->cell[config][k].broken || report_in_short(r, config))
			continue;
		if (!quiet)
			progress_line(r->out ? "shrinking what breaks: %u of %u"
					     : "looking again at break %u of %u",
				      ++done, broken);
		error = r->out ? write_cell(r, config, k, why) : look_again(r, config, k, why);
		for (unsigned n = 0; n < cell->cases; n++)
			r->traces += cell->one[n].trace != NULL;
	}
	progress_line(NULL);
	return error;
}
