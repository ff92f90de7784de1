/* SPDX-License-Identifier: BSD-3-Clause */
/* See image_walk.h. */
#include "checker/images/image_walk.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/visited.h"
#include "core/array.h"
#include "core/clock.h"

/* Images of a cut until the end of each time; of the last one, all. */
static const unsigned pass_most[] = {4, 32, UINT_MAX};

int image_walk_open(struct image_walk *w, const struct pm_log *log, const struct images_options *o,
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

void image_walk_close(struct image_walk *w)
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
static int begin_cut(struct image_walk *w)
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

static uint64_t image_hash(const struct image_walk *w)
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

static enum pm_engine engine_here(const struct image_walk *w)
{
	return w->sections ? (enum pm_engine)w->sections[w->replay.at] : PM_FULL;
}

/* The next event. False: there is none, or w->error. */
static bool walk_step(struct image_walk *w)
{
	int more = pm_replay_step(&w->replay, w->with_files ? image_files_durable : NULL,
				  &w->files);
	w->error = more < 0 ? more : 0;
	return more > 0;
}

/* What has become durable in these bytes has not. */
static void begin_again(struct image_walk *w, unsigned f, const struct pm_replay *first,
			uint64_t from, uint64_t n)
{
	for (uint64_t at = from; at < from + n; at += PM_LINE)
		if (memcmp(w->replay.durable[f] + at, first->durable[f] + at, PM_LINE) != 0)
			image_files_durable(&w->files, f, at / PM_LINE, first->durable[f] + at);
}

/* Once more from the first event. False: that was the last time, or w->error. */
static bool walk_again(struct image_walk *w)
{
	struct pm_replay first;
	if (pass_most[w->pass] >= w->choice.most)
		return false;
	w->error = pm_replay_open(&first, w->log, &w->o->hw, w->o->kill);
	if (w->error)
		return false;
	for (unsigned f = 0; f < w->log->files && w->with_files; f++)
		for (uint64_t run = 0, n; pm_file_run(&w->log->file[f], &run, &n); run += n)
			begin_again(w, f, &first, run, n);
	pm_replay_close(&w->replay);
	w->replay = first;
	w->files.at = 0; /* what is in flight is written anew */
	w->in_cut = false;
	w->cuts = w->bounded = w->skipped = 0;
	w->pass++;
	return true;
}

/* The next image that none before was equal to. False: there is none, or w->error. */
bool image_walk_next(struct image_walk *w)
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
int image_walk_wait(struct image_walk *w, const unsigned *left)
{
	const struct image_moment now = moment(&w->replay);
	int error = image_files_set(&w->files, &w->replay, left);
	return error ? error : image_files_wait(&w->files, &now);
}

int image_walk_judge(struct image_walk *w, struct image_judge *judge, const unsigned *left,
		     struct image_verdict *verdict)
{
	int error = image_walk_wait(w, left);
	return error ? error : image_judge(judge, &w->files, verdict);
}

/* --- where the order is not known --- */

#define LATE 4096 /* events that are looked at for stores that may have come before */

int image_walk_order(struct image_walk *w)
{
	return pm_replay_loses(&w->replay, false) ? 0 : pm_order_open(&w->order, w->log);
}

static void take_early(struct image_walk *w, size_t end)
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
int image_walk_late(struct image_walk *w, struct image_judge *judge, const unsigned *left,
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
double images_time_left(const struct images_options *o)
{
	const double until = o->bounds ? o->bounds->until : 0;
	return until > 0 ? until - clock_seconds() : 0;
}

bool images_left_off(const struct images_options *o)
{
	return (o->bounds && o->bounds->stop && *o->bounds->stop) || images_time_left(o) < 0;
}
