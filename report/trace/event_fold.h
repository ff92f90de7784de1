/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TRACE_EVENT_FOLD_H
#define TM_REPORT_TRACE_EVENT_FOLD_H
/*
 * What repeats in an event trace is told once: the pieces of one copy or message, or stores of one
 * source line, are one item; and items that come again in the same order are rounds. Only the
 * telling is folded: the event log keeps all.
 */
#include "report/trace/event_trace.h"

struct event_item {
	size_t first, last; /* events */
	unsigned pieces;    /* that are told: first and last among them */
	/* From this item on: `length` items come `rounds` times. 1: they do not repeat. The items
	 * of all rounds follow. */
	unsigned length, rounds;
	uint64_t sign; /* equal: the same, but for its time */
};

/* Is the event told? `arg`: the asker's. */
typedef bool event_told(const void *arg, size_t event);

/*
 * The items of machine `m`, in order; the caller frees *out. With st->all each event is one. The
 * number of items, or -ENOMEM.
 */
ptrdiff_t event_fold(const struct event_trace *st, unsigned m, event_told *told, const void *arg,
		     struct event_item **out);
/* The words for an item of several pieces. */
void event_item_words(const struct event_trace *st, const struct event_item *item, char *buf,
		      size_t n);
/* The words for all rounds of an item but the first. */
void event_rounds_words(const struct event_log *r, const struct event_item *item, char *buf,
			size_t n);
/* Has one copy, one message or one source line made version v of line a and version w of b? */
bool event_versions_alike(const struct event_trace *st, const struct logged_line *a, unsigned v,
			  const struct logged_line *b, unsigned w);
/* Line i in flight and those after it in PM of which the same is to be told: how many. */
unsigned event_lines_alike(const struct event_trace *st, unsigned i);
/* Does the event belong to the cause? Such an event is told for itself. */
bool event_is_cause(const struct event_trace *st, size_t event);

#endif
