/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer's view of a machine: which crash images are possible now, line by line. crash.h says
 * what each function promises.
 */
#include <xxhash.h>
#include "core/pmem/model.h"

#define WORDS (LINE / 8)

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
	assert(answer - 1 <= pm->dirties); /* the power holds: these lines are dirty still */
	if (answer >= 2) {
		uint32_t l = pm->dirty[answer - 2];
		line_commit_all(pm, l);
		assert(!pm->line[l].in_flight || line_lost(pm, l));
	} else
		lines_write_back(pm);
	sim_trace(pm->sim, actor, 0, "the cache writes back %s",
		  answer == 1 ? "every dirty line" : "a dirty line");
}

uint64_t pmem_images_hashes(const struct pmem *pm, uint64_t *check)
{
	/* Durable content relative to the first machine's boot: the machines' changes add up (XOR).
	 * In flight: this machine's versions, and those of failed machines on lines that have not
	 * been touched since. */
	uint64_t durable = pm->durable_hash, flight = pm->flight_hash;
	assert(pm->running && !pm->notes_again); /* or it is not known which lines are decided */
	assert(pm->dirties || !flight);		 /* each line's part went when its versions did */
	for (const struct pmem *failed = pm->before; failed; failed = failed->before) {
		durable ^= failed->durable_hash;
		for (uint32_t i = 0; i < failed->dirties; i++) {
			uint32_t l = failed->dirty[i];
			if (line_undecided_in(pm, l) == failed)
				flight ^= failed->line[l].flight_hash;
		}
	}
	*check = durable ^ flight * 0xd6e8feb86659fd93u;
	return durable * 0x9e3779b97f4a7c15u ^ flight;
}

uint64_t pmem_images_hash(const struct pmem *pm)
{
	uint64_t check;
	return pmem_images_hashes(pm, &check);
}

const struct pmem *pmem_failed(const struct pmem *pm, uint32_t line)
{
	assert(pm->before && line < pm->len / LINE);
	return line_undecided_in(pm->before, line);
}

void pmem_note_touched(struct pmem *pm, bool on)
{
	pm->notes_touched = on;
}

struct pmem_touched pmem_touched(const struct pmem *pm)
{
	const struct touch_list *list = &pm->touched[0];
	return (struct pmem_touched){list->touch, list->n, list->lines};
}

void pmem_note_mark(struct pmem *pm, uint32_t line, uint64_t content)
{
	struct touch_list *list = &pm->touched[0];
	assert(line >= pm->len / LINE && content != PMEM_AS_LOADED && !pm->notes_again);
	if (!pm->notes_touched)
		return;
	list->lines++;
	touch_list_add(list, (struct pmem_touch){.content = content, .line = line, .lines = 1});
}

void pmem_note_touched_again(struct pmem *pm)
{
	uint64_t *decided = pm->decided;
	assert(pm->running && pm->notes_touched && !pm->notes_again);
	pm->decided = pm->again; /* none of them, since nothing was to be noted again */
	pm->again = decided;
	pm->notes_again = true;
}

struct pmem_touched pmem_touched_again(const struct pmem *pm)
{
	const struct touch_list *list = &pm->touched[1];
	return (struct pmem_touched){list->touch, list->n, list->lines};
}

uint64_t pmem_look(struct pmem *pm, uint32_t line)
{
	touch(pm, (uint64_t)line * LINE, LINE, false);
	return pm->stack->changes[line] ? pmem_content_hash(pm->work + (size_t)line * LINE)
					: PMEM_AS_LOADED;
}

bool pmem_settled(struct pmem *pm)
{
	return !pm->pending.len && !pm->window.buffered && !pm->nts && !pm->arrivals;
}

uint64_t pmem_content_hash(const uint8_t content[LINE])
{
	uint64_t hash = XXH3_64bits(content, LINE);
	return hash == PMEM_AS_LOADED ? 1 : hash;
}

bool pmem_as_loaded(const struct pmem *pm, uint32_t line, uint32_t lines)
{
	const uint64_t *changed = pm->stack->changed;
	assert(lines && line + lines <= pm->len / LINE);
	while (lines) {
		unsigned first = line % 64, n = lines < 64 - first ? lines : 64 - first;
		if (changed[line / 64] >> first & (n < 64 ? (1ull << n) - 1 : UINT64_MAX))
			return false;
		line += n;
		lines -= n;
	}
	return true;
}

const uint8_t *pmem_boot_content(const struct pmem *pm, uint32_t line)
{
	assert(pm->before && !pm->running && line < pm->len / LINE);
	return pm->work + (size_t)line * LINE;
}

void pmem_decide_all(struct pmem *pm)
{
	assert(pm->running);
	for (const struct pmem *failed = pm->before; failed; failed = failed->before) {
		for (uint32_t i = 0; i < failed->dirties; i++) {
			touch(pm, (uint64_t)failed->dirty[i] * LINE, 1, false);
			assert(line_undecided_in(pm, failed->dirty[i]) == pm);
		}
	}
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

unsigned pmem_line_durable(const struct pmem *pm, uint32_t l)
{
	return pm->line[l].committed;
}

unsigned pmem_line_answers(const struct pmem *pm, uint32_t l)
{
	enum line_torn torn = (enum line_torn)pm->hw.line_torn;
	if (MUTANT(&pm->hw, PM_TORN_LEFT) && torn == TORN_ANY)
		torn = TORN_PREFIX;
	return pmem_answers(pm->line[l].in_flight, torn);
}

void pmem_line_content(const struct pmem *pm, uint32_t l, unsigned answer, uint8_t out[LINE])
{
	uint8_t newer[LINE];
	struct pmem_answer a = pmem_answer_split(pm->line[l].in_flight, answer);
	assert(answer < pmem_line_answers(pm, l));
	if (!a.words) {
		line_as_of(pm, l, a.version, out);
		return;
	}
	/* Cut: some words are of this version, the others of what was written back before. */
	assert(a.over < a.version && a.words < (1u << WORDS) - 1);
	line_as_of(pm, l, a.version, newer);
	line_as_of(pm, l, a.over, out);
	pmem_cut(a.words, newer, out);
}

void pmem_cut(uint8_t words, const uint8_t newer[LINE], uint8_t line[LINE])
{
	for (unsigned w = 0; w < WORDS; w++)
		if (words >> w & 1)
			memcpy(line + 8 * w, newer + 8 * w, 8);
}

/* --- answers with equal contents --- */

static uint8_t same_words(const uint64_t a[WORDS], const uint64_t b[WORDS])
{
	unsigned same = 0;
	for (unsigned w = 0; w < WORDS; w++)
		same |= (unsigned)(a[w] == b[w]) << w;
	return (uint8_t)same;
}

/* The line as of each version from 0, the durable content, to in_flight. */
static struct pmem_content *line_history(const struct pmem *pm, uint32_t l)
{
	struct pmem_stack *stack = pm->stack;
	unsigned versions = pm->line[l].in_flight;
	while (stack->history_room <= versions)
		stack->history = array_grow(stack->history, &stack->history_room,
					    sizeof(*stack->history));
	for (unsigned v = 0; v <= versions; v++)
		line_as_of(pm, l, v, (uint8_t *)stack->history[v].word);
	return stack->history;
}

/* The least number of first words as in `one` with all others as in `other`, bits that say where
 * two contents equal a third one; 0: there is none. */
static unsigned least_cut(unsigned one, unsigned other)
{
	for (unsigned cut = 1; cut < WORDS && one >> (cut - 1) & 1; cut++)
		if (other >> cut == 0xffu >> cut)
			return cut;
	return 0;
}

/*
 * Has no smaller answer the content of this one? Smaller are the newer versions; for a cut line all
 * versions, the cuts of earlier pairs, and fewer words of its own; and if other words than the
 * first ones arrived, all cuts, then earlier pairs with any choice, and a smaller one of its own.
 */
static bool is_new(struct pmem_content *history, unsigned versions, struct pmem_answer a)
{
	bool cut = !(a.words & (a.words + 1)), earlier = true; /* pairs before its own */
	uint64_t mine[WORDS];
	for (unsigned w = 0; w < WORDS; w++)
		mine[w] = history[!a.words || a.words >> w & 1 ? a.version : a.over].word[w];
	for (unsigned v = 0; v <= versions; v++) {
		history[v].same = same_words(mine, history[v].word);
		if (history[v].same == 0xff && (a.words || v > a.version))
			return false;
	}
	for (unsigned version = 1; version <= versions && a.words; version++) {
		for (unsigned over = 0; over < version; over++) {
			unsigned one = history[version].same, other = history[over].same;
			unsigned least = least_cut(one, other);
			bool own = version == a.version && over == a.over;
			if (own && cut)
				return a.words == (1u << least) - 1;
			if (least || (own && (~other & 0xff) != a.words) ||
			    (!cut && earlier && !own && (one | other) == 0xff))
				return false;
			earlier = earlier && !own;
		}
	}
	return true;
}

unsigned pmem_answer_next(struct pmem_content *history, unsigned versions, unsigned answers,
			  unsigned answer)
{
	for (; answer < answers; answer++) {
		struct pmem_answer a = pmem_answer_split(versions, answer);
		if (a.words) {
			/* Words that did not change need not be tried. */
			uint8_t changed = (uint8_t)~same_words(history[a.version].word,
							       history[a.over].word);
			if (!(changed & (changed - 1))) {
				answer = pmem_answer_pair_end(versions, answer) - 1;
				continue;
			}
			if (!(a.words & changed) || (a.words & changed) == changed)
				continue;
		}
		if (is_new(history, versions, a))
			return answer;
	}
	return answers;
}

unsigned pmem_line_next(const struct pmem *pm, uint32_t l, unsigned answer)
{
	return pmem_answer_next(line_history(pm, l), pm->line[l].in_flight,
				pmem_line_answers(pm, l), answer);
}

void pmem_line_version(const struct pmem *pm, uint32_t l, unsigned v, struct pmem_version *out)
{
	assert(v >= 1 && v <= pm->line[l].in_flight);
	uint32_t i = pm->line[l].first;
	while (--v)
		i = pm->version[i - 1].next;
	assert(i && i <= pm->versions);
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
		if (pm->before && !line_bit(pm->decided, l))
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
