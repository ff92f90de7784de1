/* SPDX-License-Identifier: BSD-3-Clause */
/* See event_trace_read.h. */
#include "report/trace/event_trace_read.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "scenarios/stores.h"

/* No cause is known to the trace's setup, so this makes replay() say what it is blamed on. */
static void ask_for_blame(struct setup *s, int contract)
{
	s->known = (struct known){.compared = TM_BIT(contract)};
	s->unknown_only = TM_BIT(contract);
}

/* Everything but that is as in a replay that was not asked. */
static void take_blame(struct event_trace_read *read)
{
	const int contract = read->trace.contract;
	read->blame = read->events.outcome.blame[contract];
	read->trace.setup.known = (struct known){0};
	read->trace.setup.unknown_only = 0;
	/* With more parts than a blame has room for, it counts as known. */
	read->events.outcome.verdict[contract].broken |= read->blame.full;
}

static int replay_trace(struct explorer *ex, struct event_trace_read *read)
{
	struct trace *t = &read->trace;
	struct event_trace *st = &read->events;
	bool named = t->contract >= 0 && t->contract < TM_CONTRACTS;
	if (named)
		ask_for_blame(&t->setup, t->contract);
	int error = replay_begin(ex, &t->setup, t->contract, &t->deviations);
	if (error)
		return error == -ENOMEM ? error : -EPROTO;
	const struct replay_audience audience = event_log_audience(&st->record, &t->deviations);
	error = replay(ex, &t->deviations, t->contract == TM_KEEP, &audience, &st->outcome);
	if (!error && st->record.full)
		error = -ENOMEM;
	if (!error &&
	    (st->outcome.unused || replay_cannot_run(t->contract, &t->deviations, &st->outcome)))
		error = -EPROTO;
	if (st->outcome.unstarted)
		memcpy(st->load_why, ex->why, sizeof(st->load_why));
	if (!error && named)
		take_blame(read);
	if (!error)
		error = cause_find(ex, t, &st->record, &st->outcome, st->where, &st->cause);
	explore_close(ex);
	return error;
}

int event_trace_read(const char *path, struct event_trace_read **out)
{
	struct input_error where = {0};
	struct event_trace_read *read = *out = calloc(1, sizeof(*read));
	struct explorer *ex = malloc(sizeof(*ex));
	int error = read && ex ? trace_read(path, &read->trace, store_find, &where) : -ENOMEM;
	if (error) {
		free(ex);
		free(read);
		*out = NULL;
		return error;
	}
	read->events.trace = &read->trace;
	read->events.name = path;
	read->events.where = where_new();
	error = replay_trace(ex, read);
	blame_coarsen(&read->blame);
	free(ex);
	return error;
}

void event_trace_read_free(struct event_trace_read *read)
{
	if (!read)
		return;
	where_free(read->events.where);
	event_log_free(&read->events.record);
	trace_free(&read->trace);
	free(read);
}
