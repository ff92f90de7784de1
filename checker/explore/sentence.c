/* SPDX-License-Identifier: BSD-3-Clause */
/* See sentence.h. */
#include "checker/explore/sentence.h"
#include <stdio.h>
#include <string.h>
#include "checker/judge/transactions.h"
#include "checker/world/world.h"
#include "core/text/error_name.h"

/* When the reader did something: of the first machine, which has not recovered, at its end. */
static const char *when(const struct history_op *o)
{
	static const char *const after[] = {"the run", "recovery", "the second failure",
					    "the third failure"};
	_Static_assert(sizeof(after) / sizeof(after[0]) == WORLDS, "each machine has a word");
	return after[o->epoch];
}

/* "enqueue", "swap k1 k2", or "GET k1". */
static void name_call(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	static const char *const words[] = {"PUT", "GET", "DELETE"};
	if (h->op[op].kind != HISTORY_CALL) {
		snprintf(buf, n, "%s %s", words[h->op[op].kind], s->w.key[h->op[op].key].name);
		return;
	}
	const struct history_detail *d = &h->detail[op];
	const struct tm_call_type *t = &s->store->calls[d->call];
	int len = snprintf(buf, n, "%s", t->name);
	for (unsigned k = 0; k < t->keys && (size_t)len < n; k++)
		len += snprintf(buf + len, n - (size_t)len, " %s", s->w.key[d->key[k]].name);
}

static void update_seen(const struct setup *s, const struct history_op *o, const char *key,
			char *buf, size_t n)
{
	char after[32] = "";
	if (o->client > s->w.clients)
		snprintf(after, sizeof(after), " after %s", when(o));
	if (!o->client)
		snprintf(buf, n, "the load phase put %s", key);
	else
		snprintf(buf, n, "client %u's %s %s%s was %s", o->client,
			 o->kind == HISTORY_PUT ? "PUT" : "DELETE", key, after,
			 o->returned < 0 ? "in flight"
			 : o->aborted	 ? "aborted"
			 : o->error	 ? "reported as failed"
					 : "acknowledged");
}

static void name_client(const struct setup *s, const struct history_op *o, char *who, size_t n)
{
	if (o->client > s->w.clients)
		snprintf(who, n, "a reader after %s", when(o));
	else
		snprintf(who, n, "client %u", o->client);
}

static void failed(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct history_op *o = &h->op[op];
	char who[48], what[80];

	name_client(s, o, who, sizeof(who));
	name_call(s, h, op, what, sizeof(what));
	if (o->returned < 0)
		snprintf(buf, n, "%s called %s, which never returned", who, what);
	else
		snprintf(buf, n, "%s's %s failed with %s for no reason that was injected", who,
			 what, error_name(o->error).text);
}

static void call_seen(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct history_op *o = &h->op[op];
	char who[48], call[80], name[24], answer[100] = "";
	name_client(s, o, who, sizeof(who));
	name_call(s, h, op, call, sizeof(call));
	world_op_name(s, h, op, name, sizeof(name));
	if (o->returned >= 0 && h->detail[op].answered)
		history_show_answer(h, op, answer, sizeof(answer));
	else if (o->returned >= 0)
		snprintf(answer, sizeof(answer), "%s",
			 o->kind == HISTORY_DEL && !o->error ? "that it was there" : "not found");
	snprintf(buf, n, "%s's %s (%s) %s%s; no order of the operations explains that", who, call,
		 name, answer[0] ? "answered " : "was in flight", answer);
}

void sentence_op(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct history_op *o = &h->op[op];
	char who[48], value[64] = "";
	if (o->unexplained) {
		failed(s, h, op, buf, n);
		return;
	}
	if (s->own) {
		call_seen(s, h, op, buf, n);
		return;
	}
	const char *key = s->w.key[o->key].name;
	if (o->kind != HISTORY_GET) {
		update_seen(s, o, key, buf, n);
		return;
	}
	name_client(s, o, who, sizeof(who));
	if (o->value >= 0) {
		world_op_name(s, h, o->value, value, sizeof(value));
		snprintf(buf, n, "%s read %s", who, value);
	} else {
		snprintf(buf, n, "%s found %s at %s", who,
			 o->value == VALUE_ABSENT ? "nothing" : "foreign bytes", key);
	}
}

void sentence_print(const struct setup *s, const struct history *h, const struct verdict *v,
		    char *buf, size_t n)
{
	char op[220] = "", against[140] = "";
	if (v->against >= 0)
		sentence_op(s, h, v->against, against, sizeof(against));
	if (v->op >= 0)
		sentence_op(s, h, v->op, op, sizeof(op));
	snprintf(buf, n, "%s%s%s", against, against[0] && op[0] ? "; then " : "", op);
}

void sentence_fence(const struct setup *s, const struct history *h, const struct verdict *v,
		    char *buf, size_t n)
{
	char who[48], what[80], op[220];
	name_client(s, &h->op[v->against], who, sizeof(who));
	name_call(s, h, v->against, what, sizeof(what));
	sentence_op(s, h, v->op, op, sizeof(op));
	snprintf(buf, n,
		 "%s's %s reached only a server that was left out of the configuration; then %s",
		 who, what, op);
}

/* "client 1's transaction 2", or of a single operation "c1.put2"; a reader by its time. */
static void name_transaction(const struct setup *s, const struct history *h, int first, char *buf,
			     size_t n)
{
	const struct history_op *o = &h->op[first];
	char who[48];
	unsigned nth = 0;
	if (transaction_size(h, first) == 1) {
		if (o->client > s->w.clients)
			name_client(s, o, buf, n);
		else
			world_op_name(s, h, first, buf, n);
		return;
	}
	for (int i = 0; i <= first; i++)
		nth += h->op[i].client == o->client && h->op[i].epoch == o->epoch &&
		       !h->op[i].joined && transaction_size(h, i) > 1;
	name_client(s, o, who, sizeof(who));
	snprintf(buf, n, "%s's transaction %u", who, nth);
}

/* "load k1", "c1.put2", "no k1". */
static void name_read(const struct setup *s, const struct history *h, int get, char *buf, size_t n)
{
	const struct history_op *o = &h->op[get];
	if (o->value >= 0)
		world_op_name(s, h, o->value, buf, n);
	else
		snprintf(buf, n, "no %s", s->w.key[o->key].name);
}

static void say_step(const struct setup *s, const struct history *h,
		     const struct transaction_step *e, int next, char *buf, size_t n)
{
	char from[64], to[64], value[64] = "";
	int len;
	name_transaction(s, h, e->first, from, sizeof(from));
	name_transaction(s, h, next, to, sizeof(to));
	if (e->get >= 0)
		name_read(s, h, e->get, value, sizeof(value));
	switch ((enum transaction_edge)e->edge) {
	case EDGE_READ:
		snprintf(buf, n, "%s read %s", to, value);
		break;
	case EDGE_OVERWRITTEN:
		len = snprintf(buf, n, "%s read %s, which %s overwrote", from, value,
			       e->first == next ? "it" : to);
		if (e->because < 0 || (size_t)len >= n)
			break;
		name_transaction(s, h, transaction_first(h, e->because), from, sizeof(from));
		name_read(s, h, e->because, value, sizeof(value));
		snprintf(buf + len, n - (size_t)len, " (%s read %s, which %s overwrote, too)", from,
			 value, to);
		break;
	case EDGE_WRITTEN:
		snprintf(buf, n, "%s put %s before %s", from, s->w.key[h->op[e->get].key].name, to);
		break;
	case EDGE_TIME:
		snprintf(buf, n, "%s had ended when %s began", from, to);
		break;
	case EDGE_ABORTED:
		snprintf(buf, n, "%s read %s of %s, which was aborted", to, value, from);
	}
}

void sentence_cycle(const struct setup *s, const struct history *h, enum tm_contract contract,
		    char *buf, size_t n)
{
	struct transaction_cycle c;
	struct verdict v;
	size_t at = 0;
	if (contract == TM_ATOM)
		transactions_atom(h, &v, &c);
	else
		transactions_sser(h, &v, &c);
	for (unsigned i = 0; i < c.steps && at < n; i++) {
		char step[220];
		int next = c.step[(i + 1) % c.steps].first;
		if (c.step[i].edge == EDGE_ABORTED)
			next = transaction_first(h, c.step[i].get);
		say_step(s, h, &c.step[i], next, step, sizeof(step));
		at += (size_t)snprintf(buf + at, n - at, "%s%s", i ? "; " : "", step);
	}
	if (at < n)
		snprintf(buf + at, n - at, "%s", c.tried ? ", and so in each other order" : "");
}
