/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages of a campaign's traces: each trace is read and replayed as tidemark replay does, in
 * several processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/campaign/driver.h"
#include "report/trace/event_trace_read.h"
#include "report/output.h"
#include "report/page/campaign.h"
#include "report/terminal.h"

#define PAGE_FILE (REPORT_NAME + 64) /* bytes of a page's name, without its folder */

struct pages {
	const char *dir;
	const char **trace;
	unsigned traces;
	bool quiet;
	int error;
	char *why;
};

struct made {
	int error;
	char why[REPORT_WHY];
};

/* "efactory-DUR.html", for "traces/efactory-DUR.trace". */
static void page_file(const char *trace, char file[PAGE_FILE])
{
	static const char tail[] = ".trace";
	const char *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
	size_t len = strlen(name), end = sizeof(tail) - 1;
	if (len > end && !strcmp(name + len - end, tail))
		len -= end;
	snprintf(file, PAGE_FILE, "%.*s.html", (int)len, name);
}

static int write_page(const char *trace, const char *dir)
{
	struct event_trace_read *read = NULL;
	char file[PAGE_FILE], *path = NULL;
	page_file(trace, file);
	int error = asprintf(&path, "%s/%s", dir, file) < 0 ? -ENOMEM : 0;
	if (!error)
		error = event_trace_read(trace, &read);
	json_t *all = error ? NULL : event_trace_tree(&read->events);
	if (!error)
		error = tree_end(all, NULL);
	if (!error)
		error = save_file(path, tree_write_page, all);
	json_decref(all);
	event_trace_read_free(read);
	free(path);
	return error;
}

static void make_page(void *arg, unsigned unit, void *result)
{
	const struct pages *all = arg;
	struct made *made = result;
	made->error = write_page(all->trace[unit], all->dir);
	if (made->error == -EPROTO)
		snprintf(made->why, sizeof(made->why), "%s: it does not run as it was written",
			 all->trace[unit]);
	else if (made->error)
		snprintf(made->why, sizeof(made->why), "%s: the page of %s: %s", all->dir,
			 all->trace[unit], driver_error(made->error));
}

static void take_page(void *arg, unsigned unit, const void *result)
{
	struct pages *all = arg;
	const struct made *made = result;
	(void)unit;
	if (made->error && !all->error)
		memcpy(all->why, made->why, REPORT_WHY);
	if (made->error)
		all->error = made->error;
}

static void tell_progress(void *arg, const struct driver_progress *at)
{
	const struct pages *all = arg;
	if (!all->quiet)
		progress_line("pages: %u of %u", at->done, at->units);
}

static int write_pages(const struct report *r, struct pages *all)
{
	struct driver driver = {
		.how = {.jobs = r->campaign->options.jobs, .progress = tell_progress},
		.result_bytes = sizeof(struct made),
		.work = make_page,
		.take = take_page,
		.arg = all,
		.progress_arg = all};
	for (unsigned i = 0; i < r->campaign->configs * TM_CONTRACTS; i++) {
		const struct report_cell *cell = &r->cell[i / TM_CONTRACTS][i % TM_CONTRACTS];
		for (unsigned n = 0; n < cell->cases; n++)
			if (cell->one[n].trace)
				all->trace[all->traces++] = cell->one[n].trace;
	}
	driver.units = all->traces;
	int error = all->traces ? driver_run(&driver) : 0;
	progress_line(NULL);
	if (error)
		snprintf(all->why, REPORT_WHY, "%s", driver_error(error));
	return error ? error : all->error;
}

int report_pages(const struct report *r, const char *dir, bool quiet, char why[REPORT_WHY])
{
	struct pages all = {.dir = dir, .quiet = quiet, .why = why};
	snprintf(why, REPORT_WHY, "out of memory");
	all.trace = calloc((size_t)r->campaign->configs * TM_CONTRACTS * MINIMIZED_MAX,
			   sizeof(*all.trace));
	int error = all.trace ? write_pages(r, &all) : -ENOMEM;
	free(all.trace);
	return error;
}
