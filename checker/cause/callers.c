/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See callers.h. The unwinder of the compiler's runtime goes up the task's stack, from within the
 * tracer: past functions of Tidemark into those of the store. Each stack is kept once: a run has
 * few of them.
 */
#include "checker/cause/callers.h"
#include <stdlib.h>
#include <string.h>
#include <unwind.h>
#include <xxhash.h>
#include "core/array.h"

#define SLOTS	  4096
#define OF_TRACER 2 /* innermost frames: of this file, and of what calls it */

struct walk {
	uintptr_t pc[CALLERS_DEEP];
	unsigned skip, n;
};

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = arg;
	if (w->skip) {
		w->skip--;
		return _URC_NO_REASON;
	}
	w->pc[w->n] = _Unwind_GetIP(context);
	return w->pc[w->n] && ++w->n < CALLERS_DEEP ? _URC_NO_REASON : _URC_END_OF_STACK;
}

uint32_t callers_note(struct callers *c)
{
	struct walk w = {.skip = OF_TRACER};
	_Unwind_Backtrace(visit, &w);
	if (!c->slot)
		c->slot = calloc(SLOTS, sizeof(*c->slot));
	if (!w.n || !c->slot)
		return 0;
	uint32_t at = (uint32_t)XXH3_64bits(w.pc, sizeof(w.pc)) % SLOTS;
	while (c->slot[at] && memcmp(c->stack[c->slot[at]], w.pc, sizeof(w.pc)) != 0)
		at = (at + 1) % SLOTS;
	if (c->slot[at])
		return c->slot[at];
	const uint32_t next = c->n ? c->n : 1;
	if (next > SLOTS / 2 || !ARRAY_RESERVE(c->stack, next, 1, c->room))
		return 0;
	memcpy(c->stack[next], w.pc, sizeof(w.pc));
	c->n = next + 1;
	return c->slot[at] = next;
}

void callers_free(struct callers *c)
{
	free(c->stack);
	free(c->slot);
	memset(c, 0, sizeof(*c));
}

/* The folder that all sources of Tidemark are in, as the compiler was told this one's. */
static size_t length_of_top(void)
{
	return strlen(__FILE__) - strlen("checker/cause/callers.c");
}

enum whose {
	OF_TIDEMARK, /* or of a library */
	OF_STORES,   /* what stores share */
	OF_STORE
};

static enum whose whose_is(struct where *where, uintptr_t pc)
{
	static const char stores[] = "core/stores/";
	int line;
	const char *file = where_source(where, pc, &line);
	const size_t top = length_of_top();
	if (!file || !strncmp(file, "/usr/", 5))
		return OF_TIDEMARK;
	if (strncmp(file, __FILE__, top) != 0)
		return OF_STORE;
	file += top;
	if (!strncmp(file, stores, strlen(stores)))
		return strchr(file + strlen(stores), '/') ? OF_STORE : OF_STORES;
	return strncmp(file, "core/", 5) && strncmp(file, "checker/", 8) &&
			       strncmp(file, "faultinject/", 12)
		       ? OF_STORE
		       : OF_TIDEMARK;
}

unsigned callers_in_store(const struct callers *c, uint32_t stack, uintptr_t pc,
			  struct where *where, uintptr_t *out, unsigned n)
{
	unsigned found = 0;
	bool shared = true; /* nothing but that has been found */
	if (pc && n) {
		out[found++] = pc;
		shared = whose_is(where, pc) == OF_STORES;
	}
	for (unsigned i = 0; stack && stack < c->n && i < CALLERS_DEEP && (found < n || shared);
	     i++) {
		/* A return address: the call is before it. */
		const uintptr_t at = c->stack[stack][i] - 1;
		if (!c->stack[stack][i])
			break;
		const enum whose whose = whose_is(where, at);
		if (whose == OF_TIDEMARK && found > (pc != 0))
			break;
		if (whose == OF_TIDEMARK || (whose == OF_STORES && !shared))
			continue;
		/* A place that is known already, in a function that has gone on since. */
		if (pc && found == 1 &&
		    !strcmp(where_function(where, at), where_function(where, pc)))
			continue;
		if (whose == OF_STORE && shared)
			found = 0;
		shared &= whose == OF_STORES;
		if (found < n)
			out[found++] = at;
	}
	return found;
}

bool callers_are_many(const struct callers *c, struct where *where, uintptr_t pc)
{
	const uintptr_t begin = where_begin(where, pc);
	uintptr_t from = 0;
	for (uint32_t s = 1; s < c->n; s++)
		for (unsigned i = 0; i + 1 < CALLERS_DEEP && c->stack[s][i]; i++) {
			const uintptr_t by = c->stack[s][i + 1];
			if (!by || by == from || where_begin(where, c->stack[s][i] - 1) != begin)
				continue;
			if (from)
				return true;
			from = by;
		}
	return false;
}

bool callers_of_store(struct where *where, uintptr_t pc)
{
	return pc && whose_is(where, pc) == OF_STORE;
}

bool callers_of_stores(struct where *where, uintptr_t pc)
{
	return pc && whose_is(where, pc) != OF_TIDEMARK;
}
