/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which step broke it, in words: the stretch of the run that the probes found (cause_probe.c), the
 * last look from which an answer was made, what recovery made of PM, whose bytes those were; each
 * with the functions of the store that did it.
 */
#include "checker/cause/explain.h"
#include <assert.h>
#include <string.h>
#include "checker/judge/names.h"

#define FRAMES	    3
#define FRAMES_TEXT 420
#define STEP_TEXT   620
#define LOOKS	    (1u << TRACED_LOAD | 1u << TRACED_FETCH)

void cause_frames(const struct explanation *q, const struct event_log *r,
		  const struct logged_event *e, const char *before, char *buf, size_t n)
{
	const struct logged_event *by = e->stack ? e : cause_posted(r, e);
	cause_frames_of(q, &r->callers, by->stack, by->pc, before, buf, n);
}

void cause_frames_of(const struct explanation *q, const struct callers *callers, uint32_t stack,
		     uintptr_t pc, const char *before, char *buf, size_t n)
{
	uintptr_t frame[FRAMES];
	char line[160];
	unsigned frames = callers_in_store(callers, stack, pc, q->where, frame, FRAMES);
	size_t used = 0;
	buf[0] = '\0';
	for (unsigned i = 0; i < frames; i++) {
		where_print(q->where, frame[i], line, sizeof(line));
		if (!line[0])
			return;
		used += cause_print(buf + used, n - used, "%s%s() at %s",
				    i > 1 ? " and "
				    : i	  ? ", called by "
					  : before,
				    where_function(q->where, frame[i]), line);
	}
}

const struct logged_event *cause_posted(const struct event_log *r, const struct logged_event *e)
{
	for (size_t i = 0; i < r->events && e->message; i++)
		if (r->event[i].kind == TRACED_POST && r->event[i].message == e->message &&
		    r->event[i].machine == e->machine)
			return &r->event[i];
	return e;
}

/* "server/server for client 1's PUT k1 writes table+0x18..0x1f, in publish() at core/..." */
static void step_words(const struct explanation *q, const struct event_log *r, int i, char *buf,
		       size_t n)
{
	const struct logged_event *e = event_log_at(r, i);
	char op[120], place[80], frames[FRAMES_TEXT];
	cause_op(q, e->op, e->machine, op, sizeof(op));
	if (!event_log_writes(e)) {
		cause_print(buf, n, "%s %s", op, e->kind == TRACED_CALL ? "begins" : "returns");
		return;
	}
	cause_place(q, e->off, e->len, place, sizeof(place));
	cause_frames(q, r, e, e->kind == TRACED_LAND ? ", posted in " : ", in ", frames,
		     sizeof(frames));
	if (e->kind == TRACED_LAND)
		cause_print(buf, n, "the %s of %s writes %s%s", cause_request(e), op, place,
			    frames);
	else
		cause_print(buf, n, "%s%s%s writes %s%s", event_log_actor(r, e),
			    e->op.kind ? " for " : "", e->op.kind ? op : "", place, frames);
}

static void suspect_window(struct explanation *q, const struct logged_event *first,
			   const struct logged_event *last)
{
	char before[80], after[80];
	if (!first || !last || !event_log_writes(first) || !event_log_writes(last))
		return;
	cause_place(q, first->off, first->len, before, sizeof(before));
	cause_place(q, last->off, last->len, after, sizeof(after));
	cause_suspect(q, SUSPECT_JOINT,
		      cause_joint(q, cause_spot(&q->instead, first), cause_spot(&q->instead, last)),
		      "%s is written, and only then %s", before, after);
}

void cause_say_window(struct explanation *q)
{
	const struct window *w = &q->window;
	char first[STEP_TEXT] = "", last[STEP_TEXT] = "";
	if (!w->known || (w->crash && !w->wrong))
		return;
	if (!w->wrong) {
		cause_say(q, EVENT_LOG_NONE,
			  "window: started anew when the operation returned, the store answers "
			  "otherwise");
		return;
	}
	if (w->first >= 0)
		step_words(q, &q->instead, w->first, first, sizeof(first));
	if (w->last >= 0)
		step_words(q, &q->instead, w->last, last, sizeof(last));
	const char *when = w->crash ? "wherever the power fails"
				    : "whenever the store is started anew";
	if (w->never) {
		cause_say(q, EVENT_LOG_NONE,
			  "window: there is no step of the run until then after which the store, "
			  "started anew, answers with the value that was expected");
		return;
	}
	suspect_window(q, event_log_at(&q->instead, w->first), event_log_at(&q->instead, w->last));
	if (w->first < 0 && w->last < 0) {
		cause_say(q, EVENT_LOG_NONE, "window: it is wrong %s: no step of this run makes it",
			  when);
		return;
	}
	cause_say(q, w->same, "window: it is wrong %s %s%s", when, w->first < 0 ? "" : "after ",
		  w->first < 0 ? "from the beginning on" : first);
	if (w->last >= 0)
		cause_say(q, EVENT_LOG_NONE, "window: it is so until %s", last);
}

/* Nothing else explains it, and the window has a first step. */
void cause_explain_window(struct explanation *q)
{
	char first[STEP_TEXT];
	if (q->c->kind != CAUSE_NONE || !q->window.wrong || q->window.first < 0 ||
	    (CONTRACTS_BY_RUNNING & TM_BIT(q->contract) && q->contract != TM_FSCK))
		return;
	step_words(q, &q->instead, q->window.first, first, sizeof(first));
	q->c->kind = CAUSE_STEP;
	cause_print(q->c->sentence, sizeof(q->c->sentence),
		    "%s%s%s, and a store that is started anew after that answers wrongly; so %s.",
		    q->seen_against, q->seen_against[0] ? ", but then " : "", first, q->seen);
}

/* --- who answered, and from what --- */

static bool is_of_client(const struct event_log *r, const struct logged_event *e)
{
	return event_log_actor(r, e)[0] == 'c';
}

static uintptr_t function_of(const struct explanation *q, const struct logged_event *e)
{
	uintptr_t pc = 0;
	const struct logged_event *by = e->stack ? e : cause_posted(q->r, e);
	callers_in_store(&q->r->callers, by->stack, by->pc, q->where, &pc, 1);
	return pc;
}

/* What the operation did last before it returned, and before event `to`, on its client's task or on
 * a server's for it: a look at PM, or a check, that is not of this function. EVENT_LOG_NONE: none.
 */
static int find_last(const struct explanation *q, struct op_label op, unsigned machine, bool client,
		     unsigned kinds, int to, const char *function)
{
	const struct event_log *r = q->r;
	size_t end = to < 0 ? r->machine_from[machine + 1] : (size_t)to;
	for (size_t i = r->machine_from[machine]; i < end && to < 0; i++)
		if (r->event[i].kind == TRACED_RETURN && event_log_is_of(&r->event[i], op, machine))
			end = i;
	for (size_t i = end; i-- > r->machine_from[machine];) {
		const struct logged_event *e = &r->event[i];
		if (!(kinds >> e->kind & 1) || !event_log_is_of(e, op, machine) ||
		    is_of_client(r, cause_posted(r, e)) != client ||
		    !callers_of_store(q->where, function_of(q, e)))
			continue;
		if (!function || strcmp(where_function(q->where, function_of(q, e)), function) != 0)
			return (int)i;
	}
	return EVENT_LOG_NONE;
}

/* Is it wrong whatever the run does? Then no step of it is at fault. */
static bool is_always_wrong(const struct window *w)
{
	return w->known && w->wrong && w->first < 0 && w->last < 0;
}

/* What does not hold has refused something. What holds, its caller has made the answer of. */
static void suspect_answer(struct explanation *q, const struct logged_event *e, const char *actor,
			   const char *op, const char *when)
{
	const struct spot spot = cause_spot(q->r, e);
	const struct window *w = &q->window;
	const bool check = e->kind == TRACED_CHECK;
	const bool well = (w->known && !w->wrong) || is_always_wrong(w);
	const uintptr_t taker = check && e->holds ? cause_caller(q, spot, 1) : 0;
	cause_suspect(q,
		      check && !e->holds && !q->foreign ? SUSPECT_REFUSES
		      : well				? SUSPECT_ANSWERS
							: SUSPECT_READS,
		      taker ? taker : cause_maker(q, spot), "%s, for %s, %s %s", actor, op,
		      check ? "checks" : "looks", when);
}

static bool say_look(struct explanation *q, int i, struct op_label op, const char *when)
{
	const struct event_log *r = q->r;
	const struct logged_event *e = event_log_at(r, i);
	char words[120], place[80], frames[FRAMES_TEXT];
	if (!e)
		return false;
	const char *actor = event_log_actor(r, cause_posted(r, e));
	cause_op(q, op, q->machine, words, sizeof(words));
	cause_frames(q, r, e, ", in ", frames, sizeof(frames));
	cause_place(q, e->off, e->len, place, sizeof(place));
	/* A check before the last never was the bug. */
	if (e->kind != TRACED_CHECK || !strcmp(when, "last"))
		suspect_answer(q, e, actor, words, when);
	if (e->kind == TRACED_CHECK)
		cause_say(q, i, "%s: %s for %s checks%s; it %s", when, actor, words, frames,
			  e->holds ? "holds" : "does not hold");
	else
		/* Its bytes are not told: in which order a function loads, a compiler decides. */
		cause_say(q, i, "%s: %s for %s looks at %.*s%s", when, actor, words,
			  (int)strcspn(place, "+"), place, frames);
	return true;
}

/* The last look, or check, from which the answer was made, and the one before in another function;
 * false: none is known. */
static bool say_answer(struct explanation *q, struct op_label op, bool client)
{
	const unsigned kinds = LOOKS | 1u << TRACED_CHECK;
	int last = find_last(q, op, q->machine, client, kinds, EVENT_LOG_NONE, NULL);
	if (!say_look(q, last, op, "last"))
		return false;
	const char *function = where_function(q->where, function_of(q, &q->r->event[last]));
	say_look(q, find_last(q, op, q->machine, client, kinds, last, function), op, "before");
	return true;
}

/* In which order an expression loads, a compiler decides: so looks are told by the lines that they
 * are at, and of two with nothing in between the lower first. */
static void lines_of(const struct logged_event *e, uint64_t *off, uint64_t *len)
{
	*off = e->off / LINE * LINE;
	*len = (e->off + e->len + LINE - 1) / LINE * LINE - *off;
}

static bool share_line(const struct logged_event *a, const struct logged_event *b)
{
	uint64_t off, len;
	lines_of(a, &off, &len);
	return event_log_overlaps(b, off, len);
}

/* Does the verdict's operation, or the structural check, read it? */
static bool is_look(const struct explanation *q, const struct logged_event *e, bool fsck)
{
	return event_log_reads(e) && (fsck ? e->fsck
					   : event_log_is_of(e, q->op, q->machine) ||
						      event_log_is_of(e, q->within, q->machine));
}

/* The last two that are at different lines, from event `to` on down. Returns how many there are. */
static unsigned find_looks(const struct explanation *q, size_t from, size_t to, bool fsck,
			   size_t look[2])
{
	const struct event_log *r = q->r;
	unsigned n = 0;
	for (size_t i = to; i-- > from && n < 2;)
		if (is_look(q, &r->event[i], fsck) &&
		    !(n && share_line(&r->event[look[0]], &r->event[i])))
			look[n++] = i;
	if (n == 2 && look[1] + 1 == look[0] && r->event[look[0]].off > r->event[look[1]].off) {
		look[0]--;
		look[1]++;
	}
	return n;
}

/* Does a look at these lines, up to this one, read something of that write? */
static bool meets(const struct explanation *q, size_t look, size_t write, bool fsck)
{
	const struct logged_event *e = q->r->event;
	bool met = false;
	for (size_t i = look + 1; i-- > write && share_line(&e[look], &e[write]) && !met;)
		met = is_look(q, &e[i], fsck) && share_line(&e[look], &e[i]) &&
		      event_log_overlaps(&e[write], e[i].off, e[i].len);
	return met;
}

/* Who had written last what is looked at there, if anybody has since the load phase. */
static void say_whose(struct explanation *q, size_t look, bool fsck)
{
	const struct event_log *r = q->r;
	const struct logged_event *e = &r->event[look];
	char place[80], words[STEP_TEXT];
	uint64_t off, len;
	for (size_t k = look; k-- > 0;) {
		const struct logged_event *write = &r->event[k];
		if (!event_log_writes(write) || write->fsck || !meets(q, look, k, fsck) ||
		    (write->machine < e->machine && !event_log_survived(r, (int)k)))
			continue;
		lines_of(e, &off, &len);
		cause_place(q, off, len, place, sizeof(place));
		step_words(q, r, (int)k, words, sizeof(words));
		cause_say(q, (int)k, "found at %s: what %s", place, words);
		return;
	}
}

/* Whose bytes the operation read last, and in the place before that. */
static void say_found(struct explanation *q)
{
	size_t look[2];
	const unsigned n = find_looks(q, q->r->machine_from[q->machine], q->r->events, false, look);
	for (unsigned i = 0; i < n; i++)
		say_whose(q, look[i], false);
}

void cause_say_answer(struct explanation *q)
{
	if (!q->op.kind)
		return;
	const struct window *w = &q->window;
	const bool by_step = w->wrong && w->first >= 0;
	const bool by_write = by_step && event_log_writes(&q->instead.event[w->first]);
	/* Where a write has made it wrong, who reads it is not at fault. */
	if (!by_write && !say_answer(q, q->op, false) + !say_answer(q, q->op, true) == 2) {
		say_answer(q, q->within, false);
		say_answer(q, q->within, true);
	}
	if (!w->known || w->wrong)
		say_found(q);
}

/* --- who lost it --- */

void cause_say_loser(struct explanation *q, const struct loss *loss)
{
	const struct event_log *r = q->r;
	const struct logged_event *e = &r->event[loss->event],
				  *by = e->stack ? e : cause_posted(r, e);
	char frames[FRAMES_TEXT];
	cause_frames(q, r, e, "", frames, sizeof(frames));
	if (!frames[0])
		return;
	cause_say(q, loss->event, "%s in %s", by == e ? "written" : "posted", frames);
	for (size_t i = (size_t)(by - r->event) + 1; i < r->machine_from[loss->machine + 1]; i++) {
		if (r->event[i].actor != by->actor)
			continue;
		cause_frames(q, r, &r->event[i], "", frames, sizeof(frames));
		if (frames[0]) {
			cause_say(q, (int)i, "then %s goes on in %s", event_log_actor(r, by),
				  frames);
			return;
		}
	}
}

/* --- what recovery did --- */

/* Also that of a server's process that follows one that died, which runs on the same machine. */
static bool recovers(const struct explanation *q, const struct logged_event *e)
{
	const char *actor = event_log_actor(q->r, e);
	return cause_is_recovery(q, e) || (!e->fsck && !e->op.kind && !strchr(actor, '/') &&
					   !strncmp(actor, "server", 6) && actor[6]);
}

/* A check that holds should have refused; what does not hold, its caller has made something of. */
static void suspect_check(struct explanation *q, const struct logged_event *check)
{
	const struct spot spot = cause_spot(q->r, check);
	const struct window *w = &q->window;
	const enum suspicion rank = w->crash && w->wrong && !is_always_wrong(w) ? SUSPECT_RECOVERY
										: SUSPECT_READS;
	for (unsigned i = 0; i < 2; i++)
		cause_suspect(q, rank, cause_caller(q, spot, check->holds ? i : 1 - i),
			      "recovery checks last, and that %s",
			      check->holds ? "holds" : "does not hold");
}

void cause_say_recovery(struct explanation *q)
{
	const struct event_log *r = q->r;
	char place[80], frames[FRAMES_TEXT];
	int check = EVENT_LOG_NONE, look = EVENT_LOG_NONE, write = EVENT_LOG_NONE;
	for (size_t i = r->machine_from[r->machines - 1]; i < r->events; i++) {
		const struct logged_event *e = &r->event[i];
		if (!recovers(q, e))
			continue;
		if (e->kind == TRACED_CHECK)
			check = (int)i;
		else if (event_log_reads(e) && (!q->op.kind || cause_read_in_the_end(q, e)))
			look = (int)i;
		else if (event_log_writes(e) && (!q->op.kind || cause_read_in_the_end(q, e)))
			write = (int)i;
	}
	const int last = write >= 0 ? write : look;
	/* cause_cut.c has told what it wrote. */
	if (last >= 0 && (write < 0 || q->c->kind != CAUSE_CUT)) {
		const struct logged_event *e = &r->event[last];
		cause_place(q, e->off, e->len, place, sizeof(place));
		cause_frames(q, r, e, ", in ", frames, sizeof(frames));
		cause_say(q, last, "recovery %s %.*s%s", write >= 0 ? "writes" : "looks last at",
			  write >= 0 ? (int)strlen(place) : (int)strcspn(place, "+"), place,
			  frames);
	}
	if (check >= 0) {
		cause_frames(q, r, &r->event[check], "in ", frames, sizeof(frames));
		cause_say(q, check, "recovery checks last %s; it %s", frames,
			  r->event[check].holds ? "holds" : "does not hold");
		suspect_check(q, &r->event[check]);
	}
}

/* --- what the structural check looked at --- */

/* Recovery's last look at what this one is at. */
static void say_recovery_looked(struct explanation *q, size_t look)
{
	const struct event_log *r = q->r;
	const struct logged_event *e = &r->event[look];
	char frames[FRAMES_TEXT], place[80];
	uint64_t off, len;
	for (size_t k = look; k-- > 0;) {
		if (!recovers(q, &r->event[k]) || !event_log_reads(&r->event[k]) ||
		    !event_log_overlaps(&r->event[k], e->off, e->len))
			continue;
		lines_of(e, &off, &len);
		cause_place(q, off, len, place, sizeof(place));
		cause_frames(q, r, &r->event[k], "in ", frames, sizeof(frames));
		cause_say(q, (int)k, "recovery looked at %s %s", place, frames);
		cause_suspect(q, SUSPECT_LOOKED, cause_caller(q, cause_spot(r, &r->event[k]), 0),
			      "recovery looked at what is wrong");
		return;
	}
}

void cause_say_looked_at(struct explanation *q)
{
	const struct event_log *r = q->r;
	size_t end = 0, look[2];
	if (q->contract != TM_FSCK)
		return;
	while (end < r->events &&
	       strncmp(event_log_text(r, &r->event[end]), "the structural check", 20) != 0)
		end++;
	const unsigned n = find_looks(q, 0, end, true, look);
	for (unsigned i = 0; i < n; i++) {
		say_whose(q, look[i], true);
		say_recovery_looked(q, look[i]);
	}
}
