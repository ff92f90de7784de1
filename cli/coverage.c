/* SPDX-License-Identifier: BSD-3-Clause */
/* See coverage.h. */
#include "cli/coverage.h"
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/cli.h"
#include "report/coverage/coverage.h"
#include "report/output.h"
#include "scenarios/stores.h"

int coverage_open(struct campaign *c, struct covered *covered, const char *dir)
{
	const struct tm_store *store[COVERED_STORES] = {0};
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
	int status = dir ? check_folder("--coverage", dir, false) : 0;
	if (status)
		return status;
	int error = covered_open(covered, store, n);
	const struct tm_store *last = covered->store[covered->stores ? covered->stores - 1 : 0]
					      .store;
	if (error == -ENOEXEC && !store_path(last))
		return fail(EXIT_USAGE,
			    "--coverage: %s is built in; expected an object of its own, such as "
			    "tidemark cc --coverage -g -I. -o %s.so core/stores/%s/*.c "
			    "core/stores/*.c makes in the source tree",
			    last->name, last->name, last->name);
	if (error == -ENOENT || error == -ENOEXEC)
		return fail(EXIT_USAGE,
			    "--coverage: %s has no %s; expected it to be compiled by tidemark cc "
			    "--coverage -g",
			    last->name,
			    error == -ENOENT ? "debug information" : "hooks of coverage");
	if (error == -EFBIG)
		return fail(EXIT_USAGE,
			    "--coverage: %s has too much code; expected at most %d basic blocks",
			    last->name, COVERED_BLOCKS);
	if (error)
		return fail(EXIT_INTERNAL, "--coverage: %s", strerror(-error));
	c->options.covered = covered;
	c->options.limits.no_tree = true;
	return 0;
}

/* Pages, if lcov is installed. */
static int write_pages(const char *dir, char *tracefile)
{
	char *words[] = {"genhtml",	    "--quiet", "--show-details",
			 "--ignore-errors", "source",  "--output-directory",
			 (char *)dir,	    tracefile, NULL};
	pid_t child;
	int status = 0, error = posix_spawnp(&child, words[0], NULL, NULL, words, environ);
	if (error == ENOENT) {
		fflush(stdout);
		fprintf(stderr,
			"tidemark: %s has no pages: genhtml is not installed (package lcov)\n",
			dir);
		return 0;
	}
	while (!error && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (error || status)
		return fail(EXIT_INTERNAL, "genhtml %s: %s", tracefile,
			    error ? strerror(error) : "it failed");
	return 0;
}

static int save(const struct covered_report *report, unsigned n, const char *dir)
{
	char *path;
	if (asprintf(&path, "%s/coverage.info", dir) < 0)
		return fail(EXIT_INTERNAL, "out of memory");
	int error = save_file(path, coverage_write_lcov, &(struct covered_files){report, n});
	int status = error ? fail(EXIT_USAGE, "%s: %s", path, strerror(-error))
			   : write_pages(dir, path);
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
