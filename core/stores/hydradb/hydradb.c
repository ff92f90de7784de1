/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See hydradb.h. */
#include "core/stores/bits.h"
#include "core/stores/hydradb/hydradb.h"

static const struct tm_knob knobs[] = {
	HYDRADB_KNOBS,
	[BUG] = KV_BUG_KNOB(HYDRADB_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "check=before persist=off",
	 "as described, in DRAM: a lease is looked at before a READ, and nothing is flushed", 0},
	{"volatile", "persist=off", "nothing is flushed", 0},
	{"early_check", "check=before", "a lease is looked at before a READ only", 0},
	{"endless", "lease=off", "pointers are good for ever", 0},
	{"unnoted", "renewal=unnoted", "a renewal is the client's alone", 0},
	{"no_pointers", "pointers=none", "each GET asks the server", 0},
	{"version", "match=version", "the guardian's version is compared, too", 0},
	{"crc", "whole=crc", "the marks of a message are its CRC", 0},
	{"near", "skew=near", "clocks differ by less than the eviction delay", 0},
	{"far", "skew=far", "clocks differ by more than the eviction delay", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	KV_BUG_VARIANTS(HYDRADB_BUGS)};

static const struct tm_overhead overheads[] = {
	{"item", sizeof(struct hydradb_item), true},
	{"request", HYDRADB_BODY + sizeof(struct kv_req), false},
	{"reply", HYDRADB_BODY + sizeof(struct hydradb_reply), false},
	{NULL, 0, false},
};

static const struct tm_shape shapes[] = {
	{.name = "no_pointers"}, {.name = "version"}, {.name = "crc"},
	{.name = "near"},	 {.name = "crowded"}, {.name = "calls=fail", .often = "w1"},
	{.name = NULL},
};

const struct tm_store hydradb_store = {
	.name = "hydradb",
	.what = "HydraDB (SV 3.1), one server: requests by WRITE, leased items by READ",
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.naps = true,
	.overheads = overheads,
	.shapes = shapes,
	.pm_bytes = hydradb_pm_bytes,
	.regions = hydradb_regions,
	.format = kv_format,
	.recover = hydradb_recover,
	.serve = hydradb_serve,
	.fsck = hydradb_fsck,
	.open = hydradb_open,
	.put = hydradb_put,
	.get = hydradb_get,
	.del = hydradb_del,
};
