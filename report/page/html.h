/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_HTML_H
#define TM_REPORT_PAGE_HTML_H
/* What all pages share: text, the marks of charts, the style sheets. */
#include <stdio.h>

void page_escape(FILE *out, const char *text);
/* `open` and `close` as they are, the text escaped. */
void page_element(FILE *out, const char *open, const char *text, const char *close);
/* "core/stores/erda/server.c:29" as the name of an element: "s-core-stores-erda-server.c-29". */
void page_place_name(const char *place, size_t len, char *buf, size_t n);

/* --- charts --- */

#define PAGE_LANE  26  /* pixels: a lane's height */
#define PAGE_NAMES 190 /* width of the lanes' names */
#define PAGE_HEAD  34  /* above the first lane */

/* The mark of an event of this kind (TRACED_STORE and so on), in the middle of its lane. */
void page_shape(FILE *out, unsigned kind, int x);
/* The tips of arrows, once a page: "url(#tip)", "url(#tip-reply)". */
void page_tips(FILE *out);

/* --- style sheets --- */

/* That of all pages, with the measures above. */
void page_style(FILE *out);
/* Of all pages; of the matrix, its figures and cases; of crash images. */
extern const char page_css[], campaign_css[], images_css[];

#endif
