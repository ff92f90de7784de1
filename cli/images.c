/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark images: the crash images of a log of persistent memory, judged by a checker. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "checker/logs/pmemcheck_read.h"
#include "checker/logs/pmemcheck_write.h"
#include "checker/logs/recording_read.h"
#include "checker/logs/symbol.h"
#include "checker/judge/names.h"
#include "checker/live/recording.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/images_engine.h"
#include "cli/leave_off.h"
#include "report/images/images_report.h"
#include "report/output.h"
#include "report/text.h"

struct request {
	const char *log, *pool, *model, *image, *keep;
	const char *history, *written; /* --pmemcheck-log */
	const char *contracts;
	struct option_names knob;
	const char *sort, *path; /* as pmreorder's -c and -p */
	const char *output;
	bool quiet, show, most_given;
	struct leave_off leave_off;
	struct images_engine engine;
	char preload[PATH_MAX], caller[PATH_MAX];
	char symbol[1000]; /* of --name */
	unsigned want;	   /* TM_BIT()s of --contracts */
	char *command;	   /* of `path` and the words after it, to be freed */
	struct images_options options;
};

#define REQUEST(member) OPTION_FIELD(struct request, member)

static const struct option_row rows[] = {
	{"log", "FILE",
	 "a recording (tidemark record), or a store log as pmemcheck writes it; - reads standard "
	 "input",
	 REQUEST(log), .letter = 'l'},
	{"pool", "FILE",
	 "what was in the file before the program ran (what is in it now); zero: nothing",
	 REQUEST(pool)},
	{"history", "FILE",
	 "what clients recorded (tidemark bench --history): each of their operations that returned "
	 "is an acknowledgement",
	 REQUEST(history)},
	{"pmemcheck-log", "FILE",
	 "write the log as pmemcheck does, for pmreorder; without a checker "
	 "that is all",
	 REQUEST(written), .use = OPTION_SHOWS},
	{.help = "who says whether an image is good"},
	{"recover", "CMD",
	 "a command that is started on each image: {} in it is the image's path, or it is added at "
	 "the end; of several files {1} is the first one's; exit status 0 is good",
	 REQUEST(options.checker.recover)},
	{"then", "CMD",
	 "the program goes on with its work on each image that is good, mapped elsewhere than "
	 "before",
	 REQUEST(options.checker.then)},
	{"check", "CMD", "another one, that is started after these",
	 REQUEST(options.checker.check)},
	{"contracts", "NAME,...",
	 "the last of them prints a line KEY VALUE for each key that has a value: do these "
	 "contracts hold, by what clients announced (docs/images.md)?",
	 REQUEST(contracts)},
	{"checker", "prog|lib", "as pmreorder has it: what --path is", REQUEST(sort),
	 .letter = 'c'},
	{"path", "CHECKER", "a program and its arguments, or a library", REQUEST(path),
	 .letter = 'p'},
	{"name", "SYMBOL",
	 "the library's function int SYMBOL(const char *path); 0 is good; of C++ also as its "
	 "source names it, Log::check",
	 REQUEST(options.checker.function), .letter = 'n'},
	{"timeout", "S", "how long it may take (=)", REQUEST(options.checker.patience)},
	{"no-server", NULL, "start a command for each image, also where one start would do",
	 REQUEST(options.checker.no_server)},
	{"show", NULL, "do not hide what it prints", REQUEST(show)},
	{.help = "which images"},
	{"model", "power|kill",
	 "the power fails, and some lines of PM are lost; or only the process dies, and all that "
	 "it "
	 "stored is left (power; kill of a program that never flushes, if no --knob is given)",
	 REQUEST(model)},
	{"knob", "NAME=VALUE",
	 "the hardware, as in the simulation (tidemark list knobs says which, and docs/images.md "
	 "what they do here); may be repeated",
	 REQUEST(knob)},
	{"most", "N", "images of one place at most (=)", REQUEST(options.most), 1, 1 << 20,
	 .given = offsetof(struct request, most_given)},
	{"from", "ack|call|start|EVENT|MARKER",
	 "the power fails from the first acknowledgement on, or from the first operation that a "
	 "client announced (the default is what the log has, with -x or -r start), or from this "
	 "event on, or from behind the first such marker",
	 REQUEST(engine.from)},
	{"image", "IMAGE", "this one alone, as it is named where one is bad", REQUEST(image)},
	{"keep", "DIR", "with --image: leave its files in this new folder", REQUEST(keep)},
	{.help = "as pmreorder has it"},
	{"default-engine", "ENGINE",
	 "of what is in no section: NoReorderNoCheck is not checked (this is the default of "
	 "pmreorder, and with -x), NoReorderDoCheck only with all that was stored; ReorderFull, "
	 "ReorderAccumulative, ReorderReverseAccumulative and ReorderPartial all mean: with each "
	 "image",
	 REQUEST(engine.usual), .letter = 'r'},
	{"extended-macros", "MARKER=ENGINE,...",
	 "the same of sections, MARKER.BEGIN to MARKER.END; or a JSON file, {\"MARKER\": "
	 "\"ENGINE\"}",
	 REQUEST(engine.config), .letter = 'x'},
	{"output", "FILE", "write the report there", REQUEST(output), .letter = 'o',
	 .use = OPTION_SHOWS},
	{"output-level", "LEVEL", "is accepted, and changes nothing", REQUEST(engine.level),
	 .letter = 'e'},
	{.help = "and"},
	ROW_TIME(struct request, leave_off),
	OPTION_JOBS(struct request, options.jobs),
	ROWS_RESULTS,
	OPTION_QUIET(struct request, quiet),
	ROWS_SHARD(struct request, leave_off.shard),
	OPTION_END};

static const struct options options = {
	"images",
	"RECORDING --recover CMD [OPTION...]\n--log FILE -c prog|lib -p CHECKER [OPTION...]",
	"Makes the images of persistent memory that a power failure could have left while a "
	"program "
	"ran, starts a checker on each different one, and says what must not be lost.",
	rows,
	"0 every image is good, 1 some are bad, 2 usage or bad input, 3 could not tell: --time was "
	"over "
	"before all were judged, and none of those is bad, or what the program does was not seen, "
	"70 internal error, " STATUS_LEFT_OFF};

/* --- what is asked for --- */

/* The names of the knobs that a log obeys. */
static const char *log_knobs(char *buf, size_t n)
{
	const struct hardware_knob *k;
	size_t at = 0;
	for (unsigned i = 0; (k = hardware_knob(i))->name; i++)
		if (!k->not_of_log && at < n)
			at += (size_t)snprintf(buf + at, n - at, " %s", k->name);
	return buf;
}

static int set_knob(struct request *r, const char *knob)
{
	struct hardware *hw = &r->options.hw;
	const char *expected;
	char name[32], known[200];
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(knob, "="), knob);
	int i = hardware_find(name);
	if (i < 0)
		return fail(EXIT_USAGE, "images: --knob %.40s: expected one of%s, and =VALUE", knob,
			    log_knobs(known, sizeof(known)));
	const struct hardware_knob *k = hardware_knob((unsigned)i);
	if (k->not_of_log)
		return fail(EXIT_USAGE, "images: --knob %s: %s", k->name, k->not_of_log);
	if (hardware_switch(hw, knob, &expected))
		return fail(EXIT_USAGE, "images: --knob %.40s: expected one of %s", knob, expected);
	return 0;
}

static int choose_model(struct request *r)
{
	if (r->model && strcmp(r->model, "power") != 0 && strcmp(r->model, "kill") != 0)
		return fail(EXIT_USAGE, "images: --model %s: expected power or kill", r->model);
	for (unsigned i = 0; i < r->knob.n; i++) {
		int status = set_knob(r, r->knob.name[i]);
		if (status)
			return status;
	}
	r->options.kill = r->model && !strcmp(r->model, "kill");
	return 0;
}

static void print_command(FILE *out, const char *path, char *const *word)
{
	fputs(path, out);
	for (; *word; word++) {
		putc(' ', out);
		write_word(out, *word);
	}
}

/* The checker as pmreorder takes it; other words are its arguments. */
static int choose_path(struct request *r, char **word)
{
	struct image_checker *c = &r->options.checker;
	bool library = r->sort && !strcmp(r->sort, "lib");
	if (r->sort && !library && strcmp(r->sort, "prog") != 0)
		return fail(EXIT_USAGE, "images: -c %s: expected prog or lib", r->sort);
	if (library) {
		if (!c->function || *word)
			return fail(EXIT_USAGE,
				    "images: -c lib: expected the function's name (-n), "
				    "and no arguments");
		c->library = r->path;
		symbol_find(c->library, c->function, r->symbol, sizeof(r->symbol));
		c->function = r->symbol;
		return 0;
	}
	r->command = TEXT_PRINTED(out, print_command(out, r->path, word));
	if (!r->command)
		return fail(EXIT_INTERNAL, "out of memory");
	c->recover = r->command;
	return 0;
}

static int choose_checker(struct request *r, char **word)
{
	struct image_checker *c = &r->options.checker;
	if (!c->recover && !r->path && r->written)
		return *word ? fail(EXIT_USAGE, "images: unexpected \"%.40s\"", *word) : 0;
	if (!c->recover == !r->path)
		return fail(EXIT_USAGE, "images: expected --recover CMD, or -p CHECKER");
	if (r->path)
		return choose_path(r, word);
	if (r->sort || c->function)
		return fail(EXIT_USAGE, "images: -c and -n go with -p");
	return *word ? fail(EXIT_USAGE, "images: unexpected \"%.40s\"", *word) : 0;
}

/* "DUR,MONO" */
static int choose_contracts(struct request *r)
{
	for (const char *at = r->contracts; at;) {
		char name[16];
		size_t len = strcspn(at, ",");
		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		int contract = contract_parse(name);
		if (contract < 0 || !(TM_BIT(contract) & ANNOUNCED_CONTRACTS))
			return fail(EXIT_USAGE,
				    "images: --contracts: %.40s: expected some of RDA,LIN,DUR,BUF,"
				    "MONO,NORES,OK",
				    name);
		r->want |= TM_BIT(contract);
		at = at[len] ? at + len + 1 : NULL;
	}
	if (r->contracts && (r->history || !r->options.checker.recover))
		return fail(EXIT_USAGE, "images: --contracts goes with --recover CMD, and not "
					"with --history");
	return 0;
}

static int check_request(struct request *r, char **word)
{
	r->options.hw = hardware_default;
	int status = choose_model(r);
	if (!r->log && *word)
		r->log = *word++;
	if (!status)
		status = images_engine_choose(&r->engine);
	if (!status)
		status = choose_checker(r, word);
	if (!status)
		status = choose_contracts(r);
	if (status)
		return status;
	if (!r->log)
		return fail(EXIT_USAGE, "images: expected a recording, or --log FILE");
	if (r->keep && !r->image)
		return fail(EXIT_USAGE, "images: --keep goes with --image");
	if (r->image && (result_asked(OUTPUT_JSON) || result_asked(OUTPUT_JUNIT)))
		return fail(EXIT_USAGE, "images: %s does not go with --image",
			    result_asked(OUTPUT_JSON) ? "--json" : "--junit");
	if (r->leave_off.seconds > 0 && r->image)
		return fail(EXIT_USAGE, "images: --time does not go with --image");
	if (shard_is_asked(&r->leave_off.shard) &&
	    (r->image || !strcmp(r->log, "-") ||
	     (!r->options.checker.recover && !r->options.checker.library)))
		return fail(EXIT_USAGE, "images: --shard and --results need a log in a file, and a "
					"checker; --image does not go with them");
	r->options.checker.show = r->show;
	r->options.part = shard_is_part(&r->leave_off.shard);
	if (r->options.part)
		return 0; /* nothing else is written */
	note_input(r->log);
	note_input(r->pool);
	note_input(r->history);
	if (r->output && check_output("--output", r->output, OUTPUT_ANY))
		return EXIT_USAGE;
	if (results_check())
		return EXIT_USAGE;
	return r->written && check_output("--pmemcheck-log", r->written, OUTPUT_PM_LOG) ? EXIT_USAGE
											: 0;
}

/* What comes into the checker's process. Without it images are judged more slowly. */
static void find_preload(struct request *r)
{
	struct image_checker *c = &r->options.checker;
	if (find_beside("libtidemark-images.so", r->preload, sizeof(r->preload)))
		c->preload = environment_preload_name(r->preload);
	if (c->preload && find_beside("tidemark-images-caller", r->caller, sizeof(r->caller)))
		c->caller = r->caller;
}

/* --- the log --- */

static int read_log(const struct request *r, struct pm_log *log)
{
	struct input_error where = {0};
	bool standard = !strcmp(r->log, "-");
	const char *name = standard ? "standard input" : r->log, *which;
	size_t len;
	int error;
	char *bytes = input_read(r->log, PMEMCHECK_LOG_MAX, &len, &where, &error);
	if (bytes && len > PMEMCHECK_LOG_MAX)
		error = -EFBIG;
	else if (bytes && recording_begins(bytes, len))
		error = recording_read_pm(log, bytes, len, &where);
	else if (bytes)
		error = pmemcheck_read(log, bytes, len, &where);
	free(bytes);
	if (error)
		return input_status(r->log, error, &where);
	if (r->options.hw.nt_buffered && !log->knows_nt)
		return fail(EXIT_USAGE,
			    "%s: --knob nt_stores=buffered: Valgrind's tools tell which bytes are "
			    "stored, not by which instruction; expected a recording without them",
			    name);
	error = pm_log_read_files(log, r->pool, &which);
	if (error)
		return fail(EXIT_USAGE,
			    "%s: %s; expected the file as it was before the program ran (--pool "
			    "FILE is a copy of it, --pool zero an empty one)",
			    which, strerror(-error));
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* What clients were told, and when. */
static int read_history(const struct request *r, struct pm_log *log)
{
	struct recording *recording;
	char why[200];
	uint64_t n, acks = 0;
	if (log->events && !log->event[0].ns)
		return fail(EXIT_USAGE,
			    "%s: no times are in %s; expected a recording of tidemark record",
			    r->history, r->log);
	int error = recording_open(&recording, r->history, why, sizeof(why));
	if (error)
		return fail(EXIT_USAGE, "%s: %s", r->history, why);
	const struct recording_op *op = recording_ops(recording, &n);
	uint64_t *ns = malloc((n + 1) * sizeof(*ns));
	for (uint64_t i = 0; ns && i < n; i++)
		if (op[i].invoked_ns && op[i].returned_ns)
			ns[acks++] = op[i].returned_ns;
	if (ns)
		qsort(ns, acks, sizeof(*ns), by_time);
	error = ns ? pm_log_add_acks(log, ns, acks) : -ENOMEM;
	free(ns);
	recording_close(recording);
	return error ? fail(EXIT_INTERNAL, "out of memory") : 0;
}

/* Of a program that never flushes a power failure leaves what it likes. pmreorder's options are
 * about the power, and with other knobs somebody has thought of it. */
static void settle_model(struct request *r, const struct pm_log *log)
{
	bool flushes = log->has_flush || pm_log_unseen(log, PM_UNSEEN_FLUSH);
	if (!r->model && !flushes && !r->knob.n && !r->engine.given)
		r->options.kill = true;
}

/* --- images --- */

/* From now on, what is printed goes to --output. 0, or the status after a message. */
static int open_output(const struct request *r)
{
	if (!r->output || freopen(r->output, "w", stdout))
		return 0;
	return fail(EXIT_USAGE, "%s: %s", r->output, strerror(errno));
}

static void progress(void *arg, const struct driver_progress *at)
{
	(void)arg;
	progress_line("%.0f %% of the images judged", 100.0 * at->done / at->units);
}

static int tell(const struct images_report *report, const struct conclusion *end)
{
	json_t *all = images_tree(report);
	if (!all)
		return fail(EXIT_INTERNAL, "out of memory");
	text_print(all, report->one ? "images_one" : "images");
	/* For the scenes of all causes the log is run through again. */
	if (results_asked()) {
		images_add_scenes(report, all);
		return outputs_write(all, end);
	}
	json_decref(all);
	return 0;
}

static int tell_images(struct request *r, struct images_report *report)
{
	const struct images_result *x = report->result;
	images_conclude(report, &report->conclusion);
	leave_off_conclude(&r->leave_off, &report->conclusion, (unsigned)x->judged,
			   (unsigned)x->images, "images are judged");
	int status = tell(report, &report->conclusion);
	leave_off_print(&r->leave_off, &report->conclusion);
	return status;
}

static int all_images(struct request *r, struct images_report *report)
{
	struct images_result result;
	char why[300];
	int error = images_search(report->log, &r->options, &result, why, sizeof(why));
	report->result = &result;
	int status = leave_off_end(&r->leave_off, &error);
	if (status >= 0 || shard_is_missing()) {
		images_result_free(&result);
		return status >= 0 ? status : EXIT_UNSURE;
	}
	report->left_off = leave_off_why(&r->leave_off);
	status = 0;
	if (error)
		status = fail(error == -ENOENT || error == -ENOSPC ? EXIT_USAGE : EXIT_INTERNAL,
			      "images: %s", why);
	else
		status = open_output(r);
	if (!status)
		status = tell_images(r, report);
	if (!status)
		status = report->conclusion.status;
	images_result_free(&result);
	return status;
}

static int one_image(struct request *r, struct images_report *report)
{
	struct image_cause c;
	char why[300];
	int error = images_one(report->log, &r->options, r->image, r->keep, &c, why, sizeof(why));
	leave_off_end(&r->leave_off, &error);
	if (leave_off_why(&r->leave_off)) {
		free(c.line);
		return fail(EXIT_HELD, "images: left off %s: the image is not judged",
			    leave_off_why(&r->leave_off));
	}
	int status = error ? fail(EXIT_USAGE, "images: %s", why) : open_output(r);
	report->one = &c;
	if (!status)
		status = tell(report, NULL);
	if (!status)
		status = c.doubt		       ? EXIT_UNSURE
			 : c.verdict.how == IMAGE_GOOD ? EXIT_HELD
						       : EXIT_BROKEN;
	free(c.line);
	return status;
}

/* Are there the files that the commands name? */
static int check_files(const struct request *r, const struct pm_log *log)
{
	char why[300];
	int error = image_checker_files(&r->options.checker, log->files, why, sizeof(why));
	return error ? fail(EXIT_USAGE, "%s: %s", r->log, why) : 0;
}

/* What the clients announced. */
static int open_announced(struct request *r, const struct pm_log *log)
{
	struct image_checker *c = &r->options.checker;
	char why[600];
	if (!r->contracts)
		return 0;
	if (log->files != 1 && !image_checker_names_files(c))
		return fail(EXIT_USAGE,
			    "%s: %u files of PM; --contracts expects one, or a command with {1}, "
			    "{2}, ...",
			    r->log, log->files);
	int error = announced_open(&c->announced, log, r->want, why, sizeof(why));
	return error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s", r->log, why)
		     : 0;
}

/* All that was asked for, of a log that was read. */
static int make_images(struct request *r, struct images_report *report)
{
	uint8_t *sections;
	signals_drop(images_drop);
	int status = leave_off_begin(&r->leave_off);
	if (status)
		return status;
	r->options.bounds = &r->leave_off.bounds;
	r->options.checker.stop = r->leave_off.bounds.stop;
	status = images_engine_sections(&r->engine, report->log, report->name, &sections,
					&report->from);
	if (status)
		return status;
	r->options.sections = sections;
	status = r->image ? one_image(r, report) : all_images(r, report);
	free(sections);
	return leave_off_status(&r->leave_off, status);
}

int images_main(int argc, char **argv)
{
	struct request r = {.options = {.most = 256, .jobs = arguments_jobs()}};
	struct pm_log log;
	r.options.checker.patience = 10;
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	status = check_request(&r, argv + optind);
	if (!status && pm_log_open(&log))
		status = fail(EXIT_INTERNAL, "out of memory");
	if (status) {
		free(r.command);
		return status;
	}
	find_preload(&r);
	r.options.progress = r.quiet ? NULL : progress;
	struct images_report report = {.log = &log,
				       .name = r.log,
				       .options = &r.options,
				       .contracts = r.want,
				       .words = arguments};
	status = read_log(&r, &log);
	if (!status && r.history)
		status = read_history(&r, &log);
	if (!status)
		status = check_files(&r, &log);
	if (!status)
		status = open_announced(&r, &log);
	if (!status && r.contracts)
		report.faults = announced_faults(r.options.checker.announced, &report.said,
						 &report.fault);
	if (!status)
		settle_model(&r, &log);
	if (!status && r.written && !r.options.part)
		status = saved(r.written, save_file(r.written, pmemcheck_write, &log));
	if (!status && (r.options.checker.recover || r.options.checker.library))
		status = make_images(&r, &report);
	announced_close(r.options.checker.announced);
	pm_log_close(&log);
	free(r.command);
	return status;
}
