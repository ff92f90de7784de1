/* SPDX-License-Identifier: BSD-3-Clause */
/* See covered.h. */
#include "checker/campaign/covered.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "scenarios/stores.h"

static size_t code_bytes(const struct source_lines *l)
{
	return l->block[l->blocks - 1] - l->block[0] + 1;
}

static int open_store(struct covered_store *s, const struct tm_store *store)
{
	s->store = store;
	/* What is built in was not compiled for coverage. */
	int error = store_path(store) ? source_lines_find(store, &s->lines) : -ENOEXEC;
	if (error)
		return error;
	if (s->lines.blocks > COVERED_BLOCKS)
		return -EFBIG;
	s->count = calloc(s->lines.blocks, sizeof(*s->count));
	s->place = calloc(COVERED_PLACES, sizeof(*s->place));
	s->ran = malloc(code_bytes(&s->lines));
	return s->count && s->place && s->ran ? 0 : -ENOMEM;
}

int covered_open(struct covered *c, const struct tm_store *const *store, unsigned stores)
{
	int error = 0;
	assert(stores <= COVERED_STORES);
	memset(c, 0, sizeof(*c));
	while (c->stores < stores && !error) {
		error = open_store(&c->store[c->stores], store[c->stores]);
		c->stores++;
	}
	return error;
}

void covered_close(struct covered *c)
{
	for (unsigned i = 0; i < c->stores; i++) {
		source_lines_free(&c->store[i].lines);
		free(c->store[i].count);
		free(c->store[i].place);
		free(c->store[i].ran);
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
	const struct covered_store *s = find(c, store);
	*cuts = cuts_new(&s->lines);
	if (!*cuts)
		return -ENOMEM;
	coverage = (struct coverage){s->ran, s->lines.block[0], code_bytes(&s->lines),
				     COVERAGE_OUTSIDE};
	memset(coverage.ran, 0, coverage.bytes);
	return 0;
}

/* --- addresses: a program is loaded elsewhere each time --- */

static int64_t offset_of(const struct source_lines *l, uintptr_t pc)
{
	return pc ? (int64_t)(pc - l->block[0]) : INT64_MIN;
}

static uintptr_t address_of(const struct source_lines *l, int64_t off)
{
	return off == INT64_MIN ? 0 : l->block[0] + (uintptr_t)off;
}

int covered_end(const struct covered *c, const struct tm_store *store, struct cuts *cuts,
		struct covered_unit *out)
{
	const struct source_lines *lines = &find(c, store)->lines;
	unsigned n;
	const struct cut_place *place = cuts_places(cuts, &n);
	for (size_t i = 0; i < lines->blocks; i++)
		out->ran[i] = coverage.ran[lines->block[i] - coverage.begin];
	coverage = (struct coverage){0};
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

int covered_add(struct covered *c, const struct tm_store *store, const struct covered_unit *unit)
{
	struct covered_store *s = (struct covered_store *)find(c, store);
	int error = 0;
	for (size_t i = 0; i < s->lines.blocks; i++)
		for (unsigned p = 0; p < COVERAGE_PHASES; p++)
			s->count[i][p] += unit->ran[i] >> p & 1;
	for (unsigned i = 0; i < unit->places && !error; i++)
		error = add_place(s, &unit->place[i]);
	return error;
}
