/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark replay: print traces step by step, and whether their contract still breaks. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/logs/pmemcheck_write.h"
#include "checker/logs/run_log.h"
#include "checker/live/crash_bundle.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/trace/event_trace.h"
#include "report/live/examine_report.h"
#include "report/output.h"
#include "report/text.h"

/* The first deviation that does not apply, for a line of output. */
static const char *unused_text(const struct trace *t, const struct replay_outcome *out,
			       char text[DEVIATION_TEXT])
{
	struct deviation_names names = {t->setup.region, t->setup.regions};
	deviation_print(out->unused, &names, text, DEVIATION_TEXT);
	return text;
}

/* `out`: NULL: it is a power cut of a live server. */
static void verdict_line(const struct trace *t, const char *path, int contract, int status,
			 bool repeated, const struct replay_outcome *out)
{
	const bool unused = out && out->unused;
	char text[DEVIATION_TEXT] = "";
	json_t *all = json_pack(
		"{s:s, s:i, s:o, s:s, s:b, s:b, s:b, s:s, s:b}", "unused",
		unused ? unused_text(t, out, text) : "", "line",
		unused ? (int)out->unused->line : 0, "path", json_text(path), "contract",
		contract < 0 ? "" : contract_name((enum tm_contract)contract), "fixed",
		status == EXIT_FIXED, "broken", status == EXIT_BROKEN, "cut", !out, "anew",
		out ? trace_anew(t).text : "", "repeated", repeated);
	text_print(all, "replay_verdict");
	json_decref(all);
}

/* What the outcome means for the exit. */
static int judge(const struct trace *t, const struct replay_outcome *out)
{
	if (t->contract >= 0)
		return out->verdict[t->contract].broken ? EXIT_BROKEN : EXIT_FIXED;
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (out->verdict[c].broken && t->setup.store->promises & TM_BIT(c))
			return EXIT_BROKEN;
	return EXIT_HELD;
}

/* The explorer is open. `events`: its event trace, filled when all is well; NULL: none. */
static int replay_open(struct explorer *ex, struct trace *t, const char *path,
		       struct event_trace *events, struct replay_outcome *out)
{
	struct replay_audience audience = {0};
	char text[DEVIATION_TEXT];
	if (events)
		audience = event_log_audience(&events->record, &t->deviations);
	int error = replay(ex, &t->deviations, t->contract == TM_KEEP, events ? &audience : NULL,
			   out);
	if (!error && replay_cannot_run(t->contract, &t->deviations, out))
		return fail(EXIT_USAGE, "%s: the store cannot run this workload: %s%s", path,
			    ex->why, trace_anew(t).text);
	if (!error && events && out->unstarted)
		memcpy(events->load_why, ex->why, sizeof(events->load_why));
	/* A store that is mended makes durable what it forgot. */
	if (!error && out->unused && !out->only_lines_unused)
		return fail(EXIT_USAGE,
			    "%s:%u: this deviation does not apply, the run never comes to such a "
			    "point: %s%s",
			    path, out->unused->line, unused_text(t, out, text), trace_anew(t).text);
	if (!error && events && events->record.full)
		error = -ENOMEM;
	if (!error && events)
		error = cause_find(ex, t, &events->record, out, events->where, &events->cause);
	if (error)
		return fail(EXIT_INTERNAL, "%s: %s", path, driver_error(error));
	return judge(t, out);
}

static int replay_once(struct trace *t, const char *path, struct event_trace *events,
		       struct replay_outcome *out)
{
	struct explorer *ex = malloc(sizeof(*ex));
	int status, error = ex ? replay_begin(ex, &t->setup, t->contract, &t->deviations) : -ENOMEM;
	if (error) {
		status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE,
			      "%s: the store cannot run this workload: %s%s", path,
			      strerror(-error), trace_anew(t).text);
	} else {
		status = replay_open(ex, t, path, events, out);
		explore_close(ex);
	}
	free(ex);
	return status;
}

struct request {
	bool quiet, brief, all;
	unsigned repeat;
	const char *log; /* NULL: no pmemcheck log */
};

static const struct option_row rows[] = {
	{"quiet", NULL, "the verdict only", OPTION_FIELD(struct request, quiet), .letter = 'q'},
	{"brief", NULL, "without single stores, reads, flushes, fences and posted requests",
	 OPTION_FIELD(struct request, brief)},
	{"all", NULL, "every event: what repeats is not told once",
	 OPTION_FIELD(struct request, all)},
	ROW_RESULT("html", "one trace as a page, too"),
	ROW_RESULT("json", "the event trace of one trace for machines"),
	{"pmemcheck-log", "FILE",
	 "write what happened to PM in one trace as pmemcheck does, and what was in it before as "
	 "FILE.pool",
	 OPTION_FIELD(struct request, log)},
	{"repeat", "N", "replay N times, and fail if two of them differ",
	 OPTION_FIELD(struct request, repeat), 1, 1000000},
	OPTION_END};

static const struct options options = {
	"replay", "[OPTION...] FILE...",
	"Prints each trace step by step; - is standard input. Examines a .cut of tidemark examine "
	"again.",
	rows,
	"1 the contract breaks as the trace says, 4 it does not any more, 0 the trace says "
	"\"broken none\" and no promise is broken, 2 one is not a good trace (all others are "
	"replayed), 70 internal error"};

static int write_pool(FILE *out, const void *arg)
{
	const struct pm_file *file = arg;
	return fwrite(file->before, 1, file->size, out) == file->size ? 0 : -EIO;
}

/* The log, and the pool that it begins with. */
static int save_log(const struct pm_run_log *r, const char *path)
{
	int status = saved(path, save_file(path, pmemcheck_write, &r->log));
	const struct pm_file *file = &r->log.file[0];
	return status ? status : saved(file->name, save_file(file->name, write_pool, file));
}

/* Replay once more, for the log. */
static int write_log(struct trace *t, const char *path, const struct request *o,
		     struct replay_outcome *out)
{
	struct pm_run_log *r = malloc(sizeof(*r));
	struct explorer *ex = malloc(sizeof(*ex));
	struct where *where = where_new();
	struct replay_audience audience;
	char pool[PATH_MAX];
	int error = -ENOMEM, status = 0;
	bool open = false;
	snprintf(pool, sizeof(pool), "%s.pool", o->log);
	if (r && ex)
		error = pm_run_log_open(r, pool, where, &audience);
	if (!error)
		error = replay_begin(ex, &t->setup, t->contract, &t->deviations);
	open = !error;
	if (!error)
		error = replay(ex, &t->deviations, false, &audience, out);
	if (!error)
		error = r->error;
	status = error ? fail(EXIT_USAGE, "%s: --pmemcheck-log: %s", path, strerror(-error))
		       : save_log(r, o->log);
	if (open)
		explore_close(ex);
	if (r && ex)
		pm_run_log_close(r);
	where_free(where);
	free(ex);
	free(r);
	return status;
}

/* The trace is read. */
static int replay_read(struct trace *t, const char *path, const struct request *o,
		       struct event_trace *events)
{
	struct replay_outcome *again = calloc(1, sizeof(*again));
	const bool files = results_asked(), traced = !o->quiet || files;
	int status = again ? replay_once(t, path, traced ? events : NULL, &events->outcome)
			   : fail(EXIT_INTERNAL, "out of memory");
	bool good = status != EXIT_USAGE && status != EXIT_INTERNAL;
	if (good && !o->quiet)
		event_trace_print(events);
	for (unsigned i = 1; i < o->repeat && good; i++) {
		int other = replay_once(t, path, NULL, again);
		if (other != status || again->hash != events->outcome.hash) {
			status = fail(EXIT_INTERNAL, "%s: replay %u differs from the first", path,
				      i + 1);
			good = false;
		}
	}
	if (good && files && events->load_why[0]) {
		status = fail(EXIT_USAGE, "%s: the load phase is traced without --html and --json",
			      path);
		good = false;
	} else if (good && files) {
		int failed = outputs_write(event_trace_tree(events), NULL);
		status = failed ? failed : status;
		good = !failed;
	}
	if (good && o->log) {
		int failed = write_log(t, path, o, again);
		status = failed ? failed : status;
		good = !failed;
	}
	if (good)
		verdict_line(t, path, t->contract, status, o->repeat > 1, &events->outcome);
	free(again);
	return status;
}

/* --- a power cut of a live server --- */

static int replay_cut(const struct crash_bundle *a, const char *path, const struct request *o)
{
	const struct exam_cell *cell;
	struct exam e = {0};
	int bad = 0,
	    status = o->log || o->repeat > 1
			     ? fail(EXIT_USAGE,
				    "%s: a power cut is traced without --pmemcheck-log and "
				    "--repeat",
				    path)
			     : exam_run(a, &e);
	if (!status) {
		status = exam_status(&a->cut, &e);
		cell = &e.cell[a->contract < 0 ? 0 : a->contract];
		if (a->contract >= 0)
			status = cell->happened.keys || (!a->happened && cell->possible.keys)
					 ? EXIT_BROKEN
					 : EXIT_FIXED;
		json_t *all = exam_tree(a, &e);
		if (!o->quiet)
			text_print(all, "examine");
		json_object_set_new(all, "status", json_integer(status));
		json_object_set_new(all, "artefact", json_string(path));
		if (results_asked())
			bad = outputs_write(json_incref(all), NULL);
		json_decref(all);
		verdict_line(NULL, path, a->contract, status, false, NULL);
	}
	exam_free(&e);
	return bad ? bad : status;
}

static int replay_run(struct trace *t, const char *path, const struct request *o)
{
	struct event_trace *events = calloc(1, sizeof(*events));
	int status;
	if (events) {
		events->trace = t;
		events->name = path;
		events->brief = o->brief;
		events->all = o->all;
		events->where = o->quiet && !results_asked() ? NULL : where_new();
		status = replay_read(t, path, o, events);
		where_free(events->where);
		event_log_free(&events->record);
	} else {
		status = fail(EXIT_INTERNAL, "out of memory");
	}
	free(events);
	return status;
}

static int replay_file(const char *path, const struct request *o)
{
	struct trace t;
	int status = read_trace(path, &t, true);
	if (status)
		return status;
	if (!strcmp(path, "-"))
		path = "standard input";
	status = t.cut ? replay_cut(t.cut, path, o) : replay_run(&t, path, o);
	trace_free(&t);
	return status;
}

/* The log, and the pool beside it: a file of that name without a log is not ours. */
static int check_log(const char *path)
{
	char pool[PATH_MAX];
	int status = check_output("--pmemcheck-log", path, OUTPUT_PM_LOG);
	if (status)
		return status;
	snprintf(pool, sizeof(pool), "%s.pool", path);
	if (!access(pool, F_OK) && access(path, F_OK))
		return fail(EXIT_USAGE,
			    "%s: this file exists, and %s does not; it is not overwritten", pool,
			    path);
	return check_output("--pmemcheck-log", pool, OUTPUT_ANY);
}

static int parse(struct request *o, int argc, char **argv)
{
	int status = options_read(&options, o, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EXIT_USAGE, "replay: no trace named (tidemark replay --help)");
	if (results_asked() && argc - optind > 1)
		return fail(EXIT_USAGE, "replay: %s takes one trace, here are %d",
			    result_asked(OUTPUT_PAGE) ? "--html" : "--json", argc - optind);
	if (o->log && argc - optind > 1)
		return fail(EXIT_USAGE, "replay: --pmemcheck-log takes one trace, here are %d",
			    argc - optind);
	for (int i = optind; i < argc; i++)
		note_input(argv[i]);
	if (o->log && check_log(o->log))
		return EXIT_USAGE;
	return results_check() ? EXIT_USAGE : -1;
}

int replay_main(int argc, char **argv)
{
	struct request o = {.repeat = 1};
	/* What weighs more comes first. */
	static const int statuses[] = {EXIT_INTERNAL, EXIT_USAGE, EXIT_BROKEN, EXIT_UNSURE,
				       EXIT_FIXED};
	bool seen[EXIT_SKIPPED + 1] = {false};
	int status = parse(&o, argc, argv);
	if (status >= 0)
		return status;
	for (; optind < argc; optind++)
		seen[replay_file(argv[optind], &o)] = true;
	for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (seen[statuses[i]])
			return statuses[i];
	return EXIT_HELD;
}
