/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark count: what an operation of a store costs. docs/count.md. */
#include "checker/models/count.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "report/models/count_report.h"

static const unsigned default_values[] = {16, 64, 256, 1024, 4096};
#define DEFAULTS (sizeof(default_values) / sizeof(default_values[0]))

static bool add_value(const struct option_row *row, void *into, const char *text)
{
	struct arguments *a = into;
	unsigned long long n;
	(void)row;
	if (!number_option("--value", text, COUNT_MIN_VLEN, TM_MAX_VALUE, &n))
		return false;
	if (a->values == MAX_VALUES) {
		fail(EXIT_USAGE, "--value: more than %d sizes; %s is too many", MAX_VALUES, text);
		return false;
	}
	a->value[a->values++] = (unsigned)n;
	return true;
}

static void show_values(const struct option_row *row, const void *into, char *text, size_t size)
{
	(void)row;
	(void)into;
	*text = '\0';
	for (unsigned i = 0; i < DEFAULTS; i++) {
		size_t len = strlen(text);
		snprintf(text + len, size - len, "%s%u", i ? ", " : "", default_values[i]);
	}
}

static const struct option_row rows[] = {
	{"value", "N", "bytes of the values (=); may be repeated", OPTION_CALL(add_value),
	 .show = show_values},
	{"key", "N", "bytes of the keys (=)", ARGUMENT(key), 1, TM_MAX_KEY},
	ROW_VARIANT,
	ROW_KNOB,
	{"advise", NULL,
	 "also how few round trips a PUT could take on this hardware (tidemark taxonomy --advise)",
	 ARGUMENT(advise)},
	{"profile", "FILE", "with --advise: what things cost, as for tidemark times (=)",
	 ARGUMENT(profile)},
	{"fields", NULL,
	 "also PM bytes by field, or by region if the store does not name its fields",
	 ARGUMENT(fields)},
	ROWS_RESULTS,
	OPTION_QUIET(struct arguments, leave_off.quiet),
	OPTION_END};

static const struct options options = {
	"count", "[STORE...] [OPTION...]",
	"Runs each kind of operation of a store by itself and prints what it costs: bytes written "
	"to PM, lines flushed, fences, round trips, messages, packets. docs/count.md explains the "
	"columns. Without a STORE: all; or those that have the variants and knobs that are named.",
	rows,
	"0, 1 an operation did not do what it should, 2 usage or bad input, 70 internal error"};

static int count_one(const struct count_report *r, const struct counted *one, unsigned v)
{
	const char *name = one->config->store->name;
	int error = count_run(&one->config->setup, r->key, r->value[v], &one->count[v]);
	if (error == -ENOMEM)
		return fail(EXIT_INTERNAL, "out of memory");
	if (error == -EFBIG)
		return fail(EXIT_USAGE,
			    "%s: values of %u bytes: the pool would be too large; expected smaller "
			    "ones",
			    name, r->value[v]);
	return error ? EXIT_BROKEN : 0;
}

/* One configuration, all sizes. */
static int count_config(const struct count_report *r, struct counted *one, bool quiet)
{
	int worst = 0;
	one->count = calloc(r->values, sizeof(*one->count));
	if (!one->count)
		return fail(EXIT_INTERNAL, "out of memory");
	for (unsigned v = 0; v < r->values && worst <= EXIT_BROKEN; v++) {
		if (!quiet)
			progress_line("%s, values of %u bytes", one->config->store->name,
				      r->value[v]);
		int status = count_one(r, one, v);
		worst = status > worst ? status : worst;
	}
	progress_line(NULL);
	return worst;
}

static int advise(const struct count_report *r, const struct counted *one, unsigned jobs)
{
	struct count_advice advice;
	int error = count_advise(&one->config->setup, jobs, &advice);
	if (error)
		return fail(EXIT_INTERNAL, "count: --advise: %s", driver_error(error));
	count_report_advice(r, one, &advice);
	return 0;
}

static int run_count(struct count_report *r, const struct campaign *c, const struct arguments *a)
{
	int worst = 0;
	r->configs = c->configs;
	r->counted = calloc(c->configs, sizeof(*r->counted));
	if (!r->counted)
		return fail(EXIT_INTERNAL, "out of memory");
	for (unsigned i = 0; i < c->configs; i++) {
		r->counted[i].config = &c->config[i];
		int status = count_config(r, &r->counted[i], a->leave_off.quiet);
		worst = status > worst ? status : worst;
		if (worst > EXIT_BROKEN)
			return worst;
		if (i)
			putchar('\n');
		count_report_config(r, &r->counted[i]);
		if (a->advise)
			status = advise(r, &r->counted[i], a->options.jobs);
		if (status > EXIT_BROKEN)
			return status;
	}
	int status = outputs_write(json_incref(r->tree), NULL);
	return status ? status : worst;
}

/* The lengths that each of the stores can hold; if that is none, the longest that they can. */
static unsigned fitting_values(const struct campaign *c, unsigned values[DEFAULTS])
{
	uint32_t longest = TM_MAX_VALUE;
	unsigned n = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		uint32_t limit = c->config[i].store->max_vlen;
		longest = limit && limit < longest ? limit : longest;
	}
	for (unsigned i = 0; i < DEFAULTS; i++)
		if (default_values[i] <= longest)
			values[n++] = default_values[i];
	if (!n)
		values[n++] = longest;
	return n;
}

int count_main(int argc, char **argv)
{
	struct arguments a = {.key = COUNT_KEY,
			      .one_config = true,
			      .all_stores = true,
			      .profile = "ef",
			      .options = campaign_default};
	struct campaign c = {0};
	int status = arguments_read(&options, &a, argc, argv);
	if (status >= 0)
		return status;
	status = arguments_configs(&a, &c);
	unsigned values[DEFAULTS], n = fitting_values(&c, values);
	struct count_report r = {
		.key = a.key,
		.value = a.values ? a.value : values,
		.values = a.values ? a.values : n,
		.fields = a.fields,
		.profile = a.profile,
		.where = where_new(),
		.tree = json_pack("{s:[], s:[]}", "operations", "without_need"),
	};
	a.options.jobs = arguments_jobs();
	if (!status)
		status = results_check();
	if (!status)
		status = profile_option(r.profile, &r.costs);
	if (!status)
		status = run_count(&r, &c, &a);
	for (unsigned i = 0; r.counted && i < r.configs; i++)
		free(r.counted[i].count);
	free(r.counted);
	json_decref(r.tree);
	where_free(r.where);
	campaign_free(&c);
	return status;
}
