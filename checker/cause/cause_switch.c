/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store's own switches: a knob that is not at its default, and without which the same trace
 * does not break. Where the store asks for it is found by comparing the ways that its code takes
 * with the knob and without it (trail.h), so that nothing has to be known of the knob.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/cause/explain.h"
#include "checker/cause/trail.h"

static void name_switch(const struct setup *s, unsigned knob, char *buf, size_t n)
{
	char value[CAUSE_NAME];
	setup_knob_value(s, knob, value, sizeof(value));
	cause_print(buf, n, "%s=%.40s", s->store->knobs[knob].name, value);
}

static void find_place(const struct explanation *q, uintptr_t pc, char where[2 * CAUSE_NAME],
		       char function[CAUSE_NAME])
{
	where_print(q->where, pc, where, 2 * CAUSE_NAME);
	cause_print(function, CAUSE_NAME, "%.60s", where[0] ? where_function(q->where, pc) : "");
}

/* The last time that this code did it in the replay, before the last power failure at best. */
static int find_deed(const struct explanation *q, const struct trail_step *step)
{
	const struct event_log *r = q->r;
	int after = EVENT_LOG_NONE;
	for (size_t i = r->events; i-- > 0;) {
		if (r->event[i].pc != step->pc || r->event[i].kind != trail_event(step))
			continue;
		if (r->event[i].machine + 1u < r->machines || r->machines == 1)
			return (int)i;
		after = after < 0 ? (int)i : after;
	}
	return after;
}

/* "stores table+0x18..0x1f (slots.c:229)". The trails may part in the load phase: the place is
 * that of the replay, where it is done there, too. */
static void deed_words(const struct explanation *q, const struct trail_step *step, char *buf,
		       size_t n)
{
	static const char *const words[TRACED_KINDS] = {
		[TRACED_STORE] = "stores", [TRACED_FLUSH] = "flushes", [TRACED_FENCE] = "fences"};
	const struct logged_event *e = event_log_at(q->r, find_deed(q, step));
	char place[80] = "", line[170];
	if (e && e->kind != TRACED_FENCE)
		cause_place(q, e->off, e->len, place, sizeof(place));
	cause_source(q, step->pc, line, sizeof(line));
	cause_print(buf, n, "%s%s%s%s", words[trail_event(step)], place[0] ? " " : "", place, line);
}

static bool is_in(const struct explanation *q, const struct trail_step *step, const char *function)
{
	return step && *function && !strcmp(where_function(q->where, step->pc), function);
}

/* What the function that asks for the switch does to PM next with it, and without it. */
static void say_next(struct explanation *q, const struct cause_switch *made, const char *at_default,
		     const struct trail_parting *at)
{
	struct cause *c = q->c;
	size_t used = strlen(c->sentence);
	char with[260], without[260];
	if (!is_in(q, at->next, made->function) || !is_in(q, at->next_without, made->function) ||
	    at->next->pc == at->next_without->pc)
		return;
	deed_words(q, at->next, with, sizeof(with));
	deed_words(q, at->next_without, without, sizeof(without));
	cause_say(q, find_deed(q, at->next), "with %s %s() then %s; with %s it %s", made->name,
		  made->function, with, at_default, without);
	cause_print(c->sentence + used, sizeof(c->sentence) - used,
		    " With %s %s() then %s, with %s it %s.", made->name, made->function, with,
		    at_default, without);
}

/* `same`: without it the run comes to all that goes differently, too. The switch is no cause: the
 * contract may break without it in another run. */
static void say_switch(struct explanation *q, unsigned knob, const struct trail_parting *at,
		       bool same)
{
	struct cause *c = q->c;
	struct cause_switch *made = &c->made[c->switches++];
	struct setup plain = *q->s;
	char at_default[CAUSE_NAME], place[400] = "", from[210] = "";
	size_t used = strlen(c->sentence);
	plain.params.knob[knob] = 0;
	name_switch(&plain, knob, at_default, sizeof(at_default));
	name_switch(q->s, knob, made->name, sizeof(made->name));
	find_place(q, at->asked, made->where, made->function);
	made->flushes = at->next_without && (trail_event(at->next_without) == TRACED_FLUSH ||
					     trail_event(at->next_without) == TRACED_FENCE);
	find_place(q, at->made, made->made, made->made_in);
	if (made->made[0])
		cause_print(from, sizeof(from), ", as %s() makes it at %s,", made->made_in,
			    made->made);
	if (made->where[0])
		cause_print(place, sizeof(place), ", which%s %s() asks for at %s", from,
			    made->function, made->where);
	const char *other = same ? "" : " the run goes another way, and";
	cause_say(q, EVENT_LOG_NONE,
		  "it takes the switch %s%s; with %s%s this trace does not break", made->name,
		  place, at_default, other);
	cause_print(c->sentence + used, sizeof(c->sentence) - used,
		    " It takes the switch %s%s; with %s%s this trace does not break.", made->name,
		    place, at_default, other);
	say_next(q, made, at_default, at);
}

static int try_switch(struct explanation *q, unsigned knob)
{
	struct trail with, without = {0};
	const uint8_t value = q->s->params.knob[knob];
	bool broken, breaks_without = false, same = false, applies;
	int error = trail_record(q->s, knob, 0, &q->t->deviations, (unsigned)q->contract, &without,
				 &breaks_without, &same);
	if (error || breaks_without) {
		trail_free(&without);
		/* Else the store needs the switch to run. */
		return error == -ENOMEM || error == -ENOTRECOVERABLE ? error : 0;
	}
	error = trail_record(q->s, knob, value, &q->t->deviations, (unsigned)q->contract, &with,
			     &broken, &applies);
	if (!error) {
		struct trail_parting at;
		trail_find_parting(&with, &without, &at);
		say_switch(q, knob, &at, same);
	}
	trail_free(&with);
	trail_free(&without);
	return error;
}

int cause_add_switches(struct explanation *q)
{
	int error = 0;
	for (unsigned k = 0; q->s->store->knobs[k].name && !error; k++)
		if (q->s->params.knob[k] && q->c->switches < CAUSE_SWITCHES)
			error = try_switch(q, k);
	return error;
}
