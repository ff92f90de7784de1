/* SPDX-License-Identifier: BSD-3-Clause */
/* See history_report.h. */
#include "report/images/history_report.h"
#include "core/text/text.h"

/* The words of an operation or an answer; NULL: there is no answer. */
static const char *words_of(const struct announcements *a, uint32_t call)
{
	return call == NO_OP ? NULL : a->log->source[a->log->call[call].words];
}

void history_print_operations(FILE *out, const struct announcements *a,
			      const struct announced_fault *fault, unsigned indent)
{
	for (unsigned i = 0; i < fault->ops; i++) {
		const struct announcement *op = &a->op[fault->op[i]];
		const struct pm_call *call = &a->log->call[op->call];
		const char *answer = words_of(a, op->answer);
		fprintf(out, "%*s", (int)indent, "");
		if (call->line)
			fprintf(out, "line %u: ", call->line);
		fprintf(out, "client %llu: %s -> ", (unsigned long long)call->client,
			text_show(words_of(a, op->call)).text);
		fputs(answer ? text_show(answer).text : "no answer", out);
		if (answer && call->line)
			fprintf(out, " (line %u)", a->log->call[op->answer].line);
		putc('\n', out);
	}
}

void history_fault_words(const struct announcements *a, const struct announced_fault *fault,
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

json_t *history_json(const struct announcements *a, const struct announced_fault *fault,
		     unsigned faults)
{
	json_t *all = json_array();
	for (unsigned f = 0; f < faults; f++) {
		json_t *ops = json_array();
		for (unsigned i = 0; i < fault[f].ops; i++) {
			const struct announcement *op = &a->op[fault[f].op[i]];
			const struct pm_call *call = &a->log->call[op->call];
			json_array_append_new(ops, json_pack("{s:I, s:s, s:s?, s:i}", "client",
							     (json_int_t)call->client, "operation",
							     words_of(a, op->call), "answer",
							     words_of(a, op->answer), "line",
							     (int)call->line));
		}
		json_array_append_new(
			all, json_pack("{s:s, s:s%, s:b, s:o}", "contract",
				       contract_name((enum tm_contract)fault[f].contract), "key",
				       a->key[fault[f].key].name.at, a->key[fault[f].key].name.len,
				       "could_not_tell", fault[f].unsure, "operations", ops));
	}
	return all;
}
