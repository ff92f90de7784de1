/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_CHECKER_CAUSE_CAUSE_H
#define TM_CHECKER_CAUSE_CAUSE_H
/*
 * Why a contract broke: which write was lost and what would have made it durable, what survived
 * ahead of it, between which two steps the power failed, or which accesses raced. cause.c says how
 * that is found. The result is text; nothing is printed here.
 */
#include "checker/cause/event_log.h"
#include "checker/trace/trace.h"
#include "checker/world/where.h"

#define CAUSE_FACTS    48
#define CAUSE_TEXT     700
#define CAUSE_SWITCHES 4
#define CAUSE_NAME     64

enum cause_kind {
	CAUSE_NONE,    /* not found, or nothing broke */
	CAUSE_LOST,    /* the power failure took writes */
	CAUSE_TAKEN,   /* what the power failure had damaged was not refused */
	CAUSE_LEFT,    /* it was refused, but the version before it was not looked for */
	CAUSE_CUT,     /* the power failed between two steps */
	CAUSE_RACE,    /* accesses met */
	CAUSE_STUCK,   /* an operation waits for ever */
	CAUSE_STEP,    /* a store that is started anew after it answers wrongly */
	CAUSE_IGNORED, /* something that an operation asked for failed */
};

/* A knob of the store without whose value the contract does not break. */
struct cause_switch {
	char name[CAUSE_NAME]; /* "bug=get_no_crc" */
	/* Where the store asks for it and does something else because of the answer, such as
	 * "core/stores/erda/client.c:291", and the function around that. "": not found. */
	char where[2 * CAUSE_NAME], function[CAUSE_NAME];
	/* Where it computed, from the knob, what it tests there; "": it tests the knob. */
	char made[2 * CAUSE_NAME], made_in[CAUSE_NAME];
	bool flushes; /* without it the next that is done to PM there is a flush or a fence */
};

struct cause {
	enum cause_kind kind;
	char fact[CAUSE_FACTS][CAUSE_TEXT]; /* each a line */
	unsigned facts;
	char sentence[5 * CAUSE_TEXT]; /* all in one */
	uintptr_t first;	       /* the place that it says to look at first; 0: none */
	struct cause_switch made[CAUSE_SWITCHES];
	unsigned switches;
	int event[CAUSE_FACTS]; /* in the event log: those that matter */
	unsigned events;
};

/*
 * After replay(ex, &t->deviations, ...) filled `r` and judged `out`. Replays variations in
 * `ex` (ex->worlds.history is another one afterwards). 0 or -ENOMEM.
 */
int cause_find(struct explorer *ex, const struct trace *t, const struct event_log *r,
	       const struct replay_outcome *out, struct where *where, struct cause *c);

#endif
