/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAUSE_EVENT_LOG_H
#define TM_CHECKER_CAUSE_EVENT_LOG_H
/*
 * The events of one replay, in the order in which they happened: what did what, to which bytes; and
 * at each power failure the lines in flight. The event trace, the HTML report and the search for
 * the cause read it when the run is over.
 */
#include <assert.h>
#include "checker/cause/callers.h"
#include "checker/trace/replay.h"

#define EVENT_LOG_LOADS 200000 /* loads and fetches that are logged; polling has no end */
#define EVENT_LOG_NONE	(-1)

struct logged_event {
	uint64_t at; /* ns of its machine's virtual time */
	uint8_t machine;
	uint8_t kind; /* enum traced_kind */
	bool holds;   /* TRACED_CHECK */
	uint8_t code; /* as struct traced has it */
	bool failed;
	bool fsck;     /* by the structural check */
	int16_t actor; /* EVENT_LOG_NONE: none */
	uint16_t occurrence;
	struct op_label op;
	uint64_t off, len;
	uintptr_t pc;
	size_t text;	  /* in event_log.words; "" there: nothing to say */
	uint64_t message; /* its number, the same in all its events; 0: none */
	uint32_t stack;	  /* in event_log.callers, of a task; 0: none */
};

/* A task has taken a completion: that is no event that anything is blamed on. */
struct logged_taking {
	uint64_t at;
	uint8_t machine;
	bool received; /* what the peer sent; else what was posted has ended */
	int16_t actor;
	uint64_t message;
	size_t before; /* the event that came next */
};

/* A line that was in flight when its machine failed. */
struct logged_line {
	uint8_t machine; /* that failed */
	uint32_t line;
	unsigned versions, answer;
	unsigned first_version; /* in event_log.version; version k is [first_version + k - 1] */
	int touched; /* the event of its first touch, later; EVENT_LOG_NONE: it was not looked at */
};

struct logged_version {
	struct pmem_version how; /* .who: see actor */
	int16_t actor;
	int event; /* that made it, or EVENT_LOG_NONE */
};

struct event_log {
	const struct deviations *list; /* of the replay */
	struct logged_event *event;
	size_t events, event_room;
	size_t loads;
	struct logged_taking *taking;
	size_t takings, taking_room;
	char (*actor)[ACTOR_NAME];
	unsigned actors, actor_room;
	char *words;
	size_t words_used, words_room;
	struct logged_line *line;
	unsigned lines, line_room;
	struct logged_version *version;
	unsigned versions, version_room;
	uint64_t failed_at[WORLDS];	 /* ns: when the power of each machine failed */
	size_t machine_from[WORLDS + 1]; /* first event of each machine; after the last: events */
	unsigned machines;
	struct callers callers;
	bool full; /* out of memory: something is missing */
};

/* An audience that fills `r`, which is empty (zeros). `list` is replayed. */
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
/* Is it an event of this operation, which ran on this machine? */
static inline bool event_log_is_of(const struct logged_event *e, struct op_label op,
				   unsigned machine)
{
	return e->machine == machine && op.kind && op_label_equal(e->op, op);
}
/* Event i; NULL for EVENT_LOG_NONE. */
static inline const struct logged_event *event_log_at(const struct event_log *r, int i)
{
	assert(i == EVENT_LOG_NONE || (i >= 0 && (size_t)i < r->events));
	return i == EVENT_LOG_NONE ? NULL : &r->event[i];
}

#define EVENT_LOG_WRITES (1u << TRACED_STORE | 1u << TRACED_LAND)
/* The first event from `from` on, on this machine, of one of the kinds (bits), on any of these
 * bytes; or EVENT_LOG_NONE. */
int event_log_next(const struct event_log *r, size_t from, unsigned machine, unsigned kinds,
		   uint64_t off, uint64_t len);
/* The last write to bytes of the read before event `to`; EVENT_LOG_NONE: none since the machine
 * booted. */
int event_log_last_write(const struct event_log *r, size_t to, const struct logged_event *read);
/* The line, if it was in flight when the machine failed; NULL: it was not. */
const struct logged_line *event_log_line(const struct event_log *r, unsigned machine,
					 uint32_t line);
/* Did the bytes of this write, as it left them, survive the failure of its machine? */
bool event_log_survived(const struct event_log *r, int event);

#endif
