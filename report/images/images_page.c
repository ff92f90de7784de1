/* SPDX-License-Identifier: BSD-3-Clause */
/* See images_page.h. */
#include "report/images/images_page.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/text.h"
#include "report/event_trace.h"
#include "report/images/history_report.h"
#include "report/output.h"
#include "report/page/html.h"
#include "report/terminal.h"

#define VERDICT_WORDS 1000 /* bytes */
#define OPERATIONS    40   /* of clients, the latest */

/* --- texts that are printed elsewhere, too --- */

struct printed {
	char *text;
	size_t len;
};

static FILE *print_begin(struct printed *p)
{
	*p = (struct printed){0};
	return open_memstream(&p->text, &p->len);
}

/* The text, escaped, as an element. */
static void print_end(struct printed *p, FILE *from, FILE *out, const char *open, const char *close)
{
	if (from && !fclose(from))
		page_element(out, open, p->text, close);
	free(p->text);
}

static void verdict_words(const struct images_report *r, const struct image_cause *c,
			  char words[VERDICT_WORDS])
{
	image_verdict_words(&r->options->checker, &c->verdict, words, VERDICT_WORDS);
}

/* --- the top --- */

static void row(FILE *out, const char *name, const char *text)
{
	page_element(out, "<tr><th>", name, "<td>");
	page_element(out, "", text, "</tr>\n");
}

static void print_judge(FILE *out, const struct image_checker *c)
{
	char text[4096];
	if (c->library)
		snprintf(text, sizeof(text), "int %s(const char *path) of %s", c->function,
			 c->library);
	else
		snprintf(text, sizeof(text), "%s", c->recover);
	row(out, "checker", text);
	if (c->check)
		row(out, "then", c->check);
}

static void print_contracts(FILE *out, unsigned contracts)
{
	if (!contracts)
		return;
	fputs("<dl class=contracts>\n", out);
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(contracts & TM_BIT(k)))
			continue;
		fprintf(out, "<dt>%s", contract_name((enum tm_contract)k));
		page_element(out, "<dd>", contract_what((enum tm_contract)k), "\n");
	}
	fputs("</dl>\n", out);
}

static void print_recorded(FILE *out, const struct images_report *r)
{
	const struct images_options *o = r->options;
	struct printed p;
	char text[128];
	bool told;
	fputs("<section class=run>\n<h2>What was recorded, and who judges</h2>\n<table "
	      "class=facts>\n",
	      out);
	row(out, "recording", r->name);
	for (unsigned i = 0; i < r->log->files; i++) {
		page_element(out, "<tr><th>PM<td>", r->log->file[i].name, "");
		fprintf(out, ", %" PRIu64 " bytes", r->log->file[i].size);
		if (r->log->file[i].unseen) {
			fputs("; ", out);
			images_print_unseen(out, r->log->file[i].unseen);
		}
		fputs("</tr>\n", out);
	}
	FILE *from = print_begin(&p);
	if (from)
		images_print_counts(from, r->log);
	print_end(&p, from, out, "<tr><th>events<td>", "</tr>\n");
	if (images_unordered(r->log, &told)) {
		fputs("<tr><th>order<td>", out);
		images_print_unordered(out, told);
		fputs("</tr>\n", out);
	}
	from = print_begin(&p);
	if (from)
		images_print_not_seen(from, r->log, "", "\n");
	if (from && !fclose(from))
		for (char *at = p.text, *line; (line = strsep(&at, "\n"));)
			if (*line)
				row(out, "not seen", line);
	free(p.text);
	if (!r->log->stopped) {
		snprintf(text, sizeof(text), "none: %s", images_why_no_end(r->log));
		row(out, "end", text);
	}
	row(out, "fails",
	    o->model == PM_KILL ? "the process: all that it had stored is left"
	    : o->model == PM_CACHES
		    ? "the power; caches survive, so that all that CPUs stored is left"
		    : "the power; what is in caches is lost");
	images_print_hardware(o, text, sizeof(text));
	row(out, "hardware", text);
	print_judge(out, &o->checker);
	from = print_begin(&p);
	if (from)
		images_print_command(from, r, NULL);
	print_end(&p, from, out, "<tr><th>command<td>", "</tr>\n");
	snprintf(text, sizeof(text), "tidemark %s", tidemark_version);
	row(out, "version", text);
	fputs("</table>\n", out);
	print_contracts(out, r->contracts);
	fputs("</section>\n", out);
}

static void print_figures(FILE *out, const struct images_report *r)
{
	const struct images_result *x = r->result;
	struct printed p;
	fprintf(out,
		"<ul class=figures>\n<li><b>%" PRIu64
		"</b> place%s where the %s</li>\n<li><b>%" PRIu64
		"</b> different image%s</li>\n<li><b>%" PRIu64 "</b> bad</li>\n<li><b>%u</b> "
		"cause%s</li>\n<li>at most <b>%u</b> images of a place</li>\n</ul>\n",
		x->cuts, plural(x->cuts),
		r->options->model == PM_KILL ? "process died" : "power failed", x->images,
		plural(x->images), x->bad, x->causes, plural(x->causes), r->options->most);
	FILE *from = print_begin(&p);
	if (!from)
		return;
	images_print_remarks(from, r);
	if (!fclose(from))
		for (char *at = p.text, *line; (line = strsep(&at, "\n"));)
			if (*line)
				page_element(out, "<p class=remark>", line, "</p>\n");
	free(p.text);
}

static void print_overview(FILE *out, const struct images_report *r)
{
	const struct images_result *x = r->result;
	char words[VERDICT_WORDS];
	if (!x->causes)
		return;
	fputs("<section id=causes>\n<h2>The causes</h2>\n<ol>\n", out);
	for (unsigned i = 0; i < x->causes; i++) {
		const struct image_cause *c = &x->cause[i];
		struct printed p;
		verdict_words(r, c, words);
		fprintf(out, "<li><a href=\"#c%u\">", i + 1);
		page_element(out, images_doubt_words(c), words, "</a>; ");
		fprintf(out, "%" PRIu64 " image%s", c->images, plural(c->images));
		FILE *from = c->parts ? print_begin(&p) : NULL;
		if (from) {
			images_print_event(from, r->log, c->part[0].event);
			print_end(&p, from, out, "; lost: ", "");
		}
		if (c->parts > 1)
			fprintf(out, ", and %u more", c->parts - 1);
		fputs("</li>\n", out);
	}
	fputs("</ol>\n</section>\n", out);
}

/* The page's headline where there is no verdict. */
static void print_doubt(FILE *out, const struct images_report *r, enum image_doubt doubt)
{
	struct printed p;
	FILE *from = doubt ? print_begin(&p) : NULL;
	if (!from)
		return;
	images_print_doubt(from, r, doubt);
	print_end(&p, from, out, "<p class=\"verdict bad\">", "</p>\n");
}

/* What no power failure has done. */
static void print_faults(FILE *out, const struct images_report *r)
{
	for (unsigned i = 0; i < r->faults; i++) {
		char words[FAULT_WORDS];
		struct printed p;
		history_fault_words(r->said, &r->fault[i], words, sizeof(words));
		page_element(out, "<p class=\"verdict bad\">Without any power failure: ", words,
			     "</p>\n");
		FILE *from = r->fault[i].ops ? print_begin(&p) : NULL;
		if (!from)
			continue;
		history_print_operations(from, r->said, &r->fault[i], 0);
		print_end(&p, from, out, "<pre>", "</pre>\n");
	}
}

static void print_header(FILE *out, const struct images_report *r)
{
	char words[VERDICT_WORDS];
	page_element(out, "<header>\n<h1>Crash images of ", r->name, "</h1>\n");
	if (r->one) {
		verdict_words(r, r->one, words);
		fprintf(out, "<p class=\"verdict %s\">This image: %s",
			r->one->verdict.how == IMAGE_GOOD && !r->one->doubt ? "good" : "bad",
			images_doubt_words(r->one));
		page_element(out, "", words, "</p>\n");
		print_doubt(out, r, r->one->doubt);
	} else {
		conclusion_page(out, &r->conclusion);
	}
	print_faults(out, r);
	if (r->result)
		print_figures(out, r);
	fputs("</header>\n", out);
}

/* --- a cause --- */

static void print_fate(const struct section *s, const struct scene_fate *f)
{
	const struct pm_log *log = s->r->log;
	const bool late = f->flush != SCENE_NEVER && f->flush >= s->cause->at;
	fputs("<br>", s->out);
	if (f->flush != SCENE_NEVER) {
		fputs(late ? "In the run it was flushed after that, by " : "It was flushed, by ",
		      s->out);
		section_print_event_link(s, f->flush);
	}
	if (f->durable == SCENE_NEVER) {
		fputs(f->flush == SCENE_NEVER ? "Nothing ever flushes it."
		      : log->threads	      ? ", and no fence of that thread ever follows."
					      : ", and no fence ever follows.",
		      s->out);
		return;
	}
	const char *what = pm_event_name[log->event[f->durable].kind];
	fprintf(s->out, "%s%s, ",
		f->flush == SCENE_NEVER ? "It was durable only with the "
		: late			? ", and it was durable with the "
					: "; the power failed before the ",
		what);
	section_print_event_link(s, f->durable);
	fputs(f->flush == SCENE_NEVER || late ? "." : ", that waits for this.", s->out);
}

static void print_lost(const struct section *s)
{
	const struct image_cause *c = s->cause;
	const struct pm_log *log = s->r->log;
	if (!c->parts) {
		if (!s->r->one)
			fputs("<p>Nothing that was in flight is lost: it is the moment that "
			      "matters.</p>\n",
			      s->out);
		return;
	}
	fputs("<h3>What was lost</h3>\n<ul class=facts>\n", s->out);
	for (unsigned i = 0; i < c->parts; i++) {
		const struct pm_event *e = &log->event[c->part[i].event];
		fputs("<li class=fact><b class=bad>lost</b>: ", s->out);
		section_print_what(s, c->part[i].event);
		fputs(", ", s->out);
		section_print_event_link(s, c->part[i].event);
		if (e->line)
			fprintf(s->out, ", line %u of the log", e->line);
		if (c->part[i].lost > 1)
			fprintf(s->out, ", and what is left out of %u more line%s",
				c->part[i].lost - 1, plural(c->part[i].lost - 1));
		if (e->source) {
			fputs(e->noticed ? "<br>noticed at " : "<br>by ", s->out);
			section_print_frames(s, e->source);
		}
		print_fate(s, &s->scene->fate[i]);
		fputs("</li>\n", s->out);
	}
	fputs("</ul>\n", s->out);
}

static void print_operations(const struct section *s)
{
	const struct announced *a = s->r->options->checker.announced;
	const struct announced_break *broken = s->cause->verdict.how == IMAGE_CONTRACT
						       ? &s->cause->verdict.broken
						       : NULL;
	struct announced_operation op;
	unsigned n = 0, left_out = 0;
	while (a && announced_operation(a, s->cause->at, broken, n, &op))
		n++;
	if (!n)
		return;
	fputs("<details open>\n<summary>What clients had announced</summary>\n<div "
	      "class=wide><table>\n<thead><tr><th>client<th>operation<th>answer</tr></thead>\n",
	      s->out);
	for (unsigned i = 0; i < n; i++) {
		announced_operation(a, s->cause->at, broken, i, &op);
		if (n - i > OPERATIONS && !op.named) {
			left_out++;
			continue;
		}
		fprintf(s->out, "<tr%s><td>%" PRIu64, op.named ? " class=cause" : "", op.client);
		page_element(s->out, "<td>", op.call, "");
		page_element(s->out, "<td>", op.answer ? op.answer : "none yet", "</tr>\n");
	}
	fputs("</table></div>\n", s->out);
	if (left_out)
		fprintf(s->out, "<p class=dim>and %u before</p>\n", left_out);
	fputs("</details>\n", s->out);
}

static int print_section(struct section *s)
{
	char words[VERDICT_WORDS];
	struct printed p;
	section_find_places(s);
	section_find_events(s);
	fprintf(s->out, "<section class=cause id=c%u>\n", s->number);
	if (!s->r->one) {
		verdict_words(s->r, s->cause, words);
		fprintf(s->out, "<h2>%u. %s", s->number, images_doubt_words(s->cause));
		page_element(s->out, "", words, "");
		fprintf(s->out, "; %" PRIu64 " image%s</h2>\n", s->cause->images,
			plural(s->cause->images));
	}
	FILE *from = print_begin(&p);
	if (from)
		images_print_moment(from, s->r, s->cause);
	print_end(&p, from, s->out,
		  s->r->one ? "<p class=why>This image: "
			    : "<p class=why>The smallest of these images: ",
		  "</p>\n");
	print_lost(s);
	section_print_lines(s);
	fputs("<h3>What happened</h3>\n", s->out);
	section_print_chart(s);
	section_print_list(s);
	print_operations(s);
	int error = section_print_sources(s);
	if (!s->r->one) {
		from = print_begin(&p);
		if (from)
			images_print_again(from, s->r, s->cause);
		print_end(&p, from, s->out, "<h3>Once more</h3>\n<p class=again><code>",
			  "</code></p>\n");
	}
	fputs("</section>\n", s->out);
	return error;
}

/* --- the page --- */

static int print_sections(FILE *out, const struct images_report *r, const struct image_cause *cause,
			  unsigned causes)
{
	struct section_threads threads = {0};
	struct section *s = calloc(1, sizeof(*s));
	struct image_scene *scene = image_scenes_make(r->log, r->options, cause, causes);
	int error = s && scene ? section_find_threads(&threads, r->log) : -ENOMEM;
	for (unsigned i = 0; i < causes && !error; i++) {
		*s = (struct section){.out = out,
				      .r = r,
				      .cause = &cause[i],
				      .scene = &scene[i],
				      .threads = &threads,
				      .number = i + 1};
		error = print_section(s);
	}
	image_scenes_free(scene, causes);
	free(threads.id);
	free(s);
	return error;
}

int images_html(FILE *out, const void *images_report)
{
	const struct images_report *r = images_report;
	page_element(out,
		     EVENT_PAGE_HEAD "\n<meta name=viewport "
				     "content=\"width=device-width,initial-scale=1\">\n"
				     "<title>Crash images of ",
		     r->name, "</title>\n<style>\n");
	page_style(out);
	fputs(campaign_css, out);
	fputs(images_css, out);
	fputs("</style></head>\n<body>\n<main>\n", out);
	print_header(out, r);
	print_recorded(out, r);
	fputs("<svg class=tips width=\"0\" height=\"0\" aria-hidden=true>", out);
	page_tips(out);
	fputs("</svg>\n", out);
	if (r->result)
		print_overview(out, r);
	int error = r->one ? print_sections(out, r, r->one, 1)
			   : print_sections(out, r, r->result->cause, r->result->causes);
	fputs("</main>\n</body></html>\n", out);
	return error;
}
