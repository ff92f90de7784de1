/* SPDX-License-Identifier: BSD-3-Clause */
/* What a campaign comes to, and the last lines of its text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/rows/baseline.h"
#include "report/report.h"
#include "report/terminal.h"
#include "core/text/text.h"

#define LISTED (CONCLUSION_TEXT - 512) /* bytes of names; of more their number is told */

/* Each cell that is not as expected. */
static void conclude_surprises(struct report *r)
{
	const struct campaign *c = r->campaign;
	struct conclusion *end = &r->conclusion;
	unsigned left = r->surprises;
	char name[REPORT_NAME], contracts[REPORT_ROWS];
	struct holds_on holds;
	conclude(end, EXIT_BROKEN, "Not everything is as it should be:");
	for (unsigned i = 0; i < c->configs * TM_CONTRACTS && strlen(end->text) < LISTED; i++) {
		unsigned config = i / TM_CONTRACTS, k = i % TM_CONTRACTS;
		if (!r->cell[config][k].surprise)
			continue;
		bool folded = report_holds_on(r, config, k, &holds), any = left < r->surprises;
		left--;
		if (folded && !holds.first)
			continue;
		config_name(&c->config[config], name, sizeof(name));
		conclusion_add(end, "%s %s ", any ? "," : "", name);
		if (folded)
			conclusion_add(
				end, "%s (holds on: %s)",
				contract_list(holds.contracts, ", ", contracts, sizeof(contracts)),
				holds.rows);
		else
			conclusion_add(end, "%s", contract_name(k));
	}
	conclusion_add(end, left ? ", and %u more." : ".", left);
}

void report_conclude(struct report *r)
{
	const struct campaign *c = r->campaign;
	struct conclusion *end = &r->conclusion;
	unsigned done = 0;
	char part[200];
	if (r->surprises)
		conclude_surprises(r);
	else if (r->open)
		conclude(end, EXIT_UNSURE,
			 "Not everything within the bounds of --exhaustive was looked at, under %u "
			 "of %u configurations; what was looked at is as expected.",
			 r->open, c->configs);
	else if (c->options.exhaustive)
		conclude(end, EXIT_HELD,
			 "Everything within the bounds of --exhaustive is as expected.");
	else if (*r->tried)
		conclude(end, EXIT_HELD, "Everything that was tried is as expected: %s.", r->tried);
	else
		conclude(end, EXIT_HELD, "Everything is as expected.");
	for (unsigned i = 0; i < c->configs; i++)
		done += campaign_done(c, i);
	snprintf(part, sizeof(part),
		 "%u of %u workloads are done, %u of %u configurations are finished", done,
		 c->configs * c->workloads, c->configs - r->undone, c->configs);
	if (r->undone)
		conclusion_left_off(end, r->left_off ? r->left_off : "early", part);
	if (r->unwritten && end->status == EXIT_HELD)
		*end->text = '\0';
	if (r->unwritten)
		conclusion_add(end, "%sNot all results could be written.", *end->text ? " " : "");
	end->status = r->unwritten ? r->unwritten : end->status;
}

void report_end(const struct report *r)
{
	const struct campaign *c = r->campaign;
	uint64_t states = 0;
	for (unsigned i = 0; i < c->configs; i++)
		states += c->total[i].states;
	if (r->out)
		report_written(r);
	printf("%" PRIu64 " state%s in %.1f s, %.0f states/s with %u job%s\n", states,
	       plural(states), c->seconds, (double)states / (c->seconds > 0 ? c->seconds : 1),
	       c->options.jobs, plural(c->options.jobs));
	if (r->baseline)
		report_baseline(r, r->baseline);
	if (r->undone && r->whole_command)
		printf("All of it: %s\n", r->whole_command);
	/* The sentence does not stand below a text of which a part is missing. */
	if (r->conclusion.status != EXIT_HELD || !output_flush())
		conclusion_print(&r->conclusion);
}
