/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark taxonomy --advise: for one kind of hardware, which method to take. Methods were
 * measured there, the cheapest first, until one was sound; that one is told with its steps and
 * what they cost, and of those that would be cheaper, the dearest with the trace of what goes
 * wrong.
 */
#include "report/models/taxonomy_report.h"

static json_t *choice_json(const struct taxonomy_report *r, const char *title, bool compound,
			   enum taxonomy_primitive primitive)
{
	const struct taxonomy_cell *any = &r->t->cell[0], *cheaper;
	const struct taxonomy_cell *best = taxonomy_cheapest(r->t, compound, primitive, any->column,
							     any->transport, &cheaper);
	char text[200];
	struct acts acts;
	json_t *all = json_pack("{s:s}", "title", title);
	if (!best)
		return all;
	taxonomy_acts(r->t, best, &acts);
	const struct method_cost cost = method_cost(&acts);
	method_print(&acts, text, sizeof(text));
	json_object_set_new(all, "best",
			    json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:o}", "method",
				      taxonomy_method(best->method), "words", text, "round_trips",
				      (int)cost.round_trips, "cpu_waited", (int)cost.cpu_waited,
				      "cpu_later", (int)cost.cpu_later, "messages",
				      (int)cost.messages, "bytes", (int)cost.bytes, "steps",
				      taxonomy_acts_json(&acts)));
	if (cheaper)
		json_object_set_new(all, "cheaper",
				    json_pack("{s:s, s:s, s:o}", "method",
					      taxonomy_method(cheaper->method), "verdict",
					      taxonomy_word(cheaper->result.verdict), "breaks",
					      taxonomy_breaks_json(r, cheaper)));
	return all;
}

static json_t *kind_json(const struct taxonomy_report *r, bool compound)
{
	return json_pack("{s:b, s:o, s:[o, o, o, o]}", "compound", compound, "cheapest",
			 choice_json(r, "cheapest", compound, TAXONOMY_PRIMITIVES), "by_primitive",
			 choice_json(r, "Write", compound, TAXONOMY_WRITE),
			 choice_json(r, "WriteImm", compound, TAXONOMY_WRITEIMM),
			 choice_json(r, "Send", compound, TAXONOMY_SEND),
			 choice_json(r, "Commit", compound, TAXONOMY_COMMIT));
}

json_t *taxonomy_advice(const struct taxonomy_report *r)
{
	const struct workload *w = r->t->options.workload;
	unsigned count[TAXONOMY_NOT_COMPARED + 1];
	char config[TAXONOMY_CONFIG];
	taxonomy_config(r->t, r->t->cell[0].column, r->t->cell[0].transport, config,
			sizeof(config));
	taxonomy_count(r, count);
	return json_pack(
		"{s:s, s:[o, o], s:i, s:s, s:i, s:i, s:i, s:o}", "config", config, "kinds",
		kind_json(r, false), kind_json(r, true), "value", (int)workload_max_vlen(w),
		"workload", w->name, "preemptions", (int)r->t->options.preemptions, "equal",
		(int)count[TAXONOMY_EQUAL], "compared",
		(int)(count[TAXONOMY_EQUAL] + count[TAXONOMY_DIFFERS] + count[TAXONOMY_UNSURE]),
		"table", json_text(r->request->table_name));
}
