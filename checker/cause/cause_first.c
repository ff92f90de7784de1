/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where to look first. The facts name many places, in the order in which things happened. Those
 * that may be at fault are suspects, and the sentence begins with the likeliest three, in the order
 * of enum suspicion: code that did the harm; code that goes on asking, or refused what it found;
 * code that made both ends of the window in which the run breaks; code that should have noticed;
 * code that is come to only in the run that breaks.
 *
 * Where functions have called each other, the innermost one that is called from a single place
 * counts, unless the rank says more: one that is called from several is a helper, and does what its
 * callers want. That a function is short, or is called from several places of the source, has been
 * tried as well, and says nothing of where a bug is.
 */
#include "checker/cause/explain.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST 3 /* so many are told */

struct spot cause_spot(const struct event_log *r, const struct logged_event *e)
{
	const struct logged_event *by = e->stack ? e : cause_posted(r, e);
	return (struct spot){&r->callers, by->stack, by->pc};
}

static unsigned frames_of(const struct explanation *q, struct spot spot,
			  uintptr_t frame[CALLERS_DEEP])
{
	return callers_in_store(spot.callers, spot.stack, spot.pc, q->where, frame, CALLERS_DEEP);
}

uintptr_t cause_caller(const struct explanation *q, struct spot spot, unsigned n)
{
	uintptr_t frame[CALLERS_DEEP];
	return n < frames_of(q, spot, frame) ? frame[n] : 0;
}

/* Is the function called from several places, in the trace's run or in that without its failure? */
static bool is_helper(const struct explanation *q, struct spot spot, uintptr_t pc)
{
	return callers_are_many(spot.callers, q->where, pc) ||
	       callers_are_many(&q->r->callers, q->where, pc) ||
	       callers_are_many(&q->instead.callers, q->where, pc);
}

uintptr_t cause_maker(const struct explanation *q, struct spot spot)
{
	uintptr_t frame[CALLERS_DEEP];
	const unsigned n = frames_of(q, spot, frame);
	for (unsigned i = 0; i < n; i++)
		if (!is_helper(q, spot, frame[i]))
			return frame[i];
	return n ? frame[0] : 0;
}

uintptr_t cause_joint(const struct explanation *q, struct spot a, struct spot b)
{
	uintptr_t of_a[CALLERS_DEEP], of_b[CALLERS_DEEP];
	const unsigned n = frames_of(q, a, of_a), m = frames_of(q, b, of_b);
	unsigned same = 0;
	while (same < n && same < m && of_a[n - 1 - same] == of_b[m - 1 - same])
		same++;
	const bool within = same < n && same < m &&
			    where_begin(q->where, of_a[n - 1 - same]) ==
				    where_begin(q->where, of_b[m - 1 - same]);
	const unsigned depth = same + within; /* functions that are the same */
	/* A task's loop makes everything. */
	if (!depth || (depth == 1 && (n > 1 || m > 1)))
		return 0;
	return of_a[n - depth];
}

void cause_suspect(struct explanation *q, enum suspicion rank, uintptr_t pc, const char *fmt, ...)
{
	va_list ap;
	struct suspect *s = &q->suspect[q->suspects];
	if (!pc || q->suspects == SUSPECTS)
		return;
	*s = (struct suspect){.rank = rank, .pc = pc};
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	q->suspects++;
}

/* The likeliest suspect of another function than those that are told; NULL: there is none. */
static const struct suspect *next_suspect(const struct explanation *q,
					  const struct suspect *const *told, unsigned n)
{
	const struct suspect *best = NULL;
	for (unsigned i = 0; i < q->suspects; i++) {
		const struct suspect *s = &q->suspect[i];
		bool known = best && best->rank <= s->rank;
		for (unsigned k = 0; k < n; k++)
			known |= !strcmp(where_function(q->where, told[k]->pc),
					 where_function(q->where, s->pc));
		best = known ? best : s;
	}
	return best;
}

void cause_say_first(struct explanation *q)
{
	char sentence[sizeof(q->c->sentence)], line[160];
	const struct suspect *told[FIRST];
	size_t used = 0;
	unsigned n = 0;
	for (; n < FIRST && (told[n] = next_suspect(q, told, n)); n++) {
		where_print(q->where, told[n]->pc, line, sizeof(line));
		if (!line[0])
			break;
		used += cause_print(sentence + used, sizeof(sentence) - used,
				    "%s %s() at %s, where %s", n ? "; then at" : "Look first at",
				    where_function(q->where, told[n]->pc), line, told[n]->why);
	}
	if (!n)
		return;
	q->c->first = told[0]->pc;
	cause_print(sentence + used, sizeof(sentence) - used, ". %s", q->c->sentence);
	memcpy(q->c->sentence, sentence, sizeof(sentence));
}
