/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See pilaf.h. */
#include "core/stores/bits.h"
#include "core/stores/pilaf/pilaf.h"

static const struct tm_knob knobs[] = {
	[CROWD] = KV_CROWD_KNOB,
	[PLACE] = {"place", "new in_place",
		   "in_place, as in the public code: an update that fits overwrites the pair"},
	[FLUSH] = {"flush", "ordered none",
		   "none, as in the paper, whose store is in DRAM; ordered: pair, undo slot and "
		   "entry are persisted one after the other"},
	[NO_CRC2] = {"no_crc2", "off on", "the checksum of an entry is not looked at"},
	[PROBE_UNBOUNDED] = {"probe_unbounded", "off on",
			     "a GET goes on to the next entry until it finds its key"},
	[VERIFY_OBJ_KEY] = {"verify_obj_key", "on off", "does a GET compare the key in the pair?"},
	[DELETE] = {"delete", "entry_first key_first",
		    "key_first, as in the public code: a DELETE breaks the pair's key before it "
		    "clears the entry"},
	[BUG] = KV_BUG_KNOB(PILAF_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "place=in_place flush=none",
	 "as in the paper and its code: pairs are overwritten, and nothing is flushed", 0},
	{"in_place", "place=in_place", "pairs are overwritten, and flushed", 0},
	{"volatile", "flush=none", "pairs are not overwritten, and nothing is flushed", 0},
	{"no_crc2", "no_crc2=on", "entries are not checked", 0},
	{"unbounded", "probe_unbounded=on", "a GET looks for its key until it finds it", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"key_unverified", "verify_obj_key=off crowd=on", "a GET takes any key for its own", 0},
	{"key_first", "delete=key_first", "a DELETE breaks the key first, as in the public code",
	 0},
	KV_BUG_VARIANTS(PILAF_BUGS)};

static const struct tm_overhead overheads[] = {
	{"pair", 0, true},
	{"request", sizeof(struct kv_req), false},
	{NULL, 0, false},
};

static const struct tm_shape shapes[] = {
	{.name = "crowded"},
	{.name = "key_first"},
	{.name = "calls=fail", .often = "w1"},
	{.name = NULL},
};

const struct tm_store pilaf_store = {
	.name = "pilaf",
	.what = "Pilaf (SV 3.1): the server updates, clients READ and check two checksums",
	.fsck_at_rest = true,
	.promises = RDA | LIN | DUR | BUF | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.shapes = shapes,
	.pm_bytes = pilaf_pm_bytes,
	.regions = pilaf_regions,
	.format = pilaf_format,
	.recover = pilaf_recover,
	.serve = pilaf_serve,
	.fsck = pilaf_fsck,
	.open = pilaf_open,
	.put = pilaf_put,
	.get = pilaf_get,
	.del = pilaf_del,
};
