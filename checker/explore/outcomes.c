/* SPDX-License-Identifier: BSD-3-Clause */
/* See outcomes.h. */
#include "checker/explore/outcomes.h"
#include <assert.h>
#include <stdlib.h>
#include <xxhash.h>
#include "checker/explore/visited.h"

#define MAX_FAILURES 3

struct outcomes {
	struct visited *set;
	bool by_point;
	uint64_t count, hash;
};

struct outcomes *outcomes_new(bool by_point)
{
	struct outcomes *o = calloc(1, sizeof(*o));
	if (o)
		o->set = visited_new();
	if (!o || !o->set) {
		free(o);
		return NULL;
	}
	o->by_point = by_point;
	return o;
}

void outcomes_free(struct outcomes *o)
{
	if (o)
		visited_free(o->set);
	free(o);
}

void outcomes_clear(struct outcomes *o)
{
	visited_clear(o->set);
	o->count = o->hash = 0;
}

/* The last operation to return before the epoch-th power failure, from 0. */
static int last_returned(const struct history *h, unsigned epoch)
{
	int last = -1;
	for (unsigned i = 0; i < h->ops; i++)
		if (h->op[i].epoch == epoch && h->op[i].returned >= 0 &&
		    (last < 0 || h->op[i].returned > h->op[last].returned))
			last = (int)i;
	return last;
}

/* The operations that returned, without those in `but`. */
static uint64_t known_to_clients(const struct history *h, const int but[MAX_FAILURES])
{
	uint64_t known = 0, nth[UINT8_MAX + 1] = {0};
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *op = &h->op[i];
		bool left_out = op->returned < 0;
		for (unsigned e = 0; e < MAX_FAILURES; e++)
			left_out |= but[e] == (int)i;
		if (left_out)
			continue;
		uint64_t what[] = {
			(uint64_t)op->client << 32 | (uint64_t)op->epoch << 16 | op->kind,
			nth[op->client]++, op->key, (uint32_t)op->value, (uint16_t)op->error};
		known += XXH3_64bits(what, sizeof(what));
	}
	return known;
}

void outcomes_add(struct outcomes *o, const struct history *h, unsigned failures,
		  const bool *after_return, uint64_t point)
{
	assert(failures <= MAX_FAILURES && failures <= h->epoch);
	for (unsigned set = 0; set < 1u << failures; set++) {
		int but[MAX_FAILURES];
		bool is_new;
		for (unsigned e = 0; e < MAX_FAILURES; e++) {
			bool leaves = e < failures && set >> e & 1 && !o->by_point &&
				      after_return[e];
			but[e] = leaves ? last_returned(h, e) : -1;
		}
		uint64_t hash = known_to_clients(h, but) +
				(o->by_point ? point * 0x9e3779b97f4a7c15u : 0);
		visited_add(o->set, hash, &is_new);
		if (is_new) {
			o->hash ^= XXH3_64bits(&hash, sizeof(hash));
			o->count++;
		}
		assert(o->count); /* there is one at least: this */
	}
}

uint64_t outcomes_count(const struct outcomes *o)
{
	return o->count;
}

uint64_t outcomes_hash(const struct outcomes *o)
{
	return o->hash;
}
