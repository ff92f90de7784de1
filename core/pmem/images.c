/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer's view of a machine: which crash images are possible now, line by line. crash.h says
 * what each function promises.
 */
#include "core/pmem/model.h"

void pmem_cache_pressure(struct pmem *pm)
{
	struct actor *actor = sim_actor(pm->sim);
	pmem_commit_pending(pm);
	if (!pm->dirties || sim_plain(pm->sim) || !actor)
		return;
	struct choice_point at = {.kind = CHOICE_EVICT,
				  .who = actor,
				  .op = actor->op,
				  .occurrence = actor->occurrence};
	unsigned answer = sim_choose(pm->sim, &at, pm->dirties + 2);
	if (!answer || sim_power_fails_here(pm->sim, CRASH_BEFORE_EVICT))
		return;
	if (answer >= 2) {
		uint32_t l = pm->dirty[answer - 2];
		line_commit_all(pm, l);
	} else
		lines_write_back(pm);
	sim_trace(pm->sim, actor, 0, "the cache writes back %s",
		  answer == 1 ? "every dirty line" : "a dirty line");
}

uint64_t pmem_images_hash(const struct pmem *pm)
{
	/* Durable content relative to the first machine's boot: the machines' changes add up (XOR).
	 * In flight: this machine's versions, and those of failed machines on lines that have not
	 * been touched since. */
	uint64_t durable = pm->durable_hash, flight = pm->flight_hash;
	for (const struct pmem *failed = pm->before; failed; failed = failed->before) {
		durable ^= failed->durable_hash;
		for (uint32_t i = 0; i < failed->dirties; i++) {
			uint32_t l = failed->dirty[i];
			if (line_undecided_in(pm, l) == failed)
				flight ^= failed->line[l].flight_hash;
		}
	}
	return durable * 0x9e3779b97f4a7c15u ^ flight;
}

const struct pmem *pmem_failed(const struct pmem *pm, uint32_t line)
{
	return line_undecided_in(pm->before, line);
}

void pmem_decide_all(struct pmem *pm)
{
	for (const struct pmem *failed = pm->before; failed; failed = failed->before)
		for (uint32_t i = 0; i < failed->dirties; i++)
			touch(pm, (uint64_t)failed->dirty[i] * LINE, 1, false);
}

unsigned pmem_dirty(const struct pmem *pm)
{
	return pm->dirties;
}

uint32_t pmem_dirty_line(const struct pmem *pm, unsigned i)
{
	assert(i < pm->dirties);
	return pm->dirty[i];
}

unsigned pmem_line_versions(const struct pmem *pm, uint32_t l)
{
	return pm->line[l].in_flight;
}

unsigned pmem_line_answers(const struct pmem *pm, uint32_t l)
{
	return pmem_answers(pm->line[l].in_flight, pm->hw.line_torn);
}

void pmem_line_content(const struct pmem *pm, uint32_t l, unsigned answer, uint8_t out[LINE])
{
	uint8_t newer[LINE];
	struct pmem_answer a = pmem_answer_split(pm->line[l].in_flight, answer);
	if (!a.words) {
		line_as_of(pm, l, a.version, out);
		return;
	}
	/* Cut: the first words are of this version, the others of what was written back before. */
	line_as_of(pm, l, a.version, newer);
	line_as_of(pm, l, a.over, out);
	memcpy(out, newer, a.words * 8);
}

bool pmem_line_distinct(const struct pmem *pm, uint32_t l, unsigned answer)
{
	uint8_t mine[LINE], other[LINE];
	pmem_line_content(pm, l, answer, mine);
	for (unsigned k = 0; k < answer; k++) {
		pmem_line_content(pm, l, k, other);
		if (!memcmp(mine, other, LINE))
			return false;
	}
	return true;
}

void pmem_line_version(const struct pmem *pm, uint32_t l, unsigned v, struct pmem_version *out)
{
	assert(v >= 1 && v <= pm->line[l].in_flight);
	uint32_t i = pm->line[l].first;
	while (--v)
		i = pm->version[i - 1].next;
	const struct version *from = &pm->version[i - 1];
	*out = (struct pmem_version){.who = from->by.who,
				     .op = from->by.op,
				     .occurrence = from->by.occurrence,
				     .nic = from->by.nic,
				     .off = from->off,
				     .len = from->len,
				     .pc = from->by.pc};
	memcpy(out->data, from->data, from->len);
}

bool pmem_all_seen(struct pmem *pm, uint64_t *off)
{
	uint8_t expected[LINE];
	show_all(pm);
	for (uint32_t l = 0; l < pm->len / LINE; l++) {
		if (pm->before && pm->line[l].decided != pm->run)
			continue;
		line_as_of(pm, l, pm->line[l].in_flight, expected);
		if (pm->arrivals)
			continue; /* durable is ahead of what is visible: nothing to compare */
		for (unsigned i = 0; i < LINE; i++) {
			if (expected[i] != pm->work[(size_t)l * LINE + i]) {
				*off = (uint64_t)l * LINE + i;
				return false;
			}
		}
	}
	return true;
}
