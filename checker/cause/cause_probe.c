/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe. The run is made once more, up to the failure and then on as if nothing else went
 * differently; and after each write to PM and each return of an operation another machine boots
 * beside it, as if the power had failed there with every line kept. Does a reader then find what
 * breaks the contract? So the run falls into stretches in which it would, and in which it would
 * not. The step at which the stretch around the failure begins has broken it, and the one that it
 * ends with comes too late.
 *
 * If the failing run has no power failure, the stretches say whether PM was right when the
 * operation of the verdict looked at it: then not what was written is wrong, but how it is read.
 */
#include "checker/cause/explain.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/verdicts.h"
#include "checker/judge/names.h"
#include "faultinject/trace_source.h"

#define PROBES	    4000 /* a run that is longer is not looked at to its end */
#define PROBES_LIVE 400	 /* likewise, where a machine may not end */

/* The power has failed when so many events had happened. */
struct probe_point {
	size_t event;
	bool wrong; /* the contract breaks */
	bool found; /* a reader finds the value that is wrong in the trace, ... */
	bool right; /* ... or the one that is right */
	struct deviation crash;
};

struct probe {
	struct explanation *q;
	struct trace_source plain;
	size_t looked; /* events of the log that have been looked at */
	struct probe_point *point;
	unsigned n;
};

static bool is_step(const struct logged_event *e)
{
	return event_log_writes(e) || e->kind == TRACED_RETURN || e->kind == TRACED_CALL;
}

/* Can what happened since the last probe change what a reader finds, or may find? */
static bool is_new(struct probe *p)
{
	const struct event_log *r = &p->q->instead;
	bool any = !p->n;
	for (; p->looked < r->events; p->looked++)
		any |= is_step(&r->event[p->looked]);
	return any;
}

/* What a GET of the verdict's key has returned since, as it names values; VALUE_UNKNOWN: none. */
static int32_t value_since(const struct explanation *q, unsigned from)
{
	const struct history *h = q->ex->worlds.history;
	for (unsigned i = from; i < h->ops; i++)
		if (h->op[i].kind == HISTORY_GET && h->op[i].key == q->key && !h->op[i].error)
			return cause_value(q, h->op[i].value);
	return VALUE_UNKNOWN;
}

static bool is_wrong(const struct explanation *q, unsigned machine, unsigned from)
{
	const struct world_result *w = &q->ex->worlds.world[machine].result;
	struct verdict v[TM_CONTRACTS];
	switch (q->contract) {
	case TM_FSCK:
		return w->fsck_broken;
	case TM_LIVE:
		return w->live_broken;
	case TM_OK:
		return w->ok_broken;
	case TM_AGREE:
		return w->agree_broken;
	default:
		break;
	}
	if (q->contract == TM_KEEP || !(CONTRACTS_AFTER_CRASH & TM_BIT(q->contract)) || !q->machine)
		return value_since(q, from) == q->wrong;
	memset(v, 0, sizeof(v));
	verdicts_find(q->ex, machine, TM_BIT(q->contract) | TM_BIT(TM_LIN), NULL, v);
	return v[q->contract].broken;
}

static void look(void *arg, struct world *world, const struct choice_point *at)
{
	struct probe *p = arg;
	struct explorer *ex = p->q->ex;
	struct history *h = ex->worlds.history;
	const unsigned machine = world->machine + 1;
	struct world *next = &ex->worlds.world[machine];
	if (p->n == (p->q->contract == TM_LIVE ? PROBES_LIVE : PROBES) || !is_new(p))
		return;
	struct history_mark before = history_mark(h);
	sim_tracer *tracer = next->tracer;
	next->tracer = NULL;
	history_crash(h);
	verdicts_prepare(ex, machine);
	const unsigned from = h->ops;
	world_recover(&ex->worlds, machine, &p->plain.source, NULL, NULL, true);
	const int32_t value = value_since(p->q, from);
	struct probe_point *point = &p->point[p->n++];
	*point = (struct probe_point){.event = p->q->instead.events,
				      .wrong = is_wrong(p->q, machine, from),
				      .found = value == p->q->wrong,
				      .right = value == p->q->right};
	deviation_record(&point->crash, at, 1, 2);
	history_rewind(h, &before);
	world_end(&ex->worlds, machine);
	next->tracer = tracer;
}

/* The step before probe k, after the one before it. */
static int step_before(const struct probe *p, unsigned k)
{
	const struct event_log *r = &p->q->instead;
	for (size_t i = p->point[k].event; i-- > p->point[k - 1].event;)
		if (is_step(&r->event[i]))
			return (int)i;
	return EVENT_LOG_NONE;
}

/* How many events the moment comes after that the window is to be around. */
static size_t moment(const struct explanation *q, unsigned machine, bool crash)
{
	const struct event_log *r = &q->instead;
	if (crash)
		return q->r->machine_from[machine + 1];
	for (size_t i = 0; i < r->events; i++)
		if (r->event[i].kind == TRACED_RETURN &&
		    (event_log_is_of(&r->event[i], q->op, machine) ||
		     event_log_is_of(&r->event[i], q->within, machine)))
			return i;
	return r->events;
}

static void find_window(struct probe *p, unsigned machine, bool crash)
{
	struct explanation *q = p->q;
	struct window *w = &q->window;
	const size_t at = moment(q, machine, crash);
	unsigned k = 0, a, b;
	while (k + 1 < p->n && p->point[k + 1].event <= at)
		k++;
	*w = (struct window){.known = p->n > 0,
			     .wrong = p->n && p->point[k].wrong,
			     .crash = crash,
			     .first = EVENT_LOG_NONE,
			     .last = EVENT_LOG_NONE,
			     .same = EVENT_LOG_NONE};
	if (!w->wrong)
		return;
	for (a = k; a && p->point[a - 1].wrong;)
		a--;
	for (b = k; b < p->n && p->point[b].wrong;)
		b++;
	if (a || b < p->n)
		w->beside = p->point[b < p->n ? b : a - 1].crash;
	w->first = a ? step_before(p, a) : EVENT_LOG_NONE;
	w->last = b < p->n ? step_before(p, b) : EVENT_LOG_NONE;
	/* By what somebody has seen or done it is wrong; was the value there, and taken back? */
	unsigned from = a;
	while (from && p->point[from].found && p->point[from - 1].found)
		from--;
	const bool taken = from && p->point[from].found && p->point[from - 1].right;
	const int step = taken ? step_before(p, from) : EVENT_LOG_NONE;
	if (step >= 0 && event_log_writes(&q->instead.event[step]))
		w->first = step;
	/* A value that was right before is wrong later because the next one never comes. */
	w->never = !crash && !taken && q->right != VALUE_UNKNOWN;
	for (unsigned i = 0; i <= k && w->never; i++)
		w->never = !p->point[i].right;
	if (w->never)
		w->first = EVENT_LOG_NONE;
	if (w->first >= 0 && (size_t)w->first < q->r->machine_from[machine + 1])
		w->same = w->first;
}

int cause_probe(struct explanation *q, const struct deviations *list, unsigned machine, bool crash)
{
	static const struct deviations none;
	struct probe p = {.q = q};
	p.point = calloc(PROBES, sizeof(*p.point));
	int error = p.point ? trace_start(&p.plain, &none) : -ENOMEM;
	if (!error) {
		error = cause_run_instead(q, list, machine + 1 < WORLDS ? look : NULL, &p, machine);
		trace_finish(&p.plain);
	}
	if (!error)
		find_window(&p, machine, crash);
	free(p.point);
	return error;
}
