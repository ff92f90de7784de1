/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark mutants: are the seeded bugs found, and how soon? */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/hunt/mutants.h"
#include "checker/judge/names.h"
#include "checker/explore/pool.h"
#include "cli/cli.h"
#include "report/report.h"

#define MAX_MUTANTS 256

struct hunt {
	struct mutant mutant[MAX_MUTANTS];
	unsigned mutants;
	struct mutant_options options;
	unsigned jobs, done, missed, dirty, unsure;
	const char *json;
	bool quiet;
	/* results */
	struct answer {
		int error;
		struct mutant_result result;
	} answer[MAX_MUTANTS];
};

static void help(void)
{
	puts("usage: tidemark mutants [NAME...] [OPTION...]\n"
	     "Looks for each seeded bug (tidemark list bugs) as crashtest would, until it is "
	     "found.\n"
	     "Without a NAME: all. A NAME is a bug, or a store, or a part of Tidemark: all of its "
	     "bugs.\n\n"
	     "  --jobs N     processes (one for each core); results but the times do not depend on "
	     "it\n"
	     "  --seed N     of the schedules (1)\n"
	     "  --states N   crash states of the search for one bug at most (1000000)\n"
	     "  --json FILE  the results for machines\n"
	     "  -q, --quiet  no progress\n"
	     "  --help       this text\n\n"
	     "exit status: 0 all are found and the controls are clean, 1 not so, 2 usage or bad "
	     "input,\n"
	     "70 internal error");
}

static void work(void *arg, unsigned unit, void *result)
{
	struct hunt *h = arg;
	struct answer *a = result;
	a->error = mutant_search(&h->mutant[unit], &h->options, &a->result);
}

static void take(void *arg, unsigned unit, const void *result)
{
	struct hunt *h = arg;
	h->answer[unit] = *(const struct answer *)result;
	h->done++;
	if (!h->quiet)
		progress_line("%u of %u bugs and controls; the last was %s %s", h->done, h->mutants,
			      h->mutant[unit].part, h->mutant[unit].name);
}

/* --- the table --- */

static const char *breaks(const struct mutant *m, char *buf, size_t n)
{
	size_t at = 0;
	buf[0] = '\0';
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (m->breaks & TM_BIT(c))
			at += (size_t)snprintf(buf + at, n - at, "%s%s", at ? " " : "",
					       contract_name(c));
	return buf;
}

/* "KEEP in efactory w, ack_early=off" */
static void print_where(const struct mutant *m, const struct mutant_result *r)
{
	printf("%s, ", r->contract < TM_CONTRACTS ? contract_name(r->contract) : "rule");
	if (m->kind != MUTANT_STORE && r->store[0])
		printf("%s%s%s ", r->store, strcmp(r->variant, "default") ? " " : "",
		       strcmp(r->variant, "default") ? r->variant : "");
	printf("%s%s%s", r->workload, r->hardware[0] ? ", " : "", r->hardware);
}

/* What a mutant of the checker misses. */
static void print_checker(const struct mutant *m, const struct mutant_result *r)
{
	const struct canary *c = m->canary;
	printf("  %-9s %-22s ", m->part, m->name);
	if (!r->found)
		printf("NOT NOTICED: %s %s is found as ever\n", c->store, c->variant);
	else if (!strcmp(m->name, checker_mutants[CHECKER_SHRINK_ANY].name))
		printf("%s %s: the shrunk trace breaks another contract\n", c->store, c->variant);
	else
		printf("%s %s%s%s%s is missed in %" PRIu64 " runs, %" PRIu64
		       " states (else %s, %s%s%s)\n",
		       c->store, c->variant, c->knob ? ", " : "", c->knob ? c->knob : "",
		       c->knob ? (!strcmp(c->value, "off") ? "=off" : "=on") : "", r->runs,
		       r->states, contract_name(r->contract), r->workload,
		       r->hardware[0] ? ", " : "", r->hardware);
}

static void print_row(const struct mutant *m, const struct mutant_result *r)
{
	char set[64];
	if (m->kind == MUTANT_CHECKER) {
		print_checker(m, r);
		return;
	}
	printf("  %-9s %-22s %-14s ", m->part, m->name, breaks(m, set, sizeof(set)));
	if (!r->found) {
		printf("NOT FOUND in %" PRIu64 " runs, %" PRIu64 " states, %.1f s\n", r->runs,
		       r->states, r->seconds);
		return;
	}
	printf("%6" PRIu64 " runs %7" PRIu64 " states %7.3f s  ", r->runs, r->states, r->seconds);
	if (r->shrunk)
		printf("%u op%s %2u dev  ", r->operations, r->operations == 1 ? " " : "s",
		       r->deviations);
	else if (r->contract < TM_CONTRACTS)
		printf("not shrunk   ");
	else
		printf("      %2u dev  ", r->deviations);
	print_where(m, r);
	putchar('\n');
}

static void print_control(const struct mutant *m, const struct mutant_result *r)
{
	char set[64];
	printf("  %-9s %-8s %-14s ", m->part, m->name,
	       m->ack_early || !m->store ? "" : "ack_early=off");
	if (r->found && !m->store) {
		printf("BREAKS %s: %s\n", r->workload, r->text);
		return;
	}
	if (r->found) {
		printf("BREAKS %s in run %" PRIu64 " of %s: %s\n", contract_name(r->contract),
		       r->run, r->workload, r->text);
		return;
	}
	printf("%s: clean, %" PRIu64 " runs, %" PRIu64 " states, %.1f s\n",
	       breaks(m, set, sizeof(set)), r->runs, r->states, r->seconds);
}

static int by_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_summary(const struct hunt *h)
{
	double seconds[MAX_MUTANTS];
	unsigned n = 0, bugs = 0, slowest = 0;
	for (unsigned i = 0; i < h->mutants; i++) {
		const struct mutant_result *r = &h->answer[i].result;
		if (h->mutant[i].kind == MUTANT_CONTROL)
			continue;
		bugs++;
		if (!r->found || h->mutant[i].kind == MUTANT_CHECKER)
			continue;
		if (!n || r->seconds > h->answer[slowest].result.seconds)
			slowest = i;
		seconds[n++] = r->seconds;
	}
	printf("\nfound %u of %u", bugs - h->missed, bugs);
	if (n) {
		qsort(seconds, n, sizeof(seconds[0]), by_seconds);
		printf("; to the first failure: median %.3f s, slowest %.1f s (%s %s)",
		       n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
		       seconds[n - 1], h->mutant[slowest].part, h->mutant[slowest].name);
	}
	putchar('\n');
	if (h->unsure)
		printf("%u trace%s could not be shrunk, or did not replay\n", h->unsure,
		       h->unsure == 1 ? "" : "s");
}

static void print_kind(const struct hunt *h, enum mutant_kind kind, const char *title)
{
	bool any = false;
	for (unsigned i = 0; i < h->mutants; i++) {
		if (h->mutant[i].kind != kind)
			continue;
		if (!any)
			puts(title);
		any = true;
		if (kind == MUTANT_CONTROL)
			print_control(&h->mutant[i], &h->answer[i].result);
		else
			print_row(&h->mutant[i], &h->answer[i].result);
	}
}

static void print_table(const struct hunt *h)
{
	print_kind(h, MUTANT_STORE, "bugs of stores: one of the contracts that they name breaks");
	print_kind(h, MUTANT_MODEL,
		   "\nbugs of the emulated hardware: a rule of it breaks, or a store that is right "
		   "seems wrong");
	print_kind(h, MUTANT_CHECKER,
		   "\nmutants of the checker: a bug that is found otherwise is missed");
	print_kind(h, MUTANT_CONTROL,
		   "\ncontrols, without a bug: what each store keeps, so that its breaking counts");
	print_summary(h);
}

/* --- for machines --- */

static json_t *mutant_json(const struct mutant *m, const struct mutant_result *r)
{
	static const char *const kinds[] = {"store", "model", "checker", "control"};
	char set[64];
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:b, "
			 "s:i, s:i, s:s}",
			 "kind", kinds[m->kind], "part", m->part, "name", m->name, "breaks",
			 breaks(m, set, sizeof(set)), "found", r->found, "contract",
			 r->contract < TM_CONTRACTS ? contract_name(r->contract) : "", "store",
			 r->store, "variant", r->variant, "hardware", r->hardware, "workload",
			 r->workload, "runs", (json_int_t)r->runs, "states", (json_int_t)r->states,
			 "seconds", r->seconds, "shrunk", r->shrunk, "operations",
			 (int)r->operations, "deviations", (int)r->deviations, "how", r->text);
}

static int write_json(const struct hunt *h)
{
	json_t *all = json_array();
	int error = all ? 0 : -ENOMEM;
	for (unsigned i = 0; i < h->mutants && !error; i++)
		if (json_array_append_new(all, mutant_json(&h->mutant[i], &h->answer[i].result)))
			error = -ENOMEM;
	if (!error)
		error = json_save(all, h->json);
	json_decref(all);
	return error ? fail(EXIT_USAGE, "%s: %s", h->json, strerror(-error)) : 0;
}

/* --- what was asked for --- */

static bool is_named(const struct mutant *m, const char *name)
{
	return !strcmp(m->name, name) || !strcmp(m->part, name);
}

/* Does what is found of `m` rest on this control? */
static bool rests_on(const struct mutant *m, const struct mutant *control)
{
	switch (m->kind) {
	case MUTANT_STORE:
		return m->store == control->store;
	case MUTANT_MODEL:
		return true;
	case MUTANT_CHECKER:
		return !strcmp(m->canary->store, control->part);
	default:
		return false;
	}
}

static int choose(struct hunt *h, char **name, int names)
{
	struct mutant *all = calloc(MAX_MUTANTS, sizeof(*all));
	unsigned n = all ? mutants_list(all, MAX_MUTANTS) : 0;
	int status = 0;
	if (!all)
		return fail(EXIT_INTERNAL, "out of memory");
	if (n > MAX_MUTANTS)
		status = fail(EXIT_INTERNAL, "mutants: more than %d seeded bugs", MAX_MUTANTS);
	for (int k = 0; k < names && !status; k++) {
		struct nearest near;
		bool known = false;
		nearest_init(&near, name[k]);
		for (unsigned i = 0; i < n; i++) {
			known |= all[i].kind != MUTANT_CONTROL && is_named(&all[i], name[k]);
			nearest_try(&near, all[i].name);
		}
		if (!known)
			status = fail(EXIT_USAGE,
				      "mutants: no seeded bug \"%.40s\"%s (tidemark list bugs)",
				      name[k], near.hint);
	}
	for (unsigned i = 0; i < n && !status; i++) {
		bool wanted = !names, control = all[i].kind == MUTANT_CONTROL;
		for (int k = 0; k < names && !control; k++)
			wanted |= is_named(&all[i], name[k]);
		for (unsigned j = 0; j < h->mutants && control; j++)
			wanted |= rests_on(&h->mutant[j], &all[i]); /* bugs stand before controls */
		if (wanted)
			h->mutant[h->mutants++] = all[i];
	}
	free(all);
	return status;
}

static int parse(struct hunt *h, int argc, char **argv)
{
	static const struct option options[] = {
		{"jobs", required_argument, NULL, 'j'},
		{"seed", required_argument, NULL, 's'},
		{"states", required_argument, NULL, 'n'},
		{"json", required_argument, NULL, 'o'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	unsigned long long n = 0;
	int option;
	bool good = true;
	opterr = 0;
	while (good && (option = getopt_long(argc, argv, ":q", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			good = number_option("--jobs", optarg, 1, 256, &n);
			h->jobs = (unsigned)n;
			break;
		case 's':
			good = number_option("--seed", optarg, 0, UINT32_MAX, &n);
			h->options.seed = n;
			break;
		case 'n':
			good = number_option("--states", optarg, 1, UINT64_MAX / 2, &n);
			h->options.states = n;
			break;
		case 'o':
			h->json = optarg;
			break;
		case 'q':
			h->quiet = true;
			break;
		case 'h':
			help();
			return 0;
		default:
			return refuse_option("mutants", option, argv[optind - 1]);
		}
	}
	if (!good)
		return EXIT_USAGE;
	if (h->json && check_output("--json", h->json))
		return EXIT_USAGE;
	int status = choose(h, argv + optind, argc - optind);
	return status ? status : -1;
}

/* 0, or the status behind a message. */
static int check_answers(struct hunt *h)
{
	for (unsigned i = 0; i < h->mutants; i++) {
		const struct mutant *m = &h->mutant[i];
		const struct answer *a = &h->answer[i];
		if (a->error)
			return fail(EXIT_INTERNAL, "mutants: %s %s: %s", m->part, m->name,
				    a->error == -EIO ? a->result.text : strerror(-a->error));
		if (m->kind == MUTANT_CONTROL) {
			h->dirty += a->result.found;
			continue;
		}
		h->missed += !a->result.found;
		h->unsure += a->result.found && m->kind == MUTANT_STORE && !a->result.shrunk;
	}
	return 0;
}

int mutants_main(int argc, char **argv)
{
	struct hunt *h = calloc(1, sizeof(*h));
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (!h)
		return fail(EXIT_INTERNAL, "out of memory");
	h->options = mutant_default;
	h->jobs = cores > 0 && cores < 256 ? (unsigned)cores : 1;
	int status = parse(h, argc, argv);
	if (status < 0) {
		struct pool pool = {.units = h->mutants,
				    .jobs = h->jobs,
				    .result_bytes = sizeof(struct answer),
				    .work = work,
				    .take = take,
				    .arg = h};
		int error = pool_run(&pool);
		progress_line(NULL);
		status = error ? fail(EXIT_INTERNAL, "mutants: a worker process: %s",
				      strerror(-error))
			       : check_answers(h);
		if (!status) {
			print_table(h);
			status = h->json ? write_json(h) : 0;
		}
		if (!status && (h->missed || h->dirty || h->unsure))
			status = EXIT_BROKEN;
	}
	free(h);
	return status;
}
