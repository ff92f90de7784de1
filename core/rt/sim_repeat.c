/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Livelocks: the same reads of the same bytes again and again, with nothing pending.
 *
 * What the tasks and the NICs of the whole simulation read and write is looked at once a run has
 * made WATCHED_AFTER steps without news: without an operation that begins or returns, or a task
 * that starts. From then on an access is news if it is not in the set of those seen so far: another
 * place, or other bytes there. The simulation repeats itself when REPEATED steps have passed
 * without news, and no delay that the source has chosen is still to end. While one is, what waits
 * for it makes many steps and need not be held up: but after PENDING steps it is, until the delay
 * ends and no longer. Else a long delay would outlast the budget of steps, and a run be given up
 * that goes on when it ends.
 *
 * A loop may still end by the clock, when some time is over. So a simulation that repeats itself is
 * not stopped: time passes faster. At every PAUSE_STEPS-th step the task that makes it is held up,
 * each time twice as long, which is a delay that any task may meet at any time. What waits for a
 * time sees it pass, and news ends the pauses; without any, the run comes to the time at which
 * operations are given up within some ten thousand steps.
 *
 * A loop that counts its rounds in a register looks like one that goes on for ever: one that would
 * have ended by itself after more rounds than these steps allow is given up, too. And a loop with
 * more than SEEN different accesses is left to the budget of steps.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/rt/sim_state.h"

#define WATCHED_AFTER 2048
#define REPEATED      4096
#define PENDING	      65536
#define PAUSE_STEPS   128
#define PAUSE_MIN_NS  1000000	  /* 1 ms */
#define PAUSE_MAX_NS  8000000000u /* 8 s */
#define SEEN	      (REPEAT_SLOTS / 2)
_Static_assert(REPEAT_SLOTS <= UINT16_MAX + 1, "a slot's number is kept in 16 bits");

/* Steps since then. A budget that is used up has gone below zero; the difference is right then,
 * too. */
static uint64_t steps_since(const struct sim *sim, uint64_t budget)
{
	assert(budget >= sim->step_budget || sim->step_budget == UINT64_MAX);
	return budget - sim->step_budget;
}

void sim_repeat_news(struct sim *sim)
{
	struct repeat *r = &sim->repeat;

	r->watching = r->pending = false;
	r->news_at = sim->step_budget;
	r->look_at = sim->step_budget > WATCHED_AFTER ? sim->step_budget - WATCHED_AFTER : 0;
	r->pause_ns = PAUSE_MIN_NS;
}

void sim_repeat_allow(struct sim *sim, bool allowed)
{
	sim->repeat.off = allowed;
	sim_repeat_news(sim);
}

bool sim_repeat_allowed(const struct sim *sim)
{
	return sim->repeat.off;
}

static void start_watching(struct sim *sim)
{
	struct repeat *r = &sim->repeat;
	struct repeat_seen *seen = &sim->seen;

	r->watching = true;
	while (seen->entries)
		seen->seen[seen->slot[--seen->entries]] = 0;
	r->news_at = sim->step_budget;
}

/* True: it is new. An open table with linear probing; an entry is never 0. */
static bool add(struct repeat_seen *r, uint64_t access)
{
	unsigned slot = access % REPEAT_SLOTS;

	assert(access && r->entries < SEEN);
	for (; r->seen[slot]; slot = (slot + 1) % REPEAT_SLOTS)
		if (r->seen[slot] == access)
			return false;
	r->seen[slot] = access;
	r->slot[r->entries++] = (uint16_t)slot;
	return true;
}

void sim_saw(struct sim *sim, enum touch what, uint64_t where, const void *bytes, size_t len)
{
	struct repeat *r = &sim->repeat;

	if (!r->watching)
		return;
	if (sim->seen.entries == SEEN)
		start_watching(sim);
	if (add(&sim->seen, XXH3_64bits_withSeed(bytes, len, where * CHOICE_KINDS + what) | 1)) {
		r->news_at = sim->step_budget;
		r->pause_ns = PAUSE_MIN_NS;
	}
}

void sim_repeat_pending(struct sim *sim, uint64_t due)
{
	if (due < UINT64_MAX / 8 && due > sim->repeat.pending_until)
		sim->repeat.pending_until = due;
}

bool sim_repeats(const struct sim *sim)
{
	return sim->repeat.watching && !sim->repeat.pending &&
	       steps_since(sim, sim->repeat.news_at) >= REPEATED;
}

static uint64_t next_pause(struct repeat *r)
{
	uint64_t pause = r->pause_ns;

	r->pause_ns = pause < PAUSE_MAX_NS / 2 ? 2 * pause : PAUSE_MAX_NS;
	return pause;
}

/* As far as is known, nothing new has happened since here. */
static void start_again(struct repeat *r, uint64_t budget)
{
	r->pending = false;
	r->news_at = budget;
	r->pause_ns = PAUSE_MIN_NS;
}

static uint64_t pause_pending(struct sim *sim)
{
	struct repeat *r = &sim->repeat;
	uint64_t left = r->pending_until - sim->run.now;

	r->pending = true;
	if (steps_since(sim, r->news_at) < PENDING)
		return 0;
	uint64_t pause = next_pause(r);
	return pause < left ? pause : left;
}

uint64_t sim_repeat_pause(struct sim *sim)
{
	struct repeat *r = &sim->repeat;

	r->look_at = sim->step_budget > PAUSE_STEPS ? sim->step_budget - PAUSE_STEPS : 0;
	if (sim->scheduler || r->off)
		return 0;
	if (!r->watching)
		start_watching(sim);
	if (sim->run.now < r->pending_until)
		return pause_pending(sim);
	if (r->pending)
		start_again(r, sim->step_budget);
	if (!sim_repeats(sim))
		return 0;
	return next_pause(r);
}
