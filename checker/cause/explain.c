/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words for a cause: places, operations, what made an event, and in which line of the source.
 * And whether a write was read by the operations of the verdict.
 */
#include "checker/cause/explain.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/rnic/opcode.h"

size_t cause_print(char *buf, size_t n, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(buf, n, fmt, ap);
	va_end(ap);
	return len < 0 ? 0 : (size_t)len < n ? (size_t)len : n - 1;
}

void cause_say(struct explanation *q, int event, const char *fmt, ...)
{
	struct cause *c = q->c;
	va_list ap;
	if (event >= 0 && c->events < CAUSE_FACTS)
		c->event[c->events++] = event;
	if (!fmt || c->facts == CAUSE_FACTS)
		return;
	va_start(ap, fmt);
	vsnprintf(c->fact[c->facts], CAUSE_TEXT, fmt, ap);
	va_end(ap);
	for (unsigned i = 0; i < c->facts; i++)
		if (!strcmp(c->fact[i], c->fact[c->facts]))
			return;
	c->facts++;
}

void cause_place(const struct explanation *q, uint64_t off, uint64_t len, char *buf, size_t n)
{
	pmem_name_range(q->s->region, q->s->regions, off, len, buf, n);
}

void cause_op(const struct explanation *q, struct op_label op, unsigned machine, char *buf,
	      size_t n)
{
	static const char *const words[OP_KINDS] = {"",	       "PUT",	     "GET",
						    "DELETE",  "connecting", "request to clean",
						    "leaving", "death",	     "pause"};
	const struct workload *w = &q->s->w;
	const char *key = "", *word = op.kind == OP_CALL ? "operation" : words[op.kind];
	char nth_of[16] = "";
	unsigned nth = 0, all = 0;
	if (!op.kind || !op.client) {
		cause_print(buf, n, machine ? "recovery" : "the server itself");
		return;
	}
	if (op.client > w->clients + 1) { /* one that lives on beside the reader */
		cause_print(buf, n, "client %u's %s", op.client, word);
		return;
	}
	if (op.client > w->clients) {
		if (op.kind == OP_GET && op.nth >= 1 && op.nth <= w->keys)
			key = w->key[op.nth - 1].name;
		cause_print(buf, n, "the reader's %s%s%s", word, *key ? " " : "", key);
		return;
	}
	const struct workload_op *ops = w->client[op.client - 1].op, *o = NULL;
	for (unsigned i = 0; i < w->client[op.client - 1].ops && !o; i++)
		o = ops[i].kind == op.kind && ops[i].nth == op.nth ? &ops[i] : NULL;
	for (unsigned i = 0; i < w->client[op.client - 1].ops && o; i++) {
		bool same = ops[i].kind == o->kind && ops[i].call == o->call &&
			    (!workload_op_keys(w, o) || ops[i].key == o->key);
		all += same;
		nth += same && &ops[i] <= o;
	}
	if (o) {
		key = workload_op_keys(w, o) ? w->key[o->key].name : "";
		word = o->kind == OP_CALL ? w->calls[o->call].name : word;
	}
	static const char *const tails[] = {"th", "st", "nd", "rd"};
	if (all > 1)
		cause_print(nth_of, sizeof(nth_of), "%u%s ", nth,
			    tails[nth % 10 < 4 && nth / 10 % 10 != 1 ? nth % 10 : 0]);
	cause_print(buf, n, "client %u's %s%s%s%s", op.client, nth_of, word, *key ? " " : "", key);
}

void cause_later(uint64_t ns, char *buf, size_t n)
{
	if (ns)
		cause_print(buf, n, "%.3f us later", cause_us(ns));
	else
		cause_print(buf, n, "at the same moment");
}

bool cause_is_recovery(const struct explanation *q, const struct logged_event *e)
{
	const char *actor = event_log_actor(q->r, e);
	return e->machine && !e->fsck && !e->op.kind && !strncmp(actor, "server", 6) &&
	       !strchr(actor, '/');
}

void cause_agent(const struct explanation *q, const struct logged_event *e, char *buf, size_t n)
{
	if (e->fsck)
		cause_print(buf, n, "the structural check");
	else
		cause_op(q, e->op, cause_is_recovery(q, e), buf, n);
}

void cause_source(const struct explanation *q, uintptr_t pc, char *buf, size_t n)
{
	char line[160];
	where_print(q->where, pc, line, sizeof(line));
	cause_print(buf, n, line[0] ? " (%s)" : "%s", line);
}

const char *cause_request(const struct logged_event *e)
{
	static const char *const words[CLASS_COUNT] = {
		[CLASS_SEND] = "SEND",
		[CLASS_WRITE] = "RDMA write",
		[CLASS_READ] = "RDMA READ",
		[CLASS_FLUSH] = "RDMA FLUSH",
		[CLASS_COMMIT] = "RDMA Commit",
		[CLASS_COMMIT_PAYLOAD] = "RDMA Commit",
		[CLASS_ATOMIC_WRITE] = "ATOMIC WRITE",
	};
	assert(e->code < OPERATIONS);
	if (operations[e->code].class == CLASS_ATOMIC)
		return operations[e->code].with & WITH_COMPARE ? "compare-and-swap"
							       : "fetch-and-add";
	const char *word = words[operations[e->code].class];
	assert(word);
	return word;
}

static bool is_of_nic(const struct logged_event *e)
{
	return e->kind == TRACED_LAND || e->kind == TRACED_FETCH || e->kind == TRACED_EFFECT ||
	       e->kind == TRACED_DRAIN;
}

void cause_doer(const struct explanation *q, const struct event_log *r,
		const struct logged_event *e, char *buf, size_t n)
{
	char op[80], line[170];
	cause_op(q, e->op, e->machine, op, sizeof(op));
	cause_source(q, e->pc, line, sizeof(line));
	if (is_of_nic(e))
		cause_print(buf, n, "the %s of %s", cause_request(e), op);
	else
		cause_print(buf, n, "%s%s%s%s", event_log_actor(r, e), e->op.kind ? " for " : "",
			    e->op.kind ? op : "", line);
}

void cause_writing(const struct explanation *q, const struct event_log *r,
		   const struct logged_event *e, char *buf, size_t n)
{
	char op[80], line[170];
	cause_op(q, e->op, e->machine, op, sizeof(op));
	cause_source(q, e->pc, line, sizeof(line));
	if (e->kind == TRACED_LAND)
		cause_print(buf, n, "what %s wrote by %s", op,
			    operations[e->code].class == CLASS_WRITE ? "RDMA" : cause_request(e));
	else
		cause_print(buf, n, "what %s wrote%s%s%s", event_log_actor(r, e),
			    e->op.kind ? " for " : "", e->op.kind ? op : "", line);
}

bool cause_looked_at(const struct explanation *q, const struct logged_event *e)
{
	uint64_t line = e->off / LINE * LINE;
	for (size_t i = 0; i < q->r->events; i++) {
		const struct logged_event *x = &q->r->event[i];
		if (!event_log_reads(x) && x->kind != TRACED_SURVIVED)
			continue;
		if ((x->machine > e->machine ||
		     event_log_is_of(x, q->against, q->against_machine)) &&
		    event_log_overlaps(x, line, LINE))
			return true;
	}
	return false;
}

bool cause_read_in_the_end(const struct explanation *q, const struct logged_event *e)
{
	for (size_t i = 0; i < q->r->events; i++)
		if (event_log_reads(&q->r->event[i]) &&
		    event_log_is_of(&q->r->event[i], q->op, q->machine) &&
		    event_log_overlaps(&q->r->event[i], e->off, e->len))
			return true;
	return false;
}
