/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event trace of a replay: what was asked of the store, then event by event which actor did
 * what, at each power failure the lines in flight with their versions and what
 * survived of each, recovery, what its readers found, the rule that broke, and why.
 */
#include "report/event_trace.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "report/terminal.h"
#include "core/pmem/crash.h"

static void section(const char *title)
{
	printf("\n%s== %s%s\n", paint(BOLD), title, paint(PLAIN));
}

/* --- events --- */

void event_trace_label(const struct logged_event *e, char *buf, size_t n)
{
	buf[0] = '\0';
	if (e->op.kind)
		op_label_print(e->op, e->occurrence, buf, n);
}

static bool detail(const struct logged_event *e)
{
	return e->kind == TRACED_STORE || e->kind == TRACED_FLUSH || e->kind == TRACED_FENCE ||
	       e->kind == TRACED_FETCH || e->kind == TRACED_POST;
}

static void print_event(const struct event_trace *st, const struct logged_event *e)
{
	const char *text = event_log_text(&st->record, e);
	char label[40], line[160];
	if (!*text || (st->brief && detail(e)))
		return;
	event_trace_label(e, label, sizeof(label));
	where_print(st->where, e->pc, line, sizeof(line));
	printf("%10.3f us  %-15s %-9s ", (double)e->at / 1000.0, event_log_actor(&st->record, e),
	       label);
	if (line[0])
		printf("%-56s  %s\n", text, line);
	else
		puts(text);
}

void event_trace_survived(const struct logged_line *l, char *buf, size_t n)
{
	pmem_answer_print(l->versions, l->answer, buf, n);
}

static void print_line(const struct event_trace *st, const struct logged_line *l)
{
	const struct setup *s = &st->trace->setup;
	char name[64], label[40], line[160], answer[PMEM_ANSWER_TEXT];
	event_trace_survived(l, answer, sizeof(answer));
	pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, name, sizeof(name));
	printf("  %-16s survived as %s%s%s%s\n", name, paint(l->answer ? RED : ""), answer,
	       paint(l->answer ? PLAIN : ""),
	       l->touched == EVENT_LOG_NONE ? "   (nobody looks at it)" : "");
	for (unsigned v = 1; v <= l->versions; v++) {
		const struct logged_version *version = &st->record
								.version[l->first_version + v - 1];
		const struct pmem_version *how = &version->how;
		op_label_print(how->op, how->occurrence, label, sizeof(label));
		where_print(st->where, how->pc, line, sizeof(line));
		printf("  %16s version %u: %u byte%s at +0x%02x by %s for %s%s%s\n", "", v,
		       how->len, plural(how->len), how->off,
		       how->nic				  ? "the NIC"
		       : version->actor != EVENT_LOG_NONE ? st->record.actor[version->actor]
							  : "?",
		       label, line[0] ? "  " : "", line);
	}
}

/* The power failure of a machine. */
static void print_flight(const struct event_trace *st, unsigned machine)
{
	const struct event_log *r = &st->record;
	unsigned n = 0;
	section(machine ? "the power fails again, in recovery or after it" : "the power fails");
	for (unsigned i = 0; i < r->lines; i++) {
		if (r->line[i].machine != machine)
			continue;
		if (!n++)
			puts("lines in flight (visible, not certainly durable), and their "
			     "versions:");
		print_line(st, &r->line[i]);
	}
	if (!n)
		puts("nothing was in flight: what was visible is durable");
}

static void print_machines(const struct event_trace *st)
{
	const struct event_log *r = &st->record;
	for (unsigned m = 0; m < r->machines; m++) {
		if (m)
			print_flight(st, m - 1);
		section(m ? "recovery, and what is then read" : "the run");
		for (size_t i = r->machine_from[m]; i < r->machine_from[m + 1]; i++)
			print_event(st, &r->event[i]);
	}
}

/* --- the beginning and the end --- */

void event_trace_knobs(const struct setup *s, char buf[EVENT_TRACE_KNOBS])
{
	struct setup plain;
	char value[64];
	buf[0] = '\0';
	setup_init(&plain, s->store);
	setup_variant(&plain, s->variant);
	for (unsigned k = 0; s->store->knobs[k].name; k++) {
		size_t used = strlen(buf);
		if (s->params.knob[k] == plain.params.knob[k])
			continue;
		setup_knob_value(s, k, value, sizeof(value));
		snprintf(buf + used, EVENT_TRACE_KNOBS - used, "%s%s=%s", used ? " " : "",
			 s->store->knobs[k].name, value);
	}
}

static void print_setup(const struct event_trace *st)
{
	const struct setup *s = &st->trace->setup;
	struct deviation_names names = {s->region, s->regions};
	char text[256], knobs[EVENT_TRACE_KNOBS];
	setup_hardware_print(s, true, text, sizeof(text));
	printf("%sstore%s     %s, variant %s\n", paint(BOLD), paint(PLAIN), s->store->name,
	       s->variant);
	event_trace_knobs(s, knobs);
	if (*knobs)
		printf("knobs     %s\n", knobs);
	for (unsigned i = 0; i < s->without.n; i++)
		printf("without   %s\n", s->without_name[i]);
	fputs("hardware  ", stdout);
	print_wrapped(10, text);
	if (s->w.keys) {
		fputs("loaded    ", stdout);
		workload_print_keys(&s->w, stdout);
		putchar('\n');
	}
	for (unsigned c = 1; c <= s->w.clients; c++) {
		printf("client %-2u ", c);
		workload_print_client(&s->w, c, stdout);
		putchar('\n');
	}
	section(st->trace->deviations.n ? "what goes differently from a plain run"
					: "nothing goes differently from a plain run");
	for (unsigned i = 0; i < st->trace->deviations.n; i++) {
		deviation_print(&st->trace->deviations.d[i], &names, text, sizeof(text));
		printf("  %s\n", text);
	}
}

static void print_cause(const struct cause *c)
{
	if (!c->sentence[0])
		return;
	section("why");
	for (unsigned i = 0; i < c->facts; i++) {
		fputs("  ", stdout);
		print_wrapped(2, c->fact[i]);
	}
	if (c->facts)
		putchar('\n');
	print_wrapped(0, c->sentence);
}

static void print_load(const struct event_trace *st)
{
	section("the load phase");
	for (size_t i = 0; i < st->record.events; i++)
		print_event(st, &st->record.event[i]);
	section("verdict");
	printf("%sthe store does not get through the load phase%s: ", paint(RED), paint(PLAIN));
	print_wrapped(0, st->load_why);
}

static void print_verdict(const struct event_trace *st)
{
	const struct replay_outcome *out = &st->outcome;
	int contract = st->trace->contract;
	section("verdict");
	for (int c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken && c != contract)
			printf("%sbroken %s: %s\n", contract < 0 ? "" : "also ",
			       contract_name((enum tm_contract)c), out->text[c]);
	if (contract >= 0 && out->verdict[contract].broken)
		printf("%sbroken %s%s: %s\n", paint(RED), contract_name((enum tm_contract)contract),
		       paint(PLAIN), out->text[contract]);
}

void event_trace_print(const struct event_trace *st)
{
	print_setup(st);
	if (st->load_why[0]) {
		print_load(st);
		return;
	}
	print_machines(st);
	print_verdict(st);
	print_cause(&st->cause);
}
