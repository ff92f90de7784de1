/* SPDX-License-Identifier: BSD-3-Clause */
/* See register.h. */
#include "checker/judge/register.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/history.h"
#include "core/rt/arena.h"

/* --- the model --- */

static bool apply(void *state, const struct tm_event *e)
{
	const struct register_op *op = e->call.value;
	int32_t *value = state;
	switch ((enum register_kind)op->kind) {
	case REGISTER_GET:
		return *value == op->value;
	case REGISTER_CAS:
		if (op->failed)
			return *value != op->old;
		if (*value != op->old)
			return false;
		break;
	default:
		break;
	}
	*value = op->value;
	return true;
}

static bool looks(const struct tm_event *e)
{
	const struct register_op *op = e->call.value;
	return op->kind == REGISTER_GET || op->failed;
}

static bool alike(const struct tm_event *a, const struct tm_event *b)
{
	const struct register_op *x = a->call.value, *y = b->call.value;
	return x->kind == y->kind && x->value == y->value && x->old == y->old;
}

static const struct model_facts facts = {looks, alike};

static const struct tm_model model = {.bytes = sizeof(int32_t), .apply = apply};

/* Zeroed. */
static void *array_new(size_t n, size_t each)
{
	void *array = calloc(n + 1, each);
	if (!array)
		arena_exhausted();
	return array;
}

/* --- the search --- */

/* An operation begins, or is answered. */
struct moment {
	uint32_t at, op;
	bool answer;
};

static int compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static struct moment *moments_of(const struct register_op *op, unsigned n, unsigned *moments)
{
	struct moment *moment = array_new(2 * (size_t)n, sizeof(*moment));
	*moments = 0;
	for (unsigned i = 0; i < n; i++) {
		moment[(*moments)++] = (struct moment){op[i].begun, i, false};
		if (op[i].answered)
			moment[(*moments)++] = (struct moment){op[i].ended, i, true};
	}
	qsort(moment, *moments, sizeof(*moment), compare_moments);
	return moment;
}

/* Can anything have told whether the update took effect, which was not answered? If not it may be
 * the last one, and need not be followed. `seen`, by value: what a GET or a CAS may have found;
 * `failed`: some CAS found another value. */
static bool is_loose(const struct register_op *op, const bool *seen, bool failed)
{
	return !op->answered && !failed && (op->kind == REGISTER_PUT || op->kind == REGISTER_DEL) &&
	       !seen[op->value + 1];
}

/* What may be found, of values up to the largest, by those that are not `gone`. */
static bool *note_seen(const struct register_op *op, unsigned n, const bool *gone, bool *failed)
{
	int32_t most = 0;
	for (unsigned i = 0; i < n; i++) {
		most = op[i].value > most ? op[i].value : most;
		most = op[i].old > most ? op[i].old : most;
	}
	bool *seen = array_new((size_t)most + 1, sizeof(*seen));
	*failed = false;
	for (unsigned i = 0; i < n; i++) {
		if (gone && gone[i])
			continue;
		*failed |= op[i].failed;
		if (op[i].kind == REGISTER_GET)
			seen[op[i].value + 1] |= op[i].answered;
		if (op[i].kind == REGISTER_CAS)
			seen[op[i].old + 1] |= !op[i].failed;
	}
	return seen;
}

enum register_result register_follow(struct model_search *s, const struct register_op *op,
				     unsigned n, unsigned *lost)
{
	struct tm_event *event = array_new(n, sizeof(*event));
	struct model_set start = {0};
	const int32_t absent = REGISTER_ABSENT;
	unsigned moments, fits = 1;
	bool failed, *seen = note_seen(op, n, NULL, &failed);
	struct moment *moment = moments_of(op, n, &moments);
	s->model = &model;
	s->event = event;
	s->facts = &facts;
	model_set_add(&model, &start, (const uint8_t *)&absent, 0);
	model_begin(s, &start);
	for (unsigned i = 0; i < n; i++) {
		event[i].answered = op[i].answered;
		event[i].call.value = &op[i];
	}
	for (unsigned i = 0; i < moments && fits && !s->full; i++) {
		unsigned o = moment[i].op;
		/* What may have been asked without an answer has told nothing. */
		if (is_loose(&op[o], seen, failed) ||
		    (op[o].kind == REGISTER_GET && !event[o].answered))
			continue;
		if (!moment[i].answer)
			model_invoke(s, o);
		else if (!model_return(s, o))
			fits = 0, *lost = o;
	}
	model_crash(s);
	for (unsigned i = 0; i < n && fits && !s->full; i++)
		if (is_loose(&op[i], seen, failed))
			s->full |= !model_set_add(&model, &s->set, (const uint8_t *)&op[i].value,
						  0);
	model_set_free(&start);
	free(event);
	free(seen);
	free(moment);
	return s->full ? REGISTER_FULL : fits ? REGISTER_FITS : REGISTER_NONE;
}

bool register_may_be(struct model_search *s, int32_t value)
{
	return model_set_find(&model, &s->set, (const uint8_t *)&value, 0) >= 0;
}

/* --- the fast path --- */

/* The history of a key whose values tell its PUTs apart. False: they do not. */
static bool make_history(const struct register_op *op, unsigned n, struct history *h)
{
	int32_t most = 0;
	unsigned moments;
	for (unsigned i = 0; i < n; i++)
		most = op[i].value > most ? op[i].value : most;
	int32_t *put = array_new((size_t)most, sizeof(*put));
	struct moment *moment = moments_of(op, n, &moments);
	bool simple = n <= HISTORY_OPS;
	history_reset(h, 1);
	for (unsigned i = 0; i < moments && simple; i++) {
		const struct register_op *o = &op[moment[i].op];
		static const uint8_t kinds[] = {HISTORY_PUT, HISTORY_GET, HISTORY_DEL};
		if (o->kind == REGISTER_CAS) {
			simple = false;
		} else if (!moment[i].answer) {
			simple = o->kind != REGISTER_PUT || !put[o->value];
			int at = history_invoke(h, 1, kinds[o->kind], 0);
			if (o->kind == REGISTER_PUT)
				put[o->value] = at + 1;
		} else if (o->kind == REGISTER_GET && o->value >= 0) {
			simple = put[o->value]; /* else no PUT had written that */
			history_return(h, (int)moment[i].op, 0, put[o->value] - 1);
		} else {
			history_return(h, (int)moment[i].op, 0, VALUE_ABSENT);
		}
	}
	free(put);
	free(moment);
	return simple;
}

enum register_result register_judge(const struct register_op *op, unsigned n, unsigned *lost)
{
	struct history *h = array_new(1, sizeof(*h));
	struct model_search s = {.model = &model};
	struct verdict v[TM_CONTRACTS] = {{0}};
	enum register_result result = REGISTER_FULL;
	if (make_history(op, n, h)) {
		contracts_judge(h, TM_BIT(TM_LIN), NULL, v);
		if (!v[TM_LIN].unsure || v[TM_LIN].broken)
			result = v[TM_LIN].broken ? REGISTER_NONE : REGISTER_FITS;
		*lost = v[TM_LIN].broken ? (unsigned)v[TM_LIN].op : 0;
	}
	free(h);
	if (result == REGISTER_FULL)
		result = register_follow(&s, op, n, lost);
	model_set_free(&s.set);
	return result;
}

/* --- the shortest telling --- */

/* Leave out those that are `gone`, but for updates that something left may have found: without
 * any other one an order explains what is left as it did before. Returns the number left in `out`;
 * 0: an order explains them, or none is gone. */
static unsigned leave_out(const struct register_op *op, unsigned n, bool *gone,
			  struct register_op *out)
{
	unsigned left = 0, lost;
	for (bool more = true; more;) {
		bool failed, *seen = note_seen(op, n, gone, &failed);
		more = false;
		for (unsigned i = 0; i < n; i++) {
			if (!gone[i] || op[i].kind == REGISTER_GET || op[i].failed ||
			    !(failed || seen[op[i].value + 1]))
				continue;
			gone[i] = false;
			more = true;
		}
		free(seen);
	}
	for (unsigned i = 0; i < n; i++)
		if (!gone[i])
			out[left++] = op[i];
	return left && left < n && register_judge(out, left, &lost) == REGISTER_NONE ? left : 0;
}

/* Larger pieces first; those of one operation, as long as any can go. */
unsigned register_shrink(struct register_op *op, unsigned n)
{
	struct register_op *out = array_new(n, sizeof(*out));
	bool *gone = array_new(n, sizeof(*gone));
	for (unsigned piece = n / 2 + 1, shorter = 0; piece; piece = shorter ? piece : piece / 2) {
		shorter = 0;
		for (unsigned end = n; end;) {
			unsigned from = end > piece ? end - piece : 0;
			memset(gone, 0, n * sizeof(*gone));
			memset(gone + from, 1, end - from);
			unsigned left = leave_out(op, n, gone, out);
			end = from;
			if (!left)
				continue;
			memcpy(op, out, left * sizeof(*op));
			n = left;
			end = end < n ? end : n;
			shorter = piece == 1;
		}
	}
	free(out);
	free(gone);
	return n;
}
