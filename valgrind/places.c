/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of the program. A stack is looked up by its addresses; only the first time is its text
 * made, which takes much longer than the rest, and which is still known when the library that the
 * code was in has been unloaded.
 */
#include "tidepm.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_xarray.h"

#define BUCKETS	    4096
#define SHOWN	    10	/* places of a kind */
#define FRAME_MAX   400 /* characters */
#define LIBC_FRAMES 4	/* of a call, that are left out */

Int places_depth = 3;
static struct place *buckets[BUCKETS], *newest;

/* --- the text of a stack --- */

struct text {
	HChar *at, *end;
	Int frames;
};

/* What describe_IP() says, without the address: "FUNCTION (FILE:LINE)". */
static void add_frame(struct text *t, const HChar *described)
{
	const HChar *name = VG_(strstr)(described, ": ");
	name = name ? name + 2 : described;
	if (t->frames++)
		*t->at++ = ';';
	for (Int i = 0; name[i] && i < FRAME_MAX; i++) {
		HChar c = name[i];
		if (c == ';')
			c = ',';
		*t->at++ = c > 0 && c < ' ' ? ' ' : c;
	}
	tl_assert(t->at < t->end);
	*t->at = 0;
}

/* `n` addresses, and the functions inlined there; nothing below main(). */
static HChar *describe(const Addr *ips, UInt n)
{
	DiEpoch now = VG_(current_DiEpoch)();
	SizeT size = (SizeT)places_depth * (FRAME_MAX + 1) + 1;
	HChar *buffer = VG_(malloc)("describe", size);
	struct text t = {.at = buffer, .end = buffer + size};
	Bool main = False;
	*buffer = 0;
	for (UInt i = 0; i < n && t.frames < places_depth && !main; i++) {
		InlIPCursor *cursor = VG_(new_IIPC)(now, ips[i]);
		main = VG_(get_fnname_kind_from_IP)(now, ips[i]) != Vg_FnNameNormal;
		do
			add_frame(&t, VG_(describe_IP)(now, ips[i], cursor));
		while (VG_(next_IIPC)(cursor) && t.frames < places_depth);
		VG_(delete_IIPC)(cursor);
	}
	HChar *text = VG_(strdup)("place", buffer);
	VG_(free)(buffer);
	return text;
}

/* --- looking up --- */

static struct place *add(const Addr *ips, UInt n, struct place **bucket)
{
	struct place *p = VG_(calloc)("place", 1, sizeof(*p));
	p->ips = VG_(malloc)("place", n * sizeof(*ips));
	VG_(memcpy)(p->ips, ips, n * sizeof(*ips));
	p->n = n;
	p->text = describe(ips, n);
	p->next = *bucket;
	*bucket = p;
	p->all = newest;
	newest = p;
	return p;
}

/* Is the code libc's? That is known of the last ones that were asked for. */
static Bool in_libc(Addr ip)
{
	static struct {
		Addr ip;
		UInt epoch;
		Bool is;
	} known[256];
	DiEpoch now = VG_(current_DiEpoch)();
	UWord at = (ip ^ ip >> 8) % (sizeof(known) / sizeof(known[0]));
	const HChar *object;
	if (known[at].ip != ip || known[at].epoch != now.n) {
		known[at].ip = ip;
		known[at].epoch = now.n;
		known[at].is = VG_(get_objname)(now, ip, &object) &&
			       VG_(strstr)(object, "/libc.so") != NULL;
	}
	return known[at].is;
}

/* As deep as asked for. Of libc's innermost frames it has only the one that the program called: in
 * a newer libc a read() is three. */
static UInt get_stack(ThreadId tid, Addr *ips)
{
	Addr all[PLACES_DEPTH_MAX + LIBC_FRAMES];
	UInt depth = (UInt)places_depth, left = 0;
	UInt n = VG_(get_StackTrace)(tid, all, depth, NULL, NULL, 0);
	if (n > 1 && in_libc(all[0]) && in_libc(all[1]))
		n = VG_(get_StackTrace)(tid, all, depth + LIBC_FRAMES, NULL, NULL, 0);
	while (left < LIBC_FRAMES && left + 1 < n && in_libc(all[left]) && in_libc(all[left + 1]))
		left++;
	n = n - left < depth ? n - left : depth;
	VG_(memcpy)(ips, all + left, n * sizeof(*ips));
	return n;
}

struct place *place_of(ThreadId tid)
{
	Addr ips[PLACES_DEPTH_MAX];
	UInt n = get_stack(tid, ips);
	UWord hash = 0;
	for (UInt i = 0; i < n; i++)
		hash = (hash ^ ips[i]) * 0x9e3779b97f4a7c15;
	struct place **bucket = &buckets[hash >> 52];
	for (struct place *p = *bucket; p; p = p->next)
		if (p->n == n && !VG_(memcmp)(p->ips, ips, n * sizeof(*ips)))
			return p;
	return add(ips, n, bucket);
}

void places_in_child(void)
{
	for (struct place *p = newest; p; p = p->all) {
		VG_(memset)(p->count, 0, sizeof(p->count));
		p->locked = 0;
	}
}

/* --- the report --- */

static enum finding sorted_by;

static Int by_count(const void *a, const void *b)
{
	ULong x = (*(struct place *const *)a)->count[sorted_by];
	ULong y = (*(struct place *const *)b)->count[sorted_by];
	return x < y ? 1 : x > y ? -1 : 0;
}

static void print_place(ULong count, const HChar *text)
{
	HChar frame[FRAME_MAX + 1];
	const HChar *between = "at";
	say("  %llu\n", count);
	while (*text) {
		SizeT len = VG_(strcspn)(text, ";");
		VG_(memcpy)(frame, text, len);
		frame[len] = 0;
		say("     %s %s\n", between, frame);
		text += len + (text[len] == ';');
		between = "by";
	}
}

static ULong sum(enum finding f)
{
	ULong all = 0;
	for (struct place *p = newest; p; p = p->all)
		all += p->count[f];
	return all;
}

static void report(enum finding f, const HChar *what)
{
	XArray *found = VG_(newXA)(VG_(malloc), "report", VG_(free), sizeof(struct place *));
	for (struct place *p = newest; p; p = p->all)
		if (p->count[f])
			VG_(addToXA)(found, &p);
	Word places = VG_(sizeXA)(found);
	sorted_by = f;
	VG_(setCmpFnXA)(found, by_count);
	VG_(sortXA)(found);
	if (places)
		say("%s:\n", what);
	for (Word i = 0; i < places && i < SHOWN; i++) {
		struct place *p = *(struct place **)VG_(indexXA)(found, i);
		print_place(p->count[f], p->text);
	}
	if (places > SHOWN)
		say("  and at %ld other places\n", places - SHOWN);
	VG_(deleteXA)(found);
}

void places_report(void)
{
	HChar locked[80] = "";
	if (sum(LOCKED_ONLY))
		VG_(snprintf)
	(locked, sizeof(locked), "%llu fenced by a locked instruction alone, ", sum(LOCKED_ONLY));
	report(NEVER_FLUSHED, "stores that were never flushed");
	report(NOT_FENCED, "stores that were flushed, with no fence after it");
	report(LOCKED_ONLY, "stores that were flushed, with no fence after it but a locked "
			    "instruction (--locked-fences=no)");
	report(OVERWRITTEN, "stores that were overwritten before they were flushed");
	report(FLUSHED_AGAIN, "flushes of a line that was not stored to since its last flush");
	report(FENCE_ALONE, "fences after stores that were not flushed");
	say("stores: %llu never flushed, %llu not fenced, %s%llu overwritten; %llu flush%s and "
	    "%llu fence%s for nothing\n",
	    sum(NEVER_FLUSHED), sum(NOT_FENCED), locked, sum(OVERWRITTEN), sum(FLUSHED_AGAIN),
	    sum(FLUSHED_AGAIN) == 1 ? "" : "es", sum(FENCE_ALONE),
	    sum(FENCE_ALONE) == 1 ? "" : "s");
}
