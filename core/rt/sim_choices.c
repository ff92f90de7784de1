/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choices: the source is asked, its answers go into the event hash. A power failure is one of them.
 */
#include <errno.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "core/rt/sim_state.h"

bool sim_plain(const struct sim *sim)
{
	return !sim->source;
}

void sim_let_calls_fail(struct sim *sim, bool on)
{
	sim->run.calls_fail = on;
}

bool sim_calls_fail(const struct sim *sim)
{
	return sim->run.calls_fail;
}

unsigned sim_choose(struct sim *sim, const struct choice_point *at, unsigned n)
{
	assert(n >= 1);
	if (answered_plainly(sim->source, at->kind))
		return 0;
	int error = errno;
	unsigned answer = sim->source->answer(sim->source, at, n);
	errno = error; /* the task's: what it did not call does not change it */
	assert(choice_allows(at->kind, n, answer));
	if (answer)
		sim_mix(sim, choice_key(at), answer);
	sim->disturbed |= answer && !choice_traits[at->kind].power;
	return answer;
}

bool sim_power_fails(struct sim *sim, const struct choice_point *at)
{
	assert(at->kind == CHOICE_CRASH && at->a < CRASH_PLACES);
	/* Several lines land in one event: after the power failed no further one does. */
	if (sim->stopping && sim->end == SIM_POWER)
		return true;
	sim_commit_pending(sim);
	if (sim->alone)
		return false;
	if (sim_choose(sim, at, 2)) {
		if (sim->running)
			sim_abandon(sim, SIM_POWER);
		sim_stop(sim, SIM_POWER);
		return true;
	}
	if (sim->observer) {
		int error = errno;
		sim->observer(sim->observer_arg, at);
		errno = error;
	}
	assert(sim_of_thread == sim); /* what booted in the observer has ended there */
	return false;
}

bool sim_power_fails_here(struct sim *sim, enum crash_place place)
{
	struct actor *actor = sim_actor(sim);
	struct choice_point at = {.kind = CHOICE_CRASH, .a = place};
	assert(place < CRASH_PLACES && place != CRASH_AT_END); /* that one is no task's */
	if (!sim->source && !sim->observer)
		return false;
	if (actor) {
		at.who = actor;
		at.op = actor->op;
		at.occurrence = actor->occurrence;
		at.b = ++actor->count[COUNT_CRASH + place];
	} else if (place == CRASH_ANYWHERE) {
		at.b = ++sim->anywhere_events;
	}
	return sim_power_fails(sim, &at);
}

void sim_touch(struct sim *sim, enum touch what, uint64_t where, uint64_t len)
{
	struct source *source = sim->source;
	if (sim->scheduler)
		sim->scheduler->touched(sim->scheduler, what, where, len);
	else if (source && source->touched)
		source->touched(source, sim_actor(sim), what, where, len);
}

bool sim_wants_touches(const struct sim *sim)
{
	return sim->scheduler || !sim->source || sim->source->touched;
}

void sim_mix(struct sim *sim, uint64_t a, uint64_t b)
{
	run_mix(&sim->run, a, b);
}

void sim_mix_bytes(struct sim *sim, const void *bytes, size_t len)
{
	sim_mix(sim, XXH3_64bits(bytes, len), len);
}

uint64_t sim_hash(const struct sim *sim)
{
	return sim->run.hash;
}
