/* SPDX-License-Identifier: BSD-3-Clause */
/* The findings of an examination in words: which operations contradict each other, and where. */
#include "checker/live/examination.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "core/rnic/opcode.h"
#include "core/rnic/rnic.h"
#include "core/text/error_name.h"
#include "core/text/text.h"

struct words {
	char text[EXAM_TEXT];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(t->text + t->len, sizeof(t->text) - t->len, fmt, ap);
	va_end(ap);
	t->len += n < 0 ? 0 : (size_t)n;
	if (t->len >= sizeof(t->text))
		t->len = sizeof(t->text) - 1;
}

/* "PUT 3.2.55": of client 3, the 55th of its session 2. */
static void add_put(struct words *t, uint64_t id)
{
	add(t, "PUT %" PRIu64 ".%" PRIu64 ".%" PRIu64, id >> 56, id >> 32 & 0xffffff,
	    id & UINT32_MAX);
}

static void add_answer(struct words *t, enum key_knowledge what, uint64_t id)
{
	if (what == KEY_VALUE) {
		add(t, "the value of ");
		add_put(t, id);
	} else {
		add(t, what == KEY_ABSENT ? "nothing" : "bytes that no PUT of it wrote");
	}
}

/* Seconds since the first operation of the boot. */
static double seconds(const struct examination *w, const struct recording_op *op, uint64_t ns)
{
	uint64_t began = op->invoked_ns;

	for (size_t i = 0; i < w->ops; i++)
		if (w->op[i]->boot == op->boot && w->op[i]->invoked_ns < began)
			began = w->op[i]->invoked_ns;
	return (double)(ns - began) / 1e9;
}

/* Which operation, whose, and when. */
static void add_called(struct words *t, const struct examination *w, const struct recording_op *op)
{
	static const char *const what[] = {"", "GET", "DELETE"};

	if (op->kind == HISTORY_PUT)
		add_put(t, op->value);
	else
		add(t, "%s", what[op->kind]);
	add(t, " (client %u, boot %u, %.6f s", op->client, op->boot,
	    seconds(w, op, op->invoked_ns));
	if (op->returned_ns)
		add(t, " to %.6f s", seconds(w, op, op->returned_ns));
	add(t, ") ");
}

static void add_recorded(struct words *t, const struct examination *w,
			 const struct recording_op *op)
{
	add_called(t, w, op);
	if (recorded_unanswered(op))
		add(t, "was in flight when its connection ended");
	else if (op->error)
		add(t, "failed with %s", error_name(op->error).text);
	else if (op->kind != HISTORY_GET)
		add(t, "was acknowledged");
	else {
		add(t, "returned ");
		add_answer(t,
			   op->found == 1 ? KEY_VALUE
			   : op->found	  ? KEY_FOREIGN
					  : KEY_ABSENT,
			   op->value);
	}
}

static void add_op(struct words *t, const struct examination *w, int op,
		   const struct key_state *shown)
{
	const struct recorded_history *p = w->history;
	const struct history_op *o = &p->h.op[op];

	if (p->source[op]) {
		add_recorded(t, w, p->source[op]);
	} else if ((unsigned)op >= p->ended.ops) {
		add(t, "recovery shows ");
		add_answer(t, shown->state, shown->id);
	} else if (o->kind == HISTORY_PUT) {
		uint64_t id = 0;
		for (unsigned i = 0; i < p->puts; i++)
			if (p->put[i].op == op)
				id = p->put[i].id;
		add(t,
		    op == p->start ? "when boot %u began, it had " : "before boot %u, there was ",
		    w->first);
		add_answer(t, KEY_VALUE, id);
	} else {
		add(t, "when boot %u began, there was nothing", w->first);
	}
}

/* How many updates of the key in the last boot have no known end: the server, or their clients,
 * died first. */
static unsigned unfinished(const struct examination *w)
{
	const struct recorded_history *p = w->history;
	unsigned n = 0;

	for (unsigned i = 0; i < p->ended.ops; i++) {
		const struct recording_op *op = p->source[i];

		n += op && op->boot == w->cut->boot && p->h.op[i].kind != HISTORY_GET &&
		     p->h.op[i].returned < 0;
	}
	return n;
}

void exam_note_break(struct exam_break *b, const struct examination *w, unsigned key,
		     const struct verdict *v, const struct image *image,
		     const struct key_state *shown)
{
	struct words t = {.len = 0};
	char name[LIVE_KEY_LEN + 1];
	unsigned n;

	if (b->keys++)
		return;
	live_key(w->key[key], name);
	add(&t, "%s: ", name);
	if (v->against >= 0)
		add_op(&t, w, v->against, shown);
	if (v->against >= 0 && v->op >= 0)
		add(&t, "; then ");
	if (v->op >= 0)
		add_op(&t, w, v->op, shown);
	n = unfinished(w);
	if (n)
		add(&t, "; %u update%s of the key had not ended", n, plural(n));
	b->subset = image->subset;
	memcpy(b->text, t.text, sizeof(b->text));
}

/* What its NIC said. */
static void add_completion(struct words *t, const struct recording_op *op)
{
	const unsigned posted = operation_number(op->posted);

	if (op->says != SAYS_ALL)
		return;
	if (!op->status) {
		add(t, "; no completion had an error");
		return;
	}
	add(t, "; a completion had status %u, %s", op->status, rnic_wc_status_name(op->status));
	if (op->vendor)
		add(t, " (vendor error 0x%" PRIx32 ")", op->vendor);
	if (posted < OPERATIONS)
		add(t, ", where a %s was posted last", operations[posted].name);
}

void exam_note_error(struct exam_break *b, const struct examination *w,
		     const struct recording_op *op)
{
	struct words t = {.len = 0};
	char name[LIVE_KEY_LEN + 1];

	live_key(op->key, name);
	add(&t, "%s: ", name);
	add_called(&t, w, op);
	add(&t,
	    "failed with %s for no reason that was injected: the server answered; until then no "
	    "call was told to fail, no connection was given up, and the client was not dropped",
	    error_name(op->error).text);
	add_completion(&t, op);
	b->subset = w->image[0].subset;
	memcpy(b->text, t.text, sizeof(b->text));
}

void exam_note_not_judged(struct examination *w, unsigned key)
{
	struct words t = {.len = 0};
	char name[LIVE_KEY_LEN + 1];

	if (w->out->not_judged++)
		return;
	live_key(w->key[key], name);
	add(&t, "%s: ", name);
	if (w->history->trouble == RECORDED_LONG) {
		add(&t, "too many operations for one history");
	} else {
		add_put(&t, w->history->strange);
		add(&t, w->history->trouble == RECORDED_UNKNOWN_PUT
				? ", whose value was read, is in no recording"
				: " was read before it began: the times are of two machines");
	}
	memcpy(w->out->why_not, t.text, sizeof(t.text));
}
