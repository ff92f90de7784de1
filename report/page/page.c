/* SPDX-License-Identifier: BSD-3-Clause */
/* See page.h. */
#include "report/page/page.h"
#include <stdlib.h>
#include <string.h>

/* The files beside this one, each with a NUL. */
__asm__(".section .rodata\n"
	".global page_css\n"
	"page_css:\n"
	".incbin \"" TM_PAGE_FOLDER "/page.css\"\n"
	".byte 0\n"
	".global campaign_css\n"
	"campaign_css:\n"
	".incbin \"" TM_PAGE_FOLDER "/campaign.css\"\n"
	".byte 0\n"
	".global images_css\n"
	"images_css:\n"
	".incbin \"" TM_PAGE_FOLDER "/images.css\"\n"
	".byte 0\n"
	".global page_js\n"
	"page_js:\n"
	".incbin \"" TM_PAGE_FOLDER "/page.js\"\n"
	".byte 0\n"
	".previous\n");

void page_style(FILE *out)
{
	fputs(page_css, out);
	fprintf(out, ".names{flex:0 0 %dpx;padding-top:%dpx}.name{height:%dpx;line-height:%dpx}\n",
		PAGE_NAMES, PAGE_HEAD, PAGE_LANE, PAGE_LANE);
}

static void print_head(const struct page *p)
{
	const struct trace *t = p->st->trace;
	const char *contract = t->contract < 0 ? "no contract"
					       : contract_name((enum tm_contract)t->contract);
	fputs(EVENT_PAGE_HEAD
	      "\n<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>",
	      p->out);
	page_escape(p->out, t->setup.store->name);
	if (strcmp(t->setup.variant, "default") != 0)
		page_element(p->out, " ", t->setup.variant, "");
	page_element(p->out, " breaks ", contract, " (");
	page_element(p->out, "", p->st->name, ")</title>\n<style>\n");
	page_style(p->out);
	fputs("</style></head>\n<body>\n<main>\n", p->out);
}

static int print(const struct page *p)
{
	print_head(p);
	page_top(p);
	page_chart(p);
	int error = page_sources(p);
	page_lines(p);
	page_events(p);
	if (!error)
		error = page_trace(p);
	fprintf(p->out, "</main>\n<script>\nvar HEAD=%d,LANE=%d;\n", PAGE_HEAD, PAGE_LANE);
	fputs(page_js, p->out);
	fputs("</script>\n</body></html>\n", p->out);
	return error;
}

int event_trace_html(FILE *out, const void *events)
{
	struct page p = {.out = out, .st = events};
	p.r = &p.st->record;
	int error = page_fold(&p);
	if (!error)
		error = page_make_lanes(&p);
	if (!error)
		error = page_make_columns(&p);
	if (!error)
		error = page_make_arrows(&p);
	if (!error)
		error = print(&p);
	free(p.lane);
	free(p.column);
	free(p.taken_at);
	free(p.arrow);
	free(p.again);
	for (unsigned m = 0; m < p.r->machines; m++)
		free(p.item[m]);
	return error;
}
