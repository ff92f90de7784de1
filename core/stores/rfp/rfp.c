/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See rfp.h. */
#include "core/stores/bits.h"
#include "core/stores/rfp/rfp.h"

static const struct tm_knob knobs[] = {
	[CROWD] = KV_CROWD_KNOB,
	[PUT_REPLY] = {"put_reply", "fetch write",
		       "how a PUT or DELETE is answered: the client READs; the server WRITEs"},
	[FETCH] = {"fetch", "64 256", "bytes of an answer that the first READ takes"},
	[REQUEST] = {"request", "two_writes one_write",
		     "one_write: a request's header is not written after its payload, but with it"},
	[FRESH] = {"fresh", "number clear taken",
		   "how a client tells an answer from the one before: by a number; it clears the "
		   "header before it asks; the server does when it takes the request"},
	[HYBRID] = {"hybrid", "on off",
		    "on: a client that has fetched in vain has the server write to it"},
	[PERSIST] = {"persist", "on off", "does the server flush anything?"},
	[BUG] = KV_BUG_KNOB(RFP_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"put_write", "put_reply=write", "PUTs and DELETEs are answered by a WRITE", 0},
	{"fetch_only", "hybrid=off", "the client fetches for as long as it takes", 0},
	{"fetch_256", "fetch=256", "the first READ takes four lines", 0},
	{"one_write", "request=one_write", "a request is one WRITE, its header in front", 0},
	{"cleared", "fresh=clear hybrid=off",
	 "the client clears the answer's header before it asks", 0},
	{"cleared_hybrid", "fresh=clear", "likewise with the hybrid switch", 0},
	{"taken", "fresh=taken",
	 "no number: the server clears the answer's header when it takes a request", 0},
	{"volatile", "persist=off", "nothing is flushed", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	KV_BUG_VARIANTS(RFP_BUGS)};

static const struct tm_overhead overheads[] = {
	{"request", RFP_HEADER + sizeof(struct kv_req), false},
	{"answer", RFP_HEADER + sizeof(struct rfp_answer), false},
	{NULL, 0, false},
};

static const struct tm_shape shapes[] = {
	{.name = "put_write"},
	{.name = "fetch_only"},
	{.name = "fetch_256"},
	{.name = "cleared"},
	{.name = "crowded"},
	{.name = "calls=fail", .often = "w1"},
	{.name = "put_write+calls=fail"},
	{.name = NULL},
};

const struct tm_store rfp_store = {
	.name = "rfp",
	.what = "RFP (SV 3.1): requests by WRITE, answers fetched by READ; persisted before that",
	.fsck_at_rest = true,
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.naps = true,
	.overheads = overheads,
	.shapes = shapes,
	.pm_bytes = kv_pool_bytes,
	.regions = kv_pool_regions,
	.format = kv_format,
	.recover = kv_place_recover,
	.serve = rfp_serve,
	.fsck = kv_pool_fsck,
	.open = rfp_open,
	.put = rfp_put,
	.get = rfp_get,
	.del = rfp_del,
};
