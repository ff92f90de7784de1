/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any tree of results as one HTML page that needs nothing else: no file, no network. It is
 * page.html with the other files of this folder, and the tree as JSON, in the places that page.html
 * names; what is shown of a tree, and how, is said by the scripts.
 */
#include <string.h>
#include "core/embed.h"
#include "report/tree.h"

EMBED(page_html, TM_PAGE_FOLDER "/"
				"page.html");
EMBED(page_css, TM_PAGE_FOLDER "/"
			       "page.css");
EMBED(page_js, TM_PAGE_FOLDER "/"
			      "page.js");
EMBED(page_chart, TM_PAGE_FOLDER "/"
				 "chart.js");
EMBED(page_trace, TM_PAGE_FOLDER "/"
				 "trace.js");
EMBED(page_campaign, TM_PAGE_FOLDER "/"
				    "campaign.js");
EMBED(page_images, TM_PAGE_FOLDER "/"
				  "images.js");
EMBED(page_taxonomy, TM_PAGE_FOLDER "/"
				    "taxonomy.js");

static const struct {
	const char *name, *text;
} parts[] = {{"page.css", page_css},	     {"page.js", page_js},
	     {"chart.js", page_chart},	     {"trace.js", page_trace},
	     {"campaign.js", page_campaign}, {"images.js", page_images},
	     {"taxonomy.js", page_taxonomy}};

/* Nothing in a string can end the element that the tree is in. */
static int write_piece(const char *piece, size_t len, void *out)
{
	for (size_t i = 0; i < len; i++)
		if (piece[i] == '<')
			fputs("\\u003c", out);
		else
			putc(piece[i], out);
	return 0;
}

int tree_write_page(FILE *out, const void *tree)
{
	json_t *all = tree_for_file(tree);
	for (const char *at = page_html, *end; *at; at = end + 1) {
		const size_t before = strcspn(at, "@");
		fwrite(at, 1, before, out);
		at += before;
		if (!*at)
			break;
		end = strchr(++at, '@');
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (!strncmp(parts[i].name, at, (size_t)(end - at)))
				fputs(parts[i].text, out);
		if (!strncmp("results", at, (size_t)(end - at)))
			json_dump_callback(all, write_piece, out, JSON_COMPACT);
	}
	json_decref(all);
	return 0;
}
