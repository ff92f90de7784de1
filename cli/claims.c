/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark claims: run the claims, print what was expected and what was measured, write a trace
 * for each break. Units of work are single workloads of cases, the costly ones first; what they
 * find is put together in the order of the file, so the number of jobs changes no figure.
 */
#include "checker/claims.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "checker/names.h"
#include "checker/pool.h"
#include "checker/shrink.h"
#include "checker/trace.h"
#include "cli/claims.h"
#include "cli/cli.h"
#include "cli/report.h"

#define INDENT 8

/* A case of a claim that was asked for. */
struct run_case {
	const struct claim *claim;
	const struct claim_case *test;
	unsigned number; /* within the claim, from 1 */
	struct claim_result result;
	char *trace; /* file, NULL if none */
	char text[300];
	unsigned operations, deviations;
	bool whole; /* could not be shrunk */
};

/* What one process does at a time: a workload of a case; of a case that must fail, all of them. */
struct unit {
	unsigned at; /* index into claims_run.cases */
	unsigned workload;
	uint64_t cost;
	struct claim_result result;
};

struct claims_run {
	const struct claims_options *options;
	struct run_case *cases;
	unsigned n, room;
	struct unit *unit;
	unsigned units, done;
	uint64_t states;
	double started;
	unsigned traces;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- which --- */

static int add_claim(struct claims_run *r, const struct claim *claim)
{
	for (unsigned k = 0; k < claim->tests; k++) {
		if (r->n == r->room) {
			unsigned room = 2 * r->room + 64;
			struct run_case *grown = realloc(r->cases, room * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			r->cases = grown;
			r->room = room;
		}
		r->cases[r->n++] = (struct run_case){claim, &claim->test[k], k + 1, {0}, NULL, "", 0, 0,
						     false};
		r->units += claim->test[k].kind == CLAIM_FAIL ? 1 : claim->test[k].workloads;
	}
	return 0;
}

static int dearer(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->workload < y->workload ? -1 : x->workload > y->workload;
}

static int make_units(struct claims_run *r)
{
	unsigned n = 0;
	r->unit = calloc(r->units + 1, sizeof(*r->unit));
	if (!r->unit)
		return -ENOMEM;
	for (unsigned i = 0; i < r->n; i++) {
		const struct claim_case *test = r->cases[i].test;
		for (unsigned w = 0; w < (test->kind == CLAIM_FAIL ? 1 : test->workloads); w++, n++) {
			struct unit *unit = &r->unit[n];
			unit->at = i;
			unit->workload = w;
			/* What must break breaks soon. */
			if (test->kind != CLAIM_FAIL)
				unit->cost = (uint64_t)test->runs * workload_ops(&test->workload[w]);
		}
	}
	qsort(r->unit, r->units, sizeof(*r->unit), dearer);
	return 0;
}

/* --- running --- */

static void work(void *arg, unsigned unit, void *result)
{
	const struct claims_run *r = arg;
	const struct unit *u = &r->unit[unit];
	claim_run(r->cases[u->at].test, u->workload, &r->options->budget, result);
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct claims_run *r = arg;
	memcpy(&r->unit[unit].result, result, sizeof(struct claim_result));
	r->states += r->unit[unit].result.states;
	r->done++;
	double seconds = now() - r->started;
	if (!r->options->quiet)
		progress_line("%u of %u workloads of %u cases, %" PRIu64 " states, %.0f states/s", r->done,
			      r->units, r->n, r->states, (double)r->states / (seconds > 0 ? seconds : 1));
}

static int run_units(struct claims_run *r)
{
	struct pool pool = {r->units, r->options->jobs, sizeof(struct claim_result), work, take, NULL, r};
	_Static_assert(sizeof(struct claim_result) <= POOL_RESULT_MAX, "a result is one message");
	int error = make_units(r);
	if (!error && r->units)
		error = pool_run(&pool);
	progress_line(NULL);
	for (unsigned u = 0; u < r->units && !error; u++)
		claim_add(&r->cases[r->unit[u].at].result, &r->unit[u].result);
	if (error == -ECHILD)
		return fail(EXIT_INTERNAL,
			    "a worker process died before its work was done (killed, or no memory left?)");
	return error ? fail(EXIT_INTERNAL, "%s", strerror(-error)) : 0;
}

/* --- traces --- */

/* 0, or the status behind a message. */
static int write_trace(struct claims_run *r, struct run_case *c)
{
	const char *contract = contract_name(c->result.contract), *dir = r->options->out;
	struct deviations path = {0};
	struct setup s = {0};
	char *name = NULL;
	int status = 0;
	int error = claim_smallest(c->test, &c->result, &r->options->budget, &s, &path, c->text,
				   sizeof(c->text));
	c->whole = error;
	c->operations = workload_ops(&s.w);
	c->deviations = path.n;
	if (error == -ENOENT && !path.n)
		status = fail(EXIT_INTERNAL, "%s, case %u: run %" PRIu64 " does not break %s a second time",
			      c->claim->id, c->number, c->result.run, contract);
	else if (asprintf(&name, "%s/claims-%s-%u-%s.trace", dir, c->claim->id, c->number, contract) < 0)
		status = fail(EXIT_INTERNAL, "out of memory");
	if (!status && !r->options->no_traces) {
		signals_hold();
		error = trace_save(name, &s, &path, (int)c->result.contract, c->text);
		signals_release();
		if (error)
			status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s", name,
				      strerror(-error));
		else
			c->trace = name;
	}
	if (!c->trace)
		free(name);
	deviations_free(&path);
	setup_free(&s);
	return status;
}

static int write_traces(struct claims_run *r)
{
	unsigned broken = 0, done = 0;
	int status = 0;
	for (unsigned i = 0; i < r->n; i++)
		broken += r->cases[i].result.broken && r->cases[i].test->kind != CLAIM_COUNT;
	for (unsigned i = 0; i < r->n && !status; i++) {
		struct run_case *c = &r->cases[i];
		if (!c->result.broken || c->test->kind == CLAIM_COUNT)
			continue;
		if (!r->options->quiet)
			progress_line("shrinking and writing trace %u of %u", ++done, broken);
		status = write_trace(r, c);
		r->traces += c->trace != NULL;
	}
	progress_line(NULL);
	return status;
}

/* --- what people see --- */

static void contracts_text(unsigned set, char *buf, size_t n)
{
	size_t at = 0;
	buf[0] = '\0';
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (set & TM_BIT(k))
			at += (size_t)snprintf(buf + at, at < n ? n - at : 0, "%s%s", at ? ", " : "",
					       contract_name(k));
}

static void expected_text(const struct claim_case *test, char *buf, size_t n)
{
	char contracts[80];
	bool several = test->contracts & (test->contracts - 1);
	contracts_text(test->contracts, contracts, sizeof(contracts));
	snprintf(buf, n, "%s %s", contracts,
		 test->kind == CLAIM_PASS   ? (several ? "hold" : "holds")
		 : test->kind == CLAIM_FAIL ? (several ? "break: at least one" : "breaks")
					    : "counted");
}

static void measured_text(const struct run_case *c, char *buf, size_t n)
{
	const struct claim_case *test = c->test;
	const struct claim_result *m = &c->result;
	char contracts[80];
	contracts_text(test->contracts, contracts, sizeof(contracts));
	if (m->error)
		snprintf(buf, n, "cannot be run: %s", m->why);
	else if (test->kind == CLAIM_COUNT)
		snprintf(buf, n, "%s broken in %" PRIu64 " of %" PRIu64 " states (%.1f %%)", contracts,
			 m->broken_states, m->states,
			 m->states ? 100.0 * (double)m->broken_states / (double)m->states : 0);
	else if (m->broken)
		snprintf(buf, n, "%s breaks in workload %s, run %" PRIu64 "%s%s", contract_name(m->contract),
			 test->workload[m->workload].name, m->run, c->text[0] ? ": " : "", c->text);
	else
		snprintf(buf, n, "no break in %" PRIu64 " states of %" PRIu64 " runs%s", m->states, m->runs,
			 m->part ? "; not the whole budget" : "");
}

static const char *verdict_text(enum claim_verdict v)
{
	static const char *const text[] = {"as expected", "DIFFERS", "could not tell"};
	return text[v];
}

/* "erda/sure timeout=1ms: w-r w-w-r" */
static void case_text(const struct claim_case *test, char *buf, size_t n)
{
	const struct campaign_config *cfg = &test->config;
	bool plain = !strcmp(cfg->name, "default"), variant = strcmp(cfg->variant, "default");
	size_t at = (size_t)snprintf(buf, n, "%s%s%s%s%s:", cfg->store->name, variant ? "/" : "",
				     variant ? cfg->variant : "", plain ? "" : " ", plain ? "" : cfg->name);
	for (unsigned w = 0; w < test->workloads; w++)
		at += (size_t)snprintf(buf + at, at < n ? n - at : 0, " %s", test->workload[w].name);
}

static void print_field(const char *name, const char *text)
{
	printf("%*s%-9s ", INDENT + 2, "", name);
	print_wrapped(INDENT + 12, text);
}

static void print_heading(const struct claim *claim)
{
	char text[1024];
	snprintf(text, sizeof(text), "%s [%s]", claim->says, claim->source);
	printf("%-*s", INDENT, claim->id);
	if (strlen(claim->id) >= INDENT)
		printf("\n%*s", INDENT, "");
	print_wrapped(INDENT, text);
}

static void print_remarks(const struct claim *claim)
{
	const char *lead[] = {"note: ", "open: "}, *text[] = {claim->note, claim->open};
	for (unsigned i = 0; i < 2; i++) {
		if (!text[i])
			continue;
		char line[2048];
		snprintf(line, sizeof(line), "%s%s", lead[i], text[i]);
		printf("%*s", INDENT, "");
		print_wrapped(INDENT, line);
	}
}

static void print_case(const struct run_case *c)
{
	enum claim_verdict v = claim_judge(c->test, &c->result);
	const char *colour = !colours(stdout) ? "" : v == CLAIM_AS_EXPECTED ? "\033[32m" : "\033[31m";
	char text[2048];
	case_text(c->test, text, sizeof(text));
	printf("%*s", INDENT, "");
	print_wrapped(INDENT, text);
	expected_text(c->test, text, sizeof(text));
	print_field("expected", text);
	measured_text(c, text, sizeof(text));
	print_field("measured", text);
	printf("%*s%s%s%s\n", INDENT + 2, "", colour, verdict_text(v), *colour ? "\033[0m" : "");
	if (!c->trace)
		return;
	printf("%*s", INDENT + 2, "");
	print_word(program);
	fputs(" replay ", stdout);
	print_word(c->trace);
	printf("   (%u operation%s, %u deviation%s%s)\n", c->operations, c->operations == 1 ? "" : "s",
	       c->deviations, c->deviations == 1 ? "" : "s", c->whole ? "; could not be shrunk" : "");
}

static void print_results(const struct claims_run *r, const struct claim *const *claim, unsigned claims)
{
	unsigned at = 0, open = 0, count[3] = {0};
	double seconds = now() - r->started;
	for (unsigned i = 0; i < claims; i++) {
		print_heading(claim[i]);
		for (unsigned k = 0; k < claim[i]->tests; k++, at++) {
			print_case(&r->cases[at]);
			count[claim_judge(r->cases[at].test, &r->cases[at].result)]++;
		}
		print_remarks(claim[i]);
		putchar('\n');
		open += claim[i]->open != NULL;
	}
	printf("%u claims, %u cases: %u as expected, %u differ, %u could not be told; %u claims are open, "
	       "wholly or in part\n",
	       claims, r->n, count[CLAIM_AS_EXPECTED], count[CLAIM_DIFFERS], count[CLAIM_UNSURE], open);
	printf("%" PRIu64 " states in %.1f s, %u jobs\n", r->states, seconds, r->options->jobs);
	for (unsigned i = 0; i < r->n; i++) {
		enum claim_verdict v = claim_judge(r->cases[i].test, &r->cases[i].result);
		if (v != CLAIM_AS_EXPECTED)
			printf("scenarios/claims.txt:%u: %s: %s\n", r->cases[i].test->line,
			       r->cases[i].claim->id, verdict_text(v));
	}
}

/* --- for machines --- */

static json_t *case_json(const struct run_case *c)
{
	const struct claim_case *test = c->test;
	static const char *const kind[] = {"pass", "fail", "count"};
	static const char *const verdict[] = {"as expected", "differs", "could not tell"};
	json_t *workloads = json_array(), *contracts = json_array();
	char measured[1024];
	measured_text(c, measured, sizeof(measured));
	for (unsigned w = 0; w < test->workloads; w++)
		json_array_append_new(workloads, json_string(test->workload[w].name));
	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		if (test->contracts & TM_BIT(k))
			json_array_append_new(contracts, json_string(contract_name(k)));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s}", "store",
			 test->config.store->name, "variant", test->config.variant, "config",
			 test->config.name, "workloads", workloads, "contracts", contracts, "expected",
			 kind[test->kind], "verdict", verdict[claim_judge(test, &c->result)], "broken",
			 c->result.broken ? contract_name(c->result.contract) : "", "measured", measured,
			 "states", (json_int_t)c->result.states, "broken_states",
			 (json_int_t)c->result.broken_states, "runs", (json_int_t)c->result.runs, "trace",
			 c->trace ? c->trace : "");
}

static int write_json(const struct claims_run *r, const struct claim *const *claim, unsigned claims)
{
	json_t *list = json_array();
	unsigned at = 0;
	int error = list ? 0 : -ENOMEM;
	for (unsigned i = 0; i < claims && !error; i++) {
		json_t *cases = json_array();
		for (unsigned k = 0; k < claim[i]->tests; k++, at++)
			if (json_array_append_new(cases, case_json(&r->cases[at])))
				error = -ENOMEM;
		if (json_array_append_new(list,
					  json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "id", claim[i]->id,
						    "source", claim[i]->source, "says", claim[i]->says,
						    "note", claim[i]->note ? claim[i]->note : "", "open",
						    claim[i]->open ? claim[i]->open : "", "cases", cases)))
			error = -ENOMEM;
	}
	json_t *all = json_pack("{s:o, s:f, s:I, s:i}", "claims", list, "seconds", now() - r->started, "seed",
				(json_int_t)r->options->budget.seed, "jobs", (int)r->options->jobs);
	if (!all && !error)
		error = -ENOMEM;
	if (!error)
		error = json_save(all, r->options->json);
	json_decref(all);
	return error ? fail(EXIT_USAGE, "%s: %s", r->options->json, strerror(-error)) : 0;
}

static void print_list(const struct claim *const *claim, unsigned claims)
{
	for (unsigned i = 0; i < claims; i++) {
		print_heading(claim[i]);
		for (unsigned k = 0; k < claim[i]->tests; k++) {
			const struct claim_case *test = &claim[i]->test[k];
			char text[2048], expected[128];
			case_text(test, text, sizeof(text));
			printf("%*s", INDENT, "");
			print_wrapped(INDENT, text);
			expected_text(test, expected, sizeof(expected));
			snprintf(text, sizeof(text), "%s; %u runs of each workload", expected, test->runs);
			print_field("expected", text);
		}
		print_remarks(claim[i]);
		putchar('\n');
	}
}

/* --- the whole --- */

static int run_claims(const struct claims_options *o, const struct claim *const *claim, unsigned claims)
{
	struct claims_run r = {.options = o, .started = now()};
	enum claim_verdict worst = CLAIM_AS_EXPECTED;
	int status = 0;
	for (unsigned i = 0; i < claims && !status; i++)
		if (add_claim(&r, claim[i]))
			status = fail(EXIT_INTERNAL, "out of memory");
	if (!status)
		status = run_units(&r);
	if (!status) {
		/* Even if traces cannot be written, the results have cost too much to be thrown away. */
		status = write_traces(&r);
		print_results(&r, claim, claims);
		if (r.options->json && !status)
			status = write_json(&r, claim, claims);
	}
	for (unsigned i = 0; i < r.n; i++) {
		enum claim_verdict v = claim_judge(r.cases[i].test, &r.cases[i].result);
		if (v == CLAIM_DIFFERS || (v == CLAIM_UNSURE && worst == CLAIM_AS_EXPECTED))
			worst = v;
		free(r.cases[i].trace);
	}
	free(r.cases);
	free(r.unit);
	if (status)
		return status;
	return worst == CLAIM_DIFFERS ? EXIT_BROKEN : worst == CLAIM_UNSURE ? EXIT_UNSURE : EXIT_HELD;
}

/* The claims that are named, or all. 0, or the status behind a message. */
static int choose_claims(const struct claims *all, char **names, int n, const struct claim **claim,
			 unsigned *claims)
{
	*claims = 0;
	for (int i = 0; i < n; i++) {
		const struct claim *found = claim_find(all, names[i]);
		struct nearest near;
		nearest_init(&near, names[i]);
		for (unsigned k = 0; k < all->claims; k++)
			nearest_try(&near, all->claim[k].id);
		if (!found)
			return fail(EXIT_USAGE, "no claim \"%.40s\"%s (tidemark claims --list)", names[i],
				    near.hint);
		for (unsigned k = 0; k < *claims; k++)
			if (claim[k] == found)
				return fail(EXIT_USAGE, "claim %.40s twice; expected once", names[i]);
		claim[(*claims)++] = found;
	}
	for (unsigned k = 0; !n && k < all->claims; k++)
		claim[(*claims)++] = &all->claim[k];
	return 0;
}

static void help(void)
{
	puts("usage: tidemark claims [ID...] [OPTION...]\n"
	     "Tests what the papers claim of the stores, and hazards that they do not mention: says\n"
	     "what is expected of each, what was measured, and how to replay what broke.\n"
	     "Without an ID: all of scenarios/claims.txt.\n\n"
	     "  --list             what would be tested\n"
	     "  --knobs            set each switch alone instead, and say which verdicts it changes\n"
	     "  --states N         crash states of each workload at most (no bound)\n"
	     "  --seed N           of the schedules (1)\n"
	     "  --jobs N           processes (one for each core); results do not depend on it\n"
	     "  --out DIR          where traces go (traces); it is made if it does not exist\n"
	     "  --no-traces        write none\n"
	     "  --json FILE        the results for machines\n"
	     "  -q, --quiet        no progress\n"
	     "  --help             this text\n\n"
	     "exit status: 0 all as expected, 1 something turned out otherwise, 2 usage or bad input,\n"
	     "3 the budget was too small to tell, 70 internal error");
}

/* One option; false behind a message. */
static bool parse_option(struct claims_options *o, int option, const char *value)
{
	unsigned long long n = 0;
	bool good = true;
	switch (option) {
	case 's':
		good = number_option("--states", value, 1, UINT64_MAX / 2, &n);
		o->budget.states = n;
		break;
	case 'S':
		good = number_option("--seed", value, 0, UINT32_MAX, &n);
		o->budget.seed = n;
		break;
	case 'j':
		good = number_option("--jobs", value, 1, 256, &n);
		o->jobs = (unsigned)n;
		break;
	case 'o':
		o->out = value;
		break;
	case 'J':
		o->json = value;
		break;
	case 'n':
		o->no_traces = true;
		break;
	case 'l':
		o->list = true;
		break;
	case 'k':
		o->knobs = true;
		break;
	default:
		o->quiet = true;
	}
	return good;
}

/* -1: go on; else the exit status. */
static int parse(struct claims_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"list", no_argument, NULL, 'l'},
		{"knobs", no_argument, NULL, 'k'},
		{"states", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'S'},
		{"jobs", required_argument, NULL, 'j'},
		{"out", required_argument, NULL, 'o'},
		{"no-traces", no_argument, NULL, 'n'},
		{"json", required_argument, NULL, 'J'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":q", options, NULL)) != -1) {
		if (option == 'h') {
			help();
			return 0;
		}
		if (option == ':')
			return fail(EXIT_USAGE, "claims: %s wants a value", argv[optind - 1]);
		if (option == '?')
			return fail(EXIT_USAGE, "claims: unknown option \"%.40s\" (tidemark claims --help)",
				    argv[optind - 1]);
		if (!parse_option(o, option, optarg))
			return EXIT_USAGE;
	}
	if ((o->knobs || o->list) && (o->json || (o->knobs && (o->list || optind < argc))))
		return fail(EXIT_USAGE, "claims: --list and --knobs go with no other; --knobs with no ID");
	return -1;
}

int claims_main(int argc, char **argv)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct claims_options o = {
		.out = "traces",
		.jobs = cores > 0 && cores < 256 ? (unsigned)cores : 1,
		.budget = {.seed = 1, .states = UINT64_MAX},
	};
	struct input_error where;
	struct claims all;
	unsigned claims = 0;
	bool made = false;
	int status = parse(&o, argc, argv);
	if (status >= 0)
		return status;
	if (claims_read(&all, NULL, &where))
		return fail(EXIT_INTERNAL, "scenarios/claims.txt:%u: %s", where.line, where.message);
	const struct claim **claim = calloc(all.claims, sizeof(*claim));
	status = claim ? choose_claims(&all, argv + optind, argc - optind, claim, &claims)
		       : fail(EXIT_INTERNAL, "out of memory");
	if (!status && o.json)
		status = check_output("--json", o.json);
	if (!status && !o.no_traces && !o.list && !o.knobs)
		status = check_folder("--out", o.out, &made);
	if (!status && o.list)
		print_list(claim, claims);
	else if (!status)
		status = o.knobs ? claims_knobs(&o, &all) : run_claims(&o, claim, claims);
	if (made)
		rmdir(o.out); /* unless there is a trace in it */
	free(claim);
	claims_free(&all);
	return status;
}
