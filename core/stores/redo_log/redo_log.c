/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See redo.h. */
#include "core/stores/bits.h"
#include "core/stores/redo_log/redo.h"

static const struct tm_knob knobs[] = {
	[CROWD] = KV_CROWD_KNOB,
	[METHOD] = {"method", "redo raw",
		    "how a record gets into the log: with the request; or by a WRITE, and a READ "
		    "after it"},
	[RING] = {"ring", "large small",
		  "room for as many records as there are updates, or for three"},
	[REPLAY] =
		{"replay", "all first",
		 "recovery applies all records that are whole, or those before the first one that "
		 "is not"},
	[ORDER] = {"order", "value_first pointer_first",
		   "pointer_first: an entry names a value that is copied after that, as in the "
		   "public "
		   "code"},
	[BUG] = KV_BUG_KNOB(REDO_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"raw", "method=raw", "Read After Write: the client writes the record, and reads after it",
	 0},
	{"small", "ring=small", "the ring has room for three records", 0},
	{"raw_small", "method=raw ring=small", "likewise with Read After Write", 0},
	{"raw_literal", "method=raw replay=first", "recovery ends at a record that is not whole",
	 0},
	{"pointer_first", "order=pointer_first", "the public code's order", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	KV_BUG_VARIANTS(REDO_BUGS)};

static const struct tm_shape shapes[] = {
	{.name = "raw"},
	{.name = "small"},
	{.name = "raw_small"},
	{.name = "raw_literal"},
	{.name = "pointer_first"},
	{.name = "crowded"},
	{.name = "calls=fail", .often = "w1"},
	{.name = NULL},
};

const struct tm_store redo_log_store = {
	.name = "redo_log",
	.what = "Redo Logging and Read After Write (ER 5.1): a log in PM, applied in the "
		"background",
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = redo_pm_bytes,
	.regions = redo_regions,
	.format = kv_format,
	.recover = redo_recover,
	.serve = redo_serve,
	.fsck = redo_fsck,
	.open = redo_open,
	.put = redo_put,
	.get = redo_get,
	.del = redo_del,
};
