/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_STORY_H
#define TM_STORY_H
/* A replay told on standard output. */
#include "checker/replay.h"
#include "checker/trace.h"
#include "checker/where.h"

struct story {
	const struct trace *trace;
	struct where *where;
	bool brief; /* leave out single stores and loads */
};

void story_begin(const struct story *st);
struct replay_audience story_audience(struct story *st);
void story_verdict(const struct story *st, const struct replay_outcome *out);

#endif
