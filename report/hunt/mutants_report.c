/* SPDX-License-Identifier: BSD-3-Clause */
/* Which seeded bugs were found, and how soon: a table, and JSON. */
#include "report/hunt/mutants_report.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "checker/judge/names.h"
#include "report/report.h"
#include "core/text/text.h"

/* "KEEP in efactory w, ack_early=off" */
static void print_where(const struct mutant *m, const struct mutant_result *r)
{
	printf("%s, ", r->contract < TM_CONTRACTS ? contract_name(r->contract) : "rule");
	if (m->kind != MUTANT_STORE && r->store[0])
		printf("%s%s%s ", r->store, strcmp(r->variant, "default") ? " " : "",
		       strcmp(r->variant, "default") ? r->variant : "");
	printf("%s%s%s", r->workload, r->hardware[0] ? ", " : "", r->hardware);
}

/* What a mutant of the checker misses. */
static void print_checker(const struct mutant *m, const struct mutant_result *r)
{
	const struct expect_canary *c = m->canary;
	printf("  %-9s %-22s ", m->part, m->name);
	if (!c)
		printf("NOT NOTICED: no store has a canary for it\n");
	else if (!r->found)
		printf("NOT NOTICED: %s %s is found as ever\n", c->store, c->variant);
	else if (!strcmp(m->name, checker_mutants[CHECKER_SHRINK_ANY].name))
		printf("%s %s: the shrunk trace breaks another contract\n", c->store, c->variant);
	else
		printf("%s %s%s%s is missed in %" PRIu64 " run%s, %" PRIu64
		       " state%s (else %s, %s%s%s)\n",
		       c->store, c->variant, c->knob ? ", " : "", c->knob ? c->knob : "", r->runs,
		       plural(r->runs), r->states, plural(r->states), contract_name(r->contract),
		       r->workload, r->hardware[0] ? ", " : "", r->hardware);
}

static void print_row(const struct mutant *m, const struct mutant_result *r)
{
	char set[64];
	if (m->kind == MUTANT_CHECKER) {
		print_checker(m, r);
		return;
	}
	printf("  %-9s %-22s %-14s ", m->part, m->name,
	       contract_list(m->breaks, " ", set, sizeof(set)));
	if (r->anyway) {
		printf("CANNOT TELL: without the bug %s breaks, too, in the same runs\n",
		       contract_list(r->anyway, " ", set, sizeof(set)));
		return;
	}
	if (!r->found) {
		printf("NOT FOUND in %" PRIu64 " run%s, %" PRIu64 " state%s, %.1f s\n", r->runs,
		       plural(r->runs), r->states, plural(r->states), r->seconds);
		return;
	}
	printf("%6" PRIu64 " run%-1s %7" PRIu64 " state%-1s %7.3f s  ", r->runs, plural(r->runs),
	       r->states, plural(r->states), r->seconds);
	if (r->shrunk)
		printf("%u op%s %2u dev  ", r->operations, r->operations == 1 ? " " : "s",
		       r->deviations);
	else if (r->contract < TM_CONTRACTS)
		printf("not shrunk   ");
	else
		printf("      %2u dev  ", r->deviations);
	print_where(m, r);
	putchar('\n');
}

static void print_control(const struct mutant *m, const struct mutant_result *r)
{
	char set[64];
	printf("  %-9s %-8s %-14s ", m->part, m->name,
	       m->ack_early || !m->store ? "" : "ack_early=off");
	if (r->found && !m->store) {
		printf("BREAKS %s: %s\n", r->workload, r->text);
		return;
	}
	if (r->found) {
		printf("BREAKS %s in run %" PRIu64 " of %s: %s\n", contract_name(r->contract),
		       r->run, r->workload, r->text);
		return;
	}
	printf("%s: clean, %" PRIu64 " run%s, %" PRIu64 " state%s, %.1f s\n",
	       contract_list(m->breaks, " ", set, sizeof(set)), r->runs, plural(r->runs), r->states,
	       plural(r->states), r->seconds);
}

static int by_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_summary(const struct mutants_run *r)
{
	double seconds[MUTANTS_MAX];
	unsigned n = 0, bugs = 0, slowest = 0;
	for (unsigned i = 0; i < r->mutants; i++) {
		const struct mutant_result *result = &r->answer[i].result;
		if (r->mutant[i].kind == MUTANT_CONTROL || !r->done[i])
			continue;
		bugs++;
		if (!result->found || r->mutant[i].kind == MUTANT_CHECKER)
			continue;
		if (!n || result->seconds > r->answer[slowest].result.seconds)
			slowest = i;
		seconds[n++] = result->seconds;
	}
	printf("\nfound %u of %u", bugs - r->missed - r->untold, bugs);
	if (r->untold)
		printf(", cannot tell of %u", r->untold);
	if (n) {
		qsort(seconds, n, sizeof(seconds[0]), by_seconds);
		printf("; to the first failure: median %.3f s, slowest %.1f s (%s %s)",
		       n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
		       seconds[n - 1], r->mutant[slowest].part, r->mutant[slowest].name);
	}
	putchar('\n');
	if (r->unsure)
		printf("%u trace%s could not be shrunk, or did not replay\n", r->unsure,
		       plural(r->unsure));
}

static void print_kind(const struct mutants_run *r, enum mutant_kind kind, const char *title)
{
	bool any = false;
	for (unsigned i = 0; i < r->mutants; i++) {
		if (r->mutant[i].kind != kind || !r->done[i])
			continue;
		if (!any)
			puts(title);
		any = true;
		if (kind == MUTANT_CONTROL)
			print_control(&r->mutant[i], &r->answer[i].result);
		else
			print_row(&r->mutant[i], &r->answer[i].result);
	}
}

void mutants_print(const struct mutants_run *r)
{
	print_kind(r, MUTANT_STORE, "bugs of stores: one of the contracts that they name breaks");
	print_kind(r, MUTANT_MODEL,
		   "\nbugs of the emulated hardware: a rule of it breaks, or a store that is right "
		   "seems wrong");
	print_kind(r, MUTANT_CHECKER,
		   "\nmutants of the checker: a bug that is found otherwise is missed");
	print_kind(r, MUTANT_CONTROL,
		   "\ncontrols, without a bug: what each store keeps, so that its breaking counts");
	print_summary(r);
}

/* --- for machines --- */

static json_t *mutant_json(const struct mutant *m, const struct mutant_result *r, bool done)
{
	static const char *const kinds[] = {"store", "model", "checker", "control"};
	char set[64], anyway[64];
	return json_pack(
		"{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:b, "
		"s:i, s:i, s:s, s:b}",
		"kind", kinds[m->kind], "part", m->part, "name", m->name, "breaks",
		contract_list(m->breaks, " ", set, sizeof(set)), "found", r->found, "breaks_anyway",
		contract_list(r->anyway, " ", anyway, sizeof(anyway)), "contract",
		r->contract < TM_CONTRACTS ? contract_name(r->contract) : "", "store", r->store,
		"variant", r->variant, "hardware", r->hardware, "workload", r->workload, "runs",
		(json_int_t)r->runs, "states", (json_int_t)r->states, "seconds", r->seconds,
		"shrunk", r->shrunk, "operations", (int)r->operations, "deviations",
		(int)r->deviations, "how", r->text, "complete", done);
}

void mutants_conclude(const struct mutants_run *r, struct conclusion *c)
{
	if (r->missed || r->dirty || r->unsure)
		conclude(c, EXIT_BROKEN,
			 "%u bug%s not found; %u control%s; %u trace%s could not be shrunk, or did "
			 "not replay.",
			 r->missed, r->missed == 1 ? " is" : "s are", r->dirty,
			 r->dirty == 1 ? " breaks" : "s break", r->unsure, plural(r->unsure));
	else if (r->untold)
		conclude(c, EXIT_UNSURE,
			 "Of %u bug%s nobody can tell: it breaks what breaks without it, too. "
			 "--knob names hardware on which the store keeps the contract; or record "
			 "for which causes it breaks it (docs/cli.md).",
			 r->untold, plural(r->untold));
	else
		conclude(c, EXIT_HELD, "Every bug is found, and the controls are clean.");
}

json_t *mutants_tree(const struct mutants_run *r)
{
	json_t *bugs = json_array(), *all = json_pack("{s:o}", "bugs", bugs);
	for (unsigned i = 0; i < r->mutants; i++)
		json_array_append_new(bugs,
				      mutant_json(&r->mutant[i], &r->answer[i].result, r->done[i]));
	return all;
}
