/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidepm: a Valgrind tool that logs what a program does to persistent memory (PM), for programs
 * that cannot be compiled again. The log is the one that PMDK's pmemcheck writes; `tidemark images`
 * makes of it the images that a power failure could have left.
 *
 * This file and those beside it are under the BSD 3-Clause License, as the rest of Tidemark is. The
 * tool that is built of them is linked with Valgrind's core, and so is as a whole under the GNU
 * General Public License, version 2 or later.
 *
 * What is PM: each shared mapping of a file that was named with --pm. (mappings.c)
 *
 * What is logged of it:
 *
 *	REGISTER_FILE	mmap(), mremap(); an address range that is unmapped is not PM any more.
 *	STORE		what an instruction stored, read from memory right after it: of any width,
 *			in pieces of 8 bytes; a compare-and-swap if it swapped; what the kernel
 *			stored in a system call, as read() does. With the innermost frames of the
 *			stack. (instrument.c, events.c, places.c)
 *	FLUSH		CLFLUSH, CLFLUSHOPT and CLWB, a line each; a non-temporal store is a STORE
 *			and its FLUSH. (insn.c)
 *	FENCE		SFENCE and MFENCE, if PM was stored to or flushed since the last one; a
 *			locked instruction, if PM was flushed: flushes are ordered with it as with
 *			a fence (Intel's Software Developer's Manual, volume 2, CLWB). Library
 *			functions have many, so what these alone have fenced is told at the end;
 *			with --locked-fences=no the program must fence itself.
 *	DEEP_SYNC	msync() with MS_SYNC, fsync(), fdatasync(), sync(), syncfs().
 *
 * The log names no threads: Valgrind runs one at a time, and the log has their events in that
 *order.
 *
 * What write() and its like store in the file, beside the mapping, is not logged. A child process
 * that is forked has a log of its own, if the log's name tells the two apart (%p). At the end, on
 * Valgrind's own output: stores that were never made durable, stores overwritten before they were
 * flushed, flushes and fences that did nothing, each with its place. (lines.c)
 */
#include "tidepm.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_options.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"
#include "../core/record/told.h"

#define MAP_TYPE	    0x0f
#define MAP_SHARED_VALIDATE 0x03
#define MS_SYNC		    4

static const HChar *log_pattern = "tidepm.%p.log";
static Bool is_child; /* of a process that is logged */

/* --- options --- */

static Bool option(const HChar *arg)
{
	static const HChar wrong[] = "empty, has one of | and ;, or is one too many\n";
	const HChar *path;
	if (VG_STR_CLO(arg, "--pm", path)) {
		if (!mappings_file(path))
			VG_(fmsg_bad_option)(arg, wrong);
	} else if (VG_STR_CLO(arg, "--pm-log", log_pattern)) {
	} else if (VG_BINT_CLO(arg, "--depth", places_depth, 1, PLACES_DEPTH_MAX)) {
	} else if (VG_BOOL_CLO(arg, "--locked-fences", locked_fences)) {
	} else {
		return False;
	}
	return True;
}

static const HChar help[] =
	"    --pm=FILE      shared mappings of this file are persistent memory; more than one\n"
	"    --pm-log=FILE  where the log goes; %p is the process [tidepm.%p.log]\n"
	"    --depth=N      frames of the stack with each store [3]\n"
	"    --locked-fences=yes|no  a locked instruction waits for flushes [yes]\n";

static void usage(void)
{
	VG_(printf)("%s", help);
}

static void debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

/* --- system calls --- */

static void before_call(ThreadId tid, UInt number, UWord *args, UInt n)
{
	(void)tid, (void)args, (void)n;
	events_settle();
	if (number == __NR_execve || number == __NR_execveat)
		log_settle();
}

static void mapped(const UWord *args, Addr base)
{
	UWord type = args[3] & MAP_TYPE;
	mapping_remove(base, args[1]);
	if (type == VKI_MAP_SHARED || type == MAP_SHARED_VALIDATE)
		mapping_add(base, args[1], (Int)args[4], args[5]);
}

static void after_call(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result)
{
	(void)tid, (void)n;
	if (sr_isError(result))
		return;
	switch (number) {
	case __NR_mmap:
		mapped(args, sr_Res(result));
		break;
	case __NR_munmap:
		mapping_remove(args[0], args[1]);
		break;
	case __NR_mremap:
		mapping_move(args[0], args[1], sr_Res(result), args[2]);
		break;
	case __NR_msync:
		if (args[2] & MS_SYNC)
			event_sync(args[0], args[1]);
		break;
	case __NR_fsync:
	case __NR_fdatasync:
		mappings_of((Int)args[0], event_sync);
		break;
	case __NR_sync:
	case __NR_syncfs:
		mappings_of(-1, event_sync);
		break;
	default:
		break;
	}
}

static Bool requested(ThreadId tid, UWord *args, UWord *answer)
{
	(void)tid;
	if (args[0] != TOLD_REQUEST)
		return False;
	*answer = events_take((struct told *)args[1], args[2]);
	return True;
}

static void kernel_stored(CorePart part, ThreadId tid, Addr a, SizeT size)
{
	(void)part;
	event_kernel_store(tid, a, size);
}

/* --- beginning and end --- */

static void begin(void)
{
	if (!mappings_any_file()) {
		say("--pm=FILE is needed: which file is persistent memory?\n");
		VG_(exit)(2);
	}
	if (!log_open(log_pattern))
		VG_(exit)(2);
}

static void in_child(ThreadId tid)
{
	(void)tid;
	is_child = True;
	events_in_child();
	lines_init();
	places_in_child();
	log_in_child();
}

static void end(Int status)
{
	(void)status;
	events_settle();
	if (is_child && !events_any())
		return;
	lines_end_all();
	log_close();
	events_report();
	places_report();
}

static void set_up(void)
{
	VG_(details_name)("tidepm");
	VG_(details_version)(NULL);
	VG_(details_description)("a log of what a program does to persistent memory");
	VG_(details_copyright_author)("Part of Tidemark; see its LICENSE.");
	VG_(details_bug_reports_to)("Tidemark");
	VG_(details_avg_translation_sizeB)(400);
	VG_(basic_tool_funcs)(begin, instrument, end);
	VG_(needs_command_line_options)(option, usage, debug_usage);
	VG_(needs_syscall_wrapper)(before_call, after_call);
	VG_(needs_client_requests)(requested);
	VG_(track_post_mem_write)(kernel_stored);
	VG_(atfork)(NULL, NULL, in_child);
	lines_init();
}

VG_DETERMINE_INTERFACE_VERSION(set_up)
