/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of commands that test stores, and the configurations and workloads that they
 * describe. */
#include "cli/arguments.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "scenarios/stores.h"

#define OTHER_SHARE 4 /* the other configurations get one in so many of the runs and states */

/* The hardware under which the default campaign runs each store. */
static const char *const default_configs[] = {
	"default",    "ack_early=off", "ddio=off",     "domain=mhp",
	"domain=wsp", "dma_order=any", "line_torn=on", NULL};

static void help(void)
{
	puts("usage: tidemark crashtest [STORE...] [OPTION...]\n"
	     "Runs stores under power failures and prints which promise holds and which breaks.\n"
	     "Without a STORE: all; or those that have the variants and knobs that are named.\n\n"
	     "what is tested\n"
	     "  --variant NAME     a variant or a seeded bug (tidemark list); may be repeated\n"
	     "  --knob NAME=VALUE  a switch of the store or the hardware (tidemark list knobs); "
	     "may\n"
	     "                     be repeated\n"
	     "  --workload NAME    a built-in workload (tidemark list workloads); may be repeated\n"
	     "  --ops FILE         a recorded operation list (docs/ops-file.md), one more "
	     "workload;\n"
	     "                     - reads standard input\n"
	     "  Without all of these: every built-in workload, under seven kinds of hardware.\n\n"
	     "how much\n"
	     "  --runs N           schedules of each workload (2000)\n"
	     "  --states N         crash states of each workload at most (20000)\n"
	     "  --seed N           of the schedules (1)\n"
	     "  --jobs N           processes (one for each core); results do not depend on it\n"
	     "  --doublecheck      run each schedule twice and compare the event hashes\n\n"
	     "everything within bounds\n"
	     "  --exhaustive       no random schedules: all there are within the bounds "
	     "(docs/search.md).\n"
	     "                     Without --workload: the smallest workloads. --runs and --states "
	     "are\n"
	     "                     unlimited then, unless they are given\n"
	     "  --preemptions N    how often somebody is held back in one run (2)\n"
	     "  --faults N         packets lost or duplicated, clients dead, calls failed in one "
	     "run (0;\n"
	     "                     where no workload is named, 1 with two writers)\n\n"
	     "what is written\n"
	     "  --out DIR          where traces go (traces); it is made if it does not exist\n"
	     "  --no-traces        write none\n"
	     "  --json FILE        the results for machines\n"
	     "  --junit FILE       the results as JUnit XML, a test case for each contract\n"
	     "  -q, --quiet        no progress\n"
	     "  --help             this text\n\n"
	     "exit status: 0 all as expected, 1 a promise broken or a cell not as expected, 2 "
	     "usage or\n"
	     "bad input, 3 could not tell (--exhaustive left something out), 70 internal error");
}

static bool add_name(const char **list, unsigned *n, unsigned max, const char *name)
{
	if (*n == max) {
		fail(EXIT_USAGE, "more than %u names of one kind; \"%.40s\" is too many", max,
		     name);
		return false;
	}
	list[(*n)++] = name;
	return true;
}

static bool add_value(struct arguments *a, const char *text)
{
	unsigned long long n;
	if (!number_option("--value", text, WORKLOAD_MIN_VLEN, TM_MAX_VALUE, &n))
		return false;
	if (a->values == MAX_VALUES) {
		fail(EXIT_USAGE, "--value: more than %d sizes; %s is too many", MAX_VALUES, text);
		return false;
	}
	a->value[a->values++] = (uint32_t)n;
	return true;
}

static bool parse_option(struct arguments *a, int option, const char *value)
{
	unsigned long long n;
	switch (option) {
	case OPT_VARIANT:
		return add_name(a->variant, &a->variants, MAX_NAMES, value);
	case OPT_KNOB:
		return add_name(a->knob, &a->knobs, MAX_KNOBS, value);
	case OPT_WORKLOAD:
		return add_name(a->workload, &a->workloads, MAX_NAMES, value);
	case OPT_OPS:
		if (a->ops) {
			fail(EXIT_USAGE, "--ops twice; expected one list");
			return false;
		}
		a->ops = value;
		return true;
	case OPT_OUT:
		a->out = value;
		return true;
	case OPT_JSON:
		a->json = value;
		return true;
	case OPT_JUNIT:
		a->junit = value;
		return true;
	case OPT_CORPUS:
		a->corpus = value;
		return true;
	case OPT_REGRESS:
		a->regress = value;
		return true;
	case OPT_TIME:
		return time_option("--time", value, &a->seconds);
	case OPT_NO_TRACES:
		a->no_traces = true;
		return true;
	case OPT_DOUBLE:
		a->options.doublecheck = true;
		return true;
	case OPT_RUNS:
		if (!number_option("--runs", value, 1, 1000000000, &n))
			return false;
		a->options.runs = n;
		a->runs_given = true;
		return true;
	case OPT_STATES:
		if (!number_option("--states", value, 1, UINT64_MAX / 2, &n))
			return false;
		a->options.states = n;
		a->states_given = true;
		return true;
	case OPT_EXHAUSTIVE:
		a->options.exhaustive = true;
		return true;
	case OPT_PREEMPTIONS:
	case OPT_FAULTS:
		if (!number_option(option == OPT_FAULTS ? "--faults" : "--preemptions", value, 0,
				   SYSTEMATIC_DEPTH, &n))
			return false;
		*(option == OPT_FAULTS ? &a->options.faults
				       : &a->options.preemptions) = (unsigned)n;
		a->bounds_given = true;
		a->faults_given |= option == OPT_FAULTS;
		return true;
	case OPT_SEED:
		if (!number_option("--seed", value, 0, UINT32_MAX, &n))
			return false;
		a->options.seed = n;
		return true;
	case OPT_VALUE:
		return add_value(a, value);
	case OPT_KEY:
		if (!number_option("--key", value, 1, TM_MAX_KEY, &n))
			return false;
		a->key = (uint32_t)n;
		return true;
	case OPT_FIELDS:
		a->fields = true;
		return true;
	case OPT_JOBS:
		if (!number_option("--jobs", value, 1, 256, &n))
			return false;
		a->options.jobs = (unsigned)n;
		return true;
	default:
		a->quiet = true;
		return true;
	}
}

static int bad_option(const struct command *command, const char *word)
{
	const struct option *options = command->options;
	const char *name = command->name;
	struct nearest n;
	char plain[64], known[64];
	if (optopt >= OPT_VARIANT)
		return fail(EXIT_USAGE, "%s: %.60s: this option takes no value", name, word);
	if (optopt)
		return fail(EXIT_USAGE, "%s: unknown option \"-%c\" (tidemark %s --help)", name,
			    optopt, name);
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(word, "="), word);
	nearest_init(&n, plain);
	for (; options->name; options++) {
		snprintf(known, sizeof(known), "--%s", options->name);
		nearest_try(&n, known);
	}
	return fail(EXIT_USAGE, "%s: unknown option \"%.40s\"%s (tidemark %s --help)", name, word,
		    n.hint, name);
}

/* -1, or the status behind a message. */
static int check_bounds(struct arguments *a)
{
	struct campaign_options *o = &a->options;
	if (!o->exhaustive)
		return a->bounds_given
			       ? fail(EXIT_USAGE,
				      "--preemptions and --faults: expected --exhaustive, too")
			       : -1;
	if (o->doublecheck)
		return fail(EXIT_USAGE,
			    "--doublecheck compares random schedules; expected no --exhaustive");
	if (o->preemptions + o->faults > SYSTEMATIC_DEPTH)
		return fail(EXIT_USAGE, "--preemptions and --faults: expected at most %d together",
			    SYSTEMATIC_DEPTH);
	const uint64_t runs = o->runs, states = o->states;
	campaign_search_all(o);
	if (a->runs_given)
		o->runs = runs;
	if (a->states_given)
		o->states = states;
	return -1;
}

static const struct option crashtest_options[] = {
	{"variant", required_argument, NULL, OPT_VARIANT},
	{"knob", required_argument, NULL, OPT_KNOB},
	{"workload", required_argument, NULL, OPT_WORKLOAD},
	{"ops", required_argument, NULL, OPT_OPS},
	{"runs", required_argument, NULL, OPT_RUNS},
	{"states", required_argument, NULL, OPT_STATES},
	{"seed", required_argument, NULL, OPT_SEED},
	{"jobs", required_argument, NULL, OPT_JOBS},
	{"doublecheck", no_argument, NULL, OPT_DOUBLE},
	{"exhaustive", no_argument, NULL, OPT_EXHAUSTIVE},
	{"preemptions", required_argument, NULL, OPT_PREEMPTIONS},
	{"faults", required_argument, NULL, OPT_FAULTS},
	{"out", required_argument, NULL, OPT_OUT},
	{"no-traces", no_argument, NULL, OPT_NO_TRACES},
	{"json", required_argument, NULL, OPT_JSON},
	{"junit", required_argument, NULL, OPT_JUNIT},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

const struct command crashtest_command = {"crashtest", crashtest_options, help};

int arguments_parse(struct arguments *a, const struct command *command, int argc, char **argv)
{
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":q", command->options, NULL)) != -1) {
		if (option == OPT_HELP) {
			command->help();
			return 0;
		}
		if (option == '?')
			return bad_option(command, argv[optind - 1]);
		if (option == ':')
			return fail(EXIT_USAGE, "%s: %s wants a value", command->name,
				    argv[optind - 1]);
		if (!parse_option(a, option, optarg))
			return EXIT_USAGE;
	}
	for (; optind < argc; optind++)
		if (!add_name(a->store, &a->stores, MAX_NAMES, argv[optind]))
			return EXIT_USAGE;
	if (a->ops && !*a->ops)
		return fail(EXIT_USAGE,
			    "--ops: expected the name of a file, or - for standard input");
	return check_bounds(a);
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
	if (n.hint[0])
		return fail(EXIT_USAGE, "no store \"%.40s\"%s (tidemark list stores)", name,
			    n.hint);
	return fail(EXIT_USAGE, "no store \"%.40s\"; there are: %s", name, known);
}

static bool has_variant(const struct tm_store *store, const char *name)
{
	struct setup s;
	setup_init(&s, store);
	return strlen(name) < sizeof(s.variant) && !setup_variant(&s, name);
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

/* "name=value" names a knob of this store (NULL: of any), or of the hardware. */
static bool has_knob(const struct tm_store *store, const char *text, struct nearest *n)
{
	size_t len = strcspn(text, "=");
	char name[64];
	bool found = false;
	for (unsigned i = 0; stores[i]; i++) {
		for (const struct tm_knob *k = stores[i]->knobs;
		     k->name && (!store || store == stores[i]); k++) {
			found |= strlen(k->name) == len && !memcmp(k->name, text, len);
			nearest_try(n, k->name);
		}
	}
	for (unsigned i = 0; hardware_knob(i)->name; i++)
		nearest_try(n, hardware_knob(i)->name);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return found || hardware_find(name) >= 0;
}

static int check_knob(const struct arguments *a, unsigned at)
{
	const char *text = a->knob[at];
	size_t len = strcspn(text, "=");
	struct nearest n;
	char name[64];
	if (!text[len] || !len)
		return fail(EXIT_USAGE, "--knob: \"%.60s\"; expected NAME=VALUE", text);
	for (unsigned i = 0; i < at; i++)
		if (!strncmp(a->knob[i], text, len + 1))
			return fail(EXIT_USAGE, "--knob: %.*s twice; expected once",
				    (int)(len > 40 ? 40 : len), text);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	nearest_init(&n, name);
	if (!has_knob(NULL, text, &n))
		return fail(EXIT_USAGE, "no knob \"%.40s\"%s (tidemark list knobs)", name, n.hint);
	for (unsigned i = 0; i < a->stores; i++)
		if (!has_knob(store_find(a->store[i]), text, &n))
			return fail(EXIT_USAGE, "%s has no knob \"%s\" (tidemark list knobs)",
				    a->store[i], name);
	return 0;
}

static int check_names(const struct arguments *a)
{
	for (unsigned i = 0; i < a->stores; i++)
		if (!store_find(a->store[i]))
			return unknown_store(a->store[i]);
	for (unsigned i = 0; i < a->variants; i++) {
		bool somewhere = false;
		for (unsigned s = 0; stores[s]; s++)
			somewhere |= has_variant(stores[s], a->variant[i]);
		if (!somewhere)
			return unknown_variant(NULL, a->variant[i]);
		for (unsigned s = 0; s < a->stores; s++)
			if (!has_variant(store_find(a->store[s]), a->variant[i]))
				return unknown_variant(store_find(a->store[s]), a->variant[i]);
	}
	for (unsigned i = 0; i < a->knobs; i++) {
		int status = check_knob(a, i);
		if (status)
			return status;
	}
	return 0;
}

/* check_names() was content; what is left to be wrong is the value. *changed: it was not so
 * already. */
static int set_knob(struct setup *s, const char *text, bool *changed)
{
	const struct tm_params params = s->params;
	const struct hardware hw = s->hw;
	const char *expected = NULL;
	if (setup_switch(s, text, &expected))
		return fail(EXIT_USAGE, "%s: knob \"%.60s\": expected one of: %s", s->store->name,
			    text, expected);
	*changed = memcmp(&params, &s->params, sizeof(params)) || memcmp(&hw, &s->hw, sizeof(hw));
	return 0;
}

static int add_config(struct campaign *c, const struct arguments *a, const struct tm_store *store,
		      const char *variant, const char *config)
{
	struct campaign_config *cfg = &c->config[c->configs];
	bool plain = !strcmp(config, "default"), changed;
	if (c->configs == MAX_CONFIGS)
		return fail(EXIT_USAGE,
			    "more than %d configurations; name fewer stores and variants",
			    MAX_CONFIGS);
	cfg->store = store;
	cfg->share = plain ? 1 : OTHER_SHARE;
	setup_init(&cfg->setup, store);
	setup_variant(&cfg->setup, variant);
	snprintf(cfg->variant, sizeof(cfg->variant), "%s", variant);
	snprintf(cfg->name, sizeof(cfg->name), "%s", config);
	int status = plain ? 0 : set_knob(&cfg->setup, config, &changed);
	for (unsigned i = 0; i < a->knobs && !status; i++) {
		status = set_knob(&cfg->setup, a->knob[i], &changed);
		if (status || !changed)
			continue;
		size_t len = plain ? 0 : strlen(cfg->name);
		snprintf(cfg->name + len, sizeof(cfg->name) - len, "%s%s", len ? " " : "",
			 a->knob[i]);
		plain = false;
	}
	c->configs += !status;
	return status;
}

/* Named; or nothing was named, and it has all that is asked for. */
static bool wanted(const struct arguments *a, unsigned number, const char *variant)
{
	const struct tm_store *store = stores[number];
	struct nearest n;
	nearest_init(&n, "");
	for (unsigned i = 0; i < a->stores; i++)
		if (store_find(a->store[i]) == store)
			return true;
	if (a->stores || !has_variant(store, variant) ||
	    (number >= stores_by_default && !a->variants && !a->all_stores))
		return false;
	for (unsigned i = 0; i < a->knobs; i++)
		if (!has_knob(store, a->knob[i], &n))
			return false;
	return true;
}

static int add_configs(struct campaign *c, const struct arguments *a)
{
	bool several = !a->one_config && !a->knobs && !a->workloads && !a->ops &&
		       !a->options.exhaustive;
	for (unsigned i = 0; stores[i]; i++) {
		for (unsigned v = 0; v < (a->variants ? a->variants : 1); v++) {
			const char *variant = a->variants ? a->variant[v] : "default";
			unsigned configs = !several ? 1 : a->variants ? 2 : MAX_CONFIGS;
			for (unsigned d = 0; default_configs[d] && d < configs; d++) {
				int status = wanted(a, i, variant)
						     ? add_config(c, a, stores[i], variant,
								  default_configs[d])
						     : 0;
				if (status)
					return status;
			}
		}
	}
	return c->configs
		       ? 0
		       : fail(EXIT_USAGE,
			      "no store has all these variants and knobs together (tidemark list)");
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
	else
		path = "standard input";
	if (!error)
		return 0;
	int status = error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE;
	return where.line ? fail(status, "%s:%u: %s", path, where.line, where.message)
			  : fail(status, "%s: %s", path, where.message);
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

/* A history has room for so many operations; a pool has an end. */
static int check_workload(const struct campaign *c, unsigned at)
{
	const struct workload *w = &c->workload[at];
	unsigned ops = workload_ops(w) + w->keys * 5;
	struct setup s;
	if (w->keys > HISTORY_KEYS)
		return fail(EXIT_USAGE, "workload %s: %u keys; expected at most %d", w->name,
			    w->keys, HISTORY_KEYS);
	if (ops > HISTORY_OPS)
		return fail(
			EXIT_USAGE,
			"workload %s: %u operations, those of loading and reading back included; "
			"expected at most %d",
			w->name, ops, HISTORY_OPS);
	for (unsigned i = 0; i < c->configs; i++) {
		int error = campaign_setup(c, i * c->workloads + at, &s);
		size_t need = s.pm_len;
		setup_free(&s);
		if (error == -EFBIG)
			return fail(EXIT_USAGE,
				    "workload %s: %s would need %zu bytes of PM; expected a "
				    "smaller one",
				    w->name, c->config[i].store->name, need);
		if (error)
			return fail(EXIT_INTERNAL, "workload %s: %s", w->name, strerror(-error));
	}
	return 0;
}

/* What a systematic search goes through when nobody names a workload. */
static const struct {
	const char *name;
	unsigned faults; /* a writer that dies, a packet that is lost: where two writers meet */
} smallest[] = {{"w", 0}, {"ww", 0}, {"wr", 0}, {"www", 0}, {"w-r", 0}, {"w-wr", 0}, {"w-w", 1}};
#define SMALLEST (sizeof(smallest) / sizeof(smallest[0]))

static int add_smallest(struct campaign *c, const struct arguments *a)
{
	const char *expected;
	c->faults = calloc(SMALLEST, sizeof(*c->faults));
	if (!c->faults)
		return fail(EXIT_INTERNAL, "out of memory");
	for (unsigned i = 0; i < SMALLEST; i++) {
		bool room = a->options.preemptions + smallest[i].faults <= SYSTEMATIC_DEPTH;
		c->faults[i] = a->faults_given || !room ? a->options.faults : smallest[i].faults;
		if (workload_named(smallest[i].name, &c->workload[c->workloads], &expected))
			return fail(EXIT_INTERNAL, "out of memory");
		c->workloads++;
	}
	return 0;
}

static int add_workloads(struct campaign *c, const struct arguments *a)
{
	bool named = a->ops || a->workloads;
	unsigned room = a->workloads + 256;
	int status = 0;
	c->workload = calloc(room, sizeof(*c->workload));
	if (!c->workload)
		return fail(EXIT_INTERNAL, "out of memory");
	if (a->ops) {
		status = read_ops(&c->workload[0], a->ops);
		if (status)
			return status;
		c->workloads = 1;
	}
	for (unsigned i = 0; i < a->workloads; i++) {
		const char *expected = NULL;
		int error = workload_named(a->workload[i], &c->workload[c->workloads], &expected);
		if (error)
			return unknown_workload(a->workload[i], error, expected);
		c->workloads++;
	}
	if (!named && a->options.exhaustive)
		return add_smallest(c, a);
	for (unsigned i = 0; !named && c->workloads < room; i++) {
		if (workload_builtin(i, &c->workload[c->workloads]))
			break;
		c->workloads++;
	}
	for (unsigned i = 0; i < c->workloads && named && !status; i++)
		status = check_workload(c, i);
	return status;
}

int arguments_configs(const struct arguments *a, struct campaign *c)
{
	int status = check_names(a);
	return status ? status : add_configs(c, a);
}

unsigned arguments_jobs(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	return cores > 0 && cores < 256 ? (unsigned)cores : 1;
}

int arguments_apply(const struct arguments *a, struct campaign *c)
{
	int status = arguments_configs(a, c);
	if (!status)
		status = add_workloads(c, a);
	return status;
}
