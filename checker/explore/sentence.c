/* SPDX-License-Identifier: BSD-3-Clause */
/* See sentence.h. */
#include "checker/explore/sentence.h"
#include <stdio.h>
#include <string.h>
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
