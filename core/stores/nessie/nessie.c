/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See nessie.h. */
#include "core/stores/bits.h"
#include "core/stores/nessie/nessie.h"

static const struct tm_knob knobs[] = {
	[CROWD] = {"crowd", "off on", "keys share their slots by twos, and all have the same tag"},
	[FLUSH] = {"flush", "both none",
		   "none, as in the paper: nothing is flushed; both: an entry before its word is "
		   "changed, and the word before the answer"},
	[FLUSH_BY] =
		{"flush_by", "commit flush",
		 "what a client flushes by: an RDMA Commit; an RDMA FLUSH, which does not reach "
		 "the caches"},
	[READS] = {"reads", "durable visible",
		   "durable: a word is marked until it is flushed, and who READs the mark flushes "
		   "it"},
	[CONNS] = {"conns", "two one",
		   "has a client a connection to the index and one to the data, as with two "
		   "servers, or one to both?"},
	[DELETE] = {"delete", "mark zero",
		    "zero: a DELETE makes the word zero; mark: the slot stays the key's"},
	[REUSE_NOW] = {"reuse_now", "off on",
		       "on: an entry is written to again as soon as no word names it"},
	[CLOCK] = {"clock", "on off",
		   "does a client start again if it has READ for longer than the grace period?"},
	[SHARE] = {"share", "roomy tight",
		   "entries of a client's share: twice the keys, or one more than there are keys"},
	[CRC] = {"crc", "on off", "does a client check the CRC of an entry?"},
	[VERIFY_OBJ_KEY] = {"verify_obj_key", "on off",
			    "does a client compare the key in the entry?"},
	[BUG] = KV_BUG_KNOB(NESSIE_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "flush=none delete=zero",
	 "as in the paper: nothing is flushed, and a DELETE makes the word zero", 0},
	{"visible", "reads=visible", "a GET returns what need not be durable yet", 0},
	{"rdma_flush", "flush_by=flush", "RDMA FLUSHes, which do not reach the caches", 0},
	{"one_conn", "conns=one", "one connection to index and data", 0},
	{"zero", "delete=zero", "a DELETE makes the word zero", 0},
	{"crowded", "crowd=on", "keys share their slots and their tag by twos", 0},
	{"tight", "share=tight", "a client has hardly more entries than there are keys", 0},
	{"reuse_now", "reuse_now=on", "entries are written to again at once", 0},
	{"reuse_blind", "reuse_now=on crc=off verify_obj_key=off",
	 "likewise, and a GET checks nothing", 0},
	KV_BUG_VARIANTS(NESSIE_BUGS)};

static const struct tm_overhead overheads[] = {
	{"entry", sizeof(struct nessie_entry), true},
	{NULL, 0, false},
};

static const struct tm_shape shapes[] = {
	{.name = "one_conn"}, {.name = "crowded"},
	{.name = "tight"},    {.name = "calls=fail", .often = "w1"},
	{.name = NULL},
};

const struct tm_store nessie_store = {
	.name = "nessie",
	.what = "Nessie (SV 3.1): clients WRITE, compare-and-swap and READ; no server takes part",
	.fsck_at_rest = true,
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.overheads = overheads,
	.shapes = shapes,
	.pm_bytes = nessie_pm_bytes,
	.regions = nessie_regions,
	.format = kv_format,
	.recover = nessie_recover,
	.serve = nessie_serve,
	.fsck = nessie_fsck,
	.open = nessie_open,
	.put = nessie_put,
	.get = nessie_get,
	.del = nessie_del,
};
