/* SPDX-License-Identifier: BSD-3-Clause */
/* See tree.h. */
#include "checker/recall/tree.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "core/rt/arena.h"

#define GONE	   UINT32_MAX /* number of a leaf that no node leads to */
#define UNDER	   UINT32_MAX /* the line that stands for what all of them depend on */
#define LEAF_SLOTS 1024	      /* of the table of leaves: a power of two */

struct node {
	uint64_t content; /* of its parent's line: what leads here */
	uint32_t line;	  /* a leaf: when it was reached last */
	uint32_t lines;	  /* 0: a leaf */
	uint32_t child;	  /* the first; of a leaf: its number */
	uint32_t next;	  /* sibling */
};

struct tree {
	struct node *node; /* [0] is not used, [1] is the root */
	uint32_t nodes, room;
	struct tree_leaf **leaf; /* by number */
	uint32_t leaves, leaf_room;
	struct tree_leaf *slot[LEAF_SLOTS];
	size_t leaf_bytes, most;
	uint32_t age, clock;
	uint64_t forgotten;
	enum tree_mutant mutant;
};

static void free_leaf(struct tree *t, struct tree_leaf *leaf)
{
	t->leaf_bytes -= sizeof(*leaf) + leaf->observed->size;
	free(leaf->observed);
	free(leaf);
}

void tree_clear(struct tree *t)
{
	for (uint32_t i = 0; i < t->leaves; i++)
		free_leaf(t, t->leaf[i]);
	assert(!t->leaf_bytes);
	memset(t->slot, 0, sizeof(t->slot));
	t->leaves = 0;
	t->nodes = 1;
	t->age++;
}

struct tree *tree_new(size_t bytes, enum tree_mutant mutant)
{
	struct tree *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->most = bytes;
	t->mutant = mutant;
	t->room = t->leaf_room = 64;
	t->node = calloc(t->room, sizeof(*t->node));
	t->leaf = calloc(t->leaf_room, sizeof(*t->leaf));
	if (!t->node || !t->leaf) {
		free(t->node);
		free(t->leaf);
		free(t);
		return NULL;
	}
	tree_clear(t);
	return t;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	tree_clear(t);
	free(t->node);
	free(t->leaf);
	free(t);
}

uint32_t tree_age(const struct tree *t)
{
	return t->age;
}

uint32_t tree_root(const struct tree *t)
{
	return t->nodes > 1 ? 1 : TREE_NONE;
}

uint32_t tree_lines(const struct tree *t, uint32_t node, uint32_t *line)
{
	assert(node && node < t->nodes);
	*line = t->node[node].line;
	return t->node[node].lines;
}

struct tree_leaf *tree_leaf(struct tree *t, uint32_t node)
{
	assert(!t->node[node].lines && t->node[node].child < t->leaves);
	t->node[node].line = ++t->clock;
	return t->leaf[t->node[node].child];
}

/* The key under which a content of these lines is known. */
static uint64_t key_of(const struct tree *t, uint32_t line, uint64_t content)
{
	if (t->mutant == TREE_LIFE_ANY && line >= TREE_MARKS && line != UNDER)
		return 1;
	if (t->mutant == TREE_LINE_LEFT_OUT && line % 2 && content != PMEM_AS_LOADED)
		return 1;
	return t->mutant == TREE_SHORT_HASH ? content % 16 : content;
}

uint32_t tree_next(struct tree *t, uint32_t node, uint64_t content)
{
	struct node *at = &t->node[node];
	uint32_t before = TREE_NONE, child = at->child;
	assert(at->lines);
	content = key_of(t, at->line, content);
	while (child && t->node[child].content != content) {
		assert(child < t->nodes);
		before = child;
		child = t->node[child].next;
	}
	if (!child && t->mutant == TREE_NEAREST)
		return at->child;
	/* What was asked for last is likely to be asked for next. */
	if (child && before) {
		t->node[before].next = t->node[child].next;
		t->node[child].next = at->child;
		at->child = child;
	}
	return child;
}

/* --- room --- */

static size_t bytes_of(const struct tree *t)
{
	return t->room * sizeof(*t->node) + t->leaf_room * sizeof(*t->leaf) + t->leaf_bytes;
}

static int later(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The clock's value that half of the leaves have not been reached since; 0 without memory. */
static uint32_t median_use(const struct tree *t)
{
	uint32_t *used = calloc(t->nodes, sizeof(*used)), n = 0, median;
	if (!used)
		return 0;
	for (uint32_t i = 1; i < t->nodes; i++)
		if (!t->node[i].lines)
			used[n++] = t->node[i].line;
	assert(n);
	qsort(used, n, sizeof(*used), later);
	median = used[n / 2];
	free(used);
	return median;
}

/* Leaves that no node leads to go; the others get new numbers. */
static void keep_leaves(struct tree *t)
{
	uint32_t named = 0, kept = 0;
	for (uint32_t i = 0; i < t->leaves; i++)
		t->leaf[i]->number = GONE;
	for (uint32_t i = 1; i < t->nodes; i++)
		if (!t->node[i].lines)
			t->leaf[t->node[i].child]->number = 0;
	for (uint32_t i = 0; i < t->leaves; i++)
		if (t->leaf[i]->number != GONE)
			t->leaf[i]->number = named++;
	for (uint32_t i = 1; i < t->nodes; i++)
		if (!t->node[i].lines)
			t->node[i].child = t->leaf[t->node[i].child]->number;
	memset(t->slot, 0, sizeof(t->slot));
	for (uint32_t i = 0; i < t->leaves; i++) {
		struct tree_leaf *leaf = t->leaf[i], **slot = &t->slot[leaf->hash % LEAF_SLOTS];
		if (leaf->number == GONE) {
			free_leaf(t, leaf);
			continue;
		}
		assert(leaf->number == kept);
		t->leaf[kept++] = leaf;
		leaf->next = *slot;
		*slot = leaf;
	}
	t->leaves = kept;
	if (t->mutant == TREE_WRONG_LEAF && kept > 1) {
		struct tree_leaf *first = t->leaf[0];
		memmove(&t->leaf[0], &t->leaf[1], (kept - 1) * sizeof(first));
		t->leaf[kept - 1] = first;
	}
}

/* All nodes, parents before their children. */
static void list_nodes(const struct tree *t, uint32_t *list)
{
	uint32_t n = 0;
	list[n++] = tree_root(t);
	for (uint32_t i = 0; i < n; i++) {
		const struct node *at = &t->node[list[i]];
		for (uint32_t c = at->lines ? at->child : TREE_NONE; c; c = t->node[c].next)
			list[n++] = c;
	}
	assert(n == t->nodes - 1);
}

/* Which nodes lead to a leaf that was reached since then: name[] is 1. Others are unlinked. */
static void mark_used(struct tree *t, const uint32_t *list, uint32_t since, uint32_t *name)
{
	for (uint32_t i = t->nodes - 1; i-- > 0;) {
		struct node *n = &t->node[list[i]];
		uint32_t *link = &n->child;
		if (!n->lines) {
			name[list[i]] = n->line >= since;
			continue;
		}
		while (*link) {
			if (name[*link])
				link = &t->node[*link].next;
			else
				*link = t->node[*link].next;
		}
		name[list[i]] = n->child != TREE_NONE;
	}
}

/* Forget the branches whose leaves have not been reached for the longest time. */
static void forget(struct tree *t)
{
	uint32_t since = median_use(t), kept = 1;
	uint32_t *list = calloc(t->nodes, sizeof(*list));
	uint32_t *name = calloc(t->nodes, sizeof(*name)); /* its new one; 0: it goes */
	t->age++;
	t->forgotten++;
	if (!since || !list || !name) {
		free(list);
		free(name);
		tree_clear(t);
		return;
	}
	list_nodes(t, list);
	mark_used(t, list, since, name);
	for (uint32_t i = 1; i < t->nodes; i++)
		name[i] = name[i] ? kept++ : TREE_NONE;
	for (uint32_t i = 1; i < t->nodes; i++) {
		struct node n = t->node[i];
		if (!name[i])
			continue;
		n.next = name[n.next];
		if (n.lines)
			n.child = name[n.child];
		t->node[name[i]] = n;
	}
	t->nodes = kept;
	free(list);
	free(name);
	keep_leaves(t);
}

/* Room for so many nodes and a leaf. False: out of memory. */
static bool make_room(struct tree *t, unsigned lines)
{
	size_t doubled = bytes_of(t) + t->room * sizeof(*t->node);
	if (t->nodes > 1 && t->nodes + lines > t->room && doubled > t->most)
		forget(t);
	while (t->nodes + lines > t->room) {
		struct node *more = realloc(t->node, 2 * (size_t)t->room * sizeof(*more));
		if (!more)
			return false;
		t->node = more;
		t->room *= 2;
	}
	if (t->leaves == t->leaf_room) {
		struct tree_leaf **more = realloc(t->leaf,
						  2 * (size_t)t->leaf_room * sizeof(*more));
		if (!more)
			return false;
		t->leaf = more;
		t->leaf_room *= 2;
	}
	return true;
}

/* --- adding --- */

static uint32_t new_node(struct tree *t, uint64_t content, uint32_t line, uint32_t lines)
{
	assert(t->nodes < t->room);
	t->node[t->nodes] = (struct node){.content = content, .line = line, .lines = lines};
	return t->nodes++;
}

void tree_path_add(struct tree_path *path, uint32_t node)
{
	if (path->n == path->room)
		path->node = array_grow(path->node, &path->room, sizeof(*path->node));
	path->node[path->n++] = node;
}

/* The leaf that says this. */
static struct tree_leaf *find_leaf(struct tree *t, struct observed *o)
{
	uint64_t hash = XXH3_64bits(o, o->size);
	struct tree_leaf **slot = &t->slot[hash % LEAF_SLOTS], *leaf;
	for (leaf = *slot; leaf; leaf = leaf->next) {
		if (leaf->hash == hash && leaf->observed->size == o->size &&
		    !memcmp(leaf->observed, o, o->size)) {
			free(o);
			return leaf;
		}
	}
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		return NULL;
	assert(t->leaves < t->leaf_room);
	*leaf = (struct tree_leaf){.observed = o, .hash = hash, .next = *slot, .number = t->leaves};
	*slot = leaf;
	t->leaf_bytes += sizeof(*leaf) + o->size;
	t->leaf[t->leaves++] = leaf;
	return leaf;
}

/* A node's first `lines` lines, and another node for the others. */
static void split(struct tree *t, uint32_t node, uint32_t lines)
{
	struct node *first = &t->node[node];
	assert(lines && lines < first->lines);
	uint32_t rest = new_node(t, PMEM_AS_LOADED, first->line + lines, first->lines - lines);
	first = &t->node[node];
	t->node[rest].child = first->child;
	first->child = rest;
	first->lines = lines;
}

/* The node at the end of an edge; it is made if it is not there. */
static uint32_t reach(struct tree *t, uint32_t from, uint64_t content, uint32_t line,
		      uint32_t lines)
{
	content = from ? key_of(t, t->node[from].line, content) : 0;
	uint32_t node = from ? tree_next(t, from, content) : tree_root(t);
	if (node)
		return node;
	node = new_node(t, content, line, lines);
	if (from) {
		t->node[node].next = t->node[from].child;
		t->node[from].child = node;
	}
	return node;
}

/* The node that the touched lines lead to; TREE_NONE: others are touched there. *edge: the content
 * of the last of them. */
static uint32_t add_path(struct tree *t, const struct pmem_touched *touched, struct tree_path *path,
			 uint64_t *edge)
{
	uint32_t at = TREE_NONE;
	*edge = 0;
	for (unsigned i = 0; i < touched->n; i++) {
		struct pmem_touch touch = touched->touch[i];
		while (touch.lines) {
			at = reach(t, at, *edge, touch.line, touch.lines);
			if (!t->node[at].lines || t->node[at].line != touch.line)
				return TREE_NONE;
			if (t->node[at].lines > touch.lines)
				split(t, at, touch.lines);
			tree_path_add(path, at);
			*edge = touch.content;
			touch.line += t->node[at].lines;
			touch.lines -= t->node[at].lines;
		}
	}
	return at;
}

struct tree_leaf *tree_add(struct tree *t, const struct pmem_touched *touched, struct observed *o,
			   struct tree_path *path, bool *differs)
{
	uint64_t edge;
	*differs = false;
	path->n = 0;
	/* Each touch makes one node, or splits one. */
	if (!touched->n || !make_room(t, 2 * touched->n + 1)) {
		free(o);
		return NULL;
	}
	uint32_t from = add_path(t, touched, path, &edge), nodes = t->nodes;
	uint32_t at = from ? reach(t, from, edge, 0, 0) : TREE_NONE;
	if (!at || t->node[at].lines) {
		*differs = true;
		free(o);
		return NULL;
	}
	struct tree_leaf *leaf = find_leaf(t, o);
	if (!leaf) {
		tree_clear(t);
		return NULL;
	}
	*differs = nodes == t->nodes && t->node[at].child != leaf->number;
	t->node[at].child = leaf->number;
	t->node[at].line = ++t->clock;
	return leaf;
}

struct tree_leaf *tree_add_under(struct tree *t, uint64_t what, const struct pmem_touched *touched,
				 struct observed *o, struct tree_path *path, bool *differs)
{
	struct pmem_touch *touch = malloc((touched->n + 1) * sizeof(*touch));
	*differs = false;
	if (!touch) {
		free(o);
		return NULL;
	}
	touch[0] = (struct pmem_touch){.content = what, .line = UNDER, .lines = 1};
	if (touched->n)
		memcpy(touch + 1, touched->touch, touched->n * sizeof(*touch));
	const struct pmem_touched all = {touch, touched->n + 1, touched->lines + 1};
	struct tree_leaf *leaf = tree_add(t, &all, o, path, differs);
	free(touch);
	return leaf;
}

void tree_count(const struct tree *t, struct tree_counts *out)
{
	*out = (struct tree_counts){.nodes = t->nodes - 1,
				    .leaves = t->leaves,
				    .bytes = sizeof(*t) + bytes_of(t),
				    .forgotten = t->forgotten};
}
