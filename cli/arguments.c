/* SPDX-License-Identifier: BSD-3-Clause */
/* Do the stores, variants, knobs and workloads exist that the command line names? */
#include "cli/arguments.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "report/rows/causes.h"
#include "scenarios/stores.h"

/* --- reading --- */

/* -1, or the status after a message. */
static int check_bounds(struct arguments *a)
{
	struct campaign_options *o = &a->options;
	bool given = a->preemptions_given || a->faults_given;
	if (!o->exhaustive)
		return given ? fail(EXIT_USAGE,
				    "--preemptions and --faults: expected --exhaustive, too")
			     : -1;
	if (o->doublecheck)
		return fail(EXIT_USAGE,
			    "--doublecheck compares random schedules; expected no --exhaustive");
	if (o->preemptions + o->faults > SYSTEMATIC_BOUND)
		return fail(EXIT_USAGE, "--preemptions and --faults: expected at most %d together",
			    SYSTEMATIC_BOUND);
	const uint64_t runs = o->runs, states = o->states;
	campaign_search_all(o);
	if (a->runs_given)
		o->runs = runs;
	if (a->states_given)
		o->states = states;
	return -1;
}

int arguments_read(const struct options *o, struct arguments *a, int argc, char **argv)
{
	int status = options_read(o, a, argc, argv);
	if (status >= 0)
		return status;
	for (; optind < argc; optind++)
		if (!option_name(NULL, &a->store, argv[optind]))
			return EXIT_USAGE;
	if (a->ops && !*a->ops)
		return fail(EXIT_USAGE,
			    "--ops: expected the name of a file, or - for standard input");
	return check_bounds(a);
}

/* A file to which rows are added: `check` has read what is there. 0, or the status after a
 * message. */
static int check_rows(const char *what, const char *path,
		      int (*check)(const char *path, struct input_error *error))
{
	struct input_error error;
	int status = check_output(what, path, OUTPUT_ANY);
	return status ? status : input_status(path, check(path, &error), &error);
}

int arguments_check_outputs(const struct arguments *a)
{
	note_input(a->ops);
	note_input(a->baseline);
	int status = leave_off_check(&a->leave_off, NULL);
	if (!status && a->write_baseline)
		status = check_output("--write-baseline", a->write_baseline, OUTPUT_BASELINE);
	if (!status && a->causes)
		status = check_rows("--causes", a->causes, causes_check);
	if (!status && a->shares)
		status = check_rows("--shares", a->shares, causes_check);
	if (!status && a->corpus)
		status = check_folder("--corpus", a->corpus, true);
	if (!status && !a->no_traces)
		status = check_folder("--out", a->out, false);
	return status;
}

unsigned arguments_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores > 0 && cores < 256 ? (unsigned)cores : 1;
}

/* --- stores, variants, knobs --- */

static int unknown_store(const char *name)
{
	char known[256] = "";
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned i = 0; stores[i]; i++) {
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 i ? ", " : "", stores[i]->name);
		nearest_try(&n, stores[i]->name);
	}
	if (strchr(name, '/') || strchr(name, '.'))
		return fail(EXIT_USAGE,
			    "%.80s: expected a store's name, or the path of a shared object, "
			    "NAME.so, that tidemark cc has linked",
			    name);
	if (n.hint[0])
		return fail(EXIT_USAGE, "no store \"%.40s\"%s (tidemark list stores)", name,
			    n.hint);
	return fail(EXIT_USAGE, "no store \"%.40s\"; there are: %s", name, known);
}

/* No store, or not the store that was named, has this variant. */
static int unknown_variant(const struct tm_store *store, const char *name)
{
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_variant *v = stores[i]->variants;
		     v->name && (!store || store == stores[i]); v++)
			nearest_try(&n, v->name);
	return fail(EXIT_USAGE, "%s has %svariant \"%.40s\"%s (tidemark list)",
		    store ? store->name : "no store", store ? "no " : "a ", name, n.hint);
}

static int unknown_knob(const char *name)
{
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned i = 0; stores[i]; i++)
		for (const struct tm_knob *k = stores[i]->knobs; k->name; k++)
			nearest_try(&n, k->name);
	for (unsigned i = 0; hardware_knob(i)->name; i++)
		nearest_try(&n, hardware_knob(i)->name);
	return fail(EXIT_USAGE, "no knob \"%.40s\"%s (tidemark list knobs)", name, n.hint);
}

int hardware_knob_add(const char **list, unsigned *n, unsigned max, const char *text)
{
	struct hardware scratch = hardware_default;
	size_t len = strcspn(text, "=");
	const char *expected = NULL;
	struct nearest near;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	nearest_init(&near, name);
	for (unsigned k = 0; hardware_knob(k)->name; k++)
		nearest_try(&near, hardware_knob(k)->name);
	if (!text[len] || !len)
		return fail(EXIT_USAGE, "--knob: \"%.60s\"; expected NAME=VALUE", text);
	if (hardware_find(name) < 0)
		return fail(EXIT_USAGE,
			    "the hardware has no knob \"%.40s\"%s (tidemark list knobs)", name,
			    near.hint);
	if (hardware_switch(&scratch, text, &expected))
		return fail(EXIT_USAGE, "knob \"%.60s\": expected one of: %s", text, expected);
	for (unsigned i = 0; i < *n; i++)
		if (!strncmp(list[i], text, len + 1))
			return fail(EXIT_USAGE, "--knob: %s twice; expected once", name);
	if (*n == max)
		return fail(EXIT_USAGE, "more than %u knobs", max);
	list[(*n)++] = text;
	return 0;
}

static int check_knob(const struct arguments *a, unsigned at)
{
	const char *text = a->knob.name[at];
	size_t len = strcspn(text, "=");
	char name[64];
	if (!text[len] || !len)
		return fail(EXIT_USAGE, "--knob: \"%.60s\"; expected NAME=VALUE", text);
	for (unsigned i = 0; i < at; i++)
		if (!strncmp(a->knob.name[i], text, len + 1))
			return fail(EXIT_USAGE, "--knob: %.*s twice; expected once",
				    (int)(len > 40 ? 40 : len), text);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	if (!plan_has_knob(NULL, text))
		return unknown_knob(name);
	for (unsigned i = 0; i < a->store.n; i++)
		if (!plan_has_knob(store_find(a->store.name[i]), text))
			return fail(EXIT_USAGE, "%s has no knob \"%s\" (tidemark list knobs)",
				    a->store.name[i], name);
	return 0;
}

static int check_variant(const struct arguments *a, const char *variant)
{
	bool somewhere = false;
	for (unsigned s = 0; stores[s]; s++)
		somewhere |= plan_has_variant(stores[s], variant);
	if (!somewhere)
		return unknown_variant(NULL, variant);
	for (unsigned s = 0; s < a->store.n; s++)
		if (!plan_has_variant(store_find(a->store.name[s]), variant))
			return unknown_variant(store_find(a->store.name[s]), variant);
	return 0;
}

int arguments_usual(const struct arguments *a, unsigned *configs, unsigned *workloads)
{
	struct arguments all = *a;
	struct campaign c = {.options = a->options};
	all.workload.n = 0;
	all.searches = false;
	all.ops = NULL;
	int status = arguments_apply(&all, &c);
	*configs = c.configs;
	*workloads = c.workloads;
	campaign_free(&c);
	return status;
}

int arguments_knobs(const struct arguments *a)
{
	int status = 0;
	for (unsigned i = 0; i < a->knob.n && !status; i++)
		status = check_knob(a, i);
	return status;
}

int arguments_configs(const struct arguments *a, struct campaign *c)
{
	const struct plan p = {
		.store = {a->store.name, a->store.n},
		.variant = {a->variant.name, a->variant.n},
		.knob = {a->knob.name, a->knob.n},
		.workloads_named = a->workload.n || a->ops,
		.one_config = a->one_config,
		.all_stores = a->all_stores,
		.exhaustive = a->options.exhaustive,
		.searches = a->searches,
	};
	char why[PLAN_TEXT];
	int status = 0;
	for (unsigned i = 0; i < a->store.n && !status; i++)
		if (!store_find(a->store.name[i]))
			status = unknown_store(a->store.name[i]);
	for (unsigned i = 0; i < a->variant.n && !status; i++)
		status = check_variant(a, a->variant.name[i]);
	if (!status)
		status = arguments_knobs(a);
	if (status)
		return status;
	c->config = calloc(PLAN_CONFIGS, sizeof(*c->config));
	if (!c->config)
		return fail(EXIT_INTERNAL, "out of memory");
	return plan_configs(c, &p, why) ? fail(EXIT_USAGE, "%s", why) : 0;
}

/* --- workloads --- */

static int read_ops(struct workload *w, const char *path)
{
	struct input_error where = {0};
	bool standard = !strcmp(path, "-");
	FILE *in = standard ? stdin : fopen(path, "re");
	if (!in)
		return fail(EXIT_USAGE, "%s: cannot be opened: %s", path, strerror(errno));
	int error = workload_read_ops(in, w, &where);
	if (!standard)
		fclose(in);
	return input_status(path, error, &where);
}

static int unknown_workload(const char *name, int error, const char *expected)
{
	struct nearest n;
	struct workload w;
	nearest_init(&n, name);
	if (error == -ENOMEM)
		return fail(EXIT_INTERNAL, "out of memory");
	if (error != -ENOENT)
		return fail(EXIT_USAGE, "workload \"%.60s\": expected %s", name, expected);
	for (unsigned i = 0; !workload_builtin(i, &w); i++) {
		nearest_try(&n, w.name);
		workload_free(&w);
	}
	return fail(EXIT_USAGE, "no workload \"%.60s\"%s (tidemark list workloads)", name, n.hint);
}

/* Among those that all stores know, and those of the stores' own operations. */
static int find_workload(const struct campaign *c, const char *name, struct workload *w,
			 const char **expected)
{
	int error = workload_named(name, w, expected), other = -ENOENT;
	for (unsigned i = 0; i < c->configs && error == -ENOENT; i++)
		for (unsigned n = 0; error == -ENOENT; n++) {
			other = workload_of_store(c->config[i].store, n, w, expected);
			if (other)
				break;
			if (!strcmp(w->name, name))
				error = 0;
			else
				workload_free(w);
		}
	return other == -ENOMEM ? other : error;
}

static int add_workload(struct campaign *c, struct workload *w)
{
	if (!plan_add_workload(c, w))
		return 0;
	workload_free(w);
	return fail(EXIT_INTERNAL, "out of memory");
}

static int named_workloads(const struct arguments *a, struct campaign *c)
{
	struct workload w = {0};
	char why[PLAN_TEXT];
	w.calls = c->configs ? c->config[0].store->calls : NULL;
	for (unsigned i = 1; i < c->configs; i++)
		if (c->config[i].store->calls != w.calls)
			w.calls = NULL;
	int status = a->ops ? read_ops(&w, a->ops) : 0;
	if (!status && a->ops)
		status = add_workload(c, &w);
	for (unsigned i = 0; i < a->workload.n && !status; i++) {
		const char *expected = NULL;
		int error = find_workload(c, a->workload.name[i], &w, &expected);
		status = error ? unknown_workload(a->workload.name[i], error, expected)
			       : add_workload(c, &w);
	}
	for (unsigned i = 0; i < c->workloads && !status; i++) {
		/* A list is meant as it is. */
		int error = plan_check_workload(c, i, i > 0 || !a->ops, why);
		if (error)
			status = fail(error == -EINVAL ? EXIT_USAGE : EXIT_INTERNAL, "%s", why);
	}
	return status;
}

int arguments_apply(const struct arguments *a, struct campaign *c)
{
	c->options = a->options;
	int status = arguments_configs(a, c);
	if (status)
		return status;
	if (a->ops || a->workload.n)
		return named_workloads(a, c);
	int error = a->options.exhaustive
			    ? plan_smallest_workloads(c, a->preemptions_given, a->faults_given)
			    : plan_builtin_workloads(c);
	return error ? fail(EXIT_INTERNAL, "out of memory") : 0;
}
