/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in a page. */
#include <ctype.h>
#include <string.h>
#include "report/output.h"
#include "report/page/page.h"
#include "report/page/source.h"

void page_escape(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '\'')
			fputs("&#39;", out);
		else
			put_escaped(out, c < ' ' || c == 0x7f ? '?' : c);
	}
}

void page_element(FILE *out, const char *open, const char *text, const char *close)
{
	fputs(open, out);
	page_escape(out, text);
	fputs(close, out);
}

void page_place_name(const char *place, size_t len, char *buf, size_t n)
{
	size_t used = (size_t)snprintf(buf, n, "s-");
	for (size_t i = 0; i < len && used + 1 < n; i++) {
		unsigned char c = (unsigned char)place[i];
		buf[used++] = isalnum(c) || c == '.' || c == '_' ? (char)c : '-';
	}
	buf[used] = '\0';
}

void page_text(const struct page *p, const char *open, const char *text, const char *close)
{
	char piece[5 * CAUSE_TEXT], name[200];
	size_t from = 0, len;
	const char *place;
	fputs(open, p->out);
	while ((place = source_next_place(text + from, &len))) {
		snprintf(piece, sizeof(piece), "%.*s", (int)(place - text - (ptrdiff_t)from),
			 text + from);
		page_escape(p->out, piece);
		page_place_name(place, len, name, sizeof(name));
		fprintf(p->out, "<a href=\"#%s\">", name);
		snprintf(piece, sizeof(piece), "%.*s", (int)len, place);
		page_element(p->out, "", piece, "</a>");
		from = (size_t)(place - text) + len;
	}
	page_element(p->out, "", text + from, close);
}
