/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No power failure is needed: how the accesses of the operation of the verdict met those of other
 * operations. The kinds of meeting are tried from the most telling to the least.
 */
#include "checker/cause/explain.h"
#include <string.h>

/* First and last event of an operation, up to its return: what others do on its behalf after that
 * does not make its answer. False: there is none. */
static bool span(const struct event_log *r, struct op_label op, unsigned machine, size_t *from,
		 size_t *to)
{
	bool any = false;
	for (size_t i = 0; i < r->events; i++) {
		if (!event_log_is_of(&r->event[i], op, machine) || r->event[i].kind == TRACED_LAND)
			continue;
		if (!any)
			*from = i;
		*to = i;
		any = true;
		if (r->event[i].kind == TRACED_RETURN)
			break;
	}
	return any;
}

static bool returned(const struct event_log *r, struct op_label op, unsigned machine, size_t before)
{
	for (size_t i = r->machine_from[machine]; i < before; i++)
		if (r->event[i].kind == TRACED_RETURN && event_log_is_of(&r->event[i], op, machine))
			return true;
	return false;
}

/* The reader followed what an operation had written to a place where that operation wrote only
 * afterwards. */
static bool explain_early_read(struct explanation *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	char first[80], late[80], by[220], late_by[220], reader[120];
	for (size_t i = to + 1; i-- > from;) {
		const struct logged_event *read = &r->event[i];
		if (!event_log_reads(read) || !event_log_is_of(read, q->op, q->machine))
			continue;
		int next = event_log_next(r, i + 1, q->machine, EVENT_LOG_WRITES, read->off,
					  read->len);
		const struct logged_event *w = event_log_at(r, next), *led = NULL;
		if (!w || !w->op.client || op_label_equal(w->op, q->op))
			continue;
		/* What it read of that operation first. */
		int at = EVENT_LOG_NONE;
		for (size_t k = from; k < i && at < 0; k++) {
			const struct logged_event *e = &r->event[k];
			int before = event_log_reads(e) && event_log_is_of(e, q->op, q->machine)
					     ? event_log_last_write(r, k, e)
					     : EVENT_LOG_NONE;
			if (before >= 0 && op_label_equal(r->event[before].op, w->op))
				at = before;
		}
		led = event_log_at(r, at);
		if (!led)
			continue;
		cause_place(q, led->off, led->len, first, sizeof(first));
		cause_place(q, w->off, w->len, late, sizeof(late));
		cause_doer(q, r, led, by, sizeof(by));
		cause_doer(q, r, w, late_by, sizeof(late_by));
		cause_op(q, q->op, q->machine, reader, sizeof(reader));
		cause_say(q, at, "%s has written %s at %.3f us, and %s reads it", by, first,
			  cause_us(led->at), reader);
		cause_say(q, (int)i, "%s reads %s at %.3f us", reader, late, cause_us(read->at));
		cause_say(q, next, "too early: %s comes only at %.3f us", late_by, cause_us(w->at));
		cause_print(
			q->c->sentence, sizeof(q->c->sentence),
			"%s met %s, written by %s, and read %s at %.3f us, before %s came there at "
			"%.3f us; so "
			"%s.",
			reader, first, by, late, cause_us(read->at), late_by, cause_us(w->at),
			q->seen);
		return true;
	}
	return false;
}

/* What the reader should have seen became visible too late for it. */
static bool explain_late(struct explanation *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	char where[80], by[220], reader[120], op[120], frames[420];
	int late = EVENT_LOG_NONE, ack = EVENT_LOG_NONE;
	for (size_t i = r->machine_from[q->against_machine]; i < r->events; i++) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_is_of(e, q->against, q->against_machine))
			continue;
		if (e->kind == TRACED_RETURN)
			ack = (int)i;
		if (event_log_writes(e) && i > from && late < 0)
			late = (int)i;
	}
	if (ack < 0 || (size_t)ack > to || late < ack)
		return false;
	const struct logged_event *e = &r->event[late];
	cause_place(q, e->off, e->len, where, sizeof(where));
	cause_op(q, q->op, q->machine, reader, sizeof(reader));
	cause_op(q, q->against, q->against_machine, op, sizeof(op));
	cause_say(q, ack, "%s is acknowledged at %.3f us", op, cause_us(r->event[ack].at));
	cause_doer(q, r, e, by, sizeof(by));
	cause_frames(q, r, e, ", in ", frames, sizeof(frames));
	cause_say(q, late, "%s is written by %s only at %.3f us%s", where, by, cause_us(e->at),
		  frames);
	cause_writing(q, r, e, by, sizeof(by));
	cause_say(q, (int)from, "%s runs from %.3f us to %.3f us, in between", reader,
		  cause_us(r->event[from].at), cause_us(r->event[to].at));
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "%s at %.3f us, but %s at %s became visible only at %.3f us: acknowledged is "
		    "not yet "
		    "visible, "
		    "and "
		    "%s came in between; so %s.",
		    q->seen_against, cause_us(r->event[ack].at), by, where, cause_us(e->at), reader,
		    q->seen);
	return true;
}

/* The last writer of the bytes that the reader read is an operation that has not come to its
 * end. */
static bool explain_unfinished(struct explanation *q, size_t to)
{
	const struct event_log *r = q->r;
	char list[300] = "", where[80], by[220], reader[120], frames[420];
	struct op_label named[8];
	unsigned n = 0;
	for (size_t i = to; i-- > r->machine_from[q->machine] && n < 8;) {
		const struct logged_event *e = &r->event[i];
		bool read = false, known = false;
		if (!event_log_writes(e) || !e->op.client || op_label_equal(e->op, q->op) ||
		    (e->op.kind != OP_PUT && e->op.kind != OP_DEL) ||
		    returned(r, e->op, q->machine, i + 1))
			continue;
		if (returned(r, e->op, q->machine, to))
			continue;
		for (size_t k = i; k <= to; k++)
			read |= event_log_reads(&r->event[k]) &&
				event_log_is_of(&r->event[k], q->op, q->machine) &&
				event_log_overlaps(&r->event[k], e->off, e->len);
		for (unsigned k = 0; k < n; k++)
			known |= op_label_equal(named[k], e->op);
		if (!read || known)
			continue;
		named[n] = e->op;
		cause_place(q, e->off, e->len, where, sizeof(where));
		cause_doer(q, r, e, by, sizeof(by));
		cause_frames(q, r, e, "; in ", frames, sizeof(frames));
		cause_say(q, (int)i,
			  "unfinished: %s wrote %s at %.3f us, and that operation has not returned "
			  "when it is read%s",
			  by, where, cause_us(e->at), frames);
		size_t used = strlen(list);
		cause_print(list + used, sizeof(list) - used, "%s%s at %s", n ? " and " : "", by,
			    where);
		n++;
	}
	if (!n)
		return false;
	cause_op(q, q->op, q->machine, reader, sizeof(reader));
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "%s%s%s met what %s had written for %s not finished; so %s.", q->seen_against,
		    q->seen_against[0] ? ", but " : "", reader, list,
		    n > 1 ? "operations that were" : "an operation that was", q->seen);
	return true;
}

/* Another write replaced what the operation of the verdict had written, before it was read. */
static bool explain_overwritten(struct explanation *q, size_t to)
{
	const struct event_log *r = q->r;
	char where[80], by[220], over[220], frames[420];
	for (size_t i = to; i-- > r->machine_from[q->machine];) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || op_label_equal(e->op, q->against) ||
		    op_label_equal(e->op, q->op))
			continue;
		int before = EVENT_LOG_NONE, read = EVENT_LOG_NONE;
		for (size_t k = i; k-- > r->machine_from[q->machine] && before < 0;)
			if (event_log_writes(&r->event[k]) &&
			    event_log_is_of(&r->event[k], q->against, q->machine) &&
			    event_log_overlaps(&r->event[k], e->off, e->len))
				before = (int)k;
		for (size_t k = i; k <= to && read < 0; k++)
			if (event_log_reads(&r->event[k]) &&
			    event_log_is_of(&r->event[k], q->op, q->machine) &&
			    event_log_overlaps(&r->event[k], e->off, e->len))
				read = (int)k;
		if (before < 0 || read < 0)
			continue;
		cause_place(q, e->off, e->len, where, sizeof(where));
		cause_doer(q, r, e, over, sizeof(over));
		cause_doer(q, r, &r->event[before], by, sizeof(by));
		cause_say(q, before, "%s wrote %s at %.3f us", by, where,
			  cause_us(r->event[before].at));
		cause_frames(q, r, e, ", in ", frames, sizeof(frames));
		cause_say(q, (int)i, "overwritten: %s wrote over it at %.3f us%s", over,
			  cause_us(e->at), frames);
		cause_suspect(q, SUSPECT_OVERWRITES, cause_caller(q, cause_spot(r, e), 0),
			      "%s is overwritten", where);
		cause_say(q, read, "it is read at %.3f us", cause_us(r->event[read].at));
		cause_print(
			q->c->sentence, sizeof(q->c->sentence),
			"%s, but what %s wrote at %s (%.3f us) was overwritten by %s (%.3f us); so "
			"%s.",
			q->seen_against, by, where, cause_us(r->event[before].at), over,
			cause_us(e->at), q->seen);
		return true;
	}
	return false;
}

/* Does the operation of the verdict read of these bytes from event `from` to `to`? */
static bool reads_in(const struct explanation *q, size_t from, size_t to,
		     const struct logged_event *of)
{
	bool read = false;
	for (size_t i = from; i <= to && !read; i++)
		read = event_log_reads(&q->r->event[i]) &&
		       event_log_is_of(&q->r->event[i], q->op, q->machine) &&
		       event_log_overlaps(&q->r->event[i], of->off, of->len);
	return read;
}

/* Had the operation that writes this begun before event `to`? Then the write could have come
 * before. What a server writes once the readers at the end have come is of theirs. */
static bool had_begun(const struct explanation *q, const struct logged_event *write, size_t to)
{
	const struct event_log *r = q->r;
	bool begun = !write->op.client;
	for (size_t i = to; r->event + i < write && begun; i++)
		begun = r->event[i].op.client <= q->s->w.clients;
	for (size_t i = r->machine_from[write->machine]; i < to && !begun; i++)
		begun = event_log_is_of(&r->event[i], write->op, write->machine);
	return begun;
}

struct met {
	int saw, read_saw, missed; /* EVENT_LOG_NONE: nothing */
};

/* The last foreign write that the reader saw, and the first that it missed; `hand`, if not NULL:
 * the first of this one, for the same operation. */
static void find_met(const struct explanation *q, size_t from, size_t to,
		     const struct logged_event *hand, struct met *met)
{
	const struct event_log *r = q->r;
	*met = (struct met){EVENT_LOG_NONE, EVENT_LOG_NONE, EVENT_LOG_NONE};
	for (size_t i = from; i <= to; i++) {
		const struct logged_event *read = &r->event[i];
		if (!event_log_reads(read) || !event_log_is_of(read, q->op, q->machine))
			continue;
		for (size_t k = r->machine_from[q->machine]; k < r->machine_from[q->machine + 1];
		     k++) {
			const struct logged_event *e = &r->event[k];
			if (!event_log_writes(e) || op_label_equal(e->op, q->op) ||
			    !event_log_overlaps(e, read->off, read->len))
				continue;
			if (k < i && (met->saw < 0 || k >= (size_t)met->saw)) {
				met->saw = (int)k;
				met->read_saw = (int)i;
			}
			if (k > i && met->missed < 0 && had_begun(q, e, to) &&
			    !reads_in(q, k, to, e) &&
			    (!hand || (e->actor == hand->actor && op_label_equal(e->op, hand->op))))
				met->missed = (int)k;
		}
	}
}

/* Nothing of the above: what the reader saw, and what it missed. A mix is made by what the same
 * hand wrote. */
static void explain_accesses(struct explanation *q, size_t from, size_t to)
{
	const struct event_log *r = q->r;
	struct met met;
	char where[80], by[220], reader[120], frames[420];
	find_met(q, from, to, NULL, &met);
	if (q->contract == TM_RDA && met.saw >= 0)
		find_met(q, from, to, &r->event[met.saw], &met);
	const int saw = met.saw, missed = met.missed, read_saw = met.read_saw;
	cause_op(q, q->op, q->machine, reader, sizeof(reader));
	if (saw < 0 && missed < 0)
		q->c->kind = CAUSE_NONE;
	size_t used = cause_print(q->c->sentence, sizeof(q->c->sentence), "%s%s%s%s",
				  q->c->kind == CAUSE_NONE ? "no cause could be named; " : "",
				  q->seen_against, q->seen_against[0] ? ", but " : "", reader);
	if (saw >= 0) {
		cause_place(q, r->event[saw].off, r->event[saw].len, where, sizeof(where));
		cause_doer(q, r, &r->event[saw], by, sizeof(by));
		cause_frames(q, r, &r->event[saw], ", in ", frames, sizeof(frames));
		cause_say(q, saw, "%s read, at %.3f us, %s as %s had left it at %.3f us%s", reader,
			  cause_us(r->event[read_saw].at), where, by, cause_us(r->event[saw].at),
			  frames);
		used += cause_print(q->c->sentence + used, sizeof(q->c->sentence) - used,
				    " read %s as %s left it", where, by);
	}
	if (missed >= 0 && used < sizeof(q->c->sentence)) {
		cause_place(q, r->event[missed].off, r->event[missed].len, where, sizeof(where));
		cause_doer(q, r, &r->event[missed], by, sizeof(by));
		cause_frames(q, r, &r->event[missed], ", in ", frames, sizeof(frames));
		cause_say(q, missed, "missed: %s wrote %s only at %.3f us%s", by, where,
			  cause_us(r->event[missed].at), frames);
		used += cause_print(q->c->sentence + used, sizeof(q->c->sentence) - used,
				    "%s came too early for %s at %s", saw >= 0 ? ", and" : "", by,
				    where);
	}
	if (used < sizeof(q->c->sentence))
		cause_print(q->c->sentence + used, sizeof(q->c->sentence) - used,
			    saw >= 0 || missed >= 0
				    ? "; so %s."
				    : " is not known to have read in PM what another operation "
				      "wrote; what differs is only that %s.",
			    q->seen);
}

static void say_unexplained(struct explanation *q, const char *why)
{
	q->c->kind = CAUSE_NONE;
	cause_print(q->c->sentence, sizeof(q->c->sentence), "No cause could be named%s%s%s%s%s.",
		    why, q->seen_against[0] || q->seen[0] ? "; what differs is that " : "",
		    q->seen_against, q->seen_against[0] && q->seen[0] ? ", and " : "", q->seen);
}

void cause_explain_race(struct explanation *q)
{
	size_t from = 0, to = 0;
	q->c->kind = CAUSE_RACE;
	if (!span(q->r, q->op, q->machine, &from, &to)) {
		say_unexplained(q, q->op.kind ? ": no access to PM explains it" : "");
		return;
	}
	if (q->contract == TM_RDA && explain_early_read(q, from, to))
		return;
	if (q->against.kind && explain_late(q, from, to))
		return;
	if (explain_unfinished(q, to))
		return;
	if (q->against.kind && explain_overwritten(q, to))
		return;
	/* What is read makes the answer of a GET; a PUT may fail for what is in DRAM. */
	if (q->contract == TM_OK && q->op.kind != OP_GET)
		say_unexplained(q, "");
	else
		explain_accesses(q, from, to);
}
