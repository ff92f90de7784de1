/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power failure took writes back: which ones, and what survived, or was read, ahead of them.
 */
#include "checker/cause/explain.h"
#include <assert.h>
#include <string.h>

static bool same_line(const struct explanation *q, uintptr_t a, uintptr_t b)
{
	char x[170] = "", y[170] = "";
	if (a != b) {
		cause_source(q, a, x, sizeof(x));
		cause_source(q, b, y, sizeof(y));
	}
	return !strcmp(x, y);
}

/* Adjacent bytes of one operation's writes, of one source line, lost for one reason, are one loss.
 */
static bool same_loss(const struct explanation *q, const struct loss *a, const struct loss *b)
{
	const struct logged_event *x = &q->r->event[a->event], *y = &q->r->event[b->event];
	return a->machine == b->machine && x->kind == y->kind && op_label_equal(x->op, y->op) &&
	       x->actor == y->actor && a->off <= b->off + b->len && b->off <= a->off + a->len &&
	       same_line(q, x->pc, y->pc);
}

/* Make loss `a` cover loss `b`, too. */
static void join_losses(const struct event_log *r, struct loss *a, const struct loss *b)
{
	uint64_t a_end = a->off + a->len, b_end = b->off + b->len;
	a->off = b->off < a->off ? b->off : a->off;
	a->len = (b_end > a_end ? b_end : a_end) - a->off;
	a->several |= r->event[a->event].at != r->event[b->event].at;
	if (b->event > a->event)
		a->event = b->event;
}

/* Add the versions of a line that its machine's failure took. Returns how many losses there are. */
static unsigned add_losses(const struct explanation *q, const struct logged_line *l,
			   struct loss loss[LOSSES], unsigned n)
{
	const struct event_log *r = q->r;
	struct pmem_answer a = pmem_answer_split(l->versions, l->answer);
	for (unsigned v = a.words ? a.over + 1 : a.version + 1; v <= l->versions; v++) {
		int event = r->version[l->first_version + v - 1].event;
		const struct logged_event *e = event_log_at(r, event);
		unsigned i = 0;
		if (!e)
			continue;
		struct loss one = {
			.off = e->off, .len = e->len, .event = event, .machine = l->machine};
		while (i < n && !same_loss(q, &loss[i], &one))
			i++;
		if (i < n)
			join_losses(r, &loss[i], &one);
		else if (n < LOSSES)
			loss[n++] = one;
	}
	return n;
}

unsigned cause_find_losses(struct explanation *q, struct loss loss[LOSSES])
{
	unsigned n = 0;
	for (unsigned d = 0; d < q->t->deviations.n; d++) {
		const struct deviation *dev = &q->t->deviations.d[d];
		if (dev->kind != CHOICE_LINE || !q->matters[d])
			continue;
		const struct logged_line *l = event_log_line(q->r, dev->b - 1, dev->a);
		if (l)
			n = add_losses(q, l, loss, n);
	}
	for (unsigned i = 0; i < n; i++)
		cause_why_lost(q, &loss[i]);
	return n;
}

/* Had the task of this store read the lost bytes before, so that it may have stored because of
 * them? */
static bool had_read(const struct event_log *r, const struct logged_event *lost, size_t store)
{
	for (size_t i = (size_t)(lost - r->event); i < store; i++)
		if (r->event[i].kind == TRACED_LOAD && r->event[i].actor == r->event[store].actor &&
		    event_log_overlaps(&r->event[i], lost->off, lost->len))
			return true;
	return false;
}

/*
 * What survived, or was seen, ahead of the lost bytes: a later write that is looked at in the end.
 * Best a store of a task that had read them; else one that the observer of the verdict read;
 * else one of the same operation; else the last one.
 */
int cause_find_early(struct explanation *q, const struct loss *loss)
{
	const struct event_log *r = q->r;
	const struct logged_event *lost = &r->event[loss->event];
	int found = EVENT_LOG_NONE, best = 0;
	for (size_t i = (size_t)loss->event + 1; i < r->machine_from[loss->machine + 1]; i++) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) || event_log_overlaps(e, lost->off / LINE * LINE, LINE) ||
		    !cause_looked_at(q, e))
			continue;
		bool seen = false;
		for (size_t k = i; k < r->machine_from[loss->machine + 1]; k++)
			seen |= event_log_reads(&r->event[k]) &&
				event_log_is_of(&r->event[k], q->against, q->against_machine) &&
				event_log_overlaps(&r->event[k], e->off, e->len);
		if (!seen && !event_log_survived(r, (int)i))
			continue;
		int good = e->kind == TRACED_STORE && had_read(r, lost, i) ? 4
			   : seen					   ? 3
			   : op_label_equal(e->op, lost->op)		   ? 2
									   : 1;
		if (good > best || good == 1) {
			found = good >= best ? (int)i : found;
			best = good > best ? good : best;
		}
	}
	return found;
}

/* A write of the same operation that came before the lost one and survived; best one that is read
 * in the end. */
static int find_companion(struct explanation *q, const struct loss *loss)
{
	const struct event_log *r = q->r;
	int any = EVENT_LOG_NONE;
	for (size_t i = (size_t)loss->event; i-- > r->machine_from[loss->machine];) {
		const struct logged_event *e = &r->event[i];
		if (!event_log_writes(e) ||
		    !event_log_is_of(e, r->event[loss->event].op, loss->machine) ||
		    event_log_overlaps(e, loss->off / LINE * LINE, loss->len + LINE) ||
		    !cause_looked_at(q, e) || !event_log_survived(r, (int)i))
			continue;
		if (cause_read_in_the_end(q, e))
			return (int)i;
		any = any < 0 ? (int)i : any;
	}
	return any;
}

/* "what A wrote at x and y, and what B wrote at z" */
static void list_losses(struct explanation *q, const struct loss *loss, unsigned n, char *buf,
			size_t size)
{
	char where[80], by[260], before[260] = "";
	size_t used = 0;
	for (unsigned i = 0; i < n; i++) {
		if (i == 4 && n > 5) {
			cause_print(buf + used, size - used, " and %u more", n - i);
			return;
		}
		cause_writing(q, q->r, &q->r->event[loss[i].event], by, sizeof(by));
		if (i && loss[i].off == loss[i - 1].off && loss[i].len == loss[i - 1].len &&
		    !strcmp(by, before))
			continue; /* once more by the same code, in an operation of the same name */
		cause_place(q, loss[i].off, loss[i].len, where, sizeof(where));
		if (strcmp(by, before) != 0)
			used += cause_print(buf + used, size - used, "%s%s at %s",
					    i ? ", and " : "", by, where);
		else
			used += cause_print(buf + used, size - used, " and %s", where);
		strcpy(before, by);
	}
}

/* Where they were when the power failed; for several the same place, or neither. */
static const char *where_it_was(const struct explanation *q, const struct loss *loss, unsigned n)
{
	unsigned nic = 0;
	for (unsigned i = 0; i < n; i++)
		nic += q->r->event[loss[i].event].kind == TRACED_LAND;
	const uint8_t ddio = setup_hw_at(q->s, q->r->event[loss->event].off).ddio;
	if (!nic || ddio == DDIO_ON)
		return "still in the cache";
	return nic == n && ddio == DDIO_OFF ? "still on its way from the NIC to PM"
					    : "not in PM yet";
}

/* Had all of it been written when the operation that it contradicts returned? */
static bool was_lost_then(const struct explanation *q, const struct loss *loss, unsigned n)
{
	const struct event_log *r = q->r;
	size_t until = 0;
	for (size_t i = r->machine_from[q->against_machine];
	     i < r->machine_from[q->against_machine + 1]; i++)
		if (r->event[i].kind == TRACED_RETURN &&
		    event_log_is_of(&r->event[i], q->against, q->against_machine))
			until = i;
	for (unsigned i = 0; i < n; i++)
		if (loss[i].machine != q->against_machine || (size_t)loss[i].event > until)
			return false;
	return true;
}

/* "no flush covers it"; for several losses, what holds for each. */
static void list_reasons(struct explanation *q, const struct loss *loss, unsigned n, char *buf,
			 size_t size)
{
	size_t used = cause_print(buf, size, "%s", loss[0].why);
	char where[80];
	for (unsigned i = 1; i < n; i++) {
		unsigned k = 0;
		while (k < i && strcmp(loss[i].why, loss[k].why) != 0)
			k++;
		if (k < i)
			continue;
		cause_place(q, loss[i].off, loss[i].len, where, sizeof(where));
		used += cause_print(buf + used, size - used, "; and of %s: %s", where, loss[i].why);
	}
}

/* What came early, or survived of the same operation: its place, what wrote it. It came after, or
 * before, the loss `of`, which is named unless that holds of all losses. As a fact, and in words
 * for the sentence. */
static void say_survivor(struct explanation *q, int event, bool early, const struct loss *loss,
			 unsigned n, unsigned of, char *ahead, size_t size)
{
	const struct logged_event *e = &q->r->event[event];
	char place[80], by[220], frames[420], that[80] = "that";
	bool all = true, survived = event_log_survived(q->r, event);
	for (unsigned i = 0; i < n; i++)
		all &= (event > loss[i].event) == early;
	if (!all)
		cause_place(q, loss[of].off, loss[of].len, that, sizeof(that));
	cause_place(q, e->off, e->len, place, sizeof(place));
	cause_doer(q, q->r, e, by, sizeof(by));
	cause_frames(q, q->r, e, "; in ", frames, sizeof(frames));
	cause_say(q, event, "%s: %s, written %s %s by %s at %.3f us, %s%s",
		  early ? "early" : "kept", place, early ? "after" : "before", that, by,
		  cause_us(e->at), survived ? "survived" : "was seen before it was lost, too",
		  frames);
	if (early)
		cause_print(ahead, size, "; %s, written %s%s by %s, %s", place,
			    all ? "later" : "after ", all ? "" : that, by,
			    survived ? "survived" : "was already visible");
}

/* `ahead`: what came early, as words, or "". */
static void lost_sentence(struct explanation *q, const struct loss *loss, unsigned n,
			  const char *ahead)
{
	struct cause *c = q->c;
	const char *was = n > 1 ? "were" : "was", *it = n > 1 ? "them" : "it";
	const char *still = where_it_was(q, loss, n);
	bool before = q->seen_against[0] && q->contract != TM_KEEP && was_lost_then(q, loss, n);
	char all[640], why[2 * CAUSE_TEXT];
	list_losses(q, loss, n, all, sizeof(all));
	list_reasons(q, loss, n, why, sizeof(why));
	if (before)
		cause_print(c->sentence, sizeof(c->sentence),
			    "%s while %s %s %s: %s%s; so the power failure took %s back, and %s.",
			    q->seen_against, all, was, still, why, ahead, it, q->seen);
	else
		cause_print(c->sentence, sizeof(c->sentence),
			    "when the power failed, %s %s %s: %s%s; so the failure took %s back: "
			    "%s%s%s%s.",
			    all, was, still, why, ahead, it, q->seen_against,
			    q->contract == TM_KEEP && q->seen_against[0] ? ", and that was durable"
									 : "",
			    q->seen_against[0] ? ", but " : "", q->seen);
}

/* Code that flushed it could have waited for that; code that read it, and then stored what is seen
 * although it was lost, could have made it durable; else it is the code that wrote it. */
static void suspect_loser(struct explanation *q, const struct loss *loss, const char *where)
{
	const struct logged_event *e = event_log_at(q->r, loss->event),
				  *flush = event_log_at(q->r, loss->flush);
	const int early = cause_find_early(q, loss);
	if (flush) {
		cause_suspect(q, SUSPECT_LOSES, flush->pc, "%s is flushed, but not fenced", where);
		cause_suspect(q, SUSPECT_LOSES, cause_maker(q, cause_spot(q->r, flush)),
			      "%s is flushed, but not fenced", where);
	}
	if (early >= 0 && e->kind == TRACED_LAND && had_read(q->r, e, (size_t)early))
		cause_suspect(q, SUSPECT_LOSES,
			      cause_maker(q, cause_spot(q->r, &q->r->event[early])),
			      "%s, which was lost, had been read", where);
	cause_suspect(q, SUSPECT_LOSES, e->kind == TRACED_STORE ? e->pc : 0,
		      "%s is written, which was lost", where);
	cause_suspect(q, SUSPECT_LOSES, cause_maker(q, cause_spot(q->r, e)),
		      "%s is written, which was lost", where);
}

void cause_explain_lost(struct explanation *q, struct loss *loss, unsigned n)
{
	char where[80], by[220], ahead[420] = "";
	int early = EVENT_LOG_NONE, companion = EVENT_LOG_NONE;
	unsigned of[2] = {0};
	assert(n && n <= LOSSES);
	q->c->kind = CAUSE_LOST;
	for (unsigned i = 0; i < n; i++) {
		const struct logged_event *e = event_log_at(q->r, loss[i].event);
		cause_place(q, loss[i].off, loss[i].len, where, sizeof(where));
		cause_doer(q, q->r, e, by, sizeof(by));
		cause_say(q, loss[i].event, "lost: %s, %swritten by %s at %.3f us; %s", where,
			  loss[i].several ? "last " : "", by, cause_us(e->at), loss[i].why);
		suspect_loser(q, &loss[i], where);
		if (i < 3)
			cause_say_loser(q, &loss[i]);
		of[0] = early < 0 ? i : of[0];
		of[1] = companion < 0 ? i : of[1];
		if (early < 0)
			early = cause_find_early(q, &loss[i]);
		if (companion < 0)
			companion = find_companion(q, &loss[i]);
	}
	if (early >= 0 || companion >= 0)
		say_survivor(q, early >= 0 ? early : companion, early >= 0, loss, n, of[early < 0],
			     ahead, sizeof(ahead));
	lost_sentence(q, loss, n, ahead);
}
