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
#include "checker/campaign/driver.h"
#include "checker/judge/names.h"
#include "checker/judge/surprise.h"
#include "checker/trace/wrong.h"
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
	bool part = cfg->share.part > 1 || cfg->searched || !report_is_whole(r, config);
	struct surprise_cell cell = {.store = cfg->store,
				     .variant = cfg->variant,
				     .config = campaign_like(cfg),
				     .contract = k,
				     .broken = r->campaign->cell[config][k].broken,
				     .strange = is_strange(r->campaign, config, k) ||
						is_often(r->campaign, config, k),
				     .whole = r->whole && !part};
	const struct campaign_cell *found = &r->campaign->cell[config][k];
	struct report_cell *out = &r->cell[config][k];
	out->surprise = surprise_in_cell(&cell, &out->why);
	/* Where nothing but the baseline is compared with, any other cause is strange. */
	if (found->baselined && found->accepted && !cell.strange)
		out->surprise = false;
	out->accepted = found->accepted && !out->surprise;
	out->strange = is_strange(r->campaign, config, k);
	out->often = is_often(r->campaign, config, k);
	cell.whole = report_is_whole(r, config) && r->budgeted && !cfg->searched;
	out->unseen = !cell.broken && !out->surprise && surprise_in_cell(&cell, &out->why);
	return out->surprise;
}

bool report_is_whole(const struct report *r, unsigned config)
{
	return campaign_done(r->campaign, config) == r->campaign->workloads;
}

int report_open(struct report *r)
{
	r->cell = calloc(r->campaign->configs + 1, sizeof(*r->cell));
	return r->cell ? 0 : -ENOMEM;
}

bool report_judge(struct report *r, unsigned config)
{
	bool surprise = false;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		surprise |= judge_cell(r, config, k);
	return surprise;
}

void report_judge_all(struct report *r)
{
	const struct campaign *c = r->campaign;
	r->surprises = r->open = r->undone = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		report_judge(r, i);
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			r->surprises += r->cell[i][k].surprise;
		r->undone += !report_is_whole(r, i);
		r->open += c->options.exhaustive && campaign_left_out(c, i);
	}
}

void report_close(struct report *r)
{
	for (unsigned i = 0; r->cell && i < r->campaign->configs * TM_CONTRACTS; i++)
		for (unsigned n = 0; n < MINIMIZED_MAX; n++)
			free(r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].one[n].trace);
	free(r->cell);
}

bool report_in_short(const struct report *r, unsigned config)
{
	bool surprise = false;
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		surprise |= r->cell[config][k].surprise;
	return r->campaign->config[config].shape && !surprise;
}

/* --- traces --- */

/* Where a case goes, `number` of its cell. 0 or -ENOMEM. */
static int name_trace(const struct report *r, unsigned config, unsigned contract, unsigned number)
{
	char tail[16] = "";
	if (number)
		snprintf(tail, sizeof(tail), "-%u", number + 1);
	return trace_path(&r->campaign->config[config], contract, r->out, tail,
			  &r->cell[config][contract].one[number].trace);
}

/* Write the trace of one case, whose text is set. */
static int write_case(const struct report *r, unsigned config, unsigned contract, unsigned number,
		      const struct setup *setup, const struct deviations *path,
		      char why[REPORT_WHY])
{
	struct report_case *one = &r->cell[config][contract].one[number];
	int error = name_trace(r, config, contract, number);
	if (!error)
		error = report_case_save(one, setup, path, contract);
	if (error) {
		snprintf(why, REPORT_WHY, "%s: %s", one->trace ? one->trace : r->out,
			 strerror(-error));
		free(one->trace);
		one->trace = NULL;
	}
	return error;
}

static int write_smallest(const struct report *r, unsigned config, unsigned contract,
			  unsigned number, const struct minimized_failure *found,
			  char why[REPORT_WHY])
{
	struct report_case *one = &r->cell[config][contract].one[number];
	snprintf(one->text, sizeof(one->text), "%s", found->text);
	one->whole = found->whole;
	one->takes = found->takes;
	return write_case(r, config, contract, number, &found->setup, &found->path, why);
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

/* Is the same promise broken, and that was not expected, on hardware that comes before it? */
static bool breaks_before(const struct report *r, unsigned config, unsigned contract)
{
	const struct campaign_config *at = &r->campaign->config[config];
	for (unsigned i = 0; i < config; i++) {
		const struct campaign_config *one = &r->campaign->config[i];
		if (one->store == at->store && !strcmp(one->variant, at->variant) &&
		    r->campaign->cell[i][contract].broken && r->cell[i][contract].surprise)
			return true;
	}
	return false;
}

/* The smallest cases of one broken cell: one that was expected has one, others one for each
 * cause. The causes are looked for on one kind of hardware: it takes seconds, and on the next they
 * are the same, as a rule. */
static int shrink_cell(const struct report *r, unsigned config, unsigned contract,
		       char why[REPORT_WHY])
{
	const struct campaign *c = r->campaign;
	struct report_cell *cell = &r->cell[config][contract];
	struct minimized *cases = malloc(sizeof(*cases));
	int error = !cases			   ? -ENOMEM
		    : cell->strange || cell->often ? minimized_strange(c, config, contract, cases)
		    : cell->why || cell->accepted || campaign_searches(c, config) ||
				    breaks_before(r, config, contract)
			    ? minimized_first(c, config, contract, cases)
			    : minimized_find(c, config, contract, cases);
	if (error == -ENOTRECOVERABLE) {
		const struct minimized_failure *wrong = &cases->found[0];
		wrong_save(&wrong->setup, &wrong->path, wrong->text, why, REPORT_WHY);
		minimized_free(cases);
	}
	if (error) {
		free(cases);
		return error == -ENOTRECOVERABLE ? error : not_again(c, config, contract, why);
	}
	for (unsigned i = 0; i < cases->n && !error; i++, cell->cases++)
		error = write_smallest(r, config, contract, i, &cases->found[i], why);
	cell->left = cases->left;
	minimized_free(cases);
	free(cases);
	return error;
}

/* How one cell breaks, of the first run that broke it, as it was found. */
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
	struct report_case *one = &more->one[0];
	struct broken_run run;
	int error = campaign_again(r->campaign, &which, &run);
	memcpy(one->text, run.text, sizeof(one->text));
	one->whole = true;
	more->cases = !error;
	if (error == -ENOTRECOVERABLE)
		wrong_save(&run.setup, &run.path, run.text, why, REPORT_WHY);
	else if (error)
		error = not_again(r->campaign, config, contract, why);
	else if (r->out)
		error = write_case(r, config, contract, 0, &run.setup, &run.path, why);
	broken_run_free(&run);
	return error;
}

/* What a process finds out about a broken cell. Traces have names that anybody can form. */
struct looked_at {
	int error;
	char why[REPORT_WHY];
	struct report_cell cell;
	bool traced[MINIMIZED_MAX];
};

/* The broken cells that are looked at again, by several processes. */
struct looking {
	struct report *r;
	unsigned *cell; /* config * TM_CONTRACTS + contract */
	bool *done;
	unsigned cells;
	int error;   /* of the process: it looks at no other cell then */
	bool shrink; /* else traces are written as they were found */
	bool quiet;
	char *why;
};

static void look_at_cell(void *arg, unsigned unit, void *result)
{
	struct looking *l = arg;
	struct looked_at *out = result;
	unsigned config = l->cell[unit] / TM_CONTRACTS, k = l->cell[unit] % TM_CONTRACTS;
	struct report_cell *cell = &l->r->cell[config][k];
	if (!l->error)
		l->error = l->shrink ? shrink_cell(l->r, config, k, out->why)
				     : look_again(l->r, config, k, out->why);
	out->error = l->error;
	out->cell = *cell;
	for (unsigned n = 0; n < cell->cases; n++) {
		out->traced[n] = cell->one[n].trace != NULL;
		out->cell.one[n].trace = NULL;
		free(cell->one[n].trace);
		cell->one[n].trace = NULL;
	}
}

static void take_cell(void *arg, unsigned unit, const void *result)
{
	struct looking *l = arg;
	const struct looked_at *in = result;
	unsigned config = l->cell[unit] / TM_CONTRACTS, k = l->cell[unit] % TM_CONTRACTS;
	struct report_cell *cell = &l->r->cell[config][k];
	*cell = in->cell;
	for (unsigned n = 0; n < cell->cases; n++) {
		if (in->traced[n] && name_trace(l->r, config, k, n))
			l->error = -ENOMEM;
		l->r->traces += cell->one[n].trace != NULL;
	}
	if (in->error && in->why[0] && !l->why[0])
		memcpy(l->why, in->why, sizeof(in->why));
	if (in->error)
		l->error = in->error;
}

static void tell_progress(void *arg, const struct driver_progress *at)
{
	const struct looking *l = arg;
	if (!l->quiet)
		progress_line(l->shrink	  ? "shrinking what breaks: %u of %u"
			      : l->r->out ? "writing what breaks, not shrunk: %u of %u"
					  : "looking again at break %u of %u",
			      at->done, at->units);
}

/* All cells of l. -EINTR: left off. */
static int look_at_cells(struct looking *l, const struct driver_bounds *bounds)
{
	struct driver driver = {.units = l->cells,
				.how = {.jobs = l->r->campaign->options.jobs,
					.bounds = bounds,
					.progress = tell_progress},
				.result_bytes = sizeof(struct looked_at),
				.done = l->done,
				.work = look_at_cell,
				.take = take_cell,
				.arg = l,
				.progress_arg = l};
	_Static_assert(sizeof(struct looked_at) <= DRIVER_RESULT_MAX, "a result is one message");
	int error = l->cells ? driver_run(&driver) : 0;
	progress_line(NULL);
	return error ? error : l->error;
}

/* Without those that are done. */
static void drop_done(struct looking *l)
{
	unsigned left = 0;
	for (unsigned i = 0; i < l->cells; i++)
		if (!l->done[i])
			l->cell[left++] = l->cell[i];
	memset(l->done, 0, l->cells * sizeof(*l->done));
	l->cells = left;
}

/* After why the first trace could not be written: how many are missing for that. */
static void tell_missing(const struct report *r, char why[REPORT_WHY])
{
	const struct campaign *c = r->campaign;
	unsigned missing = 0;
	size_t len = strlen(why);
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS; i++)
		missing += c->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].broken &&
			   !report_in_short(r, i / TM_CONTRACTS) &&
			   !r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].one[0].trace;
	if (missing > 1)
		snprintf(why + len, REPORT_WHY - len, "; %u traces are missing", missing);
}

int report_traces(struct report *r, bool quiet, char why[REPORT_WHY])
{
	const struct campaign *c = r->campaign;
	const unsigned all = c->configs * TM_CONTRACTS;
	const volatile sig_atomic_t *stop = c->options.bounds ? c->options.bounds->stop : NULL;
	const struct driver_bounds bounds = {.stop = stop};
	struct looking l = {.r = r, .quiet = quiet, .why = why};
	int error = -EINTR;
	why[0] = '\0';
	l.cell = calloc(all + 1, sizeof(*l.cell));
	l.done = calloc(all + 1, sizeof(*l.done));
	if (!l.cell || !l.done) {
		free(l.cell);
		free(l.done);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < all; i++)
		if (c->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].broken &&
		    !report_in_short(r, i / TM_CONTRACTS))
			l.cell[l.cells++] = i;
	l.shrink = r->out && (!stop || !*stop);
	if (l.shrink) {
		error = look_at_cells(&l, &bounds);
		drop_done(&l);
	}
	/* Whoever interrupts it does not want to wait: what is left is written as it was found. */
	if (error == -EINTR) {
		l.shrink = false;
		error = look_at_cells(&l, NULL);
	}
	free(l.cell);
	free(l.done);
	if (error && !why[0])
		snprintf(why, REPORT_WHY, "%s", driver_error(error));
	if (error && r->out)
		tell_missing(r, why);
	return error;
}
