/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Features of a run, of four sorts:
 *
 *	history which calls began and what they returned, in which order: each stretch of
 *		   WINDOW events of one key. Clients are numbered as they appear in it, and a
 *		   value is named by its age: how many updates were begun after its own
 *	recovery   which way recovery went: the number of its stores, flushes, fences and
 *		   loads; and which lines it found in which state: regions, and newest or not
 *	outcome	   what all keys read as after the failure, with the place of the failure
 *	outcomes   the set of outcomes that one power failure can have
 *
 * None depends on lengths, on names of keys, or on where in the run something happens,
 * so there are not many, and a corpus that has reached all of them stays small. Nor
 * does one depend on the compiler or the machine: there are no addresses and no times.
 */
#include "checker/hunt/features.h"
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#define WINDOW	   5	/* events */
#define MAX_EVENTS 128	/* of one key; what comes later is not looked at */
#define OLD	   4	/* updates: older values are alike */
#define MANY	   1024 /* loads are counted in classes */

enum sort { SORT_HISTORY, SORT_RECOVERY, SORT_LINES, SORT_OUTCOME, SORT_OUTCOMES };

static void found(struct features *f, enum sort sort, const void *bytes, size_t len)
{
	f->found(f->arg, XXH3_64bits_withSeed(bytes, len, sort + 1));
}

/* Number of updates of the key that began after the one that wrote this value, up to position
 * `at`. */
static uint8_t age(const struct history *h, const struct history_op *get, int32_t at)
{
	unsigned newer = 0;
	int32_t from = get->value >= 0 ? h->op[get->value].invoked : -1;
	if (get->value == VALUE_FOREIGN || get->value == VALUE_UNKNOWN)
		return UINT8_MAX;
	for (unsigned i = 0; i < h->ops && newer < OLD; i++) {
		const struct history_op *o = &h->op[i];
		newer += o->kind != HISTORY_GET && o->key == get->key && o->invoked > from &&
			 o->invoked < at;
	}
	return (uint8_t)(newer | (get->value < 0) << 6);
}

/* --- history --- */

struct event {
	uint8_t client, what, value;
};

/* The events of a key in their order. */
static unsigned key_events(const struct history *h, unsigned key, struct event *out)
{
	unsigned n = 0;
	int32_t position[MAX_EVENTS];
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		if (o->key != key || !o->client || n + 2 > MAX_EVENTS)
			continue;
		position[n] = o->invoked;
		out[n++] = (struct event){o->client, o->kind, 0};
		if (o->returned < 0)
			continue;
		position[n] = o->returned;
		out[n++] = (struct event){o->client, (uint8_t)(4 + o->kind + (o->error ? 4 : 0)),
					  o->kind == HISTORY_GET ? age(h, o, o->returned) : 0};
	}
	for (unsigned i = 1; i < n; i++) {
		struct event e = out[i];
		int32_t at = position[i];
		unsigned k = i;
		for (; k && position[k - 1] > at; k--) {
			position[k] = position[k - 1];
			out[k] = out[k - 1];
		}
		position[k] = at;
		out[k] = e;
	}
	return n;
}

static void window(struct features *f, const struct event *event, unsigned n)
{
	uint8_t bytes[WINDOW][3], clients[WINDOW];
	unsigned known = 0;
	assert(n <= WINDOW);
	for (unsigned i = 0; i < n; i++) {
		unsigned c = 0;
		while (c < known && clients[c] != event[i].client)
			c++;
		if (c == known)
			clients[known++] = event[i].client;
		bytes[i][0] = (uint8_t)c;
		bytes[i][1] = event[i].what;
		bytes[i][2] = event[i].value;
	}
	found(f, SORT_HISTORY, bytes, n * sizeof(bytes[0]));
}

void features_history(struct features *f, const struct history *h)
{
	struct event event[MAX_EVENTS];
	for (unsigned key = 0; key < h->keys; key++) {
		unsigned n = key_events(h, key, event);
		if (n && n < WINDOW)
			window(f, event, n);
		for (unsigned i = 0; i + WINDOW <= n; i++)
			window(f, event + i, WINDOW);
	}
}

/* --- images --- */

static void recovery_way(struct features *f, const struct explorer *ex, unsigned machine)
{
	const struct deviations *path = &ex->path[machine];
	uint32_t steps[STEP_KINDS];
	uint64_t lines[2] = {machine, 0};
	memcpy(steps, ex->worlds.world[machine].result.recovery, sizeof(steps));
	if (steps[STEP_LOAD] > MANY)
		steps[STEP_LOAD] = MANY + steps[STEP_LOAD] / MANY;
	found(f, SORT_RECOVERY, steps, sizeof(steps));
	for (unsigned i = 1; i < path->n; i++) {
		const struct deviation *d = &path->d[i];
		bool oldest = d->answer + 1 == d->n;
		unsigned region = setup_region(ex->setup, (uint64_t)d->a * LINE);
		lines[1] |= 1ull << (2 * region + oldest) % 64;
	}
	found(f, SORT_LINES, lines, sizeof(lines));
}

static void end_point(struct features *f)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < f->outcomes; i++)
		sum += f->outcome[i];
	if (f->outcomes)
		found(f, SORT_OUTCOMES, &sum, sizeof(sum));
	f->outcomes = 0;
}

static void add_outcome(struct features *f, uint64_t outcome)
{
	for (unsigned i = 0; i < f->outcomes; i++)
		if (f->outcome[i] == outcome)
			return;
	if (f->outcomes < FEATURES_OUTCOMES)
		f->outcome[f->outcomes++] = outcome;
}

void features_image(struct features *f, const struct explorer *ex, unsigned machine)
{
	const struct history *h = ex->worlds.history;
	uint8_t bytes[2 + 2 * HISTORY_KEYS] = {(uint8_t)machine, (uint8_t)ex->path[machine].d[0].a};
	unsigned n = 2;
	assert(ex->path[machine].n > 0); /* its power failure is the first */
	recovery_way(f, ex, machine);
	if (f->point != ex->point)
		end_point(f);
	f->point = ex->point;
	for (unsigned i = 0; i < h->ops && n + 2 <= sizeof(bytes); i++) {
		const struct history_op *o = &h->op[i];
		if (o->epoch != machine || o->kind != HISTORY_GET || o->returned < 0)
			continue;
		bytes[n++] = o->error ? UINT8_MAX - 1 : age(h, o, o->invoked);
		bytes[n++] = o->value >= 0 && h->op[o->value].returned >= 0;
	}
	found(f, SORT_OUTCOME, bytes, n);
	add_outcome(f, XXH3_64bits(bytes, n));
}

void features_end(struct features *f)
{
	end_point(f);
	f->point = 0;
}
