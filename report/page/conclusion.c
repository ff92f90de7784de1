/* SPDX-License-Identifier: BSD-3-Clause */
/* What results come to, on a page. */
#include "report/conclusion.h"
#include "report/event_trace.h"
#include "report/output.h"
#include "report/page/html.h"

void conclusion_page(FILE *out, const struct conclusion *c)
{
	fprintf(out, "<p class=\"verdict %s\">",
		c->status == EXIT_HELD	   ? "good"
		: c->status == EXIT_BROKEN ? "bad"
					   : "unsure");
	page_element(out, "", c->text, "</p>\n");
}

static int write_page(FILE *out, const void *conclusion)
{
	fputs(EVENT_PAGE_HEAD "\n<meta name=viewport "
			      "content=\"width=device-width,initial-scale=1\">\n"
			      "<title>No results</title>\n<style>\n",
	      out);
	fputs(page_css, out);
	fputs(campaign_css, out);
	fputs("</style></head>\n<body>\n<main>\n<h1>No results</h1>\n", out);
	conclusion_page(out, conclusion);
	fputs("</main>\n</body></html>\n", out);
	return 0;
}

int conclusion_save_page(const struct conclusion *c, const char *path)
{
	return save_file(path, write_page, c);
}
