/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Something that an operation asked for failed, and the operation went on as if it had not: a
 * compare-and-swap that did not swap, a call or a request that ended with an error. Or the
 * operation could not but fail.
 */
#include <assert.h>
#include <infiniband/verbs.h>
#include <string.h>
#include "checker/cause/explain.h"
#include "core/rnic/opcode.h"

static bool is_of_op(const struct logged_event *e, const struct logged_event *other)
{
	return event_log_is_of(e, other->op, other->machine);
}

static bool is_atomic(const struct logged_event *e)
{
	return (e->kind == TRACED_FETCH || e->kind == TRACED_EFFECT) &&
	       operations[e->code].class == CLASS_ATOMIC;
}

/* Did the operation try once more: the same word with success, or after an error anything? */
static bool tried_again(const struct event_log *r, size_t failure)
{
	const struct logged_event *f = &r->event[failure];
	for (size_t i = failure + 1; i < r->machine_from[f->machine + 1]; i++) {
		const struct logged_event *e = &r->event[i];
		if (!is_of_op(e, f))
			continue;
		if (is_atomic(f) ? e->kind == f->kind && e->code == f->code && e->off == f->off
				 : e->kind == TRACED_POST)
			return true;
	}
	return false;
}

/* The return of the operation, with success, after it; or EVENT_LOG_NONE. */
static int find_success(const struct event_log *r, size_t failure)
{
	static const char success[] = "returns 0";
	const struct logged_event *f = &r->event[failure];
	for (size_t i = failure + 1; i < r->machine_from[f->machine + 1]; i++)
		if (r->event[i].kind == TRACED_RETURN && is_of_op(&r->event[i], f) &&
		    !strncmp(event_log_text(r, &r->event[i]), success, sizeof(success) - 1))
			return (int)i;
	return EVENT_LOG_NONE;
}

static bool is_failure(const struct logged_event *e)
{
	return is_atomic(e) ? e->failed
			    : e->kind == TRACED_REFUSED ||
				      (e->kind == TRACED_FAILED && e->code != IBV_WC_WR_FLUSH_ERR);
}

/* Does the verdict depend on the operation: is it one of the two, or is what it wrote after the
 * failure read in the end? */
static bool matters(const struct explanation *q, size_t failure)
{
	const struct event_log *r = q->r;
	const struct logged_event *f = &r->event[failure];
	if (event_log_is_of(f, q->against, q->against_machine) ||
	    event_log_is_of(f, q->op, q->machine))
		return true;
	for (size_t i = failure + 1; i < r->machine_from[f->machine + 1]; i++)
		if (event_log_writes(&r->event[i]) && is_of_op(&r->event[i], f) &&
		    cause_read_in_the_end(q, &r->event[i]))
			return true;
	return false;
}

/* The last failure that the client met before its operation returned; or EVENT_LOG_NONE. */
static int find_failure(const struct explanation *q)
{
	const struct event_log *r = q->r;
	int failure = EVENT_LOG_NONE;
	for (size_t i = r->machine_from[q->machine]; i < r->machine_from[q->machine + 1]; i++) {
		const struct logged_event *e = &r->event[i];
		if (e->kind == TRACED_RETURN && event_log_is_of(e, q->op, q->machine))
			break;
		if (e->op.client == q->op.client && is_failure(e) && !is_atomic(e))
			failure = (int)i;
	}
	return failure;
}

bool cause_explain_failed(struct explanation *q, const char *seen)
{
	const struct event_log *r = q->r;
	int failure = q->op.client ? find_failure(q) : EVENT_LOG_NONE;
	const struct logged_event *f = event_log_at(r, failure);
	char op[120];
	if (!f)
		return false;
	q->c->kind = CAUSE_IGNORED;
	cause_op(q, f->op, f->machine, op, sizeof(op));
	cause_say(q, failure, "failed: %s of %s, at %.3f us: %s", event_log_actor(r, f), op,
		  cause_us(f->at), event_log_text(r, f));
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "what %s asked for failed at %.3f us (%s: %s); so %s.", op, cause_us(f->at),
		    event_log_actor(r, f), event_log_text(r, f), seen);
	return true;
}

bool cause_explain_ignored(struct explanation *q)
{
	const struct event_log *r = q->r;
	char op[120], what[300], why[200] = "";
	int failure = EVENT_LOG_NONE, success = EVENT_LOG_NONE;
	if (q->contract == TM_OK)
		return cause_explain_failed(q, q->seen);
	for (size_t i = 0; i < r->events && success < 0; i++) {
		const struct logged_event *e = &r->event[i];
		if (!is_failure(e) || !e->op.client || tried_again(r, i) || !matters(q, i))
			continue;
		failure = (int)i;
		success = find_success(r, i);
	}
	if (success < 0)
		return false;
	const struct logged_event *f = &r->event[failure];
	const char *text = event_log_text(r, f);
	cause_op(q, f->op, f->machine, op, sizeof(op));
	if (is_atomic(f)) {
		/* "... CMP_AND_SWP at index+0x8: expected 0, found 0x1: it fails, ..." */
		const char *at = strstr(text, " at "), *met = at ? strstr(at, ": ") : NULL;
		const char *end = met ? strstr(met + 2, ": ") : NULL;
		cause_print(what, sizeof(what), "the %s of %s%.*s failed at %.3f us",
			    cause_request(f), op, end ? (int)(met - at) : 0, end ? at : "",
			    cause_us(f->at));
		if (end)
			cause_print(why, sizeof(why), " (%.*s)", (int)(end - met) - 2, met + 2);
	} else {
		cause_print(what, sizeof(what), "a request of %s failed at %.3f us", op,
			    cause_us(f->at));
		cause_print(why, sizeof(why), " (%s: %s)", event_log_actor(r, f), text);
	}
	q->c->kind = CAUSE_IGNORED;
	cause_say(q, failure, "ignored: %s%s, and it did not try again", what, why);
	cause_say(q, success, "it went on, and returned success at %.3f us",
		  cause_us(r->event[success].at));
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "%s%s%s%s, and the operation went on as if that had succeeded: it did not try "
		    "again, and returned success at %.3f us; so %s.",
		    q->seen_against, q->seen_against[0] ? ", but " : "", what, why,
		    cause_us(r->event[success].at), q->seen);
	return true;
}
