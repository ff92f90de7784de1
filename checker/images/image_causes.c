/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_causes.h. */
#include "checker/images/image_causes.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Are they of one place in the program? Where that is not known: of one line of PM. */
static bool same_place(const struct pm_log *log, uint32_t a, uint32_t b)
{
	const struct pm_event *x = &log->event[a], *y = &log->event[b];
	if (x->kind != y->kind || x->source != y->source)
		return false;
	return x->source || (x->file == y->file && x->off / PM_LINE == y->off / PM_LINE);
}

/* What this image has lost. */
void image_cause_parts(const struct image_walk *w, const unsigned *left, struct image_cause *c)
{
	const struct pm_replay *r = &w->replay;
	c->parts = 0;
	c->at = r->at;
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		if (left[i] == l->versions)
			continue;
		uint32_t event = pm_replay_event(l, pm_left_whole(l->versions, left[i]));
		unsigned p = 0;
		while (p < c->parts && !same_place(w->log, c->part[p].event, event))
			p++;
		if (p == IMAGE_PARTS)
			continue;
		if (p == c->parts)
			c->part[c->parts++] = (struct image_part){.event = event};
		c->part[p].lost++;
		if (event < c->part[p].event)
			c->part[p].event = event;
	}
}

/* Has this image lost anything of the place of this event? */
static bool loses(const struct image_walk *w, const unsigned *left, uint32_t event)
{
	const struct pm_replay *r = &w->replay;
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		for (unsigned n = pm_left_whole(l->versions, left[i]); n < l->versions; n++)
			if (same_place(w->log, pm_replay_event(l, n), event))
				return true;
	}
	return false;
}

/* Has this image, `all`, lost what `some` has, and does it fail in the same way? */
static bool includes(const struct image_walk *w, const unsigned *left,
		     const struct image_cause *all, const struct image_cause *some)
{
	const struct pm_log *log = w->log;
	if (all->verdict.how != some->verdict.how || all->verdict.number != some->verdict.number ||
	    !all->late != !some->late)
		return false;
	if (!some->parts) {
		/* Nothing was lost: the same place in the program. */
		if (all->parts || all->at == log->events || some->at == log->events)
			return !all->parts && all->at == some->at;
		return same_place(log, (uint32_t)all->at, (uint32_t)some->at);
	}
	for (unsigned p = 0; p < some->parts; p++)
		if (!loses(w, left, some->part[p].event))
			return false;
	return true;
}

/* Give back what the image has lost of a line. False: there cannot be such an image. */
static bool give_line(const struct pm_replay *r, unsigned *left, unsigned i)
{
	left[i] = r->dirty[i].versions;
	pm_replay_allow(r, left);
	return left[i] == r->dirty[i].versions;
}

static bool same_result(const struct image_verdict *a, const struct image_verdict *b)
{
	return a->how == b->how && a->number == b->number;
}

/* -EINTR: there is no time for it. */
static int judge_in_time(struct image_walk *w, struct image_judge *judge, const unsigned *left,
			 struct image_verdict *v)
{
	return images_left_off(w->o) ? -EINTR : image_walk_judge(w, judge, left, v);
}

#define GIVEN 32 /* changes of a line that are given back one by one */

/* Of what a line has lost, give back what can be without the image becoming another one: what is
 * lost then tells the store that matters from those before it. */
static int give_some(struct image_walk *w, struct image_judge *judge, unsigned *left, unsigned i,
		     struct image_verdict bad)
{
	const struct pm_replay *r = &w->replay;
	const unsigned was = left[i], versions = r->dirty[i].versions;
	struct image_verdict v = bad;
	int error = 0;
	for (unsigned k = versions; was < versions && --k > was && versions - k <= GIVEN;) {
		left[i] = k;
		pm_replay_allow(r, left);
		error = left[i] == k ? judge_in_time(w, judge, left, &v) : 0;
		if (error)
			break;
		if (left[i] == k && same_result(&v, &bad))
			return 0;
	}
	left[i] = was;
	return error;
}

/* Give back what the image has lost, line by line, as long as it fails in the same way. Where
 * landings have an order, a line may have to wait for another one. */
static int give_back(struct image_walk *w, struct image_judge *judge, unsigned *left,
		     struct image_verdict bad)
{
	const struct pm_replay *r = &w->replay;
	struct image_verdict v;
	bool *fixed = calloc(r->dirties + 1, sizeof(*fixed)), again = fixed != NULL;
	int error = fixed ? 0 : -ENOMEM;
	while (again && !error) {
		again = false;
		for (unsigned i = 0; i < r->dirties; i++) {
			unsigned was = left[i];
			if (was == r->dirty[i].versions || fixed[i])
				continue;
			if (!give_line(r, left, i)) {
				left[i] = was;
				continue;
			}
			error = judge_in_time(w, judge, left, &v);
			if (error) {
				left[i] = was;
				break;
			}
			fixed[i] = !same_result(&v, &bad);
			if (fixed[i])
				left[i] = was;
			else
				again = r->landings != 0;
		}
	}
	free(fixed);
	for (unsigned i = 0; i < r->dirties && !error; i++)
		error = give_some(w, judge, left, i, bad);
	return error;
}

/* Keep the image itself. */
int image_cause_keep(const struct image_walk *w, const unsigned *left, struct image_cause *c)
{
	const struct pm_replay *r = &w->replay;
	free(c->line);
	c->lines = 0;
	c->line = calloc(r->dirties + 1, sizeof(*c->line));
	if (!c->line)
		return -ENOMEM;
	for (unsigned i = 0; i < r->dirties; i++) {
		const struct pm_line *l = &r->dirty[i];
		unsigned whole = pm_left_whole(l->versions, left[i]);
		if (left[i] != l->versions)
			c->line[c->lines++] = (struct image_line){
				l->line, l->file, left[i], l->versions, pm_replay_event(l, whole)};
	}
	c->dirty = r->dirties;
	c->acked = r->acks;
	c->mark = r->mark ? r->mark->source : PM_NO_SOURCE;
	return 0;
}

/* The same words, whatever numbers are in them. */
static bool same_words(const char *a, const char *b)
{
	const char number[] = "0123456789abcdefABCDEF";
	while (*a && *b) {
		size_t n = isdigit((unsigned char)*a) ? strspn(a, number) : 0,
		       m = isdigit((unsigned char)*b) ? strspn(b, number) : 0;
		if (!n != !m || (!n && *a != *b))
			return false;
		a += n ? n : 1;
		b += m ? m : 1;
	}
	return !*a && !*b;
}

static bool same_verdict(const struct image_cause *a, const struct image_cause *b)
{
	const struct image_verdict *x = &a->verdict, *y = &b->verdict;
	return !a->late == !b->late && x->how == y->how && x->number == y->number &&
	       x->broken.contract == y->broken.contract && x->broken.key == y->broken.key;
}

/* Have both lost nothing, and does the same go wrong, wherever the power fails? An exit status
 * without a word may mean anything, but not a signal, which a shell tells by such a status. What
 * was printed is not known where there was no time to ask again. */
static bool same_wrong(const struct image_cause *a, const struct image_cause *b)
{
	const bool telling = a->verdict.how != IMAGE_EXIT || a->verdict.number > 128;
	if (a->parts || b->parts || !same_verdict(a, b))
		return false;
	if (!*a->said || !*b->said)
		return telling;
	return same_words(a->said, b->said);
}

/* The cause that this image is one of, or result->causes. */
static unsigned known_cause(const struct image_walk *w, const unsigned *left,
			    const struct image_cause *c, const struct images_result *result)
{
	unsigned i = 0;
	while (i < result->causes && !includes(w, left, c, &result->cause[i]))
		i++;
	return i;
}

/* This image was not bad in the same way when it was judged again. */
static int note_unsteady(struct image_walk *w, struct image_cause *c,
			 const struct image_verdict *again, struct images_result *result)
{
	if (result->unsteady++)
		return 0;
	result->first_unsteady = *c;
	result->then = *again;
	return image_cause_keep(w, w->choice.left, &result->first_unsteady);
}

/* Judge it again; if it is as bad, make what it has lost less. `left`: what is left then; `judge`
 * NULL: as much as before. c->verdict: IMAGE_GOOD: it counts for nothing. -EINTR: there was no time
 * for all of that. */
static int make_less(struct image_walk *w, struct image_judge *judge, struct image_cause *c,
		     unsigned *left, struct images_result *result)
{
	const bool hangs = c->verdict.how == IMAGE_HANG;
	const size_t bytes = w->replay.dirties * sizeof(*left);
	struct image_verdict again = c->verdict;
	memcpy(left, w->choice.left, bytes);
	int error = judge ? 0 : -EINTR;
	/* Once after the other, as it may fail every other time. */
	for (unsigned i = 0; i < 2 && !hangs && !error && same_result(&again, &c->verdict); i++)
		error = judge_in_time(w, judge, left, &again);
	const bool bad = same_result(&again, &c->verdict);
	if (!error && bad && (c->parts || hangs)) {
		error = give_back(w, judge, left, c->verdict);
		if (!error && hangs)
			image_judge_wait_long(judge);
		if (!error)
			error = judge_in_time(w, judge, left, &again);
	}
	if (error)
		return error;
	if (hangs) /* it may only have been slow */
		c->verdict = again;
	if (same_result(&again, &c->verdict)) {
		if (w->o->checker.recover && !w->o->checker.announced)
			image_judge_said(judge, c->said);
		return 0;
	}
	/* With what was given back it was bad by chance, or it was so at first. */
	memcpy(left, w->choice.left, bytes);
	error = note_unsteady(w, c, &again, result);
	if (!bad)
		c->verdict.how = IMAGE_GOOD;
	return error;
}

/* `judge` NULL: what it has lost is not made less. *cause: the one that it is, of which there is
 * one image more. */
static int add_cause(struct image_walk *w, struct image_judge *judge, struct image_cause *c,
		     struct images_result *result, unsigned *cause)
{
	unsigned *left = malloc((w->replay.dirties + 1) * sizeof(*left));
	if (!left)
		return -ENOMEM;
	int error = make_less(w, judge, c, left, result);
	result->rough |= error == -EINTR;
	error = error == -EINTR ? 0 : error;
	if (error || c->verdict.how == IMAGE_GOOD) {
		*cause = result->causes;
		result->bad--;
		free(left);
		return error;
	}
	image_cause_parts(w, left, c);
	/* What is left of it may be known. */
	unsigned i = known_cause(w, left, c, result);
	if (i == result->causes) {
		for (i = 0; i < result->causes && !same_wrong(c, &result->cause[i]);)
			i++;
		if (i < result->causes)
			result->cause[i].places += result->cause[i].last != c->at;
	}
	*cause = i;
	if (i == result->causes) {
		error = image_cause_keep(w, left, c);
		result->cause[result->causes++] = *c;
	}
	free(left);
	result->cause[i].images++;
	result->cause[i].last = c->at;
	return error;
}

/* This image is bad. `whole`: by event, the cause of what is bad there with all that is in flight,
 * and one more; 0: it is good, or not known. */
static int count_bad(struct image_walk *w, struct image_judge *judge, struct image_cause *c,
		     struct images_result *result, uint16_t *whole)
{
	const size_t at = w->replay.at;
	unsigned known = 0;
	int error = image_walk_late(w, judge, w->choice.left, &c->late);
	if (error)
		return error;
	result->bad++;
	image_cause_parts(w, w->choice.left, c);
	/* What goes wrong without a loss does so whatever else is lost. */
	if (c->parts && whole[at] && same_verdict(c, &result->cause[whole[at] - 1]))
		known = whole[at] - 1u;
	else
		known = known_cause(w, w->choice.left, c, result);
	if (known < result->causes)
		result->cause[known].images++;
	else if (result->causes == IMAGE_CAUSES)
		result->untold++;
	else
		error = add_cause(w, judge, c, result, &known);
	if (!c->parts && known < result->causes)
		whole[at] = (uint16_t)(known + 1);
	return error;
}

int image_causes_find(const struct pm_log *log, const struct images_options *o, const char *folder,
		      uint64_t images, const struct image_verdict *verdict,
		      struct images_result *result, char *why, size_t n)
{
	struct image_walk w;
	struct image_judge *judge = NULL;
	uint64_t end = images; /* after the last bad one */
	while (end && verdict[end - 1].how == IMAGE_GOOD)
		end--;
	if (!end)
		return 0;
	/* Whoever interrupts it does not want to wait. */
	int error = image_walk_open(&w, log, o, images_left_off(o) ? NULL : folder, "causes");
	struct image_checker checker = o->checker;
	checker.listen = !checker.show && !checker.library;
	if (!error)
		error = image_judge_open(&judge, &checker, why, n);
	if (!error)
		image_judge_be_careful(judge);
	if (!error)
		error = image_walk_order(&w);
	uint16_t *whole = calloc(log->events + 1, sizeof(*whole));
	if (!whole)
		error = error ? error : -ENOMEM;
	while (!error && w.next < end && image_walk_next(&w)) {
		struct image_cause c = {.verdict = verdict[w.number]};
		if (c.verdict.how != IMAGE_GOOD)
			error = count_bad(&w, images_left_off(o) ? NULL : judge, &c, result, whole);
	}
	free(whole);
	if (!error)
		error = w.error;
	image_judge_close(judge);
	image_walk_close(&w);
	return error;
}
