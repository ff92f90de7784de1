/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a lost write lacked: the flush of its line, the fence after it; and of an RDMA FLUSH, READ,
 * atomic or Commit that was there, the rule of docs/model.md by which it did not cover the write.
 */
#include <assert.h>
#include <string.h>
#include "checker/cause/explain.h"
#include "core/pmem/domain.h"
#include "core/rnic/opcode.h"

/* Why a request of the NIC does not make a write durable; the later, the more telling. */
enum rule {
	RULE_NONE, /* it does, or it has nothing to do with the write */
	RULE_CPU,
	RULE_CONNECTION,
	RULE_BEFORE,
	RULE_RANGE,
	RULE_SEND,
	RULE_VISIBLE,
	RULE_CACHE,
};

/* Is it a request that asks for durability? Else it can only push, as a READ does. */
static bool asks(const struct logged_event *e)
{
	unsigned class = operations[e->code].class;
	return class == CLASS_FLUSH || class == CLASS_COMMIT || class == CLASS_COMMIT_PAYLOAD;
}

/* `after`: the request took effect after the write; `same`: they have one connection; `there`: it
 * names these bytes. Of READs only those that the operation itself makes are told: they may stand
 * for a FLUSH. */
static enum rule find_rule(const struct hardware *hw, const struct logged_event *write,
			   const struct logged_event *e, bool after, bool same, bool there)
{
	const bool own = op_label_equal(e->op, write->op), flush = asks(e);
	assert(e->kind == TRACED_EFFECT || e->kind == TRACED_FETCH);
	if (write->kind == TRACED_STORE)
		return flush && after && there ? RULE_CPU : RULE_NONE;
	/* What SENDs leave is covered wherever it is, or not at all. */
	const bool sent = operations[e->code].class == CLASS_FLUSH &&
			  operations[write->code].class == CLASS_SEND;
	if (!flush && (!own || !after))
		return RULE_NONE;
	if (!same)
		return there && (own || after) ? RULE_CONNECTION : RULE_NONE;
	if (!after)
		return own && there ? RULE_BEFORE : RULE_NONE;
	if (flush && !there && !sent)
		return own ? RULE_RANGE : RULE_NONE;
	if (flush && e->failed)
		return RULE_VISIBLE;
	if (flush && operations[e->code].class != CLASS_FLUSH)
		return RULE_NONE;
	if (!domain_nic_flush_reaches(hw))
		return RULE_CACHE;
	return sent && !hw->flush_covers_send ? RULE_SEND : RULE_NONE;
}

/* Does `read` touch anything that the write's message has written? */
static bool reads_message(const struct event_log *r, const struct logged_event *read,
			  const struct logged_event *write)
{
	for (size_t i = r->machine_from[write->machine]; i < r->machine_from[write->machine + 1];
	     i++) {
		const struct logged_event *e = &r->event[i];
		if (e->kind == TRACED_LAND && e->message == write->message &&
		    event_log_overlaps(e, read->off, read->len))
			return true;
	}
	return false;
}

struct request {
	const struct event_log *log;
	int event;
	enum rule rule;
};

/* The most telling one of these events. `at`: where the write is among them. */
static void find_request(const struct explanation *q, const struct logged_event *write,
			 const struct event_log *log, size_t from, size_t to, size_t at,
			 struct request *found)
{
	const struct hardware hw = setup_hw_at(q->s, write->off);
	for (size_t i = from; i < to; i++) {
		const struct logged_event *e = &log->event[i];
		if (e->kind != TRACED_EFFECT && e->kind != TRACED_FETCH)
			continue;
		bool same = !strcmp(event_log_actor(log, e), event_log_actor(q->r, write));
		bool there = asks(e) ? event_log_overlaps(e, write->off, write->len)
				     : !e->len || reads_message(q->r, e, write);
		enum rule rule = find_rule(&hw, write, e, i > at, same, there);
		if (rule > found->rule)
			*found = (struct request){log, (int)i, rule};
	}
}

/* "; the RDMA FLUSH of client 1's PUT k1 at 3.1 us does not reach the cache (ddio=on)". Returns how
 * much of the room it took. */
static size_t say_request(struct explanation *q, const struct logged_event *write,
			  const struct request *found, char *buf, size_t n)
{
	const struct logged_event *e = event_log_at(found->log, found->event);
	const struct event_log *r = q->r;
	char by[220], place[80], when[60];
	if (!e)
		return 0;
	cause_doer(q, found->log, e, by, sizeof(by));
	cause_place(q, e->off, e->len, place, sizeof(place));
	if (found->log == r)
		cause_print(when, sizeof(when), " at %.3f us", cause_us(e->at));
	else if (e->at == r->failed_at[write->machine])
		cause_print(when, sizeof(when), ", at the moment when the power failed,");
	else
		cause_print(when, sizeof(when), ", %.3f us after the power failed,",
			    cause_us(e->at - r->failed_at[write->machine]));
	switch (found->rule) {
	case RULE_CPU:
		return cause_print(buf, n, "%s%s covers only what its own connection writes; ", by,
				   when);
	case RULE_CONNECTION:
		return cause_print(buf, n,
				   "%s%s is of another connection, and covers only what that one "
				   "writes; ",
				   by, when);
	case RULE_BEFORE:
		return cause_print(buf, n, "%s%s came before it; ", by, when);
	case RULE_RANGE:
		return cause_print(buf, n, "%s%s is of another range, %s; ", by, when, place);
	case RULE_SEND:
		return cause_print(buf, n,
				   "%s%s does not cover what a SEND leaves (flush_covers_send="
				   "off); ",
				   by, when);
	case RULE_VISIBLE:
		return cause_print(buf, n, "%s%s asks for visibility alone; ", by, when);
	case RULE_CACHE:
		return cause_print(buf, n, "%s%s does not reach the cache (ddio=%s); ", by, when,
				   setup_hw_at(q->s, write->off).ddio == DDIO_ON ? "on" : "any");
	default:
		assert(found->rule == RULE_NONE);
		return 0;
	}
}

/* Is it known what would have come had the power held? Only the last failure is left out there. */
static bool went_on(const struct explanation *q, unsigned machine)
{
	return machine + 2 == q->r->machines;
}

/* The bytes were flushed, and no fence came after that. */
static void why_not_fenced(struct explanation *q, struct loss *loss,
			   const struct logged_event *flush)
{
	const struct event_log *instead = &q->instead;
	size_t end = q->r->machine_from[loss->machine + 1];
	int fence = EVENT_LOG_NONE;
	char by[220], line[170] = "";
	for (size_t i = end; i < instead->machine_from[loss->machine + 1] && fence < 0; i++)
		if (instead->event[i].kind == TRACED_FENCE &&
		    !strcmp(event_log_actor(instead, &instead->event[i]),
			    event_log_actor(q->r, flush)))
			fence = (int)i;
	if (fence >= 0)
		cause_source(q, instead->event[fence].pc, line, sizeof(line));
	cause_doer(q, q->r, flush, by, sizeof(by));
	cause_print(loss->why, CAUSE_TEXT,
		    "it was flushed but not fenced: flushed by %s at %.3f us, %s%s", by,
		    cause_us(flush->at),
		    fence >= 0			? "and the next fence of that task had not come yet"
		    : went_on(q, loss->machine) ? "and no fence of that task ever follows"
						: "and no fence of that task had come yet",
		    line);
	cause_say(q, (int)(flush - q->r->event), NULL);
	loss->flush = (int)(flush - q->r->event);
}

/* What makes it durable first in the run with the power on, by whatever flushes or drains it. NULL:
 * nothing. `again`: an earlier flush has been told of. `drains`: it would come to PM by itself. */
static void say_first(struct explanation *q, unsigned machine, const struct logged_event *e,
		      bool again, bool drains, char *buf, size_t n)
{
	char by[220];
	if (!e && drains) {
		cause_print(buf, n, ", and by itself it had not come to PM yet");
		return;
	}
	if (!e && went_on(q, machine))
		cause_print(buf, n, ", and no%s would have come had the power held",
			    again ? " other" : "ne");
	if (!e)
		return;
	char later[40];
	cause_later(e->at - q->r->failed_at[machine], later, sizeof(later));
	cause_doer(q, &q->instead, e, by, sizeof(by));
	if (e->kind == TRACED_DRAIN && !operation_is(e->code, NONPOSTED))
		cause_print(buf, n, "%s: by itself it would have come to PM %s",
			    again ? "" : " before the power fails", later);
	else
		cause_print(buf, n, "%s: the %s one would have come %s, by %s",
			    again ? "" : " before the power fails", again ? "next" : "first", later,
			    by);
}

/* No flush of its line came after the write; perhaps one did before. */
static void why_not_flushed(struct explanation *q, struct loss *loss, uint64_t line)
{
	const struct event_log *r = q->r;
	const struct logged_event *write = event_log_at(r, loss->event);
	const unsigned machine = loss->machine;
	const size_t begin = r->machine_from[machine], end = r->machine_from[machine + 1];
	struct request found = {.event = EVENT_LOG_NONE};
	int later = event_log_next(&q->instead, end, machine,
				   1u << TRACED_FLUSH | 1u << TRACED_DRAIN, line, LINE);
	int before = event_log_next(r, begin, machine, 1u << TRACED_FLUSH, line, LINE);
	find_request(q, write, r, begin, end, (size_t)loss->event, &found);
	if (found.rule == RULE_NONE && later == EVENT_LOG_NONE)
		find_request(q, write, &q->instead, end, q->instead.machine_from[machine + 1], 0,
			     &found);
	const struct logged_event *e = event_log_at(&q->instead, later);
	const struct hardware hw = setup_hw_at(q->s, write->off);
	size_t used = say_request(q, write, &found, loss->why, CAUSE_TEXT);
	if (found.log == r)
		cause_say(q, found.event, NULL);
	used += cause_print(loss->why + used, CAUSE_TEXT - used, "%s",
			    before != EVENT_LOG_NONE
				    ? "it was written after its line was last flushed"
			    : found.rule == RULE_NONE ? "no flush covers it"
			    : e && e->kind == TRACED_DRAIN && operation_is(e->code, NONPOSTED)
				    ? "no other request covers it"
				    : "no flush of the CPU covers it");
	say_first(q, machine, e, before != EVENT_LOG_NONE,
		  write->kind == TRACED_LAND && domain_nic_flush_reaches(&hw), loss->why + used,
		  CAUSE_TEXT - used);
}

void cause_why_lost(struct explanation *q, struct loss *loss)
{
	const struct event_log *r = q->r;
	uint64_t line = event_log_at(r, loss->event)->off / LINE * LINE;
	const struct logged_event *flush = NULL;
	loss->flush = EVENT_LOG_NONE;
	for (size_t i = (size_t)loss->event; i < r->machine_from[loss->machine + 1]; i++)
		if (r->event[i].kind == TRACED_FLUSH &&
		    event_log_overlaps(&r->event[i], line, LINE))
			flush = &r->event[i];
	if (flush)
		why_not_fenced(q, loss, flush);
	else
		why_not_flushed(q, loss, line);
}
