/* SPDX-License-Identifier: BSD-3-Clause */
/* See covered.h. */
#include "checker/explore/covered.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct covered_shared {
	pthread_mutex_t adding;
	unsigned places[COVERED_STORES];
};

static size_t store_bytes(const struct covered_store *s)
{
	size_t counts = sizeof(uint32_t) *
			(COVERAGE_PHASES * (size_t)s->lines.sites + 2 * (size_t)s->lines.branches);
	return (counts + 63) / 64 * 64 + COVERED_PLACES * sizeof(struct cut_place);
}

static int init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	if (pthread_mutexattr_init(&attr))
		return -ENOMEM;
	int error = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!error)
		error = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -error;
}

static int share(struct covered *c)
{
	size_t head = (sizeof(*c->shared) + 63) / 64 * 64;
	c->bytes = head;
	for (unsigned i = 0; i < c->stores; i++)
		c->bytes += store_bytes(&c->store[i]);
	void *memory = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			    0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	c->shared = memory;
	uint8_t *at = (uint8_t *)memory + head;
	for (unsigned i = 0; i < c->stores; i++) {
		struct covered_store *s = &c->store[i];
		uint32_t *count = (uint32_t *)at;
		for (unsigned p = 0; p < COVERAGE_PHASES; p++, count += s->lines.sites)
			s->count.site[p] = count;
		for (unsigned way = 0; way < 2; way++, count += s->lines.branches)
			s->count.branch[way] = count;
		at += store_bytes(s);
		s->place = (struct cut_place *)at - COVERED_PLACES;
		s->places = &c->shared->places[i];
	}
	return init_lock(&c->shared->adding);
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
		if (error)
			return error;
	}
	return share(c);
}

void covered_close(struct covered *c)
{
	for (unsigned i = 0; i < c->stores; i++)
		source_lines_free(&c->store[i].lines);
	if (c->shared)
		munmap(c->shared, c->bytes);
	memset(c, 0, sizeof(*c));
}

static struct covered_store *find(struct covered *c, const struct tm_store *store)
{
	unsigned i = 0;
	while (i < c->stores && c->store[i].store != store)
		i++;
	assert(i < c->stores);
	return &c->store[i];
}

int covered_begin(struct covered *c, const struct tm_store *store, struct cuts **cuts)
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

static int add_place(struct covered_store *s, const struct cut_place *place)
{
	unsigned i = 0;
	while (i < *s->places && (s->place[i].kind != place->kind || s->place[i].pc != place->pc ||
				  s->place[i].code != place->code))
		i++;
	if (i == COVERED_PLACES)
		return -ENOSPC;
	if (i == *s->places)
		s->place[(*s->places)++] = (struct cut_place){
			.pc = place->pc, .kind = place->kind, .code = place->code};
	for (unsigned f = 0; f < CUT_FATES; f++)
		s->place[i].fate[f] += place->fate[f];
	return 0;
}

int covered_end(struct covered *c, const struct tm_store *store, struct cuts *cuts)
{
	struct covered_store *s = find(c, store);
	unsigned n;
	const struct cut_place *place = cuts_places(cuts, &n);
	int error = 0;
	pthread_mutex_lock(&c->shared->adding);
	coverage_stop(&s->count);
	for (unsigned i = 0; i < n && !error; i++)
		error = add_place(s, &place[i]);
	pthread_mutex_unlock(&c->shared->adding);
	cuts_free(cuts);
	return error;
}
