/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark fuzz: rerun the traces that are known, then fuzz each store; shrink what
 * breaks unexpectedly, and write a trace of each case whose fingerprint is new.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/expect.h"
#include "cli/cli.h"
#include "cli/hunt/forever.h"
#include "cli/hunt/fuzz_files.h"
#include "core/clock.h"
#include "report/hunt/hunt_report.h"
#include "report/output.h"
#include "core/text/text.h"

#define DEFAULT_SECONDS 60

struct fuzzing {
	const struct arguments *a;
	struct fuzz_session session;
	struct fuzz_report report;
	double seconds;		     /* of each store; 0: runs are counted */
	struct driver_bounds bounds; /* of the store's turn */
	bool stopped, unaccepted;
};

static const struct option_row rows[] = {
	{.help = "what is tested"},
	ROW_VARIANT,
	ROW_KNOB,
	{"regress", "DIR", "the traces that are run again (tests/traces, if there is one)",
	 ARGUMENT(regress)},
	{.help = "how much"},
	{"time", "TIME", "for each store: 90s, 2m, 1h (=)",
	 ARGUMENT_GIVEN(seconds, 0, 0, seconds_given)},
	{"forever", "DIR",
	 "a campaign without an end: all that belongs to it is in DIR, and `tidemark fuzz "
	 "--forever DIR` goes on with it; --time and --runs end the session, of all stores",
	 ARGUMENT(forever)},
	ROW_RUNS("runs for each store; without --time the same seed gives the same results, on "
		 "whatever machine"),
	ROW_SEED("of the changes (=)"),
	OPTION_JOBS(struct arguments, leave_off.how.jobs),
	{.help = "what is written"},
	{"corpus", "DIR", "inputs are read from DIR/STORE, and new ones written there",
	 ARGUMENT(corpus)},
	ROW_OUT,
	ROW_NO_TRACES,
	ROWS_RESULTS,
	OPTION_QUIET(struct arguments, leave_off.quiet),
	OPTION_END};

static const struct options options = {
	"fuzz", "[STORE...] [OPTION...]",
	"Runs the traces that are known again, then drives stores with inputs that it changes for "
	"as long as new states turn up. Without a STORE: those of the default campaign that have "
	"the knobs that are named; with --variant, all stores that have it.",
	rows,
	"0 nothing breaks unexpectedly, 1 something does, or a trace gives another verdict than it "
	"records, 2 usage or bad input, 70 internal error"};

/* --- one store --- */

static int save_case(struct fuzz_turn *t, struct fuzz_known *k, const struct broken_run *run)
{
	const struct fuzzing *f = t->arg;
	return f->a->no_traces ? 0 : fuzz_save_case(t, k, run, f->a->out);
}

static void show_progress(const struct fuzzing *f, const struct fuzz_turn *t)
{
	const uint64_t runs = t->fuzz.options.runs - t->fuzz.counts.runs;
	double left = f->bounds.until - clock_seconds();
	char text[96];
	int n = snprintf(text, sizeof(text), ", %u new failure%s, ", t->fresh, plural(t->fresh));
	if (f->bounds.until > 0)
		snprintf(text + n, sizeof(text) - (size_t)n, "%.0f s left", left > 0 ? left : 0);
	else
		snprintf(text + n, sizeof(text) - (size_t)n, "%" PRIu64 " run%s left", runs,
			 plural(runs));
	fuzz_progress(t, text);
}

static int run_rounds(struct fuzzing *f, struct fuzz_turn *t, const char *corpus)
{
	unsigned saved_inputs = 0;
	int status = 0;
	while (!status && fuzz_more(&t->fuzz)) {
		if (!f->a->leave_off.quiet)
			show_progress(f, t);
		int error = fuzz_turn_round(t);
		status = error ? fuzz_fail(t, error) : fuzz_save_corpus(corpus, t, &saved_inputs);
	}
	progress_line(NULL);
	f->stopped = *f->bounds.stop;
	return status;
}

static int fuzz_store(struct fuzzing *f, const struct campaign_config *config)
{
	const struct arguments *a = f->a;
	struct fuzz_turn t = {.session = &f->session,
			      .config = config,
			      .save = save_case,
			      .shrinking = a->leave_off.quiet ? NULL : fuzz_show_shrinking,
			      .arg = f,
			      .start = clock_seconds()};
	double until = f->seconds > 0 ? t.start + f->seconds : 0;
	char *corpus = NULL;
	int status = fuzz_begin(&t, a, a->options.seed, until, &f->bounds);
	if (!status)
		status = fuzz_open_corpus(a, &t, &corpus);
	if (!status) {
		status = run_rounds(f, &t, corpus);
		fuzz_report_turn(&f->report, &t);
	}
	f->unaccepted |= t.unaccepted != 0;
	free(corpus);
	fuzz_turn_end(&t);
	return status;
}

/* --- the whole --- */

static int run_fuzz(const struct arguments *a, const struct campaign *c)
{
	struct fuzzing f = {.a = a};
	f.report.session = &f.session;
	outputs_begin();
	f.seconds = a->runs_given && !a->seconds_given ? 0 : a->seconds;
	int status = fuzz_rerun_traces(&f.session, a);
	for (unsigned i = 0; i < c->configs && !status && !f.stopped; i++)
		status = fuzz_store(&f, &c->config[i]);
	fuzz_conclude(&f.report, f.unaccepted || f.session.rerun_failures, f.stopped);
	json_t *all = fuzz_tree(&f.report, a->options.seed, f.stopped);
	if (!status) {
		status = outputs_write(json_incref(all), &f.report.conclusion);
		conclusion_print(&f.report.conclusion);
	}
	json_decref(all);
	fuzz_session_free(&f.session);
	return status ? status : f.report.conclusion.status;
}

int fuzz_main(int argc, char **argv)
{
	struct arguments a = {.out = FUZZ_OUT,
			      .seconds = DEFAULT_SECONDS,
			      .options = campaign_default,
			      .one_config = true};
	struct campaign c = {0};
	a.leave_off.how.jobs = arguments_jobs();
	int status = arguments_read(&options, &a, argc, argv);
	if (status >= 0)
		return status;
	if (a.forever)
		return forever_main(&a);
	if (expect_mistake())
		return fail(EXIT_INTERNAL, "%s", expect_mistake());
	status = arguments_configs(&a, &c);
	if (!status)
		status = arguments_check_outputs(&a);
	if (!status)
		status = run_fuzz(&a, &c);
	campaign_free(&c);
	return status;
}
