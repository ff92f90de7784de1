/* SPDX-License-Identifier: BSD-3-Clause */
/* See recall.h. */
#include "checker/recall/recall.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

int recall_open(struct recall *r, size_t bytes, enum tree_mutant mutant)
{
	r->mutant = mutant;
	r->tree = tree_new(bytes / 2, mutant);
	r->cuts = tree_new(bytes / 4, mutant);
	r->actors = actors_new();
	return r->tree && r->cuts && r->actors ? rest_open(&r->rest, bytes / 4, mutant) : -ENOMEM;
}

void recall_close(struct recall *r)
{
	tree_free(r->tree);
	tree_free(r->cuts);
	rest_close(&r->rest);
	actors_free(r->actors);
	free(r->cut_path.node);
	for (unsigned m = 0; m < WORLDS; m++) {
		free(r->path[m].walk.node);
		free(r->course[m].byte);
		free(r->lead[m].known);
	}
}

void recall_count(const struct recall *r, struct tree_counts *out)
{
	const struct tree *trees[] = {r->tree, r->cuts, r->rest.tree};
	struct tree_counts one;
	*out = (struct tree_counts){.bytes = r->rest.room * sizeof(*r->rest.place)};
	for (unsigned i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		tree_count(trees[i], &one);
		out->nodes += one.nodes;
		out->leaves += one.leaves;
		out->bytes += one.bytes;
		out->forgotten += one.forgotten;
	}
	for (unsigned m = 0; m < WORLDS; m++)
		out->bytes += r->course[m].room;
}

/* The content of a line that was changed, in this image. `place`: of a decision that is made. */
static uint64_t content_of(struct image_source *is, uint32_t line, const struct decision *place,
			   enum tree_mutant mutant)
{
	const struct pmem *pm = is->world->pm, *failed = pmem_failed(pm, line);
	unsigned answers = pmem_line_answers(failed, line), used = is->used;
	uint8_t content[LINE];
	if (answers == 1)
		return pmem_content_hash(pmem_boot_content(pm, line));
	unsigned answer = image_decide(is, line, answers);
	if (place && is->used > used) {
		is->decision[used].at = place->at;
		is->decision[used].lines = place->lines;
	}
	pmem_line_content(failed, line, mutant == TREE_NEWEST ? 0 : answer, content);
	return pmem_content_hash(content);
}

/* The image's walk goes on from `node`, before which so many lines have been touched. The leaf that
 * it comes to; NULL: it leaves the tree. `notes`: of the decisions it is noted where they are made.
 */
static struct tree_leaf *walk_on(struct tree *tree, struct tree_path *walk, struct image_source *is,
				 uint32_t node, uint32_t touched, bool notes,
				 enum tree_mutant mutant)
{
	uint32_t line, lines = 1;
	while (node && (lines = tree_lines(tree, node, &line)) > 0) {
		const struct decision place = {.at = walk->n, .lines = touched};
		uint64_t content = PMEM_AS_LOADED;
		bool first = mutant == TREE_FIRST_LOADED;
		if (line >= TREE_MARKS)
			content = image_mark(is, line);
		else if (!pmem_as_loaded(is->world->pm, line, first ? 1 : lines)) {
			if (lines > 1)
				return NULL; /* not all of them were touched, perhaps */
			content = content_of(is, line, notes ? &place : NULL, mutant);
		}
		tree_path_add(walk, node);
		touched += lines;
		node = tree_next(tree, node, content);
	}
	return node ? tree_leaf(tree, node) : NULL;
}

struct tree_leaf *recall_walk(struct recall *r, struct image_source *is)
{
	struct recall_path *path = &r->path[is->world->machine];
	uint32_t node = tree_root(r->tree), touched = 0;
	path->walk.n = 0;
	if (node && is->inherited) {
		tree_path_add(&path->walk, node);
		node = tree_next(r->tree, node, is->inherited);
	}
	if (is->depth && path->age == tree_age(r->tree)) {
		/* As the image before, up to the last decision. */
		const struct decision *last = &is->decision[is->depth - 1];
		is->used = is->depth - 1;
		path->walk.n = last->at;
		touched = last->lines;
		node = path->walk.node[last->at];
	}
	path->age = tree_age(r->tree);
	struct tree_leaf *leaf = walk_on(r->tree, &path->walk, is, node, touched, true, r->mutant);
	if (!leaf)
		return NULL;
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
		o = observed_new(is->world, events, is->read_lines, first_op, NULL);
	if (!o)
		return NULL;
	struct tree_leaf *leaf = is->inherited
					 ? tree_add_under(r->tree, is->inherited, &touched, o,
							  &path->walk, &differs)
					 : tree_add(r->tree, &touched, o, &path->walk, &differs);
	path->age = leaf ? tree_age(r->tree) : 0;
	for (unsigned i = is->inherited != 0, d = 0, before = 0; leaf && i < path->walk.n; i++) {
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

/* --- the power fails on the way --- */

/* A place where the power could have failed, as a number: events of the history, whether a life is
 * on, and how many of its operations were asked for. */
#define MARK_EVENTS 0xffffu
#define MARK_LIVES  0x10000u
#define MARK_LIVED  17

static uint64_t ways(const struct recall *r, const struct image_source *is)
{
	return r->mutant == TREE_LIFE_MACHINE ? 1 + is->visit : image_ways(is);
}

struct tree_leaf *recall_walk_cut(struct recall *r, struct image_source *is)
{
	uint32_t node = tree_root(r->cuts);
	r->cut_path.n = 0;
	is->draws = is->drawn = 0;
	if (node)
		node = tree_next(r->cuts, node, ways(r, is));
	struct tree_leaf *leaf = walk_on(r->cuts, &r->cut_path, is, node, 0, false, r->mutant);
	r->led += leaf != NULL;
	return leaf;
}

void recall_begin_cut(struct recall *r, struct image_source *is)
{
	struct world *w = is->world;
	struct pmem_course *course = &r->course[w->machine];
	course->actors = r->actors;
	course->bytes = course->length = 0;
	r->lead[w->machine].first_op = w->history->ops;
	r->lead[w->machine].notes = true;
	pmem_note_touched(w->pm, true);
	pmem_note_course(w->pm, course);
}

void recall_note_failure(struct recall *r, const struct image_source *is,
			 const struct choice_point *at)
{
	const struct world *w = is->world;
	if (w && r->lead[w->machine].notes)
		pmem_course_failure(&r->course[w->machine], at,
				    w->gets.events | (w->life.on ? MARK_LIVES : 0) |
					    is->lives << MARK_LIVED);
}

struct tree_leaf *recall_learn_cut(struct recall *r, struct image_source *is, uint64_t events)
{
	const struct pmem_touched touched = pmem_touched(is->world->pm);
	const unsigned machine = is->world->machine;
	struct observed *o = observed_new(is->world, events, OBSERVED_NEVER,
					  r->lead[machine].first_op, &r->course[machine]);
	bool differs;
	if (!o)
		return NULL;
	struct tree_leaf *leaf = tree_add_under(r->cuts, ways(r, is), &touched, o, &r->cut_path,
						&differs);
	r->cuts_learnt++;
	r->differed += differs;
	return leaf;
}

void recall_end_cut(struct recall *r, struct image_source *is)
{
	r->lead[is->world->machine].notes = false;
	pmem_note_touched(is->world->pm, false);
	pmem_note_course(is->world->pm, NULL);
}

void recall_lead(struct recall *r, const struct tree_leaf *leaf, struct world *w)
{
	struct recall_lead *lead = &r->lead[w->machine];
	struct observed *known = realloc(lead->known, leaf->observed->size);
	if (!known)
		arena_exhausted();
	memcpy(known, leaf->observed, leaf->observed->size);
	*lead = (struct recall_lead){.known = known, .first_op = w->history->ops};
	lead->follow = (struct pmem_follow){.actors = r->actors,
					    .byte = observed_course(known),
					    .bytes = known->course,
					    .no_flight = r->mutant == TREE_CUT_NO_FLIGHT};
}

const struct choice_point *recall_lead_on(struct recall *r, struct image_source *is)
{
	struct world *w = is->world;
	struct recall_lead *lead = &r->lead[w->machine];
	const struct observed *known = lead->known;
	while (pmem_follow(w->pm, &lead->follow)) {
		if (r->mutant == TREE_CUT_NOT_THERE && ++lead->failures % 2)
			continue;
		if (r->mutant != TREE_CUT_UNREAD)
			observed_until(known, w, lead->first_op, &lead->told,
				       lead->follow.mark & MARK_EVENTS);
		w->life.on = lead->follow.mark & MARK_LIVES;
		is->lives = lead->follow.mark >> MARK_LIVED;
		return &lead->follow.at;
	}
	observed_until(known, w, lead->first_op, &lead->told, known->history);
	observed_result(known, w, lead->first_op);
	return NULL;
}
