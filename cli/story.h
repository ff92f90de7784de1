/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORY_H
#define TM_STORY_H
/* A replay told on standard output. */
#include "checker/replay.h"
#include "checker/trace.h"
#include "checker/where.h"

/* What became of a line since it was last flushed. */
struct story_line {
	uint32_t line; /* of the pool */
	bool fenced;
	const struct actor *by; /* who flushed it, and has to fence */
};

struct story {
	const struct trace *trace;
	struct where *where;
	bool brief; /* leave out single stores, flushes, fences and posts */
	/* private: the machine that is on */
	struct story_line *flushed;
	unsigned flushes, room;
};

void story_begin(const struct story *st);
struct replay_audience story_audience(struct story *st);
void story_verdict(const struct story *st, const struct replay_outcome *out);
/* Its memory and st->where. */
void story_free(struct story *st);

#endif
