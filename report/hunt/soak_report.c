/* SPDX-License-Identifier: BSD-3-Clause */
/* See hunt_report.h. */
#include "report/hunt/hunt_report.h"
#include <inttypes.h>
#include <stdio.h>
#include "checker/judge/names.h"
#include "report/text.h"
#include "report/tree.h"

void soak_print_line(const struct soak_totals *t, double seconds)
{
	printf("%6.0f s  %8" PRIu64 " rounds  %10" PRIu64
	       " states  %7.0f states/s  memory of a process: %.1f MiB, at most %.1f\n",
	       seconds, t->rounds, t->states, (double)t->states / (seconds > 0 ? seconds : 1),
	       (double)t->rss_kib / 1024, (double)t->peak_kib / 1024);
	fflush(stdout);
}

void soak_print_broken(const struct soak_options *o, uint64_t round, const struct soak_result *r,
		       const char *trace)
{
	json_t *knobs = json_array();
	for (unsigned i = 0; i < o->knobs; i++)
		json_array_append_new(knobs, json_string(o->knob[i]));
	json_t *all = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:i, s:i, s:I, s:o}",
				"contract", contract_name(r->contract), "round", (json_int_t)round,
				"store", r->store, "hardware", r->hardware, "workload", r->workload,
				"how", r->text, "trace", json_text(trace), "operations",
				(int)r->operations, "deviations", (int)r->deviations, "seed",
				(json_int_t)o->seed, "knobs", knobs);
	text_print(all, "soak_broken");
	json_decref(all);
	fflush(stdout);
}

void soak_print_summary(const struct soak_totals *t, double seconds)
{
	soak_print_line(t, seconds);
	json_t *all = json_pack("{s:I, s:I, s:I, s:f, s:f, s:b, s:b, s:i}", "runs",
				(json_int_t)t->runs, "points", (json_int_t)t->points, "unsure",
				(json_int_t)t->unsure, "early", (double)t->early_kib / 1024, "late",
				(double)t->late_kib / 1024, "few", t->rounds < SOAK_FEW_ROUNDS,
				"grows", soak_grows(t), "broken", (int)t->broken);
	text_print(all, "soak_summary");
	json_decref(all);
}
