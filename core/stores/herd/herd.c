/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See herd.h. */
#include "core/stores/bits.h"
#include "core/stores/herd/herd.h"

static const struct tm_knob knobs[] = {
	[CROWD] = KV_CROWD_KNOB,
	[REQUEST] = {"request", "polled imm",
		     "how the server learns of a request: it polls the slot's word; the WRITE has "
		     "an immediate"},
	[POLL_FRONT] = {"poll_front", "off on", "on: the word is in front of the request"},
	[CHECK] = {"check", "crc word",
		   "how the server knows that a request is whole: by its CRC; by its word"},
	[NUMBERS] = {"numbers", "on off one",
		     "off: numbers are not looked at, a repeated request is a "
		     "new one; one: those of each connection begin at 1"},
	[BACKEND] = {"backend", "place tx",
		     "how the pool is changed: by a word when the value is durable; in a "
		     "transaction with an undo log, as Pmem-Redis does"},
	[REPLY_FIRST] = {"reply_first", "off on",
			 "on: a PUT or DELETE is answered before it is executed"},
	[PERSIST] = {"persist", "on off", "does the server flush anything?"},
	[BUG] = KV_BUG_KNOB(HERD_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "persist=off check=word numbers=off",
	 "HERD as it is published: volatile, the word alone is looked at, a repeated request is a "
	 "new one",
	 0},
	{"pmem_redis", "request=imm backend=tx", "HERD with Pmem-Redis behind it", 0},
	{"imm", "request=imm", "the server learns of requests by immediates", 0},
	{"word", "check=word", "a request is whole when its word is there", 0},
	{"unnumbered", "numbers=off", "a repeated request is a new one", 0},
	{"volatile", "persist=off", "nothing is flushed", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	{"poll_front", "poll_front=on check=word",
	 "the word that is polled lands first, as in the public code", RDA | LIN | OK | DUR},
	{"reply_first", "reply_first=on", "a request is answered before it is executed",
	 LIN | DUR | RDA},
	KV_BUG_VARIANTS(HERD_BUGS)};

static const struct tm_overhead overheads[] = {
	{"request", sizeof(struct herd_head), false},
	{"reply", sizeof(struct herd_reply), false},
	{NULL, 0, false},
};

static const struct tm_shape shapes[] = {
	{.name = "pmem_redis"},
	{.name = "word"},
	{.name = "crowded"},
	{.name = "calls=fail", .often = "w1"},
	{.name = "pmem_redis+calls=fail"},
	{.name = NULL},
};

const struct tm_store herd_store = {
	.name = "herd",
	.what = "HERD (SV 3.1): requests by WRITE into polled slots, replies by datagrams; "
		"persisted "
		"before that",
	.fsck_at_rest = true,
	.infiniband = true,
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.max_vlen = HERD_MAX_VALUE,
	.knobs = knobs,
	.variants = variants,
	.naps = true,
	.overheads = overheads,
	.shapes = shapes,
	.pm_bytes = herd_bytes,
	.regions = herd_regions,
	.format = kv_format,
	.recover = herd_recover,
	.serve = herd_serve,
	.fsck = herd_fsck,
	.open = herd_open,
	.put = herd_put,
	.get = herd_get,
	.del = herd_del,
};
