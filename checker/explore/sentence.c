/* SPDX-License-Identifier: BSD-3-Clause */
/* See sentence.h. */
#include "checker/explore/sentence.h"
#include <stdio.h>
#include "checker/explore/world.h"

static void update_seen(const struct history_op *o, const char *key, char *buf, size_t n)
{
	if (!o->client)
		snprintf(buf, n, "the load phase put %s", key);
	else
		snprintf(buf, n, "client %u's %s %s was %s", o->client,
			 o->kind == HISTORY_PUT ? "PUT" : "DELETE", key,
			 o->returned < 0 ? "in flight"
			 : o->error	 ? "reported as failed"
					 : "acknowledged");
}

void sentence_op(const struct setup *s, const struct history *h, int op, char *buf, size_t n)
{
	const struct history_op *o = &h->op[op];
	const char *key = s->w.key[o->key].name;
	char who[48], value[64] = "";
	if (o->kind != HISTORY_GET) {
		update_seen(o, key, buf, n);
		return;
	}
	if (o->client > s->w.clients)
		snprintf(who, sizeof(who), "a reader after %s",
			 o->epoch > 1 ? "the second failure" : "recovery");
	else
		snprintf(who, sizeof(who), "client %u", o->client);
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
	char op[140] = "", against[140] = "";
	if (v->against >= 0)
		sentence_op(s, h, v->against, against, sizeof(against));
	if (v->op >= 0)
		sentence_op(s, h, v->op, op, sizeof(op));
	snprintf(buf, n, "%s%s%s", against, against[0] && op[0] ? "; then " : "", op);
}
