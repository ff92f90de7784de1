/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power failed between two steps, and nothing was lost: the step after which it must not fail,
 * the one after which it may again, if the same run goes on with the power on (cause_probe.c), and
 * what recovery made of it.
 */
#include "checker/cause/explain.h"
#include <assert.h>
#include <string.h>

/* Are these bytes read after the last failure, up to the last read of the verdict's operation? */
static bool read_again(const struct explanation *q, uint64_t off, uint64_t len)
{
	const struct event_log *r = q->r;
	bool again = false, any = false;
	for (size_t i = r->events; i-- > r->machine_from[r->machines - 1] && !again;) {
		if (!event_log_reads(&r->event[i]))
			continue;
		any |= event_log_is_of(&r->event[i], q->op, q->machine);
		again = any && event_log_overlaps(&r->event[i], off, len);
	}
	return again;
}

/* Were these bytes in flight when the power failed? Then an unread line has no content. */
static bool in_flight(const struct event_log *r, uint64_t off, uint64_t len)
{
	for (unsigned i = 0; i < r->lines; i++)
		if (r->line[i].line >= off / LINE && r->line[i].line <= (off + len - 1) / LINE)
			return true;
	return false;
}

/* The pool as the last failure left it, but for the lines in flight. */
static void search_pool(void *arg, struct explorer *ex, unsigned machine)
{
	struct explanation *q = arg;
	const struct setup_value *v = q->expected;
	if (!machine || machine + 1 != q->r->machines)
		return;
	const uint8_t *base = pmem_base(ex->worlds.world[machine - 1].pm), *at = base,
		      *end = base + q->s->pm_len;
	for (; (at = memmem(at, (size_t)(end - at), v->bytes, v->vlen)); at++) {
		uint64_t off = (uint64_t)(at - base);
		if (in_flight(q->r, off, v->vlen) || read_again(q, off, v->vlen))
			continue;
		q->expected_at = (int64_t)off;
		return;
	}
}

int cause_find_value(struct explanation *q)
{
	const struct replay_audience audience = {.machine_starts = search_pool, .arg = q};
	bool broken;
	return q->expected ? cause_replay_breaks(q, &q->t->deviations, &audience, &broken) : 0;
}

/* What recovery wrote last of what the reader of the verdict then read. */
static int find_recovered(const struct explanation *q)
{
	const struct event_log *r = q->r;
	for (size_t i = r->events; i-- > r->machine_from[r->machines - 1];)
		if (event_log_writes(&r->event[i]) && cause_is_recovery(q, &r->event[i]) &&
		    cause_read_in_the_end(q, &r->event[i]))
			return (int)i;
	return EVENT_LOG_NONE;
}

/* "; recovery (...) then wrote x; the value that was expected is still at y, but it is not
 * read there" */
static void say_unread(struct explanation *q, char *buf, size_t n)
{
	char where[80], kept[80], line[170], frames[420];
	int recovered = find_recovered(q);
	size_t used = 0;
	buf[0] = '\0';
	if (recovered >= 0) {
		const struct logged_event *e = &q->r->event[recovered];
		cause_place(q, e->off, e->len, where, sizeof(where));
		cause_source(q, e->pc, line, sizeof(line));
		cause_frames(q, q->r, e, "; in ", frames, sizeof(frames));
		cause_say(q, recovered,
			  "recovery%s wrote %s at %.3f us, and that is read in the end%s", line,
			  where, cause_us(e->at), frames);
		used = cause_print(buf, n, "; recovery%s then wrote %s", line, where);
	}
	if (q->expected_at < 0 || q->foreign)
		return;
	cause_place(q, (uint64_t)q->expected_at, q->expected->vlen, kept, sizeof(kept));
	cause_say(q, EVENT_LOG_NONE,
		  "still there: the value that was expected, at %s; it is not read "
		  "after the failure",
		  kept);
	cause_print(buf + used, n - used,
		    "; the value that was expected is still at %s, but it is not read there", kept);
}

/* The last power failure of the trace, and the machine whose power fails. */
static const struct deviation *last_failure(const struct explanation *q, unsigned *machine)
{
	const struct deviation *crash = NULL;
	*machine = 0;
	for (unsigned i = 0; i < q->t->deviations.n; i++) {
		if (q->t->deviations.d[i].kind != CHOICE_CRASH)
			continue;
		*machine += crash != NULL;
		crash = &q->t->deviations.d[i];
	}
	assert(crash && *machine + 1 < q->r->machines);
	return crash;
}

/* "x, written by A, survived, and y, which B writes next, was not written yet". Returns the bytes
 * used of the room. */
static size_t say_steps(const struct explanation *q, int last, int next, char *buf, size_t room)
{
	const struct logged_event *a = event_log_at(q->r, last),
				  *b = event_log_at(&q->instead, next);
	char where[80], by[220];
	size_t used = 0;
	if (a && !event_log_writes(a)) {
		cause_op(q, a->op, a->machine, by, sizeof(by));
		used = cause_print(buf, room, "%s had %s", by,
				   a->kind == TRACED_CALL ? "begun" : "returned");
	} else if (a) {
		cause_place(q, a->off, a->len, where, sizeof(where));
		cause_doer(q, q->r, a, by, sizeof(by));
		used = cause_print(buf, room, "%s, written by %s, survived", where, by);
	} else {
		used = cause_print(buf, room, "nothing that is read afterwards had been written");
	}
	if (b && !event_log_writes(b)) {
		cause_op(q, b->op, b->machine, by, sizeof(by));
		return used + cause_print(buf + used, room - used, ", and %s had not %s yet", by,
					  b->kind == TRACED_CALL ? "begun" : "returned");
	}
	if (!b)
		return used;
	cause_place(q, b->off, b->len, where, sizeof(where));
	cause_doer(q, &q->instead, b, by, sizeof(by));
	return used + cause_print(buf + used, room - used,
				  ", and %s, which %s writes next, was not written yet", where, by);
}

bool cause_is_of_life(const struct explanation *q)
{
	bool life = false;
	for (unsigned i = 0; i < q->t->deviations.n; i++) {
		const struct deviation *d = &q->t->deviations.d[i];
		life = d->kind != CHOICE_CRASH &&
		       (life || (d->kind == CHOICE_LIFE && q->matters[i]));
	}
	return life;
}

void cause_explain_cut(struct explanation *q)
{
	const struct deviation_names names = {q->s->region, q->s->regions};
	char text[DEVIATION_TEXT], kept[300], checked[400] = "", *sentence = q->c->sentence;
	size_t room = sizeof(q->c->sentence), used;
	unsigned machine;
	const struct deviation *crash = last_failure(q, &machine);
	size_t end = q->r->machine_from[machine + 1];
	deviation_print(crash, &names, text, sizeof(text));
	cause_say(q, (int)end - 1, "the power fails: %s", text);
	int next = q->window.last, done = q->window.same;
	q->c->kind = CAUSE_CUT;
	/* Did what is contradicted come after the failure? Then the failure is not between them. */
	bool later = q->against.kind && q->against_machine > machine;
	/* What comes after the power failure explains it, or nothing. */
	if (!q->window.wrong || (next < 0 && (done < 0 || cause_is_of_life(q))) ||
	    (later && q->against.kind != OP_GET)) {
		cause_explain_race(q);
		return;
	}
	used = cause_print(sentence, room, "%s%sthe power failed%s: ", later ? "" : q->seen_against,
			   q->seen_against[0] && !later ? ", but " : "",
			   next >= 0 ? " between two steps" : ", and nothing was lost");
	const struct logged_event *missing = event_log_at(&q->instead, next);
	used += say_steps(q, done, next, sentence + used, room - used);
	say_unread(q, kept, sizeof(kept));
	if (missing && event_log_writes(missing))
		cause_say_missing(q, machine, missing->off, missing->len, checked, sizeof(checked));
	cause_print(sentence + used, room - used, "%s%s; so %s%s%s.", checked, kept,
		    later ? q->seen_against : "", later ? ", and " : "", q->seen);
}
