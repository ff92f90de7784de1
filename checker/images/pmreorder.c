/* SPDX-License-Identifier: BSD-3-Clause */
/* See pmreorder.h. */
#include "checker/images/pmreorder.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/clock.h"
#include "checker/images/checker_exists.h"

/* What a barrier needs to come: a store or a flush, a flush, a fence. */
enum waiting { FOR_STORE, FOR_FLUSH, FOR_FENCE };

struct collected {
	uint32_t event, parts; /* a store that crosses lines is several events */
	bool marked;
};

struct run {
	const struct pm_log *log;
	const struct pmreorder_options *o;
	struct pmreorder_result *result;
	struct pm_replay base; /* only its durable content is used: that of the last barrier */
	struct image_files files;
	struct image_judge *judge;
	struct pm_sequence sequence;
	struct collected *store;
	unsigned stores, room;
	unsigned *marked; /* those that are: of `store` */
	unsigned marks, mark_room;
	enum waiting waiting;
	unsigned long acks;
	const struct pm_event *mark; /* the latest marker; NULL: none yet */
	double started;
};

/* --- collecting --- */

static int collect(struct run *r, uint32_t event)
{
	if (r->log->event[event].part) {
		assert(r->stores);
		r->store[r->stores - 1].parts++;
		return 0;
	}
	if (r->stores == r->room) {
		unsigned room = r->room ? r->room * 2 : 64;
		struct collected *grown = realloc(r->store, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->store = grown;
		r->room = room;
	}
	r->store[r->stores++] = (struct collected){event, 1, false};
	if (r->waiting == FOR_STORE)
		r->waiting = FOR_FLUSH;
	return 0;
}

static void mark_stores(struct run *r, const struct pm_event *flush)
{
	for (unsigned i = 0; i < r->stores; i++)
		for (uint32_t p = 0; p < r->store[i].parts; p++) {
			const struct pm_event *e = &r->log->event[r->store[i].event + p];
			if (e->file == flush->file && e->off < flush->off + flush->len &&
			    flush->off < e->off + e->len)
				r->store[i].marked = true;
		}
	r->waiting = FOR_FENCE;
}

static int list_marked(struct run *r)
{
	if (r->stores > r->mark_room) {
		unsigned *grown = realloc(r->marked, r->room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->marked = grown;
		r->mark_room = r->room;
	}
	r->marks = 0;
	for (unsigned i = 0; i < r->stores; i++)
		if (r->store[i].marked)
			r->marked[r->marks++] = i;
	return 0;
}

/* --- states --- */

/* The store in the files; or, `back`, what was there at the last barrier. */
static void write_store(struct run *r, const struct collected *s, bool back)
{
	for (uint32_t p = 0; p < s->parts; p++) {
		const struct pm_event *e = &r->log->event[s->event + p];
		const uint8_t *bytes = back ? r->base.durable[e->file] + e->off
					    : r->log->bytes + e->data;
		image_files_write(&r->files, e->file, e->off, bytes, e->len);
	}
}

/* The number of a state of a barrier: its stores are told. */
static int tell_state(struct run *r, struct pmreorder_barrier *b, uint64_t number)
{
	struct pm_sequence s;
	pm_sequence_init(&s);
	int error = pm_sequence_begin(&s, b->engine, b->stores, r->result->barriers);
	for (uint64_t i = 0; !error && i <= number; i++)
		pm_sequence_next(&s);
	if (!error)
		b->store = malloc((s.len + 1) * sizeof(*b->store));
	if (!error && !b->store)
		error = -ENOMEM;
	for (unsigned i = 0; i < s.len && !error; i++)
		b->store[b->len++] = r->store[r->marked[s.at[i]]].event;
	pm_sequence_free(&s);
	return error;
}

/* Judge the states that wait, the latest of this barrier. */
static int judge_states(struct run *r, struct pmreorder_barrier *b)
{
	struct image_verdict verdict[BOARD_IMAGES];
	unsigned n = r->files.waiting;
	int error = image_judge(r->judge, &r->files, verdict);
	if (error == -EINTR) {
		b->states -= n;
		r->result->states -= n;
	}
	for (unsigned i = 0; i < n && !error; i++) {
		if (verdict[i].how == IMAGE_GOOD)
			continue;
		r->result->bad++;
		if (b->bad++)
			continue;
		b->verdict = verdict[i];
		error = tell_state(r, b, b->states - n + i);
	}
	return error;
}

/* The state of this sequence. */
static int judge_state(struct run *r, struct pmreorder_barrier *b)
{
	const struct pm_sequence *s = &r->sequence;
	struct image_moment now = {.acked = r->acks};
	image_files_mark(&now, r->log, r->mark);
	for (unsigned i = 0; i < s->len; i++)
		write_store(r, &r->store[r->marked[s->at[i]]], false);
	int error = image_files_wait(&r->files, &now);
	b->states++;
	r->result->states++;
	if (!error && (!image_judge_may_wait(r->judge, &r->files) || image_files_full(&r->files)))
		error = judge_states(r, b);
	for (unsigned i = s->len; i-- > 0;)
		write_store(r, &r->store[r->marked[s->at[i]]], true);
	return error;
}

static void show_progress(struct run *r, size_t event)
{
	struct driver_progress at = {.done = (unsigned)event,
				     .units = (unsigned)r->log->events,
				     .states = r->result->states,
				     .seconds = clock_seconds() - r->started};
	if (r->o->progress && r->result->states % 64 == 0)
		r->o->progress(r->o->progress_arg, &at);
}

/* All states of a barrier. */
static int check_states(struct run *r, struct pmreorder_barrier *b)
{
	int error = pm_sequence_begin(&r->sequence, b->engine, b->stores, r->result->barriers);
	while (!error && pm_sequence_next(&r->sequence)) {
		if (b->states == r->o->most) {
			r->result->bounded++;
			break;
		}
		error = judge_state(r, b);
		show_progress(r, b->event);
	}
	return error ? error : judge_states(r, b);
}

/* What is marked is there for good; the rest waits. */
static void settle(struct run *r)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < r->stores; i++) {
		const struct collected *s = &r->store[i];
		if (!s->marked) {
			r->store[kept++] = *s;
			continue;
		}
		write_store(r, s, false);
		for (uint32_t p = 0; p < s->parts; p++) {
			const struct pm_event *e = &r->log->event[s->event + p];
			memcpy(r->base.durable[e->file] + e->off, r->log->bytes + e->data, e->len);
		}
	}
	r->stores = kept;
	r->waiting = FOR_STORE;
}

static int barrier(struct run *r, size_t event)
{
	struct pmreorder_result *x = r->result;
	int error = list_marked(r);
	struct pmreorder_barrier b = {
		.event = event, .engine = r->o->sections->engine[event], .stores = r->marks};
	x->barriers++;
	x->checked += b.engine != PM_NO_CHECK;
	if (!error && b.engine != PM_NO_CHECK)
		error = check_states(r, &b);
	if (b.bad && x->told < PMREORDER_TOLD)
		x->barrier[x->told++] = b;
	else {
		x->untold += b.bad > 0;
		free(b.store);
	}
	settle(r);
	return error;
}

/* --- the log --- */

static int step(struct run *r, size_t i)
{
	const struct pm_event *e = &r->log->event[i];
	switch ((enum pm_event_kind)e->kind) {
	case PM_STORE:
		return collect(r, (uint32_t)i);
	case PM_FLUSH:
		mark_stores(r, e);
		return 0;
	case PM_SYNC:
		mark_stores(r, e);
		return barrier(r, i);
	case PM_FENCE:
		return r->waiting == FOR_FENCE ? barrier(r, i) : 0;
	case PM_MARK:
		r->mark = e;
		return 0;
	case PM_ACK:
		r->acks++;
		return 0;
	default:
		return -EINVAL;
	}
}

static int open_run(struct run *r, const char *folder, char *why, size_t n)
{
	pm_sequence_init(&r->sequence);
	r->result->barrier = calloc(PMREORDER_TOLD, sizeof(*r->result->barrier));
	int error = r->result->barrier ? 0 : -ENOMEM;
	if (!error)
		error = pm_replay_open(&r->base, r->log, PM_POWER);
	if (!error)
		error = image_files_open(&r->files, r->log, folder, "states");
	if (!error)
		error = image_judge_open(&r->judge, &r->o->checker, why, n);
	return error;
}

static void close_run(struct run *r)
{
	image_judge_close(r->judge);
	image_files_close(&r->files);
	pm_replay_close(&r->base);
	pm_sequence_free(&r->sequence);
	free(r->store);
	free(r->marked);
}

/* An unseen fence is a barrier between states that were told apart by nothing. */
static enum image_doubt doubt_of(const struct pm_log *log, const struct pmreorder_result *result)
{
	const struct images_options o = {.model = PM_POWER};
	const struct image_cause c = {.at = result->told ? result->barrier[0].event : SIZE_MAX};
	enum image_doubt doubt = image_doubt(log, &o, &c);
	return !doubt && result->bad && pm_log_unseen(log, PM_UNSEEN_FENCE) ? DOUBT_FENCES : doubt;
}

int pmreorder_run(const struct pm_log *log, const struct pmreorder_options *o,
		  struct pmreorder_result *result, char *why, size_t n)
{
	char folder[IMAGE_PATH] = "";
	struct run *r = calloc(1, sizeof(*r));
	memset(result, 0, sizeof(*result));
	*why = 0;
	int error = r ? image_checker_exists(&o->checker, why, n) : -ENOMEM;
	if (!error)
		error = image_folder_make(folder);
	if (!error) {
		*r = (struct run){.log = log, .o = o, .result = result, .started = clock_seconds()};
		error = open_run(r, folder, why, n);
		for (size_t i = 0; i < log->events && !error; i++) {
			error = step(r, i);
			if (error == -EINVAL)
				snprintf(why, n,
					 "line %u of the log: a %s; pmreorder knows nothing of it",
					 log->event[i].line, pm_event_name[log->event[i].kind]);
		}
		result->seconds = clock_seconds() - r->started;
		result->doubt = doubt_of(log, result);
		close_run(r);
		image_folder_remove(folder);
	}
	free(r);
	if (error && !*why)
		snprintf(why, n, "%s", strerror(-error));
	return error;
}

void pmreorder_result_free(struct pmreorder_result *result)
{
	for (unsigned i = 0; i < result->told; i++)
		free(result->barrier[i].store);
	free(result->barrier);
	memset(result, 0, sizeof(*result));
}
