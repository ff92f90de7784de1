/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark claims --knobs: which switch changes which verdict, and what scenarios/claims.txt says of
 * it. A switch of the hardware matters if it does to one of the stores.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "checker/flips.h"
#include "checker/names.h"
#include "cli/claims.h"
#include "cli/cli.h"

#define RUNS 40 /* of each workload, switch and base */

static void progress(unsigned done, unsigned flips, double seconds)
{
	progress_line("%u of %u settings, %.0f s", done, flips, seconds);
}

static const struct claim_knob *said(const struct claims *all, const struct flip *flip)
{
	for (unsigned i = 0; i < all->knobs; i++)
		if (all->knob[i].store == (flip->hardware ? NULL : flip->store) &&
		    !strcmp(all->knob[i].knob, flip->knob))
			return &all->knob[i];
	return NULL;
}

static void print_flip(const struct flips *f, const struct flip *flip)
{
	printf("%-10s %-26s ", flip->store->name, flip->knob);
	if (flip->found)
		printf("%s %s in workload %s%s%s", contract_name(flip->contract),
		       flip->breaks ? "breaks" : "no longer breaks",
		       f->campaign.workload[flip->workload].name, strcmp(flip->base, "default") ? ", " : "",
		       strcmp(flip->base, "default") ? flip->base : "");
	else
		printf("changes no verdict");
	putchar('\n');
}

/* Does any of the stores' flips of this switch change a verdict? */
static bool matters(const struct flips *f, const struct flip *flip)
{
	bool any = flip->found;
	for (unsigned i = 0; flip->hardware && i < f->flips; i++)
		any |= f->flip[i].hardware && !strcmp(f->flip[i].knob, flip->knob) && f->flip[i].found;
	return any;
}

/* How many switches are otherwise than the file says. */
static unsigned compare(const struct flips *f, const struct claims *all)
{
	unsigned differ = 0;
	for (unsigned i = 0; i < f->flips; i++) {
		const struct flip *flip = &f->flip[i];
		const struct claim_knob *knob = said(all, flip);
		bool last = true; /* of the hardware's, each is spoken of once, at the end */
		for (unsigned k = i + 1; flip->hardware && k < f->flips; k++)
			last &= strcmp(f->flip[k].knob, flip->knob) != 0;
		print_flip(f, flip);
		if (!last)
			continue;
		if (knob) {
			printf("%*s%s: ", 37, "", knob->inert ? "inert" : "flips");
			print_wrapped(44, knob->why);
		}
		if (knob && knob->inert != matters(f, flip))
			continue;
		printf("%*s%s\n", 37, "", knob ? "DIFFERS" : "scenarios/claims.txt does not speak of it");
		differ++;
	}
	return differ;
}

int claims_knobs(const struct claims_options *o, const struct claims *all)
{
	struct flips f = {.runs = RUNS, .jobs = o->jobs, .seed = o->budget.seed};
	unsigned differ;
	int status;
	if (isatty(STDERR_FILENO) && !o->quiet)
		f.progress = progress;
	int error = flips_run(&f);
	progress_line(NULL);
	if (error) {
		flips_free(&f);
		return fail(EXIT_INTERNAL, "the switches could not be tested: %s", strerror(-error));
	}
	differ = compare(&f, all);
	printf("\n%u settings of switches, %u otherwise than scenarios/claims.txt says\n", f.flips, differ);
	status = differ ? EXIT_BROKEN : EXIT_HELD;
	flips_free(&f);
	return status;
}
