/* SPDX-License-Identifier: BSD-3-Clause */
/* See pm_order.h. */
#include "checker/logs/pm_order.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"

#define NONE UINT32_MAX

/* Since a process has looked everywhere. */
struct look {
	uint32_t process;
	uint32_t store; /* the first store by anybody; NONE */
};

/* Stores that were noticed together: events [first, end). */
struct group {
	uint32_t first, end;
	uint32_t store; /* of look */
};

struct looks {
	struct look *look;
	size_t n, room;
	struct group *group;
	size_t groups, group_room;
};

/* Does this event's process look everywhere before it? */
static bool looks(const struct pm_event *e)
{
	return e->process && e->kind != PM_STORE && e->kind != PM_FLUSH && e->kind != PM_PUSH;
}

static struct look *look_of(struct looks *l, uint32_t process)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->look[i].process == process)
			return &l->look[i];
	if (!ARRAY_RESERVE(l->look, l->n, 1, l->room))
		return NULL;
	/* Whatever came before its first event may have come before what it stores. */
	l->look[l->n] = (struct look){process, 0};
	return &l->look[l->n++];
}

static int take_noticed(struct looks *l, const struct pm_event *e, uint32_t at)
{
	const struct look *look = look_of(l, e->process);
	if (!look)
		return -ENOMEM;
	if (l->groups && l->group[l->groups - 1].end == at) {
		l->group[l->groups - 1].end++;
		return 0;
	}
	assert(!l->groups || l->group[l->groups - 1].end < at); /* they are in order */
	if (!ARRAY_RESERVE(l->group, l->groups, 1, l->group_room))
		return -ENOMEM;
	l->group[l->groups++] = (struct group){at, at + 1, look->store};
	return 0;
}

static int find_groups(struct looks *l, const struct pm_log *log)
{
	int error = 0;
	for (uint32_t i = 0; i < log->events && !error; i++) {
		const struct pm_event *e = &log->event[i];
		struct look *look = looks(e) ? look_of(l, e->process) : NULL;
		if (looks(e) && !look)
			return -ENOMEM;
		if (look)
			look->store = NONE;
		if (e->kind == PM_STORE && e->noticed)
			error = take_noticed(l, e, i);
		for (size_t k = 0; k < l->n && e->kind == PM_STORE; k++)
			if (l->look[k].store == NONE)
				l->look[k].store = i;
	}
	return error;
}

int pm_order_open(struct pm_order *o, const struct pm_log *log)
{
	struct looks l = {0};
	*o = (struct pm_order){log, calloc(log->events + 1, sizeof(*o->late))};
	int error = o->late ? find_groups(&l, log) : -ENOMEM;
	/* From the end on: an event has the last group of those that may come before it. */
	for (size_t g = error ? 0 : l.groups, done = log->events + 1; g-- > 0;) {
		const struct group *of = &l.group[g];
		assert(of->first < of->end && of->end <= log->events);
		for (size_t at = of->first < done ? of->first : done - 1; at > of->store; at--)
			o->late[at] = of->end;
		if (of->store < of->first && of->store + 1 < done)
			done = of->store + 1;
	}
	free(l.look);
	free(l.group);
	return error;
}

void pm_order_close(struct pm_order *o)
{
	free(o->late);
	memset(o, 0, sizeof(*o));
}

bool pm_order_may_precede(const struct pm_order *o, size_t event, size_t at)
{
	const struct pm_event *e = &o->log->event[event];
	assert(at <= event);
	if (e->kind != PM_STORE || !e->noticed)
		return false;
	for (const struct pm_event *other = &o->log->event[at]; other < e; other++)
		if ((looks(other) && other->process == e->process) ||
		    (other->kind == PM_STORE && other->file == e->file &&
		     other->off / PM_LINE == e->off / PM_LINE))
			return false;
	return true;
}
