/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Erda as a store of Tidemark: its knobs, its seeded bugs, its table of functions.
 *
 * What the paper promises is in `promises`. Durability of an acknowledged PUT is
 * among it ("persistence and consistency without extra round trips"), though no step
 * flushes anything; monotonic reads and keeping a version that was durable are not,
 * and do not hold.
 */
#include "core/stores/bits.h"
#include "core/stores/erda/erda.h"
#include <errno.h>
#include "core/stores/erda/layout.h"
#include "core/stores/erda/wire.h"

static const struct tm_knob knobs[] = {
#define X(name, values, what) {#name, values, what},
	ERDA_KNOBS(X)
#undef X
		{0},
};

/*
 * As the paper has it, Erda is not linearizable where a WRITE completes before it is
 * visible, nor when two writers of one key have died. With these two knobs it is,
 * so that what a variant below breaks is its own doing.
 */
#define SURE "confirm=on give_up=error"

static const struct tm_variant variants[] = {
	/* Readings of the paper and of the public code. */
	{"literal",
	 "repair=unconditional verify_obj_key=off old_zero=on create=unordered byte_offsets=on "
	 "clean_wait=round_trip clean_state=literal old_half=kept clean_put=lazy flips=lazy "
	 "tombstones=forgotten wipe=off",
	 "The paper's text word by word, and the public code where it says nothing.",
	 RDA | LIN | FSCK},
	{"eager_repair", SURE " repair=unconditional",
	 "Whatever a reader reports is taken back, at any time.", LIN},
	{"repair_compare", SURE " repair=cond",
	 "A report counts if the version is still the newest one.", LIN},
	{"repair_recheck", SURE " repair=cond+recheck",
	 "... and if the server, too, finds it damaged.", LIN},
	{"hasty_repair", SURE " timeout=1ms", "A writer is taken for dead after a millisecond.",
	 LIN},
	{"reply_first", SURE " reply_first=on",
	 "A PUT can be acknowledged before its entry names it.", LIN},
	{"old_zero", "old_zero=on verify_obj_key=off",
	 "A new key's previous version is whatever lies at the log's start, and no reader compares "
	 "keys.",
	 RDA | LIN},
	{"sure", SURE,
	 "A PUT waits until its object is visible; a GET without an intact version is an error.",
	 0},
	{"live", "slow_client=drop_1s",
	 "Patience that suits real networks; `tidemark serve` takes it where no variant is named.",
	 0},
	{"no_key_check", "verify_obj_key=off", "An intact object counts without a look at its key.",
	 0},
	{"scan_all", "scan_all=on", "Recovery checks every entry.", 0},
	{"send_request", "request=send", "Requests by SEND, as in the second description of Erda.",
	 0},
	{"small_segments", "seg=small",
	 "Two objects a segment: most objects are outside the last one.", 0},
	{"packed", "packed=on", "Neighbouring objects share cache lines.", 0},
	{"no_wipe", "wipe=off", "A region that is used again holds what it held.", 0},
	{"tight", "log=tight", "Hardly any room: logs are cleaned by themselves, again and again.",
	 0},
	{"crowded", "crowd=on", "The third of three neighbouring keys displaces the second.", 0},
	{"wrap", "notices=wrap", "Cleanings are numbered from shortly before the numbers wrap.", 0},
	/* Seeded bugs. */
	{"crc_unchecked", "bug=crc_unchecked", "A GET does not compare the CRC.", RDA | LIN},
	{"crc_no_value", "bug=crc_no_value",
	 "The CRC covers the header and the key, not the value.", RDA | LIN},
	{"wrong_half", SURE " bug=wrong_half",
	 "The offset goes to the half that the old tag names.", LIN},
	{"no_flip", SURE " bug=no_flip", "The newest half is overwritten, the tag is not flipped.",
	 LIN},
	{"two_stores", SURE " bug=two_stores",
	 "One store flips the tag, a second one writes the offset.", LIN},
	{"narrow_offset", SURE " byte_offsets=on offset_bits=9",
	 "Byte offsets wrap around, as 31 bits do at 2 GiB; here at 512 bytes.", RDA | LIN},
	{"create_unordered", "create=unordered verify_obj_key=off crowd=on",
	 "A new entry is committed before its key is written, and nothing is flushed.", FSCK},
	{"displace_early", SURE " bug=displace_early crowd=on",
	 "A displaced entry is freed before it is copied, and readers are not told.", LIN},
	{"displace_unordered", "bug=displace_unordered verify_obj_key=off crowd=on",
	 "A displaced entry is moved without flushes.", FSCK},
	{"tag_ignored", "bug=tag_ignored", "A deleted key reads as an empty value.", RDA | LIN},
	{"retry_unbounded", "bug=retry_unbounded", "A GET waits until some version is intact.",
	 LIVE},
	{"tail_low", "bug=tail_low",
	 "After recovery the log goes on at the start of the last segment.", FSCK},
	{"recover_no_crc", "bug=recover_no_crc", "Recovery does not check objects.", FSCK},
	{"keep_duplicates", "bug=keep_duplicates crowd=on",
	 "Recovery leaves a key twice in the table when a displacement was cut.", FSCK},
	/* Log cleaning: the paper's way, a knob each, then seeded bugs. */
	{"clean_round_trip", SURE " clean_wait=round_trip",
	 "Cleaning begins when a round trip is over, whether clients know of it or not.", LIN},
	{"clean_no_state", "clean_state=literal",
	 "No phase is durable, and entries do not say which region they mean.", FSCK},
	{"clean_old_half", "old_half=kept verify_obj_key=off",
	 "A deleted key's previous version is looked for in the other region.", RDA},
	{"clean_lazy_put", "clean_put=lazy",
	 "During a cleaning the only version that an entry names may not be durable.", 0},
	{"clean_lazy_flips", "flips=lazy", "The log moves before it is durable that entries have.",
	 FSCK},
	{"clean_tombstone", SURE " tombstones=forgotten",
	 "A deleted key's older version is copied.", LIN},
	{"clean_copy_unflushed", "bug=clean_copy_unflushed",
	 "A copy is named before it is durable.", FSCK},
	{"clean_switch_early", "bug=clean_switch_early",
	 "The log moves before entries are flipped.", FSCK},
	{"clean_oldest", SURE " bug=clean_oldest",
	 "The scan goes upwards: a key's oldest version is copied.", LIN},
	{"clean_no_check", SURE " bug=clean_no_check",
	 "What an entry calls the newest version is copied or lost, intact or not.", LIN},
	{"clean_plain_store", SURE " bug=clean_plain_store",
	 "The cleaner stores an entry's region without a look at what it is by then.", LIN},
	{"clean_no_replica", SURE " bug=clean_no_replica",
	 "What was written during the merge is not copied.", LIN},
	{"clean_wrong_half", SURE " bug=clean_wrong_half",
	 "During a cleaning an update goes to the half that means the other region.", LIN},
	{"clean_phase_ignored", "bug=clean_phase_ignored",
	 "Recovery takes a log in the middle of its cleaning for one at rest.", FSCK},
	{"clean_flip_plain", SURE " bug=clean_flip_plain",
	 "The cleaner flips an entry without a look at what a PUT has made of it by then.", LIN},
	{"clean_hasty_phase", SURE " bug=clean_hasty_phase",
	 "The cleaner's next phase begins while a request of the phase before is handled.", LIN},
	{"recover_state_first", "bug=recover_state_first",
	 "Recovery says that a cleaning has ended before all entries say so.", FSCK},
	{"notice_compared", "bug=notice_compared notices=wrap",
	 "Numbers of cleanings are compared as if they never wrapped: a cleaning does not wait for "
	 "clients.",
	 OK | LIVE | FSCK},
	{"place_leaked", "bug=place_leaked",
	 "The server never gives the place of a client that has left to anybody.", LIVE | OK},
	{"old_unread", "bug=old_unread seg=small",
	 "A GET fails if the newest version is damaged, and does not read the one before it.",
	 DUR | OK},
	{"ack_busy", "bug=ack_busy",
	 "A client acknowledges the beginning of a cleaning while it still holds an address: its "
	 "WRITE is refused.",
	 OK},
	{"insert_too_far", "bug=insert_too_far crowd=on",
	 "An insertion stops displacing one slot early: the entry is outside of its neighbourhood, "
	 "where no GET looks.",
	 LIN | FSCK},
	{"segment_exact", "bug=segment_exact log=tight",
	 "An object that ends exactly where its segment does counts as too long for it.",
	 LIN | FSCK},
	{"source_kept", "bug=source_kept crowd=on",
	 "A displaced entry's old place is not durably free when the next key's entry is written "
	 "there.",
	 FSCK},
	{"read_once", SURE " bug=read_once",
	 "A GET reads an object once: if it is longer than the last one, it takes the version "
	 "before it.",
	 LIN},
	{"moves_odd", "bug=moves_odd crowd=on",
	 "An entry that has been displaced still counts as on its way: a cleaning waits for it for "
	 "ever.",
	 LIVE},
	{"find_prefix", "bug=find_prefix",
	 "A key that begins with the key that is looked for is taken for it.", LIN | FSCK},
	{"clean_late_copy", SURE " bug=clean_late_copy",
	 "The cleaner names a copy although the key has been updated since it was made.", LIN},
	{"ack_aside", "bug=ack_aside",
	 "A client acknowledges the beginning of a cleaning while its last WRITE, on another "
	 "connection, may not have landed: with transport=iwarp it is refused then.",
	 0},
	{"clean_edge", SURE " bug=clean_edge",
	 "A GET by message overlooks the first update after the area that a cleaning reserves.",
	 LIN},
	{"displaced_age", SURE " bug=displaced_age crowd=on",
	 "A displaced entry does not take its version's age along: a repair takes a slow writer's "
	 "version back at once.",
	 LIN},
	{"first_word", "bug=first_word",
	 "A client takes which logs are being cleaned from its first connection, and never learns "
	 "of a cleaning that begins before it has the one for notices.",
	 OK},
	{"drop_late", "bug=drop_late",
	 "A client that has not acknowledged the beginning of a cleaning loses its access, and is "
	 "dropped later.",
	 OK},
	{"no_room_kept", "bug=no_room_kept log=tight",
	 "During a cleaning updates may take the room that recovery would need to end it.", LIVE},
	{"recover_older", "bug=recover_older",
	 "Recovery takes a version back that is whole, if there is one before it.", DUR},
	{"ack_counts_later", "bug=ack_counts_later slow_client=wait",
	 "A notice that comes while the one before it is being acknowledged counts as "
	 "acknowledged.",
	 LIVE},
	{NULL, NULL, NULL, 0},
};

static const struct tm_overhead overheads[] = {
	{"object", ERDA_HEADER, true},
	{"message that carries a value", offsetof(struct erda_req, key), true},
	{"reply that carries a value", sizeof(struct erda_rsp), false},
	{NULL, 0, false},
};

static size_t pm_bytes(const struct tm_params *params)
{
	struct erda_geo geo;

	erda_geo(&geo, params);
	return geo.pool_len;
}

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	static const char *const log[ERDA_MAX_HEADS][ERDA_REGIONS] = {{"log", "spare"},
								      {"log2", "spare2"}};
	struct tm_region all[3 + ERDA_MAX_HEADS * ERDA_REGIONS];
	struct erda_geo geo;
	unsigned n = 3;

	erda_geo(&geo, params);
	all[0] = (struct tm_region){"boot", 0, TM_LINE};
	all[1] = (struct tm_region){"heads", TM_LINE, geo.table_off - TM_LINE};
	all[2] = (struct tm_region){"table", geo.table_off, geo.log_off - geo.table_off};
	for (unsigned h = 0; h < geo.heads; h++) {
		for (unsigned r = 0; r < ERDA_REGIONS; r++, n++)
			all[n] = (struct tm_region){log[h][r], erda_region_off(&geo, h, r),
						    geo.region_len};
	}
	for (unsigned i = 0; i < n && i < max; i++)
		out[i] = all[i];
	return n < max ? n : max;
}

static const struct tm_error errors[] = {
	{-EALREADY, TM_CLEAN, TM_ALWAYS, "Each log is being cleaned, or is about to be."},
	{0},
};

static const struct tm_shape shapes[] = {
	{.name = "packed+small_segments"},
	{.name = "packed+small_segments+sure"},
	{.name = "tight"},
	{.name = "tight+sure"},
	{.name = "sure", .share = 4, .often = "c"},
	{.name = "crowded", .often = "move-"},
	{.name = "crowded+sure", .often = "move-"},
	{.name = "tight+crowded+no_key_check"},
	{.name = "send_request"},
	{.name = "no_wipe"},
	{.name = "scan_all"},
	{.name = "wrap"},
	{.name = "read_order=right"},
	{.name = "line_torn=any"},
	{.name = "calls=fail"},
	{.name = NULL},
};

const struct tm_store erda_store = {
	.name = "erda",
	.what = "Erda: client-written log objects, two versions in one atomic word, nothing "
		"flushed",
	.promises = RDA | LIN | DUR | OK | LIVE | FSCK,
	.in_default_campaign = true,
	.fsck_at_rest = true,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.shapes = shapes,
	.errors = errors,
	.pm_bytes = pm_bytes,
	.regions = regions,
	.format = erda_format,
	.recover = erda_recover,
	.serve = erda_serve,
	.fsck = erda_fsck,
	.open = erda_open,
	.put = erda_put,
	.get = erda_get,
	.del = erda_del,
	.clean = erda_clean,
	.fields = erda_fields,
};
