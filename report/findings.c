/* SPDX-License-Identifier: BSD-3-Clause */
/* See findings.h. The traces are replayed in several processes. */
#include "report/findings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign/driver.h"
#include "checker/judge/names.h"
#include "report/trace/event_trace_read.h"
#include "report/finding_place.h"
#include "report/terminal.h"

struct finding_made {
	int error;
	char why[REPORT_WHY];
	struct finding one;
};

struct finding_work {
	struct findings *all;
	char top[FINDING_FILE];
	bool quiet;
	int error;
	char *why;
};

static const struct report_case *case_of(const struct report *r, const struct finding *one)
{
	const struct report_cell *cell = &r->cell[one->config][one->contract];
	return one->number < cell->cases ? &cell->one[one->number] : NULL;
}

static int find_by_trace(const char *trace, const char *top, struct finding *one)
{
	struct event_trace_read *read = NULL;
	int error = event_trace_read(trace, &read);
	if (!error) {
		const struct setup *s = &read->trace.setup;
		snprintf(one->sentence, sizeof(one->sentence), "%s", read->events.cause.sentence);
		blame_print(&read->blame, s->region, s->regions, one->cause, sizeof(one->cause));
		finding_place(&read->events, top, one);
	}
	event_trace_read_free(read);
	return error;
}

static void make_finding(void *arg, unsigned unit, void *result)
{
	const struct finding_work *w = arg;
	const struct report *r = w->all->report;
	struct finding_made *made = result;
	made->one = w->all->one[unit];
	const struct report_case *one = case_of(r, &made->one);
	const char *trace = one ? one->trace : NULL;
	if (trace)
		made->error = find_by_trace(trace, w->top, &made->one);
	else
		finding_place_of_store(r->campaign->config[made->one.config].store, w->top,
				       &made->one);
	if (!trace) /* it holds, or its trace could not be written */
		snprintf(made->one.cause, sizeof(made->one.cause), "%s%s",
			 contract_name(made->one.contract), one ? "" : " holds");
	if (made->error == -EPROTO)
		snprintf(made->why, sizeof(made->why), "%s: it does not run as it was written",
			 trace);
	else if (made->error)
		snprintf(made->why, sizeof(made->why), "%s: %s", trace, driver_error(made->error));
}

static void take_finding(void *arg, unsigned unit, const void *result)
{
	struct finding_work *w = arg;
	const struct finding_made *made = result;
	w->all->one[unit] = made->one;
	if (made->error && !w->error)
		memcpy(w->why, made->why, REPORT_WHY);
	if (made->error)
		w->error = made->error;
}

static void tell_progress(void *arg, const struct driver_progress *at)
{
	const struct finding_work *w = arg;
	if (!w->quiet)
		progress_line("explaining what needs attention: %u of %u", at->done, at->units);
}

/* A cell that is not as expected has one for each case; and one if it holds. */
static void list_findings(struct findings *f)
{
	const struct report *r = f->report;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		const struct report_cell *cell = &r->cell[config][k];
		bool broken = r->campaign->cell[config][k].broken;
		if (!cell->surprise)
			continue;
		for (unsigned number = 0; number < (broken ? cell->cases : 1); number++) {
			f->one[f->n].config = config;
			f->one[f->n].contract = k;
			f->one[f->n++].number = number;
		}
	}
}

int findings_find(const struct report *r, bool quiet, struct findings *out, char why[REPORT_WHY])
{
	struct finding_work w = {.all = out, .quiet = quiet, .why = why};
	unsigned most = 0;
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++)
		most += 1 + r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS].cases;
	*out = (struct findings){.report = r, .one = calloc(most, sizeof(*out->one))};
	snprintf(why, REPORT_WHY, "out of memory");
	if (!out->one)
		return -ENOMEM;
	list_findings(out);
	finding_top(w.top);
	struct driver driver = {
		.units = out->n,
		.how = {.jobs = r->campaign->options.jobs, .progress = tell_progress},
		.result_bytes = sizeof(struct finding_made),
		.work = make_finding,
		.take = take_finding,
		.arg = &w,
		.progress_arg = &w};
	_Static_assert(sizeof(struct finding_made) <= DRIVER_RESULT_MAX, "a result is one message");
	int error = out->n ? driver_run(&driver) : 0;
	progress_line(NULL);
	if (error)
		snprintf(why, REPORT_WHY, "%s", driver_error(error));
	return error ? error : w.error;
}

void findings_free(struct findings *f)
{
	free(f->one);
	memset(f, 0, sizeof(*f));
}

/* What is broken, how, and why; and the command that shows it. */
static void print_message(FILE *out, const struct report *r, const struct finding *one)
{
	const struct report_case *how = case_of(r, one);
	const struct campaign_config *cfg = &r->campaign->config[one->config];
	const char *name = contract_name(one->contract);
	char config[REPORT_NAME];
	config_name(cfg, config, sizeof(config));
	if (how)
		fprintf(out, "%s: %s is broken: %s", config, name, how->text);
	else
		fprintf(out, "%s: %s was expected to break, and holds.", config, name);
	if (one->sentence[0])
		fprintf(out, "\nWhy: %s", one->sentence);
	if (how && how->trace) {
		fputs("\nTo see it: tidemark replay ", out);
		write_word(out, how->trace);
	}
}

static json_t *finding_json(const struct report *r, const struct finding *one)
{
	const struct campaign_config *cfg = &r->campaign->config[one->config];
	const struct report_case *how = case_of(r, one);
	char name[REPORT_NAME];
	config_name(cfg, name, sizeof(name));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:i, s:o, s:o, s:o}", "store",
			 cfg->store->name, "variant", cfg->variant, "config", cfg->name, "name",
			 name, "contract", contract_name(one->contract), "file",
			 json_text(one->line ? one->file : ""), "line", one->line, "cause",
			 json_text(one->cause), "message",
			 JSON_PRINTED(out, print_message(out, r, one)), "trace",
			 json_text(how ? how->trace : NULL));
}

json_t *findings_json(const struct findings *f)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < f->n; i++)
		json_array_append_new(all, finding_json(f->report, &f->one[i]));
	return all;
}
