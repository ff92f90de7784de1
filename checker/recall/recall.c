/* SPDX-License-Identifier: BSD-3-Clause */
/* See recall.h. */
#include "checker/recall/recall.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int recall_open(struct recall *r, size_t bytes, enum tree_mutant mutant)
{
	r->mutant = mutant;
	r->tree = tree_new(bytes - bytes / 4, mutant);
	return r->tree ? rest_open(&r->rest, bytes / 4, mutant) : -ENOMEM;
}

void recall_close(struct recall *r)
{
	tree_free(r->tree);
	rest_close(&r->rest);
	for (unsigned m = 0; m < WORLDS; m++)
		free(r->path[m].walk.node);
}

/* The content of a line that was changed, in this image. `at`: nodes before it. */
static uint64_t content_of(struct image_source *is, uint32_t line, uint32_t at, uint32_t lines,
			   enum tree_mutant mutant)
{
	const struct pmem *pm = is->world->pm, *failed = pmem_failed(pm, line);
	unsigned answers = pmem_line_answers(failed, line), used = is->used;
	uint8_t content[LINE];
	if (answers == 1)
		return pmem_content_hash(pmem_boot_content(pm, line));
	unsigned answer = image_decide(is, line, answers);
	if (is->used > used) {
		is->decision[used].at = at;
		is->decision[used].lines = lines;
	}
	pmem_line_content(failed, line, mutant == TREE_NEWEST ? 0 : answer, content);
	return pmem_content_hash(content);
}

struct tree_leaf *recall_walk(struct recall *r, struct image_source *is)
{
	struct recall_path *path = &r->path[is->world->machine];
	uint32_t node = tree_root(r->tree), touched = 0, line, lines;
	path->walk.n = 0;
	if (is->depth && path->age == tree_age(r->tree)) {
		/* As the image before, up to the last decision. */
		const struct decision *last = &is->decision[is->depth - 1];
		is->used = is->depth - 1;
		path->walk.n = last->at;
		touched = last->lines;
		node = path->walk.node[last->at];
	}
	path->age = tree_age(r->tree);
	while (node && (lines = tree_lines(r->tree, node, &line)) > 0) {
		uint64_t content = PMEM_AS_LOADED;
		bool first = r->mutant == TREE_FIRST_LOADED;
		if (!pmem_as_loaded(is->world->pm, line, first ? 1 : lines)) {
			if (lines > 1)
				break; /* not all of them were touched, perhaps */
			content = content_of(is, line, path->walk.n, touched, r->mutant);
		}
		tree_path_add(&path->walk, node);
		touched += lines;
		node = tree_next(r->tree, node, content);
	}
	if (node && lines)
		node = TREE_NONE;
	if (!node)
		return NULL;
	struct tree_leaf *leaf = tree_leaf(r->tree, node);
	is->read_lines = leaf->observed->lines;
	is->read = MAX_DECISIONS;
	if (is->read_lines != OBSERVED_NEVER && r->mutant != TREE_NO_READ)
		for (is->read = is->used; is->read; is->read--)
			if (is->decision[is->read - 1].lines < is->read_lines)
				break;
	r->recalled++;
	return leaf;
}

void recall_again(const struct recall *r, const struct tree_leaf *leaf, struct world *w)
{
	const struct world_result before = w->result;
	observed_again(leaf->observed, w);
	if (r->mutant == TREE_NO_RESULT)
		w->result.live_broken = w->result.fsck_broken = w->result.ok_broken = false;
	if (r->mutant == TREE_NO_STEPS)
		memcpy(w->result.recovery, before.recovery, sizeof(before.recovery));
}

void recall_begin(struct recall *r, struct image_source *is, bool whole)
{
	pmem_note_touched(is->world->pm, true);
	rest_begin(&r->rest, is, whole);
}

struct tree_leaf *recall_learn(struct recall *r, struct image_source *is, uint64_t events,
			       unsigned first_op)
{
	const struct pmem_touched touched = pmem_touched(is->world->pm);
	struct recall_path *path = &r->path[is->world->machine];
	struct observed *o = rest_end(&r->rest, first_op, events);
	bool differs;
	if (o)
		observed_again(o, is->world);
	else
		o = observed_new(is->world, events, is->read_lines, first_op);
	if (!o)
		return NULL;
	struct tree_leaf *leaf = tree_add(r->tree, &touched, o, &path->walk, &differs);
	path->age = leaf ? tree_age(r->tree) : 0;
	for (unsigned i = 0, d = 0, before = 0; leaf && i < path->walk.n; i++) {
		uint32_t line, lines = tree_lines(r->tree, path->walk.node[i], &line);
		if (d < is->used && lines == 1 && is->decision[d].line == line) {
			is->decision[d].lines = before;
			is->decision[d++].at = i;
		}
		before += lines;
	}
	r->learnt++;
	r->differed += differs + r->rest.differed;
	pmem_note_touched(is->world->pm, false);
	return leaf;
}
