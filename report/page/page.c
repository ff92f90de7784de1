/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any tree of results as one HTML page that needs nothing else: no file, no network. It is
 * page.html with the other files of this folder, and the tree as JSON, in the places that page.html
 * names; what is shown of a tree, and how, is said by the scripts.
 */
#include <string.h>
#include "core/embed.h"
#include "report/tree.h"

/* A file of this folder. */
#define PAGE(name, file) EMBED(name, TM_PAGE_FOLDER "/" file)

PAGE(page_html, "page.html");
PAGE(page_css, "page.css");
PAGE(page_js, "page.js");
PAGE(page_chart, "chart.js");
PAGE(page_trace, "trace.js");
PAGE(page_campaign, "campaign.js");
PAGE(page_images, "images.js");
PAGE(page_taxonomy, "taxonomy.js");
PAGE(page_times, "times.js");

static const struct {
	const char *name, *text;
} parts[] = {{"page.css", page_css},	     {"page.js", page_js},
	     {"chart.js", page_chart},	     {"trace.js", page_trace},
	     {"campaign.js", page_campaign}, {"images.js", page_images},
	     {"taxonomy.js", page_taxonomy}, {"times.js", page_times}};

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
