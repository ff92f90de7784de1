/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event trace of a replay: what was asked of the store, then event by event which actor did
 * what, at each power failure the lines in flight with their versions and what
 * survived of each, recovery, what its readers found, the rule that broke, and why.
 */
#include "report/trace/event_trace.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "report/trace/event_fold.h"
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

/* Are there words for it that were asked for? */
static bool is_told(const void *events, size_t event)
{
	const struct event_trace *st = events;
	const struct logged_event *e = &st->record.event[event];
	bool detail = e->kind == TRACED_STORE || e->kind == TRACED_FLUSH ||
		      e->kind == TRACED_FENCE || e->kind == TRACED_FETCH || e->kind == TRACED_POST;
	return *event_log_text(&st->record, e) && !(st->brief && detail);
}

static void print_item(const struct event_trace *st, const struct event_item *item)
{
	const struct logged_event *e = &st->record.event[item->first];
	const char *text = event_log_text(&st->record, e);
	char label[40], line[160], words[300];
	if (item->pieces > 1) {
		event_item_words(st, item, words, sizeof(words));
		text = words;
	}
	event_trace_label(e, label, sizeof(label));
	where_print(st->where, e->pc, line, sizeof(line));
	printf("%10.3f us  %-15s %-9s ", (double)e->at / 1000.0, event_log_actor(&st->record, e),
	       label);
	if (line[0])
		printf("%-56s  %s\n", text, line);
	else
		puts(text);
}

static void print_events(const struct event_trace *st, unsigned machine)
{
	struct event_item *item;
	char words[120];
	ptrdiff_t items = event_fold(st, machine, is_told, st, &item);
	if (items < 0)
		puts("no memory to tell the events");
	for (ptrdiff_t k = 0; k < items; k += (ptrdiff_t)item[k].length * item[k].rounds) {
		for (unsigned i = 0; i < item[k].length; i++)
			print_item(st, &item[k + i]);
		if (item[k].rounds == 1)
			continue;
		event_rounds_words(&st->record, &item[k], words, sizeof(words));
		printf("%10s     ... %s\n", "", words);
	}
	free(item);
}

void event_trace_survived(const struct logged_line *l, char *buf, size_t n)
{
	pmem_answer_print(l->versions, l->answer, buf, n);
}

/* Versions v to w, which one copy has made. */
static void print_versions(const struct event_trace *st, const struct logged_line *l, unsigned v,
			   unsigned w)
{
	const struct logged_version *version = &st->record.version[l->first_version + v - 1];
	const struct pmem_version *how = &version->how;
	char label[40], line[160], upto[24] = "";
	unsigned len = 0;
	for (unsigned k = v; k <= w; k++)
		len += st->record.version[l->first_version + k - 1].how.len;
	if (w > v)
		snprintf(upto, sizeof(upto), " to %u", w);
	op_label_print(how->op, how->occurrence, label, sizeof(label));
	where_print(st->where, how->pc, line, sizeof(line));
	printf("  %16s version%s %u%s: %u byte%s %s +0x%02x by %s for %s%s%s\n", "",
	       w > v ? "s" : "", v, upto, len, plural(len), w > v ? "from" : "at", how->off,
	       how->nic				  ? "the NIC"
	       : version->actor != EVENT_LOG_NONE ? st->record.actor[version->actor]
						  : "?",
	       label, line[0] ? "  " : "", line);
}

/* Line l and those after it of which all that is told is the same. */
static void print_lines(const struct event_trace *st, const struct logged_line *l, unsigned n)
{
	const struct setup *s = &st->trace->setup;
	char name[80], answer[PMEM_ANSWER_TEXT];
	event_trace_survived(l, answer, sizeof(answer));
	if (n > 1)
		pmem_name_range(s->region, s->regions, (uint64_t)l->line * LINE, (uint64_t)n * LINE,
				name, sizeof(name));
	else
		pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, name, sizeof(name));
	printf("  %-16s %ssurvived as %s%s%s%s\n", name, n > 1 ? "each line " : "",
	       paint(l->answer ? RED : ""), answer, paint(l->answer ? PLAIN : ""),
	       l->touched == EVENT_LOG_NONE ? "   (nobody looks at it)" : "");
	for (unsigned v = 1, w; v <= l->versions; v = w + 1) {
		for (w = v; w < l->versions && event_versions_alike(st, l, v, l, w + 1); w++)
			;
		print_versions(st, l, v, w);
	}
}

/* The power failure of a machine. */
static void print_flight(const struct event_trace *st, unsigned machine)
{
	const struct event_log *r = &st->record;
	unsigned n = 0;
	section(machine ? "the power fails again, in recovery or after it" : "the power fails");
	for (unsigned i = 0, alike; i < r->lines; i += alike) {
		alike = event_lines_alike(st, i);
		if (r->line[i].machine != machine)
			continue;
		if (!n++)
			puts("lines in flight (visible, not certainly durable), and their "
			     "versions:");
		print_lines(st, &r->line[i], alike);
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
		print_events(st, m);
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
	print_events(st, 0);
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
	} else {
		print_machines(st);
		print_verdict(st);
	}
	print_cause(&st->cause);
}
