/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a power failure damages, recovery and GETs must notice. Which of them looked at the damaged
 * bytes, what the comparison said (rt_check()), and where it is; and the faults that follow: a
 * damaged object that was taken, and one that was refused without going back to the version before
 * it. In neither is a flush to blame: no client had been told that the lost bytes are durable.
 */
#include <assert.h>
#include <string.h>
#include "checker/cause/explain.h"

/* May the check be of these bytes: were they read by its task, or by an RDMA READ of its operation,
 * after the check before it that had reads of its own? What it compares is not known: so it is
 * told only that one came after the other. */
static bool looks_at(const struct event_log *r, size_t at, uint64_t off, uint64_t len)
{
	const struct logged_event *check = &r->event[at];
	bool any = false;
	assert(check->kind == TRACED_CHECK && len);
	for (size_t i = at; i-- > r->machine_from[check->machine];) {
		const struct logged_event *e = &r->event[i];
		if (e->kind == TRACED_FETCH ? !event_log_is_of(e, check->op, check->machine)
					    : e->actor != check->actor)
			continue;
		if (e->kind == TRACED_CHECK && any)
			return false;
		if (!event_log_reads(e))
			continue;
		if (event_log_overlaps(e, off, len))
			return true;
		any = true;
	}
	return false;
}

int cause_find_check(const struct explanation *q, bool recovery, unsigned machine, uint64_t off,
		     uint64_t len)
{
	const struct event_log *r = q->r;
	assert(machine < r->machines);
	for (size_t i = r->events; i-- > r->machine_from[machine];) {
		const struct logged_event *e = &r->event[i];
		if (e->kind == TRACED_CHECK &&
		    (recovery ? cause_is_recovery(q, e) : event_log_is_of(e, q->op, q->machine)) &&
		    looks_at(r, i, off, len))
			return (int)i;
	}
	return EVENT_LOG_NONE;
}

void cause_check_place(const struct explanation *q, int check, char *buf, size_t n)
{
	char line[160];
	const struct logged_event *e = event_log_at(q->r, check);
	assert(e && e->kind == TRACED_CHECK);
	where_print(q->where, e->pc, line, sizeof(line));
	cause_print(buf, n, "the check%s%s, in %s()", line[0] ? " at " : "", line,
		    where_function(q->where, e->pc));
}

/* Was a write that came later, and of which the verdict depends, ahead of a lost one? Then their
 * order is the fault. */
static bool is_vouched_for(struct explanation *q, const struct loss *loss, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (cause_find_early(q, &loss[i]) >= 0)
			return true;
	return false;
}

static void say_losses(struct explanation *q, const struct loss *loss, unsigned n)
{
	char where[80], by[220];
	for (unsigned i = 0; i < n; i++) {
		const struct logged_event *e = event_log_at(q->r, loss[i].event);
		cause_place(q, loss[i].off, loss[i].len, where, sizeof(where));
		cause_doer(q, q->r, e, by, sizeof(by));
		cause_say(q, loss[i].event, "lost, as may happen: %s, %swritten by %s at %.3f us",
			  where, loss[i].several ? "last " : "", by, cause_us(e->at));
	}
}

/* "; the version before it is whole at x" */
static void say_version_before(struct explanation *q, char *buf, size_t n)
{
	char where[80];
	buf[0] = '\0';
	if (q->expected_at < 0)
		return;
	cause_place(q, (uint64_t)q->expected_at, q->expected->vlen, where, sizeof(where));
	cause_say(q, EVENT_LOG_NONE, "whole: the version before it, at %s; it is not read there",
		  where);
	cause_print(buf, n, "; the version before it is whole at %s", where);
}

/* A reader got what is damaged. */
static bool explain_taken(struct explanation *q, const struct loss *loss, unsigned n)
{
	struct cause *c = q->c;
	const struct loss *read = NULL;
	char where[80], by[260], place[300], whole[160], reader[120];
	for (unsigned i = 0; i < n && !read; i++)
		if (cause_read_in_the_end(q, &q->r->event[loss[i].event]))
			read = &loss[i];
	/* What recovery has written must be durable before clients are served. */
	if (!q->foreign || !read || cause_is_recovery(q, &q->r->event[read->event]))
		return false;
	int check = cause_find_check(q, true, read->machine + 1, read->off, read->len);
	int last = cause_find_check(q, false, q->machine, read->off, read->len);
	bool taken = check >= 0 && q->r->event[check].holds;
	if (!taken && is_vouched_for(q, loss, n))
		return false;
	c->kind = CAUSE_TAKEN;
	say_losses(q, loss, n);
	cause_place(q, read->off, read->len, where, sizeof(where));
	cause_writing(q, q->r, &q->r->event[read->event], by, sizeof(by));
	cause_op(q, q->op, q->machine, reader, sizeof(reader));
	if (taken) {
		cause_check_place(q, check, place, sizeof(place));
		cause_say(q, EVENT_LOG_NONE, "taken: recovery looked at %s, and then %s, held",
			  where, place);
	} else {
		cause_print(place, sizeof(place), "no check of recovery");
		cause_say(q, EVENT_LOG_NONE, "taken: %s %s %s", place,
			  check < 0 ? "looked at" : "took", where);
	}
	size_t used = cause_print(c->sentence, sizeof(c->sentence),
				  "%s at %s was cut by the power failure, as may happen, and must "
				  "not be taken; but %s %s it",
				  by, where, place,
				  taken	      ? "held after recovery looked at"
				  : check < 0 ? "looked at"
					      : "took");
	if (last >= 0 && q->r->event[last].holds) {
		cause_check_place(q, last, place, sizeof(place));
		cause_say(q, EVENT_LOG_NONE, "taken: %s read %s, and %s, held", reader, where,
			  place);
		used += cause_print(c->sentence + used, sizeof(c->sentence) - used,
				    ", and for %s %s, held", reader, place);
	}
	say_version_before(q, whole, sizeof(whole));
	cause_print(c->sentence + used, sizeof(c->sentence) - used, "%s; so %s.", whole, q->seen);
	return true;
}

/* Recovery refused the damaged version, and did not read the expected one, which is there. */
static bool explain_left(struct explanation *q, const struct loss *loss, unsigned n)
{
	struct cause *c = q->c;
	char where[80], by[260], place[300], whole[160];
	int check = EVENT_LOG_NONE;
	if (q->expected_at < 0 || q->foreign || is_vouched_for(q, loss, n))
		return false;
	/* What is lost must not be of the version that was expected. */
	for (unsigned i = 0; i < n; i++) {
		struct op_label op = q->r->event[loss[i].event].op;
		if (!op.kind || (op.kind == OP_PUT && op.client == q->expected->client &&
				 op.nth == q->expected->nth))
			return false;
	}
	for (unsigned i = 0; i < n && check < 0; i++)
		check = cause_find_check(q, true, loss[i].machine + 1, loss[i].off, loss[i].len);
	if (check < 0 || q->r->event[check].holds)
		return false;
	c->kind = CAUSE_LEFT;
	say_losses(q, loss, n);
	cause_place(q, loss[0].off, loss[0].len, where, sizeof(where));
	cause_writing(q, q->r, &q->r->event[loss[0].event], by, sizeof(by));
	cause_check_place(q, check, place, sizeof(place));
	cause_say(q, EVENT_LOG_NONE, "refused: recovery looked at it, and then %s, did not hold",
		  place);
	say_version_before(q, whole, sizeof(whole));
	cause_print(
		c->sentence, sizeof(c->sentence),
		"%s%s%s at %s was cut by the power failure, as may happen, and recovery refused "
		"it, as it must: %s, did not hold%s, but recovery did not go back to it; so %s.",
		q->seen_against, q->seen_against[0] ? "; then " : "", by, where, place, whole,
		q->seen);
	return true;
}

bool cause_explain_damage(struct explanation *q, const struct loss *loss, unsigned n)
{
	assert(n && n <= LOSSES);
	return explain_taken(q, loss, n) || explain_left(q, loss, n);
}

void cause_say_missing(struct explanation *q, unsigned machine, uint64_t off, uint64_t len,
		       char *buf, size_t n)
{
	char where[80], place[300];
	int check = cause_find_check(q, true, machine + 1, off, len);
	buf[0] = '\0';
	cause_place(q, off, len, where, sizeof(where));
	if (check < 0 && !q->foreign)
		return;
	if (check < 0) {
		cause_say(q, EVENT_LOG_NONE, "taken: no check of recovery looked at %s", where);
		cause_print(buf, n, "; no check of recovery looked at %s", where);
		return;
	}
	bool holds = q->r->event[check].holds;
	cause_check_place(q, check, place, sizeof(place));
	if (holds)
		cause_suspect(q, SUSPECT_RECOVERY, q->r->event[check].pc,
			      "recovery took %s for whole", where);
	cause_say(q, EVENT_LOG_NONE, "%s: recovery looked at %s, and then %s, %s",
		  holds ? "taken" : "refused", where, place, holds ? "held" : "did not hold");
	cause_print(buf, n, "; recovery looked at %s, and then %s, %s", where, place,
		    holds ? "held"
		    : q->expected_at >= 0 && !q->foreign
			    ? "did not hold, as it must not, but "
			      "recovery did not go back to the value before"
			    : "did not hold");
}
