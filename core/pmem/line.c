/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line of the pool: its durable content, the versions in flight on it, and what a power failure
 * left of it. The hashes of both are kept up with each change, so that pmem_images_hash() need not
 * look at the pool.
 */
#include <xxhash.h>
#include "core/pmem/model.h"

static uint64_t content_hash(const struct pmem *pm, uint32_t l)
{
	return XXH3_64bits_withSeed(pm->durable + (size_t)l * LINE, LINE, l + 1);
}

void line_save(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	if (line->saved == pm->run)
		return;
	assert(pm->running && l < pm->len / LINE);
	line->saved = pm->run;
	pm->stack->changes[l]++;
	pm->stack->changed[l / 64] |= 1ull << l % 64;
	if (pm->undos == pm->undo_room)
		pm->undo = array_grow(pm->undo, &pm->undo_room, sizeof(*pm->undo));
	struct undo *undo = &pm->undo[pm->undos++];
	undo->line = l;
	memcpy(undo->content, pm->work + (size_t)l * LINE, LINE);
	line->content_hash = content_hash(pm, l);
}

void line_write_durable(struct pmem *pm, uint64_t off, const void *data, size_t len)
{
	assert(pm->running && off + len <= pm->len);
	for (unsigned i = pm->machine + 1; i <= pm->stack->machines; i++)
		put(pm->stack->image[i] + off, data, len);
}

void line_rehash(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	uint64_t hash = content_hash(pm, l);
	pm->durable_hash ^= line->content_hash ^ hash;
	line->content_hash = hash;
}

static uint64_t version_hash(uint64_t before, uint32_t l, const struct version *v)
{
	return XXH3_64bits_withSeed(v->data, v->len,
				    before + ((uint64_t)l << 16 | (uint64_t)v->off << 8 | v->len));
}

const struct pmem *line_undecided_in(const struct pmem *pm, uint32_t l)
{
	while (pm->before && !line_bit(pm->decided, l))
		pm = pm->before;
	return pm;
}

void touch_list_add(struct touch_list *list, struct pmem_touch touch)
{
	if (list->n == list->room)
		list->touch = array_grow(list->touch, &list->room, sizeof(*list->touch));
	list->touch[list->n++] = touch;
}

/* Lines that follow one another; of more than one none has been changed. */
static void note_in(struct pmem *pm, struct touch_list *list, uint32_t l, uint32_t lines)
{
	bool changed = pm->stack->changes[l];
	struct pmem_touch *last = list->n ? &list->touch[list->n - 1] : NULL;
	list->lines += lines;
	if (!changed && last && last->content == PMEM_AS_LOADED && last->line + last->lines == l) {
		last->lines += lines;
		return;
	}
	touch_list_add(list,
		       (struct pmem_touch){
			       .content = changed ? pmem_content_hash(pm->work + (size_t)l * LINE)
						  : PMEM_AS_LOADED,
			       .line = l,
			       .lines = lines});
}

/* A failed machine's line holds one of its versions now. */
static void decide(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	uint8_t content[LINE];

	assert(pm->running && line->saved != pm->run);
	const struct pmem *failed = line_undecided_in(pm->before, l);
	unsigned answers = pmem_line_answers(failed, l);
	if (answers == 1)
		return;
	struct choice_point at = {.kind = CHOICE_LINE, .a = l, .b = pm->machine};
	unsigned answer = sim_choose(pm->sim, &at, answers);
	pmem_line_content(failed, l, answer, content);
	line_save(pm, l);
	memcpy(pm->work + (size_t)l * LINE, content, LINE);
	line_write_durable(pm, (uint64_t)l * LINE, content, LINE);
	line_rehash(pm, l);
	if (sim_tracing(pm->sim)) {
		char name[64], version[PMEM_ANSWER_TEXT];
		pmem_place(pm, (uint64_t)l * LINE, name, sizeof(name));
		pmem_answer_print(failed->line[l].in_flight, answer, version, sizeof(version));
		const struct traced about = {
			.kind = TRACED_SURVIVED, .off = (uint64_t)l * LINE, .len = LINE};
		sim_trace_event(pm->sim, sim_actor(pm->sim), 0, &about,
				"first touch of line %s: it survived as %s", name, version);
	}
}

/* The lines of one word of the bit maps. */
static __attribute__((noinline)) void decide_word(struct pmem *pm, uint32_t word, uint64_t lines)
{
	const uint64_t again = pm->again[word] & lines, changed = pm->stack->changed[word];
	while (lines) {
		/* Lines that have not been written, and most are such, are taken together. */
		uint32_t l = (uint32_t)__builtin_ctzll(lines), n = 1;
		uint64_t like = changed >> l & 1 ? 0 : ~changed & lines;
		bool noted = again >> l & 1;
		like &= noted ? again : ~again;
		uint64_t others = ~(like >> l);
		if (like >> l & 1)
			n = others ? (uint32_t)__builtin_ctzll(others) : 64;
		uint64_t these = (n < 64 ? (1ull << n) - 1 : UINT64_MAX) << l;
		if (changed >> l & 1 && !noted)
			decide(pm, word * 64 + l);
		pm->decided[word] |= these;
		if (pm->notes_touched && !noted)
			note_in(pm, &pm->touched[0], word * 64 + l, n);
		if (pm->notes_again)
			note_in(pm, &pm->touched[1], word * 64 + l, n);
		if (pm->course && !noted)
			course_add(
				pm,
				&(struct deed){.kind = DEED_TOUCH, .line = word * 64 + l, .n = n},
				NULL);
		lines &= ~these;
	}
	pm->again[word] &= ~again;
}

void lines_decide(struct pmem *pm, uint32_t first, uint32_t last)
{
	for (uint32_t word = first / 64; word <= last / 64; word++) {
		uint64_t lines = ~pm->decided[word];
		if (word == first / 64)
			lines &= UINT64_MAX << first % 64;
		if (word == last / 64)
			lines &= UINT64_MAX >> (63 - last % 64);
		if (lines)
			decide_word(pm, word, lines);
	}
}

/* The line is clean: the last one of the list of dirty lines gets its place there. */
static void undirty(struct pmem *pm, struct line *line)
{
	assert(pm->dirties && &pm->line[pm->dirty[line->dirty_at]] == line);
	uint32_t moved = pm->dirty[--pm->dirties];
	pm->dirty[line->dirty_at] = moved;
	pm->line[moved].dirty_at = line->dirty_at;
	if (!pm->dirties)
		pm->versions = 0; /* nothing refers to them any more */
}

/* What its host's power failure has left of the line, which is in flight. */
static void settle(struct pmem *pm, uint32_t l)
{
	struct line *line = &pm->line[l];
	uint8_t content[LINE];
	char name[64], version[PMEM_ANSWER_TEXT];
	const unsigned versions = line->in_flight, answers = pmem_line_answers(pm, l);
	const struct choice_point at = {
		.kind = CHOICE_LINE, .a = l, .b = PMEM_HOST_FAILED + pm->failures};
	assert(versions && line->saved == pm->run && answers > 1 && !pm->course);
	pm->lost[l / 64] &= ~(1ull << l % 64);
	pm->losts--;
	unsigned answer = sim_choose(pm->sim, &at, answers);
	pmem_line_content(pm, l, answer, content);
	pm->flight_hash ^= line->flight_hash;
	line->flight_hash = 0;
	line->committed += line->in_flight; /* so what was to make them durable finds nothing */
	line->in_flight = 0;
	line->first = line->last = 0;
	undirty(pm, line);
	memcpy(pm->work + (size_t)l * LINE, content, LINE);
	line_write_durable(pm, (uint64_t)l * LINE, content, LINE);
	line_rehash(pm, l);
	if (!sim_tracing(pm->sim))
		return;
	pmem_place(pm, (uint64_t)l * LINE, name, sizeof(name));
	pmem_answer_print(versions, answer, version, sizeof(version));
	sim_trace_event(
		pm->sim, sim_actor(pm->sim), 0,
		&(struct traced){.kind = TRACED_SURVIVED, .off = (uint64_t)l * LINE, .len = LINE},
		"first touch of line %s since its host failed: it survived as %s", name, version);
}

void lines_touched(struct pmem *pm, uint32_t first, uint32_t last, bool write)
{
	for (uint32_t l = first; l <= last && pm->losts; l++)
		if (line_lost(pm, l))
			settle(pm, l);
	if (pm->htms)
		htm_touched(pm, first, last, write);
}

void pmem_host_fails(struct pmem *pm, uint64_t off, size_t len, unsigned host)
{
	assert(pm->running && !pm->machine && off % LINE == 0 && len % LINE == 0);
	assert(off + len <= pmem_length(pm));
	pmem_commit_pending(pm);
	if (pm->buffers)
		store_buffers_lose(pm->buffers, host);
	pm->failures++;
	if (pm->htms)
		htm_host_fails(pm, off, len);
	for (uint32_t i = 0; i < pm->nts;) {
		if (sim_task_host(pm->sim, pm->nt[i].late.cpu - 1) == host)
			pm->nt[i] = pm->nt[--pm->nts];
		else
			i++;
	}
	/* What survives in the NIC's buffers is durable; it will not land any more. */
	for (uint32_t i = pm->arrivals; i--;) {
		const uint64_t at = pm->arrival[i].off / LINE * LINE;
		if (at < off || at >= off + len)
			continue;
		memcpy(pm->work + at, pm->durable + at, LINE);
		nic_forget_arrival(pm, i);
	}
	for (uint32_t i = 0; i < pm->dirties; i++) {
		const uint32_t l = pm->dirty[i];
		const uint64_t at = (uint64_t)l * LINE;
		if (at < off || at >= off + len || line_lost(pm, l))
			continue;
		pm->lost[l / 64] |= 1ull << l % 64;
		pm->losts++;
	}
}

/* What sits in the NIC's buffers will land on top of what is there now. */
static void apply_arrivals(struct pmem *pm, uint32_t l)
{
	for (uint32_t i = 0; i < pm->arrivals; i++)
		if (pm->arrival[i].off / LINE == l)
			line_write_durable(pm, pm->arrival[i].off, pm->arrival[i].data,
					   pm->arrival[i].len);
}

void line_make_durable(struct pmem *pm, uint32_t l, uint32_t upto)
{
	struct line *line = &pm->line[l];
	assert(upto - line->committed <= line->in_flight);
	if (pm->course)
		course_add(pm, &(struct deed){.kind = DEED_DURABLE, .line = l, .n = upto}, NULL);
	while (line->committed < upto) {
		struct version *v = &pm->version[line->first - 1];
		line_write_durable(pm, (uint64_t)l * LINE + v->off, v->data, v->len);
		line->first = v->next;
		line->in_flight--;
		line->committed++;
	}
	if (pm->arrivals)
		apply_arrivals(pm, l);
	line_rehash(pm, l);
	pm->flight_hash ^= line->flight_hash;
	line->flight_hash = 0;
	for (uint32_t i = line->first; i; i = pm->version[i - 1].next)
		line->flight_hash = version_hash(line->flight_hash, l, &pm->version[i - 1]);
	pm->flight_hash ^= line->flight_hash;
	assert(!line->in_flight == !line->first);
	if (!line->in_flight) {
		line->last = 0;
		undirty(pm, line);
	}
}

void line_commit(struct pmem *pm, uint32_t l, uint32_t upto)
{
	if (upto <= pm->line[l].committed || line_lost(pm, l))
		return;
	note_touch(pm, TOUCH_COMMIT, (uint64_t)l * LINE, LINE);
	line_make_durable(pm, l, upto);
	assert(pm->line[l].committed == upto);
}

void line_commit_all(struct pmem *pm, uint32_t l)
{
	line_commit(pm, l, pm->line[l].committed + pm->line[l].in_flight);
}

void line_add_version(struct pmem *pm, uint64_t off, const void *data, size_t len,
		      const struct author *by)
{
	uint32_t l = (uint32_t)(off / LINE);
	struct line *line = &pm->line[l];
	assert(pm->running && line->saved == pm->run); /* or pmem_end() could not undo it */
	assert(len && off % LINE + len <= LINE);
	if (pm->course)
		course_add_version(pm, l, (uint8_t)(off % LINE), data, len, by);
	if (pm->versions == pm->version_room)
		pm->version = array_grow(pm->version, &pm->version_room, sizeof(*pm->version));
	struct version *v = &pm->version[pm->versions++];
	v->next = 0;
	v->off = (uint8_t)(off % LINE);
	v->len = (uint8_t)len;
	v->by = *by;
	put(v->data, data, len);
	if (line->last) {
		pm->version[line->last - 1].next = pm->versions;
	} else {
		line->first = pm->versions;
		line->dirty_at = pm->dirties;
		pm->dirty[pm->dirties++] = l;
	}
	line->last = pm->versions;
	line->in_flight++;
	pm->flight_hash ^= line->flight_hash;
	line->flight_hash = version_hash(line->flight_hash, l, v);
	pm->flight_hash ^= line->flight_hash;
	sim_mix(pm->sim, off << 16 | len, line->flight_hash);
}

void line_as_of(const struct pmem *pm, uint32_t l, unsigned versions, uint8_t out[LINE])
{
	assert(versions <= pm->line[l].in_flight);
	memcpy(out, pm->durable + (size_t)l * LINE, LINE);
	if (MUTANT(&pm->hw, PM_VERSION_ALONE) && !versions && pm->line[l].last) {
		const struct version *newest = &pm->version[pm->line[l].last - 1];
		put(out + newest->off, newest->data, newest->len);
	}
	uint32_t i = pm->line[l].first;
	for (unsigned v = 0; v < versions; v++, i = pm->version[i - 1].next)
		put(out + pm->version[i - 1].off, pm->version[i - 1].data, pm->version[i - 1].len);
}

void lines_write_back(struct pmem *pm)
{
	/* From the end: a line that is clean now gives its place to the list's last one. */
	for (uint32_t i = pm->dirties; i--;)
		line_commit_all(pm, pm->dirty[i]);
}
