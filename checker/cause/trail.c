/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See trail.h. Two trails are compared step by step. They part where the code differs, or where
 * something else is done to PM. All that differs in DRAM before comes of the knob: it is the knob,
 * a copy of it, or computed from it. But for addresses, which differ between any two explorers: so
 * only small values count. And code that reads a length, such as the pool's, that Tidemark has
 * asked for does not ask for the knob: where the store has not computed it, only values that a knob
 * or a flag may have count.
 */
#include "checker/cause/trail.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "checker/explore/explore.h"

enum { TRAIL_READ, TRAIL_WRITE, TRAIL_MACHINE, TRAIL_EVENT };

#define SMALL (1ull << 32) /* values from here on may be addresses */
#define KNOB  (1u << 8)	   /* a knob or its flags are a byte; from here on lengths */

static struct trail_step *add_step(struct trail *t, unsigned kind, uintptr_t pc)
{
	t->full |= t->n == TRAIL_MAX || !ARRAY_RESERVE(t->step, t->n, 1, t->room);
	if (t->full)
		return NULL;
	t->step[t->n] = (struct trail_step){.pc = pc, .kind = (uint8_t)kind};
	return &t->step[t->n++];
}

/* Byte by byte, and unseen by a sanitizer: it is the store's memory. */
__attribute__((no_sanitize("address"))) uint64_t trail_value(const void *addr, unsigned len)
{
	const volatile uint8_t *byte = addr;
	uint64_t value = 0;
	assert(len <= sizeof(value));
	for (unsigned i = len; i--;)
		value = value << 8 | byte[i];
	return value;
}

/* The same for more bytes than a value has (FNV-1a). */
__attribute__((no_sanitize("address"))) static uint64_t hash_at(const void *addr, size_t len)
{
	const volatile uint8_t *byte = addr;
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ byte[i]) * 16777619u;
	return hash;
}

/* What the last step was about to write is there now. */
static void settle(struct trail *t)
{
	if (!t->written)
		return;
	assert(t->n && t->step[t->n - 1].kind != TRAIL_READ);
	struct trail_step *s = &t->step[t->n - 1];
	s->value = s->len ? trail_value(t->written, s->len) : hash_at(t->written, t->written_len);
	t->written = NULL;
}

static void saw_dram(void *arg, const void *addr, size_t len, bool write, uintptr_t pc)
{
	struct trail *t = arg;
	settle(t);
	struct trail_step *s = add_step(t, write ? TRAIL_WRITE : TRAIL_READ, pc);
	if (!s)
		return;
	s->addr = (uintptr_t)addr;
	if (len > sizeof(s->value))
		return;
	s->len = (uint8_t)len;
	if (write && len)
		t->written = addr;
	else
		s->value = trail_value(addr, s->len);
}

static void saw_event(void *arg, const struct sim *sim, const struct actor *who, uintptr_t pc,
		      const struct traced *about, const char *text)
{
	struct trail *t = arg;
	(void)sim, (void)who;
	if (about->kind == TRACED_TAKEN || about->kind == TRACED_PACKET)
		return;
	settle(t);
	struct trail_step *s = add_step(t, TRAIL_EVENT + about->kind, pc);
	if (!s)
		return;
	s->value = (uint32_t)about->off;
	if (about->kind == TRACED_FLUSH)
		s->value |= (uint64_t)about->len << 32;
	if (about->kind == TRACED_RETURN)
		s->value = hash_at(text, strlen(text)); /* what was returned */
	if (about->kind == TRACED_STORE && about->len) {
		s->len = about->len <= sizeof(s->value) ? (uint8_t)about->len : 0;
		t->written = pmem_base(sim_memory) + about->off;
		t->written_len = about->len;
	}
}

static void machine_starts(void *arg, struct explorer *ex, unsigned machine)
{
	struct trail *t = arg;
	settle(t);
	(void)ex;
	struct trail_step *s = add_step(t, TRAIL_MACHINE, 0);
	if (s)
		s->value = machine;
}

static int replay_into(struct explorer *ex, const struct deviations *list, unsigned contract,
		       struct trail *t, bool *broken, bool *applies)
{
	const struct replay_audience audience = {
		.tracer = saw_event, .machine_starts = machine_starts, .arg = t};
	struct replay_outcome *out = malloc(sizeof(*out));
	int error = out ? replay(ex, list, false, &audience, out) : -ENOMEM;
	settle(t);
	ex->setup->dram_watcher = NULL;
	if (!error && contract == TM_KEEP)
		error = replay(ex, list, true, NULL, out);
	*broken = !error && out->verdict[contract].broken;
	*applies = !error && (!out->unused || out->only_lines_unused);
	free(out);
	return error;
}

int trail_record(const struct setup *base, unsigned knob, uint8_t value,
		 const struct deviations *list, unsigned contract, struct trail *trail,
		 bool *broken, bool *applies)
{
	struct setup with = *base, own;
	struct explorer *ex = malloc(sizeof(*ex));
	assert(knob < TM_MAX_KNOBS && contract < TM_CONTRACTS);
	memset(trail, 0, sizeof(*trail));
	*broken = *applies = false;
	with.params.knob[knob] = value;
	int error = setup_like(&own, &with, &base->w);
	own.dram_watcher = saw_dram;
	own.load_tracer = saw_event;
	own.watcher_arg = trail;
	if (!error)
		error = ex ? replay_begin(ex, &own, (int)contract, list) : -ENOMEM;
	settle(trail);
	if (!error) {
		error = replay_into(ex, list, contract, trail, broken, applies);
		explore_close(ex);
	}
	setup_free(&own);
	free(ex);
	return error;
}

void trail_free(struct trail *trail)
{
	free(trail->step);
	memset(trail, 0, sizeof(*trail));
}

static bool parts(const struct trail_step *x, const struct trail_step *y)
{
	return x->pc != y->pc || x->kind != y->kind || x->len != y->len ||
	       (x->kind > TRAIL_WRITE && x->value != y->value);
}

/* The last read of something below `limit` that differs, before step `end`. -1: none. */
static ptrdiff_t differing_read(const struct trail *a, const struct trail *b, size_t end,
				uint64_t limit)
{
	assert(end <= a->n && end <= b->n);
	while (end--) {
		const struct trail_step *x = &a->step[end], *y = &b->step[end];
		if (x->kind == TRAIL_READ && x->value != y->value && x->value < limit &&
		    y->value < limit)
			return (ptrdiff_t)end;
	}
	return -1;
}

/* Where what step `read` reads was computed. */
static uintptr_t find_made(const struct trail *a, const struct trail *b, size_t read)
{
	size_t k = read;
	while (k-- && !(a->step[k].kind == TRAIL_WRITE && a->step[k].addr == a->step[read].addr))
		;
	if (k == (size_t)-1 || a->step[k].value == b->step[k].value)
		return 0;
	ptrdiff_t from = differing_read(a, b, k, SMALL);
	if (from < 0 ||
	    (a->step[from].value == a->step[k].value && b->step[from].value == b->step[k].value))
		return 0;
	return a->step[from].pc;
}

unsigned trail_event(const struct trail_step *step)
{
	assert(step->kind >= TRAIL_EVENT);
	return step->kind - TRAIL_EVENT;
}

/* The first store, flush or fence from step `at` on. */
static const struct trail_step *next_of_pm(const struct trail *t, size_t at)
{
	for (; at < t->n && t->step[at].kind != TRAIL_MACHINE; at++) {
		const struct trail_step *s = &t->step[at];
		if (s->kind == TRAIL_EVENT + TRACED_STORE ||
		    s->kind == TRAIL_EVENT + TRACED_FLUSH || s->kind == TRAIL_EVENT + TRACED_FENCE)
			return s;
	}
	return NULL;
}

void trail_find_parting(const struct trail *a, const struct trail *b, struct trail_parting *out)
{
	size_t at = 0;
	assert(a->n <= TRAIL_MAX && b->n <= TRAIL_MAX);
	while (at < a->n && at < b->n && !parts(&a->step[at], &b->step[at]))
		at++;
	ptrdiff_t asked = differing_read(a, b, at, SMALL);
	memset(out, 0, sizeof(*out));
	out->next = next_of_pm(a, at);
	out->next_without = next_of_pm(b, at);
	if (asked >= 0)
		out->made = find_made(a, b, (size_t)asked);
	if (!out->made)
		asked = differing_read(a, b, at, KNOB);
	if (asked >= 0)
		out->asked = a->step[asked].pc;
}
