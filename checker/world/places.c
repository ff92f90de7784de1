/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the places, reached or not, without help of the store's author or the compiler.
 *
 * A place is a call of one of a few functions. The store's code is in memory, compiled without
 * optimisation, and a call on x86-64 is the byte 0xe8 with the distance to its target. So the code
 * of all functions is searched for such bytes; other bytes hardly point to just these functions by
 * chance. In a store that was loaded from a shared object, a call of the program is indirect: the
 * bytes 0xff 0x15 with the distance to a word that holds the target's address. The symbol table
 * says where functions begin and end, the line table in which file and line a call is. In the
 * program, what is not below core/stores is no store's; of a shared object, what stands below /usr.
 *
 * A function that calls rt_waits() waits on behalf of its callers: the calls of such a function
 * are places, too.
 */
#include "checker/world/places.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/world/where.h"
#include "core/array.h"
#include "scenarios/stores.h"

#define STORES	       "core/stores/"
#define SYSTEM	       "/usr/"
#define CALL	       0xe8 /* call rel32 */
#define CALL_BYTES     5
#define INDIRECT       "\xff\x15" /* call *rel32(%rip) */
#define INDIRECT_BYTES 6
#define TARGETS_MAX    64

const char *const place_kinds[PLACE_KINDS] = {
	[PLACE_FLUSH] = "flush", [PLACE_FENCE] = "fence", [PLACE_PERSIST] = "persist",
	[PLACE_WAIT] = "wait",	 [PLACE_ORDER] = "order", [PLACE_CHECK] = "check",
};

/* A function whose calls are places. */
struct target {
	const char *symbol, *call; /* call: what the store's source says */
	enum place_kind kind;
	const char *part; /* of what it does, a place of its own (PLACE_PART); NULL: none */
	uintptr_t entry;
};

static const struct target known[] = {
	{"sim_pmem_flush", "pmem_flush", PLACE_FLUSH, NULL, 0},
	{"sim_pmem_memcpy_nodrain", "pmem_memcpy_nodrain", PLACE_FLUSH, NULL, 0},
	{"sim_pmem_drain", "pmem_drain", PLACE_FENCE, NULL, 0},
	{"sim_pmem_persist", "pmem_persist", PLACE_PERSIST, "fence", 0},
	{"sim_pmem_memcpy", "pmem_memcpy", PLACE_PERSIST, "fence", 0},
	{"sim_pmem_memset", "pmem_memset", PLACE_PERSIST, "fence", 0},
	{"sim_pmem_memcpy_persist", "pmem_memcpy_persist", PLACE_PERSIST, "fence", 0},
	{"sim_pmem_memset_persist", "pmem_memset_persist", PLACE_PERSIST, "fence", 0},
	{"__tsan_atomic8_store", "atomic_store", PLACE_ORDER, NULL, 0},
	{"__tsan_atomic16_store", "atomic_store", PLACE_ORDER, NULL, 0},
	{"__tsan_atomic32_store", "atomic_store", PLACE_ORDER, NULL, 0},
	{"__tsan_atomic64_store", "atomic_store", PLACE_ORDER, NULL, 0},
	{"__tsan_atomic_thread_fence", "atomic_thread_fence", PLACE_ORDER, NULL, 0},
	{"rt_check", "rt_check", PLACE_CHECK, "never", 0},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))
#define WAITS "rt_waits"

struct function {
	const char *name;
	bool loaded; /* it is not the program's */
	uintptr_t begin, end;
};

/* A place before it has a name. */
struct found {
	const struct target *target;
	const struct function *in;
	const char *file;  /* from below core/stores/ on; in a shared object, its name alone */
	const char *shown; /* from core/stores/ on */
	int line;
	uintptr_t call, end; /* addresses of the instruction, and of what follows it */
};

struct finder {
	struct where *where;
	struct function *function;
	unsigned functions, room;
	bool loaded, failed; /* what is read now; without memory */
	struct target target[TARGETS_MAX];
	unsigned targets;
	uintptr_t waits;
	struct found found[PLACES_MAX];
	unsigned n;
};

/* --- the functions of the program and of what it has loaded --- */

static void take_function(void *arg, const char *name, uintptr_t begin, uintptr_t end)
{
	struct finder *f = arg;
	if (ARRAY_RESERVE(f->function, f->functions, 1, f->room))
		f->function[f->functions++] = (struct function){name, f->loaded, begin, end};
	else
		f->failed = true;
}

static void find_targets(struct finder *f)
{
	for (unsigned i = 0; i < f->functions; i++) {
		if (!strcmp(f->function[i].name, WAITS))
			f->waits = f->function[i].begin;
		for (unsigned k = 0; k < KNOWN; k++) {
			if (strcmp(f->function[i].name, known[k].symbol) != 0)
				continue;
			assert(f->targets < TARGETS_MAX);
			f->target[f->targets] = known[k];
			f->target[f->targets++].entry = f->function[i].begin;
		}
	}
}

/* --- their calls --- */

/* Is a call at this place? Its number of bytes, or 0. */
static unsigned call_at(const struct finder *f, const struct function *in, uintptr_t at,
			uintptr_t *callee)
{
	const uint8_t *code = (const uint8_t *)at;
	int32_t distance;
	if (*code == CALL && at + CALL_BYTES <= in->end) {
		memcpy(&distance, code + 1, sizeof(distance));
		*callee = at + CALL_BYTES + (uintptr_t)(intptr_t)distance;
		return CALL_BYTES;
	}
	if (!in->loaded || at + INDIRECT_BYTES > in->end ||
	    memcmp(code, INDIRECT, strlen(INDIRECT)) != 0)
		return 0;
	memcpy(&distance, code + strlen(INDIRECT), sizeof(distance));
	const uintptr_t word = at + INDIRECT_BYTES + (uintptr_t)(intptr_t)distance;
	if (word % sizeof(*callee) || !where_together(f->where, word, at))
		return 0;
	memcpy(callee, (const void *)word, sizeof(*callee));
	return INDIRECT_BYTES;
}

/* The next call at or after *at in a function: how many bytes it has; 0: there is none. */
static unsigned next_call(const struct finder *f, const struct function *in, uintptr_t *at,
			  uintptr_t *callee)
{
	for (; *at + CALL_BYTES <= in->end; ++*at) {
		unsigned bytes = call_at(f, in, *at, callee);
		if (bytes)
			return bytes;
	}
	return 0;
}

/* Where the call is, if that is in store code. */
static bool in_store(const struct finder *f, struct found *one)
{
	const char *path = where_path(f->where, one->call, &one->line);
	if (!path)
		return false;
	const char *below = strstr(path, STORES), *slash = strrchr(path, '/');
	if (below) {
		one->file = below + strlen(STORES);
		one->shown = below;
		return true;
	}
	one->file = one->shown = slash ? slash + 1 : path;
	return one->in->loaded && strncmp(path, SYSTEM, strlen(SYSTEM)) != 0;
}

static void add_waiter(struct finder *f, const struct function *function)
{
	for (unsigned t = 0; t < f->targets; t++)
		if (f->target[t].entry == function->begin)
			return;
	assert(f->targets < TARGETS_MAX);
	f->target[f->targets++] = (struct target){function->name, function->name, PLACE_WAIT, NULL,
						  function->begin};
}

static void find_waiters(struct finder *f)
{
	for (unsigned i = 0; i < f->functions; i++) {
		uintptr_t callee;
		for (uintptr_t at = f->function[i].begin;
		     next_call(f, &f->function[i], &at, &callee); at++)
			if (callee == f->waits)
				add_waiter(f, &f->function[i]);
	}
}

static void find_calls(struct finder *f, const struct function *in)
{
	uintptr_t callee;
	unsigned bytes;
	for (uintptr_t at = in->begin; (bytes = next_call(f, in, &at, &callee)) != 0; at++) {
		const struct target *target = f->target;
		struct found one = {.in = in, .call = at, .end = at + bytes};
		while (target < f->target + f->targets && target->entry != callee)
			target++;
		if (target == f->target + f->targets || !in_store(f, &one))
			continue;
		assert(f->n < PLACES_MAX);
		one.target = target;
		f->found[f->n++] = one;
	}
}

/* --- names --- */

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = strcmp(x->file, y->file);
	if (order)
		return order;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->call < y->call ? -1 : x->call > y->call;
}

/* Number of this call among those of the same name in the same function, from 1. */
static unsigned ordinal(const struct finder *f, unsigned at)
{
	const struct found *one = &f->found[at];
	unsigned n = 0;
	for (unsigned i = 0; i <= at; i++)
		n += f->found[i].in->begin == one->in->begin &&
		     !strcmp(f->found[i].target->call, one->target->call);
	return n;
}

#define FUNCTION_TEXT 60

/* C++ has names longer than any text: these are cut, and stay different. */
static void name_function(const char *name, char buf[FUNCTION_TEXT])
{
	size_t len = strlen(name);
	if (len < FUNCTION_TEXT)
		memcpy(buf, name, len + 1);
	else
		snprintf(buf, FUNCTION_TEXT, "%.40s~%08x", name, (unsigned)XXH3_64bits(name, len));
}

static void name_place(const struct finder *f, unsigned at, const char *part, struct place *out)
{
	const struct found *one = &f->found[at];
	unsigned nth = ordinal(f, at);
	char number[16] = "", function[FUNCTION_TEXT];
	name_function(one->in->name, function);
	if (nth > 1)
		snprintf(number, sizeof(number), "#%u", nth);
	out->kind = one->target->kind;
	out->key = one->end - 1;
	out->part = part;
	if (part)
		out->key = PLACE_PART(out->key);
	snprintf(out->name, sizeof(out->name), "%s:%s:%s%s%s%s", one->file, function,
		 one->target->call, number, part ? "." : "", part ? part : "");
	snprintf(out->where, sizeof(out->where), "%s:%d", one->shown, one->line);
}

static int make_list(struct finder *f, struct place_list *list)
{
	list->place = calloc(2 * f->n + 1, sizeof(*list->place));
	if (!list->place)
		return -ENOMEM;
	qsort(f->found, f->n, sizeof(f->found[0]), by_place);
	for (unsigned i = 0; i < f->n; i++) {
		name_place(f, i, NULL, &list->place[list->n++]);
		if (f->found[i].target->part)
			name_place(f, i, f->found[i].target->part, &list->place[list->n++]);
	}
	return 0;
}

/* --- all --- */

static int find(struct finder *f, struct place_list *list)
{
	where_functions(f->where, (uintptr_t)places_find, take_function, f);
	find_targets(f);
	f->loaded = true;
	for (unsigned i = 0; stores[i]; i++)
		if (store_path(stores[i]))
			where_functions(f->where, (uintptr_t)stores[i]->pm_bytes, take_function, f);
	if (f->failed)
		return -ENOMEM;
	find_waiters(f);
	for (unsigned i = 0; i < f->functions; i++)
		find_calls(f, &f->function[i]);
	return f->n ? make_list(f, list) : -ENOENT;
}

int places_find(struct place_list *list)
{
	struct finder *f = calloc(1, sizeof(*f));
	memset(list, 0, sizeof(*list));
	if (!f)
		return -ENOMEM;
	f->where = where_new();
	int error = f->where ? find(f, list) : -ENOENT;
	where_free(f->where);
	free(f->function);
	free(f);
	return error;
}

void places_free(struct place_list *list)
{
	free(list->place);
	memset(list, 0, sizeof(*list));
}

const struct place *places_named(const struct place_list *list, const char *name)
{
	for (unsigned i = 0; i < list->n; i++)
		if (!strcmp(list->place[i].name, name))
			return &list->place[i];
	return NULL;
}
