/* SPDX-License-Identifier: BSD-3-Clause */
/* See images.h. */
#include "checker/images/images.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "checker/explore/visited.h"
#include "checker/images/image_choice.h"
#include "checker/seat/judge_seat.h"
#include "checker/logs/pm_order.h"
#include "core/array.h"
#include "core/clock.h"

#define CHUNK	     128 /* images that a process judges before it takes others, at most ... */
#define CHUNK_TIMED  8	 /* ... and if time is short: what is half done then is lost */
#define CAUSES_SHARE 0.2 /* of the time, if that is short: causes are looked for */

/*
 * --- a walk through the images, in the order of their numbers ---
 *
 * It goes through the log several times: first come the images of each cut that are likely to tell
 * most, then some more of each, then all others. So however early it ends, it has been everywhere.
 */

/* Images of a cut until the end of each time; of the last one, all. */
static const unsigned pass_most[] = {4, 32, UINT_MAX};

struct walk {
	const struct pm_log *log;
	const struct images_options *o;
	struct pm_replay replay;
	struct image_choice choice;
	struct image_files files;
	struct visited *visited;
	uint64_t *whole_hash; /* by dirty line: pm_replay_hash() of all that is in flight on it */
	unsigned whole_room;
	const uint8_t *sections; /* NULL: none are asked for */
	struct pm_order order;
	bool with_files, in_cut;
	unsigned pass;		/* of pass_most */
	uint64_t cuts, bounded; /* of one pass */
	uint64_t skipped;	/* cuts that are in no section which is checked */
	uint64_t number;	/* of the image that stands there */
	uint64_t next;		/* of the next new one */
	int error;
};

static int walk_open(struct walk *w, const struct pm_log *log, const struct images_options *o,
		     const char *folder, const char *name)
{
	memset(w, 0, sizeof(*w));
	w->log = log;
	w->o = o;
	w->sections = o->sections;
	w->with_files = folder != NULL;
	w->visited = visited_new();
	int error = w->visited ? pm_replay_open(&w->replay, log, &o->hw, o->kill) : -ENOMEM;
	image_choice_init(&w->choice, &w->replay, o->most);
	if (!error && folder)
		error = image_files_open(&w->files, log, folder, name);
	return error;
}

static void walk_close(struct walk *w)
{
	if (w->with_files)
		image_files_close(&w->files);
	image_choice_free(&w->choice);
	pm_order_close(&w->order);
	pm_replay_close(&w->replay);
	visited_free(w->visited);
	free(w->whole_hash);
}

/* The replay stands at a cut. */
static int begin_cut(struct walk *w)
{
	const struct pm_replay *r = &w->replay;
	if (!ARRAY_RESERVE(w->whole_hash, 0, r->dirties, w->whole_room))
		return -ENOMEM;
	for (unsigned i = 0; i < r->dirties; i++)
		w->whole_hash[i] = pm_replay_hash(r, &r->dirty[i], r->dirty[i].versions);
	const unsigned most = pass_most[w->pass];
	w->choice.limit = most < w->choice.most ? most : UINT_MAX;
	return image_choice_begin(&w->choice);
}

static uint64_t image_hash(const struct walk *w)
{
	const struct pm_replay *r = &w->replay;
	uint64_t hash = r->hash;
	const unsigned *left = w->choice.left, *whole = w->choice.whole;
	for (unsigned i = 0; i < r->dirties; i++) {
		if (left[i] == whole[i])
			hash ^= w->whole_hash[i];
		else if (left[i])
			hash ^= pm_replay_hash(r, &r->dirty[i], left[i]);
	}
	/* The checker is told of both. */
	return hash ^ (r->acks + 1) * 0x9e3779b97f4a7c15u ^
	       (r->mark ? r->mark->data : 0) * 0xd6e8feb86659fd93u;
}

static enum pm_engine engine_here(const struct walk *w)
{
	return w->sections ? (enum pm_engine)w->sections[w->replay.at] : PM_FULL;
}

/* The next event. False: there is none, or w->error. */
static bool walk_step(struct walk *w)
{
	int more = pm_replay_step(&w->replay, w->with_files ? image_files_durable : NULL,
				  &w->files);
	w->error = more < 0 ? more : 0;
	return more > 0;
}

/* Once more from the first event. False: that was the last time, or w->error. */
static bool walk_again(struct walk *w)
{
	struct pm_replay first;
	if (pass_most[w->pass] >= w->choice.most)
		return false;
	w->error = pm_replay_open(&first, w->log, &w->o->hw, w->o->kill);
	if (w->error)
		return false;
	for (unsigned f = 0; f < w->log->files && w->with_files; f++)
		for (uint64_t at = 0; at < w->log->file[f].len; at += PM_LINE)
			if (memcmp(w->replay.durable[f] + at, first.durable[f] + at, PM_LINE) != 0)
				image_files_durable(&w->files, f, at / PM_LINE,
						    first.durable[f] + at);
	pm_replay_close(&w->replay);
	w->replay = first;
	w->files.at = 0; /* what is in flight is written anew */
	w->in_cut = false;
	w->cuts = w->bounded = w->skipped = 0;
	w->pass++;
	return true;
}

/* The next image that none before was equal to. False: there is none, or w->error. */
static bool walk_next(struct walk *w)
{
	for (;;) {
		while (w->in_cut && image_choice_next(&w->choice)) {
			bool is_new;
			visited_add(w->visited, image_hash(w), &is_new);
			if (is_new) {
				w->number = w->next++;
				return true;
			}
		}
		w->bounded += w->in_cut && w->choice.bounded && !w->choice.one;
		bool more = !w->in_cut || walk_step(w);
		while (more && (!pm_replay_cut(&w->replay) || engine_here(w) == PM_NO_CHECK)) {
			w->skipped += pm_replay_cut(&w->replay);
			more = walk_step(w);
		}
		if (!more && (w->error || !walk_again(w)))
			return false;
		if (!more)
			continue;
		w->in_cut = true;
		w->cuts++;
		w->error = begin_cut(w);
		if (w->error)
			return false;
		w->choice.one = engine_here(w) == PM_DO_CHECK;
	}
}

/* What is known where the replay stands. */
static struct image_moment moment(const struct pm_replay *r)
{
	struct image_moment at = {.acked = r->acks, .event = r->at};
	if (r->log->timed && r->at < r->log->events)
		at.ns = r->log->event[r->at].ns;
	image_files_mark(&at, r->log, r->mark);
	return at;
}

/* An image of those that are left at this place waits. */
static int wait_here(struct walk *w, const unsigned *left)
{
	const struct image_moment now = moment(&w->replay);
	int error = image_files_set(&w->files, &w->replay, left);
	return error ? error : image_files_wait(&w->files, &now);
}

static int judge_here(struct walk *w, struct image_judge *judge, const unsigned *left,
		      struct image_verdict *verdict)
{
	int error = wait_here(w, left);
	return error ? error : image_judge(judge, &w->files, verdict);
}

/* --- where the order is not known --- */

#define LATE 4096 /* events that are looked at for stores that may have come before */

static int open_order(struct walk *w)
{
	return pm_replay_loses(&w->replay, false) ? 0 : pm_order_open(&w->order, w->log);
}

static void take_early(struct walk *w, size_t end)
{
	for (size_t i = w->replay.at; i < end; i++) {
		const struct pm_event *e = &w->log->event[i];
		uint64_t line = e->off / PM_LINE;
		if (e->kind == PM_STORE)
			image_files_durable(&w->files, e->file, line,
					    w->replay.durable[e->file] + line * PM_LINE);
	}
	w->files.at = 0; /* what is in flight is written anew */
}

/* Of a bad image: is it good if stores have come before that stand later? *late is the last of
 * them, and one more; 0: it is bad in any order. `judge` NULL: any order might be good. */
static int find_late(struct walk *w, struct image_judge *judge, const unsigned *left,
		     uint32_t *late)
{
	const struct image_moment now = moment(&w->replay);
	const struct pm_event *event = w->log->event;
	size_t end = w->order.late ? w->order.late[w->replay.at] : 0;
	*late = judge && end <= w->replay.at + LATE ? 0 : (uint32_t)end;
	int error = end && !*late ? image_files_set(&w->files, &w->replay, left) : 0;
	bool early = false;
	for (size_t i = w->replay.at; i < end && !*late && !error; i++) {
		const struct pm_event *e = &event[i];
		struct image_verdict v;
		if (pm_order_may_precede(&w->order, i, w->replay.at)) {
			early = true;
			/* What else is in flight on its line is not told apart. */
			if (w->replay.slot[e->file][e->off / PM_LINE])
				*late = (uint32_t)i + 1;
			image_files_write(&w->files, e->file, e->off, w->log->bytes + e->data,
					  e->len);
		}
		/* What was noticed together came together. */
		if (!early || *late || (i + 1 < end && event[i + 1].noticed))
			continue;
		early = false;
		error = image_files_wait(&w->files, &now);
		if (!error)
			error = image_judge(judge, &w->files, &v);
		if (!error && v.how == IMAGE_GOOD)
			*late = (uint32_t)i + 1;
	}
	assert(end <= w->log->events);
	if (judge)
		take_early(w, end);
	return error;
}

/* Seconds that are left of those that it may take; 0: they are not counted. */
static double time_left(const struct images_options *o)
{
	const double until = o->bounds ? o->bounds->until : 0;
	return until > 0 ? until - clock_seconds() : 0;
}

static bool left_off(const struct images_options *o)
{
	return (o->bounds && o->bounds->stop && *o->bounds->stop) || time_left(o) < 0;
}

/* --- in the processes --- */

struct search {
	const struct pm_log *log;
	const struct images_options *o;
	char folder[IMAGE_PATH];
	uint64_t images;
	unsigned chunk; /* CHUNK or CHUNK_TIMED */
	/* a process's */
	struct walk *walk;
	struct image_judge *judge;
	int unusable; /* why they could not be made */
	bool careful; /* the checker writes where that is not seen */
};

struct chunk {
	int32_t error;
	struct image_way way;
	struct image_verdict verdict[CHUNK];
};

static int start_work(struct search *s)
{
	char name[32], why[8];
	s->walk = calloc(1, sizeof(*s->walk));
	if (!s->walk)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%d%s", (int)getpid(), s->careful ? "-again" : "");
	int error = walk_open(s->walk, s->log, s->o, s->folder, name);
	if (!error)
		error = image_judge_open(&s->judge, &s->o->checker, why, sizeof(why));
	if (!error && s->careful)
		image_judge_be_careful(s->judge);
	return error;
}

static void end_work(struct search *s)
{
	image_judge_close(s->judge);
	s->judge = NULL;
	walk_close(s->walk);
	free(s->walk);
	s->walk = NULL;
}

static int judge_chunk(struct search *s, uint64_t first, struct chunk *c)
{
	int error = s->unusable;
	if (!error && !s->walk)
		error = s->unusable = start_work(s);
	struct image_verdict *verdict = c->verdict; /* of the first that waits */
	while (!error && s->walk->next < first + s->chunk && walk_next(s->walk)) {
		struct image_files *files = &s->walk->files;
		if (s->walk->number < first)
			continue;
		error = wait_here(s->walk, s->walk->choice.left);
		if (error || (image_judge_may_wait(s->judge, files) && !image_files_full(files)))
			continue;
		error = image_judge(s->judge, files, verdict);
		verdict = &c->verdict[s->walk->next - first];
	}
	if (!error)
		error = s->walk->error;
	assert(error || verdict + s->walk->files.waiting <= c->verdict + s->chunk);
	if (!error)
		error = image_judge(s->judge, &s->walk->files, verdict);
	if (!error)
		c->way = image_judge_way(s->judge);
	return error;
}

static void work(void *arg, unsigned unit, void *result)
{
	struct search *s = arg;
	struct chunk *c = result;
	uint64_t first = (uint64_t)unit * s->chunk;
	c->error = judge_chunk(s, first, c);
	/* Did the checker write to the files without being seen? Then some of these images were not
	 * what they should have been. */
	if (!c->error && !s->careful && !image_files_untouched(&s->walk->files)) {
		end_work(s);
		s->careful = true;
		c->error = judge_chunk(s, first, c);
	}
}

/* --- causes --- */

/* Are they of one place in the program? Where that is not known: of one line of PM. */
static bool same_place(const struct pm_log *log, uint32_t a, uint32_t b)
{
	const struct pm_event *x = &log->event[a], *y = &log->event[b];
	if (x->kind != y->kind || x->source != y->source)
		return false;
	return x->source || (x->file == y->file && x->off / PM_LINE == y->off / PM_LINE);
}

/* What this image has lost. */
static void find_parts(const struct walk *w, const unsigned *left, struct image_cause *c)
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
static bool loses(const struct walk *w, const unsigned *left, uint32_t event)
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
static bool includes(const struct walk *w, const unsigned *left, const struct image_cause *all,
		     const struct image_cause *some)
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

#define GIVEN 32 /* changes of a line that are given back one by one */

/* Of what a line has lost, give back what can be without the image becoming another one: what is
 * lost then tells the store that matters from those before it. */
static int give_some(struct walk *w, struct image_judge *judge, unsigned *left, unsigned i,
		     struct image_verdict bad)
{
	const struct pm_replay *r = &w->replay;
	const unsigned was = left[i], versions = r->dirty[i].versions;
	struct image_verdict v = bad;
	int error = 0;
	for (unsigned k = versions; was < versions && --k > was && versions - k <= GIVEN;) {
		left[i] = k;
		pm_replay_allow(r, left);
		error = left[i] != k ? 0 : left_off(w->o) ? -EINTR : judge_here(w, judge, left, &v);
		if (error)
			break;
		if (left[i] == k && v.how == bad.how && v.number == bad.number)
			return 0;
	}
	left[i] = was;
	return error;
}

/* Give back what the image has lost, line by line, as long as it fails in the same way. Where
 * landings have an order, a line may have to wait for another one. */
static int give_back(struct walk *w, struct image_judge *judge, unsigned *left,
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
			error = left_off(w->o) ? -EINTR : judge_here(w, judge, left, &v);
			if (error) {
				left[i] = was;
				break;
			}
			fixed[i] = v.how != bad.how || v.number != bad.number;
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
static int keep_image(const struct walk *w, const unsigned *left, struct image_cause *c)
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

/* Have both lost nothing, and does the same go wrong, wherever the power fails? An exit status
 * without a word may mean anything, but not a signal, which a shell tells by such a status. What
 * was printed is not known where there was no time to ask again. */
static bool same_wrong(const struct image_cause *a, const struct image_cause *b)
{
	const struct image_verdict *x = &a->verdict, *y = &b->verdict;
	const bool telling = x->how != IMAGE_EXIT || x->number > 128;
	if (a->parts || b->parts || !a->late != !b->late || x->how != y->how ||
	    x->number != y->number || x->broken.contract != y->broken.contract ||
	    x->broken.key != y->broken.key)
		return false;
	if (!*a->said || !*b->said)
		return telling;
	return same_words(a->said, b->said);
}

/* `judge` NULL: what it has lost is not made less. */
static int add_cause(struct walk *w, struct image_judge *judge, struct image_cause *c,
		     struct images_result *result)
{
	unsigned *left = malloc((w->replay.dirties + 1) * sizeof(*left));
	if (!left)
		return -ENOMEM;
	memcpy(left, w->choice.left, w->replay.dirties * sizeof(*left));
	int error = judge ? give_back(w, judge, left, c->verdict) : -EINTR;
	struct image_verdict again;
	if (!error)
		error = left_off(w->o) ? -EINTR : judge_here(w, judge, left, &again);
	if (!error && w->o->checker.recover && !w->o->checker.announced)
		image_judge_said(judge, c->said);
	if (error == -EINTR) {
		result->rough = true;
		error = 0;
	}
	find_parts(w, left, c);
	/* What is left of it may be known. */
	for (unsigned i = 0; i < result->causes && !error; i++)
		if (includes(w, left, c, &result->cause[i])) {
			result->cause[i].images++;
			free(left);
			return 0;
		}
	for (unsigned i = 0; i < result->causes && !error; i++)
		if (same_wrong(c, &result->cause[i])) {
			result->cause[i].images++;
			result->cause[i].places += result->cause[i].last != c->at;
			result->cause[i].last = c->at;
			free(left);
			return 0;
		}
	c->images = 1;
	c->last = c->at;
	if (!error)
		error = keep_image(w, left, c);
	free(left);
	result->cause[result->causes++] = *c;
	return error;
}

static int find_causes(struct search *s, const struct image_verdict *verdict,
		       struct images_result *result, char *why, size_t n)
{
	struct walk w;
	struct image_judge *judge = NULL;
	uint64_t end = s->images; /* after the last bad one */
	while (end && verdict[end - 1].how == IMAGE_GOOD)
		end--;
	if (!end)
		return 0;
	/* Whoever interrupts it does not want to wait. */
	int error = walk_open(&w, s->log, s->o, left_off(s->o) ? NULL : s->folder, "causes");
	struct image_checker checker = s->o->checker;
	checker.listen = !checker.show && !checker.library;
	if (!error)
		error = image_judge_open(&judge, &checker, why, n);
	if (!error)
		image_judge_be_careful(judge);
	if (!error)
		error = open_order(&w);
	while (!error && w.next < end && walk_next(&w)) {
		struct image_cause c = {.verdict = verdict[w.number]};
		unsigned known = 0;
		if (c.verdict.how == IMAGE_GOOD)
			continue;
		error = find_late(&w, left_off(s->o) ? NULL : judge, w.choice.left, &c.late);
		if (error)
			break;
		result->bad++;
		find_parts(&w, w.choice.left, &c);
		while (known < result->causes &&
		       !includes(&w, w.choice.left, &c, &result->cause[known]))
			known++;
		if (known < result->causes)
			result->cause[known].images++;
		else if (result->causes == IMAGE_CAUSES)
			result->untold++;
		else
			error = add_cause(&w, left_off(s->o) ? NULL : judge, &c, result);
	}
	if (!error)
		error = w.error;
	image_judge_close(judge);
	walk_close(&w);
	return error;
}

/* --- all of it --- */

/* How many images are there? */
static int count_images(struct search *s, struct images_result *result)
{
	struct walk w;
	int error = walk_open(&w, s->log, s->o, NULL, NULL);
	while (!error && walk_next(&w))
		if (left_off(s->o))
			error = -EINTR;
	if (!error)
		error = w.error;
	s->images = result->images = w.next;
	result->cuts = w.cuts;
	result->bounded = w.bounded;
	result->skipped = w.skipped;
	walk_close(&w);
	return error;
}

/* How a process went about it is its own business. */
static bool same(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;
	return x->error == y->error && !memcmp(x->verdict, y->verdict, sizeof(x->verdict));
}

static bool failed(const void *result)
{
	const struct chunk *c = result;
	return c->error;
}

/* -EINTR: not all was judged. */
static int judge_all(struct search *s, struct image_verdict *verdict, struct images_result *result)
{
	struct image_way *way = &result->way;
	const double left = time_left(s->o);
	struct driver_bounds bounds = s->o->bounds ? *s->o->bounds : (struct driver_bounds){0};
	if (left < 0)
		return -EINTR;
	if (left > 0) /* the rest is for causes */
		bounds.until -= left * CAUSES_SHARE;
	/* Results that are kept have the same units in any run. */
	s->chunk = left > 0 && !s->o->bounds->results ? CHUNK_TIMED : CHUNK;
	unsigned units = (unsigned)((s->images + s->chunk - 1) / s->chunk);
	struct chunk *chunk = calloc(units + 1, sizeof(*chunk));
	bool *done = calloc(units + 1, sizeof(*done)), served = false;
	struct driver driver = {
		.units = units,
		.how = {.jobs = s->o->jobs, .bounds = &bounds, .progress = s->o->progress},
		.result_bytes = sizeof(*chunk),
		.work = work,
		.end = seats_end,
		.results = chunk,
		.done = done,
		.same = same,
		.failed = failed,
		.progress_arg = s->o->progress_arg,
		.arg = s};
	_Static_assert(sizeof(struct chunk) <= DRIVER_RESULT_MAX, "a result is one message");
	int error = chunk && done ? driver_run(&driver) : -ENOMEM;
	for (unsigned u = 0; u < units && (!error || error == -EINTR); u++) {
		if (!done[u])
			continue;
		if (chunk[u].error) {
			error = chunk[u].error;
			continue;
		}
		served |= chunk[u].way.kind == IMAGE_WAY_SERVED;
		if (!way->kind) {
			way->kind = chunk[u].way.kind;
			way->number = chunk[u].way.number;
		}
		if (chunk[u].way.repair > way->repair)
			way->repair = chunk[u].way.repair;
		const uint64_t first = (uint64_t)u * s->chunk;
		for (unsigned i = 0; i < s->chunk && first + i < s->images; i++) {
			verdict[first + i] = chunk[u].verdict[i];
			result->judged++;
		}
	}
	/* Those that it did not open were as quick as it is. */
	if (way->kind == IMAGE_WAY_UNOPENED && served)
		way->kind = IMAGE_WAY_SERVED;
	free(done);
	free(chunk);
	return error;
}

/* Is the checker there, as it should be? */
static int try_checker(const struct images_options *o, char *why, size_t n)
{
	struct image_judge *judge = NULL;
	int error = image_checker_exists(&o->checker, why, n);
	if (!error)
		error = image_judge_open(&judge, &o->checker, why, n);
	image_judge_close(judge);
	return error;
}

int images_search(const struct pm_log *log, const struct images_options *o,
		  struct images_result *result, char *why, size_t n)
{
	struct search *s = calloc(1, sizeof(*s));
	struct image_verdict *verdict = NULL;
	memset(result, 0, sizeof(*result));
	*why = 0;
	int error = s ? try_checker(o, why, n) : -ENOMEM;
	if (!error) {
		*s = (struct search){.log = log, .o = o};
		error = image_folder_make(s->folder);
	}
	if (!error)
		error = count_images(s, result);
	if (!error) {
		verdict = calloc(s->images + 1, sizeof(*verdict));
		result->cause = calloc(IMAGE_CAUSES + 1, sizeof(*result->cause));
		error = verdict && result->cause ? 0 : -ENOMEM;
	}
	double started = clock_seconds();
	if (!error)
		error = judge_all(s, verdict, result);
	result->seconds = clock_seconds() - started;
	bool partly = error == -EINTR && verdict;
	if ((!error || partly) && !s->o->part)
		error = find_causes(s, verdict, result, why, n);
	if (!error && (partly || result->rough))
		error = -EINTR;
	result->all_bad = result->images && result->bad == result->images;
	images_doubt(log, o, result);
	if (error == -ENOSPC)
		snprintf(why, n,
			 "%s: there is no room for the images (TMPDIR names another folder)",
			 s->folder);
	else if (error && !*why)
		snprintf(why, n, "%s", driver_error(error));
	if (s && s->folder[0])
		image_folder_remove(s->folder);
	free(verdict);
	free(s);
	return error;
}

void images_drop(void)
{
	driver_end();
	seats_end();
	image_folder_drop();
}

void images_result_free(struct images_result *result)
{
	for (unsigned i = 0; i < result->causes; i++)
		free(result->cause[i].line);
	free(result->cause);
	memset(result, 0, sizeof(*result));
}

/* --- one image --- */

void image_spec_print(FILE *out, const struct image_cause *c)
{
	fprintf(out, "%zu:", c->at);
	for (unsigned i = 0; i < c->lines; i++)
		fprintf(out, "%s%u+0x%llx=%u", i ? "," : "", c->line[i].file,
			(unsigned long long)c->line[i].line * PM_LINE, c->line[i].left);
}

/* "FILE+OFFSET=LEFT" at *at, which moves behind it, for one of the dirty lines. */
static bool take_line(const struct walk *w, const char **at, unsigned *left)
{
	unsigned long long file, offset, versions;
	int used = 0;
	if (sscanf(*at, "%llu+0x%llx=%llu%n", &file, &offset, &versions, &used) != 3)
		return false;
	const char *end = *at + used;
	if (*end == ',' && end[1])
		end++;
	else if (*end)
		return false;
	for (unsigned i = 0; i < w->replay.dirties; i++) {
		const struct pm_line *l = &w->replay.dirty[i];
		if (l->file != file || l->line * PM_LINE != offset ||
		    versions >= pm_replay_answers(&w->replay, l))
			continue;
		left[i] = (unsigned)versions;
		*at = end;
		return true;
	}
	return false;
}

/* Go to the image. */
static int find_image(struct walk *w, const char *spec, char *why, size_t n)
{
	const char *at = spec;
	unsigned long long event;
	int used = 0, more = 1;
	if (sscanf(spec, "%llu:%n", &event, &used) != 1 || !used || event > w->log->events) {
		snprintf(why, n,
			 "the image %.40s: expected the number of an event, at most %zu, "
			 "and a colon",
			 spec, w->log->events);
		return -EINVAL;
	}
	while (w->replay.at < event && more > 0)
		more = pm_replay_step(&w->replay, image_files_durable, &w->files);
	int error = more < 0 ? more : image_choice_begin(&w->choice);
	for (unsigned i = 0; i < w->choice.lines && !error; i++)
		w->choice.left[i] = w->replay.dirty[i].versions;
	for (at += used; *at && !error;) {
		if (take_line(w, &at, w->choice.left))
			continue;
		snprintf(why, n,
			 "the image %.40s: at \"%.40s\", expected FILE+0xOFFSET=LEFT of a "
			 "line that is in flight before event %llu",
			 spec, at, event);
		error = -EINVAL;
	}
	return error;
}

static int judge_one(struct walk *w, const struct images_options *o, struct image_judge *judge,
		     const char *spec, bool keep, struct image_cause *out, char *why, size_t n)
{
	int error = find_image(w, spec, why, n);
	if (error)
		return error;
	find_parts(w, w->choice.left, out);
	error = keep_image(w, w->choice.left, out);
	if (!error)
		error = judge_here(w, judge, w->choice.left, &out->verdict);
	if (!error)
		error = open_order(w);
	if (!error && out->verdict.how != IMAGE_GOOD)
		error = find_late(w, judge, w->choice.left, &out->late);
	out->doubt = image_doubt(w->log, o, out);
	/* As the power failure left it, not as the checker did. */
	if (!error && keep)
		error = image_files_restore(&w->files);
	return error;
}

int images_one(const struct pm_log *log, const struct images_options *o, const char *spec,
	       const char *folder, struct image_cause *out, char *why, size_t n)
{
	char made[IMAGE_PATH] = "";
	struct walk w = {0};
	struct image_judge *judge = NULL;
	memset(out, 0, sizeof(*out));
	*why = 0;
	/* Before the folder is made: a mistake must not leave one. */
	int error = try_checker(o, why, n);
	if (!error && !folder)
		error = image_folder_make(made);
	if (!error)
		error = walk_open(&w, log, o, folder ? folder : made, folder ? "" : "image");
	bool ours = !error;
	if (error && folder && !*why)
		snprintf(why, n, "%s: %s", folder, strerror(-error));
	if (!error)
		error = image_judge_open(&judge, &o->checker, why, n);
	if (!error)
		error = judge_one(&w, o, judge, spec, folder != NULL, out, why, n);
	image_judge_close(judge);
	walk_close(&w);
	if (made[0])
		image_folder_remove(made);
	else if (error && ours)
		image_folder_remove(folder);
	if (error && !*why)
		snprintf(why, n, "%s", strerror(-error));
	return error;
}
