/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_SOURCE_H
#define TM_REPORT_PAGE_SOURCE_H
/* Places of source, as texts name them, and the lines around them. */
#include <jansson.h>
#include <time.h>
#include "report/trace/event_trace.h"

#define SOURCE_FILE 160 /* bytes of a file's name in a text */

struct source_place {
	char file[SOURCE_FILE]; /* as texts name it */
	int line;
	const char *path; /* of the file, or NULL */
};

/* The lines around n places of one file, which are sorted: {"file", "places": their lines, "lines":
 * [[number, text]...]}, or "why" there are none. path: NULL: it is not known. built: when the
 * program was made of it, for a file that has changed since is not shown. */
json_t *source_json(const struct source_place *at, unsigned n, const char *path, time_t built);
/* Those around the cause of a replay, a file each. */
json_t *trace_sources(const struct event_trace *st);

#endif
