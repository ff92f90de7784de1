/* SPDX-License-Identifier: BSD-3-Clause */
/* See event_fold.h. */
#include "report/trace/event_fold.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/pmem/crash.h"
#include "core/text/text.h"

#define LENGTH_MOST 64 /* items of a round */
#define ROUNDS	    3  /* fewer are told one by one */
#define SAVED	    4  /* likewise, if folding saves fewer items */

bool event_is_cause(const struct event_trace *st, size_t event)
{
	for (unsigned i = 0; i < st->cause.events; i++)
		if (st->cause.event[i] == (int)event)
			return true;
	return false;
}

/* --- items --- */

static bool same_line(const struct event_trace *st, uintptr_t a, uintptr_t b)
{
	char x[160], y[160];
	if (a == b)
		return true;
	where_print(st->where, a, x, sizeof(x));
	where_print(st->where, b, y, sizeof(y));
	return *x && !strcmp(x, y);
}

/* Is `e` of the copy, the message or the source line that `a` is of? */
static bool same_copy(const struct event_trace *st, const struct logged_event *a,
		      const struct logged_event *e)
{
	if (a->kind != e->kind || a->actor != e->actor || a->occurrence != e->occurrence ||
	    !op_label_equal(a->op, e->op) || a->message != e->message || !a->len)
		return false;
	if (a->kind == TRACED_STORE || a->kind == TRACED_FLUSH)
		return same_line(st, a->pc, e->pc);
	return (a->kind == TRACED_LAND || a->kind == TRACED_FETCH || a->kind == TRACED_DRAIN) &&
	       a->message;
}

/* Do the pieces of a message follow each other? Stores of a source line may be anywhere. */
static bool continues(const struct logged_event *last, const struct logged_event *e)
{
	return e->kind == TRACED_STORE || e->kind == TRACED_FLUSH || e->kind == TRACED_DRAIN ||
	       e->off == last->off + last->len;
}

static void mix(uint64_t *sum, uint64_t a)
{
	struct run_state mixed = {.hash = *sum};
	run_mix(&mixed, a, 1);
	*sum = mixed.hash;
}

/* What two events have in common that differ in their time and in what counts on: the numbers of
 * messages and packets. */
static void mix_event(const struct event_trace *st, const struct logged_event *e, uint64_t *sum)
{
	static const char *const counters[] = {"message ", "PSN "};
	mix(sum, (uint64_t)e->kind << 32 | (uint64_t)(uint16_t)e->actor << 8 | e->code);
	mix(sum, (uint64_t)e->op.client << 32 | (uint64_t)e->op.nth << 8 | e->op.kind);
	mix(sum, e->off);
	mix(sum, e->len);
	mix(sum, e->pc);
	for (const char *at = event_log_text(&st->record, e); *at; at++) {
		for (unsigned i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
			if (!strncmp(at, counters[i], strlen(counters[i])))
				for (at += strlen(counters[i]); isdigit((unsigned char)*at);)
					at++;
		mix(sum, (uint64_t)*at);
		if (!*at)
			return;
	}
}

static size_t next_told(size_t i, size_t end, event_told *told, const void *arg)
{
	do
		i++;
	while (i < end && !told(arg, i));
	return i;
}

/* The item that begins with event `i`; the first event after it. */
static size_t make_item(const struct event_trace *st, size_t i, size_t end, event_told *told,
			const void *arg, struct event_item *item)
{
	const struct logged_event *first = &st->record.event[i];
	const bool alone = st->all || event_is_cause(st, i);
	*item = (struct event_item){.first = i, .last = i, .pieces = 1, .length = 1, .rounds = 1};
	item->sign = alone ? i : 0;
	mix_event(st, first, &item->sign);
	for (i = next_told(i, end, told, arg); i < end && !alone;
	     i = next_told(i, end, told, arg)) {
		const struct logged_event *e = &st->record.event[i];
		if (event_is_cause(st, i) || !same_copy(st, first, e) ||
		    !continues(&st->record.event[item->last], e))
			break;
		item->last = i;
		item->pieces++;
		mix_event(st, e, &item->sign);
	}
	return i;
}

/* --- lines in flight --- */

bool event_versions_alike(const struct event_trace *st, const struct logged_line *a, unsigned v,
			  const struct logged_line *b, unsigned w)
{
	const struct event_log *r = &st->record;
	const struct logged_version *x = &r->version[a->first_version + v - 1],
				    *y = &r->version[b->first_version + w - 1];
	return x->event != EVENT_LOG_NONE && y->event != EVENT_LOG_NONE &&
	       same_copy(st, &r->event[x->event], &r->event[y->event]);
}

unsigned event_lines_alike(const struct event_trace *st, unsigned i)
{
	const struct event_log *r = &st->record;
	const struct logged_line *first = &r->line[i];
	unsigned n = 1;
	for (; i + n < r->lines && !st->all; n++) {
		const struct logged_line *l = &r->line[i + n];
		bool alike = l->machine == first->machine && l->line == first->line + n &&
			     l->answer == first->answer && l->versions == first->versions &&
			     (l->touched < 0) == (first->touched < 0);
		for (unsigned v = 1; v <= l->versions && alike; v++)
			alike = event_versions_alike(st, first, v, l, v);
		if (!alike)
			break;
	}
	return n;
}

/* --- rounds --- */

static unsigned count_rounds(const struct event_item *item, size_t items, unsigned length)
{
	size_t k = length;
	while (k < items && item[k].sign == item[k % length].sign)
		k++;
	return (unsigned)(k / length);
}

/* The length that saves the most items. */
static void find_rounds(struct event_item *item, size_t items)
{
	size_t most = SAVED - 1;
	for (unsigned length = 1; length <= LENGTH_MOST && 2 * length <= items; length++) {
		unsigned rounds = count_rounds(item, items, length);
		size_t saved = (size_t)(rounds - 1) * length;
		if (rounds < ROUNDS || saved <= most)
			continue;
		most = saved;
		item->length = length;
		item->rounds = rounds;
	}
}

ptrdiff_t event_fold(const struct event_trace *st, unsigned m, event_told *told, const void *arg,
		     struct event_item **out)
{
	const size_t end = st->record.machine_from[m + 1];
	size_t i = st->record.machine_from[m], items = 0;
	struct event_item *item = *out = calloc(end - i + 1, sizeof(*item));
	if (!item)
		return -ENOMEM;
	if (i < end && !told(arg, i))
		i = next_told(i, end, told, arg);
	while (i < end)
		i = make_item(st, i, end, told, arg, &item[items++]);
	for (size_t k = 0; k < items && !st->all; k += (size_t)item[k].length * item[k].rounds)
		find_rounds(&item[k], items - k);
	return (ptrdiff_t)items;
}

/* --- words --- */

/* The bytes that the pieces span. True: there are no others between them. */
static bool span(const struct event_trace *st, const struct event_item *item, uint64_t *off,
		 uint64_t *len, uint64_t *bytes)
{
	const struct logged_event *first = &st->record.event[item->first];
	uint64_t to = first->off + first->len;
	bool whole = true;
	*off = first->off;
	*bytes = 0;
	for (size_t i = item->first; i <= item->last; i++) {
		const struct logged_event *e = &st->record.event[i];
		if (e->kind != first->kind || e->actor != first->actor)
			continue;
		whole &= i == item->first || e->off == to;
		to = i == item->first || e->off + e->len > to ? e->off + e->len : to;
		*off = e->off < *off ? e->off : *off;
		*bytes += e->len;
	}
	*len = to - *off;
	return whole;
}

/* What all pieces say at their end from this sign on, such as ": 0000000000000000"; or "". */
static const char *common_end(const struct event_trace *st, const struct event_item *item,
			      const char *sign)
{
	const struct event_log *r = &st->record;
	const struct logged_event *first = &r->event[item->first];
	const char *end = strstr(event_log_text(r, first), sign);
	for (size_t i = item->first; i <= item->last && end; i++) {
		const char *text = event_log_text(r, &r->event[i]), *other = strstr(text, sign);
		if (r->event[i].kind == first->kind && (!other || strcmp(other, end) != 0))
			return "";
	}
	return end ? end : "";
}

void event_item_words(const struct event_trace *st, const struct event_item *item, char *buf,
		      size_t n)
{
	static const char *const verbs[TRACED_KINDS] = {[TRACED_STORE] = "stores ",
							[TRACED_FLUSH] = "flushes ",
							[TRACED_FETCH] = "reads ",
							[TRACED_DRAIN] = "drains to PM "};
	const struct setup *s = &st->trace->setup;
	const struct logged_event *e = &st->record.event[item->first];
	const char *text = event_log_text(&st->record, e), *end = "";
	uint64_t off, len, bytes;
	char place[80];
	bool whole = span(st, item, &off, &len, &bytes);
	int message = !strncmp(text, "message ", 8) ? (int)strcspn(text + 8, " ") + 8 : 0;
	pmem_name_range(s->region, s->regions, off, len, place, sizeof(place));
	if (e->kind == TRACED_STORE)
		end = common_end(st, item, ": ");
	else if (e->kind == TRACED_LAND)
		end = common_end(st, item, ", ");
	if (*end)
		end += 2;
	snprintf(buf, n, "%.*s%s%s%" PRIu64 " byte%s %s%s %s%s%s, in %u pieces", message, text,
		 message ? ": " : "", verbs[e->kind] ? verbs[e->kind] : "", bytes, plural(bytes),
		 e->kind == TRACED_LAND ? "land " : "", whole ? "at" : "within", place,
		 e->kind == TRACED_STORE && *end ? ", each "
		 : *end				 ? ", "
						 : "",
		 end, item->pieces);
}

void event_rounds_words(const struct event_log *r, const struct event_item *item, char *buf,
			size_t n)
{
	const struct event_item *last = item + (size_t)item->length * item->rounds - 1;
	const unsigned more = item->rounds - 1;
	char above[32] = "the line above";
	if (item->length > 1)
		snprintf(above, sizeof(above), "the %u lines above", item->length);
	snprintf(buf, n, "%s again, %u more time%s, until %.3f us", above, more, plural(more),
		 (double)r->event[last->last].at / 1000.0);
}
