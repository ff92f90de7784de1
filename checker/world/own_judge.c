/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See own_judge.h.
 *
 * LIN, DUR and BUF are judged as those of keys and values are (checker/judge/contracts.c), but that
 * the model says which answers an order of operations gives. OK: no operation failed for a reason
 * that was not injected. OWN: the store's judge finds nothing; it is broken, too, if the judge or
 * the model crashes.
 */
#include "checker/world/own_judge.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/model_search.h"
#include "checker/world/world.h"
#include "core/rt/arena.h"
#include "core/rt/sim.h"

#define OF_MODEL (TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF))

/* What closed epochs leave: states that are possible after the last power failure. */
struct closed {
	struct model_set dur, buf;
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
	int failed[HISTORY_CRASHES];
	struct tm_history history;
	struct model_search search;
	struct moment moment[HISTORY_EVENTS + 1]; /* for BUF */
	struct closed closed[WORLDS];
	/* What the task has to do. */
	const struct history *h;
	struct judge *judge;
	unsigned want;
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
	uint8_t *value = j->bytes;
	for (unsigned i = 0; i < h->ops; i++) {
		fill_event(j, h, i, value);
		value += h->detail[i].value.len;
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

/* The events of the epoch at hand happen. The operation that fits no order, or -1. */
static int follow(struct own_judge *j, bool note)
{
	struct model_search *s = &j->search;
	for (int pos = j->judge->start; pos < j->judge->end; pos++) {
		int op = j->judge->at[pos];
		if (j->h->op[op].invoked == pos)
			model_invoke(s, (unsigned)op);
		else if (!model_return(s, (unsigned)op))
			return op;
		if (s->full)
			return -1;
		if (note)
			note_moment(j, pos + 1);
	}
	return -1;
}

/* Where a configuration of a moment goes with the next event: its place in the next set, or -1. */
static int goes_to(struct own_judge *j, int at, unsigned i)
{
	const struct tm_model *model = j->search.model;
	const struct moment *now = &j->moment[at];
	uint64_t done = now->set.config[i].done;
	int op = j->judge->at[at];
	if (j->h->op[op].returned == at && j->event[op].answered) {
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

/* BUF: the states of all moments of the epoch from which the rest of it can be reached. */
static void learn_moments(struct own_judge *j, struct model_set *out)
{
	const int end = j->judge->end;
	const struct tm_model *model = j->search.model;
	bool *lasts = malloc(MODEL_CONFIGS), *lasts_next = malloc(MODEL_CONFIGS);
	if (!lasts || !lasts_next)
		arena_exhausted();
	out->n = 0;
	for (int at = end; at >= 0; at--) {
		const struct model_set *set = &j->moment[at].set;
		bool more = true;
		for (unsigned i = 0; i < set->n; i++) {
			int to = at == end ? (int)i : goes_to(j, at, i);
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

/* An empty store. */
static void find_start(struct own_judge *j, struct model_set *out)
{
	const struct tm_model *model = j->search.model;
	memset(j->search.scratch, 0, sizeof(j->search.scratch));
	if (model->init)
		model->init(j->search.scratch, &j->setup->params);
	out->n = 0;
	model_set_add(model, out, j->search.scratch, 0);
}

/* judge.search */
static enum search_result search(struct judge *judge, const struct history *h, bool moment,
				 bool learn, int *op)
{
	struct own_judge *j = judge->by;
	struct closed *c = &j->closed[h->epoch];
	const bool note = learn && !judge->epoch;
	if (!judge->epoch)
		find_start(j, &c->dur);
	model_begin(&j->search, moment ? &c->buf : &c->dur);
	if (note)
		note_moment(j, 0);
	*op = follow(j, note);
	if (*op >= 0)
		return SEARCH_NONE;
	if (note && !j->search.full)
		learn_moments(j, &c->buf);
	if (learn && !j->search.full) {
		model_crash(&j->search);
		model_set_copy(j->search.model, &c->dur, &j->search.set);
	}
	return j->search.full ? SEARCH_FULL : SEARCH_FITS;
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
	judge_prepare(j->judge, j->h);
	sim_stop(j->sim, SIM_DONE);
}

static void judge_main(void *arg)
{
	struct own_judge *j = arg;
	const struct tm_store *store = j->setup->store;
	sim_construct(j->sim);
	if (j->want & OF_MODEL && j->judge->ready)
		judge_recovered(j->judge, j->h, j->want & OF_MODEL, NULL, j->out);
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

void own_judge_prepare(struct own_judge *j, struct judge *judge, const struct history *h)
{
	if (!by_model(j))
		return;
	judge->search = search;
	judge->by = j;
	j->judge = judge;
	j->h = h;
	if (!h->epoch) {
		judge_prepare(judge, h); /* the model has nothing to say yet */
		return;
	}
	show_history(j, h);
	run_in_sim(j, prepare_main); /* if it fails the judge is not ready */
}

void own_judge_recovered(struct own_judge *j, struct judge *judge, const struct history *h,
			 unsigned want, struct verdict out[TM_CONTRACTS])
{
	assert(h->epoch < WORLDS);
	want &= setup_judged(j->setup);
	if (!by_model(j))
		want &= ~OF_MODEL;
	j->h = h;
	j->judge = judge;
	j->want = want;
	j->out = out;
	if (j->setup->own && want & TM_BIT(TM_OK))
		judge_ok(j);
	show_history(j, h);
	/* As it stays if there is no judgement of it. */
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (want & (OF_MODEL | TM_BIT(TM_OWN)) & TM_BIT(c))
			out[c] = (struct verdict){
				.op = -1, .against = -1, .unsure = OF_MODEL & TM_BIT(c)};
	if (!run_in_sim(j, judge_main))
		out[TM_OWN] = (struct verdict){.broken = true, .op = -1, .against = -1};
}
