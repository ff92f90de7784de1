/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_PAGE_PAGE_H
#define TM_REPORT_PAGE_PAGE_H
/*
 * A replay as one HTML page that needs nothing else: no file, no network, and for reading no
 * script. What its files share; page.c puts the page together.
 *
 * On top stands what broke, why, what was run and what went differently; then a chart (chart.c): a
 * lane for each client, each task of the server, each queue pair that did something to PM, and each
 * line of PM that matters (lanes.c); time runs to the right. Time is that of the events, not of the
 * clock: each moment at which something happens has a column of its own (columns.c), so that
 * nothing is hidden in a nanosecond or stretched over a pause. Arrows lead from a posted request to
 * where it lands, and on to the task that takes its completion (arrows.c). A power failure is a
 * line across all lanes, and the machine that boots after it goes on to the right of it. Below are
 * the source around the places that the cause names (source.c), the lines in flight and every event
 * (tables.c).
 *
 * page.css and page.js are put into the page as they are. The script filters lanes, selects
 * events by key and click, and folds rows; without it all is there, and unfolded.
 */
#include "report/event_fold.h"
#include "report/event_trace.h"
#include "report/page/html.h"

#define PAGE_COLUMN  16 /* pixels */
#define PAGE_NO_LANE (-1)

/* What a lane is of; lanes are in this order. */
enum page_rank { PAGE_CLIENT = 1, PAGE_TASK, PAGE_NIC, PAGE_PM };

struct page_lane {
	char name[80];
	int actor;	      /* of the record, or EVENT_LOG_NONE */
	uint32_t line, lines; /* of PM, if actor is that: these lines, of one copy or message */
	enum page_rank rank;
};

enum page_arrow_kind {
	PAGE_LANDS,  /* from a post to where its data lands, or is read */
	PAGE_TAKEN,  /* from there to the task that takes the completion */
	PAGE_ARRIVES /* from the post to the task that receives it, of what touches no PM */
};

struct page_arrow {
	enum page_arrow_kind kind;
	bool reply;	       /* a task of the server has posted it */
	int from_column, from; /* `from`, `to`: lanes */
	int to_column, to;
	int post; /* the event */
};

struct page {
	FILE *out;
	const struct event_trace *st;
	const struct event_log *r;
	struct page_lane *lane;
	unsigned lanes;
	int *column;   /* of each event; -1: not in the chart */
	int *taken_at; /* the column of each taking; -1: not in the chart */
	unsigned columns;
	int cut[WORLDS + 1]; /* the column at which machine i's power fails */
	size_t skipped;
	struct event_item *item[WORLDS]; /* the list, of each machine */
	size_t items[WORLDS];
	bool *again; /* of each event: it repeats others, which the chart shows */
	size_t repeated;
	struct page_arrow *arrow;
	unsigned arrows, arrow_room;
};

/* --- text.c --- */

/* A text of the search for a cause; the places in it are links to page_sources(). */
void page_text(const struct page *p, const char *open, const char *text, const char *close);

/* --- tables.c, lanes.c, columns.c, arrows.c: 0 or -ENOMEM --- */

/* What of the list repeats (tables.c). */
int page_fold(struct page *p);
int page_make_lanes(struct page *p);
int page_make_columns(struct page *p);
int page_make_arrows(struct page *p);

/* The lane of an actor, or PAGE_NO_LANE. */
int page_lane_of(const struct page *p, int actor);
/* Does the event go into the lane? */
bool page_in_lane(const struct logged_event *e, const struct page_lane *l);
/* An event's words, or of a load the bytes. */
void page_what(const struct page *p, const struct logged_event *e, FILE *out);

/* --- the parts, in their order --- */

void page_top(const struct page *p);
void page_chart(const struct page *p);
/* 0 or -ENOMEM. */
int page_sources(const struct page *p);
void page_lines(const struct page *p);
void page_events(const struct page *p);
/* The trace itself. 0 or -errno. */
int page_trace(const struct page *p);

/* --- page.c --- */

extern const char page_js[];

#endif
