/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files and folders that a command will write: can they be written, and does nobody lose what
 * is there now? An output may replace a file of its own sort; it is never one of the command's
 * inputs, and two outputs are never one file.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "checker/judge/baseline.h"
#include "checker/trace/trace.h"
#include "cli/cli.h"
#include "core/provider/base/config.h"
#include "core/record/format.h"
#include "report/output.h"
#include "report/text.h"
#include "report/tree.h"

#define INPUTS_MAX 64 /* of a call; more are not compared */
#define FILES_MAX  (INPUTS_MAX + 8)
#define HEAD_BYTES 512	      /* of a file that is to be replaced: they show its sort */
#define NAME_BYTES (255 - 32) /* of an output: its temporary name is longer */

/* --- which file a name means --- */

/* A file that does not exist is named by its folder and the last part of its name. */
struct file_id {
	dev_t dev;
	ino_t ino;
	char leaf[NAME_MAX + 1]; /* "": it exists */
};

static struct {
	struct file_id id;
	const char *option; /* NULL: an input */
} files[FILES_MAX];
static unsigned known;

static bool identify(const char *path, struct file_id *id)
{
	struct stat st;
	memset(id, 0, sizeof(*id));
	if (!strcmp(path, STANDARD_OUTPUT) ? fstat(STDOUT_FILENO, &st) : stat(path, &st)) {
		char *folder = strdup(path), *leaf = strdup(path);
		bool found = folder && leaf && !stat(dirname(folder), &st);
		if (found)
			snprintf(id->leaf, sizeof(id->leaf), "%s", basename(leaf));
		free(folder);
		free(leaf);
		if (!found)
			return false;
	} else if (S_ISCHR(st.st_mode)) {
		return false; /* a terminal or /dev/null: nothing is lost there */
	}
	id->dev = st.st_dev;
	id->ino = st.st_ino;
	return true;
}

static bool same(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && !strcmp(a->leaf, b->leaf);
}

void note_input(const char *path)
{
	if (known < INPUTS_MAX && path && strcmp(path, "-") != 0 &&
	    identify(path, &files[known].id)) {
		files[known].option = NULL;
		known++;
	}
}

/* 0, or the status after a message. */
static int note_output(const char *what, const char *path)
{
	struct file_id id;
	if (!identify(path, &id))
		return 0;
	for (unsigned i = 0; i < known; i++)
		if (same(&id, &files[i].id) && files[i].option)
			return fail(EXIT_USAGE, "%s %s: the same file as that of %s; expected two",
				    what, path, files[i].option);
		else if (same(&id, &files[i].id))
			return fail(EXIT_USAGE,
				    "%s %s: this file is read; expected another one to write", what,
				    path);
	if (known < FILES_MAX) {
		files[known].id = id;
		files[known++].option = what;
	}
	return 0;
}

/* --- what was promised --- */

#define PROMISES 8

static struct promise {
	char path[PATH_MAX];
	enum output_sort sort;
	bool saved; /* or it could not be */
} promise[PROMISES];
static unsigned promises;
static bool begun;

/* Folders that were made. */
static const char *made[PROMISES];
static unsigned mades;

/* --- what a file holds --- */

static bool begins(const char *head, const char *with)
{
	return !strncmp(head, with, strlen(with));
}

static bool is_json(const char *head)
{
	while (isspace((unsigned char)*head))
		head++;
	return *head == '{' || *head == '[';
}

static bool is_junit(const char *head)
{
	return begins(head, "<?xml") && strstr(head, JUNIT_MARK);
}

static bool is_page(const char *head)
{
	return begins(head, PAGE_MARK);
}

static bool is_trace(const char *head)
{
	return begins(head, TRACE_MAGIC);
}

static bool is_pcap(const char *head)
{
	const uint32_t magic = CONFIG_PCAP_MAGIC;
	return !memcmp(head, &magic, sizeof(magic));
}

static bool is_pm_log(const char *head)
{
	return begins(head, "START");
}

static bool is_baseline(const char *head)
{
	return begins(head, BASELINE_MAGIC);
}

static bool is_recording(const char *head)
{
	return begins(head, RECORD_NAME);
}

static const struct {
	const char *name;
	bool (*is)(const char *head);
	bool standard; /* can go to standard output */
	/* A format of results, and the option that asks for it. */
	int (*write)(FILE *out, const void *tree);
	const char *option;
} sorts[] = {
	[OUTPUT_JSON] = {.name = "JSON",
			 .option = "--json",
			 .is = is_json,
			 .standard = true,
			 .write = tree_write_json},
	[OUTPUT_JUNIT] = {.name = "JUnit results of tidemark",
			  .option = "--junit",
			  .is = is_junit,
			  .standard = true,
			  .write = tree_write_junit},
	[OUTPUT_PAGE] = {.name = "a page of tidemark",
			 .option = "--html",
			 .is = is_page,
			 .standard = true,
			 .write = tree_write_page},
	[OUTPUT_SARIF] = {.name = "JSON",
			  .option = "--sarif",
			  .is = is_json,
			  .standard = true,
			  .write = tree_write_sarif},
	[OUTPUT_TRACE] = {.name = "a trace", .is = is_trace},
	[OUTPUT_PCAP] = {.name = "a recording of packets of tidemark run", .is = is_pcap},
	[OUTPUT_PM_LOG] = {.name = "a store log", .is = is_pm_log},
	[OUTPUT_RECORDING] = {.name = "a recording of PM", .is = is_recording},
	[OUTPUT_BASELINE] = {.name = "a baseline of tidemark crashtest", .is = is_baseline},
	[OUTPUT_ANY] = {.name = "a file"},
	[OUTPUT_IN_PLACE] = {.name = "a file"},
};

/* The file that is there is of the sort that will replace it, or empty. */
static int check_sort(const char *what, const char *path, enum output_sort sort)
{
	char head[HEAD_BYTES + 1] = "";
	int fd = sorts[sort].is ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	ssize_t n = fd < 0 ? 0 : read(fd, head, HEAD_BYTES);
	if (fd >= 0)
		close(fd);
	if (n <= 0 || sorts[sort].is(head))
		return 0;
	return fail(EXIT_USAGE, "%s %s: this file exists and is not %s; it is not overwritten",
		    what, path, sorts[sort].name);
}

/* --- can it be written? --- */

/* From now on standard output is the output's, and what people read goes to standard error. */
static int check_standard(const char *what, enum output_sort sort)
{
	static const char *taken; /* by which option */
	if (!sorts[sort].standard)
		return fail(EXIT_USAGE, "%s -: expected the name of a file", what);
	if (taken)
		return fail(EXIT_USAGE, "%s -: standard output is that of %s; expected a file",
			    what, taken);
	taken = what;
	int status = note_output(what, STANDARD_OUTPUT);
	if (status)
		return status;
	int error = output_takes_standard();
	return error ? fail(EXIT_USAGE, "%s -: standard output: %s", what, strerror(-error)) : 0;
}

static int check_name(const char *what, const char *path, enum output_sort sort)
{
	const char *slash = strrchr(path, '/'), *tail = strrchr(path, '.');
	if (!*path)
		return fail(EXIT_USAGE, "%s: expected the name of a file, not an empty one", what);
	if (slash && !slash[1])
		return fail(EXIT_USAGE, "%s: a folder; expected the name of a file", path);
	if (strlen(slash ? slash + 1 : path) > NAME_BYTES || strlen(path) > PATH_MAX - 512)
		return fail(EXIT_USAGE, "%s: a name of more than %d bytes", what, NAME_BYTES);
	if (sort != OUTPUT_TRACE && tail && !strcmp(tail, ".trace"))
		return fail(
			EXIT_USAGE,
			"%s %s: names that end in .trace are kept for traces; expected another one",
			what, path);
	return 0;
}

/* Access to a file that does not exist, or that a rename will replace, is that to its folder. */
static int check_beside(const char *path)
{
	char *copy = strdup(path);
	struct stat st;
	if (!copy)
		return fail(EXIT_INTERNAL, "out of memory");
	const char *folder = dirname(copy);
	int error = stat(folder, &st)		  ? errno
		    : !S_ISDIR(st.st_mode)	  ? ENOTDIR
		    : access(folder, W_OK | X_OK) ? errno
						  : 0;
	free(copy);
	return error ? fail(EXIT_USAGE, "%s: cannot be written: %s", path, strerror(error)) : 0;
}

/* To open a FIFO that nobody reads would wait for ever. */
static int check_reader(const char *path, const struct stat *st, enum output_sort sort)
{
	if (S_ISSOCK(st->st_mode))
		return fail(EXIT_USAGE, "%s: a socket; expected the name of a file", path);
	/* The soft RNICs open theirs by themselves, and do not wait. */
	if (!S_ISFIFO(st->st_mode) || sort == OUTPUT_PCAP)
		return 0;
	/* It stays open: for the reader the output would end where its last writer leaves. */
	if (open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
		return 0;
	return errno == ENXIO
		       ? fail(EXIT_USAGE,
			      "%s: a FIFO that nobody reads; expected a file, or a reader", path)
		       : fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
}

static int can_be_written(const char *what, const char *path, enum output_sort sort)
{
	struct stat st;
	if (!strcmp(path, STANDARD_OUTPUT))
		return check_standard(what, sort);
	int status = check_name(what, path, sort);
	if (status)
		return status;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "%s: a folder; expected the name of a file", path);
	bool there = !lstat(path, &st);
	if (there && access(path, W_OK))
		return fail(EXIT_USAGE, "%s: %s", path, strerror(errno));
	/* Where a file is replaced, its folder is written; else the file as it stands. */
	if (!there || (S_ISREG(st.st_mode) && sort != OUTPUT_IN_PLACE))
		status = check_beside(path);
	else if (sort == OUTPUT_TRACE && !stat(path, &st) && !S_ISREG(st.st_mode))
		status = fail(EXIT_USAGE, "%s: no plain file, as a trace must be", path);
	if (!status && !stat(path, &st))
		status = S_ISREG(st.st_mode) ? check_sort(what, path, sort)
					     : check_reader(path, &st, sort);
	return status ? status : note_output(what, path);
}

int check_output(const char *what, const char *path, enum output_sort sort)
{
	int status = can_be_written(what, path, sort);
	if (!status && promises < PROMISES) {
		promise[promises].sort = sort;
		snprintf(promise[promises++].path, PATH_MAX, "%s", path);
	}
	return status;
}

int check_folder(const char *what, const char *dir, bool stays)
{
	struct stat st;
	if (!*dir)
		return fail(EXIT_USAGE, "%s: expected the name of a folder, not an empty one",
			    what);
	if (strlen(dir) > PATH_MAX - 512)
		return fail(EXIT_USAGE, "%s: a name of more than %d bytes", what, PATH_MAX - 512);
	bool is_new = !mkdir(dir, 0777);
	if (!is_new && errno != EEXIST)
		return fail(EXIT_USAGE, "%s: the folder cannot be made: %s", dir, strerror(errno));
	if (is_new && !stays) {
		assert(mades < PROMISES);
		made[mades++] = dir;
	}
	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return fail(EXIT_USAGE, "%s: not a folder; %s wants one", dir, what);
	if (access(dir, W_OK | X_OK))
		return fail(EXIT_USAGE, "%s: nothing can be written there: %s", dir,
			    strerror(errno));
	return 0;
}

int saved(const char *path, int error)
{
	for (unsigned i = 0; i < promises; i++)
		promise[i].saved |= !strcmp(promise[i].path, path);
	if (!error)
		return 0;
	return fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s",
		    strcmp(path, STANDARD_OUTPUT) ? path : "standard output", strerror(-error));
}

/* --- results --- */

#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

static const char *asked[SORTS];

bool take_result(const struct option_row *row, void *into, const char *path)
{
	(void)into;
	for (unsigned i = 0; i < SORTS; i++)
		if (sorts[i].option && !strcmp(sorts[i].option + 2, row->name))
			asked[i] = path;
	return true;
}

const char *result_asked(enum output_sort sort)
{
	return asked[sort];
}

bool results_asked(void)
{
	for (unsigned i = 0; i < SORTS; i++)
		if (asked[i])
			return true;
	return false;
}

int results_check(void)
{
	int status = 0;
	for (unsigned i = 0; i < SORTS && !status; i++)
		if (asked[i])
			status = check_output(sorts[i].option, asked[i], (enum output_sort)i);
	return status;
}

int outputs_write(json_t *all, const struct conclusion *c)
{
	int status = 0, error = all ? tree_end(all, c) : -ENOMEM;
	for (unsigned i = 0; i < promises; i++) {
		const struct promise *p = &promise[i];
		if (p->saved || !sorts[p->sort].write)
			continue;
		int one = saved(p->path,
				error ? error : save_file(p->path, sorts[p->sort].write, all));
		status = status ? status : one;
	}
	json_decref(all);
	return status;
}

void outputs_begin(void)
{
	begun = true;
}

void outputs_end(int status)
{
	struct conclusion c;
	conclude(&c, status, "No results: %s.", *failure ? failure : "the command was left off");
	if (begun)
		outputs_write(json_pack("{s:b}", "complete", 0), &c);
	while (mades)
		rmdir(made[--mades]); /* unless there is something in it */
}

/* --- plots --- */

int plot_check(const char *path)
{
	return path ? check_output("--plot", path, OUTPUT_ANY) : 0;
}

static int write_string(FILE *out, const void *text)
{
	return fputs(text, out) < 0 ? -errno : 0;
}

int plot_write(const char *path, const json_t *all, const char *name)
{
	char *text = path ? text_made(json_deep_copy(all), name) : NULL;
	if (!path)
		return 0;
	const int status = text ? saved(path, save_file(path, write_string, text)) : no_memory();
	free(text);
	return status;
}
