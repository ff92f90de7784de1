/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Crash exploration.
 *
 * The workload runs in world 0. At each place where the power can fail (enum
 * crash_place) the run stands still, and world 1 boots from what would be left:
 * durable content, and lines in flight which are undecided. World 1's recovery and
 * its readers decide them by touching them; the first run takes the newest version
 * of every line, and each further run changes the last decision that has another
 * answer left, depth first, until all combinations of the lines that were read have
 * been tried. With more than images_per_point of them the rest is sampled at random, and the
 * point is counted as bounded. An image costs one recovery, one GET per key, and a
 * PUT and a GET that prove life; its undo costs only the lines it changed.
 *
 * In some images the observer also stands at the power failures of world 1, and
 * world 2 boots in the same way: recovery cut short, and what a reader saw after the
 * first failure must hold after the second. Such an image is the first whose recovery took that
 * number of steps, or one in so many of the others. A long recovery has so many points that they
 * would use up a budget within a few runs (struct explore_limits, nested_half).
 *
 * In some images the store lives on when it has been read (life.h), with operations that are drawn
 * for the point and the image. Whatever else is left of the lines in flight is drawn, too. At some
 * of the power failures of that life, and always at its end, the next world boots from some of the
 * images; it may live on in its turn. So the contracts are judged over three lives and two power
 * failures between them.
 *
 * A point is skipped when one with the same possible images, the same history, and the
 * same versions known to be durable (below) has been explored before. The set is per
 * workload, so hashes need no more than that.
 *
 * KEEP needs to know which version was durable and current. The explorer knows it of
 * its own: if every image of some point led to the same version, then from that
 * moment on that version was durable.
 */
#include "checker/explore/explore.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/recall/image_source.h"
#include "checker/explore/visited.h"
#include "checker/explore/blame_find.h"
#include "checker/explore/verdicts.h"
#include "checker/world/checker_mutant.h"
#include "checker/judge/names.h"
#include "faultinject/trace_source.h"

#define SAMPLES 32 /* images of a point beyond the bound */
/* Of the values measured, these have most states show the seeded bugs that need a life. */
#define FEW_IMAGES	8    /* images of a power failure within a life, or where few are wanted */
#define PREFIX_SHARE	32   /* of the room for what is known, one part is for runs */
#define RECORD_AFTER	8    /* runs, until it pays to record the plain one */
#define CANARY_EVERY	1024 /* one in so many images is run although it is known, ... */
#define CANARY_REPEATED 64   /* ... of runs that were made before, ... */
#define CANARY_CUTS	256  /* ... and of those in which the power fails once more */
#define NOTE_NONE	0
#define NOTE_MANY	UINT16_MAX

const struct explore_limits explore_default = {
	.images_per_point = 256, .nested_every = 8, .states = UINT64_MAX, .tree_bytes = TREE_BYTES};

/* --- failures --- */

/* Of the run that is on. */
static uint64_t number(const struct explorer *ex)
{
	return ex->first + ex->counts.runs;
}

/* Has the break a known cause? `v`: NULL, or what the history says. */
static bool is_known(struct explorer *ex, unsigned contract, unsigned machine,
		     const struct verdict *v)
{
	const struct broken_state state = {.setup = ex->setup,
					   .worlds = &ex->worlds,
					   .machine = machine,
					   .contract = contract,
					   .verdict = v,
					   .run = ex->taken,
					   .path = ex->path};
	const struct known *known = &ex->setup->known;
	struct blame blame;
	if (!((known->compared | known->collected) & TM_BIT(contract)))
		return false;
	blame_find(&state, &blame);
	if (known->collected & TM_BIT(contract)) {
		blame_coarsen(&blame);
		if (!blame.full)
			strange_add(&ex->strange[contract], &blame, number(ex));
		return false;
	}
	if (known_explains(known, &blame, &ex->frequency.shown))
		return true;
	strange_add(&ex->strange[contract], &blame, number(ex));
	return false;
}

static void note_failure(struct explorer *ex, unsigned contract, unsigned machine,
			 const struct verdict *v, const char *text)
{
	struct failure *f = &ex->failure[contract];
	bool nothing = v && verdict_nothing(v, ex->worlds.history);
	assert(contract < TM_CONTRACTS && machine < WORLDS);
	if (is_known(ex, contract, machine, v) && ex->setup->unknown_only & TM_BIT(contract))
		return;
	ex->broken[contract]++;
	unsigned kinds = failure_mode_kinds(ex->taken) | (machine > 0 ? FAILURE_MODE_CRASH : 0) |
			 (machine > 1 ? FAILURE_MODE_CRASHES : 0) |
			 (nothing ? FAILURE_MODE_NOTHING : 0);
	for (unsigned m = 1; m <= machine; m++)
		kinds |= ex->image[m].lives ? FAILURE_MODE_LIFE : 0;
	failure_modes_add(&ex->modes[contract], kinds, number(ex));
	if (ex->stop_at & TM_BIT(contract))
		ex->stopped = true;
	if (f->found)
		return;
	f->found = true;
	f->run = number(ex);
	f->deviations.n = 0;
	snprintf(f->text, sizeof(f->text), "%s", text);
	deviations_append(&f->deviations, ex->taken);
	for (unsigned m = 1; m <= machine; m++) {
		assert(ex->path[m].n && ex->path[m].d[0].kind == CHOICE_CRASH);
		deviations_append(&f->deviations, &ex->path[m]);
	}
}

static void note_verdicts(struct explorer *ex, unsigned machine, unsigned want,
			  const struct verdict *v)
{
	char text[300];
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		if (!(want & TM_BIT(c)))
			continue;
		ex->counts.unsure += v[c].unsure;
		if (!v[c].broken)
			continue;
		if (CONTRACTS_IF_LIN & TM_BIT(c) && v[TM_LIN].broken)
			continue;
		if (!ex->failure[c].found)
			verdicts_say(ex, c, &v[c], text, sizeof(text));
		note_failure(ex, c, machine, &v[c], ex->failure[c].found ? "" : text);
	}
}

/* `v`: what the history says, which comes first. */
static void note_result(struct explorer *ex, unsigned machine, const struct verdict *v)
{
	const struct world_result *r = &ex->worlds.world[machine].result;
	if (r->live_broken)
		note_failure(ex, TM_LIVE, machine, NULL, r->why);
	if (r->ok_broken && !v[TM_OK].broken)
		note_failure(ex, TM_OK, machine, NULL, r->ok_why);
	if (r->fsck_broken)
		note_failure(ex, TM_FSCK, machine, NULL, r->fsck_why);
	if (r->agree_broken)
		note_failure(ex, TM_AGREE, machine, NULL, r->agree_why);
}

/* --- one image --- */

/* What the power left, and what clients made of it: what has been decided until now. */
static void note_image(struct explorer *ex, unsigned machine)
{
	const struct image_source *is = &ex->image[machine];
	struct deviations *path = &ex->path[machine];
	assert(path->n >= 1 && path->d[0].kind == CHOICE_CRASH);
	path->n = 1; /* the power failure itself stays */
	for (unsigned i = 0; i < is->used; i++) {
		const struct decision *d = &is->decision[i];
		assert(d->answer < d->answers);
		if (!d->answer)
			continue;
		struct choice_point at = {.kind = CHOICE_LINE, .a = d->line, .b = machine};
		struct deviation dev;
		deviation_record(&dev, &at, d->answer, d->answers);
		dev.c = pmem_line_versions(d->failed, d->line);
		deviations_add(path, &dev);
	}
	for (unsigned i = 0; i < is->lives; i++)
		deviations_add(path, &is->lived[i]);
}

static void explore_point(void *arg, struct world *world, const struct choice_point *at);

static void note_outcome(struct explorer *ex, unsigned machine)
{
	bool after_return[WORLDS];
	if (!ex->outcomes)
		return;
	for (unsigned e = 0; e < machine; e++)
		after_return[e] = ex->path[e + 1].d[0].a == CRASH_AFTER_RETURN;
	outcomes_add(ex->outcomes, ex->worlds.history, machine, after_return, ex->point);
}

static void merge_notes(uint16_t note[VISITED_NOTES], const struct explorer *ex, unsigned from)
{
	const struct history *h = ex->worlds.history;
	unsigned keys = ex->setup->w.keys;
	if (keys > VISITED_NOTES)
		return;
	assert(from <= h->ops && ex->setup->values < NOTE_MANY);
	for (unsigned k = 0; k < keys; k++) {
		uint16_t now = NOTE_MANY;
		if (from + k < h->ops && h->op[from + k].value >= 0) {
			/* A value's place in the workload is the same in every run. */
			for (unsigned v = 0; v < ex->setup->values; v++)
				if (ex->worlds.op_of_value[v] == h->op[from + k].value)
					now = (uint16_t)(v + 1);
		}
		assert(now != NOTE_NONE);
		note[k] = note[k] == NOTE_NONE || note[k] == now ? now : NOTE_MANY;
	}
}

static void raise_lower_bound(struct explorer *ex, const uint16_t note[VISITED_NOTES])
{
	if (CHECKER_MUTANT(ex->setup, FLOOR_KEPT))
		return;
	for (unsigned k = 0; k < ex->setup->w.keys && k < VISITED_NOTES; k++) {
		if (note[k] == NOTE_NONE || note[k] == NOTE_MANY)
			continue;
		assert(note[k] <= ex->setup->values);
		assert(ex->setup->value[note[k] - 1].key == k);
		ex->lower_bound[k] = ex->worlds.op_of_value[note[k] - 1];
	}
}

static void run_image(struct explorer *ex, unsigned machine, bool prove)
{
	struct image_source *is = &ex->image[machine];
	image_start(is);
	if (ex->cuts)
		cuts_begin(ex->cuts, machine, false);
	world_recover(&ex->worlds, machine, &is->source, prove ? NULL : explore_point, ex, prove);
}

/* Run an image that is only read, and learn its outcome. */
static struct tree_leaf *learn_image(struct explorer *ex, unsigned machine,
				     const struct history_mark *mark, bool whole)
{
	struct world *w = &ex->worlds.world[machine];
	uint64_t events = sim_events(w->sim);
	w->gets.kept = true;
	recall_begin(&ex->recall, &ex->image[machine], whole);
	run_image(ex, machine, true);
	w->gets.kept = false;
	events = sim_events(w->sim) - events;
	struct tree_leaf *leaf = recall_learn(&ex->recall, &ex->image[machine], events, mark->ops);
	/* What comes after recovery counts, whether it was run or is known. */
	if (leaf)
		ex->counts.events += leaf->observed->events - events;
	return leaf;
}

/* What was left out, because it was taken for known, was something else in this run. */
static void note_wrong_run(struct explorer *ex, const char *why)
{
	struct failure *f = &ex->wrong;
	f->found = ex->stopped = true;
	f->run = number(ex);
	f->deviations.n = 0;
	snprintf(f->text, sizeof(f->text), "%s", why);
	deviations_append(&f->deviations, ex->taken);
}

/* The image that was run last does not do what was known of it. */
static void note_wrong(struct explorer *ex, unsigned machine)
{
	struct failure *f = &ex->wrong;
	note_image(ex, machine);
	note_wrong_run(ex, "an image has another outcome than one with the same lines");
	for (unsigned m = 1; m <= machine; m++)
		deviations_append(&f->deviations, &ex->path[m]);
}

/* Is the outcome of an image that is only read known? Else it is run. True: nothing is broken, as
 * was seen at this point before. */
static bool read_image(struct explorer *ex, unsigned machine, const struct history_mark *mark)
{
	struct image_source *is = &ex->image[machine];
	struct world *w = &ex->worlds.world[machine];
	if (!ex->recall.tree) {
		run_image(ex, machine, true);
		return false;
	}
	image_start(is);
	enum explore_phase before = phase_begin(ex->phases, PHASE_WALK);
	struct tree_leaf *leaf = recall_walk(&ex->recall, is);
	phase_back(ex->phases, before);
	/* A right walk makes the decisions that are prescribed. */
	bool canary = leaf && (ex->recall.recalled % CANARY_EVERY == 0 || is->used < is->depth);
	if (leaf && !canary) {
		bool clean = !ex->image_done &&
			     (leaf->clean_at == ex->images ||
			      (ex->recall.mutant == TREE_CLEAN_EVER && leaf->clean_at));
		ex->leaf = leaf;
		ex->counts.events += leaf->observed->events;
		if (clean)
			observed_steps(leaf->observed, w);
		else
			recall_again(&ex->recall, leaf, w);
		return clean;
	}
	/* What was drawn on the way stays. */
	if (is->used < is->depth)
		is->used = is->depth;
	else if (ex->recall.mutant != TREE_DRAWN_TWICE)
		is->depth = is->used;
	before = phase_begin(ex->phases, PHASE_MISS);
	ex->leaf = learn_image(ex, machine, mark, canary);
	phase_back(ex->phases, before);
	if (ex->recall.differed || (canary && ex->leaf != leaf))
		note_wrong(ex, machine);
	return false;
}

/* The image's machine is led along the course that is known of it. False: something has stopped it
 * on the way. */
static bool lead_image(struct explorer *ex, unsigned machine, const struct tree_leaf *leaf)
{
	struct image_source *is = &ex->image[machine];
	struct explorer_led *led = &ex->led[machine];
	const struct choice_point *at = NULL;
	const unsigned walked = is->used, lives = is->lives;
	const uint64_t events = leaf->observed->events; /* it may be forgotten on the way */
	/* The walk's decisions are made once more, in their places. */
	if (is->depth < walked)
		is->depth = walked;
	is->used = is->depth;
	if (ex->recall.mutant == TREE_CUT_REDECIDED)
		is->depth = 0;
	image_start(is);
	world_stand(&ex->worlds, machine, &is->source);
	recall_lead(&ex->recall, leaf, is->world);
	*led = (struct explorer_led){.on = true};
	while (!led->stops && (at = recall_lead_on(&ex->recall, is))) {
		unsigned drawn = is->drawn;
		led->places++;
		explore_point(ex, is->world, at);
		led->drew = is->drawn > drawn;
	}
	led->on = false;
	is->used = walked;
	is->lives = lives;
	if (!at)
		ex->counts.events += events;
	return !at;
}

/* Run the image, and learn its outcome if nothing stops it. */
static struct tree_leaf *learn_way(struct explorer *ex, unsigned machine, bool prove)
{
	struct image_source *is = &ex->image[machine];
	struct world *w = &ex->worlds.world[machine];
	struct tree_leaf *leaf = NULL;
	uint64_t events = sim_events(w->sim);
	w->gets.kept = true;
	recall_begin_cut(&ex->recall, is);
	run_image(ex, machine, prove);
	w->gets.kept = false;
	if (explore_more(ex))
		leaf = recall_learn_cut(&ex->recall, is, sim_events(w->sim) - events);
	recall_end_cut(&ex->recall, is);
	return leaf;
}

/* An image in which the power fails at places on the way, or that lives on. Is it known what it
 * comes to? Else it is run. */
static void further_image(struct explorer *ex, unsigned machine, const struct history_mark *mark,
			  bool prove)
{
	struct image_source *is = &ex->image[machine];
	const uint64_t life = is->life;
	const unsigned depth = is->depth;
	image_start(is);
	struct tree_leaf *leaf = recall_walk_cut(&ex->recall, is);
	bool canary = leaf && ex->recall.led % CANARY_CUTS == 0;
	if (leaf && !canary) {
		if (lead_image(ex, machine, leaf))
			return;
		history_rewind(ex->worlds.history, mark);
		world_end(&ex->worlds, machine);
	}
	/* A life is drawn anew, and is the same. What else was drawn on the way stays. */
	is->life = life;
	is->depth = is->visit == VISIT_LIFE || is->used < depth ? depth : is->used;
	is->used = is->depth;
	if (leaf && !canary) {
		/* The exact place where a run stops is not known: run until there. */
		ex->led[machine].stop_after = ex->led[machine].places;
		run_image(ex, machine, prove);
		ex->led[machine].stop_after = 0;
		return;
	}
	struct tree_leaf *now = learn_way(ex, machine, prove);
	if (now && (ex->recall.differed || (canary && now != leaf)))
		note_wrong(ex, machine);
}

static bool plans_life(const struct life_plan *plan)
{
	for (unsigned k = 0; k < LIFE_CLIENTS; k++)
		if (plan->answer[0][k])
			return true;
	return false;
}

static bool any_broken(const struct world_result *r, const struct verdict *v)
{
	bool broken = r->live_broken || r->ok_broken || r->fsck_broken || r->agree_broken;
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		broken |= v[c].broken || v[c].unsure;
	return broken;
}

/* Recover, read back and judge one image. */
static void explore_image(struct explorer *ex, unsigned machine, enum visit visit,
			  const struct history_mark *mark, uint16_t note[VISITED_NOTES])
{
	const unsigned want = CONTRACTS_AFTER_CRASH;
	struct image_source *is = &ex->image[machine];
	struct world *w = &ex->worlds.world[machine];
	struct verdict v[TM_CONTRACTS];
	uint64_t events = sim_events(w->sim);
	bool cut = visit == VISIT_PLANNED ? ex->plan[machine].cut != LIFE_WHOLE
					  : visit != VISIT_READ,
	     clean = false,
	     lives = visit == VISIT_PLANNED ? plans_life(&ex->plan[machine]) : visit == VISIT_LIFE;

	is->plan = ex->plan;
	is->inherited = worlds_inherited(&ex->worlds, machine);
	is->world = w;
	is->visit = visit;
	ex->leaf = NULL;
	if (visit == VISIT_READ) {
		clean = read_image(ex, machine, mark);
	} else {
		enum explore_phase before = phase_begin(ex->phases,
							lives ? PHASE_LIFE : PHASE_AGAIN);
		if (ex->recall.tree && !is->inherited)
			further_image(ex, machine, mark, !cut);
		else
			run_image(ex, machine, !cut);
		phase_back(ex->phases, before);
	}
	/* The decisions that the search prescribes were asked for again, and others after them. */
	if (is->strayed && !ex->wrong.found) {
		assert(ex->recall.tree);
		note_wrong(ex, machine);
	}
	assert(is->strayed || visit == VISIT_CUT || is->used >= is->depth || !explore_more(ex));
	ex->counts.states++;
	ex->counts.nested_states += machine > 1 && !ex->living;
	ex->counts.life_states += ex->living || is->lives;
	ex->counts.lives += is->lives > 0;
	ex->counts.events += sim_events(w->sim) - events;
	if (clean)
		return;
	struct tree_leaf *leaf = ex->leaf;
	enum explore_phase judging = phase_begin(ex->phases, PHASE_JUDGE);
	memset(v, 0, sizeof(v));
	verdicts_find(ex, machine, want | TM_BIT(TM_LIN), ex->lower_bound, v);
	if (any_broken(&w->result, v) || ex->image_done) {
		note_image(ex, machine);
		note_verdicts(ex, machine, want, v);
		note_result(ex, machine, v);
	} else if (leaf && !ex->outcomes) {
		leaf->clean_at = ex->images;
	}
	if (note)
		merge_notes(note, ex, mark->ops);
	note_outcome(ex, machine);
	if (ex->image_done)
		ex->image_done(ex->image_done_arg, ex, machine);
	phase_back(ex->phases, judging);
	history_rewind(ex->worlds.history, mark);
	assert(ex->worlds.history->epoch == machine); /* a nested point has taken its own away */
	if (pmem_running(w->pm))
		world_end(&ex->worlds, machine);
}

/* --- one point --- */

/* Has no recovery before taken so many stores, flushes and fences? Then it had other things to
 * repair, in more keys or fewer, or from another phase of a cleaning. */
static bool new_recovery(struct explorer *ex, unsigned machine)
{
	const uint32_t *steps = ex->worlds.world[machine].result.recovery;
	const uint32_t writes[] = {steps[STEP_STORE], steps[STEP_FLUSH], steps[STEP_FENCE]};
	unsigned bit = XXH3_64bits(writes, sizeof(writes)) % EXPLORE_RECOVERIES;
	uint64_t *seen = &ex->recovery_seen[bit / 64], was = *seen;
	*seen |= 1ull << bit % 64;
	return *seen != was;
}

static bool may_cut(struct explorer *ex, unsigned machine, uint64_t key)
{
	const struct explore_limits *limits = &ex->limits;
	if (!limits->nested_every || machine + 2 >= WORLDS || ex->living ||
	    CHECKER_MUTANT(ex->setup, CRASH_ONCE) ||
	    (limits->nested_half && ex->counts.nested_states > ex->counts.states / 2))
		return false;
	return new_recovery(ex, machine) || key % limits->nested_every == 0;
}

static bool may_live(const struct explorer *ex, unsigned machine, uint64_t key)
{
	const struct explore_limits *limits = &ex->limits;
	return limits->life_every && machine + 1 < WORLDS &&
	       !CHECKER_MUTANT(ex->setup, LIFE_NEVER) && (key >> 32) % limits->life_every == 0 &&
	       (!limits->life_percent ||
		ex->counts.life_states <= ex->counts.states * limits->life_percent / 100);
}

/* The image that was read once more, in other ways. */
static void explore_further(struct explorer *ex, unsigned machine, uint64_t key,
			    const struct history_mark *mark)
{
	struct image_source *is = &ex->image[machine];
	struct decision proof[MAX_DECISIONS]; /* what only the proof of life decided */
	unsigned used = is->used, read = is->read < used ? is->read : used;
	bool is_usable = is->read <= used;
	memcpy(proof, is->decision + read, (used - read) * sizeof(proof[0]));
	is->depth = used;
	if (!ex->stopped && may_cut(ex, machine, key))
		explore_image(ex, machine, VISIT_CUT, mark, NULL);
	is->used = used;
	if (is_usable && !ex->stopped && may_live(ex, machine, key)) {
		is->life = key;
		is->depth = read;
		explore_image(ex, machine, VISIT_LIFE, mark, NULL);
	}
	memcpy(is->decision + read, proof, (used - read) * sizeof(proof[0]));
	is->used = used;
}

/* What the plan wants of a machine. Without a life, and without a failure in it, it is as if there
 * was no plan. */
static enum visit planned_visit(const struct life_plan *plan)
{
	if (plans_life(plan) || plan->cut == LIFE_CUT)
		return VISIT_PLANNED;
	return plan->cut == LIFE_WHOLE ? VISIT_READ : VISIT_CUT;
}

static void explore_images(struct explorer *ex, unsigned machine, uint64_t key,
			   uint16_t note[VISITED_NOTES])
{
	struct image_source *is = &ex->image[machine];
	unsigned images = 0, samples = 0;
	struct history_mark mark = history_mark(ex->worlds.history);
	bool more = true, few = ex->living && !ex->plan;
	bool sample = few || (ex->few_images && machine == 1);
	unsigned most = sample ? 1 : ex->limits.images_per_point;
	assert(mark.epoch == machine); /* one power failure for each machine that is gone */
	image_reset(is);
	uint64_t serial = ++ex->recall.points;
	/* The images that are sampled depend on the point alone, not on earlier ones. */
	is->random = key;
	while (more && !ex->stopped) {
		ex->images = serial;
		explore_image(ex, machine,
			      ex->plan ? planned_visit(&ex->plan[machine]) : VISIT_READ, &mark,
			      samples ? NULL : note);
		if (!ex->plan)
			explore_further(ex, machine, key + images, &mark);
		images++;
		if (samples) {
			more = --samples > 0;
			is->depth = 0;
			continue;
		}
		more = image_next(is) && !CHECKER_MUTANT(ex->setup, CRASH_NO_OLDER);
		if (more && images >= most) {
			ex->counts.points_bounded += !few;
			is->sampling = true;
			is->depth = 0;
			assert(!samples);
			samples = sample ? FEW_IMAGES - 1 : SAMPLES;
			/* What all images have in common is not known. */
			for (unsigned k = 0; k < VISITED_NOTES; k++)
				note[k] = NOTE_MANY;
		}
	}
}

/* A seeded bug: such places are not looked at. */
static bool is_left_out(const struct explorer *ex, const struct choice_point *at)
{
	return (CHECKER_MUTANT(ex->setup, CRASH_NO_FENCE) && at->a == CRASH_BEFORE_FENCE) ||
	       (CHECKER_MUTANT(ex->setup, CRASH_NO_DRAIN) && at->a == CRASH_BEFORE_DRAIN);
}

/* Is the power to fail at this place? */
static bool fails_here(struct explorer *ex, const struct world *world,
		       const struct choice_point *at)
{
	struct image_source *is = &ex->image[world->machine];
	if (is_left_out(ex, at))
		return false;
	if (!world->machine)
		return true;
	if (CHECKER_MUTANT(ex->setup, CRASH_ONCE))
		return false;
	switch (is->visit) {
	case VISIT_LIFE:
		return world->life.on && (at->a == CRASH_AT_END ||
					  image_draws_failure(is, ex->led[world->machine].on));
	case VISIT_PLANNED:
		return world->life.on || ex->plan[world->machine].cut == LIFE_CUT_ANYWHERE;
	default:
		return true;
	}
}

/* Points that have one key are one if `check` is the same, too. */
struct point_name {
	uint64_t key;
	uint32_t check;
};

/* A point is its images, what clients have seen, who has failed, and what was durable for sure. */
static struct point_name name_point(const struct explorer *ex, const struct world *world)
{
	const size_t bytes = ex->setup->w.keys * sizeof(ex->lower_bound[0]);
	uint64_t check, past = worlds_inherited(&ex->worlds, world->machine + 1);
	uint64_t key = pmem_images_hashes(world->pm, &check);
	if (!CHECKER_MUTANT(ex->setup, SEEN_NO_HISTORY))
		past ^= ex->worlds.history->hash * 0xd6e8feb86659fd93u;
	key ^= past ^ XXH3_64bits(ex->lower_bound, bytes);
	check += past ^ XXH3_64bits_withSeed(ex->lower_bound, bytes, 1);
	if (CHECKER_MUTANT(ex->setup, SEEN_24_BITS))
		key &= 0xffffff;
	return (struct point_name){key, (uint32_t)(check * 0x9e3779b97f4a7c15u >> 32)};
}

static void stop_machine(struct explorer *ex, struct world *world)
{
	struct explorer_led *led = &ex->led[world->machine];
	if (led->on)
		led->stops = true;
	else
		sim_stop(world->sim, SIM_DONE);
}

/* What became of the point, for coverage. */
static enum cut_fate look_at_point(struct explorer *ex, struct world *world,
				   const struct choice_point *at)
{
	unsigned machine = world->machine + 1;
	struct history *h = ex->worlds.history;
	bool is_new;

	assert(machine < WORLDS);
	if (ex->stopped || ex->counts.states >= ex->limits.states) {
		stop_machine(ex, world);
		ex->run_whole = false;
		return CUT_BUDGET;
	}
	if (!fails_here(ex, world, at))
		return CUT_APART;
	bool living = ex->living;
	const struct point_name name = name_point(ex, world);
	const uint64_t key = name.key, hash = h->hash;
	if (ex->run_states && ex->counts.states >= ex->run_states && machine == 1 &&
	    !visited_has(ex->visited, key)) {
		ex->run_whole = false;
		return CUT_BUDGET; /* later runs are to have some, too */
	}
	ex->counts.points++;
	ex->run_points += machine == 1;
	ex->counts.nested_points += machine > 1;
	struct visited_entry *entry = visited_add(ex->visited, key, &is_new);
	if (!is_new && entry->check != name.check) {
		note_wrong_run(ex, "two points at which the power may fail have one name");
		stop_machine(ex, world);
		return CUT_BUDGET;
	}
	entry->check = name.check;
	if (!is_new) {
		ex->counts.points_seen++;
		if (machine == 1)
			raise_lower_bound(ex, entry->note);
		return CUT_KNOWN;
	}
	if (machine == 1)
		ex->point = key;
	struct history_mark before = history_mark(h);
	struct deviation power;
	deviation_record(&power, at, 1, 2);
	if (world->machine)
		note_image(ex, world->machine);
	ex->living |= world->life.on;
	ex->path[machine].n = 0;
	deviations_add(&ex->path[machine], &power);
	history_crash(h);
	verdicts_prepare(ex, machine);
	uint16_t note[VISITED_NOTES] = {NOTE_NONE};
	explore_images(ex, machine, key, note);
	ex->living = living;
	history_rewind(h, &before);
	assert(h->hash == hash);
	entry = visited_add(ex->visited, key, &is_new); /* it may have moved */
	entry->check = name.check;			/* or be forgotten */
	memcpy(entry->note, note, sizeof(note));
	if (machine == 1)
		raise_lower_bound(ex, note);
	if (ex->stopped)
		stop_machine(ex, world);
	return CUT_DONE;
}

static void explore_point(void *arg, struct world *world, const struct choice_point *at)
{
	struct explorer *ex = arg;
	struct explorer_led *led = &ex->led[world->machine];
	/* A design that survives the loss of a server need not survive more before the others have
	 * left it out. */
	if (ex->worlds.world[0].gone & sim_config(ex->worlds.world[0].sim)->members)
		return;
	if (led->stop_after) {
		bool last = !--led->stop_after;
		if (!last || led->drew)
			fails_here(ex, world, at); /* what it draws */
		if (last)
			sim_stop(world->sim, SIM_DONE);
		return;
	}
	recall_note_failure(&ex->recall, &ex->image[world->machine], at);
	enum explore_phase before = phase_begin(ex->phases, PHASE_POINT);
	enum cut_fate fate = look_at_point(ex, world, at);
	if (ex->cuts)
		cuts_point(ex->cuts, world, at, fate);
	phase_back(ex->phases, before);
}

/* --- one run --- */

void explore_lower_bound(struct explorer *ex)
{
	for (unsigned k = 0; k < HISTORY_KEYS; k++)
		ex->lower_bound[k] = VALUE_ABSENT;
	for (unsigned i = 0; i < ex->setup->values && !ex->setup->value[i].client; i++) {
		/* The load phase's PUTs come first in the history. */
		assert(ex->setup->value[i].key < ex->setup->w.keys);
		ex->lower_bound[ex->setup->value[i].key] = (int32_t)i;
	}
}

/* Machine 0 is at rest. */
static void mark_run(void *arg)
{
	struct explorer *ex = arg;
	if (*ex->position == NO_POSITION || !world_has_checkpoint(&ex->worlds) ||
	    (ex->mark_once && ex->marks->n))
		return;
	struct mark *mark = marks_next(ex->marks, *ex->position);
	if (!mark)
		return;
	world_checkpoint(&ex->worlds, &mark->at);
	mark->points = ex->run_points;
	memcpy(mark->lower_bound, ex->lower_bound, sizeof(mark->lower_bound));
}

/* All of the points before the mark were met when it was made. */
static void return_to(struct explorer *ex, struct mark *from, struct source *source)
{
	const enum checkpoint_mutant mutant = ex->limits.checkpoint_mutant;
	if (mutant != CHECKPOINT_NO_POINTS) {
		ex->run_points = from->points;
		ex->counts.points += from->points;
		ex->counts.points_seen += from->points;
	}
	if (mutant != CHECKPOINT_NO_LOWER_BOUND)
		memcpy(ex->lower_bound, from->lower_bound, sizeof(ex->lower_bound));
	checkpoint_return(&ex->worlds, &from->at, source, mutant);
}

/* `observer`: of the places where the power can fail, if it can. */
static void run_world(struct explorer *ex, struct mark *from, struct source *source,
		      world_observer *observer)
{
	struct world *w = &ex->worlds.world[0];
	const uint64_t events = sim_events(w->sim);
	ex->run_points = 0;
	ex->run_whole = true;
	explore_lower_bound(ex);
	if (from)
		return_to(ex, from, source);
	w->at_rest = ex->marks ? mark_run : NULL;
	w->rest_arg = ex;
	(from ? world_resume : world_run)(&ex->worlds, source,
					  ex->limits.no_crash ? NULL : observer, ex);
	w->at_rest = NULL; /* others make runs in this world, too */
	ex->run_events = sim_events(w->sim) - events;
}

static void begin_run(struct explorer *ex, const struct deviations *taken)
{
	ex->taken = taken;
	ex->stopped = ex->wrong.found;
	ex->living = false;
}

static void end_run(struct explorer *ex)
{
	frequency_run(&ex->frequency, ex->setup->known.first, number(ex));
	ex->counts.runs++;
}

/* What the run that is over says of itself. */
static void find_verdicts(struct explorer *ex, struct verdict v[TM_CONTRACTS])
{
	const unsigned want = contracts_in_run(ex->setup->servers);
	memset(v, 0, TM_CONTRACTS * sizeof(*v));
	verdicts_prepare(ex, 0);
	verdicts_find(ex, 0, want, NULL, v);
	ex->run_clean = !any_broken(&ex->worlds.world[0].result, v);
}

/* The store does not start, or has too little room. */
static void note_failed(struct explorer *ex)
{
	ex->counts.starts++;
	note_failure(ex, TM_OK, 0, NULL, ex->why);
	if (ex->worlds.failed.live_broken)
		note_failure(ex, TM_LIVE, 0, NULL, ex->why);
}

static int wrong(const struct explorer *ex)
{
	return ex->wrong.found ? -ENOTRECOVERABLE : 0;
}

int explore_run_from(struct explorer *ex, struct mark *from, struct source *source,
		     const struct deviations *taken)
{
	struct world *w = &ex->worlds.world[0];
	struct verdict v[TM_CONTRACTS];
	begin_run(ex, taken);
	if ((ex->worlds.unloaded || ex->worlds.unfilled) && !ex->counts.runs)
		note_failed(ex);
	if (ex->worlds.unloaded) {
		ex->unstarted = true;
		return 0;
	}
	enum explore_phase before = phase_begin(ex->phases, PHASE_RUN);
	if (ex->cuts)
		cuts_begin(ex->cuts, 0, ex->limits.no_crash);
	run_world(ex, from, source, explore_point);
	ex->counts.events += ex->run_events;
	assert(!ex->worlds.history->epoch); /* each power failure was taken back */
	assert(ex->counts.points_seen <= ex->counts.points);
	ex->run_whole &= !ex->stopped;
	find_verdicts(ex, v);
	note_verdicts(ex, 0, contracts_in_run(ex->setup->servers), v);
	if (!ex->stopped || w->result.end == SIM_FAULT)
		note_result(ex, 0, v);
	world_end(&ex->worlds, 0);
	ex->unstarted = !w->booted;
	if (ex->unstarted)
		ex->counts.starts++;
	else
		end_run(ex);
	phase_back(ex->phases, before);
	return wrong(ex);
}

/* --- runs that begin like others --- */

static bool has_budget(const struct explorer *ex)
{
	return !ex->unstarted && !ex->wrong.found && ex->counts.states < ex->limits.states;
}

uint32_t explore_emptied(const struct explorer *ex)
{
	return visited_emptied(ex->visited);
}

/* A run is made once more. False: the point was not met before. */
static bool meet_again(struct explorer *ex, const struct world *world)
{
	const struct visited_entry *entry = visited_find(ex->visited, name_point(ex, world).key);
	if (!entry)
		return false;
	ex->run_points++;
	raise_lower_bound(ex, entry->note);
	return true;
}

/* What a run comes to, apart from what was found in it. */
static uint64_t run_hash(const struct explorer *ex)
{
	const uint64_t parts[] = {sim_hash(ex->worlds.world[0].sim), ex->worlds.history->hash,
				  ex->run_points,
				  XXH3_64bits(ex->lower_bound, sizeof(ex->lower_bound))};
	return XXH3_64bits(parts, sizeof(parts));
}

/* Note the run that is over, with so many deviations, for runs that repeat it. */
static void note_made(struct explorer *ex, unsigned taken)
{
	const enum checkpoint_mutant mutant = ex->limits.checkpoint_mutant;
	const bool whole = ex->run_whole || mutant == PREFIX_CUT_SHORT;
	struct known_run run = {
		.hash = run_hash(ex), .points = ex->run_points, .events = ex->run_events};
	memcpy(run.lower_bound, ex->lower_bound, sizeof(run.lower_bound));
	/* The set of points may have been emptied meanwhile. */
	const bool known = (ex->run_clean || mutant == PREFIX_BROKEN) &&
			   ex->record.emptied == explore_emptied(ex);
	prefix_made(ex->prefix, whole, taken, whole && known ? &run : NULL);
}

/* The plain run is made for its marks. Where a point was not met before, the record ends, because a
 * run that comes there has to look at it. */
static void record_point(void *arg, struct world *world, const struct choice_point *at)
{
	struct explorer *ex = arg;
	if (is_left_out(ex, at) || !ex->marks || meet_again(ex, world))
		return;
	ex->marks = NULL;
	sim_set_at_rest(world->sim, NULL, NULL);
	sim_stop(world->sim, SIM_DONE);
}

static void record_plain(struct explorer *ex)
{
	struct verdict v[TM_CONTRACTS];
	struct source *source = prefix_record(ex->prefix);
	ex->marks = prefix_marks(ex->prefix, &ex->position);
	run_world(ex, NULL, source, record_point);
	ex->run_whole = ex->marks;
	find_verdicts(ex, v);
	world_end(&ex->worlds, 0);
	ex->record.done = true;
	ex->record.no_crash = ex->limits.no_crash;
	ex->record.emptied = explore_emptied(ex);
	ex->record.at = ex->marks ? UINT64_MAX : 8 * ex->counts.runs;
	note_made(ex, 0);
	ex->marks = NULL;
}

/* Is there a record by which to ask a source before its run is made? */
static bool has_record(struct explorer *ex, const struct source *source)
{
	if (!ex->prefix || !source || source->touched || source->atomics || ex->cuts ||
	    ex->worlds.unloaded)
		return false;
	if (ex->record.done && (ex->record.no_crash != ex->limits.no_crash ||
				ex->record.emptied != explore_emptied(ex))) {
		ex->record.done = false;
		ex->record.at = ex->counts.runs + RECORD_AFTER;
	}
	if (ex->counts.runs >= ex->record.at)
		record_plain(ex);
	return ex->record.done;
}

static void check_point(void *arg, struct world *world, const struct choice_point *at)
{
	struct explorer *ex = arg;
	if (!is_left_out(ex, at))
		meet_again(ex, world);
}

/* A deviation is named by what its actor does, and a queue pair that goes back to work for no
 * operation may give a name twice: then the first one deviates, and it is another run, in which the
 * second one may not come any more. */
static bool may_come_twice(const struct deviations *list)
{
	bool may = false;
	for (unsigned i = 0; i < list->n; i++)
		may |= !list->d[i].op.kind && strstr(list->d[i].who, "/qp");
	return may;
}

/* Of other names that were met twice the order tells. */
static bool other_order(const struct deviations *a, const struct deviations *b)
{
	bool other = false;
	for (unsigned i = 0; i < b->n && a->n == b->n; i++)
		other |= deviation_key(&a->d[i]) != deviation_key(&b->d[i]);
	return other;
}

/* Make the run once more, from its beginning, with what was left out of it. Is it the same? */
static void check_run(struct explorer *ex, uint64_t hash)
{
	struct trace_source whole;
	if (may_come_twice(ex->taken) || trace_start(&whole, ex->taken))
		return;
	run_world(ex, NULL, &whole.source, check_point);
	world_end(&ex->worlds, 0);
	const bool same_run = !other_order(&whole.taken, ex->taken);
	trace_finish(&whole);
	if (same_run && run_hash(ex) != hash)
		note_wrong_run(ex, "a run that went on from a checkpoint of another one, or was "
				   "taken for another one, is not what it is from its beginning");
}

/* The run was made before. All of its points were met then, and it broke nothing. */
static void repeat_run(struct explorer *ex, const struct known_run *run,
		       const struct deviations *taken)
{
	const uint64_t hash = run->hash;
	enum explore_phase before = phase_begin(ex->phases, PHASE_RUN);
	begin_run(ex, taken);
	ex->run_points = run->points;
	ex->counts.points += run->points;
	ex->counts.points_seen += run->points;
	ex->counts.events += run->events;
	memcpy(ex->lower_bound, run->lower_bound, sizeof(ex->lower_bound));
	end_run(ex);
	if ((hash + ex->repeated++) % CANARY_REPEATED == 0)
		check_run(ex, hash);
	phase_back(ex->phases, before);
}

int explore_run(struct explorer *ex, struct source *source, const struct deviations *taken)
{
	const struct known_run *known = NULL;
	struct source *rest = source;
	struct mark *from = NULL;
	if (has_record(ex, source)) {
		from = prefix_ask(ex->prefix, source, &rest, ex->limits.checkpoint_mutant);
		known = prefix_known(ex->prefix);
	}
	/* Where the budget is used up a run ends early. */
	if (known && (ex->limits.no_crash || has_budget(ex))) {
		repeat_run(ex, known, taken);
		return wrong(ex);
	}
	int error = explore_run_from(ex, from, rest, taken);
	if (error || !from)
		return error;
	note_made(ex, taken->n);
	if (ex->resumed++ % CANARY_EVERY == 0 && explore_more(ex))
		check_run(ex, run_hash(ex));
	return wrong(ex);
}

bool explore_more(const struct explorer *ex)
{
	return !ex->stopped && has_budget(ex);
}

void explore_counts_add(struct explore_counts *to, const struct explore_counts *from)
{
	to->runs += from->runs;
	to->events += from->events;
	to->points += from->points;
	to->points_seen += from->points_seen;
	to->states += from->states;
	to->nested_points += from->nested_points;
	to->nested_states += from->nested_states;
	to->lives += from->lives;
	to->life_states += from->life_states;
	to->points_bounded += from->points_bounded;
	to->unsure += from->unsure;
	to->spared += from->spared;
	to->starts += from->starts;
	_Static_assert(sizeof(*to) == 13 * sizeof(uint64_t), "each count is added");
}

uint64_t explore_judged(const struct explore_counts *counts, unsigned servers, unsigned contract,
			unsigned *parts)
{
	const unsigned bit = TM_BIT(contract), by_running = CONTRACTS_BY_RUNNING;
	const uint64_t n[] = {bit & (contracts_in_run(servers) | by_running) ? counts->runs : 0,
			      bit & (CONTRACTS_AFTER_CRASH | by_running) ? counts->states : 0,
			      bit & (TM_BIT(TM_OK) | TM_BIT(TM_LIVE)) ? counts->starts : 0};
	*parts = (n[0] ? 1 : 0) | (n[1] ? 2 : 0) | (n[2] ? 4 : 0);
	return n[0] + n[1] + n[2];
}

static int open_recall(struct explorer *ex)
{
	const struct explore_limits *limits = &ex->limits;
	if (shared_take(ex->recall_key, &ex->recall))
		return 0;
	return recall_open(&ex->recall, limits->tree_bytes, limits->tree_mutant);
}

/* Has the store the room that it needs? */
static int fill(struct explorer *ex)
{
	if (shared_filled(ex->recall_key, ex->setup))
		return 0;
	int error = worlds_fill(&ex->worlds);
	if (!error)
		shared_note_filled(ex->recall_key, ex->setup);
	return error;
}

int explore_open(struct explorer *ex, struct setup *setup, const struct explore_limits *limits)
{
	memset(ex, 0, sizeof(*ex));
	ex->setup = setup;
	ex->limits = *limits;
	if (CHECKER_MUTANT(setup, TREE_LINE_LEFT_OUT))
		ex->limits.tree_mutant = TREE_LINE_LEFT_OUT;
	int error = worlds_open(&ex->worlds, setup);
	if (!error && limits->share_tree)
		ex->recall_key = shared_key(setup, limits->tree_bytes, ex->limits.tree_mutant);
	if (!error && limits->fill)
		error = fill(ex);
	if (error == -EIO)
		worlds_why(&ex->worlds, ex->why);
	else if (error)
		return error;
	ex->judge = malloc(WORLDS * sizeof(*ex->judge)); /* a megabyte, most of it never used */
	ex->image = calloc(WORLDS, sizeof(*ex->image));
	ex->visited = visited_new();
	bool own = ex->worlds.history->detail; /* it is kept for that judge */
	ex->own = own ? own_judge_new(setup) : NULL;
	bool tree = limits->tree_bytes && !limits->no_tree && !limits->eager && !limits->anywhere;
	/* Two seeded bugs do something to the source where a run begins. */
	bool resume = tree && !CHECKER_MUTANT(setup, PLAIN_ONLY) &&
		      !CHECKER_MUTANT(setup, TASKS_NEVER_HELD);
	ex->prefix = resume ? prefix_new(limits->tree_bytes / PREFIX_SHARE) : NULL;
	ex->record.at = RECORD_AFTER;
	if (!ex->judge || !ex->image || !ex->visited || (own && !ex->own) ||
	    (resume && !ex->prefix) || (tree && open_recall(ex))) {
		explore_close(ex);
		return -ENOMEM;
	}
	for (unsigned m = 0; m < WORLDS; m++) {
		judge_reset(&ex->judge[m]);
		ex->worlds.world[m].eager = limits->eager;
		ex->worlds.world[m].anywhere = limits->anywhere;
	}
	return 0;
}

int explore_collect_outcomes(struct explorer *ex, bool by_point)
{
	outcomes_free(ex->outcomes);
	ex->outcomes = outcomes_new(by_point);
	return ex->outcomes ? 0 : -ENOMEM;
}

void explore_restart(struct explorer *ex)
{
	memset(&ex->counts, 0, sizeof(ex->counts));
	memset(ex->broken, 0, sizeof(ex->broken));
	memset(ex->modes, 0, sizeof(ex->modes));
	memset(ex->strange, 0, sizeof(ex->strange));
	memset(&ex->frequency, 0, sizeof(ex->frequency));
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		ex->failure[c].found = false;
	memset(ex->recovery_seen, 0, sizeof(ex->recovery_seen));
	visited_clear(ex->visited);
	ex->record.done = false;
	ex->record.at = RECORD_AFTER;
	if (ex->outcomes)
		outcomes_clear(ex->outcomes);
}

void explore_close(struct explorer *ex)
{
	worlds_close(&ex->worlds);
	free(ex->judge);
	own_judge_free(ex->own);
	free(ex->image);
	visited_free(ex->visited);
	prefix_free(ex->prefix);
	shared_give(ex->recall_key, &ex->recall);
	outcomes_free(ex->outcomes);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		deviations_free(&ex->failure[c].deviations);
	deviations_free(&ex->wrong.deviations);
	for (unsigned m = 0; m < WORLDS; m++)
		deviations_free(&ex->path[m]);
	memset(ex, 0, sizeof(*ex));
}
