/* SPDX-License-Identifier: BSD-3-Clause */
/* See coverage.h. */
#include "cli/coverage.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "report/coverage/coverage.h"

int coverage_open(struct campaign *c, struct covered *covered, const char *dir, bool *made)
{
	const struct tm_store *store[COVERED_STORES];
	unsigned n = 0;
	for (unsigned i = 0; i < c->configs; i++) {
		unsigned s = 0;
		while (s < n && store[s] != c->config[i].store)
			s++;
		if (s == COVERED_STORES)
			return fail(EXIT_USAGE, "--coverage: expected no more than %d stores",
				    COVERED_STORES);
		if (s == n)
			store[n++] = c->config[i].store;
	}
	int status = dir ? check_folder("--coverage", dir, made) : 0;
	if (status)
		return status;
	int error = covered_open(covered, store, n);
	if (error == -ENOSYS)
		return fail(EXIT_USAGE, "--coverage: expected an x86-64 processor");
	if (error == -ENOENT)
		return fail(EXIT_USAGE,
			    "--coverage: %s has no debug information; expected it to be compiled "
			    "with -g",
			    covered->store[covered->stores - 1].store->name);
	if (error == -EFBIG)
		return fail(EXIT_USAGE,
			    "--coverage: %s has too much code; expected at most %d statements and "
			    "%d branches",
			    covered->store[covered->stores - 1].store->name, COVERED_SITES,
			    COVERED_BRANCHES);
	if (error)
		return fail(EXIT_INTERNAL, "--coverage: %s", strerror(-error));
	c->options.covered = covered;
	c->options.limits.no_tree = true;
	return 0;
}

static int save(const struct covered_report *report, unsigned n, const char *dir)
{
	char *path = NULL;
	int error = coverage_save(report, n, dir, &path);
	int status = error ? fail(error == -ENOMEM ? EXIT_INTERNAL : EXIT_USAGE, "%s: %s",
				  path ? path : dir, strerror(-error))
			   : 0;
	free(path);
	return status;
}

int coverage_tell(const struct covered *covered, const char *dir, int status)
{
	struct covered_report report[COVERED_STORES] = {0};
	struct place_list places;
	int error = places_find(&places);
	error = error == -ENOMEM ? error : 0;
	for (unsigned i = 0; i < covered->stores && !error; i++)
		error = coverage_report(&covered->store[i], &places, &report[i]);
	places_free(&places);
	for (unsigned i = 0; i < covered->stores && !error; i++)
		coverage_print(&report[i]);
	int failed = error ? fail(EXIT_INTERNAL, "out of memory")
		     : dir ? save(report, covered->stores, dir)
			   : 0;
	for (unsigned i = 0; i < covered->stores; i++)
		coverage_report_free(&report[i]);
	return failed ? failed : status;
}
