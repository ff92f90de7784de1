/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_SOURCE_H
#define TM_REPORT_PAGE_SOURCE_H
/* Places of source, as texts name them, and the lines around them. */
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#define SOURCE_FILE 160 /* bytes of a file's name in a text */

struct source_place {
	char file[SOURCE_FILE]; /* as texts name it */
	int line;
	const char *path;	   /* of the file, or NULL */
	char id[SOURCE_FILE + 24]; /* of the line in the page, for links */
};

/* The first "core/stores/erda/server.c:29" in a text, and its length. NULL: there is none. */
const char *source_next_place(const char *text, size_t *len);

/* The lines around n places of one file, which are sorted. path: NULL: it is not known. built: when
 * the program was made of it, for a file that has changed since is not shown. */
void source_print(FILE *out, const struct source_place *at, unsigned n, const char *path,
		  time_t built);

#endif
