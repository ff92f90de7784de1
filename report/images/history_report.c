/* SPDX-License-Identifier: BSD-3-Clause */
/* See history_report.h. */
#include "report/images/history_report.h"
#include "report/text.h"
#include "report/tree.h"

#define FAULT_WORDS 300

/* The words of an operation or an answer; NULL: there is no answer. */
static const char *words_of(const struct announcements *a, uint32_t call)
{
	return call == NO_OP ? NULL : a->log->source[a->log->call[call].words];
}

/* In words: "LIN of the key x: ...", without the operations. */
static void fault_words(const struct announcements *a, const struct announced_fault *fault,
			char *out, size_t n)
{
	struct words key = a->key[fault->key].name;
	const char *contract = contract_name((enum tm_contract)fault->contract);
	if (fault->unsure)
		snprintf(out, n,
			 "could not tell %s of the key %.*s: too many of its operations were under "
			 "way at one time",
			 contract, (int)key.len, key.at);
	else if (fault->ops == 1)
		snprintf(out, n, "%s is broken on the key %.*s by one answer", contract,
			 (int)key.len, key.at);
	else if (fault->contract != TM_LIN)
		snprintf(out, n,
			 "%s is broken on the key %.*s by the answers of these %u operations",
			 contract, (int)key.len, key.at, fault->ops);
	else
		snprintf(out, n,
			 "%s is broken on the key %.*s: no order explains these %u operations",
			 contract, (int)key.len, key.at, fault->ops);
}

static json_t *operation_json(const struct announcements *a, const struct announcement *op)
{
	const struct pm_call *call = &a->log->call[op->call];
	const char *words = words_of(a, op->call), *answer = words_of(a, op->answer);
	return json_pack("{s:I, s:o, s:o, s:i, s:{s:o, s:o, s:i}}", "client",
			 (json_int_t)call->client, "operation", json_text(words), "answer",
			 answer ? json_text(answer) : json_null(), "line", (int)call->line, "shown",
			 "call", json_text(text_show(words).text), "answer",
			 json_text(answer ? text_show(answer).text : "no answer"), "line",
			 answer && call->line ? (int)a->log->call[op->answer].line : 0);
}

json_t *history_json(const struct announcements *a, const struct announced_fault *fault,
		     unsigned faults)
{
	json_t *all = json_array();
	for (; faults; fault++, faults--) {
		const struct words key = a->key[fault->key].name;
		json_t *ops = json_array();
		char words[FAULT_WORDS];
		for (unsigned i = 0; i < fault->ops; i++)
			json_array_append_new(ops, operation_json(a, &a->op[fault->op[i]]));
		fault_words(a, fault, words, sizeof(words));
		json_array_append_new(
			all, json_pack("{s:s, s:o, s:b, s:o, s:{s:o, s:o}}", "contract",
				       contract_name((enum tm_contract)fault->contract), "key",
				       json_stringn_nocheck(key.at, key.len), "could_not_tell",
				       fault->unsure, "operations", ops, "shown", "words",
				       json_text(words), "operations",
				       json_of(text_made(json_pack("{s:O}", "operations", ops),
							 "history_operations"))));
	}
	return all;
}
