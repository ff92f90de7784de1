/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for linearizations: one key, one epoch, event by event.
 *
 * A configuration is one way in which the operations so far may have taken effect:
 * the current value, and which of the open operations (invoked, not returned) have
 * had theirs. All configurations that the past allows are kept. An operation takes
 * effect just in time: when it returns, every configuration in which it has not is
 * replaced by those in which it just has, with any other open updates before it.
 * None left: not linearizable. So the cost is linear in the history, and exponential
 * at worst in the number of operations that are open at one time.
 *
 * What keeps the sets small, each exact because values are unique and the whole
 * history is known:
 *   - a GET has its effect as soon as it is open and its answer is the current value;
 *   - a value that a GET still to be invoked will return is not overwritten;
 *   - an optional update (contracts.c) that no GET of the epoch can have read is left
 *     out; it may come last, so it is possible at the epoch's end (`loose`);
 *   - an acknowledged update that no GET of the epoch reads is `quiet`: with the next
 *     write in a configuration it is marked as done, meaning that it was right before that write or
 *     is still to come; when it returns, both are followed;
 *   - open optional DELs are alike: only the first one is tried;
 *   - a configuration is left out if another one can do all that it can: the value is
 *     the same, and the other has more GETs or quiet updates done, or fewer optional ones.
 *
 * At a power failure all that remains are the values: current in some configuration,
 * or of an optional update with effect in none. An epoch that starts with many of them
 * starts with the one that its GETs return, or else with VALUE_OTHER for all PUTs.
 *
 * Sets are bounded; SEARCH_FULL means that this search cannot tell.
 */
#include <stddef.h>
#include <string.h>
#include "checker/judge/contract.h"

#define OPEN	    64
#define CONFIGS	    512
#define VALUE_OTHER (-4) /* a value from before the epoch, which none of its GETs returns */

struct config {
	uint64_t done; /* bits of slots */
	int32_t value;
};

struct config_set {
	unsigned count;
	struct config config[CONFIGS];
};

struct search {
	const struct judge *j;
	const struct history *h;
	int32_t limit; /* the history ends before this position */
	int32_t now;   /* position of the event at hand */
	int32_t probe; /* a value that is to be looked at as if it were read, or VALUE_UNKNOWN */
	int32_t last_absent; /* where the last GET that returns absence returns, or -1 */
	uint64_t used;	     /* slots with an open operation; */
	uint64_t gets;	     /* of these: GETs, */
	uint64_t quiet;	     /* acknowledged updates that no GET reads, */
	uint64_t optional;   /* updates that may never take effect */
	bool full;
	int16_t slot[OPEN]; /* the operation in it */
	struct config_set set;
};

/* Everything that can follow from `c` can follow from `than`. */
static bool no_better(const struct search *s, const struct config *c, const struct config *than)
{
	uint64_t more = than->done & ~c->done, less = c->done & ~than->done;

	return c->value == than->value && !(more & ~(s->quiet | s->gets)) && !(less & ~s->optional);
}

static void set_add(struct search *s, struct config_set *set, struct config c)
{
	assert(set->count <= CONFIGS && !(c.done & ~s->used));
	for (unsigned i = 0; i < set->count; i++)
		if (no_better(s, &c, &set->config[i]))
			return;
	if (set->count == CONFIGS) {
		s->full = true;
		return;
	}
	set->config[set->count++] = c;
}

/* Can a GET of the epoch, or the probe, have read this update? */
static bool is_read(const struct search *s, int op)
{
	const struct history_op *o = &s->h->op[op];

	if (s->probe == o->value)
		return true;
	if (o->kind == HISTORY_PUT)
		return s->j->fact[op].last_read >= 0;
	return s->last_absent > o->invoked;
}

/* Note which values are read, and find the value from before the epoch that GETs return, or
 * VALUE_OTHER for none. false: they return two of them. */
static bool note_reads(struct search *s, struct judge *j, int first, int32_t *before)
{
	const struct history_op *ops = s->h->op;

	*before = VALUE_OTHER;
	s->last_absent = -1;
	for (int pos = first; pos >= 0; pos = j->next[pos]) {
		const struct history_op *o = &ops[j->at[pos]];

		if (o->kind == HISTORY_PUT)
			j->fact[j->at[pos]].last_read = -1;
		else if (o->kind == HISTORY_GET && o->value >= 0)
			j->fact[o->value].last_read = -1;
	}
	for (int pos = first; pos >= 0; pos = j->next[pos]) {
		const struct history_op *o = &ops[j->at[pos]];

		if (pos != o->invoked || !get_counts(s->h, o, s->limit))
			continue;
		if (o->value == VALUE_ABSENT) {
			s->last_absent = o->returned > s->last_absent ? o->returned
								      : s->last_absent;
			continue;
		}
		j->fact[o->value].last_read = pos;
		if (ops[o->value].epoch == o->epoch)
			continue;
		if (*before != VALUE_OTHER && *before != o->value)
			return false;
		*before = o->value;
	}
	return true;
}

static bool search_begin(struct search *s, struct judge *j, const struct history *h, unsigned key,
			 int first, int32_t limit, int32_t probe)
{
	const struct judge_key *k = &j->key[key];
	int32_t before;

	assert(key < h->keys && limit >= 0);
	assert(k->absent || k->some_value || probe != VALUE_UNKNOWN || k->lost || k->unsure);

	s->j = j;
	s->h = h;
	s->limit = limit;
	s->now = -1;
	s->probe = probe;
	s->used = s->gets = s->quiet = s->optional = 0;
	s->full = false;
	s->set.count = 0;
	if (!note_reads(s, j, first, &before))
		return false;
	if (probe != VALUE_UNKNOWN) {
		set_add(s, &s->set, (struct config){.value = VALUE_ABSENT});
		return before == VALUE_OTHER;
	}
	if (before >= 0) {
		if (j->fact[before].possible == k->generation)
			set_add(s, &s->set, (struct config){.value = before});
		return s->set.count > 0;
	}
	if (k->absent)
		set_add(s, &s->set, (struct config){.value = VALUE_ABSENT});
	if (k->some_value)
		set_add(s, &s->set, (struct config){.value = VALUE_OTHER});
	return s->set.count > 0;
}

/* The update in `slot` takes effect in *c. false: a value that is still read would go. */
static bool take_effect(const struct search *s, struct config *c, unsigned slot)
{
	assert(s->used & ~s->gets & ~c->done & UINT64_C(1) << slot); /* an update, once */
	if (c->value >= 0 && s->j->fact[c->value].last_read > s->now)
		return false;
	assert(s->h->op[s->slot[slot]].kind != HISTORY_GET);
	c->value = s->h->op[s->slot[slot]].value;
	c->done |= UINT64_C(1) << slot | s->quiet;
	for (uint64_t gets = s->gets; gets; gets &= gets - 1) {
		unsigned get = __builtin_ctzll(gets);

		if (s->h->op[s->slot[get]].value == c->value)
			c->done |= UINT64_C(1) << get;
	}
	return true;
}

/* Follow each update that can be the next one to take effect in `c`. */
static void expand(struct search *s, struct config c, uint64_t goal)
{
	uint64_t updates = s->used & ~s->gets & ~c.done & (~s->quiet | goal);
	bool optional_del = false;

	for (; updates; updates &= updates - 1) {
		unsigned slot = __builtin_ctzll(updates);
		struct config then = c;

		if (s->optional >> slot & 1 && s->h->op[s->slot[slot]].kind == HISTORY_DEL) {
			if (optional_del)
				continue;
			optional_del = true;
		}
		if (take_effect(s, &then, slot))
			set_add(s, &s->set, then);
	}
}

/* Keep what has, or now gets, `goal` done; with goal 0, what has or gets `value`. */
static bool reach(struct search *s, uint64_t goal, int32_t value)
{
	struct config_set out;

	out.count = 0;
	assert((s->used & goal) == goal && !(goal & (goal - 1)));
	for (unsigned i = 0; i < s->set.count; i++) {
		struct config c = s->set.config[i];
		bool there = goal ? c.done & goal : c.value == value;

		c.done &= ~goal;
		if (there)
			set_add(s, &out, c);
		if (!there || s->quiet & goal)
			expand(s, c, goal);
	}
	assert(out.count <= CONFIGS);
	s->set.count = out.count;
	memcpy(s->set.config, out.config, out.count * sizeof(out.config[0]));
	return out.count > 0;
}

static void drop_slots(struct search *s, uint64_t slots)
{
	assert((s->used & slots) == slots);
	s->used &= ~slots;
	s->gets &= ~slots;
	s->quiet &= ~slots;
	s->optional &= ~slots;
	assert(!((s->gets | s->quiet | s->optional) & ~s->used));
	for (unsigned i = 0; i < s->set.count; i++)
		s->set.config[i].done &= ~slots;
}

static void search_invoke(struct search *s, int op)
{
	const struct history_op *o = &s->h->op[op];
	bool get = o->kind == HISTORY_GET, optional = !get && !acknowledged(o, s->limit);
	uint64_t bit;
	unsigned slot;

	assert(o->invoked == s->now && o->invoked < s->limit);
	if (get ? !get_counts(s->h, o, s->limit) : optional && !is_read(s, op))
		return;
	if (!~s->used) {
		s->full = true;
		return;
	}
	slot = __builtin_ctzll(~s->used);
	bit = UINT64_C(1) << slot;
	s->slot[slot] = op;
	s->used |= bit;
	if (optional)
		s->optional |= bit;
	if (!get && !optional && !is_read(s, op))
		s->quiet |= bit;
	assert(!(s->optional & s->quiet)); /* what was acknowledged is not optional */
	if (!get)
		return;
	s->gets |= bit;
	for (unsigned i = 0; i < s->set.count; i++)
		if (s->set.config[i].value == o->value)
			s->set.config[i].done |= bit;
}

static bool search_return(struct search *s, int op)
{
	const struct history_op *o = &s->h->op[op];
	uint64_t all = ~UINT64_C(0), used = s->used;

	if (o->kind == HISTORY_GET ? !get_counts(s->h, o, s->limit) : !acknowledged(o, s->limit))
		return true;
	while (used && s->slot[__builtin_ctzll(used)] != op)
		used &= used - 1;
	assert(used); /* it was invoked, and is open */
	assert(o->returned == s->now);
	used &= -used;
	if (!reach(s, used, VALUE_UNKNOWN))
		return false;
	drop_slots(s, used);
	for (unsigned i = 0; i < s->set.count; i++)
		all &= s->set.config[i].done;
	if (all & s->optional)
		drop_slots(s, all & s->optional);
	return true;
}

/* From the event at `pos` to the epoch's end. */
static enum search_result search_run(struct search *s, int pos)
{
	for (; pos >= 0 && pos < s->limit && !s->full; pos = s->j->next[pos]) {
		int op = s->j->at[pos];

		s->now = pos;
		if (s->h->op[op].invoked == pos)
			search_invoke(s, op);
		else if (!search_return(s, op) && !s->full)
			return SEARCH_NONE;
	}
	return s->full ? SEARCH_FULL : SEARCH_FITS;
}

static void make_possible(struct judge *j, struct judge_key *k, const struct history *h, int op)
{
	if (h->op[op].kind == HISTORY_DEL) {
		k->absent = true;
		return;
	}
	k->some_value = true;
	j->fact[op].possible = k->generation;
}

/* The power fails: what can be the value now? */
static void learn_values(const struct search *s, struct judge *j, struct judge_key *k)
{
	bool other = false;

	assert(s->set.count && !s->full);
	for (unsigned i = 0; i < s->set.count; i++)
		other |= s->set.config[i].value == VALUE_OTHER;
	if (!other)
		k->generation++;
	k->some_value = other;
	k->absent = false;
	for (unsigned i = 0; i < s->set.count; i++) {
		const struct config *c = &s->set.config[i];

		if (c->value >= 0)
			make_possible(j, k, s->h, c->value);
		k->absent |= c->value == VALUE_ABSENT;
		for (uint64_t late = s->optional & ~c->done; late; late &= late - 1)
			make_possible(j, k, s->h, s->slot[__builtin_ctzll(late)]);
	}
	for (int pos = k->first_event; pos >= 0; pos = j->next[pos]) {
		const struct history_op *o = &s->h->op[j->at[pos]];
		bool loose = o->kind != HISTORY_GET && !acknowledged(o, s->limit) &&
			     !is_read(s, j->at[pos]);

		if (loose)
			make_possible(j, k, s->h, j->at[pos]);
	}
	assert(k->absent || k->some_value); /* a key always has a state */
}

enum search_result search_epoch(struct judge *j, const struct history *h, unsigned key,
				int32_t limit, bool learn)
{
	struct judge_key *k = &j->key[key];
	enum search_result result;
	struct search s;

	if (!search_begin(&s, j, h, key, k->first_event, limit, VALUE_UNKNOWN))
		return SEARCH_NONE;
	result = search_run(&s, k->first_event);
	if (learn && result == SEARCH_FITS)
		learn_values(&s, j, k);
	return result;
}

static void search_copy(struct search *to, const struct search *from)
{
	memcpy(to, from, offsetof(struct search, set.config));
	memcpy(to->set.config, from->set.config, from->set.count * sizeof(from->set.config[0]));
}

/* Does a read of `value` between the events so far and the one at `next` fit? */
static enum search_result probe_here(const struct search *s, int32_t value, int next)
{
	struct search fork;
	unsigned same = 0;

	search_copy(&fork, s);
	if (!reach(&fork, 0, value))
		return fork.full ? SEARCH_FULL : SEARCH_NONE;
	for (unsigned i = 0; i < s->set.count && fork.set.count == s->set.count; i++)
		same += s->set.config[i].value == fork.set.config[i].value &&
			s->set.config[i].done == fork.set.config[i].done;
	if (same == s->set.count) /* nothing was lost, and the epoch is known to fit */
		return fork.full ? SEARCH_FULL : SEARCH_FITS;
	return search_run(&fork, next);
}

static void fill(uint64_t *bits, int from, int to)
{
	for (int i = from; i <= to; i++)
		bits[i / 64] |= UINT64_C(1) << i % 64;
}

enum search_result search_times(struct judge *j, const struct history *h, unsigned key,
				int32_t value, uint64_t *times)
{
	int pos = j->key[key].epoch0_event, from = 0, crash = h->crash_at[0];
	struct search s;

	assert(h->epoch > 0 && j->epoch > 0);
	assert(value >= VALUE_ABSENT);
	memset(times, 0, ((unsigned)crash / 64 + 1) * sizeof(times[0]));
	if (!search_begin(&s, j, h, key, pos, crash, value))
		return SEARCH_NONE;
	for (;;) {
		enum search_result result = probe_here(&s, value, pos);

		if (result == SEARCH_FULL)
			return SEARCH_FULL;
		if (result == SEARCH_FITS)
			fill(times, from, pos < 0 ? crash : pos);
		if (pos < 0)
			return SEARCH_FITS;
		s.now = pos;
		if (h->op[j->at[pos]].invoked == pos)
			search_invoke(&s, j->at[pos]);
		else if (!search_return(&s, j->at[pos]))
			return s.full ? SEARCH_FULL : SEARCH_NONE;
		if (s.full)
			return SEARCH_FULL;
		from = pos + 1;
		pos = j->next[pos];
	}
}
