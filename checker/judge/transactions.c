/* SPDX-License-Identifier: BSD-3-Clause */
/* See transactions.h. */
#include "checker/judge/transactions.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/contract.h"
#include "core/array.h"
#include "core/rt/arena.h"

#define FIRST 0 /* the transaction before all others */

struct node {
	int16_t first;	      /* operation; -1: of FIRST */
	int32_t begun, ended; /* where it had taken effect at the latest; NEVER */
	bool committed;
	bool in; /* of the graph: it is committed, or what it wrote was read */
};

struct edge {
	int16_t from, to, get;
	uint8_t kind; /* enum transaction_edge */
};

/* A GET that counts, and tells something of other transactions. */
struct read {
	int16_t node, source, get;
	uint16_t key;
};

/* The last one of its transaction to a key. */
struct write {
	int16_t node, op;
	uint16_t key;
};

struct graph {
	const struct history *h;
	unsigned ops, n; /* operations, nodes */
	unsigned words;	 /* of a row of `reach` */
	struct node node[TRANSACTIONS_MOST];
	int16_t of[HISTORY_OPS]; /* the node of an operation */
	uint64_t *reach;	 /* row a, bit b: a comes before b */
	struct edge *edge;
	unsigned edges, edge_room;
	struct read read[HISTORY_OPS];
	struct write write[HISTORY_OPS];
	unsigned reads, writes, tries;
	bool deleted[HISTORY_KEYS]; /* then "not found" does not say by whom */
	struct verdict *v;
	struct transaction_cycle *cycle;
};

int transaction_first(const struct history *h, int op)
{
	assert(op >= 0 && (unsigned)op < h->ops);
	while (h->op[op].joined)
		op--;
	assert(op >= 0);
	return op;
}

unsigned transaction_size(const struct history *h, int first)
{
	unsigned n = 1;
	while (first + n < h->ops && h->op[first + n].joined)
		n++;
	return n;
}

bool transactions_in(const struct history *h)
{
	for (unsigned i = 0; i < h->ops; i++)
		if (h->op[i].joined)
			return true;
	return false;
}

/* --- what is broken --- */

static bool before(const struct graph *g, int a, int b)
{
	return g->reach[a * g->words + b / 64] >> b % 64 & 1;
}

static bool in_time(const struct graph *g, int a, int b)
{
	return g->node[a].ended < g->node[b].begun;
}

static int write_of(const struct graph *g, int node, unsigned key)
{
	for (int i = (int)g->writes - 1; i >= 0; i--)
		if (g->write[i].node == node && g->write[i].key == key)
			return i;
	return -1;
}

/* What the transaction leaves there: an operation, or -1. */
static int last_write(const struct graph *g, int node, unsigned key)
{
	int at = write_of(g, node, key);
	return at < 0 ? -1 : g->write[at].op;
}

/* The pair that shows it: the latest GET of a cycle, and what it should have known of. */
static void note_pair(struct graph *g, const struct edge *e)
{
	if (e->get < 0 || (g->v->broken && g->v->op >= e->get))
		return;
	unsigned key = g->h->op[e->get].key;
	int writer = e->kind == EDGE_OVERWRITTEN ? e->to : e->from;
	*g->v = (struct verdict){
		.broken = true, .op = e->get, .against = (int16_t)last_write(g, writer, key)};
}

/* A known edge from one to the other, or the time. */
static struct edge edge_between(const struct graph *g, int from, int to)
{
	for (unsigned i = 0; i < g->edges; i++)
		if (g->edge[i].from == from && g->edge[i].to == to)
			return g->edge[i];
	return (struct edge){(int16_t)from, (int16_t)to, -1, EDGE_TIME};
}

static bool is_edge(const struct graph *g, int from, int to)
{
	return in_time(g, from, to) || edge_between(g, from, to).kind != EDGE_TIME;
}

/* Why what the edge's GET has read is older than what the edge's end put there. */
static int because(const struct graph *g, const struct edge *e)
{
	int value = e->kind == EDGE_OVERWRITTEN ? g->h->op[e->get].value : VALUE_ABSENT;
	if (value < 0 || in_time(g, g->of[value], e->to))
		return -1;
	struct edge known = edge_between(g, g->of[value], e->to);
	return known.kind == EDGE_OVERWRITTEN ? known.get : -1;
}

static void add_step(struct graph *g, const struct edge *e)
{
	note_pair(g, e);
	if (g->cycle && g->cycle->steps < TRANSACTION_STEPS)
		g->cycle->step[g->cycle->steps++] = (struct transaction_step){
			.first = g->node[e->from].first,
			.edge = e->kind,
			.get = e->get,
			.because = (int16_t)because(g, e)};
}

/* A shortest way from the end of this edge to its beginning closes the cycle. */
static void note_cycle(struct graph *g, const struct edge *closing)
{
	int16_t back[TRANSACTIONS_MOST], queue[TRANSACTIONS_MOST];
	unsigned head = 0, tail = 0;
	*g->v = (struct verdict){.op = -1, .against = -1};
	if (g->cycle)
		g->cycle->steps = 0;
	add_step(g, closing);
	memset(back, -1, sizeof(back));
	/* From the edge's beginning, against the direction of the edges. */
	back[queue[tail++] = closing->from] = closing->from;
	while (head < tail && back[closing->to] < 0) {
		int at = queue[head++];
		for (int a = 0; a < (int)g->n; a++)
			if (back[a] < 0 && is_edge(g, a, at))
				back[queue[tail++] = (int16_t)a] = (int16_t)at;
	}
	assert(back[closing->to] >= 0);
	for (int at = closing->to; at != closing->from; at = back[at]) {
		struct edge e = edge_between(g, at, back[at]);
		add_step(g, &e);
	}
	assert(g->v->broken);
}

/* False: that closes a cycle. */
static bool add_edge(struct graph *g, int from, int to, enum transaction_edge kind, int get)
{
	const struct edge e = {(int16_t)from, (int16_t)to, (int16_t)get, (uint8_t)kind};
	if (from == to || before(g, to, from)) {
		note_cycle(g, &e);
		return false;
	}
	if (before(g, from, to) && kind != EDGE_READ) /* that one says more than the time */
		return true;
	if (!ARRAY_ROOM_FOR_ONE(g->edge, g->edges))
		arena_exhausted();
	g->edge[g->edges++] = e;
	const uint64_t *row = g->reach + to * g->words;
	for (int a = 0; a < (int)g->n; a++) {
		if (a != from && !before(g, a, from))
			continue;
		uint64_t *out = g->reach + a * g->words;
		for (unsigned i = 0; i < g->words; i++)
			out[i] |= row[i];
		out[to / 64] |= UINT64_C(1) << to % 64;
	}
	return true;
}

/* To try edges, and take them back. */
static uint64_t *keep(const struct graph *g)
{
	const size_t bytes = (size_t)g->n * g->words * sizeof(*g->reach);
	uint64_t *kept = malloc(bytes);
	if (!kept)
		arena_exhausted();
	return memcpy(kept, g->reach, bytes);
}

static void take_back(struct graph *g, const uint64_t *kept, unsigned edges)
{
	memcpy(g->reach, kept, (size_t)g->n * g->words * sizeof(*g->reach));
	g->edges = edges;
}

/* --- the transactions --- */

static bool committed(const struct history_op *o)
{
	return o->returned >= 0 && (o->error == 0 || o->error == -ENOTUNIQ);
}

/* An update of the same key before it, in its transaction, or -1. */
static int own_update(const struct history *h, int op)
{
	for (int i = op; h->op[i].joined; i--)
		if (h->op[i - 1].key == h->op[op].key && h->op[i - 1].kind != HISTORY_GET)
			return i - 1;
	return -1;
}

static void add_node(struct graph *g, int first, unsigned ops)
{
	const struct history *h = g->h;
	const struct history_op *o = &h->op[first], *last = &h->op[first + ops - 1];
	bool is = committed(o);
	for (unsigned i = 0; i < ops; i++)
		g->of[first + i] = (int16_t)g->n;
	g->node[g->n++] = (struct node){
		.first = (int16_t)first,
		.begun = last->invoked,
		.ended = is		       ? o->returned
			 : o->epoch < h->epoch ? h->crash_at[o->epoch]
					       : NEVER,
		.committed = is,
		.in = is,
	};
	for (unsigned i = 0; i < ops; i++, o++) {
		if (o->kind == HISTORY_GET)
			continue;
		int at = write_of(g, (int)g->n - 1, o->key);
		at = at < 0 ? (int)g->writes++ : at;
		g->deleted[o->key] |= o->kind == HISTORY_DEL;
		g->write[at] = (struct write){(int16_t)(g->n - 1), (int16_t)(first + (int)i),
					      o->key};
	}
}

/* With the order in time. False: there are too many. */
static bool add_nodes(struct graph *g, unsigned epochs)
{
	const struct history *h = g->h;
	g->node[g->n++] = (struct node){.first = -1, .begun = -1, .ended = -1, .in = true};
	for (unsigned i = 0, ops; i < h->ops && h->op[i].epoch < epochs; i += ops) {
		ops = transaction_size(h, (int)i);
		if (g->n == TRANSACTIONS_MOST)
			return false;
		add_node(g, (int)i, ops);
		g->ops = i + ops;
	}
	g->words = (g->n + 63) / 64;
	g->reach = calloc((size_t)g->n * g->words, sizeof(*g->reach));
	if (!g->reach)
		arena_exhausted();
	for (unsigned a = 0; a < g->n; a++)
		for (unsigned b = 0; b < g->n; b++)
			if (in_time(g, (int)a, (int)b))
				g->reach[a * g->words + b / 64] |= UINT64_C(1) << b % 64;
	return true;
}

/* A GET that counts. False: it contradicts what wrote its value, or its own transaction. */
static bool add_read(struct graph *g, int get)
{
	const struct history_op *o = &g->h->op[get];
	int node = g->of[get], own = own_update(g->h, get),
	    source = o->value >= 0 ? g->of[o->value] : FIRST;
	if (own >= 0)
		return o->value == g->h->op[own].value ||
		       add_edge(g, node, node, EDGE_OVERWRITTEN, get);
	g->node[source].in = true;
	g->read[g->reads++] = (struct read){(int16_t)node, (int16_t)source, (int16_t)get, o->key};
	if (!add_edge(g, source, node, EDGE_READ, get))
		return false;
	return source == FIRST || last_write(g, source, o->key) == o->value ||
	       add_edge(g, node, source, EDGE_OVERWRITTEN, get);
}

static bool add_reads(struct graph *g)
{
	for (unsigned i = 0; i < g->ops; i++) {
		const struct history_op *o = &g->h->op[i];
		if (!g->node[g->of[i]].committed || !get_counts(g->h, o, NEVER) ||
		    (o->value < 0 && g->deleted[o->key]))
			continue;
		if (!add_read(g, (int)i))
			return false;
	}
	return true;
}

static struct graph *graph_new(const struct history *h, struct verdict *v,
			       struct transaction_cycle *cycle)
{
	struct graph *g = calloc(1, sizeof(*g));
	if (!g)
		arena_exhausted();
	*v = (struct verdict){.op = -1, .against = -1};
	if (cycle)
		*cycle = (struct transaction_cycle){0};
	g->h = h;
	g->v = v;
	g->cycle = cycle;
	return g;
}

static void graph_free(struct graph *g)
{
	free(g->reach);
	free(g->edge);
	free(g);
}

/* --- SSER --- */

/* What was aborted was read. */
static bool read_aborted(struct graph *g)
{
	for (unsigned i = 0; i < g->reads; i++) {
		const struct read *r = &g->read[i];
		const struct edge e = {r->source, r->node, r->get, EDGE_ABORTED};
		if (r->source == FIRST || !g->h->op[g->node[r->source].first].aborted)
			continue;
		add_step(g, &e);
		return true;
	}
	return false;
}

/* Is this one of those that come before the GET's source, or after the GET? */
static bool matters(const struct graph *g, const struct read *r, const struct write *w)
{
	return w->key == r->key && w->node != r->node && w->node != r->source &&
	       g->node[w->node].in;
}

/* Add the edges that follow. False: there is a cycle. */
static bool saturate(struct graph *g)
{
	for (unsigned before_it = UINT32_MAX; before_it != g->edges;) {
		before_it = g->edges;
		for (unsigned i = 0; i < g->reads; i++)
			for (unsigned k = 0; k < g->writes; k++) {
				const struct read *r = &g->read[i];
				int w = g->write[k].node;
				if (!matters(g, r, &g->write[k]))
					continue;
				if (before(g, r->source, w) &&
				    !add_edge(g, r->node, w, EDGE_OVERWRITTEN, r->get))
					return false;
				if (before(g, w, r->node) &&
				    !add_edge(g, w, r->source, EDGE_WRITTEN, r->get))
					return false;
			}
	}
	return true;
}

/* A GET and a write of which both orders are left. */
static bool is_open(const struct graph *g, const struct read **read, int *writer)
{
	for (unsigned i = 0; i < g->reads; i++)
		for (unsigned k = 0; k < g->writes; k++) {
			const struct read *r = &g->read[i];
			int w = g->write[k].node;
			if (!matters(g, r, &g->write[k]) || before(g, w, r->source) ||
			    before(g, r->node, w))
				continue;
			*read = r;
			*writer = w;
			return true;
		}
	return false;
}

static enum search_result search(struct graph *g)
{
	const struct read *r;
	int w;
	if (!saturate(g))
		return SEARCH_NONE;
	if (!is_open(g, &r, &w))
		return SEARCH_FITS;
	if (++g->tries > TRANSACTION_TRIES)
		return SEARCH_FULL;
	const unsigned edges = g->edges;
	uint64_t *kept = keep(g);
	/* More often than not the order is that in which they began. */
	bool first = g->node[w].begun < g->node[r->source].begun;
	enum search_result result = SEARCH_NONE;
	for (unsigned i = 0; i < 2 && result == SEARCH_NONE; i++) {
		bool added = first == (i == 0) ? add_edge(g, w, r->source, EDGE_WRITTEN, r->get)
					       : add_edge(g, r->node, w, EDGE_OVERWRITTEN, r->get);
		result = added ? search(g) : SEARCH_NONE;
		if (result != SEARCH_NONE)
			break;
		take_back(g, kept, edges);
	}
	free(kept);
	if (result == SEARCH_NONE && g->cycle)
		g->cycle->tried = true;
	return result;
}

void transactions_sser(const struct history *h, struct verdict *v, struct transaction_cycle *cycle)
{
	struct graph *g = graph_new(h, v, cycle);
	enum search_result result = SEARCH_FULL;
	if (add_nodes(g, 1))
		result = !add_reads(g) || read_aborted(g) ? SEARCH_NONE : search(g);
	if (result != SEARCH_NONE)
		*v = (struct verdict){.op = -1, .against = -1, .unsure = result == SEARCH_FULL};
	graph_free(g);
}

/* --- ATOM --- */

/* By the GET `seen` something is there that a transaction has put, and by `r` something else of it
 * is not. */
static void note_part(struct graph *g, const struct read *r, const struct read *seen)
{
	const struct history_op *o = &g->h->op[seen->get];
	const struct transaction_step steps[] = {
		{g->node[seen->source].first, EDGE_READ, seen->get, -1},
		{g->node[seen->node].first, EDGE_TIME, -1, -1},
		{g->node[r->node].first, EDGE_OVERWRITTEN, r->get, -1}};
	*g->v = (struct verdict){.broken = true,
				 .op = r->get,
				 .against = (int16_t)last_write(g, seen->source, r->key)};
	if (!g->cycle)
		return;
	g->cycle->steps = 0;
	for (unsigned i = 0; i < 3; i++)
		if (i != 1 || o->client != g->h->op[r->get].client)
			g->cycle->step[g->cycle->steps++] = steps[i];
}

/* What one reader saw at one time: is there an order of those that wrote it, so that each key has
 * its last value? */
static void judge_part(struct graph *g, const struct read *read, unsigned n)
{
	const unsigned edges = g->edges;
	uint64_t *kept = keep(g);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n && !g->v->broken; k++) {
			int w = read[k].source, s = read[i].source;
			if (w != s && last_write(g, w, read[i].key) >= 0 &&
			    !add_edge(g, w, s, EDGE_WRITTEN, read[i].get))
				note_part(g, &read[i], &read[k]);
		}
	take_back(g, kept, edges);
	free(kept);
}

/* What was there when the power had failed: the first GET of each key, unless it came after an
 * update. */
static void judge_recovered_part(struct graph *g, unsigned epoch)
{
	struct read first[HISTORY_KEYS];
	bool seen[HISTORY_KEYS] = {false};
	unsigned n = 0, at = 0;
	for (unsigned i = 0; i < g->ops; i++) {
		const struct history_op *o = &g->h->op[i];
		while (at < g->reads && g->read[at].get < (int)i)
			at++;
		if (o->epoch != epoch || seen[o->key])
			continue;
		seen[o->key] = o->kind != HISTORY_GET || get_counts(g->h, o, NEVER);
		if (at < g->reads && g->read[at].get == (int)i)
			first[n++] = g->read[at];
	}
	judge_part(g, first, n);
}

/* A later reader finds an older value than that of a transaction of which an earlier one has seen
 * another key. */
static void judge_later(struct graph *g)
{
	for (unsigned i = 0; i < g->reads; i++)
		for (unsigned k = 0; k < g->reads && !g->v->broken; k++) {
			const struct read *r = &g->read[i], *seen = &g->read[k];
			if (r->key != seen->key && in_time(g, seen->node, r->node) &&
			    g->h->op[r->get].epoch == g->h->op[seen->get].epoch &&
			    last_write(g, seen->source, r->key) >= 0 &&
			    before(g, r->source, seen->source))
				note_part(g, r, seen);
		}
}

void transactions_atom(const struct history *h, struct verdict *v, struct transaction_cycle *cycle)
{
	struct graph *g = graph_new(h, v, cycle);
	if (!add_nodes(g, h->epoch + 1u)) {
		v->unsure = true;
	} else if (add_reads(g)) {
		for (unsigned i = 0, n; i < g->reads && !v->broken; i += n) {
			for (n = 1; i + n < g->reads && g->read[i + n].node == g->read[i].node;)
				n++;
			judge_part(g, &g->read[i], n);
		}
		for (unsigned e = 1; e <= h->epoch && !v->broken; e++)
			judge_recovered_part(g, e);
		judge_later(g);
	}
	graph_free(g);
}
