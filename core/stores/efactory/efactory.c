/* SPDX-License-Identifier: BSD-3-Clause */
/* What eFactory promises, its switches, its readings and its seeded bugs. See efactory.h. */
#include "core/stores/bits.h"
#include "core/stores/efactory/efactory.h"
#include <errno.h>

static const struct tm_knob knobs[] = {
#define X(name, values, what) {#name, values, what},
	EF_KNOBS(X)
#undef X
		{0},
};

static const struct tm_variant variants[] = {
	{"one_flush", "meta_one_flush=on",
	 "header and entry share a fence: a durable entry may name a header that is not there, and "
	 "all versions are lost",
	 MONO | KEEP | FSCK},
	{"header_unflushed", "bug=header_unflushed",
	 "a PUT never flushes its object's header: a durable entry may name a header that is not "
	 "there",
	 MONO | KEEP | FSCK},
	{"entry_unflushed", "bug=entry_unflushed",
	 "a PUT does not flush the entry: a version that was persisted and read is not found after "
	 "a crash",
	 MONO | KEEP | FSCK},
	{"key_unflushed", "bug=key_unflushed",
	 "a new entry's key is stored after the bit that says used, and not flushed",
	 MONO | KEEP | FSCK},
	{"no_pre", "bug=no_pre", "a PUT does not link the previous version: nothing to go back to",
	 LIN | MONO | KEEP},
	{"pre_late", "bug=pre_late", "a PUT links the previous version after the entry is durable",
	 MONO | KEEP},
	{"born_durable", "bug=born_durable", "a new object's flag is 1 from the start",
	 RDA | LIN | MONO | KEEP | FSCK},
	{"flag_first", "flag_before_value=on trust_flag=on",
	 "the flag is durable before the value, and recovery trusts the flag",
	 RDA | MONO | KEEP | FSCK},
	{"flag_visible_first", "flag_before_value=on",
	 "the flag is visible before the value is durable: a client reads what a crash takes away",
	 MONO | KEEP | FSCK},
	{"get_no_crc", "bug=get_no_crc",
	 "the server hands out the newest version without checking its CRC", RDA | LIN | FSCK},
	{"get_no_flush", "bug=get_no_flush",
	 "the server sets the flag for a GET without persisting the value", MONO | KEEP | FSCK},
	{"get_no_fence", "bug=get_no_fence",
	 "the server flushes the value for a GET but does not wait for it", MONO | KEEP | FSCK},
	{"get_flush_header", "bug=get_flush_header",
	 "the server persists the header for a GET, not the value", MONO | KEEP | FSCK},
	{"get_head_only", "bug=get_head_only",
	 "a GET whose newest version is incomplete says not-found", LIN},
	{"get_waits", "bug=get_waits",
	 "a GET waits for the newest version, whose writer may be dead", LIVE},
	{"bg_no_flush", "bug=bg_no_flush",
	 "the verifier sets the flag without persisting the value", MONO | KEEP | FSCK},
	{"client_no_flag", "bug=client_no_flag",
	 "a client returns what it read without looking at the flag", RDA | LIN | MONO},
	{"recover_no_crc", "bug=recover_no_crc",
	 "recovery takes the newest valid version without checking its CRC",
	 RDA | MONO | KEEP | FSCK},
	{"recover_head_only", "bug=recover_head_only",
	 "recovery drops a key whose newest version is incomplete", MONO | KEEP},
	{"recover_next", "bug=recover_next",
	 "recovery leaves the link to the newer version that it dropped", FSCK},
	{"recover_no_flag", "bug=recover_no_flag",
	 "recovery leaves the flag at 0: the newest version can still be timed out or fallen back "
	 "from",
	 FSCK},
	{"recover_clears", "bug=recover_clears",
	 "recovery takes the old offset out before it puts the new one in: a second failure in "
	 "between loses the key",
	 MONO | KEEP},
	{"short_timeout", "timeout=1ms",
	 "the timeout is shorter than a client's stall: an acknowledged PUT was already invalid",
	 LIN},
	{"racing_timeout", "timeout=1ms bg_plain_store=on",
	 "the same, and the verifier invalidates what a GET has just returned",
	 LIN | MONO | KEEP | FSCK},

	/* Log cleaning. */
	{"clean_copy_unflushed", "bug=copy_no_flush",
	 "cleaning names a copy that is not durable yet", MONO | KEEP | FSCK},
	{"clean_older_wins", "bug=copy_older",
	 "cleaning puts a version of the old log over a newer one that a PUT has put into the new "
	 "log",
	 LIN | MONO | KEEP | NORES},
	{"clean_no_carry", "bug=no_carry",
	 "cleaning forgets the versions that were in flight: one that arrives later is lost",
	 LIN | MONO},
	{"clean_inflight", "copy_inflight=on no_notify_wait=on",
	 "cleaning waits for no client, and copies a version that is still being written: what "
	 "arrives later is lost",
	 LIN | MONO | KEEP},
	{"clean_tombstone_skipped", "bug=tombstone_skipped",
	 "cleaning goes on after a tombstone and moves the version that was deleted", LIN | NORES},
	{"clean_tombstone_early", "tombstone_drop=early no_notify_wait=on",
	 "cleaning waits for no client, and drops a tombstone while an older version is in flight",
	 LIN | NORES},
	{"clean_state_early", "bug=state_early",
	 "that the new log is the current one is durable before the entries say so",
	 LIN | MONO | KEEP | FSCK},
	{"clean_no_state", "bug=no_state", "that a log is being cleaned is not made durable",
	 LIN | MONO | KEEP | FSCK},
	{"clean_client_hybrid", "bug=client_hybrid",
	 "a client goes on reading by itself while a log is cleaned", LIN | MONO},
	{"clean_no_quiesce", "bug=no_quiesce",
	 "the cleaner goes on to its next stage while a request of the stage before is handled",
	 LIN | MONO | KEEP | FSCK},
	{"clean_stale_get", "compress_get=literal",
	 "while a log is compressed, a GET prefers the copy to a newer version", LIN | MONO},
	{"clean_clear_first", "end_order=clear recover_head=mark",
	 "an entry's old offset is cleared before its mark is flipped: a power failure in between "
	 "loses the key",
	 MONO | KEEP},
	{"recover_cleaning_ignored", "bug=recover_uncleaned",
	 "recovery takes the current log for all there is, although it was being cleaned",
	 MONO | KEEP | FSCK},
	{"recover_flip_first", "bug=recover_flip_first",
	 "recovery flips a mark before the new offset is durable: a second failure in between "
	 "loses the key",
	 MONO | KEEP},
	{"recover_state_first", "bug=recover_state_first",
	 "recovery says that the cleaning is over before the entries do: a second failure in "
	 "between loses the key",
	 MONO | KEEP | FSCK},
	{"recover_unflushed", "bug=recover_unflushed",
	 "recovery does not make durable that a key is back at an older version: a PUT of another "
	 "key "
	 "takes the place of the newer one, and a second failure brings the key back to it",
	 RDA | MONO | KEEP | FSCK},
	{"recover_cached", "bug=recover_cached",
	 "recovery takes what is intact for durable, though it may be in a cache only if the "
	 "process "
	 "alone has died",
	 MONO | KEEP | FSCK},
	/* Not hunted: it takes a version that waits for the verifier, the death of the process in
	 * the middle of the next PUT, and a power failure in recovery. tests/traces has it. */
	{"recover_copy_cached", "bug=recover_copy_cached",
	 "recovery ends a cleaning of the process that died, and relies on versions that may be in "
	 "a "
	 "cache only",
	 0},
	{"stale_offset", "bug=stale_offset",
	 "a new entry keeps the offset that an unfinished one has left in the other log", FSCK},
	{"recover_tail_low", "bug=recover_tail_low",
	 "after a restart the log goes on over a tombstone at its end: the deleted key's entry "
	 "names "
	 "what the next PUT of another key writes there",
	 RDA | LIN | NORES | FSCK},
	{"recover_discards", "recover_clean=discard",
	 "recovery drops what was copied, although versions of the old log are linked to it",
	 MONO | KEEP},
	{"entry_lazy", "bug=entry_lazy",
	 "an entry is made durable with the value, not by the PUT: a value that arrived whole is "
	 "not found after a crash",
	 DUR},
	{"entry_unfenced", "bug=entry_unfenced",
	 "a PUT of a known key flushes the entry without a fence", MONO | KEEP | FSCK},
	{"invalid_ends", "bug=invalid_ends",
	 "a GET that meets the version of a dead writer does not look at those before it", LIN},
	{"probe_gives_up", "bug=probe_gives_up crowd=on",
	 "a client that does not find a key near its place says not-found and does not ask the "
	 "server",
	 LIN},
	{"packed", "packed=on", "objects share lines with their neighbours", 0},
	{"tight", "room=tight", "logs have hardly any room, and are cleaned by themselves", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"probe_ends", "bug=probe_ends crowd=on",
	 "a client's search for an entry ends at the table's end and does not go on at its start",
	 LIN},
	{"wrap", "stamps=wrap", "stamps begin shortly before they wrap", 0},
	{"stamp_compared", "bug=stamp_compared stamps=wrap",
	 "stamps are compared as if they never wrapped: after that a key's newest version counts "
	 "as "
	 "its oldest",
	 LIN | MONO | KEEP | FSCK},

	/* Lengths. */
	{"empty_absent", "bug=empty_absent", "a GET takes a value of no bytes for no value",
	 LIN | MONO | KEEP},
	{"flush_short", "bug=flush_short",
	 "the last 8 bytes of a value are not flushed, which is seen where they begin a line",
	 MONO | KEEP | FSCK},
	{"last_length", "bug=last_length",
	 "a GET returns as many bytes as the value had that it read before, if that was longer",
	 RDA | LIN},

	{"fits_exact", "bug=fits_exact room=tight",
	 "an object that ends where the log does counts as one that does not fit into it",
	 MONO | KEEP | FSCK},
	{"no_last_line", "bug=no_last_line room=tight",
	 "a client takes an object without a value for one outside of the log if it is in the "
	 "log's last line",
	 TM_BIT(TM_OK)},

	/* Errors. */
	{"reply_tried_once", "bug=reply_tried_once",
	 "a reply that cannot be posted is tried once more, then never: the client waits for it",
	 LIVE},
	{"receive_assumed", "bug=receive_assumed",
	 "a receive that could not be posted counts as posted: the client's next call gets no "
	 "reply",
	 LIVE},
	{"get_gives_up", "bug=get_gives_up",
	 "a GET fails if the newest version is incomplete, and does not look for an older one", OK},
	{"full_early", "bug=full_early",
	 "a PUT finds no room while the value of the version before it has not arrived", OK},
	{"one_peer", "bug=one_peer", "the server has room for the connections of one client only",
	 OK | LIVE},
	{"get_cut", "bug=get_cut",
	 "a client returns a value that is longer than what it has read of it: the rest is "
	 "whatever "
	 "its buffer held",
	 RDA | LIN},
	{"stamp_of_last", "bug=stamp_of_last",
	 "after a restart stamps go on after the last entry's version, not after the newest one: a "
	 "later version counts as older than the one before",
	 MONO | KEEP | FSCK},
	{"ack_for_all", "bug=ack_for_all",
	 "one client's acknowledgement of a notice counts for all: a log is cleaned away under "
	 "another one that still uses it",
	 OK},
	{"ack_busy", "bug=ack_busy",
	 "a client acknowledges a notice in the middle of an operation that began before it", OK},
	{"notice_marked_first", "bug=notice_marked_first",
	 "a client marks a notice as one to be acknowledged before it heeds it: in between, the "
	 "end of an operation acknowledges it",
	 LIN | NORES},
	{"recover_over_copy", "bug=recover_over_copy",
	 "a recovery that ends a cleaning copies to where the one before it, cut short, has copied "
	 "another key's version",
	 MONO | KEEP | FSCK},
	{"no_reserve", "bug=no_reserve room=tight",
	 "while a log is cleaned, PUTs may take the room of the versions that are still to be "
	 "carried over",
	 OK | LIVE},
	{"recover_unread", "bug=recover_unread",
	 "recovery takes no version that the verifier and readers have not come to, though it may "
	 "be durable",
	 TM_BIT(TM_DUR)},
	{"clean_unverified", "bug=clean_unverified",
	 "a cleaning does not look whether the writer for which it waits counts as dead by now",
	 LIVE},
	{"literal",
	 "meta_one_flush=on bg_plain_store=on verify_obj_key=off timeout=1ms split_trans=on "
	 "split_mark=on no_notify_wait=on copy_inflight=on compress_get=literal grace=none",
	 "the paper's text where the default departs from it: plain stores, one flush, no key in "
	 "the object, Trans and mark apart, no waiting, in-flight versions copied, its GET rule",
	 0},
	{0},
};

static const struct tm_overhead overheads[] = {
	{"object", sizeof(struct ef_object), false},
	{NULL, 0, false},
};

static const struct tm_error errors[] = {
	{-EALREADY, TM_CLEAN, TM_ALWAYS, "The log is being cleaned, or is about to be."},
	{0},
};

static const struct tm_shape shapes[] = {
	{.name = "packed"}, {.name = "tight", .often = "w1-c"}, {.name = "crowded"},
	{.name = "wrap"},   {.name = "read_order=right"},	{.name = "calls=fail"},
	{.name = NULL},
};

const struct tm_store efactory_store = {
	.name = "efactory",
	.what = "eFactory (ICPP'21): one-sided PUT, flag-checked GET, versions, background "
		"verifier",
	.promises = RDA | LIN | MONO | KEEP | OK | LIVE | FSCK,
	.in_default_campaign = true,
	.fsck_at_rest = true,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.shapes = shapes,
	.errors = errors,
	.pm_bytes = ef_pm_bytes,
	.regions = ef_regions,
	.format = ef_format,
	.recover = ef_recover,
	.serve = ef_serve,
	.fsck = ef_fsck,
	.open = ef_open,
	.put = ef_put,
	.get = ef_get,
	.del = ef_del,
	.clean = ef_clean,
};
