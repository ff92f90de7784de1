/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark judge: is a history linearizable, whatever made it? */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "checker/logs/announcements.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/array.h"
#include "core/text/text.h"
#include "report/images/history_report.h"
#include "report/report.h"
#include "report/text.h"

struct request {
	bool quiet;
};

static const struct option_row rows[] = {ROWS_RESULTS,
					 {"quiet", NULL, "print nothing: the exit status says it",
					  OPTION_FIELD(struct request, quiet), .letter = 'q'},
					 OPTION_END};

static const struct options options = {
	"judge", "FILE [OPTION...]",
	"Judges a history: is there an order of the operations, each between its call and its "
	"answer, that explains all answers? FILE has a line for each call and each answer, in the "
	"order in which they came, \"1 call put x 5\" and \"1 return ok\"; - is standard input. "
	"docs/history.md has the operations. Each key is judged by itself; of one that no order "
	"explains, the fewest operations are shown that contradict each other.",
	rows,
	"0 linearizable, 1 not, 2 usage or bad input, 3 could not tell: too many operations of a "
	"key were under way at one time, 70 internal error"};

/* 0, or the status after a message. */
static int read_file(const char *path, struct pm_log *log)
{
	struct input_error where = {0};
	size_t len;
	int error;
	char *bytes = input_read(path, HISTORY_FILE_MAX, &len, &where, &error);
	if (bytes && len > HISTORY_FILE_MAX)
		error = -EFBIG;
	else if (bytes)
		error = history_read(log, bytes, len, &where);
	free(bytes);
	return input_status(path, error, &where);
}

/* What no order explains: of transactions, and key by key. */
struct found {
	struct announced_fault *fault;
	size_t n, room;
	unsigned unsure;
};

static bool judge_keys(struct announcements *a, struct found *found)
{
	if (a->transactions && !ARRAY_RESERVE(found->fault, found->n, 1, found->room))
		return false;
	if (a->transactions && !announced_serializable(a, &found->fault[found->n]))
		found->unsure += found->fault[found->n++].unsure;
	for (unsigned key = 0; key < a->keys; key++) {
		if (!ARRAY_RESERVE(found->fault, found->n, 1, found->room))
			return false;
		if (announcements_explained(a, key, &found->fault[found->n]))
			continue;
		found->unsure += found->fault[found->n++].unsure;
	}
	return true;
}

static json_t *tree_of(const struct announcements *a, const char *name, const struct found *found,
		       const struct conclusion *end)
{
	json_int_t open = 0;
	for (size_t i = 0; i < a->ops; i++)
		open += !a->op[i].answered;
	return json_pack("{s:o, s:b, s:b, s:I, s:I, s:o, s:{s:I, s:s}}", "history", json_text(name),
			 "linearizable", !found->n, "could_not_tell",
			 found->n && found->n == found->unsure, "operations", (json_int_t)a->ops,
			 "keys", (json_int_t)a->keys, "faults",
			 history_json(a, found->fault, (unsigned)found->n), "shown", "open", open,
			 "verdict", end->text);
}

static int judge(const struct request *r, const char *name, struct announcements *a)
{
	struct found found = {0};
	struct conclusion end;
	int status = EXIT_HELD;
	if (!judge_keys(a, &found))
		status = fail(EXIT_INTERNAL, "out of memory");
	if (found.n > found.unsure)
		conclude(&end, EXIT_BROKEN,
			 a->transactions ? "not strictly serializable" : "not linearizable");
	else if (found.unsure)
		conclude(&end, EXIT_UNSURE, "could not tell");
	else
		conclude(&end, EXIT_HELD,
			 a->transactions ? "strictly serializable" : "linearizable");
	json_t *all = status ? NULL : tree_of(a, name, &found, &end);
	if (all && !r->quiet)
		text_print(all, "judge");
	if (!status)
		status = outputs_write(all, &end);
	status = status ? status : end.status;
	for (size_t i = 0; i < found.n; i++)
		free(found.fault[i].op);
	free(found.fault);
	return status;
}

int judge_main(int argc, char **argv)
{
	struct request r = {0};
	struct announcements a;
	struct pm_log log;
	char why[600];
	int status = options_read(&options, &r, argc, argv);
	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return fail(EXIT_USAGE, "judge: expected a FILE, or - (tidemark judge --help)");
	const char *name = argv[optind];
	note_input(name);
	if (results_check())
		return EXIT_USAGE;
	if (pm_log_open(&log))
		return fail(EXIT_INTERNAL, "out of memory");
	status = read_file(name, &log);
	if (!status) {
		int error = announcements_read(&a, &log, UINT32_MAX, UINT32_MAX, why, sizeof(why));
		if (error == -ENODATA)
			status = fail(
				EXIT_USAGE,
				"%s: no operation; expected a line such as \"1 call put x 5\"",
				name);
		else if (error)
			status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s", name,
				      why);
		else
			status = judge(&r, name, &a);
		announcements_free(&a);
	}
	pm_log_close(&log);
	return status;
}
