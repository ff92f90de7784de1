/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_TRACE_EVENT_LOG_H
#define TM_CHECKER_TRACE_EVENT_LOG_H
/*
 * All that is told of one replay, kept: who did what, to which bytes, in the order in
 * which it happened, and at each power failure the lines in flight. The story, the page
 * and the search for the cause read it when the run is over.
 */
#include "checker/trace/replay.h"

#define RECORD_LOADS 200000 /* loads and fetches that are kept; polling has no end */
#define RECORD_NONE  (-1)

struct logged_event {
	uint64_t at; /* ns of its machine's virtual time */
	uint8_t machine;
	uint8_t kind;  /* enum traced_kind */
	int16_t actor; /* RECORD_NONE: nobody */
	uint16_t occurrence;
	struct op_label op;
	uint64_t off, len;
	uintptr_t pc;
	size_t text; /* in record.words; "" there: nothing to say */
};

/* A line that was in flight when its machine failed. */
struct logged_line {
	uint8_t machine; /* that failed */
	uint32_t line;
	unsigned versions, answer;
	unsigned first_version; /* in record.version; version k is [first_version + k - 1] */
	int touched; /* the event of its first touch, later; RECORD_NONE: nobody looked at it */
};

struct logged_version {
	struct pmem_version how; /* .who: see actor */
	int16_t actor;
	int event; /* that made it, or RECORD_NONE */
};

struct event_log {
	const struct deviations *list; /* of the replay */
	struct logged_event *event;
	size_t events, event_room;
	size_t loads;
	char (*actor)[ACTOR_NAME];
	unsigned actors, actor_room;
	char *words;
	size_t words_used, words_room;
	struct logged_line *line;
	unsigned lines, line_room;
	struct logged_version *version;
	unsigned versions, version_room;
	size_t machine_from[WORLDS +
			    1]; /* first event of each machine; of those behind the last: events */
	unsigned machines;
	bool full; /* out of memory: something is missing */
};

/* An audience that fills `r`, which is empty (zeros). `list` is what is replayed. */
struct replay_audience event_log_audience(struct event_log *r, const struct deviations *list);
void event_log_free(struct event_log *r);

const char *event_log_text(const struct event_log *r, const struct logged_event *e);
const char *event_log_actor(const struct event_log *r, const struct logged_event *e); /* "" */
static inline bool event_log_overlaps(const struct logged_event *e, uint64_t off, uint64_t len)
{
	return e->len && off < e->off + e->len && e->off < off + len;
}
static inline bool event_log_writes(const struct logged_event *e)
{
	return e->kind == TRACED_STORE || e->kind == TRACED_LAND;
}
static inline bool event_log_reads(const struct logged_event *e)
{
	return e->kind == TRACED_LOAD || e->kind == TRACED_FETCH;
}

#endif
