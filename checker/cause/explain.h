/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAUSE_EXPLAIN_H
#define TM_CHECKER_CAUSE_EXPLAIN_H
/*
 * What the files of the search for a cause share (cause.c, cause_*.c): the question, the replays
 * that vary it, and the words of the answer.
 */
#include "checker/cause/cause.h"

/* The stretch around the failure, or around the return of the verdict's operation. */
struct window {
	bool known, wrong; /* is it wrong there? */
	bool crash;	   /* around a failure */
	bool never;	   /* until then the value that is right is never found */
	/* Events of q->instead: what it begins with, and what it ends with; EVENT_LOG_NONE: the
	 * beginning of the run, its end. `same`: the first in q->r. */
	int first, last, same;
	/* Where the power could have failed instead, and it would not be wrong; .kind 0: nowhere.
	 */
	struct deviation beside;
};

/* A place that may be at fault, the likeliest first. */
enum suspicion {
	SUSPECT_OVERWRITES, /* what was right */
	SUSPECT_LOSES,	    /* wrote what was lost */
	SUSPECT_WAITS,	    /* looks at something again and again */
	SUSPECT_REFUSES,    /* made the answer without what it found, for that did not hold */
	SUSPECT_JOINT,	    /* made both steps that the window lies between */
	SUSPECT_LOOKED,	    /* recovery looked at what the structural check finds wrong */
	SUSPECT_RECOVERY,   /* was to notice what the power failure left */
	SUSPECT_ANSWERS,    /* made the answer, which the store, started anew, does not give */
	SUSPECT_ONLY,	    /* is come to only in the run that breaks */
	SUSPECT_READS,
};

#define SUSPECTS     32 /* more are left out */
#define SUSPECT_TEXT 200

struct suspect {
	enum suspicion rank;
	uintptr_t pc;
	char why[SUSPECT_TEXT]; /* "where ..." */
};

/* Where a task was: its calls, and the place if that is known. */
struct spot {
	const struct callers *callers;
	uint32_t stack;
	uintptr_t pc; /* or 0 */
};

/* The broken contract of a trace, and what has been found out about it. */
struct explanation {
	struct explorer *ex;
	const struct trace *t;
	const struct setup *s;
	const struct event_log *r; /* of the trace's replay */
	struct where *where;
	struct cause *c; /* the answer */
	int contract;
	bool keep;     /* KEEP is judged */
	bool foreign;  /* what breaks it is a GET of bytes that are no value */
	bool hangs;    /* LIVE breaks, for something does not end; else nothing is waited for */
	bool unended;  /* that is a cleaning */
	bool *matters; /* by deviation: the contract does not break without it */
	/* The operation whose result breaks the contract, and the one that it contradicts, each
	 * with the machine that it ran on and what it saw as a sentence. Client 0 and kind 0: none.
	 */
	struct op_label op, against;
	struct op_label within; /* as what its transaction goes by */
	unsigned machine, against_machine;
	char seen[220], seen_against[220];
	struct event_log instead; /* the same run without the last power failure, or the death */
	struct window window;
	/* One that differs little, and does not break; if one is known. */
	struct deviations nearest;
	bool has_nearest;
	unsigned key;	      /* that the verdict is about; and what was read, as cause_value() */
	int32_t wrong, right; /* VALUE_UNKNOWN: what should have been is not known */
	/* The value that was expected (foreign: an older one of the key), NULL: none; and where the
	 * pool held it, unread, after the last power failure, -1: nowhere. */
	const struct setup_value *expected;
	int64_t expected_at;
	struct suspect suspect[SUSPECTS];
	unsigned suspects;
};

/* --- replays of variations (cause.c) --- */

/* Replay `list`: does the contract break? 0 or -ENOMEM. */
int cause_replay_breaks(struct explanation *q, const struct deviations *list,
			const struct replay_audience *audience, bool *broken);
/* Replay `list` into q->instead; `probe` as in struct replay_audience. 0 or -ENOMEM. */
int cause_run_instead(struct explanation *q, const struct deviations *list, world_observer *probe,
		      void *arg, unsigned machine);
/* Likewise, and look at each of its steps on this machine: q->window. `crash`: its power fails. */
int cause_probe(struct explanation *q, const struct deviations *list, unsigned machine, bool crash);
/* The value of a history, by its place in the setup, so that it is the same in each run. */
int32_t cause_value(const struct explanation *q, int32_t value);
/* The deviations that matter, without number `but`. 0 or -ENOMEM. */
int cause_gather(const struct explanation *q, unsigned but, struct deviations *list);

/* --- words (explain.c) --- */

/* What does not fit is cut off. Returns how many of the n bytes have been used. */
size_t __attribute__((format(printf, 3, 4))) cause_print(char *buf, size_t n, const char *fmt, ...);
/* Add a fact to the answer, unless it is there already, and an event that matters to it
 * (EVENT_LOG_NONE: none). fmt NULL: the event only. */
void __attribute__((format(printf, 3, 4)))
cause_say(struct explanation *q, int event, const char *fmt, ...);
/* "log+0x100..0x13f" */
void cause_place(const struct explanation *q, uint64_t off, uint64_t len, char *buf, size_t n);
/* "client 1's PUT k1", "the reader's GET k1", "recovery"; `machine`: on which it ran. */
void cause_op(const struct explanation *q, struct op_label op, unsigned machine, char *buf,
	      size_t n);
/* "2.956 us later", or "at the same moment". */
void cause_later(uint64_t ns, char *buf, size_t n);
/* Did recovery itself do it, and not what checks it, or the tasks that serve after it? */
bool cause_is_recovery(const struct explanation *q, const struct logged_event *e);
/* The operation of the event, "recovery", "the structural check", or "the server itself". */
void cause_agent(const struct explanation *q, const struct logged_event *e, char *buf, size_t n);
/* " (server.c:55)", or "" when the line is not known. */
void cause_source(const struct explanation *q, uintptr_t pc, char *buf, size_t n);
/* What the NIC did, such as "RDMA write", "compare-and-swap". */
const char *cause_request(const struct logged_event *e);
/* What made the event, and for which operation: "the RDMA write of client 1's PUT k1",
 * "server/verifier (server.c:55)". */
void cause_doer(const struct explanation *q, const struct event_log *r,
		const struct logged_event *e, char *buf, size_t n);
/* "what client 1's PUT k1 wrote by RDMA" */
void cause_writing(const struct explanation *q, const struct event_log *r,
		   const struct logged_event *e, char *buf, size_t n);

static inline double cause_us(uint64_t ns)
{
	return (double)ns / 1000.0;
}

/* --- what the verdict depends on (explain.c) --- */

/* Is the line of this write read on a later machine, or by the contradicted operation? */
bool cause_looked_at(const struct explanation *q, const struct logged_event *e);
/* Does the operation of the verdict read these bytes? */
bool cause_read_in_the_end(const struct explanation *q, const struct logged_event *e);

/* --- which step it is, as facts (cause_steps.c) --- */

/* `before`, and then "f() at core/...:12, called by g() at ...", of an event of this log, or of the
 * posting of its request; "": not known. */
void cause_frames(const struct explanation *q, const struct event_log *r,
		  const struct logged_event *e, const char *before, char *buf, size_t n);
void cause_frames_of(const struct explanation *q, const struct callers *callers, uint32_t stack,
		     uintptr_t pc, const char *before, char *buf, size_t n);
/* The posting of the request that the event is of; else the event itself. */
const struct logged_event *cause_posted(const struct event_log *r, const struct logged_event *e);
void cause_say_window(struct explanation *q);
/* If no cause has been named: the first step of the window. */
void cause_explain_window(struct explanation *q);
/* The last looks of the verdict's operation, and whose bytes it read. */
void cause_say_answer(struct explanation *q);
void cause_say_recovery(struct explanation *q);
/* What the structural check looked at last. */
void cause_say_looked_at(struct explanation *q);

/* What goes differently, where in the code, and from which step to which it may; and find
 * q->nearest. 0 or -ENOMEM. */
int cause_say_deviations(struct explanation *q);
/* Where the ways of tasks through the code part from those of q->nearest. 0 or -ENOMEM. */
int cause_say_ways(struct explanation *q);

/* --- where to look first (cause_first.c) --- */

/* Of an event of this log, or of the posting of its request. */
struct spot cause_spot(const struct event_log *r, const struct logged_event *e);
/* Places in the store, 0: not known. The n-th function from the innermost; the innermost that is no
 * helper; and the one in which the ways of two steps part, unless that is the task's loop. */
uintptr_t cause_caller(const struct explanation *q, struct spot spot, unsigned n);
uintptr_t cause_maker(const struct explanation *q, struct spot spot);
uintptr_t cause_joint(const struct explanation *q, struct spot a, struct spot b);
/* It may be at fault, unless pc is 0: "where" and the words. */
void __attribute__((format(printf, 4, 5)))
cause_suspect(struct explanation *q, enum suspicion rank, uintptr_t pc, const char *fmt, ...);
/* Put the likeliest before the sentence. */
void cause_say_first(struct explanation *q);

/* --- the kinds of cause; each fills q->c --- */

#define LOSSES 32 /* more are left out */

struct loss {
	uint64_t off, len;
	int event;    /* its write; the last of several */
	int flush;    /* that was not fenced; EVENT_LOG_NONE: there was none */
	bool several; /* at different times */
	unsigned machine;
	char why[CAUSE_TEXT];
};

/* In which function it was written, and what its task did next. */
void cause_say_loser(struct explanation *q, const struct loss *loss);
/* Fill loss->why: the flush that it lacked, and the rule that a request of the NIC broke. */
void cause_why_lost(struct explanation *q, struct loss *loss);
unsigned cause_find_losses(struct explanation *q, struct loss loss[LOSSES]);
void cause_explain_lost(struct explanation *q, struct loss *loss, unsigned n);
/* What survived, or was seen, ahead of the lost bytes, as an event; EVENT_LOG_NONE: nothing. */
int cause_find_early(struct explanation *q, const struct loss *loss);
/* False, and nothing is said: it is not that damaged bytes were taken, or were refused and the
 * version before was not looked for. */
bool cause_explain_damage(struct explanation *q, const struct loss *loss, unsigned n);
/* The last check on these bytes from this machine on: of recovery, or of the verdict's operation.
 * EVENT_LOG_NONE: no check looked at them. */
int cause_find_check(const struct explanation *q, bool recovery, unsigned machine, uint64_t off,
		     uint64_t len);
/* "the check at core/stores/erda/object.c:143, in erda_object_check()" */
void cause_check_place(const struct explanation *q, int check, char *buf, size_t n);
/* What recovery found where the next write is missing, in words for the sentence, and as a fact. */
void cause_say_missing(struct explanation *q, unsigned machine, uint64_t off, uint64_t len,
		       char *buf, size_t n);
/* Look for the value that was expected in the pool that the last power failure left. 0 or
 * -ENOMEM. */
int cause_find_value(struct explanation *q);
/* False, and nothing is said: no operation of the verdict went on after a failure. */
bool cause_explain_ignored(struct explanation *q);
/* Likewise: the client met no failure that must make its operation fail. `seen`: what broke. */
bool cause_explain_failed(struct explanation *q, const char *seen);
/* Does it matter what the store did after the last failure? */
bool cause_is_of_life(const struct explanation *q);
void cause_explain_cut(struct explanation *q);
void cause_explain_race(struct explanation *q);
void cause_explain_stuck(struct explanation *q, const char *why);
/* Which of the store's switches make it, and where; added to what has been said. 0 or -ENOMEM. */
int cause_add_switches(struct explanation *q);

#endif
