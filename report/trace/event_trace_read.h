/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TRACE_EVENT_TRACE_READ_H
#define TM_REPORT_TRACE_EVENT_TRACE_READ_H
/* A trace that a campaign has written, replayed as tidemark replay does: its events, its cause. */
#include "report/trace/event_trace.h"

struct event_trace_read {
	struct trace trace;
	struct event_trace events;
	/* What the break is blamed on, coarse, as a row of causes.txt has it. */
	struct blame blame;
};

/*
 * Read the file and replay it. 0 or -errno; -EPROTO: it does not run as it was written. *out is to
 * be freed with event_trace_read_free() if that is not NULL.
 */
int event_trace_read(const char *path, struct event_trace_read **out);
void event_trace_read_free(struct event_trace_read *read);

#endif
