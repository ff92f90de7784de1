/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_FAULTINJECT_TRACE_SOURCE_H
#define TM_FAULTINJECT_TRACE_SOURCE_H
/*
 * Trace: the deviations of a list, every other answer 0. `used[i]` tells which
 * were asked for. In a lenient source one whose answer does not exist is left out;
 * in a strict one it is counted as not used. What is really taken is in `taken`.
 */
#include "core/rt/source.h"
#include "faultinject/deviation.h"

typedef void trace_asked(void *arg, const struct choice_point *at, unsigned answer, unsigned n);

struct trace_source {
	struct source source;
	const struct deviations *list;
	uint64_t *key; /* of each deviation; has room for list->n */
	bool *used;
	struct deviations taken;
	/* NULL, or is told of each point that is asked, where that happens: on the task's stack. */
	trace_asked *asked;
	void *asked_arg;
};
int trace_start(struct trace_source *t, const struct deviations *list); /* 0 or -ENOMEM */
void trace_finish(struct trace_source *t);
/* The first deviation that was not used, or NULL. */
const struct deviation *trace_unused(const struct trace_source *t);

#endif
