/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program does to PM: each event goes into the log, and to the lines that it concerns. */
#include "tidepm.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_threadstate.h"

UWord pm_touched, pm_flushed;
static ULong stores, flushes, fences, syncs;

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
	while ((len = mapping_next(&a, end, &part))) {
		if (!place)
			place = place_of(tid);
		stores++;
		for (SizeT at = 0; at < len; at += 8) {
			SizeT piece = len - at < 8 ? len - at : 8;
			log_store(part + at, piece, place);
			line_store(part + at, piece, place);
		}
	}
	if (place)
		pm_touched = 1;
	return place != NULL;
}

VG_REGPARM(2) void event_store(Addr a, UWord size)
{
	store(VG_(get_running_tid)(), a, size);
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
	flushes++;
	log_flush(line, LINE);
	line_flush(line, here());
	pm_touched = pm_flushed = 1;
}

VG_REGPARM(0) void event_fence(void)
{
	if (!pm_touched)
		return;
	if (!pm_flushed)
		here()->count[FENCE_ALONE]++;
	fences++;
	pm_touched = pm_flushed = 0;
	lines_fence();
	log_fence();
}

VG_REGPARM(0) void event_locked(void)
{
	if (pm_flushed)
		event_fence();
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
	while ((len = mapping_next(&a, end, &part))) {
		syncs++;
		log_sync(part, len);
		lines_sync(part, len);
	}
}

void events_report(void)
{
	VG_(umsg)
	("PM: %llu stores, %llu flushes, %llu fences, %llu ranges synchronised; log: %s\n", stores,
	 flushes, fences, syncs, log_name());
}
