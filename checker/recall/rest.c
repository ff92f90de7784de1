/* SPDX-License-Identifier: BSD-3-Clause */
/* See rest.h. */
#include "checker/recall/rest.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/rt/arena.h"

#define CHECK_EVERY 256 /* one in so many images is run to its end though the rest is known */

int rest_open(struct rest *rest, size_t bytes, enum tree_mutant mutant)
{
	rest->mutant = mutant;
	rest->tree = tree_new(bytes, mutant);
	return rest->tree ? 0 : -ENOMEM;
}

void rest_close(struct rest *rest)
{
	tree_free(rest->tree);
	free(rest->path.node);
	free(rest->place);
}

/* Note that so many lines have been touched since recovery. */
static void note_place(struct rest *rest, uint32_t lines)
{
	const struct image_source *is = rest->is;
	if (lines >= rest->room) {
		rest->room = 2 * lines + 64;
		rest->place = realloc(rest->place, rest->room * sizeof(*rest->place));
		if (!rest->place)
			arena_exhausted();
	}
	rest->place[lines] = (struct rest_place){is->used, pmem_touched(is->world->pm).lines};
	rest->places = lines + 1;
}

/* What is known of a line's content. */
static uint64_t known_of(const struct rest *rest, uint64_t content)
{
	return rest->mutant == TREE_REST_STALE && content != PMEM_AS_LOADED ? 1 : content;
}

/* The image's lines are touched in the order in which its run would touch them, as far as that is
 * known. */
static struct tree_leaf *walk(struct rest *rest)
{
	struct pmem *pm = rest->is->world->pm;
	uint32_t node = tree_root(rest->tree), touched = 0, line, lines = 1;
	if (node)
		node = tree_next(rest->tree, node, rest->key);
	note_place(rest, 0);
	while (node && (lines = tree_lines(rest->tree, node, &line)) > 0) {
		uint64_t content = PMEM_AS_LOADED;
		/* Where several lines are not as loaded, perhaps only some of them are touched. */
		if (lines > 1 && !pmem_as_loaded(pm, line, lines))
			return NULL;
		for (uint32_t l = 0; l < lines; l++) {
			content = known_of(rest, pmem_look(pm, line + l));
			note_place(rest, ++touched);
		}
		node = tree_next(rest->tree, node, content);
	}
	return node ? tree_leaf(rest->tree, node) : NULL;
}

/* All keys have been read when so many lines have been touched since recovery. */
static void set_read(struct rest *rest, uint32_t lines)
{
	struct image_source *is = rest->is;
	/* Further ones than the walk came to have been touched by the run itself, at their time. */
	if (lines == OBSERVED_NEVER || lines >= rest->places)
		return;
	is->read = rest->place[lines].decisions;
	is->read_lines = rest->place[lines].lines;
}

static bool recovered(void *arg, struct world *w)
{
	struct rest *rest = arg;
	/* Of several servers one has recovered while others have not. */
	if (rest->is->inherited || !pmem_settled(w->pm) || !sim_is_early(w->sim))
		return false;
	rest->key = sim_state_hash(w->sim);
	if (!rest->key)
		return false;
	struct tree_leaf *leaf = walk(rest);
	if (leaf && !rest->whole && ++rest->asked % CHECK_EVERY) {
		rest->leaf = leaf;
		rest->recalled++;
		set_read(rest,
			 rest->mutant == TREE_NO_READ ? OBSERVED_NEVER : leaf->observed->lines);
		return true;
	}
	rest->events = sim_events(w->sim);
	rest->learns = true;
	pmem_note_touched_again(w->pm);
	return false;
}

void rest_begin(struct rest *rest, struct image_source *is, bool whole)
{
	rest->is = is;
	rest->whole = whole;
	rest->learns = false;
	rest->leaf = NULL;
	is->world->recovered = recovered;
	is->world->recovered_arg = rest;
}

/* The first node stands for what is left outside of PM. */
static void learn(struct rest *rest, struct observed *o)
{
	struct pmem_touched again = pmem_touched_again(rest->is->world->pm);
	bool differs;
	struct pmem_touch *stale = NULL;
	if (rest->mutant == TREE_REST_STALE && again.n) {
		stale = malloc(again.n * sizeof(*stale));
		if (!stale)
			arena_exhausted();
		for (unsigned i = 0; i < again.n; i++) {
			stale[i] = again.touch[i];
			stale[i].content = known_of(rest, stale[i].content);
		}
		again.touch = stale;
	}
	tree_add_under(rest->tree, rest->key, &again, o, &rest->path, &differs);
	rest->differed |= differs;
	free(stale);
}

struct observed *rest_end(struct rest *rest, unsigned first_op, uint64_t events)
{
	const struct world *w = rest->is->world;
	struct observed *o;
	rest->is->world->recovered = NULL;
	if (rest->leaf) {
		const struct observed *known = rest->leaf->observed;
		o = malloc(known->size);
		if (!o)
			arena_exhausted();
		memcpy(o, known, known->size);
		o->events += events;
		o->lines = rest->is->read_lines;
		memcpy(o->recovery, w->result.recovery, sizeof(o->recovery));
		return o;
	}
	if (!rest->learns)
		return NULL;
	set_read(rest, rest->is->read_rest);
	/* An endless loop ends where the whole run has used up its steps. */
	if (w->result.end == SIM_DONE && sim_is_early(w->sim)) {
		o = observed_new(w, sim_events(w->sim) - rest->events, rest->is->read_rest,
				 first_op, NULL);
		if (!o)
			return NULL;
		memset(o->recovery, 0, sizeof(o->recovery));
		learn(rest, o);
	}
	return NULL;
}
