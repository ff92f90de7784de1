/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coverage as HTML pages that need nothing else: index.html with the figures of each store and what
 * was never cut, and a page for each source file, with its lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "report/coverage/coverage.h"
#include "report/output.h"

static const char style[] =
	"body{font:14px sans-serif;margin:2em;color:#222}"
	"table{border-collapse:collapse;margin:0 0 1.5em}"
	"th,td{padding:2px 10px;text-align:left;border-bottom:1px solid #ddd}"
	"td.n{text-align:right;font-variant-numeric:tabular-nums}"
	".source td{border:0;padding:0 8px;font:13px monospace;white-space:pre;vertical-align:top}"
	".source td.n{color:#888}"
	".yes{background:#cdeccd}.no{background:#f6c9c9}.part{background:#fbe8b4}"
	".mark{font:12px sans-serif;white-space:normal;color:#a00}.cut{color:#575}"
	"h2{margin-top:1.5em}";

struct page {
	const struct covered_files *files;
	const struct covered_report *report;
	unsigned file;
};

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		put_escaped(out, (c < ' ' && c != '\t' && c != '\n') || c == 0x7f ? '?' : c);
	}
}

static void begin_page(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>", out);
	put_text(out, title);
	fprintf(out, "</title>\n<style>%s</style></head>\n<body>\n<h1>", style);
	put_text(out, title);
	fputs("</h1>\n", out);
}

/* "erda-core-stores-erda-log.c.html" */
static char *page_name(const struct covered_report *r, unsigned file)
{
	char *name;
	if (asprintf(&name, "%s-%s.html", r->store->name, r->lines->file[file].shown) < 0)
		return NULL;
	for (char *c = name; *c; c++)
		if (*c == '/')
			*c = '-';
	return name;
}

/* --- index.html --- */

static void put_figures(FILE *out, const struct covered_report *r, int file)
{
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++) {
		struct covered_figures f = coverage_figures(r, p, file);
		if (f.all)
			fprintf(out, "<td class=\"n\">%u of %u</td><td class=\"n\">%u&nbsp;%%</td>",
				f.ran, f.all, f.ran * 100 / f.all);
		else
			fputs("<td></td><td></td>", out);
	}
}

static int put_files(FILE *out, const struct covered_report *r)
{
	fputs("<table>\n<tr><th>file</th>", out);
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++)
		fprintf(out, "<th colspan=\"2\">%s</th>", coverage_phase_names[p]);
	fputs("</tr>\n", out);
	for (unsigned i = 0; i < r->lines->files; i++) {
		if (!coverage_has_file(r, i))
			continue;
		char *name = page_name(r, i);
		if (!name)
			return -ENOMEM;
		fputs("<tr><td><a href=\"", out);
		put_text(out, name);
		fputs("\">", out);
		put_text(out, r->lines->file[i].shown);
		fputs("</a></td>", out);
		put_figures(out, r, (int)i);
		fputs("</tr>\n", out);
		free(name);
	}
	fputs("<tr><th>all</th>", out);
	put_figures(out, r, -1);
	fputs("</tr>\n</table>\n", out);
	return 0;
}

static int put_never_cut(FILE *out, const struct covered_report *r)
{
	char what[64], why[300];
	fputs("<table>\n<tr><th>never cut</th><th>what</th><th>why</th></tr>\n", out);
	for (unsigned i = 0; i < r->cuts; i++) {
		const struct covered_cut *cut = &r->cut[i];
		if (cut->fate[CUT_DONE])
			continue;
		char *name = cut->file < 0 ? strdup("") : page_name(r, (unsigned)cut->file);
		if (!name)
			return -ENOMEM;
		coverage_cut_name(cut, what, sizeof(what));
		coverage_cut_why(cut, why, sizeof(why));
		fputs("<tr><td>", out);
		if (cut->file >= 0) {
			fputs("<a href=\"", out);
			put_text(out, name);
			fprintf(out, "#L%u\">", cut->line);
			put_text(out, r->lines->file[cut->file].shown);
			fprintf(out, ":%u</a>", cut->line);
		}
		fprintf(out, "</td><td>%s</td><td>%s</td></tr>\n", what, why);
		free(name);
	}
	fputs("</table>\n", out);
	return 0;
}

static int write_index(FILE *out, const void *arg)
{
	const struct covered_files *files = arg;
	int error = 0;
	begin_page(out, "Coverage");
	for (unsigned i = 0; i < files->n && !error; i++) {
		fputs("<h2>", out);
		put_text(out, files->report[i].store->name);
		fputs("</h2>\n", out);
		error = put_files(out, &files->report[i]);
		if (!error)
			error = put_never_cut(out, &files->report[i]);
	}
	fputs("</body>\n</html>\n", out);
	return error;
}

/* --- a file --- */

static void put_counts(FILE *out, const struct covered_line *line)
{
	for (unsigned p = COVERAGE_RUN; p < COVERAGE_PHASES; p++) {
		if (!line || (p == COVERAGE_RECOVERY && !line->in_recovery))
			fputs("<td></td>", out);
		else
			fprintf(out, "<td class=\"n %s\">%" PRIu32 "</td>",
				!line->count[p]			       ? "no"
				: p == COVERAGE_RECOVERY && line->part ? "part"
								       : "yes",
				line->count[p]);
	}
}

static void put_marks(FILE *out, const struct covered_report *r, unsigned file, unsigned line)
{
	char name[64], why[300];
	for (unsigned i = 0; i < r->cuts; i++) {
		const struct covered_cut *cut = &r->cut[i];
		if (cut->file != (int)file || cut->line != line)
			continue;
		coverage_cut_name(cut, name, sizeof(name));
		coverage_cut_why(cut, why, sizeof(why));
		if (cut->fate[CUT_DONE])
			fprintf(out,
				" <span class=\"mark cut\">%s cut %" PRIu64 " of %" PRIu64
				" times</span>",
				name, cut->fate[CUT_DONE], cut->times);
		else
			fprintf(out, " <span class=\"mark\">%s never cut: %s</span>", name, why);
	}
}

static void put_branches(FILE *out, const struct covered_report *r, unsigned file, unsigned line)
{
	char way[48];
	for (unsigned i = 0; i < r->branches; i++) {
		const struct covered_branch *b = &r->branch[i];
		int missed = b->file == file && b->line == line ? coverage_missed_way(b) : -1;
		if (missed < 0)
			continue;
		coverage_way_name(b, (unsigned)missed, way, sizeof(way));
		fprintf(out, " <span class=\"mark\">%s in recovery</span>", way);
	}
}

static void put_line(FILE *out, const struct page *p, unsigned number, const char *text)
{
	const struct covered_report *r = p->report;
	fprintf(out, "<tr id=\"L%u\"><td class=\"n\">%u</td>", number, number);
	put_counts(out, coverage_line(r, p->file, number));
	fputs("<td>", out);
	put_text(out, text);
	put_marks(out, r, p->file, number);
	put_branches(out, r, p->file, number);
	fputs("</td></tr>\n", out);
}

/* Without its source, the lines that have code. */
static void put_numbers(FILE *out, const struct page *p)
{
	for (unsigned i = 0; i < p->report->n; i++)
		if (p->report->line[i].file == p->file)
			put_line(out, p, p->report->line[i].line, "(the source file is not here)");
}

static int write_source(FILE *out, const void *arg)
{
	const struct page *p = arg;
	const struct source_lines_file *file = &p->report->lines->file[p->file];
	FILE *in = fopen(file->path, "re");
	char *text = NULL;
	size_t room = 0;
	ssize_t len;
	begin_page(out, file->shown);
	fputs("<p>", out);
	put_text(out, p->report->store->name);
	fputs(", <a href=\"index.html\">all files</a>. Beside each line with code stands in how "
	      "many "
	      "workloads it ran; yellow: not all parts of it.</p>\n"
	      "<table class=\"source\">\n<tr><th></th>",
	      out);
	for (unsigned i = COVERAGE_RUN; i < COVERAGE_PHASES; i++)
		fprintf(out, "<th>%s</th>", coverage_phase_names[i]);
	fputs("<th></th></tr>\n", out);
	if (!in)
		put_numbers(out, p);
	for (unsigned n = 1; in && (len = getline(&text, &room, in)) >= 0; n++) {
		if (len && text[len - 1] == '\n')
			text[len - 1] = '\0';
		put_line(out, p, n, text);
	}
	fputs("</table>\n</body>\n</html>\n", out);
	free(text);
	if (in)
		fclose(in);
	return 0;
}

/* --- all --- */

/* 0 or -errno, with the path in *path. */
static int save(const char *dir, const char *name, int (*write)(FILE *out, const void *arg),
		const void *arg, char **path)
{
	free(*path);
	if (asprintf(path, "%s/%s", dir, name) < 0) {
		*path = NULL;
		return -ENOMEM;
	}
	return save_file(*path, write, arg);
}

static int save_sources(const struct covered_files *files, const struct covered_report *r,
			const char *dir, char **path)
{
	int error = 0;
	for (unsigned i = 0; i < r->lines->files && !error; i++) {
		const struct page page = {files, r, i};
		if (!coverage_has_file(r, i))
			continue;
		char *name = page_name(r, i);
		error = name ? save(dir, name, write_source, &page, path) : -ENOMEM;
		free(name);
	}
	return error;
}

int coverage_save(const struct covered_report *reports, unsigned n, const char *dir, char **path)
{
	const struct covered_files files = {reports, n};
	*path = NULL;
	int error = save(dir, "coverage.info", coverage_write_lcov, &files, path);
	for (unsigned i = 0; i < n && !error; i++)
		error = save_sources(&files, &reports[i], dir, path);
	return error ? error : save(dir, "index.html", write_index, &files, path);
}
