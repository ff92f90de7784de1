/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark taxonomy --advise: for one kind of hardware, which method to take. Methods were
 * measured there, the cheapest first, until one was sound; that one is printed with its steps and
 * what they cost, and of those that would be cheaper, the dearest with the trace of what goes
 * wrong.
 */
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/terminal.h"
#include "report/models/taxonomy_report.h"
#include "core/text/text.h"

static void print_cost(const struct method_cost *cost)
{
	printf("%u round trip%s; responder's CPU: %u act%s while the requester waits, %u later; %u "
	       "message%s, %u byte%s\n",
	       cost->round_trips, plural(cost->round_trips), cost->cpu_waited,
	       plural(cost->cpu_waited), cost->cpu_later, cost->messages, plural(cost->messages),
	       cost->bytes, plural(cost->bytes));
}

/* The actor of an act that the program can see; NULL: it happens by itself. */
static const char *actor(const struct act *act)
{
	switch (act->kind) {
	case ACT_POST:
		return "requester";
	case ACT_COMPLETE:
		return "requester waits";
	case ACT_RESULT:
		return "its NIC waits";
	case ACT_RECEIVE:
	case ACT_COPY:
	case ACT_FLUSH:
	case ACT_REPLY:
		return "responder's CPU";
	default:
		return NULL;
	}
}

static void print_steps(const struct acts *acts)
{
	unsigned n = 0;
	for (unsigned i = 0; i < acts->n; i++) {
		const struct act *act = &acts->act[i];
		if (!actor(act))
			continue;
		printf("      %2u  %-16s %s%s%s\n", ++n, actor(act), act->text,
		       act->kind == ACT_FLUSH ? ", fence" : "",
		       i == acts->done ? ": now it is durable"
		       : act->later    ? " (later)"
				       : "");
	}
}

static void print_cheaper(const struct taxonomy_report *r, const struct taxonomy_cell *cheaper)
{
	const char *method = cheaper ? taxonomy_method(cheaper->method) : NULL;
	if (!cheaper) {
		puts("    nothing is cheaper");
		return;
	}
	if (!cheaper->result.breaks) {
		printf("    %s would be cheaper; whether it is sound could not be told\n", method);
		return;
	}
	printf("    %s would be cheaper, but is not sound here (%s):\n", method,
	       taxonomy_word(cheaper->result.verdict));
	for (unsigned b = 0; b < cheaper->result.breaks; b++) {
		const struct taxonomy_break *broken = &cheaper->result.broken[b];
		char text[200];
		snprintf(text, sizeof(text), "%s%s%s", contract_name(broken->contract),
			 *broken->text ? ": " : "", broken->text);
		printf("      ");
		print_wrapped(6, text);
		printf("      ");
		taxonomy_print_replay(r, cheaper, b);
	}
}

/* `steps`: with the steps of the method. */
static void print_choice(const struct taxonomy_report *r, const char *title, bool compound,
			 enum taxonomy_primitive primitive, bool steps)
{
	const struct taxonomy_cell *any = &r->t->cell[0], *cheaper;
	const struct taxonomy_cell *best = taxonomy_cheapest(r->t, compound, primitive, any->column,
							     any->transport, &cheaper);
	char text[200];
	struct acts acts;
	if (!best) {
		printf("  %-10s none is sound\n", title);
		return;
	}
	taxonomy_acts(r->t, best, &acts);
	struct method_cost cost = method_cost(&acts);
	method_print(&acts, text, sizeof(text));
	printf("  %-10s %-5s  %s\n", title, taxonomy_method(best->method), text);
	printf("    ");
	print_cost(&cost);
	if (steps)
		print_steps(&acts);
	print_cheaper(r, cheaper);
}

static void advise_kind(const struct taxonomy_report *r, bool compound)
{
	puts(compound ? "== two updates, a strictly before b (a record, then the tail of its log)"
		      : "== one update, a (a record that proves itself by its checksum)");
	print_choice(r, "cheapest", compound, TAXONOMY_PRIMITIVES, true);
	puts("\n  by primitive");
	print_choice(r, "Write", compound, TAXONOMY_WRITE, false);
	print_choice(r, "WriteImm", compound, TAXONOMY_WRITEIMM, false);
	print_choice(r, "Send", compound, TAXONOMY_SEND, false);
	print_choice(r, "Commit", compound, TAXONOMY_COMMIT, false);
	puts("    no card has RDMA Commit (docs/taxonomy.md)");
	putchar('\n');
}

void taxonomy_advise(const struct taxonomy_report *r)
{
	unsigned count[TAXONOMY_NOT_COMPARED + 1];
	char config[TAXONOMY_CONFIG], text[600];
	taxonomy_config(r->t, r->t->cell[0].column, r->t->cell[0].transport, config,
			sizeof(config));
	taxonomy_count(r, count);
	printf("%s\n\n", config);
	advise_kind(r, false);
	advise_kind(r, true);
	snprintf(text, sizeof(text),
		 "Cheaper is: fewer round trips; of as many, less work of the responder's CPU "
		 "while the "
		 "requester "
		 "waits, then later; then fewer messages; then fewer bytes (docs/taxonomy.md). "
		 "Bytes are "
		 "those "
		 "of a record with a value of %u. \"Sound\" is: all schedules of workload %s with "
		 "at most %u "
		 "preemptions were tried, and nothing broke.",
		 workload_max_vlen(r->t->options.workload), r->t->options.workload->name,
		 r->t->options.preemptions);
	print_wrapped(0, text);
	printf("%u of %u methods that were tried are as %s says\n", count[TAXONOMY_EQUAL],
	       count[TAXONOMY_EQUAL] + count[TAXONOMY_DIFFERS] + count[TAXONOMY_UNSURE],
	       r->request->table_name);
}
