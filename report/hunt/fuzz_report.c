/* SPDX-License-Identifier: BSD-3-Clause */
/* See hunt_report.h. */
#include "core/clock.h"
#include "report/hunt/hunt_report.h"
#include <inttypes.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "report/terminal.h"
#include "report/text.h"
#include "scenarios/stores.h"

/* A cause in words: "a; b; c". */
static void parts_words(const struct fingerprint *c, char *buf, size_t n)
{
	snprintf(buf, n, "%s", c->cleans ? "a log is cleaned" : "");
	for (unsigned i = 0; i < c->parts; i++) {
		size_t len = strlen(buf);
		snprintf(buf + len, n - len, "%s%s", len ? "; " : "", c->part[i]);
	}
}

static unsigned count_again(const struct fuzz_turn *t)
{
	unsigned n = 0;
	for (unsigned i = 0; i < t->session->knowns; i++)
		n += t->session->known[i].again && !t->session->known[i].is_new;
	return n;
}

static json_t *known_json(const struct fuzz_known *k)
{
	char parts[FINGERPRINT_PARTS * FINGERPRINT_PART];
	parts_words(&k->fingerprint, parts, sizeof(parts));
	return json_pack("{s:s, s:b, s:b, s:s, s:s, s:o, s:i, s:i}", "contract",
			 contract_name(k->fingerprint.contract), "new", k->is_new, "accepted",
			 k->accepted, "how", k->text, "fingerprint", parts, "trace",
			 json_text(k->trace), "operations", (int)k->operations, "deviations",
			 (int)k->deviations);
}

/* Keep a turn, and print it. */
static void keep_turn(struct fuzz_report *r, const struct fuzz_turn *t)
{
	const struct fuzz_session *s = t->session;
	const struct fuzz *f = &t->fuzz;
	json_t *failures = json_array(), *skipped = json_array(), *expected = json_array();
	char name[2 * CAMPAIGN_NAME];
	config_name(t->config, name, sizeof(name));
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (t->skipped[c])
			json_array_append_new(skipped,
					      json_pack("{s:s, s:i}", "contract", contract_name(c),
							"cases", (int)t->skipped[c]));
		if (f->broken[c] && !(f->options.wanted & TM_BIT(c)))
			json_array_append_new(expected, json_string(contract_name(c)));
	}
	for (unsigned i = 0; i < s->knowns; i++)
		if (fuzz_turn_met(t, i))
			json_array_append_new(failures, known_json(&s->known[i]));
	json_t *all = json_pack(
		"{s:{s:s}, s:o, s:o, s:i, s:i, s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:f, s:o}",
		"shown", "name", name, "not_looked_at", skipped, "expected", expected, "fresh",
		(int)t->fresh, "again", (int)count_again(t), "store", t->config->store->name,
		"variant", t->config->variant, "config", t->config->name, "runs",
		(json_int_t)f->counts.runs, "states", (json_int_t)f->counts.states, "corpus",
		(int)f->inputs, "features", (json_int_t)f->features, "seconds",
		clock_seconds() - t->start, "failures", failures);
	text_print(all, "fuzz_turn");
	json_array_append_new(json_object_get(r->tree, "stores"), all);
}

static void keep_cases(struct fuzz_report *r, const struct fuzz_turn *t)
{
	const struct fuzz_session *s = t->session;
	char suite[2 * CAMPAIGN_NAME];
	config_name(t->config, suite, sizeof(suite));
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct fuzz_known *k = NULL;
		if (!(store_judged(t->config->store) & TM_BIT(c)))
			continue;
		for (unsigned i = 0; i < s->knowns && !k; i++)
			if (s->known[i].fingerprint.contract == c && !s->known[i].accepted &&
			    fuzz_turn_met(t, i))
				k = &s->known[i];
		if (!(t->unaccepted & TM_BIT(c)) || !k)
			tree_case(r->tree, CASE_PASSED, suite, contract_name(c), NULL);
		else
			tree_case(r->tree, CASE_FAILED, suite, contract_name(c), "%s\n%s replay %s",
				  k->text, program,
				  k->trace ? k->trace : "(no trace was asked for)");
	}
}

static json_t *tree_of(struct fuzz_report *r)
{
	if (!r->tree)
		r->tree = json_pack("{s:[]}", "stores");
	return r->tree;
}

void fuzz_report_turn(struct fuzz_report *r, const struct fuzz_turn *t)
{
	tree_of(r);
	keep_cases(r, t);
	keep_turn(r, t);
	r->seconds += clock_seconds() - t->start;
}

static json_t *reruns_json(const struct fuzz_session *s)
{
	json_t *traces = json_array();
	for (unsigned i = 0; i < s->reruns; i++) {
		const struct fuzz_rerun *r = &s->rerun[i];
		json_array_append_new(
			traces,
			json_pack("{s:o, s:s, s:b, s:s}", "trace", json_text(r->trace), "contract",
				  r->contract < 0 ? "none" : contract_name((unsigned)r->contract),
				  "as_recorded", !r->why[0], "how", r->why));
	}
	return traces;
}

void fuzz_report_reruns(const struct fuzz_session *s, const char *dir)
{
	json_t *all = json_pack("{s:o, s:i, s:i, s:o}", "dir", json_text(dir), "reruns",
				(int)s->reruns, "failures", (int)s->rerun_failures, "regressions",
				reruns_json(s));
	if (s->reruns)
		text_print(all, "fuzz_reruns");
	json_decref(all);
}

void fuzz_conclude(struct fuzz_report *r, bool failed, bool interrupted)
{
	if (failed)
		conclude(&r->conclusion, EXIT_BROKEN,
			 "Something broke unexpectedly, or a trace has another verdict than it "
			 "records.");
	else
		conclude(&r->conclusion, EXIT_HELD, "Nothing broke unexpectedly.");
	if (interrupted)
		conclusion_add(&r->conclusion, " It was interrupted.");
}

json_t *fuzz_tree(struct fuzz_report *r, uint64_t seed, bool interrupted)
{
	json_t *all = tree_of(r);
	r->tree = NULL;
	json_object_set_new(all, "regressions", reruns_json(r->session));
	json_object_set_new(all, "seed", json_integer((json_int_t)seed));
	json_object_set_new(all, "interrupted", json_boolean(interrupted));
	json_object_set_new(all, "seconds", json_real(r->seconds));
	for (unsigned i = 0; i < r->session->reruns; i++) {
		const struct fuzz_rerun *rerun = &r->session->rerun[i];
		tree_case(all, rerun->why[0] ? CASE_FAILED : CASE_PASSED, "regressions",
			  rerun->trace, rerun->why[0] ? "%s\n%s replay %s" : NULL, rerun->why,
			  program, rerun->trace);
	}
	return all;
}
