/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines in flight as a picture: of each its 64 bytes, with those that were left and those that
 * were lost, and its versions. */
#include <inttypes.h>
#include "core/pmem/crash.h"
#include "report/images/images_page.h"
#include "report/page/html.h"
#include "core/text/text.h"

#define BYTE   4 /* pixels */
#define HEIGHT 14

static void print_words(const struct section *s, size_t event)
{
	fputs("<title>", s->out);
	section_print_what(s, event);
	fprintf(s->out, ", event %zu</title>", event);
}

/* What is lost is drawn over what is left. */
static void print_bytes(const struct section *s, const struct scene_line *l)
{
	fprintf(s->out,
		"<svg class=bytes width=\"%d\" height=\"%d\" role=img aria-label=\"bytes of the "
		"line\"><rect class=rest width=\"%d\" height=\"%d\"/>",
		PM_LINE * BYTE, HEIGHT, PM_LINE * BYTE, HEIGHT);
	for (unsigned v = 0; v < l->versions && v < SCENE_VERSIONS; v++) {
		const struct pm_event *e = &s->r->log->event[l->event[v]];
		fprintf(s->out, "<rect class=%s x=\"%d\" width=\"%d\" height=\"%d\">",
			v < pm_left_whole(l->versions, l->left) ? "kept" : "lost",
			(int)(e->off % PM_LINE) * BYTE, (int)e->len * BYTE, HEIGHT);
		print_words(s, l->event[v]);
		fputs("</rect>", s->out);
	}
	fputs("</svg>", s->out);
}

static void print_versions(const struct section *s, const struct scene_line *l)
{
	for (unsigned v = 0; v < l->versions && v < SCENE_VERSIONS; v++) {
		bool kept = v < pm_left_whole(l->versions, l->left);
		fprintf(s->out, "%s<b class=%s>%s</b> ", v ? ", " : "", kept ? "good" : "bad",
			kept ? "&#10003;" : "&#215;");
		section_print_event_link(s, l->event[v]);
	}
	if (l->versions > SCENE_VERSIONS)
		fprintf(s->out, ", and %u more", l->versions - SCENE_VERSIONS);
}

static void print_line(const struct section *s, const struct scene_line *l)
{
	bool whole = l->left == l->versions;
	fputs("<tr><td>", s->out);
	page_escape(s->out, s->r->log->file[l->file].name);
	fprintf(s->out, "+0x%" PRIx64 "<td>", l->line * PM_LINE);
	print_bytes(s, l);
	fprintf(s->out, "<td class=%s>%u of %u", whole ? "good" : "bad",
		pm_left_whole(l->versions, l->left), l->versions);
	if (l->left > l->versions) {
		char words[PMEM_ANSWER_TEXT];
		pmem_answer_print(l->versions, l->left, words, sizeof(words));
		fprintf(s->out, ": %s", words);
	}
	fputs("<td>", s->out);
	print_versions(s, l);
	fputs("</tr>\n", s->out);
}

void section_print_lines(const struct section *s)
{
	if (!s->scene->lines)
		return;
	fputs("<h3>The lines in flight</h3>\n<div class=wide><table class=flight>\n<thead><tr>"
	      "<th>line of PM<th>its 64 bytes: <span class=good>left</span>, <span "
	      "class=bad>lost</span><th>left<th>its changes, in their order</tr></thead>\n",
	      s->out);
	for (unsigned i = 0; i < s->scene->lines; i++)
		print_line(s, &s->scene->line[i]);
	fputs("</table></div>\n", s->out);
	if (s->cause->dirty > s->scene->lines)
		fprintf(s->out, "<p class=dim>and %u more line%s, of which %u %s not whole</p>\n",
			s->cause->dirty - s->scene->lines,
			plural(s->cause->dirty - s->scene->lines),
			s->cause->lines > s->scene->lines ? s->cause->lines - s->scene->lines : 0,
			s->cause->lines == s->scene->lines + 1 ? "is" : "are");
}
