/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each value of each knob changes, as the stores' claims.txt have it, and whether it is so. A
 * value of which the file says nothing is an error, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/hunt/hunt_report.h"
#include "report/terminal.h"
#include "core/text/text.h"

#define INDENT 37

/* "FSCK breaks in workload ww-c, run 3; without it 100 runs hold (efactory ack_early=off
 * split_trans=on)" */
static void line_text(const struct claim_knob *line, const struct knob_result *result, char *buf,
		      size_t n)
{
	const struct claim_case *test = &line->test;
	const char *with = line->kind == KNOB_BREAKS ? "with it" : "without it",
		   *other = line->kind == KNOB_BREAKS ? "without it" : "with it";
	bool variant = line->kind != KNOB_INERT && strcmp(test->config.variant, "default");
	if (line->kind == KNOB_INERT && !result->broke) {
		snprintf(buf, n, "changes no verdict: %s", line->why);
	} else if (line->kind == KNOB_INERT) {
		snprintf(buf, n, "%s %s in workload %s, run %" PRIu64 " (%s)",
			 contract_name(result->contract),
			 result->breaks ? "breaks" : "no longer breaks", result->workload,
			 result->run, result->where);
	} else {
		int at = result->broke
				 ? snprintf(buf, n,
					    "%s %s breaks in workload %s, run %" PRIu64 "; %s %s",
					    with, contract_name(result->contract), result->workload,
					    result->run, other,
					    result->held ? "it holds in" : "too, within")
				 : snprintf(buf, n, "%s nothing breaks", with);
		if (result->broke)
			at += snprintf(buf + at, n - (size_t)at, " %" PRIu64 " run%s",
				       result->held_runs, plural(result->held_runs));
		snprintf(buf + at, n - (size_t)at, " (%s%s%s %s)", test->config.store->name,
			 variant ? "/" : "", variant ? test->config.variant : "",
			 test->config.name);
	}
}

static void print_line(const struct claim_knob *line, const struct knob_result *result)
{
	char text[1024];
	line_text(line, result, text, sizeof(text));
	printf("%-10s %-25s ", line->store ? line->store->name : "hardware", line->knob);
	print_wrapped(INDENT, text);
	if (!knob_result_as_said(line, result))
		printf("%*sDIFFERS: %s:%u\n", INDENT, "", line->file, line->line);
}

static bool said(const struct claims *all, const struct tm_store *store, const char *knob)
{
	for (unsigned i = 0; i < all->knobs; i++)
		if (all->knob[i].store == store && !strcmp(all->knob[i].knob, knob))
			return true;
	return false;
}

/* How many are otherwise than the file says. */
unsigned sensitivity_print(const struct sensitivity *f)
{
	unsigned differ = 0, values = 0, missing = 0;
	const struct tm_store *store;
	char knob[64];
	for (unsigned i = 0; i < f->claims->knobs; i++) {
		print_line(&f->claims->knob[i], &f->result[i]);
		differ += !knob_result_as_said(&f->claims->knob[i], &f->result[i]);
	}
	for (; sensitivity_value(values, &store, knob, sizeof(knob)); values++) {
		if (said(f->claims, store, knob))
			continue;
		printf("%-10s %-25s no claims.txt speaks of it\n", store ? store->name : "hardware",
		       knob);
		missing++;
	}
	printf("\n%u values of knobs: no claims.txt mentions %u of them; %u of %u lines differ\n",
	       values, missing, differ, f->claims->knobs);
	return differ + missing;
}
