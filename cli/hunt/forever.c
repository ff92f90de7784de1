/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark fuzz --forever: a campaign that lives in a folder (forever_folder.h), in as many
 * sessions as there are.
 *
 * All stores stay open, and have a round each in turn. After its round a store's new inputs are
 * written; a new failure is, as soon as it is shrunk; the sums are every half minute. So a process
 * that is killed has lost no more than that.
 *
 * A session draws from a seed of its own, made of the campaign's and the session's number: with the
 * same seed it would change the inputs of the corpus as the session before has changed them.
 */
#include "cli/hunt/forever.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/judge/expect.h"
#include "cli/cli.h"
#include "cli/hunt/forever_folder.h"
#include "cli/hunt/fuzz_files.h"
#include "core/clock.h"
#include "report/hunt/hunt_report.h"
#include "report/output.h"
#include "core/text/text.h"

#define SUMS_SECONDS 30
/* After so many runs a store may shrink as many cases of a contract again as a session of tidemark
 * fuzz does. */
#define CASES_RUNS 1000000

/* What a store did. */
struct forever_turn {
	char *corpus;	       /* its folder */
	unsigned saved_inputs; /* of the corpus in memory */
	uint64_t next_cases;   /* runs until more cases are shrunk */
};

struct forever {
	const struct arguments *a;
	struct forever_folder folder;
	struct fuzz_session session;
	struct fuzz_report report;
	struct fuzz_turn *turn;
	struct forever_turn *more; /* of each turn */
	unsigned turns;
	unsigned number; /* of the session, from 1 */
	struct driver_bounds bounds;
	double start;
	json_t *before; /* the sums of earlier sessions; NULL: there were none */
	double next_sums;
	int status; /* of what went wrong */
};

/* --- sums --- */

/* 0 if there is none, or if it is nothing that a campaign comes to. */
static double sum_of(const json_t *of, const char *name)
{
	double sum = json_number_value(json_object_get(of, name));
	return sum >= 0 && sum < FOREVER_SUM_MAX ? sum : 0;
}

static void add_to(json_t *sums, const char *name, double more)
{
	json_object_set_new(sums, name, json_integer((json_int_t)(sum_of(sums, name) + more)));
}

/* What earlier sessions did with the store, and this one. */
static json_t *store_sums(const struct forever *f, unsigned i)
{
	const struct fuzz *fuzz = &f->turn[i].fuzz;
	const json_t *before = json_object_get(json_object_get(f->before, "stores"),
					       f->turn[i].config->store->name);
	double features = sum_of(before, "features"); /* which a session reaches anew */
	if (features < (double)fuzz->features)
		features = (double)fuzz->features;
	return json_pack("{s:I, s:I, s:I, s:I}", "runs",
			 (json_int_t)(sum_of(before, "runs") + (double)fuzz->counts.runs), "states",
			 (json_int_t)(sum_of(before, "states") + (double)fuzz->counts.states),
			 "features", (json_int_t)features, "inputs",
			 (json_int_t)forever_count_inputs(f->more[i].corpus));
}

static unsigned count_failures(const struct fuzz_session *s)
{
	unsigned n = 0;
	for (unsigned i = 0; i < s->knowns; i++)
		n += s->known[i].trace && !s->known[i].accepted;
	return n;
}

static json_t *make_sums(const struct forever *f)
{
	static const char *const sums[] = {"runs", "states", "features", "inputs"};
	json_t *all = json_pack("{s:i, s:f, s:i}", "session", (int)f->number, "seconds",
				sum_of(f->before, "seconds") + clock_seconds() - f->start,
				"failures", (int)count_failures(&f->session));
	json_t *stores = json_object();
	for (unsigned i = 0; i < f->turns && all; i++) {
		json_t *store = store_sums(f, i);
		for (unsigned s = 0; s < 4; s++)
			add_to(all, sums[s], sum_of(store, sums[s]));
		json_object_set_new(stores, f->turn[i].config->store->name, store);
	}
	json_object_set_new(all, "stores", stores);
	return all;
}

static int save_sums(struct forever *f)
{
	f->next_sums = clock_seconds() + SUMS_SECONDS;
	return forever_keep_sums(&f->folder, make_sums(f));
}

static void keep_sums(struct forever *f)
{
	if (!f->status && clock_seconds() >= f->next_sums)
		f->status = save_sums(f);
}

/* --- a store --- */

static void save_inputs(struct forever *f, unsigned i)
{
	struct forever_turn *m = &f->more[i];
	if (!f->status)
		f->status = fuzz_save_corpus(m->corpus, &f->turn[i], &m->saved_inputs);
}

/* What contains the new cause is not a cause of its own. */
static int retire_larger(struct forever *f, const struct fuzz_known *k)
{
	int status = 0;
	for (unsigned i = 0; i < f->session.knowns && !status; i++) {
		struct fuzz_known *other = &f->session.known[i];
		if (other == k || !other->trace || other->accepted ||
		    !fingerprint_contains(&other->fingerprint, &k->fingerprint))
			continue;
		status = forever_set_aside(&f->folder, other->trace,
					   "a smaller trace has its cause");
		free(other->trace);
		other->trace = NULL;
	}
	return status;
}

static int save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run)
{
	struct forever *f = t->arg;
	int error = fuzz_save_case(t, k, run, f->a->out);
	if (!error && !f->status)
		f->status = retire_larger(f, k);
	return error;
}

/* It may take longer than half a minute. */
static void before_shrinking(const struct fuzz_turn *t, unsigned contract)
{
	struct forever *f = t->arg;
	save_inputs(f, (unsigned)(t - f->turn));
	keep_sums(f);
	if (!f->a->leave_off.quiet)
		fuzz_show_shrinking(t, contract);
}

static void show_progress(const struct forever *f, const struct fuzz_turn *t)
{
	const unsigned failures = count_failures(&f->session);
	char text[64];
	snprintf(text, sizeof(text), "; %u failure%s in all; %.0f s", failures, plural(failures),
		 clock_seconds() - f->start);
	fuzz_progress(t, text);
}

static void run_round(struct forever *f, unsigned i)
{
	struct fuzz_turn *t = &f->turn[i];
	if (!f->a->leave_off.quiet)
		show_progress(f, t);
	if (t->fuzz.counts.runs >= f->more[i].next_cases) {
		memset(t->cases, 0, sizeof(t->cases));
		f->more[i].next_cases += CASES_RUNS;
	}
	int error = fuzz_turn_round(t);
	if (error && !f->status)
		f->status = fuzz_fail(t, error);
	save_inputs(f, i);
	keep_sums(f);
}

static void run_rounds(struct forever *f)
{
	bool more = true;
	while (more && !f->status) {
		more = false;
		for (unsigned i = 0; i < f->turns && !f->status; i++) {
			if (!fuzz_more(&f->turn[i].fuzz))
				continue;
			more = true;
			run_round(f, i);
		}
	}
	progress_line(NULL);
}

/* --- a session --- */

static int open_turn(struct forever *f, unsigned i, const struct campaign_config *cfg)
{
	const struct arguments *a = f->a;
	struct fuzz_turn *t = &f->turn[i];
	struct forever_turn *m = &f->more[i];
	uint64_t seed = XXH3_64bits_withSeed(&f->number, sizeof(f->number), a->options.seed);
	*t = (struct fuzz_turn){.session = &f->session,
				.config = cfg,
				.save = save_case,
				.shrinking = before_shrinking,
				.arg = f,
				.start = f->start};
	f->turns = i + 1;
	int status = fuzz_begin(t, a, seed, a->seconds_given ? f->start + a->seconds : 0,
				&f->bounds);
	if (!status)
		status = forever_tidy_corpus(&f->folder, cfg->store->name);
	return status ? status : fuzz_open_corpus(a, t, &m->corpus);
}

static int open_turns(struct forever *f, const struct campaign *c)
{
	int status = 0;
	f->before = json_incref(f->folder.sums);
	f->number = 1 + (unsigned)sum_of(f->before, "session");
	f->turn = calloc(c->configs, sizeof(*f->turn));
	f->more = calloc(c->configs, sizeof(*f->more));
	if (!f->turn || !f->more)
		return no_memory();
	for (unsigned i = 0; i < c->configs && !status; i++)
		status = open_turn(f, i, &c->config[i]);
	return status;
}

static void close_turns(struct forever *f)
{
	for (unsigned i = 0; i < f->turns; i++) {
		fuzz_turn_end(&f->turn[i]);
		free(f->more[i].corpus);
	}
	free(f->turn);
	free(f->more);
}

/* Traces that are accepted, and failures of earlier sessions. */
static int know_traces(struct forever *f)
{
	struct arguments a = *f->a;
	a.no_traces = true; /* those of the folder are learned below */
	int status = a.regress ? fuzz_rerun_traces(&f->session, &a) : 0;
	return status ? status : forever_learn(&f->folder, &f->session);
}

static void tell(struct forever *f)
{
	for (unsigned i = 0; i < f->turns; i++)
		fuzz_report_turn(&f->report, &f->turn[i]);
	const json_t *all = f->folder.sums;
	printf("\n%u session%s, %.0f s, %.0f runs; %u cause%s of unexpected failures in all",
	       f->number, plural(f->number), sum_of(all, "seconds"), sum_of(all, "runs"),
	       count_failures(&f->session), plural(count_failures(&f->session)));
	printf(count_failures(&f->session) ? ": %s\n" : "\n", f->folder.failures);
}

static int run_forever(struct forever *f, const struct campaign *c)
{
	f->start = clock_seconds();
	f->report.session = &f->session;
	f->status = know_traces(f);
	if (!f->status)
		f->status = open_turns(f, c);
	if (!f->status)
		f->status = save_sums(f);
	if (!f->status)
		run_rounds(f);
	if (!f->status)
		f->status = save_sums(f);
	if (!f->status)
		tell(f);
	bool failed = count_failures(&f->session) || f->session.rerun_failures;
	close_turns(f);
	json_decref(f->report.tree);
	json_decref(f->before);
	fuzz_session_free(&f->session);
	return f->status ? f->status : failed ? EXIT_BROKEN : EXIT_HELD;
}

int forever_main(struct arguments *a)
{
	struct forever f = {.a = a};
	struct campaign c = {0};
	if (expect_mistake())
		return fail(EXIT_INTERNAL, "%s", expect_mistake());
	if (a->corpus || a->no_traces || results_asked() || strcmp(a->out, FUZZ_OUT) != 0)
		return fail(EXIT_USAGE,
			    "--forever %s: all goes there; expected no --corpus, --out, "
			    "--no-traces, --json, --junit and --html",
			    a->forever);
	int status = forever_open(&f.folder, a->forever);
	if (!status)
		status = forever_settle(&f.folder, a);
	if (!status)
		status = arguments_configs(a, &c);
	a->corpus = f.folder.corpus;
	a->out = f.folder.failures;
	if (!status)
		status = run_forever(&f, &c);
	campaign_free(&c);
	forever_close(&f.folder);
	return status;
}
