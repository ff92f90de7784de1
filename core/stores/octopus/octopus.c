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
	[BUG] = {"bug",
		 "none barrier_missed size_unflushed delete_unflushed commit_first read_unlocked "
		 "readers_ignored reader_stays delete_stays locks_kept hold_shared block_shared "
		 "blocks_forgotten data_assumed",
		 "a seeded bug, see the variants"},
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
	{"barrier_missed", "bug=barrier_missed persist=cpu",
	 "the end of a PUT flushes the file's size only", DUR},
	{"size_unflushed", "bug=size_unflushed persist=cpu", "... the data only", DUR},
	{"delete_unflushed", "bug=delete_unflushed persist=cpu", "a DELETE is not flushed",
	 DUR | NORES},
	{"commit_first", "bug=commit_first persist=cpu", "a PUT ends before its data are sent",
	 DUR | LIN},
	{"read_unlocked", "bug=read_unlocked", "a GET locks nothing", RDA},
	{"readers_ignored", "bug=readers_ignored", "a file that is being read may be written", RDA},
	{"reader_stays", "bug=reader_stays lease=on", "a GET does not give its lock back", OK},
	{"delete_stays", "bug=delete_stays lease=on persist=cpu",
	 "a DELETE that finds nothing does not give its lock back", LIVE},
	{"locks_kept", "bug=locks_kept persist=cpu", "recovery leaves locks as they are", FSCK},
	{"hold_shared", "bug=hold_shared",
	 "the server remembers one client's PUT or GET, not one of each", OK | RDA},
	{"block_shared", "bug=block_shared", "two PUTs of new keys may get the same block",
	 FSCK | RDA},
	{"blocks_forgotten", "bug=blocks_forgotten",
	 "after a restart a new file gets a block that has an owner", FSCK | RDA},
	{"data_assumed", "bug=data_assumed persist=cpu",
	 "recovery takes data for durable, which they are not where only the process died", MONO},
	{NULL, NULL, NULL, 0},
};

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
