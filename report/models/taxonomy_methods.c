/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods as a tree: the course of each between the parts of the two machines, from which
 * scripts/pictures draws it. */
#include <string.h>
#include "report/models/taxonomy_report.h"

/* Where the papers' table gives the method; of one that it never gives, where it is sound first. */
static unsigned column_of(const struct taxonomy_report *r, unsigned method)
{
	const struct taxonomy_knobs none = {NULL, 0};
	const struct append_method *rl = taxonomy_append(
		r->t, taxonomy_at(r->t, method, 0, TRANSPORT_IB));
	unsigned first = 0;
	for (unsigned c = TAXONOMY_COLUMNS; c-- > 0;)
		if (!taxonomy_at(r->t, method, c, TRANSPORT_IB)->result.verdict)
			first = c;
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		const char *gives = taxonomy_gives(r->table, rl->compound, method_primitive(rl), c,
						   TRANSPORT_IB, &none);
		if (gives && !strcmp(gives, rl->name))
			return c;
	}
	return first;
}

/* Who does an act that the program can see; "": it happens by itself. */
static const char *actor(const struct act *act)
{
	static const char *const by[] = {
		[ACT_POST] = "requester",	[ACT_COMPLETE] = "requester waits",
		[ACT_RESULT] = "its NIC waits", [ACT_RECEIVE] = "responder's CPU",
		[ACT_COPY] = "responder's CPU", [ACT_FLUSH] = "responder's CPU",
		[ACT_REPLY] = "responder's CPU"};
	return (size_t)act->kind < sizeof(by) / sizeof(by[0]) && by[act->kind] ? by[act->kind] : "";
}

json_t *taxonomy_acts_json(const struct acts *acts)
{
	static const char *const kinds[] = {"post",    "result", "complete", "land", "drain",
					    "receive", "copy",	 "flush",    "reply"};
	json_t *all = json_array();
	for (unsigned i = 0, step = 0; i < acts->n; i++) {
		const struct act *act = &acts->act[i];
		step += *actor(act) != '\0';
		json_array_append_new(
			all, json_pack("{s:s, s:i, s:i, s:b, s:s, s:s, s:i, s:b}", "kind",
				       kinds[act->kind], "from", (int)act->from, "to", (int)act->to,
				       "later", act->later, "text", act->text, "actor", actor(act),
				       "step", (int)step, "durable", i == acts->done));
	}
	return all;
}

static json_t *words_json(const struct taxonomy_report *r, unsigned method, unsigned transport)
{
	char words[200];
	struct acts acts;
	taxonomy_acts(r->t, taxonomy_at(r->t, method, 0, transport), &acts);
	method_print(&acts, words, sizeof(words));
	return json_string(words);
}

/* A method and its course on one hardware. */
static json_t *method_json(const struct taxonomy_report *r, unsigned method)
{
	static const char *const domains[] = {"dmp", "mhp", "wsp"};
	const struct taxonomy_cell *cell = taxonomy_at(r->t, method, column_of(r, method),
						       TRANSPORT_IB);
	const struct method_cost cost = taxonomy_cost(r->t, cell);
	struct hardware hw = hardware_default;
	struct acts acts;
	char words[200];
	json_t *parts = json_array();
	taxonomy_acts(r->t, cell, &acts);
	method_print(&acts, words, sizeof(words));
	taxonomy_hardware(&hw, cell->column, cell->transport);
	for (unsigned p = 0; p < PARTS; p++)
		json_array_append_new(parts,
				      json_pack("{s:s, s:b}", "name", part_name[p], "survives",
						part_survives((enum part)p, &hw)));
	return json_pack("{s:s, s:s, s:{s:o, s:o}, s:s, s:{s:s, s:s, s:s}, s:o, s:o, s:i, s:i, "
			 "s:i, s:i, s:i}",
			 "method", taxonomy_method(method), "kind",
			 taxonomy_append(r->t, cell)->compound ? "compound" : "singleton", "words",
			 "ib", words_json(r, method, TRANSPORT_IB), "iwarp",
			 words_json(r, method, TRANSPORT_IWARP), "title", words, "at", "domain",
			 domains[hw.domain - DOMAIN_DMP], "ddio", hw.ddio == DDIO_ON ? "on" : "off",
			 "rqwrb", hw.rqwrb_pm ? "pm" : "dram", "parts", parts, "acts",
			 taxonomy_acts_json(&acts), "done", (int)acts.done, "round_trips",
			 (int)cost.round_trips, "cpu_waited", (int)cost.cpu_waited, "cpu_later",
			 (int)cost.cpu_later, "messages", (int)cost.messages);
}

json_t *taxonomy_methods_json(const struct taxonomy_report *r)
{
	const bool known = r->request->all && !r->unmeasured && !r->request->options.knobs.knobs;
	json_t *all = json_array();
	for (unsigned m = 0; m < taxonomy_methods() && known; m++)
		json_array_append_new(all, method_json(r, m));
	return all;
}
