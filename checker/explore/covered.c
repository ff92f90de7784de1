/* SPDX-License-Identifier: BSD-3-Clause */
/* See covered.h. */
#include "checker/explore/covered.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_counts(struct covered_store *s)
{
	const struct source_lines *l = &s->lines;
	if (l->sites > COVERED_SITES || l->branches > COVERED_BRANCHES)
		return -EFBIG;
	s->memory = calloc(COVERAGE_PHASES * (size_t)l->sites + 2 * (size_t)l->branches + 1,
			   sizeof(*s->memory));
	s->place = calloc(COVERED_PLACES, sizeof(*s->place));
	if (!s->memory || !s->place)
		return -ENOMEM;
	uint32_t *at = s->memory;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++, at += l->sites)
		s->count.site[p] = at;
	for (unsigned way = 0; way < 2; way++, at += l->branches)
		s->count.branch[way] = at;
	return 0;
}

int covered_open(struct covered *c, const struct tm_store *const *store, unsigned stores)
{
	assert(stores <= COVERED_STORES);
	memset(c, 0, sizeof(*c));
	if (!COVERAGE_POSSIBLE)
		return -ENOSYS;
	for (unsigned i = 0; i < stores; i++) {
		struct covered_store *s = &c->store[c->stores++];
		s->store = store[i];
		int error = source_lines_find(store[i], &s->lines);
		if (!error)
			error = make_counts(s);
		if (error)
			return error;
	}
	return 0;
}

void covered_close(struct covered *c)
{
	for (unsigned i = 0; i < c->stores; i++) {
		source_lines_free(&c->store[i].lines);
		free(c->store[i].memory);
		free(c->store[i].place);
	}
	memset(c, 0, sizeof(*c));
}

static const struct covered_store *find(const struct covered *c, const struct tm_store *store)
{
	unsigned i = 0;
	while (i < c->stores && c->store[i].store != store)
		i++;
	assert(i < c->stores);
	return &c->store[i];
}

int covered_begin(const struct covered *c, const struct tm_store *store, struct cuts **cuts)
{
	const struct source_lines *lines = &find(c, store)->lines;
	*cuts = cuts_new(lines);
	int error = *cuts ? coverage_start(lines) : -ENOMEM;
	if (error) {
		cuts_free(*cuts);
		*cuts = NULL;
	}
	return error;
}

/* --- addresses: a program is loaded elsewhere each time --- */

static int64_t offset_of(const struct source_lines *l, uintptr_t pc)
{
	return pc && l->sites ? (int64_t)(pc - l->site[0]) : INT64_MIN;
}

static uintptr_t address_of(const struct source_lines *l, int64_t off)
{
	return off == INT64_MIN || !l->sites ? 0 : l->site[0] + (uintptr_t)off;
}

int covered_end(const struct covered *c, const struct tm_store *store, struct cuts *cuts,
		struct covered_unit *out)
{
	const struct source_lines *lines = &find(c, store)->lines;
	struct coverage_sets sets;
	unsigned n;
	const struct cut_place *place = cuts_places(cuts, &n);
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		sets.site[p] = out->site[p];
	for (unsigned way = 0; way < 2; way++)
		sets.branch[way] = out->branch[way];
	coverage_stop(&sets);
	for (unsigned i = 0; i < n && i < COVERED_UNIT_PLACES; i++) {
		struct covered_place *to = &out->place[out->places++];
		*to = (struct covered_place){.off = offset_of(lines, place[i].pc),
					     .kind = place[i].kind,
					     .code = place[i].code};
		memcpy(to->fate, place[i].fate, sizeof(to->fate));
	}
	cuts_free(cuts);
	return n > COVERED_UNIT_PLACES ? -ENOSPC : 0;
}

/* --- the sum --- */

static int add_place(struct covered_store *s, const struct covered_place *place)
{
	uintptr_t pc = address_of(&s->lines, place->off);
	unsigned i = 0;
	while (i < s->places && (s->place[i].kind != place->kind || s->place[i].pc != pc ||
				 s->place[i].code != place->code))
		i++;
	if (i == COVERED_PLACES)
		return -ENOSPC;
	if (i == s->places)
		s->place[s->places++] = (struct cut_place){
			.pc = pc, .kind = place->kind, .code = place->code};
	for (unsigned f = 0; f < CUT_FATES; f++)
		s->place[i].fate[f] += place->fate[f];
	return 0;
}

static void add_bits(uint32_t *count, const uint8_t *set, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		count[i] += set[i / 8] >> i % 8 & 1;
}

int covered_add(struct covered *c, const struct tm_store *store, const struct covered_unit *unit)
{
	struct covered_store *s = (struct covered_store *)find(c, store);
	int error = 0;
	for (unsigned p = 0; p < COVERAGE_PHASES; p++)
		add_bits(s->count.site[p], unit->site[p], s->lines.sites);
	for (unsigned way = 0; way < 2; way++)
		add_bits(s->count.branch[way], unit->branch[way], s->lines.branches);
	for (unsigned i = 0; i < unit->places && !error; i++)
		error = add_place(s, &unit->place[i]);
	return error;
}
