/* SPDX-License-Identifier: BSD-3-Clause */
/* See shared.h. */
#include "checker/recall/shared.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define KEPT   512
#define FILLED 4096

/* Trees that are not in use: like the images of core/pmem/pmem.c, only a cost that is saved. The
 * tree that was given back last is last. */
static _Thread_local struct idle {
	struct kept {
		uint64_t key;
		size_t bytes;
		struct recall recall;
	} * kept; /* KEPT of them; NULL until one is needed */
	unsigned n;
	size_t bytes;
} idle;

/* Names of what has room; 0: none. A name has one place. */
static _Thread_local uint64_t filled[FILLED];

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
	return XXH3_64bits_withSeed(bytes, len, hash);
}

static uint64_t mix_number(uint64_t hash, uint64_t number)
{
	return mix(hash, &number, sizeof(number));
}

/* What the store is made for, and the machine. */
static uint64_t mix_params(uint64_t hash, const struct setup *s)
{
	const struct tm_params *p = &s->params;
	const uint64_t numbers[] = {(uintptr_t)s->store,
				    (uintptr_t)s->w.calls,
				    s->w.clients,
				    p->clients,
				    p->keys,
				    p->updates,
				    p->later,
				    p->max_vlen,
				    p->rqwrb_pm,
				    s->own,
				    s->pm_len};
	hash = mix(hash, numbers, sizeof(numbers));
	hash = mix(hash, p->knob, sizeof(p->knob));
	return mix(hash, s->without.key, s->without.n * sizeof(s->without.key[0]));
}

uint64_t shared_key(const struct setup *s, size_t bytes, enum tree_mutant mutant)
{
	char hardware[1024];
	uint64_t hash = mix_number(bytes, mutant);
	if (s->reached || s->dram_watcher || s->load_tracer || s->statics)
		return 0;
	if (mutant != TREE_OTHER_KNOBS)
		hash = mix_params(hash, s);
	if (mutant != TREE_OTHER_HARDWARE) {
		int len = setup_hardware_print(s, false, hardware, sizeof(hardware));
		assert(len >= 0 && (size_t)len < sizeof(hardware));
		hash = mix(hash, hardware, (size_t)len);
	}
	for (unsigned k = 0; k < s->w.keys; k++)
		hash = mix(hash, s->w.key[k].name, s->w.key[k].klen);
	if (mutant != TREE_OTHER_POOL)
		hash = mix(hash, s->image, s->pm_len);
	return hash ? hash : 1;
}

/* What is loaded comes first when a store is filled. */
static uint64_t filled_name(uint64_t key, const struct setup *s)
{
	for (unsigned k = 0; k < s->w.keys; k++)
		key = mix_number(key, (uint64_t)s->w.key[k].loaded);
	return key ? key : 1;
}

bool shared_filled(uint64_t key, const struct setup *s)
{
	const uint64_t name = filled_name(key, s);
	return key && filled[name % FILLED] == name;
}

void shared_note_filled(uint64_t key, const struct setup *s)
{
	const uint64_t name = filled_name(key, s);
	if (key)
		filled[name % FILLED] = name;
}

/* It is not kept any more, and the caller's. */
static void take_out(unsigned i, struct recall *r)
{
	assert(i < idle.n && idle.bytes >= idle.kept[i].bytes);
	idle.bytes -= idle.kept[i].bytes;
	*r = idle.kept[i].recall;
	idle.n--;
	memmove(&idle.kept[i], &idle.kept[i + 1], (idle.n - i) * sizeof(idle.kept[0]));
}

bool shared_take(uint64_t key, struct recall *r)
{
	for (unsigned i = idle.n; key && i-- > 0;)
		if (idle.kept[i].key == key) {
			take_out(i, r);
			return true;
		}
	return false;
}

void shared_give(uint64_t key, struct recall *r)
{
	struct tree_counts counts = {0};
	struct recall oldest;
	if (key && !idle.kept)
		idle.kept = calloc(KEPT, sizeof(*idle.kept));
	if (key && r->tree)
		recall_count(r, &counts);
	const size_t bytes = counts.bytes;
	if (!bytes || !idle.kept || r->differed || bytes > SHARED_BYTES) {
		recall_close(r);
		return;
	}
	while (idle.n == KEPT || idle.bytes + bytes > SHARED_BYTES) {
		take_out(0, &oldest);
		recall_close(&oldest);
	}
	idle.kept[idle.n++] = (struct kept){key, bytes, *r};
	idle.bytes += bytes;
	memset(r, 0, sizeof(*r));
}
