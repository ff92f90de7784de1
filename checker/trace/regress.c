/* SPDX-License-Identifier: BSD-3-Clause */
/* See regress.h. */
#include "checker/trace/regress.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/trace/replay.h"

static int compare(const struct trace *t, const struct replay_outcome *out, char *why, size_t n)
{
	if (replay_cannot_run(t->contract, &t->deviations, out)) {
		snprintf(why, n, "the store cannot run this workload: %s", out->text[TM_OK]);
		return 1;
	}
	if (out->unused && !out->only_lines_unused) {
		struct deviation_names names = {t->setup.region, t->setup.regions};
		char text[DEVIATION_TEXT];
		deviation_print(out->unused, &names, text, sizeof(text));
		snprintf(why, n, "line %u does not apply any more: %s", out->unused->line, text);
		return 1;
	}
	if (t->contract >= 0) {
		const char *name = contract_name((enum tm_contract)t->contract);
		snprintf(why, n, "%s is recorded as broken, and is not broken any more", name);
		return !out->verdict[t->contract].broken;
	}
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (!out->verdict[c].broken || !(t->setup.store->promises & TM_BIT(c)))
			continue;
		snprintf(why, n, "nothing is recorded as broken, but %s is: %s", contract_name(c),
			 out->text[c]);
		return 1;
	}
	return 0;
}

int regress(struct trace *t, char *why, size_t n)
{
	struct explorer *ex = malloc(sizeof(*ex));
	struct replay_outcome *out = malloc(sizeof(*out));
	int error = ex && out ? replay_begin(ex, &t->setup, t->contract, &t->deviations) : -ENOMEM;
	if (!error) {
		error = replay(ex, &t->deviations, t->contract == TM_KEEP, NULL, out);
		if (!error)
			error = compare(t, out, why, n);
		explore_close(ex);
	}
	if (error == 1) {
		size_t said = strlen(why);
		snprintf(why + said, n - said, "%s", trace_anew(t).text);
	}
	free(ex);
	free(out);
	return error;
}
