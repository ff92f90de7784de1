/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See octopus.h. */
#include "core/stores/bits.h"
#include "core/stores/octopus/octopus.h"

static const struct tm_knob knobs[] = {
	[CROWD] = KV_CROWD_KNOB,
	[PERSIST] = {"persist", "none read cpu",
		     "what makes a PUT durable: nothing; a READ after the WRITE, and the server "
		     "flushes the file's size; or the server flushes both (Persistent Put)"},
	[LOCK] = {"lock", "held early",
		  "when a file is unlocked: when the client says that it is done; or before the "
		  "server's reply, as in the public code"},
	[LEASE] =
		{"lease", "off on",
		 "on: a client that has a lock for 10 ms while another one waits is disconnected"},
	[FREE] =
		{"free", "never at_once",
		 "when the block of a deleted file is given to another one while the server lives"},
	[BUG] = KV_BUG_KNOB(OCTOPUS_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"persistent", "persist=cpu", "Persistent Put: the server flushes what it is told of", 0},
	{"read_behind", "persist=read",
	 "the client READs after its WRITE, which the public code has as a comment", 0},
	{"literal", "lock=early",
	 "the public code: a file is unlocked before its data are written or read", 0},
	{"literal_persistent", "lock=early persist=cpu", "likewise, with Persistent Put", 0},
	{"lease", "persist=cpu lease=on", "Persistent Put, and no client has a lock for ever", 0},
	{"free", "free=at_once", "a deleted file's block is free", 0},
	{"free_persistent", "free=at_once persist=cpu", "likewise, with Persistent Put", 0},
	{"crowded", "crowd=on", "all keys collide in a table that has hardly more slots than keys",
	 0},
	KV_BUG_VARIANTS(OCTOPUS_BUGS)};

static const struct tm_shape shapes[] = {
	{.name = "persistent"},
	{.name = "read_behind"},
	{.name = "literal"},
	{.name = "lease"},
	{.name = "crowded"},
	{.name = "calls=fail", .often = "w1"},
	{.name = "persistent+calls=fail"},
	{.name = NULL},
};

static unsigned regions(const struct tm_params *params, struct tm_region *out, unsigned max)
{
	static const char *const names[] = {"files", "blocks"};
	unsigned n = kv_pool_regions(params, out, max);

	for (unsigned i = 0; i < n; i++)
		out[i].name = names[i];
	return n;
}

const struct tm_store octopus_store = {
	.name = "octopus",
	.what = "Octopus-KV (RK IV-D): clients write and read a file's data in place",
	.promises = LIN | OK | FSCK,
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = kv_pool_bytes,
	.regions = regions,
	.format = kv_format,
	.recover = octopus_recover,
	.serve = octopus_serve,
	.fsck = octopus_fsck,
	.open = octopus_open,
	.put = octopus_put,
	.get = octopus_get,
	.del = octopus_del,
};
