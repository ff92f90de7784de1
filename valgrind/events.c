/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program does to PM: each event goes into the log, and to the lines that it concerns.
 *
 * memcpy() and memset() of much are one REP MOVSB or STOSB, that is to Valgrind as many stores of
 * a byte. A CPU makes words of them, or more: those of one aligned word are kept back and become
 * one store of up to 8 bytes.
 */
#include "tidepm.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"
#include "../core/record/told.h"

#define TOUCHED_LOCKED 2 /* of pm_touched */

UWord pm_touched, pm_flushed;
Bool locked_fences = True;
static ULong stores, flushes, fences, syncs;

/* --- what the recorder is told --- */

static Bool asked; /* there is a recorder */
static struct told *told;
static UWord tolds, told_room;

static UInt upto_main(struct place *place)
{
	if (!place->upto_main) {
		DiEpoch now = VG_(current_DiEpoch)();
		UInt n = 1;
		while (n < place->n &&
		       VG_(get_fnname_kind_from_IP)(now, place->ips[n - 1]) == Vg_FnNameNormal)
			n++;
		place->upto_main = n;
	}
	return place->upto_main;
}

static void tell(enum told_kind kind, Addr a, SizeT size, const void *bytes, struct place *place)
{
	if (!asked)
		return;
	if (tolds == told_room) {
		told_room = told_room ? 2 * told_room : 1024;
		told = VG_(realloc)("tell", told, told_room * sizeof(*told));
	}
	struct told *t = &told[tolds++];
	VG_(memset)(t, 0, sizeof(*t));
	t->kind = kind;
	t->at = a;
	t->len = size;
	t->thread = VG_(gettid)();
	if (bytes)
		VG_(memcpy)(&t->value, bytes, size);
	for (UInt i = 0; place && i < upto_main(place) && i < TOLD_FRAMES; i++)
		t->ip[i] = place->ips[i];
}

UWord events_take(struct told *to, UWord room)
{
	events_settle();
	asked = True;
	UWord n = tolds < room ? tolds : room;
	locked_fences = False;
	VG_(memcpy)(to, told, n * sizeof(*to));
	tolds -= n;
	VG_(memmove)(told, told + n, tolds * sizeof(*told));
	return n;
}

/* --- events --- */

static struct {
	Addr at;
	SizeT size; /* 0: nothing is kept back */
	UChar bytes[8];
	struct place *place;
} kept;

void events_settle(void)
{
	if (!kept.size)
		return;
	log_store(kept.at, kept.bytes, kept.size, kept.place);
	tell(TOLD_STORE, kept.at, kept.size, kept.bytes, kept.place);
	line_store(kept.at, kept.size, kept.place);
	stores++;
	kept.size = 0;
}

static struct place *here(void)
{
	return place_of(VG_(get_running_tid)());
}

/* The parts of [a, a + size) that are PM, in pieces of 8 bytes. */
static Bool store(ThreadId tid, Addr a, SizeT size)
{
	Addr end = a + size, part;
	SizeT len;
	struct place *place = NULL;
	events_settle();
	while ((len = mapping_next(&a, end, &part))) {
		if (!place)
			place = place_of(tid);
		stores++;
		for (SizeT at = 0; at < len; at += 8) {
			SizeT piece = len - at < 8 ? len - at : 8;
			log_store(part + at, (const void *)(part + at), piece, place);
			tell(TOLD_STORE, part + at, piece, (const void *)(part + at), place);
		}
		line_store(part, len, place);
	}
	if (place)
		pm_touched = 1;
	return place != NULL;
}

VG_REGPARM(2) void event_store(Addr a, UWord size)
{
	store(VG_(get_running_tid)(), a, size);
}

VG_REGPARM(2) void event_store_string(Addr a, UWord size)
{
	Addr at = a, part;
	tl_assert(size == 1);
	if (!mapping_next(&at, a + 1, &part))
		return;
	struct place *place = here();
	if (!kept.size || kept.at + kept.size != a || a % sizeof(kept.bytes) == 0 ||
	    kept.place != place) {
		events_settle();
		kept.at = a;
		kept.place = place;
	}
	kept.bytes[kept.size++] = *(const UChar *)a;
	pm_touched = 1;
}

/*
 * It leaves no line in the cache, and the next fence waits for it: a store and its flush at once,
 * of these bytes and, as the CPU writes back what the cache has of a line when it is stored to so,
 * of their lines.
 */
VG_REGPARM(2) void event_store_past_cache(Addr a, UWord size)
{
	Addr end = a + size, part;
	SizeT len;
	if (!store(VG_(get_running_tid)(), a, size))
		return;
	while ((len = mapping_next(&a, end, &part))) {
		log_flush(part, len);
		tell(TOLD_FLUSH, part, len, NULL, here());
		for (Addr line = part & ~(Addr)(LINE - 1); line < part + len; line += LINE)
			line_flush(line, NULL);
	}
	pm_flushed = 1;
}

VG_REGPARM(1) void event_flush(Addr a)
{
	Addr line = a & ~(Addr)(LINE - 1), at = line, part;
	if (!mapping_next(&at, line + LINE, &part))
		return;
	events_settle();
	flushes++;
	log_flush(line, LINE);
	tell(TOLD_FLUSH, line, LINE, NULL, here());
	line_flush(line, here());
	pm_touched = pm_flushed = 1;
}

static void fence(Bool by_lock)
{
	events_settle();
	if (!pm_flushed && !lines_locked())
		here()->count[FENCE_ALONE]++;
	fences++;
	lines_fence(by_lock);
	pm_touched = lines_locked() ? TOUCHED_LOCKED : 0;
	pm_flushed = 0;
	log_fence();
	tell(TOLD_FENCE, 0, 0, NULL, here());
}

VG_REGPARM(0) void event_fence(void)
{
	tl_assert(pm_touched);
	if (pm_touched != TOUCHED_LOCKED) {
		fence(False);
		return;
	}
	pm_touched = 0;
	lines_fence(False);
}

VG_REGPARM(0) void event_locked(void)
{
	if (pm_flushed && locked_fences)
		fence(True);
}

void event_kernel_store(ThreadId tid, Addr a, SizeT size)
{
	if (pm_span)
		store(tid, a, size);
}

void event_sync(Addr a, SizeT size)
{
	Addr end = a + size, part;
	SizeT len;
	events_settle();
	while ((len = mapping_next(&a, end, &part))) {
		syncs++;
		log_sync(part, len);
		lines_sync(part, len);
	}
}

void events_in_child(void)
{
	kept.size = 0;
	tolds = 0;
	stores = flushes = fences = syncs = 0;
	pm_touched = pm_flushed = 0;
}

Bool events_any(void)
{
	return stores || flushes || fences || syncs;
}

void events_report(void)
{
	say("PM: %llu store%s, %llu flush%s, %llu fence%s, %llu range%s synchronised; log: %s\n",
	    stores, stores == 1 ? "" : "s", flushes, flushes == 1 ? "" : "es", fences,
	    fences == 1 ? "" : "s", syncs, syncs == 1 ? "" : "s", log_name());
}
