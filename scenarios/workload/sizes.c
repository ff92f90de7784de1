/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lengths at edges, and a store's limits.
 *
 * A length is wrong by one, a header is not counted, nothing is taken for something: stores break
 * where a length meets a limit, and hardly ever between limits. So lengths are drawn there:
 *
 *	short	0, 1, and 7, 8, 9: around a word, which is also what an identity takes
 *	line	the value, with what lies before it, ends a byte before a line's end, at it, or a
 *		byte after it, in one of the first lines
 *	packet	likewise, of one of the first two packets
 *	next	1, 8, or 64 bytes less, or more, than the key's value before: what the
 *		longer one has left shows
 *	same	as long as the key's value before: recycled space fits exactly
 *	longest	as long as a value may be; rare, for it costs most
 *
 * In a share of the workloads all keys are as long as a key may be, and all values have one length,
 * with which an object ends at a line's end: what has been laid out for the greatest length is
 * then filled to the last byte.
 *
 * Keys get one of their own edges. They keep the number at their end, by which they differ and
 * by which some stores place them.
 */
#include <errno.h>
#include <string.h>
#include "scenarios/workload/workload.h"
#include "scenarios/workload/zipf.h"

#define LINES	4 /* whose ends are tried */
#define PACKETS 2
#define RARE	96 /* one workload in so many has the longest value */
#define LENGTHS 32 /* different ones that are told apart where a limit is near */
#define FULL	6  /* in one in so many all lengths are those that fill lines and segments */

enum edge { EDGE_SHORT, EDGE_LINE, EDGE_PACKET, EDGE_NEXT, EDGE_SAME };

struct sizes {
	const struct tm_store *store;
	unsigned mtu;
	uint64_t state;
	/* The last length, by key, and for operations without one; -1: there was none. */
	int32_t last[WORKLOAD_MAX_KEYS + 1];
};

static unsigned draw(struct sizes *s, unsigned n)
{
	return random_below(&s->state, n);
}

static int32_t longest(const struct tm_store *store)
{
	return store->max_vlen ? (int32_t)store->max_vlen : TM_MAX_VALUE;
}

static int32_t limited(const struct tm_store *store, int32_t vlen)
{
	if (vlen > longest(store))
		vlen = longest(store);
	return vlen < (int32_t)store->min_vlen ? (int32_t)store->min_vlen : vlen;
}

uint32_t workload_limit_vlen(const struct tm_store *store, uint32_t vlen)
{
	return (uint32_t)limited(store, (int32_t)vlen);
}

/* What lies before the value: nothing, or one of what the store has declared. */
static int32_t draw_overhead(struct sizes *s, unsigned klen)
{
	const struct tm_overhead *o = s->store->overheads;
	unsigned n = 0;

	while (o && o[n].what)
		n++;
	unsigned pick = draw(s, n + 1);
	return pick == n ? 0 : (int32_t)(o[pick].bytes + (o[pick].key ? klen : 0));
}

/* With what lies before it the value ends beside or at the end of one of `n` units. */
static int32_t draw_end(struct sizes *s, unsigned unit, unsigned n, unsigned klen)
{
	int32_t end = (int32_t)((1 + draw(s, n)) * unit) - 1 + (int32_t)draw(s, 3);
	int32_t before = draw_overhead(s, klen);

	while (end < before) /* the header alone fills the first ones */
		end += (int32_t)unit;
	return end - before;
}

static int32_t draw_vlen(struct sizes *s, unsigned klen, int32_t last)
{
	static const uint8_t edges[] = {EDGE_SHORT, EDGE_SHORT, EDGE_LINE, EDGE_LINE,
					EDGE_LINE,  EDGE_LINE,	EDGE_NEXT, EDGE_NEXT,
					EDGE_NEXT,  EDGE_SAME,	EDGE_SAME, EDGE_PACKET};
	static const uint8_t shorts[] = {0, 0, 0, 1, 7, 8, 9};
	static const uint8_t steps[] = {1, 8, TM_LINE};
	enum edge edge = (enum edge)edges[draw(s, sizeof(edges))];
	int32_t step = steps[draw(s, sizeof(steps))];

	if (last < 0 && (edge == EDGE_NEXT || edge == EDGE_SAME))
		edge = EDGE_LINE;
	switch (edge) {
	case EDGE_SHORT:
		return shorts[draw(s, sizeof(shorts))];
	case EDGE_PACKET:
		return draw_end(s, s->mtu, PACKETS, klen);
	case EDGE_NEXT:
		if (draw(s, 4) == 0)
			return last + step;
		return last > step ? last - step : last / 2;
	case EDGE_SAME:
		return last;
	case EDGE_LINE:
		break;
	}
	return draw_end(s, TM_LINE, LINES, klen);
}

#define NO_KEY WORKLOAD_MAX_KEYS

static int32_t next_vlen(struct sizes *s, const struct workload *w, unsigned key)
{
	unsigned klen = key == NO_KEY ? 0 : w->key[key].klen;
	int32_t vlen = limited(s->store, draw_vlen(s, klen, s->last[key]));

	s->last[key] = vlen;
	return vlen;
}

/* The key's number, with so many letters before it that it is `to` bytes long; if no other key
 * has that name. */
static void lengthen_key(struct workload *w, unsigned k, unsigned to)
{
	unsigned digits = 0;
	struct workload_key *key = &w->key[k];
	char name[TM_MAX_KEY];

	while (digits < key->klen && key->name[key->klen - digits - 1] >= '0' &&
	       key->name[key->klen - digits - 1] <= '9')
		digits++;
	if (to < digits || !digits)
		return;
	memset(name, 'k', sizeof(name));
	memcpy(name + to - digits, key->name + key->klen - digits, digits);
	if (workload_key_find(w, name, to) >= 0)
		return;
	memset(key->name, 0, sizeof(key->name));
	memcpy(key->name, name, to);
	key->klen = (uint8_t)to;
}

static void resize_key(struct sizes *s, struct workload *w, unsigned k)
{
	static const uint8_t lengths[] = {1, 7, 8, 9, 16, TM_MAX_KEY - 1, TM_MAX_KEY};

	lengthen_key(w, k, lengths[draw(s, sizeof(lengths))]);
}

/* One length for all values: with the first thing that lies before it, and the longest key. */
static void fill_lines(struct sizes *s, struct workload *w)
{
	const struct tm_overhead *o = s->store->overheads;
	int32_t before = o && o->what ? (int32_t)(o->bytes + (o->key ? TM_MAX_KEY : 0)) : 0;
	int32_t end = (int32_t)(1 + draw(s, LINES)) * TM_LINE;

	while (end < before)
		end += TM_LINE;
	for (unsigned k = 0; k < w->keys; k++) {
		lengthen_key(w, k, TM_MAX_KEY);
		if (w->key[k].loaded >= 0)
			w->key[k].loaded = limited(s->store, end - before);
	}
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			if (workload_op_valued(w, &w->client[c].op[i]))
				w->client[c].op[i].vlen = (uint32_t)limited(s->store, end - before);
}

void workload_resize(struct workload *w, const struct tm_store *store, unsigned mtu, uint64_t seed)
{
	struct sizes s = {.store = store, .mtu = mtu, .state = seed};

	if ((seed * 0x9e3779b97f4a7c15u >> 32) % FULL == 0) {
		fill_lines(&s, w);
		return;
	}
	s.last[NO_KEY] = -1;
	for (unsigned k = 0; k < w->keys; k++) {
		s.last[k] = -1;
		resize_key(&s, w, k);
		if (w->key[k].loaded >= 0)
			w->key[k].loaded = next_vlen(&s, w, k);
	}
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++) {
			struct workload_op *op = &w->client[c].op[i];

			if (workload_op_valued(w, op))
				op->vlen = (uint32_t)next_vlen(
					&s, w, workload_op_keys(w, op) ? op->key : NO_KEY);
		}
	if (w->keys && w->key[0].loaded >= 0 && draw(&s, RARE) == 0)
		w->key[0].loaded = longest(store);
}

/* --- a store's limits --- */

#define SHAPE_KEYS 3 /* up to so many keys, it matters which are the same; more are drawn */

/* Calls `visit` with each length, and writes back what it returns. */
static void each_length(struct workload *w, int32_t (*visit)(void *arg, int32_t vlen), void *arg)
{
	for (unsigned k = 0; k < w->keys; k++)
		if (w->key[k].loaded >= 0)
			w->key[k].loaded = visit(arg, w->key[k].loaded);
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++) {
			struct workload_op *op = &w->client[c].op[i];

			if (workload_op_valued(w, op))
				op->vlen = (uint32_t)visit(arg, (int32_t)op->vlen);
		}
}

/* The different lengths of a workload, in order, and what becomes of them. */
struct lengths {
	const struct tm_store *store;
	unsigned n;
	bool beyond; /* some are not within the limits */
	int32_t from[LENGTHS], to[LENGTHS];
};

static int32_t note_length(void *arg, int32_t vlen)
{
	struct lengths *l = arg;
	unsigned at = 0;

	l->beyond |= vlen != limited(l->store, vlen);
	while (at < l->n && l->from[at] < vlen)
		at++;
	if ((at < l->n && l->from[at] == vlen) || l->n == LENGTHS)
		return vlen;
	memmove(&l->from[at + 1], &l->from[at], (l->n - at) * sizeof(l->from[0]));
	l->from[at] = vlen;
	l->n++;
	return vlen;
}

static int32_t new_length(void *arg, int32_t vlen)
{
	const struct lengths *l = arg;

	for (unsigned i = 0; i < l->n; i++)
		if (l->from[i] == vlen)
			return l->to[i];
	return limited(l->store, vlen);
}

/* Lengths first..end-1 get values that are evenly spread above `low`, up to `high`. */
static void spread(struct lengths *l, unsigned first, unsigned end, int32_t low, int32_t high)
{
	for (unsigned i = first; i < end; i++) {
		int32_t vlen = low +
			       (high - low) * (int32_t)(i - first + 1) / (int32_t)(end - first);

		l->to[i] = limited(l->store, vlen ? vlen : 1);
	}
}

/* What fits stays, and so does the order: the longer of two lengths stays longer, if there is room
 * for that. */
static void limit_lengths(struct workload *w, const struct tm_store *store)
{
	struct lengths l = {.store = store};
	const int32_t min = (int32_t)store->min_vlen, max = longest(store);
	unsigned first = 0, end;

	each_length(w, note_length, &l);
	if (!l.beyond)
		return;
	for (; first < l.n && l.from[first] < min; first++)
		l.to[first] = min + (int32_t)first;
	for (end = first; end < l.n && l.from[end] <= max; end++)
		l.to[end] = l.from[end];
	if ((!first || end == first || l.from[first] > l.to[first - 1]) &&
	    max - (end ? l.to[end - 1] : 0) >= (int32_t)(l.n - end)) {
		spread(&l, end, l.n, end ? l.to[end - 1] : 0, max);
	} else {
		/* An empty value stays empty: that is a case of its own, not only a short one. */
		bool empty = !min && !l.from[0];

		l.to[0] = 0;
		spread(&l, empty, l.n, min ? min - 1 : 0, max);
	}
	each_length(w, new_length, &l);
}

/* Keys that no operation names go first. Then several of many keys become one. False: neither
 * does. */
static bool limit_keys(struct workload *w, unsigned most)
{
	uint16_t to[WORKLOAD_MAX_KEYS];
	bool used[WORKLOAD_MAX_KEYS] = {false}, alike = true;
	unsigned names = 0, kept = 0, spare;

	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			for (unsigned n = 0; n < workload_op_keys(w, &w->client[c].op[i]); n++)
				used[w->client[c].op[i].keys[n]] = true;
	for (unsigned k = 0; k < w->keys; k++) {
		names += used[k];
		alike &= (w->key[k].loaded >= 0) == (w->key[0].loaded >= 0);
	}
	if (names > most && (names <= SHAPE_KEYS || !alike || w->calls))
		return false;
	spare = names < most ? most - names : 0;
	for (unsigned k = 0; k < w->keys; k++) {
		to[k] = (uint16_t)(kept < most ? kept : k % most);
		if ((!used[k] && !spare) || kept == most)
			continue;
		spare -= !used[k];
		w->key[kept++] = w->key[k];
	}
	w->keys = kept;
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			for (unsigned n = 0; n < workload_op_keys(w, &w->client[c].op[i]); n++)
				w->client[c].op[i].keys[n] = to[w->client[c].op[i].keys[n]];
	return true;
}

bool workload_limit(struct workload *w, const struct tm_store *store)
{
	bool within = !store->max_keys || w->keys <= store->max_keys ||
		      limit_keys(w, store->max_keys);

	limit_lengths(w, store);
	return within;
}

bool workload_same(const struct workload *a, const struct workload *b)
{
	bool same = a->keys == b->keys && a->clients == b->clients && a->calls == b->calls;

	for (unsigned k = 0; k < a->keys && same; k++)
		same = a->key[k].loaded == b->key[k].loaded &&
		       !strcmp(a->key[k].name, b->key[k].name);
	for (unsigned c = 0; c < a->clients && same; c++)
		same = a->client[c].ops == b->client[c].ops;
	for (unsigned c = 0; c < a->clients && same; c++)
		for (unsigned i = 0; i < a->client[c].ops && same; i++) {
			const struct workload_op *x = &a->client[c].op[i], *y = &b->client[c].op[i];

			same = x->kind == y->kind && x->call == y->call && x->vlen == y->vlen &&
			       x->same == y->same && x->txn == y->txn &&
			       !memcmp(x->keys, y->keys, sizeof(x->keys));
		}
	return same;
}

bool workload_fits(const struct workload *w, const struct tm_store *store)
{
	bool loaded = false, plain = store->put || !store->calls;

	for (unsigned k = 0; k < w->keys; k++)
		loaded |= w->key[k].loaded >= 0;
	if (loaded && !plain)
		return false;
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++) {
			unsigned kind = w->client[c].op[i].kind;

			if (w->client[c].op[i].txn && !store->txn)
				return false;
			if (kind == OP_CALL ? w->calls != store->calls
					    : workload_op_keyed(kind) && !plain)
				return false;
		}
	return true;
}

int workload_check(const struct workload *w, const struct tm_store *store,
		   char expected[WORKLOAD_EXPECTED])
{
	struct workload within;

	if (!workload_fits(w, store)) {
		snprintf(expected, WORKLOAD_EXPECTED, "%.40s has %s", store->name,
			 store->put ? "no such operations"
				    : "operations of its own only (tidemark list)");
		return -EINVAL;
	}

	if (store->max_keys && w->keys > store->max_keys) {
		snprintf(expected, WORKLOAD_EXPECTED, "%.40s takes at most %u keys", store->name,
			 store->max_keys);
		return -EINVAL;
	}
	int error = workload_copy(&within, w);
	if (error)
		return error;
	workload_limit(&within, store);
	if (!workload_same(&within, w)) {
		snprintf(expected, WORKLOAD_EXPECTED, "%.40s takes values of %u to %d bytes",
			 store->name, store->min_vlen, (int)longest(store));
		error = -EINVAL;
	}
	workload_free(&within);
	return error;
}
