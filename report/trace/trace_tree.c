/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replay as a tree of results (report/tree.h): what was run, what went differently, what broke
 * and why, each event with what it did to which bytes, the lines in flight at each power failure,
 * the lines of source around the cause, and the trace itself. trace.js makes a chart of it; the
 * text has the same events, folded as is asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/text/text.h"
#include "report/trace/event_fold.h"
#include "report/trace/event_trace.h"
#include "report/page/source.h"
#include "report/terminal.h"
#include "report/text.h"
#include "report/tree.h"

#define CHARTED_LOADS 300 /* a store that polls would fill the chart with nothing else */

static const char *const kinds[TRACED_KINDS] = {
	[TRACED_WORDS] = "words",	[TRACED_CALL] = "call",	    [TRACED_RETURN] = "return",
	[TRACED_STORE] = "store",	[TRACED_LOAD] = "load",	    [TRACED_FLUSH] = "flush",
	[TRACED_FENCE] = "fence",	[TRACED_LAND] = "land",	    [TRACED_FETCH] = "fetch",
	[TRACED_SURVIVED] = "survived", [TRACED_POST] = "post",	    [TRACED_CHECK] = "check",
	[TRACED_REFUSED] = "refused",	[TRACED_FAILED] = "failed", [TRACED_EFFECT] = "effect",
	[TRACED_DRAIN] = "drain",
};

/* --- what was run, and what came of it --- */

static void add_row(json_t *rows, const char *name, json_t *text)
{
	json_array_append_new(rows, json_pack("[s, o]", name, text));
}

/* "bug=get_no_crc grace=none": the knobs that the variant alone does not explain. */
static void print_knobs(FILE *out, const struct setup *s)
{
	struct setup plain;
	char value[64];
	bool any = false;
	setup_init(&plain, s->store);
	setup_variant(&plain, s->variant);
	for (unsigned k = 0; s->store->knobs[k].name; k++) {
		if (s->params.knob[k] == plain.params.knob[k])
			continue;
		setup_knob_value(s, k, value, sizeof(value));
		fprintf(out, "%s%s=%s", any ? " " : "", s->store->knobs[k].name, value);
		any = true;
	}
}

static json_t *setup_json(const struct event_trace *st)
{
	const struct setup *s = &st->trace->setup;
	char text[256], name[32];
	json_t *rows = json_array(), *knobs = JSON_PRINTED(out, print_knobs(out, s));
	add_row(rows, "store", json_sprintf("%s, variant %s", s->store->name, s->variant));
	if (json_string_length(knobs))
		add_row(rows, "knobs", json_incref(knobs));
	json_decref(knobs);
	for (unsigned i = 0; i < s->without.n; i++)
		add_row(rows, "without", json_text(s->without_name[i]));
	setup_hardware_print(s, true, text, sizeof(text));
	add_row(rows, "hardware", json_text(text));
	if (s->w.keys)
		add_row(rows, "loaded", JSON_PRINTED(out, workload_print_keys(&s->w, out)));
	for (unsigned c = 1; c <= s->w.clients; c++) {
		snprintf(name, sizeof(name), "client %u", c);
		add_row(rows, name, JSON_PRINTED(out, workload_print_client(&s->w, c, out)));
	}
	add_row(rows, "trace", json_text(st->name));
	add_row(rows, "replay",
		JSON_PRINTED(out, fputs("tidemark replay ", out), write_word(out, st->name)));
	return rows;
}

static json_t *deviations_json(const struct trace *t)
{
	const struct deviation_names names = {t->setup.region, t->setup.regions};
	char text[DEVIATION_TEXT];
	json_t *all = json_array();
	for (unsigned i = 0; i < t->deviations.n; i++) {
		deviation_print(&t->deviations.d[i], &names, text, sizeof(text));
		json_array_append_new(all, json_text(text));
	}
	return all;
}

/* The contracts that broke, and the one that the trace names. */
static json_t *contracts_json(const struct event_trace *st)
{
	json_t *all = json_array();
	for (int k = 0; k < TM_CONTRACTS; k++) {
		const bool broken = st->outcome.verdict[k].broken;
		if (!broken && k != st->trace->contract)
			continue;
		json_array_append_new(all,
				      json_pack("{s:s, s:s, s:b, s:b, s:o*}", "name",
						contract_name((enum tm_contract)k), "what",
						contract_what((enum tm_contract)k), "named",
						k == st->trace->contract, "broken", broken, "how",
						broken ? json_text(st->outcome.text[k]) : NULL));
	}
	return all;
}

static json_t *trace_json(const struct trace *t)
{
	return JSON_PRINTED(out,
			    trace_write(out, &t->setup, &t->deviations, t->contract, t->verdict));
}

/* --- events --- */

/* As in the text of the event trace, and what has no words there but belongs to the cause. */
static bool is_told(const void *events, size_t i)
{
	const struct event_trace *st = events;
	return *event_log_text(&st->record, &st->record.event[i]) || event_is_cause(st, i);
}

static bool is_kept(const struct event_trace *st, size_t i)
{
	const unsigned kind = st->record.event[i].kind;
	return is_told(st, i) ||
	       (kind != TRACED_CHECK && (kind != TRACED_LOAD || st->record.loads <= CHARTED_LOADS));
}

/* What an event without words of its own did. */
static void words_of(const struct event_trace *st, const struct logged_event *e, char *buf,
		     size_t n)
{
	const struct setup *s = &st->trace->setup;
	char name[64];
	if (e->kind == TRACED_CHECK) {
		snprintf(buf, n, "a check %s", e->holds ? "holds" : "does not hold");
		return;
	}
	pmem_name(s->region, s->regions, e->off, name, sizeof(name));
	snprintf(buf, n, "loads %llu byte%s at %s", (unsigned long long)e->len, plural(e->len),
		 name);
}

/* A string, or nothing where it is empty. */
static json_t *some(const char *text)
{
	return *text ? json_text(text) : NULL;
}

static json_t *source_of(const struct event_trace *st, uintptr_t pc)
{
	char line[160];
	where_print(st->where, pc, line, sizeof(line));
	return some(line);
}

/* The operation that it belongs to: "c1.put1#2", or "". */
static void label_of(const struct logged_event *e, char label[40])
{
	label[0] = '\0';
	if (e->op.kind)
		op_label_print(e->op, e->occurrence, label, 40);
}

static json_t *event_json(const struct event_trace *st, size_t i)
{
	const struct logged_event *e = &st->record.event[i];
	const char *text = event_log_text(&st->record, e);
	char label[40], words[160];
	label_of(e, label);
	words_of(st, e, words, sizeof(words));
	json_t *all = json_pack("{s:I, s:I, s:i, s:s, s:o*, s:o*, s:o, s:o*}", "n", (json_int_t)i,
				"at_ns", (json_int_t)e->at, "machine", (int)e->machine, "kind",
				kinds[e->kind], "who", some(event_log_actor(&st->record, e)), "for",
				some(label), "what", json_text(*text ? text : words), "source",
				source_of(st, e->pc));
	if (e->len) {
		json_object_set_new(all, "off", json_integer((json_int_t)e->off));
		json_object_set_new(all, "bytes", json_integer((json_int_t)e->len));
	}
	if (e->message)
		json_object_set_new(all, "message", json_integer((json_int_t)e->message));
	if (event_is_cause(st, i))
		json_object_set_new(all, "cause", json_true());
	if (!*text)
		json_object_set_new(all, "quiet", json_true());
	return all;
}

static json_t *events_json(const struct event_trace *st)
{
	json_t *all = json_array();
	for (size_t i = 0; i < st->record.events; i++)
		if (is_kept(st, i))
			json_array_append_new(all, event_json(st, i));
	return all;
}

static json_t *takings_json(const struct event_log *r)
{
	json_t *all = json_array();
	for (size_t i = 0; i < r->takings; i++) {
		const struct logged_taking *t = &r->taking[i];
		json_array_append_new(
			all,
			json_pack("{s:I, s:i, s:b, s:s, s:I, s:I}", "at_ns", (json_int_t)t->at,
				  "machine", (int)t->machine, "received", t->received, "who",
				  t->actor == EVENT_LOG_NONE ? "" : r->actor[t->actor], "message",
				  (json_int_t)t->message, "before", (json_int_t)t->before));
	}
	return all;
}

/* --- the list: what one copy or message did is told in one line, which unfolds --- */

static json_t *item_json(size_t first, size_t last, const char *words, size_t repeats)
{
	return json_pack("{s:I, s:I, s:o*, s:I}", "first", (json_int_t)first, "last",
			 (json_int_t)last, "what", words ? json_text(words) : NULL, "repeats",
			 (json_int_t)repeats);
}

/* Are there words for it that were asked for? */
static bool is_printed(const void *events, size_t event)
{
	const struct event_trace *st = events;
	const struct logged_event *e = &st->record.event[event];
	bool detail = e->kind == TRACED_STORE || e->kind == TRACED_FLUSH ||
		      e->kind == TRACED_FENCE || e->kind == TRACED_FETCH || e->kind == TRACED_POST;
	return *event_log_text(&st->record, e) && !(st->brief && detail);
}

static json_t *printed_json(const struct event_trace *st, size_t event, const char *words)
{
	const struct logged_event *e = &st->record.event[event];
	char label[40], line[160];
	label_of(e, label);
	where_print(st->where, e->pc, line, sizeof(line));
	return json_pack("{s:f, s:o, s:s, s:o, s:o}", "us", (double)e->at / 1000.0, "who",
			 json_text(event_log_actor(&st->record, e)), "for", label, "what",
			 json_text(words ? words : event_log_text(&st->record, e)), "source",
			 json_text(line));
}

/* The items of one machine, for a page or for the text; NULL without memory. */
static json_t *list_json(const struct event_trace *st, unsigned m, bool printed)
{
	struct event_item *items = NULL;
	const ptrdiff_t n = event_fold(st, m, printed ? is_printed : is_told, st, &items);
	json_t *list = n < 0 ? NULL : json_array();
	char text[300];
	for (ptrdiff_t k = 0; k < n;) {
		const struct event_item *item = &items[k];
		const size_t all = (size_t)item->length * item->rounds;
		for (unsigned i = 0; i < item->length; i++) {
			const char *words = item[i].pieces > 1 ? text : NULL;
			event_item_words(st, &item[i], text, sizeof(text));
			json_array_append_new(
				list, printed ? printed_json(st, item[i].first, words)
					      : item_json(item[i].first, item[i].last, words, 0));
		}
		if (item->rounds > 1) {
			event_rounds_words(&st->record, item, text, sizeof(text));
			json_array_append_new(list, printed ? json_pack("{s:s}", "again", text)
							    : item_json(item[item->length].first,
									item[all - 1].last, text,
									all - item->length));
		}
		k += (ptrdiff_t)all;
	}
	free(items);
	return list;
}

static json_t *machines_json(const struct event_trace *st)
{
	json_t *all = json_array();
	for (unsigned m = 0; m < st->record.machines; m++)
		json_array_append_new(all, list_json(st, m, false));
	return all;
}

/* --- lines in flight --- */

static json_t *version_json(const struct event_trace *st, const struct logged_line *l, unsigned v)
{
	const struct event_log *r = &st->record;
	const struct logged_version *version = &r->version[l->first_version + v - 1];
	const struct pmem_version *how = &version->how;
	char label[40];
	op_label_print(how->op, how->occurrence, label, sizeof(label));
	return json_pack("{s:s, s:s, s:i, s:i, s:o*}", "by",
			 how->nic			    ? "the NIC"
			 : version->actor != EVENT_LOG_NONE ? r->actor[version->actor]
							    : "?",
			 "for", label, "off", (int)how->off, "bytes", (int)how->len, "source",
			 source_of(st, how->pc));
}

static json_t *line_json(const struct event_trace *st, const struct logged_line *l)
{
	const struct setup *s = &st->trace->setup;
	json_t *versions = json_array();
	char name[80], answer[PMEM_ANSWER_TEXT];
	for (unsigned v = 1; v <= l->versions; v++)
		json_array_append_new(versions, version_json(st, l, v));
	pmem_name(s->region, s->regions, (uint64_t)l->line * LINE, name, sizeof(name));
	pmem_answer_print(l->versions, l->answer, answer, sizeof(answer));
	return json_pack("{s:i, s:I, s:s, s:s, s:s, s:o}", "machine", (int)l->machine, "line",
			 (json_int_t)l->line, "name", name, "fate",
			 pmem_answer_split(l->versions, l->answer).words ? "torn"
			 : l->answer					 ? "lost"
									 : "kept",
			 "survived", answer, "versions", versions);
}

/* Has one copy or message made them all? */
static bool is_one_copy(const struct event_trace *st, const struct logged_line *l)
{
	for (unsigned v = 2; v <= l->versions; v++)
		if (!event_versions_alike(st, l, 1, l, v))
			return false;
	return true;
}

/* Groups of lines of which the same is told; `by`: there is one row for them. */
static json_t *lines_json(const struct event_trace *st)
{
	const struct event_log *r = &st->record;
	const struct setup *s = &st->trace->setup;
	json_t *all = json_array();
	char name[80];
	for (unsigned i = 0, n; i < r->lines; i += n) {
		const struct logged_line *l = &r->line[i];
		const bool one = is_one_copy(st, l);
		json_t *lines = json_array();
		n = one ? event_lines_alike(st, i) : 1;
		for (unsigned k = i; k < i + n; k++)
			json_array_append_new(lines, line_json(st, &r->line[k]));
		pmem_name_range(s->region, s->regions, (uint64_t)l->line * LINE, (uint64_t)n * LINE,
				name, sizeof(name));
		json_array_append_new(all,
				      json_pack("{s:s, s:s*, s:o}", "name", name, "by",
						!one || n * l->versions == 1	       ? NULL
						: r->version[l->first_version].how.nic ? "message"
										       : "copy",
						"lines", lines));
	}
	return all;
}

static json_t *regions_json(const struct setup *s)
{
	json_t *all = json_array();
	for (unsigned i = 0; i < s->regions; i++)
		json_array_append_new(all, json_pack("{s:s, s:I, s:I}", "name", s->region[i].name,
						     "off", (json_int_t)s->region[i].off, "bytes",
						     (json_int_t)s->region[i].len));
	return all;
}

/* --- for the text --- */

/* Versions that one copy has made are one. */
static json_t *copies_json(const struct event_trace *st, const struct logged_line *l)
{
	json_t *all = json_array();
	for (unsigned v = 1, w; v <= l->versions; v = w + 1) {
		int bytes = 0;
		for (w = v; w < l->versions && event_versions_alike(st, l, v, l, w + 1); w++)
			;
		for (unsigned k = v; k <= w; k++)
			bytes += (int)st->record.version[l->first_version + k - 1].how.len;
		json_t *one = version_json(st, l, v);
		json_object_update_new(one, json_pack("{s:i, s:i, s:i}", "bytes", bytes, "first",
						      (int)v, "last", w > v ? (int)w : 0));
		json_array_append_new(all, one);
	}
	return all;
}

/* The lines in flight when the power of this machine failed. Those of which the same is told are
 * one. */
static json_t *failed_json(const struct event_trace *st, unsigned machine)
{
	const struct setup *s = &st->trace->setup;
	const struct event_log *r = &st->record;
	json_t *all = json_array();
	char name[80];
	for (unsigned i = 0, n; i < r->lines; i += n) {
		const struct logged_line *l = &r->line[i];
		n = event_lines_alike(st, i);
		if (l->machine != machine)
			continue;
		json_t *one = line_json(st, l);
		pmem_name_range(s->region, s->regions, (uint64_t)l->line * LINE, (uint64_t)n * LINE,
				name, sizeof(name));
		if (n > 1)
			json_object_set_new(one, "name", json_string(name));
		json_object_update_new(one, json_pack("{s:o, s:b, s:b, s:b}", "versions",
						      copies_json(st, l), "many", n > 1, "lost",
						      l->answer != 0, "untouched",
						      l->touched == EVENT_LOG_NONE));
		json_array_append_new(all, one);
	}
	return all;
}

/* --- all together --- */

/* What is told in any case. */
static json_t *beginning(const struct event_trace *st)
{
	const struct trace *t = st->trace;
	json_t *facts = json_array();
	for (unsigned i = 0; i < st->cause.facts; i++)
		json_array_append_new(facts, json_text(st->cause.fact[i]));
	return json_pack("{s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "replayed",
			 json_text(st->name), "store", t->setup.store->name, "variant",
			 t->setup.variant, "contract",
			 t->contract < 0 ? "" : contract_name((enum tm_contract)t->contract),
			 "contracts", contracts_json(st), "why", json_text(st->cause.sentence),
			 "facts", facts, "setup", setup_json(st), "deviations", deviations_json(t));
}

void event_trace_print(const struct event_trace *st)
{
	json_t *all = beginning(st), *machines = json_array();
	for (unsigned m = 0; m < st->record.machines; m++)
		json_array_append_new(machines, json_pack("{s:b, s:b, s:o, s:o}", "later", m > 0,
							  "latest", m > 1, "lines",
							  m ? failed_json(st, m - 1) : json_array(),
							  "items", list_json(st, m, true)));
	json_object_update_new(all, json_pack("{s:o, s:o}", "machines", machines, "load_why",
					      json_text(st->load_why)));
	text_print(all, "replay");
	json_decref(all);
}

json_t *event_trace_tree(const struct event_trace *st)
{
	json_t *all = beginning(st);
	json_object_update_new(all,
			       json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "regions",
					 regions_json(&st->trace->setup), "events", events_json(st),
					 "takings", takings_json(&st->record), "list",
					 machines_json(st), "lines", lines_json(st), "sources",
					 trace_sources(st), "trace", trace_json(st->trace)));
	return all;
}
