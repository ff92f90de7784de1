/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark taxonomy: measure each method of appending on each kind of hardware, write a trace for
 * each way in which one is not sound, and compare with what the papers' tables say. The same
 * for one kind of hardware, as advice (report/models/taxonomy_advise.c).
 */
#include "report/models/taxonomy_report.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "cli/arguments.h"
#include "cli/cli.h"
#include "core/clock.h"
#include "report/text.h"
#include "scenarios/stores.h"
#include "core/text/text.h"

#define TABLE_MAX    ((size_t)1 << 16) /* bytes of the file of --table */
#define WORKLOAD_OPS 8		       /* more could not be searched to the end */

/* --- asked for --- */

struct asked {
	struct taxonomy_request request;
	const char *knob[OPTION_NAMES];
	const char *workload, *table;
	bool no_traces;
	struct leave_off leave_off;
};

#define ASKED(member) OPTION_FIELD(struct asked, member)

/* The mistake in a knob; NULL: there is none that can be seen before it is set. */
static const char *knob_mistake(const struct asked *a, const char *text, size_t len)
{
	if (!text[len] || !len)
		return "expected NAME=VALUE";
	if (len == strlen("method") && !strncmp(text, "method", len))
		return "methods are named by themselves; expected \"tidemark taxonomy METHOD...\"";
	for (unsigned i = 0; i < a->request.options.knobs.knobs; i++)
		if (!strncmp(a->knob[i], text, len + 1))
			return "named twice; expected once";
	return a->request.options.knobs.knobs == OPTION_NAMES ? "one knob too many" : NULL;
}

static bool add_knob(struct asked *a, const char *text)
{
	const char *mistake = knob_mistake(a, text, strcspn(text, "="));
	if (mistake)
		fail(EXIT_USAGE, "taxonomy: knob \"%.60s\": %s", text, mistake);
	else
		a->knob[a->request.options.knobs.knobs++] = text;
	return !mistake;
}

static bool take_knob(const struct option_row *row, void *into, const char *text)
{
	(void)row;
	return add_knob(into, text);
}

static const struct option_row rows[] = {
	{"advise", NULL,
	 "of the hardware that is named (all else at its default): the cheapest sound method, its "
	 "steps, what it costs, and what is wrong with a cheaper one",
	 ASKED(request.advise)},
	{"knob", "NAME=VALUE",
	 "a knob of the hardware or of the store, for all cells; may be repeated. domain, ddio, "
	 "rqwrb, transport: only cells that have it",
	 OPTION_CALL(take_knob)},
	{"workload", "NAME", "what the clients do (=)", ASKED(workload)},
	{"preemptions", "N", "how often tasks and packets are delayed in one run (=)",
	 ASKED(request.options.preemptions), 0, SYSTEMATIC_BOUND},
	{"states", "N", "crash states of each cell at most (=)", ASKED(request.options.states), 1,
	 UINT64_MAX / 2},
	OPTION_JOBS(struct asked, leave_off.how.jobs),
	ROW_TIME(struct asked, leave_off),
	ROW_FAIL_FAST(struct asked, leave_off,
		      "leave off at the first cell that differs from the table"),
	{"table", "FILE", "compare with this one instead of scenarios/taxonomy/taxonomy.txt",
	 ASKED(table)},
	{"out", "DIR", "where traces go (=); it is made if it does not exist", ASKED(request.out),
	 .use = OPTION_SHOWS},
	{"no-traces", NULL, "write none", ASKED(no_traces)},
	ROWS_RESULTS,
	OPTION_QUIET(struct asked, leave_off.quiet),
	ROWS_SHARD(struct asked, leave_off.shard),
	OPTION_END};

static const struct options options = {
	"taxonomy", "[METHOD...] [OPTION...]\n--advise [NAME=VALUE...] [OPTION...]",
	"Which way of making a remote update durable is sound on which hardware? Runs a store's "
	"methods (tidemark list knobs) in all domains, with DDIO on and off, receive buffers in "
	"DRAM and PM, over InfiniBand and iWARP; compares with the papers' tables; writes a trace "
	"of each way in which one is not sound. docs/taxonomy.md explains it.",
	rows,
	"0 all cells are as the table says, 1 one differs, 2 usage or bad input, 3 could not tell "
	"(--time, or --states was too small), 70 internal error, " STATUS_LEFT_OFF};

static bool add_method(struct asked *a, const char *name)
{
	int method = taxonomy_find_method(name);
	struct nearest n;
	nearest_init(&n, name);
	for (unsigned m = 0; m < taxonomy_methods(); m++)
		nearest_try(&n, taxonomy_method(m));
	if (method < 0) {
		fail(EXIT_USAGE, "%s has no method \"%.40s\"%s (tidemark list knobs)",
		     method_store()->name, name, n.hint);
		return false;
	}
	a->request.methods |= (uint64_t)1 << method;
	return true;
}

/* -1: go on; else the exit status. */
static int parse(struct asked *a, int argc, char **argv)
{
	struct taxonomy_request *r = &a->request;
	int status = options_read(&options, a, argc, argv);
	if (status >= 0)
		return status;
	for (; optind < argc; optind++)
		if (r->advise ? !add_knob(a, argv[optind]) : !add_method(a, argv[optind]))
			return EXIT_USAGE;
	if (r->advise && results_asked())
		return fail(EXIT_USAGE,
			    "taxonomy: --advise goes without --json, --junit and --html");
	if (r->advise && shard_is_asked(&a->leave_off.shard))
		return fail(EXIT_USAGE, "taxonomy: --advise goes without --shard and --results");
	r->options.traces = !a->no_traces;
	r->all = !r->methods;
	if (r->all)
		r->methods = UINT64_MAX;
	return -1;
}

/* --- running --- */

struct going {
	const struct taxonomy_report *report;
	struct leave_off *leave_off;
};

static void taken(void *arg, const struct taxonomy_cell *cell)
{
	const struct going *g = arg;
	if (taxonomy_compare(g->report, cell) == TAXONOMY_DIFFERS)
		leave_off_found(g->leave_off);
}

/* Did it go well? 0, or the status after a message. */
static int check_run(const struct taxonomy *t, int error)
{
	char config[TAXONOMY_CONFIG];
	if (error)
		return fail(EXIT_INTERNAL, "%s", driver_error(error));
	for (unsigned i = 0; i < t->cells; i++) {
		const struct taxonomy_cell *cell = &t->cell[i];
		if (!cell->result.error)
			continue;
		taxonomy_config(t, cell->column, cell->transport, config, sizeof(config));
		return fail(cell->result.error == -EIO ? EXIT_USAGE : EXIT_INTERNAL,
			    "method %s at %s could not be measured: %s",
			    taxonomy_method(cell->method), config, cell->result.why);
	}
	return 0;
}

/* --- the whole --- */

static int report(struct taxonomy_report *r, struct taxonomy *t, const struct leave_off *l)
{
	const struct taxonomy_request *request = r->request;
	/* Even if traces cannot be written, the rest has cost too much to be thrown away. */
	char why[REPORT_WHY];
	int error = request->options.traces ? taxonomy_write_traces(r, t, why) : 0;
	bool ours = error == -ENOMEM || error == -ENOTRECOVERABLE;
	int status = error ? fail(ours ? EXIT_INTERNAL : EXIT_USAGE, "%s", why) : 0;
	taxonomy_conclude(r, &r->conclusion);
	leave_off_conclude(l, &r->conclusion, t->cells - r->unmeasured, t->cells, "cells are done");
	/* Advice is of the cheapest method, which is not known before the end. */
	if (!request->advise)
		return leave_off_tell(l, &r->conclusion, taxonomy_tree(r), "taxonomy", status);
	json_t *advice = taxonomy_advice(r);
	if (!l->early)
		text_print(advice, "taxonomy_advise");
	else
		leave_off_print(l, &r->conclusion);
	json_decref(advice);
	return status ? status : r->conclusion.status;
}

static unsigned unmeasured(const struct taxonomy *t)
{
	unsigned n = 0;
	for (unsigned i = 0; i < t->cells; i++)
		n += !t->cell[i].result.measured;
	return n;
}

static int run_taxonomy(struct asked *a, struct taxonomy *t, const struct taxonomy_table *table)
{
	const struct taxonomy_request *request = &a->request;
	struct leave_off *l = &a->leave_off;
	double started = clock_seconds();
	int status = leave_off_begin(l);
	if (status)
		return status;
	struct taxonomy_report r = {.request = request, .t = t, .table = table};
	struct going g = {&r, l};
	t->options.how = l->how;
	t->options.taken = taken;
	t->options.taken_arg = &g;
	int error = request->advise
			    ? taxonomy_run_cheapest(t, t->cell[0].column, t->cell[0].transport)
			    : taxonomy_run(t);
	status = leave_off_end(l, &error);
	if (status >= 0)
		return status;
	r.unmeasured = l->early ? unmeasured(t) : 0;
	status = check_run(t, error);
	if (status)
		return status;
	r.trace = calloc(t->cells + 1, sizeof(*r.trace));
	if (!r.trace)
		return fail(EXIT_INTERNAL, "out of memory");
	r.seconds = clock_seconds() - started;
	status = report(&r, t, l);
	for (unsigned i = 0; i < t->cells; i++)
		for (unsigned b = 0; b < TAXONOMY_BREAKS; b++)
			free(r.trace[i][b]);
	free(r.trace);
	return leave_off_status(l, status);
}

/* --- input --- */

/* The table of --table, or the one that is compiled in. 0, or the status after a message. */
static int read_table(const char *path, struct taxonomy_table *table)
{
	struct input_error where;
	char *text = NULL;
	if (path) {
		size_t len;
		int rc;
		text = text_read_path(path, TABLE_MAX, &len, &where, &rc);
		if (!text)
			return input_status(path, rc, &where);
		if (len > TABLE_MAX || memchr(text, '\0', len)) {
			free(text);
			return fail(EXIT_USAGE, "%s: expected a text of at most %zu bytes", path,
				    TABLE_MAX);
		}
	}
	int error = taxonomy_read(table, text, &where);
	free(text);
	if (error == -ENOMEM)
		return fail(EXIT_INTERNAL, "out of memory");
	if (error)
		return fail(path ? EXIT_USAGE : EXIT_INTERNAL, "%s%s: %s",
			    path ? path : "scenarios/taxonomy/taxonomy.txt",
			    input_place(&where).text, where.message);
	return 0;
}

/* 0, or the status after a message. */
static int open_all(struct asked *a, struct taxonomy *t, struct workload *w)
{
	const char *expected = "";
	unsigned bad = 0;
	int error = workload_named(a->workload, w, &expected);
	if (error == -ENOMEM)
		return fail(EXIT_INTERNAL, "out of memory");
	if (error)
		return fail(EXIT_USAGE,
			    "taxonomy: workload \"%.40s\": expected %s (tidemark list workloads)",
			    a->workload, error == -EINVAL ? expected : "a built-in one");
	if (workload_ops(w) > WORKLOAD_OPS || w->keys > WORKLOAD_OPS)
		return fail(EXIT_USAGE,
			    "taxonomy: workload %.40s: expected at most %d operations and keys",
			    a->workload, WORKLOAD_OPS);
	if (workload_cleans(w) && !method_store()->clean)
		return fail(EXIT_USAGE,
			    "taxonomy: workload %.40s cleans the log; expected one that does not",
			    a->workload);
	a->request.options.workload = w;
	error = taxonomy_open(t, &a->request.options, a->request.methods, &bad, &expected);
	if (error == -EINVAL)
		return fail(EXIT_USAGE, "taxonomy: knob \"%.60s\": expected one of: %s",
			    a->knob[bad], expected);
	return error ? fail(EXIT_INTERNAL, "out of memory") : 0;
}

int taxonomy_main(int argc, char **argv)
{
	struct asked a = {.request = {.out = "traces",
				      .options = {.preemptions = campaign_default.preemptions,
						  .states = UINT64_MAX}},
			  .workload = "w",
			  .leave_off.how.jobs = arguments_jobs()};
	struct taxonomy_table table = {0};
	struct workload w = {0};
	struct taxonomy t = {0};
	if (!method_store())
		return fail(EXIT_USAGE, "taxonomy: no store offers methods of appending");
	int status = parse(&a, argc, argv);
	if (status >= 0)
		return status;
	if (a.request.advise)
		a.request.options.knobs.knobs = taxonomy_name_hardware(
			a.knob, a.request.options.knobs.knobs, OPTION_NAMES);
	a.request.options.knobs.knob = a.knob;
	a.request.table_name = a.table ? a.table : "scenarios/taxonomy/taxonomy.txt";
	note_input(a.table);
	status = read_table(a.table, &table);
	if (!status)
		status = open_all(&a, &t, &w);
	if (!status)
		status = leave_off_check(&a.leave_off, a.no_traces ? NULL : a.request.out);
	if (!status)
		status = run_taxonomy(&a, &t, &table);
	taxonomy_close(&t);
	taxonomy_free(&table);
	workload_free(&w);
	return status;
}
