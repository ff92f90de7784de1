/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation does not end: what it reads again and again, and, if a client died, what that client
 * would have written there. Or it waits for what was never sent, because the call that was to send
 * it has failed.
 */
#include "checker/cause/explain.h"
#include <string.h>

#define STUCK_EVENTS 4000 /* so many, the last with reads of the operation, are looked at */
#define FEW_READS    3	  /* of a place by what ends, or waits for something else */

/* Other reads begin at the same place: one of a whole object, and those of its first bytes. */
static unsigned times_read(const struct event_log *r, size_t from, size_t to,
			   const struct logged_event *read)
{
	unsigned n = 0;
	for (size_t k = from; k < to; k++)
		n += event_log_reads(&r->event[k]) && r->event[k].off == read->off &&
		     r->event[k].len == read->len && op_label_equal(r->event[k].op, read->op);
	return n;
}

/* Is it a read of what does not end? A cleaning, which has no operation, is done by a task that
 * works for none. */
static bool is_its_read(const struct explanation *q, const struct logged_event *e, unsigned machine)
{
	if (q->unended)
		return event_log_reads(e) && !e->op.kind;
	return event_log_reads(e) && (!q->op.kind || event_log_is_of(e, q->op, machine));
}

/*
 * The events in which it is seen what is read again and again: [*from, *to). A stuck operation
 * reads on and on, and the record does not keep all of it: the end is where its reads end.
 */
static void find_polling(const struct explanation *q, unsigned machine, size_t *from, size_t *to)
{
	const struct event_log *r = q->r;
	*from = r->machine_from[machine];
	*to = r->events;
	while (*to > *from && !is_its_read(q, &r->event[*to - 1], machine))
		--*to;
	if (*to - *from > STUCK_EVENTS)
		*from = *to - STUCK_EVENTS;
	/* A cleaning is waited for far longer than all before it has taken. */
	while (q->unended && *from < *to && r->event[*from].at < r->event[r->events - 1].at / 2)
		++*from;
}

/* The place that is read most, among those that `missing`, if not NULL, would have written. */
static int find_polled(const struct explanation *q, unsigned machine, size_t from, size_t to,
		       const struct logged_event *missing)
{
	const struct event_log *r = q->r;
	unsigned most = FEW_READS;
	int polled = EVENT_LOG_NONE;
	for (size_t i = from; i < to && most <= (to - from) / 4; i++) {
		const struct logged_event *e = &r->event[i];
		if (!is_its_read(q, e, machine) ||
		    (missing && !event_log_overlaps(e, missing->off, missing->len)))
			continue;
		unsigned n = times_read(r, from, to, e);
		if (n > most) {
			most = n;
			polled = (int)i;
		}
	}
	return polled;
}

/* What the dead client would have written, had it lived, to a place that is read again and
 * again. */
static int find_missing(struct explanation *q, unsigned machine, size_t from, size_t to,
			unsigned death, int *polled)
{
	const struct event_log *r = q->r, *alive = &q->instead;
	struct deviations list = {0};
	int error = cause_gather(q, death, &list), missing = EVENT_LOG_NONE;
	if (!error)
		error = cause_run_instead(q, &list, NULL, NULL, 0);
	deviations_free(&list);
	for (size_t i = error ? alive->events : alive->machine_from[machine];
	     i < alive->events && missing < 0; i++) {
		const struct logged_event *e = &alive->event[i];
		bool written = false;
		if (!event_log_writes(e) || !e->op.client ||
		    e->op.client != q->t->deviations.d[death].op.client)
			continue;
		for (size_t k = r->machine_from[machine]; k < r->events && !written; k++)
			written = event_log_writes(&r->event[k]) &&
				  op_label_equal(r->event[k].op, e->op) &&
				  r->event[k].off == e->off;
		if (written)
			continue;
		*polled = find_polled(q, machine, from, to, e);
		missing = *polled >= 0 ? (int)i : EVENT_LOG_NONE;
	}
	return missing;
}

/* Is it something that a client's task did, which the dead do not? */
static bool is_deed(const struct logged_event *e)
{
	return e->kind == TRACED_CALL || e->kind == TRACED_RETURN || e->kind == TRACED_POST ||
	       e->kind == TRACED_REFUSED;
}

/* Has the process that died been followed by another? Then its client goes on with what comes after
 * the operation in which it died. */
static bool came_back(const struct explanation *q, unsigned machine, const struct deviation *death)
{
	const struct event_log *r = q->r;
	if (death->answer == DELAY_FOREVER)
		return false;
	const unsigned k = choice_delay(CHOICE_STEP, death->answer);
	if (k == DEATH_SERVER || delay_befalls_one(k))
		return true; /* as always, or it is not this client's */
	for (size_t i = r->events; i-- > r->machine_from[machine];)
		if (r->event[i].op.client == death->op.client && is_deed(&r->event[i]))
			return !op_label_equal(r->event[i].op, death->op);
	return false;
}

/* The last call that was to send something and failed, and whose task has posted nothing since. */
static int find_unsent(const struct explanation *q, unsigned machine)
{
	static const char *const calls[] = {"ibv_post_send ", "ibv_wr_complete "};
	const struct event_log *r = q->r;
	for (size_t i = r->events; i-- > r->machine_from[machine];) {
		const struct logged_event *e = &r->event[i];
		bool sends = false, later = false;
		for (unsigned k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
			sends |= e->kind == TRACED_REFUSED &&
				 !strncmp(event_log_text(r, e), calls[k], strlen(calls[k]));
		for (size_t k = i + 1; k < r->events && sends; k++)
			later |= r->event[k].kind == TRACED_POST && r->event[k].actor == e->actor &&
				 op_label_equal(r->event[k].op, e->op);
		if (sends && !later)
			return (int)i;
	}
	return EVENT_LOG_NONE;
}

/* What is waited for, where it is known: nothing that was ever sent, or a client that is dead. */
static void say_awaited(struct explanation *q, unsigned machine, const struct deviation *death,
			bool written_by_dead, size_t used)
{
	size_t room = sizeof(q->c->sentence);
	int unsent = written_by_dead ? EVENT_LOG_NONE : find_unsent(q, machine);
	const struct logged_event *e = event_log_at(q->r, unsent);
	char by[220];
	if (e) {
		cause_doer(q, q->r, e, by, sizeof(by));
		cause_say(q, unsent, "never sent, by %s at %.3f us: %s", by, cause_us(e->at),
			  event_log_text(q->r, e));
		used += cause_print(q->c->sentence + used, room - used,
				    "; what %s was to send was never sent: %s", by,
				    event_log_text(q->r, e));
	} else if (death && !came_back(q, machine, death)) {
		used += cause_print(q->c->sentence + used, room - used,
				    "; it waits for %s, which is dead", death->who);
	}
	cause_print(q->c->sentence + used, room - used, ".");
}

/* Length of the part of `why` that the sentence begins with: its end, that the reads are the same
 * ones, is left out where the next words say which they are. */
static int length_without_repeats(const char *why)
{
	const size_t len = strlen(why), end = strlen(WORLD_REPEATS);
	return (int)(len >= end && !strcmp(why + len - end, WORLD_REPEATS) ? len - end : len);
}

void cause_explain_stuck(struct explanation *q, const char *why)
{
	const struct event_log *r = q->r;
	const struct deviations *all = &q->t->deviations;
	unsigned machine = r->machines - 1, death = all->n;
	char where[80] = "", by[220] = "", op[120] = "", frames[420];
	size_t room = sizeof(q->c->sentence), used = 0, from, to;
	int polled = EVENT_LOG_NONE, missing = EVENT_LOG_NONE, last = EVENT_LOG_NONE;
	q->c->kind = CAUSE_STUCK;
	if (!q->hangs &&
	    (q->contract == TM_FSCK || q->contract == TM_AGREE)) { /* it says only what broke */
		q->c->kind = CAUSE_NONE;
		cause_print(q->c->sentence, room, "no cause could be named; %s.", why);
		return;
	}
	if (!q->hangs) {
		cause_print(q->c->sentence, room, "%s.", why);
		return;
	}
	find_polling(q, machine, &from, &to);
	for (unsigned i = 0; i < all->n && death == all->n; i++)
		if (all->d[i].kind == CHOICE_STEP &&
		    (all->d[i].answer == DELAY_FOREVER ||
		     delay_kills(choice_delay(CHOICE_STEP, all->d[i].answer))) &&
		    q->matters[i])
			death = i;
	if (death < all->n)
		missing = find_missing(q, machine, from, to, death, &polled);
	/* In a deadlock no task reads on and on: the sentence says which waits for which. */
	if (missing < 0 && strncmp(why, "deadlock: ", 10))
		polled = find_polled(q, machine, from, to, NULL);
	const struct logged_event *e = event_log_at(r, polled),
				  *m = event_log_at(&q->instead, missing);
	used = cause_print(q->c->sentence, room, "%.*s",
			   e ? length_without_repeats(why) : (int)strlen(why), why);
	if (e) {
		cause_place(q, e->off, e->len, where, sizeof(where));
		cause_agent(q, e, op, sizeof(op));
		cause_say(q, polled, "%s reads %s again and again", op, where);
		cause_frames(q, r, e, "it reads in ", frames, sizeof(frames));
		if (frames[0])
			cause_say(q, polled, "%s", frames);
		/* Who goes on asking is at fault, and not what looks for it. */
		const struct spot spot = cause_spot(r, e);
		const uintptr_t by_caller = cause_caller(q, spot, 1);
		cause_suspect(q, SUSPECT_WAITS, by_caller ? by_caller : cause_maker(q, spot),
			      "%s is read again and again", where);
		used += cause_print(q->c->sentence + used, room - used,
				    ": %s reads %s again and again", op, where);
		last = event_log_last_write(r, r->events, e);
	}
	if (m) {
		cause_doer(q, &q->instead, m, by, sizeof(by));
		cause_say(q, EVENT_LOG_NONE, "not written: %s would have written there at %.3f us",
			  by, cause_us(m->at));
		used += cause_print(q->c->sentence + used, room - used,
				    ", which %s has not written", by);
	} else if (last >= 0) {
		cause_doer(q, r, &r->event[last], by, sizeof(by));
		cause_frames(q, r, &r->event[last], ", in ", frames, sizeof(frames));
		cause_say(q, last, "last written by %s at %.3f us%s", by,
			  cause_us(r->event[last].at), frames);
		used += cause_print(q->c->sentence + used, room - used, ", which %s wrote last",
				    by);
	}
	say_awaited(q, machine, death < all->n ? &all->d[death] : NULL, m != NULL, used);
	/* A verdict that it is stuck says only what broke. */
	if (!strncmp(q->c->sentence, why, strlen(why)) &&
	    strlen(q->c->sentence) == strlen(why) + 1 && strncmp(why, "deadlock: ", 10)) {
		q->c->kind = CAUSE_NONE;
		if (!cause_explain_failed(q, why))
			cause_print(q->c->sentence, room, "no cause could be named; %s.", why);
	}
}
