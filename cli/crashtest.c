/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark crashtest: parse, run the campaign, shrink and write a trace for each
 * broken cell, print the matrix, compare it with what is expected.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/expect.h"
#include "checker/names.h"
#include "checker/shrink.h"
#include "checker/trace.h"
#include "cli/cli.h"
#include "cli/report.h"
#include "scenarios/stores.h"

#define MAX_CONFIGS 64
#define MAX_KNOBS   32
#define MAX_NAMES   64
#define OTHER_SHARE 4 /* the other configurations get one in so many of the runs and states */

/* The hardware under which the default campaign runs each store. */
static const char *const default_configs[] = {"default",	"ack_early=off", "ddio=off",	  "domain=mhp",
					      "domain=wsp",	"dma_order=any", "line_torn=on", NULL};

struct arguments {
	const char *store[MAX_NAMES], *variant[MAX_NAMES], *workload[MAX_NAMES];
	unsigned stores, variants, workloads;
	const char *knob[MAX_KNOBS];
	unsigned knobs;
	const char *ops, *out, *json;
	bool quiet, no_traces;
	struct campaign_options options;
};

static void help(void)
{
	puts("usage: tidemark crashtest [STORE...] [OPTION...]\n"
	     "Runs the stores (all, if none is named) under crashes and prints which promise holds.\n\n"
	     "  --variant NAME        a variant or seeded bug (tidemark list); may be repeated\n"
	     "  --knob NAME=VALUE     a switch of the store or the hardware; may be repeated\n"
	     "  --workload NAME       a built-in workload (tidemark list workloads); may be repeated\n"
	     "  --ops FILE            a recorded operation list (docs/ops-file.md); - reads standard input\n"
	     "  --runs N              schedules of each workload (2000)\n"
	     "  --states N            crash states of each workload at most (20000)\n"
	     "  --seed N              of the schedules (1)\n"
	     "  --jobs N              processes (all cores)\n"
	     "  --doublecheck         run each schedule twice and compare the event hashes\n"
	     "  --out DIR             where traces go (traces)\n"
	     "  --no-traces           write none\n"
	     "  --json FILE           the results for machines\n"
	     "  -q                    no progress");
}

enum { OPT_VARIANT = 1000, OPT_KNOB, OPT_WORKLOAD, OPT_OPS, OPT_RUNS, OPT_STATES, OPT_SEED, OPT_JOBS, OPT_DOUBLE, OPT_OUT,
       OPT_NO_TRACES, OPT_JSON, OPT_HELP };

static bool add_name(const char **list, unsigned *n, unsigned max, const char *name)
{
	if (*n == max) {
		fail(EXIT_USAGE, "more than %u names of one kind; \"%.40s\" is too many", max, name);
		return false;
	}
	list[(*n)++] = name;
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
		a->ops = value;
		return true;
	case OPT_OUT:
		a->out = value;
		return true;
	case OPT_JSON:
		a->json = value;
		return true;
	case OPT_NO_TRACES:
		a->no_traces = true;
		return true;
	case OPT_DOUBLE:
		a->options.doublecheck = true;
		return true;
	case OPT_RUNS:
		if (!number_option("--runs", value, 1, 1000000000, &n))
			return false;
		a->options.runs = (unsigned)n;
		return true;
	case OPT_STATES:
		if (!number_option("--states", value, 1, UINT64_MAX / 2, &n))
			return false;
		a->options.states = n;
		return true;
	case OPT_SEED:
		if (!number_option("--seed", value, 0, UINT32_MAX, &n))
			return false;
		a->options.seed = n;
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

/* -1: go on; else the exit status. */
static int parse(struct arguments *a, int argc, char **argv)
{
	static const struct option options[] = {
		{"variant", required_argument, NULL, OPT_VARIANT}, {"knob", required_argument, NULL, OPT_KNOB},
		{"workload", required_argument, NULL, OPT_WORKLOAD}, {"ops", required_argument, NULL, OPT_OPS},
		{"runs", required_argument, NULL, OPT_RUNS}, {"states", required_argument, NULL, OPT_STATES},
		{"seed", required_argument, NULL, OPT_SEED}, {"jobs", required_argument, NULL, OPT_JOBS},
		{"doublecheck", no_argument, NULL, OPT_DOUBLE}, {"out", required_argument, NULL, OPT_OUT},
		{"no-traces", no_argument, NULL, OPT_NO_TRACES}, {"json", required_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, OPT_HELP}, {NULL, 0, NULL, 0},
	};
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":q", options, NULL)) != -1) {
		if (option == OPT_HELP) {
			help();
			return 0;
		}
		if (option == '?')
			return fail(EXIT_USAGE, "crashtest: unknown option \"%.40s\" (tidemark crashtest --help)", argv[optind - 1]);
		if (option == ':')
			return fail(EXIT_USAGE, "crashtest: %s wants a value", argv[optind - 1]);
		if (!parse_option(a, option, optarg))
			return EXIT_USAGE;
	}
	for (; optind < argc; optind++)
		if (!add_name(a->store, &a->stores, MAX_NAMES, argv[optind]))
			return EXIT_USAGE;
	return -1;
}

/* --- what to run --- */

static int unknown_store(const char *name)
{
	char known[256] = "";
	for (unsigned i = 0; stores[i]; i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "", stores[i]->name);
	return fail(EXIT_USAGE, "no store \"%.40s\"; there are: %s", name, known);
}

static int set_knob(struct setup *s, const char *text)
{
	char name[64];
	const char *equals = strchr(text, '='), *expected = NULL;
	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(name))
		return fail(EXIT_USAGE, "--knob: \"%.60s\" is not NAME=VALUE", text);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	if (setup_knob(s, name, equals + 1, &expected))
		return fail(EXIT_USAGE, "%s: \"%.60s\": expected %s (tidemark list knobs)", s->store->name, text,
			    expected ? expected : "the name of a knob");
	return 0;
}

static int add_config(struct campaign *c, const struct arguments *a, const struct tm_store *store, const char *variant,
		      const char *config)
{
	struct campaign_config *cfg = &c->config[c->configs];
	if (c->configs == MAX_CONFIGS)
		return fail(EXIT_USAGE, "more than %d configurations; name fewer stores and variants", MAX_CONFIGS);
	cfg->store = store;
	cfg->share = strcmp(config, "default") ? OTHER_SHARE : 1;
	setup_init(&cfg->setup, store);
	if (setup_variant(&cfg->setup, variant))
		return fail(EXIT_USAGE, "%s has no variant \"%.40s\" (tidemark list)", store->name, variant);
	snprintf(cfg->variant, sizeof(cfg->variant), "%s", variant);
	if (strcmp(config, "default")) {
		int status = set_knob(&cfg->setup, config);
		if (status)
			return status;
	}
	for (unsigned i = 0; i < a->knobs; i++) {
		int status = set_knob(&cfg->setup, a->knob[i]);
		if (status)
			return status;
	}
	snprintf(cfg->name, sizeof(cfg->name), "%s", config);
	for (unsigned i = 0; i < a->knobs; i++) {
		size_t len = i || strcmp(cfg->name, "default") ? strlen(cfg->name) : 0;
		snprintf(cfg->name + len, sizeof(cfg->name) - len, "%s%s", len ? " " : "", a->knob[i]);
	}
	c->configs++;
	return 0;
}

static int add_configs(struct campaign *c, const struct arguments *a)
{
	bool several = !a->knobs && !a->variants && !a->workloads && !a->ops;
	for (unsigned i = 0; stores[i]; i++) {
		bool wanted = !a->stores;
		for (unsigned n = 0; n < a->stores; n++)
			wanted |= !strcmp(a->store[n], stores[i]->name);
		for (unsigned v = 0; wanted && v < (a->variants ? a->variants : 1); v++) {
			for (unsigned d = 0; default_configs[d] && (d == 0 || several); d++) {
				int status = add_config(c, a, stores[i], a->variants ? a->variant[v] : "default", default_configs[d]);
				if (status)
					return status;
			}
		}
	}
	for (unsigned n = 0; n < a->stores; n++)
		if (!store_find(a->store[n]))
			return unknown_store(a->store[n]);
	return 0;
}

static int read_ops(struct workload *w, const char *path)
{
	struct input_error where = {0};
	FILE *in = strcmp(path, "-") ? fopen(path, "r") : stdin;
	if (!in)
		return fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
	int error = workload_read_ops(in, w, &where);
	if (in != stdin)
		fclose(in);
	if (error && where.line)
		return fail(EXIT_USAGE, "%s:%u: %s", path, where.line, where.message);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", path, where.message);
	snprintf(w->name, sizeof(w->name), "ops");
	return 0;
}

static int add_workloads(struct campaign *c, const struct arguments *a)
{
	unsigned room = a->workloads + 256;
	c->workload = calloc(room, sizeof(*c->workload));
	if (!c->workload)
		return fail(EXIT_INTERNAL, "out of memory");
	if (a->ops) {
		int status = read_ops(&c->workload[0], a->ops);
		if (status)
			return status;
		c->workloads = 1;
	}
	for (unsigned i = 0; i < a->workloads; i++) {
		const char *expected = NULL;
		int error = workload_named(a->workload[i], &c->workload[c->workloads], &expected);
		if (error)
			return fail(EXIT_USAGE, "no workload \"%.60s\": expected %s", a->workload[i],
				    expected ? expected : "a name from tidemark list workloads");
		c->workloads++;
	}
	for (unsigned i = 0; !a->ops && !a->workloads && c->workloads < room; i++) {
		if (workload_builtin(i, &c->workload[c->workloads]))
			break;
		c->workloads++;
	}
	for (unsigned i = 0; i < c->workloads; i++)
		if (c->workload[i].keys > HISTORY_KEYS || workload_ops(&c->workload[i]) + c->workload[i].keys * 5 > HISTORY_OPS)
			return fail(EXIT_USAGE, "workload %s: more than %d keys or too many operations for one history",
				    c->workload[i].name, HISTORY_KEYS);
	return 0;
}

/* --- traces --- */

static void trace_name(const struct campaign_config *cfg, unsigned contract, const char *dir, char *buf, size_t n)
{
	char middle[160] = "";
	if (strcmp(cfg->variant, "default"))
		snprintf(middle, sizeof(middle), "-%s", cfg->variant);
	if (strcmp(cfg->name, "default"))
		snprintf(middle + strlen(middle), sizeof(middle) - strlen(middle), "-%s", cfg->name);
	for (char *p = middle; *p; p++)
		if (*p == ' ' || *p == '/')
			*p = '-';
	snprintf(buf, n, "%s/%s%s-%s.trace", dir, cfg->store->name, middle, contract_name(contract));
}

static int write_trace(const struct campaign *c, unsigned config, unsigned contract, const char *dir,
		       struct report_cell *more)
{
	const struct campaign_cell *cell = &c->cell[config][contract];
	struct deviations path = {0};
	struct setup s;
	int error = campaign_again(c, cell->unit, cell->run, contract, &s, &path, more->text, sizeof(more->text));
	if (error)
		return fail(EXIT_INTERNAL, "%s %s: run %" PRIu64 " of workload %s does not break it a second time",
			    c->config[config].store->name, contract_name(contract), cell->run,
			    c->workload[cell->unit % c->workloads].name);
	error = shrink(&s, &path, contract, more->text, sizeof(more->text), NULL, NULL);
	if (error)
		fail(0, "note: %s %s could not be shrunk; its trace is as it was found", c->config[config].store->name,
		     contract_name(contract));
	trace_name(&c->config[config], contract, dir, more->trace, sizeof(more->trace));
	more->operations = workload_ops(&s.w);
	more->deviations = path.n;
	error = trace_save(more->trace, &s, &path, (int)contract, more->text);
	deviations_free(&path);
	setup_free(&s);
	if (error)
		return fail(EXIT_USAGE, "%s: %s", more->trace, strerror(-error));
	return 0;
}

/* Can traces be written there? Asked before the work, not after. */
static int check_folder(const char *dir)
{
	if (mkdir(dir, 0777) && errno != EEXIST)
		return fail(EXIT_USAGE, "%s: %s", dir, strerror(errno));
	struct stat st;
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "%s: not a folder", dir);
	if (access(dir, W_OK | X_OK))
		return fail(EXIT_USAGE, "%s: %s", dir, strerror(errno));
	return 0;
}

static void progress(void *arg, unsigned done, unsigned units, uint64_t states, double seconds)
{
	(void)arg;
	double left = done ? seconds / done * (units - done) : 0;
	fprintf(stderr, "\r%u of %u workloads, %" PRIu64 " states, %.0f states/s, about %.0f s left   %s", done, units, states,
		(double)states / (seconds > 0 ? seconds : 1), left, done == units ? "\r\033[K" : "");
	fflush(stderr);
}

/* --- the verdict --- */

static bool judge_cell(const struct report *r, unsigned config, unsigned k)
{
	const struct campaign_config *cfg = &r->campaign->config[config];
	bool broken = r->campaign->cell[config][k].broken, promised = cfg->store->promises & TM_BIT(k);
	struct report_cell *more = &r->cell[config][k];
	const struct expectation *e =
		strcmp(cfg->variant, "default") ? NULL : expect_find(cfg->store->name, cfg->name, (int)k);
	more->why = e ? e->why : NULL;
	if (!e)
		return broken && promised;
	/* Part of a campaign need not find everything. */
	more->surprise = e->broken != broken && (broken || (r->whole && !e->open));
	return more->surprise;
}

static int run(struct campaign *c, const struct arguments *a)
{
	int status = EXIT_HELD;
	int error = campaign_run(c);
	for (unsigned u = 0; c->unit && u < c->configs * c->workloads; u++)
		if (c->unit[u].error)
			return fail(EXIT_INTERNAL, "%s, workload %s: %s", c->config[u / c->workloads].store->name,
				    c->workload[u % c->workloads].name, c->unit[u].why);
	if (error)
		return fail(EXIT_INTERNAL, "a worker process died or could not start (%s)", strerror(-error));
	struct report r = {.campaign = c, .whole = !a->variants && !a->knobs && !a->workloads && !a->ops};
	r.cell = calloc(c->configs, sizeof(*r.cell));
	if (!r.cell)
		return fail(EXIT_INTERNAL, "out of memory");
	for (unsigned i = 0; i < c->configs; i++) {
		for (unsigned k = 0; k < TM_CONTRACTS; k++) {
			if (judge_cell(&r, i, k) && status != EXIT_USAGE)
				status = EXIT_BROKEN;
			if (!c->cell[i][k].broken || a->no_traces)
				continue;
			int bad = write_trace(c, i, k, a->out, &r.cell[i][k]);
			if (bad)
				return bad;
		}
	}
	report_print(&r);
	for (unsigned u = 0; u < c->configs * c->workloads; u++)
		if (c->unit[u].diverged)
			status = fail(EXIT_INTERNAL, "%s, workload %s: %" PRIu64 " runs differ when run again",
				      c->config[u / c->workloads].store->name, c->workload[u % c->workloads].name,
				      c->unit[u].diverged);
	if (a->json && (error = report_json(&r, a->json)))
		status = fail(EXIT_USAGE, "%s: %s", a->json, strerror(-error));
	printf("%s\n", status == EXIT_HELD ? "Everything is as expected." : "Not everything is as it should be.");
	free(r.cell);
	return status;
}

int crashtest_main(int argc, char **argv)
{
	struct arguments a = {.out = "traces", .options = campaign_default};
	struct campaign c = {0};
	const char *mistake;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	a.options.jobs = cores > 0 && cores < 256 ? (unsigned)cores : 1;
	int status = parse(&a, argc, argv);
	if (status >= 0)
		return status;
	unsigned line = expect_mistake(&mistake);
	if (line)
		return fail(EXIT_INTERNAL, "scenarios/expected.txt:%u: %s", line, mistake);
	c.config = calloc(MAX_CONFIGS, sizeof(*c.config));
	if (!c.config)
		return fail(EXIT_INTERNAL, "out of memory");
	status = add_configs(&c, &a);
	if (!status)
		status = add_workloads(&c, &a);
	if (!status && !a.no_traces)
		status = check_folder(a.out);
	if (!status) {
		c.options = a.options;
		if (isatty(STDERR_FILENO) && !a.quiet)
			c.options.progress = progress;
		status = run(&c, &a);
	}
	for (unsigned i = 0; i < c.workloads; i++)
		workload_free(&c.workload[i]);
	campaign_free_results(&c);
	free(c.workload);
	free(c.config);
	return status;
}
