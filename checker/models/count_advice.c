/* SPDX-License-Identifier: BSD-3-Clause */
/* See count_advice.h. */
#include "checker/models/count_advice.h"
#include <stdio.h>
#include <string.h>

#define KNOBS 40

static void take_method(const struct taxonomy *t, bool compound, struct count_method *out)
{
	const struct taxonomy_cell *any = &t->cell[0], *cheaper;
	const struct taxonomy_cell *best = taxonomy_cheapest(t, compound, TAXONOMY_PRIMITIVES,
							     any->column, any->transport, &cheaper);
	struct acts acts;
	if (!best)
		return;
	taxonomy_acts(t, best, &acts);
	out->name = taxonomy_method(best->method);
	out->round_trips = method_cost(&acts).round_trips;
	method_print(&acts, out->steps, sizeof(out->steps));
}

int count_advise(const struct setup *s, unsigned jobs, struct count_advice *out)
{
	char text[1000], *save = NULL;
	const char *knob[KNOBS], *expected;
	struct workload w = {0};
	struct taxonomy t = {0};
	struct taxonomy_options o = {.knobs = {.knob = knob},
				     .workload = &w,
				     .preemptions = campaign_default.preemptions,
				     .how.jobs = jobs,
				     .states = UINT64_MAX};
	unsigned bad;
	memset(out, 0, sizeof(*out));
	hardware_print(&s->hw, false, out->hardware, sizeof(out->hardware));
	snprintf(text, sizeof(text), "%s", out->hardware);
	for (char *at = strtok_r(text, " ", &save); at && o.knobs.knobs < KNOBS - 4;
	     at = strtok_r(NULL, " ", &save))
		knob[o.knobs.knobs++] = at;
	o.knobs.knobs = taxonomy_name_hardware(knob, o.knobs.knobs, KNOBS);
	int error = workload_named("w", &w, &expected);
	if (!error)
		error = taxonomy_open(&t, &o, UINT64_MAX >> (64 - taxonomy_methods()), &bad,
				      &expected);
	if (!error)
		error = taxonomy_run_cheapest(&t, t.cell[0].column, t.cell[0].transport);
	if (!error) {
		take_method(&t, false, &out->one);
		take_method(&t, true, &out->two);
	}
	taxonomy_close(&t);
	workload_free(&w);
	return error;
}

double count_round_trip_ns(const struct profile *p)
{
	const double port = p->packet + p->flight + p->packet; /* of either packet */
	return p->post + p->doorbell + port + p->land + port + p->poll;
}

double count_waste_ns(const struct waste_row *row, const struct profile *p)
{
	if (row->sort == WASTE_FENCE)
		return p->fence;
	return p->flush + (double)p->flush_line * row->lines / row->times;
}
