/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lines of PM that hold something that is not durable: a table by their address, each with its
 * stores. A store is taken out when a fence follows the flush of its line, or when a later one
 * covers it; a line, when it has no more. What is left at the end was never made durable.
 */
#include "tidepm.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_xarray.h"

struct store {
	struct store *next;
	struct place *place;
	UChar from, end; /* bytes of the line */
	Bool flushed;
};

/* Begins as VgHashNode does. */
struct line {
	struct line *next;
	UWord address;
	struct store *stores;
	Bool flushed; /* one of its stores is flushed: it is in the list */
};

static VgHashTable *lines;
static XArray *flushed; /* addresses of lines that were flushed since the last fence */
static XArray *locked;	/* places with stores that only a locked instruction has fenced */

void lines_init(void)
{
	lines = VG_(HT_construct)("lines");
	flushed = VG_(newXA)(VG_(malloc), "flushed", VG_(free), sizeof(UWord));
	locked = VG_(newXA)(VG_(malloc), "locked", VG_(free), sizeof(struct place *));
}

/* Takes out the stores that `gone` says yes to. */
static void take_out(struct line *l, Bool (*gone)(const struct store *, const struct store *),
		     const struct store *by)
{
	struct store **link = &l->stores;
	while (*link) {
		struct store *s = *link;
		if (!gone(s, by)) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		VG_(free)(s);
	}
}

static void drop_if_empty(struct line *l)
{
	if (l->stores)
		return;
	VG_(HT_remove)(lines, l->address);
	VG_(free)(l);
}

/* --- stores --- */

/* One that is flushed may be durable already, whatever comes later. */
static Bool overwritten(const struct store *s, const struct store *by)
{
	if (s->flushed || s->from >= by->end || by->from >= s->end)
		return False;
	s->place->count[OVERWRITTEN]++;
	return s->from >= by->from && s->end <= by->end;
}

static void line_store_part(Addr line, UChar from, UChar end, struct place *place)
{
	struct line *l = VG_(HT_lookup)(lines, line);
	if (!l) {
		l = VG_(calloc)("line", 1, sizeof(*l));
		l->address = line;
		VG_(HT_add_node)(lines, l);
	}
	struct store *s = VG_(malloc)("store", sizeof(*s));
	*s = (struct store){.place = place, .from = from, .end = end};
	take_out(l, overwritten, s);
	s->next = l->stores;
	l->stores = s;
}

void line_store(Addr a, SizeT size, struct place *place)
{
	Addr end = a + size;
	while (a < end) {
		Addr line = a & ~(Addr)(LINE - 1);
		Addr stop = end < line + LINE ? end : line + LINE;
		line_store_part(line, (UChar)(a - line), (UChar)(stop - line), place);
		a = stop;
	}
}

/* --- durable --- */

void line_flush(Addr line, struct place *place)
{
	struct line *l = VG_(HT_lookup)(lines, line);
	Bool any = False;
	for (struct store *s = l ? l->stores : NULL; s; s = s->next) {
		any = any || !s->flushed;
		s->flushed = True;
	}
	if (!any && place)
		place->count[FLUSHED_AGAIN]++;
	if (any && !l->flushed) {
		l->flushed = True;
		VG_(addToXA)(flushed, &l->address);
	}
}

static Bool is_flushed(const struct store *s, const struct store *unused)
{
	(void)unused;
	return s->flushed;
}

static Bool is_flushed_locked(const struct store *s, const struct store *unused)
{
	(void)unused;
	if (s->flushed && !s->place->locked++)
		VG_(addToXA)(locked, &s->place);
	return s->flushed;
}

/* No locked instruction has to stand in for a fence any more; or, at the end, it did. */
static void settle_locked(Bool fenced)
{
	Word n = VG_(sizeXA)(locked);
	for (Word i = 0; i < n; i++) {
		struct place *p = *(struct place **)VG_(indexXA)(locked, i);
		p->count[LOCKED_ONLY] += fenced ? 0 : p->locked;
		p->locked = 0;
	}
	VG_(dropTailXA)(locked, n);
}

Bool lines_locked(void)
{
	return VG_(sizeXA)(locked) > 0;
}

void lines_fence(Bool by_lock)
{
	if (!by_lock)
		settle_locked(True);
	Word n = VG_(sizeXA)(flushed);
	for (Word i = 0; i < n; i++) {
		struct line *l = VG_(HT_lookup)(lines, *(UWord *)VG_(indexXA)(flushed, i));
		if (!l) /* synchronised, or unmapped, since */
			continue;
		l->flushed = False;
		take_out(l, by_lock ? is_flushed_locked : is_flushed, NULL);
		drop_if_empty(l);
	}
	VG_(dropTailXA)(flushed, n);
}

/* --- ranges --- */

static Bool is_durable(const struct store *s, const struct store *unused)
{
	(void)s, (void)unused;
	return True;
}

static Bool is_lost(const struct store *s, const struct store *unused)
{
	(void)unused;
	s->place->count[s->flushed ? NOT_FENCED : NEVER_FLUSHED]++;
	return True;
}

static void take_out_range(Addr a, Addr end,
			   Bool (*gone)(const struct store *, const struct store *))
{
	struct line *l;
	VG_(HT_ResetIter)(lines);
	while ((l = VG_(HT_Next)(lines))) {
		if (l->address + LINE <= a || l->address >= end)
			continue;
		take_out(l, gone, NULL);
		VG_(HT_remove_at_Iter)(lines);
		VG_(free)(l);
	}
}

void lines_sync(Addr a, SizeT size)
{
	settle_locked(True); /* the kernel fences */
	take_out_range(a, a + size, is_durable);
}

void lines_end(Addr a, SizeT size)
{
	take_out_range(a, a + size, is_lost);
}

void lines_end_all(void)
{
	settle_locked(False);
	take_out_range(0, ~(Addr)0, is_lost);
}

void lines_move(Addr from, SizeT size, Addr to)
{
	struct line *l, *moved = NULL;
	VG_(HT_ResetIter)(lines);
	while ((l = VG_(HT_Next)(lines))) {
		if (l->address < from || l->address >= from + size)
			continue;
		VG_(HT_remove_at_Iter)(lines);
		l->next = moved;
		moved = l;
	}
	while ((l = moved)) {
		moved = l->next;
		l->address += to - from;
		VG_(HT_add_node)(lines, l);
		if (l->flushed)
			VG_(addToXA)(flushed, &l->address);
	}
}
