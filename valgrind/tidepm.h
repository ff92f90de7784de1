/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIDEPM_H
#define TIDEPM_H
/*
 * What the files of the tool tell each other. tidepm.c says what the tool does.
 */
#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_tooliface.h"

struct told;

#define say VG_(umsg) /* on Valgrind's output; as printf() */

#define LINE 64 /* bytes; what a flush writes back */

/* --- places.c: places of the program, each a short stack of calls --- */

enum finding {
	NEVER_FLUSHED,
	NOT_FENCED,
	LOCKED_ONLY, /* fenced by a locked instruction, and by no fence after that */
	FLUSHED_AGAIN,
	OVERWRITTEN,
	FENCE_ALONE,
	FINDINGS
};

/* Lives to the end of the run. */
struct place {
	struct place *next; /* of its bucket */
	struct place *all;  /* the one that was first seen before it */
	UInt n;
	Addr *ips;	/* n, the innermost first */
	UInt upto_main; /* so many of them, if main() is among them; 0: not looked at yet */
	HChar *text;	/* its frames as in the log, separated by ';' */
	ULong count[FINDINGS];
	ULong locked; /* stores that may become LOCKED_ONLY: no fence has come yet */
};

extern Int places_depth; /* frames of a place at most; set before the first one is asked for */
#define PLACES_DEPTH_MAX 32

/* Where the thread is. */
struct place *place_of(ThreadId tid);
/* Nothing was found in this process yet. */
void places_in_child(void);
/* Prints, for each kind of finding, the places with most of it. */
void places_report(void);

/* --- log.c: the file --- */

/* False, with a message: it cannot be written. */
Bool log_open(const HChar *name);
void log_mapping(const HChar *path, Addr base, SizeT size, ULong offset);
/* At most 8 bytes. */
void log_store(Addr a, const void *bytes, SizeT size, const struct place *place);
void log_flush(Addr a, SizeT size);
void log_fence(void);
void log_sync(Addr a, SizeT size);
/* What is buffered is written. */
void log_settle(void);
/* With STOP. */
void log_close(void);
/* A child process leaves the log to its parent, and has one of its own when something is to be in
 * it, if the log's name has a %p. */
void log_in_child(void);
/* Before a mapping is looked for among those that are in the log. */
void log_ready(void);
const HChar *log_name(void);

/* --- lines.c: which stores are not durable yet --- */

void lines_init(void); /* in a child process, too: the others are its parent's */
void line_store(Addr a, SizeT size, struct place *place);
/* A line is written back. By a flush instruction: `place` is where; by the store itself: NULL. */
void line_flush(Addr line, struct place *place);
/* By a locked instruction, or by a fence. */
void lines_fence(Bool locked);
/* Has a locked instruction fenced stores, and nothing else since? */
Bool lines_locked(void);
/* The kernel made the range durable. */
void lines_sync(Addr a, SizeT size);
/* The range is mapped elsewhere. */
void lines_move(Addr from, SizeT size, Addr to);
/* The range is unmapped: what is not durable in it can no longer become so. */
void lines_end(Addr a, SizeT size);
void lines_end_all(void);

/* --- mappings.c: which addresses are PM --- */

/* False: it cannot be the name of a file in a log, or there are too many. */
Bool mappings_file(const HChar *path);
Bool mappings_any_file(void);
void mapping_add(Addr base, SizeT len, Int fd, ULong offset);
void mapping_remove(Addr base, SizeT len);
void mapping_move(Addr old, SizeT old_len, Addr new, SizeT new_len);
/* Write those that there are to a log that begins. */
void mappings_log(void);
/* The next part of [*at, end) that is PM; *at becomes what follows it. 0 bytes: none is left. */
SizeT mapping_next(Addr *at, Addr end, Addr *part);
/* Calls what for each mapping of the file that fd is open on; fd -1: for all. */
void mappings_of(Int fd, void (*what)(Addr base, SizeT size));

/* All PM is in [pm_low + PM_SLACK, pm_low + pm_span); nothing is: pm_span is 0. A store of up to
 * PM_SLACK bytes that touches it begins in [pm_low, pm_low + pm_span). Translated code reads both.
 */
#define PM_SLACK 64
extern Addr pm_low;
extern UWord pm_span;

/* --- events.c: what the program does to PM --- */

/* Since the last fence; translated code reads them, not to call for nothing. */
extern UWord pm_touched; /* something of PM was stored or flushed; or (TOUCHED_LOCKED) nothing, but
			  * a locked instruction stood in for the fence */
extern UWord pm_flushed; /* something was flushed */

extern Bool locked_fences; /* a locked instruction waits for flushes; --locked-fences */

VG_REGPARM(2) void event_store(Addr a, UWord size);
/* A non-temporal one. */
VG_REGPARM(2) void event_store_past_cache(Addr a, UWord size);
/* A repeated string instruction. */
VG_REGPARM(2) void event_store_string(Addr a, UWord size);
VG_REGPARM(1) void event_flush(Addr a);
VG_REGPARM(0) void event_fence(void);
/* A locked instruction. */
VG_REGPARM(0) void event_locked(void);
void event_kernel_store(ThreadId tid, Addr a, SizeT size);
void event_sync(Addr a, SizeT size);
/* The recorder in the program (core/record/told.c) wants what there was since the last time: at
 * most `room` of it. Returns their number. Locked instructions are no fences from then on, as the
 * recorder's own would be some. */
UWord events_take(struct told *to, UWord room);
/* What was kept back is in the log and in the lines. */
void events_settle(void);
/* A child process begins: what there was is its parent's. */
void events_in_child(void);
/* Has there been any? */
Bool events_any(void);
/* The first line of the report. */
void events_report(void);

/* --- insn.c: machine code --- */

enum insn {
	INSN_OTHER,
	INSN_PAST_CACHE, /* a non-temporal store */
	INSN_STRING,	 /* REP MOVSB, REP STOSB */
	INSN_FLUSH,	 /* CLFLUSH, CLFLUSHOPT, CLWB */
	INSN_LFENCE	 /* orders no stores */
};

/* The instruction at `ip`. *operand is set for INSN_FLUSH. */
struct operand; /* core/instruction.h */
enum insn insn_at(Addr ip, struct operand *operand);

/* --- instrument.c --- */

IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word);

#endif
