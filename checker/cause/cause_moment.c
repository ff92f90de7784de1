/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where in the store's code that happens which goes differently: the step at which a task is held,
 * or dies, the request that is late. And the window: the same thing is tried
 * at the steps before and after it of the same task, so that it is known after which step it breaks
 * the contract, and before which one the last time.
 */
#include "checker/cause/explain.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/rt/choose.h"

#define MOVES	    24 /* each way: of a window that is longer no end is told */
#define WINDOW_TEXT 330

struct moment {
	struct deviation d; /* answer 0: what was asked */
	unsigned machine;
	uint32_t stack;
};

/* The steps of the task that one deviation is of. */
struct moments {
	const struct deviation *of;
	struct moment *at;
	unsigned n, room;
	unsigned machine; /* that runs */
	unsigned on;	  /* where the deviation happens */
	struct callers callers;
};

static void note(void *arg, const struct choice_point *at, unsigned answer, unsigned n)
{
	struct moments *all = arg;
	struct moment m = {.machine = all->machine};
	(void)answer;
	if (at->kind != CHOICE_STEP || !at->who || strcmp(at->who->name, all->of->who) != 0 ||
	    !ARRAY_RESERVE(all->at, all->n, 1, all->room))
		return;
	deviation_record(&m.d, at, choice_delay_answer(at->kind, DELAY_QUIESCENCE), n);
	m.stack = callers_note(&all->callers);
	all->at[all->n++] = m;
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct moments *all = arg;
	(void)ex;
	all->machine = machine;
}

/* Does it break if deviation i happens at that moment instead? */
static bool breaks_at(struct explanation *q, unsigned i, const struct moment *m)
{
	struct deviations list = {0};
	bool broken = false;
	int error = 0;
	for (unsigned k = 0; k < q->t->deviations.n && !error; k++) {
		struct deviation d = q->t->deviations.d[k];
		if (k == i) {
			d = m->d;
			d.answer = q->t->deviations.d[i].answer;
		}
		if (q->matters[k])
			error = deviations_add(&list, &d);
	}
	if (!error)
		error = cause_replay_breaks(q, &list, NULL, &broken);
	if (!error && !broken) {
		deviations_free(&q->nearest);
		q->nearest = list;
		q->has_nearest = true;
		return false;
	}
	deviations_free(&list);
	return !error;
}

static bool can_be_at(const struct moments *all, const struct moment *m)
{
	return m->machine == all->on && choice_allows(CHOICE_STEP, m->d.n, all->of->answer);
}

static struct spot spot_at(const struct moments *all, unsigned i)
{
	return (struct spot){&all->callers, all->at[i].stack, 0};
}

static void frames_at(const struct explanation *q, const struct moments *all, unsigned i, char *buf,
		      size_t n)
{
	cause_frames_of(q, &all->callers, all->at[i].stack, 0, "", buf, n);
}

/* Where the deviation is, of all steps of its task; -1: not there. */
static int find_moment(const struct moments *all)
{
	const uint64_t key = deviation_key(all->of);
	for (unsigned k = 0; k < all->n; k++)
		if (all->at[k].machine == all->on && deviation_key(&all->at[k].d) == key)
			return (int)k;
	return -1;
}

/* The last moment from `at` on, in this direction, at which it breaks. *known: it does not at the
 * next one. */
static unsigned find_edge(struct explanation *q, unsigned i, const struct moments *all, unsigned at,
			  int direction, bool *known)
{
	*known = false;
	for (unsigned moves = 0; moves < MOVES && !*known; moves++) {
		const unsigned next = at + (unsigned)direction;
		if (next >= all->n || !can_be_at(all, &all->at[next]))
			break;
		*known = !breaks_at(q, i, &all->at[next]);
		at = *known ? at : next;
	}
	return at;
}

static void say_window_of(struct explanation *q, unsigned i, const struct moments *all, unsigned at)
{
	char first[WINDOW_TEXT] = "", last[WINDOW_TEXT] = "";
	const char *who = q->t->deviations.d[i].who;
	bool known, after;
	const unsigned from = find_edge(q, i, all, at, -1, &known);
	after = known;
	if (known)
		frames_at(q, all, from - 1, first, sizeof(first));
	const unsigned to = find_edge(q, i, all, at, 1, &known);
	if (known || to == at)
		frames_at(q, all, to, last, sizeof(last));
	if (after && last[0])
		cause_suspect(q, SUSPECT_JOINT,
			      cause_joint(q, spot_at(all, from - 1), spot_at(all, to)),
			      "%s is held, or dies, between two steps", who);
	if (first[0] || last[0])
		cause_say(q, EVENT_LOG_NONE, "window: %s%s%s%s", first[0] ? "after " : "", first,
			  first[0] && last[0] ? ", and before "
			  : last[0]	      ? "before "
					      : "",
			  last);
}

/* The request whose data, or packet, is late. */
static const struct logged_event *request_of(const struct explanation *q, const struct deviation *d)
{
	unsigned nth = 0;
	for (size_t i = 0; i < q->r->events; i++) {
		const struct logged_event *e = &q->r->event[i];
		const bool same = !strncmp(event_log_actor(q->r, e), d->who, strcspn(d->who, "/"));
		if (e->kind == TRACED_POST && op_label_equal(e->op, d->op) &&
		    e->occurrence == d->occurrence && same == (d->kind == CHOICE_PACKET) &&
		    ++nth == d->a)
			return e;
	}
	return NULL;
}

static int say_moment(struct explanation *q, unsigned i)
{
	const struct deviation *d = &q->t->deviations.d[i];
	struct moments all = {.of = d, .on = replay_machine(&q->t->deviations, i)};
	const struct replay_audience audience = {
		.machine_starts = machine_starts, .arg = &all, .asked = note, .asked_arg = &all};
	struct deviations list = {0};
	char frames[420];
	bool broken;
	int error = cause_gather(q, i, &list);
	if (!error && d->kind == CHOICE_STEP)
		error = cause_replay_breaks(q, &list, &audience, &broken);
	const int at = error ? -1 : find_moment(&all);
	const struct logged_event *post = at < 0 ? request_of(q, d) : NULL;
	if (at >= 0) {
		say_window_of(q, i, &all, (unsigned)at);
	} else if (post) {
		cause_frames(q, q->r, post, "late: what was posted in ", frames, sizeof(frames));
		cause_say(q, EVENT_LOG_NONE, "%s", frames);
	}
	deviations_free(&list);
	callers_free(&all.callers);
	free(all.at);
	return error;
}

/* All lines kept, or the power fails a step earlier, or later; or without what comes last. */
static int find_nearest(struct explanation *q)
{
	const struct deviations *all = &q->t->deviations;
	int last = -1, crash = -1, error = 0;
	bool lost = false;
	for (unsigned i = 0; i < all->n; i++) {
		crash = all->d[i].kind == CHOICE_CRASH && q->matters[i] ? (int)i : crash;
		lost |= all->d[i].kind == CHOICE_LINE && q->matters[i];
		if (q->matters[i] && !choice_traits[all->d[i].kind].power)
			last = (int)i;
	}
	const bool moved = crash >= 0 && !lost && q->window.crash && q->window.beside.kind;
	if (q->has_nearest || (!lost && !moved && last < 0))
		return 0;
	for (unsigned i = 0; i < all->n && !error; i++) {
		const bool out = lost ? all->d[i].kind == CHOICE_LINE : !moved && (int)i == last;
		if (q->matters[i] && !out)
			error = deviations_add(&q->nearest, moved && (int)i == crash
								    ? &q->window.beside
								    : &all->d[i]);
	}
	q->has_nearest = !error;
	return error;
}

/* What had to go differently, apart from what the power failure did. */
int cause_say_deviations(struct explanation *q)
{
	const struct deviation_names names = {q->s->region, q->s->regions};
	char text[DEVIATION_TEXT];
	int error = 0;
	for (unsigned i = 0; i < q->t->deviations.n && !error; i++) {
		const struct deviation *d = &q->t->deviations.d[i];
		if (d->kind == CHOICE_LINE || d->kind == CHOICE_CRASH)
			continue;
		deviation_print(d, &names, text, sizeof(text));
		cause_say(q, EVENT_LOG_NONE,
			  q->matters[i] ? "it takes this to happen: %s"
					: "it breaks without this, too: %s",
			  text);
		if (q->matters[i] && !choice_traits[d->kind].power && d->kind != CHOICE_FAIL)
			error = say_moment(q, i);
	}
	return error ? error : find_nearest(q);
}
