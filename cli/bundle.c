/* SPDX-License-Identifier: BSD-3-Clause */
/* See bundle.h. */
#include "cli/bundle.h"
#include <errno.h>
#include <stdlib.h>
#include "checker/judge/names.h"
#include "cli/cli.h"
#include "report/live/examine_report.h"
#include "report/text.h"

int exam_run(const struct crash_bundle *a, struct exam *e)
{
	char why[400];
	int error = examine(&a->cut, &a->options, e, why, sizeof(why));

	return error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "examine: %s", why)
		     : EXIT_HELD;
}

int exam_status(const struct cut *c, const struct exam *e)
{
	static const int status[] = {[EXAM_AS_PROMISED] = EXIT_HELD,
				     [EXAM_BROKEN] = EXIT_BROKEN,
				     [EXAM_UNSURE] = EXIT_UNSURE};
	return status[exam_verdict(c, e)];
}

/* --- tidemark replay --- */

static bool breaks_again(const struct crash_bundle *a, const struct exam *e)
{
	const struct exam_cell *cell = &e->cell[a->contract];

	return cell->happened.keys || (!a->happened && cell->possible.keys);
}

static int replay_verdict(const struct crash_bundle *a, const struct exam *e, const char *path)
{
	const char *name = a->contract < 0 ? "" : contract_name((enum tm_contract)a->contract);
	int status = a->contract < 0	  ? exam_status(&a->cut, e)
		     : breaks_again(a, e) ? EXIT_BROKEN
					  : EXIT_FIXED;

	if (a->contract < 0)
		printf("%s: %s\n", path,
		       status == EXIT_BROKEN ? "a promise is broken" : "no promise is broken");
	else if (status == EXIT_BROKEN)
		printf("%s: broken %s\n", path, name);
	else
		printf("%s: fixed: %s is not broken any more\n", path, name);
	return status;
}

int replay_bundle(const char *path, bool quiet)
{
	struct crash_bundle *a = calloc(1, sizeof(*a));
	struct exam e = {0};
	char why[400];
	int status, error = a ? crash_bundle_read(a, path, why, sizeof(why)) : -ENOMEM;

	if (error) {
		status = fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s",
			      a ? why : "out of memory");
	} else {
		status = exam_run(a, &e);
		json_t *all = status || quiet ? NULL : exam_tree(a, &e);
		if (all)
			text_print(all, "examine");
		json_decref(all);
		if (!status)
			status = replay_verdict(a, &e, path);
	}
	exam_free(&e);
	if (a)
		cut_free(&a->cut);
	free(a);
	return status;
}
