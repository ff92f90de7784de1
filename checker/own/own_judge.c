/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See own_judge.h.
 *
 *   LIN  some order of the operations before the first power failure, in which each takes effect
 *        between its beginning and its end, gives the answers that were seen, as the model has it.
 *   DUR  the same of the whole history: what has ended before a power failure is in its effect
 *        afterwards; what was open has taken effect before the failure, or never.
 *   BUF  after the first power failure the state is the one that such an order of what came before
 *        has at some place.
 *   OK no operation failed for a reason that was not injected. OWN the store's judge finds nothing.
 *   It is broken, too, if the judge or the model crashes.
 *
 * The verdict names the operation whose answer fits no order.
 */
#include "checker/own/own_judge.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/own/model_search.h"
#include "checker/world/world.h"
#include "core/rt/arena.h"
#include "core/rt/sim.h"

/* What closed epochs leave. */
struct closed {
	int lost, dur_lost;	   /* the operation that fits no order of LIN, of DUR; -1: none */
	bool unsure;		   /* there was no room for all configurations */
	struct model_set dur, buf; /* states that are possible after the last power failure */
};

/* A moment of the epoch before the first power failure: all that could be then. */
struct moment {
	struct model_set set;
	struct model_slots open;
};

struct own_judge {
	const struct setup *setup;
	struct sim *sim;
	char why[200];
	struct tm_event *event; /* by operation of the history */
	uint8_t *bytes;		/* their values */
	size_t bytes_room;
	int16_t at[HISTORY_EVENTS]; /* the operation that begins or ends there, or -1 */
	int failed[HISTORY_CRASHES];
	struct tm_history history;
	struct model_search search;
	struct model_set start;			  /* of an empty store */
	struct moment moment[HISTORY_EVENTS + 1]; /* for BUF */
	struct closed closed[WORLDS];
	/* What the task has to do. */
	const struct history *h;
	unsigned machine, want;
	struct verdict *out;
};

struct own_judge *own_judge_new(const struct setup *s)
{
	struct own_judge *j = calloc(1, sizeof(*j));
	if (!j)
		return NULL;
	j->setup = s;
	j->sim = sim_new();
	j->event = calloc(HISTORY_OPS, sizeof(*j->event));
	j->search.model = s->store->model;
	if (j->sim && j->event)
		return j;
	own_judge_free(j);
	return NULL;
}

void own_judge_free(struct own_judge *j)
{
	if (!j)
		return;
	if (j->sim)
		sim_free(j->sim);
	for (unsigned i = 0; i <= HISTORY_EVENTS; i++)
		model_set_free(&j->moment[i].set);
	for (unsigned m = 0; m < WORLDS; m++) {
		model_set_free(&j->closed[m].dur);
		model_set_free(&j->closed[m].buf);
	}
	model_set_free(&j->start);
	model_set_free(&j->search.set);
	free(j->event);
	free(j->bytes);
	free(j);
}

const char *own_judge_why(const struct own_judge *j)
{
	return j->why;
}

/* --- the history, as the store sees it --- */

static void fill_event(struct own_judge *j, const struct history *h, unsigned op, uint8_t *value)
{
	const struct workload *w = &j->setup->w;
	const struct history_op *o = &h->op[op];
	const struct history_detail *d = &h->detail[op];
	struct tm_event *e = &j->event[op];
	unsigned keys = 1;
	*e = (struct tm_event){.operation = history_operation(o->kind),
			       .client = o->client,
			       .life = o->epoch,
			       .begun = o->invoked,
			       .ended = o->returned,
			       .error = o->error};
	if (o->kind == HISTORY_CALL) {
		e->type = &j->setup->store->calls[d->call];
		keys = e->type->keys;
	}
	for (unsigned k = 0; k < keys; k++) {
		const unsigned key = o->kind == HISTORY_CALL ? d->key[k] : o->key;
		e->call.key[k].name = w->key[key].name;
		e->call.key[k].len = w->key[key].klen;
	}
	e->call.vlen = d->value.len;
	if (o->kind == HISTORY_PUT || (e->type && e->type->value))
		e->call.value = value;
	world_value(d, value);
	if (o->returned < 0)
		return;
	if (d->answered) { /* a GET whose bytes several PUTs write has an error in the history */
		e->answered = true;
		e->error = 0;
		e->answer = h->answer + d->answer;
		e->len = d->len;
		return;
	}
	if (o->kind == HISTORY_GET && !o->error && o->value == VALUE_ABSENT)
		e->error = -ENOENT;
	e->answered = o->kind == HISTORY_GET   ? e->error == -ENOENT
		      : o->kind == HISTORY_DEL ? !e->error || e->error == -ENOENT
					       : !e->error;
}

static void show_history(struct own_judge *j, const struct history *h)
{
	size_t all = 0;
	for (unsigned i = 0; i < h->ops; i++)
		all += h->detail[i].value.len;
	if (all > j->bytes_room || !j->bytes) {
		free(j->bytes);
		j->bytes_room = 2 * all + 4096;
		j->bytes = malloc(j->bytes_room);
		if (!j->bytes)
			arena_exhausted();
	}
	memset(j->at, 0xff, (size_t)h->clock * sizeof(j->at[0]));
	uint8_t *value = j->bytes;
	for (unsigned i = 0; i < h->ops; i++) {
		fill_event(j, h, i, value);
		value += h->detail[i].value.len;
		j->at[h->op[i].invoked] = (int16_t)i;
		if (h->op[i].returned >= 0)
			j->at[h->op[i].returned] = (int16_t)i;
	}
	for (unsigned e = 0; e < h->epoch; e++)
		j->failed[e] = h->crash_at[e];
	j->search.event = j->event;
	j->history = (struct tm_history){.event = j->event,
					 .events = h->ops,
					 .failures = h->epoch,
					 .failed = j->failed,
					 .clients = j->setup->w.clients,
					 .params = &j->setup->params};
}

/* --- by the model --- */

static void note_moment(struct own_judge *j, int at)
{
	model_set_copy(j->search.model, &j->moment[at].set, &j->search.set);
	j->moment[at].open = j->search.open;
}

/* The events from one moment to another happen. The operation that fits no order, or -1. */
static int follow(struct own_judge *j, const struct history *h, int from, int to, bool note)
{
	struct model_search *s = &j->search;
	for (int pos = from; pos < to; pos++) {
		int op = j->at[pos];
		if (op >= 0 && h->op[op].invoked == pos)
			model_invoke(s, (unsigned)op);
		else if (op >= 0 && !model_return(s, (unsigned)op))
			return op;
		if (s->full)
			return -1;
		if (note)
			note_moment(j, pos + 1);
	}
	return -1;
}

/* Where a configuration of a moment goes with the next event: its place in the next set, or -1. */
static int goes_to(struct own_judge *j, const struct history *h, int at, unsigned i)
{
	const struct tm_model *model = j->search.model;
	const struct moment *now = &j->moment[at];
	uint64_t done = now->set.config[i].done;
	int op = j->at[at];
	if (op >= 0 && h->op[op].returned == at && j->event[op].answered) {
		uint64_t bit = model_slot(&now->open, (unsigned)op);
		if (!(done & bit))
			return -1;
		done &= ~bit;
	}
	return model_set_find(model, &j->moment[at + 1].set, now->set.state + i * model->bytes,
			      done);
}

/* Does one more open operation lead from this configuration to one that is known to last? */
static bool leads_on(struct own_judge *j, const struct moment *now, unsigned i, const bool *lasts)
{
	const struct tm_model *model = j->search.model;
	const struct model_set *set = &now->set;
	uint64_t rest = now->open.used & ~set->config[i].done;
	for (; rest; rest &= rest - 1) {
		unsigned slot = (unsigned)__builtin_ctzll(rest);
		uint8_t *state = j->search.scratch;
		memcpy(state, set->state + i * model->bytes, model->bytes);
		if (!model->apply(state, &j->event[now->open.op[slot]]))
			continue;
		int next = model_set_find(model, set, state, set->config[i].done | 1ull << slot);
		if (next >= 0 && lasts[next])
			return true;
	}
	return false;
}

/* BUF: the states of all moments before `end` from which the rest of the epoch can be reached. */
static void learn_moments(struct own_judge *j, const struct history *h, int end,
			  struct model_set *out)
{
	const struct tm_model *model = j->search.model;
	bool *lasts = malloc(MODEL_CONFIGS), *lasts_next = malloc(MODEL_CONFIGS);
	if (!lasts || !lasts_next)
		arena_exhausted();
	out->n = 0;
	for (int at = end; at >= 0; at--) {
		const struct model_set *set = &j->moment[at].set;
		bool more = true;
		for (unsigned i = 0; i < set->n; i++) {
			int to = at == end ? (int)i : goes_to(j, h, at, i);
			lasts[i] = at == end || (to >= 0 && lasts_next[to]);
		}
		while (more) {
			more = false;
			for (unsigned i = 0; i < set->n; i++)
				if (!lasts[i] && leads_on(j, &j->moment[at], i, lasts))
					more = lasts[i] = true;
		}
		for (unsigned i = 0; i < set->n; i++)
			if (lasts[i] &&
			    !model_set_add(model, out, set->state + i * model->bytes, 0))
				j->search.full = true;
		bool *swap = lasts;
		lasts = lasts_next;
		lasts_next = swap;
	}
	free(lasts);
	free(lasts_next);
}

static void find_start(struct own_judge *j)
{
	const struct tm_model *model = j->search.model;
	memset(j->search.scratch, 0, sizeof(j->search.scratch));
	if (model->init)
		model->init(j->search.scratch, &j->setup->params);
	j->start.n = 0;
	model_set_add(model, &j->start, j->search.scratch, 0);
}

static void close_epochs(struct own_judge *j)
{
	struct closed *c = &j->closed[j->machine];
	const struct history *h = j->h;
	find_start(j);
	model_begin(&j->search, &j->start);
	note_moment(j, 0);
	for (unsigned e = 0; e < h->epoch && c->dur_lost < 0 && !c->unsure; e++) {
		int from = e ? h->crash_at[e - 1] + 1 : 0;
		c->dur_lost = follow(j, h, from, h->crash_at[e], e == 0);
		c->lost = e ? c->lost : c->dur_lost;
		if (e == 0 && c->lost < 0 && !j->search.full)
			learn_moments(j, h, h->crash_at[0], &c->buf);
		c->unsure = j->search.full;
		model_crash(&j->search);
	}
	model_set_copy(j->search.model, &c->dur, &j->search.set);
}

static void judge_by(struct own_judge *j, enum tm_contract contract, const struct model_set *start,
		     int lost)
{
	const struct history *h = j->h;
	struct verdict *v = &j->out[contract];
	int from = h->epoch ? h->crash_at[h->epoch - 1] + 1 : 0;
	*v = (struct verdict){.op = -1, .against = -1};
	if (!(j->want & TM_BIT(contract)))
		return;
	if (lost < 0) {
		model_begin(&j->search, start);
		lost = follow(j, h, from, h->clock, false);
		v->unsure = j->search.full;
	}
	v->broken = lost >= 0;
	v->op = (int16_t)lost;
}

static void judge_by_model(struct own_judge *j)
{
	const struct closed *c = &j->closed[j->machine];
	if (!j->machine) {
		find_start(j);
		judge_by(j, TM_LIN, &j->start, -1);
		return;
	}
	const bool lin_lost = c->lost >= 0;
	j->out[TM_LIN] = (struct verdict){
		.broken = lin_lost, .unsure = c->unsure, .op = (int16_t)c->lost, .against = -1};
	if (c->unsure) {
		j->out[TM_DUR] = j->out[TM_BUF] = j->out[TM_LIN];
		return;
	}
	judge_by(j, TM_DUR, &c->dur, c->dur_lost);
	if (j->machine == 1)
		judge_by(j, TM_BUF, &c->buf, c->lost);
}

/* --- by the judge --- */

struct told {
	struct tm_judgement judgement;
	struct own_judge *j;
};

static void broken(struct tm_judgement *judgement, int event, const char *fmt, ...)
{
	struct told *told = (struct told *)judgement;
	struct own_judge *j = told->j;
	struct verdict *v = &j->out[TM_OWN];
	va_list ap;
	if (v->broken)
		return; /* the first one counts */
	v->broken = true;
	v->op = event >= 0 && (unsigned)event < j->h->ops ? (int16_t)event : -1;
	va_start(ap, fmt);
	vsnprintf(j->why, sizeof(j->why), fmt, ap);
	va_end(ap);
}

static void judge_ok(struct own_judge *j)
{
	struct verdict *v = &j->out[TM_OK];
	*v = (struct verdict){.op = -1, .against = -1};
	for (unsigned i = 0; i < j->h->ops && !v->broken; i++)
		if (j->h->op[i].unexplained && j->h->op[i].returned >= 0)
			*v = (struct verdict){.broken = true, .op = (int16_t)i, .against = -1};
}

/* --- in a simulation --- */

static void prepare_main(void *arg)
{
	struct own_judge *j = arg;
	sim_construct(j->sim);
	close_epochs(j);
	sim_stop(j->sim, SIM_DONE);
}

static void judge_main(void *arg)
{
	struct own_judge *j = arg;
	const struct tm_store *store = j->setup->store;
	sim_construct(j->sim);
	if (j->want & (TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF)))
		judge_by_model(j);
	if (j->want & TM_BIT(TM_OWN) && store->judge) {
		struct told told = {{broken}, j};
		store->judge(&j->history, &told.judgement);
	}
	sim_stop(j->sim, SIM_DONE);
}

/* False: the store's code crashed, or did not end. */
static bool run_in_sim(struct own_judge *j, void (*fn)(void *))
{
	uintptr_t pc;
	sim_reset(j->sim, NULL);
	sim_set_statics(j->sim, j->setup->statics);
	sim_spawn(j->sim, HOST_SERVER, NULL, fn, j);
	enum sim_end end = sim_run(j->sim);
	if (end == SIM_FAULT)
		snprintf(j->why, sizeof(j->why), "the store's judge or model fails: %s",
			 sim_fault(j->sim, &pc));
	else if (end != SIM_DONE)
		snprintf(j->why, sizeof(j->why), "the store's judge or model waits for something");
	return end == SIM_DONE;
}

static bool by_model(const struct own_judge *j)
{
	return j->search.model && j->setup->own;
}

void own_judge_prepare(struct own_judge *j, unsigned machine, const struct history *h)
{
	struct closed *c = &j->closed[machine];
	assert(machine == h->epoch && machine < WORLDS);
	c->lost = c->dur_lost = -1;
	c->unsure = false;
	c->dur.n = c->buf.n = 0;
	if (!machine || !by_model(j))
		return;
	j->h = h;
	j->machine = machine;
	show_history(j, h);
	/* The judgement says why it fails. */
	if (!run_in_sim(j, prepare_main))
		c->unsure = true;
}

void own_judge_recovered(struct own_judge *j, unsigned machine, const struct history *h,
			 unsigned want, struct verdict out[TM_CONTRACTS])
{
	assert(machine == h->epoch && machine < WORLDS);
	want &= setup_judged(j->setup);
	if (!by_model(j))
		want &= ~(TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF));
	j->h = h;
	j->machine = machine;
	j->want = want;
	j->out = out;
	if (j->setup->own && want & TM_BIT(TM_OK))
		judge_ok(j);
	show_history(j, h);
	if (want & TM_BIT(TM_OWN))
		out[TM_OWN] = (struct verdict){.op = -1, .against = -1};
	if (!run_in_sim(j, judge_main))
		out[TM_OWN] = (struct verdict){.broken = true, .op = -1, .against = -1};
}
