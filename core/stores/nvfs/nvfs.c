/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See nvfs.h. */
#include "core/stores/bits.h"
#include "core/stores/nvfs/nvfs.h"

static const struct tm_knob knobs[] = {
	[ACK] = {"ack", "durable early", "a node acknowledges when the record is durable there"},
	[LEN] = {"len", "last first", "a node persists the record before the length"},
	[PIPELINE] = {"pipeline", "all first",
		      "the client's answer comes when all nodes have the record"},
	[FLUSH] = {"flush", "on off", "nodes persist at all"},
	[BUG] = KV_BUG_KNOB(NVFS_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "flush=off", "replicas are in memory, and nothing is said of flushing it", 0},
	{"ack_early", "ack=early", "a node acknowledges, then persists", DUR | DURN | RDA | FSCK},
	{"len_first", "len=first", "the length is durable before the record", RDA | DUR | FSCK},
	{"first_only", "pipeline=first", "the head waits for no other node", DUR | DURN},
	KV_BUG_VARIANTS(NVFS_BUGS)};

static const struct tm_error errors[] = {
	{-EIO, TM_PUT | TM_DEL | TM_GET, TM_DROPPED,
	 "the head closes the connection of a writer whose lease has ended"},
	{0},
};

const struct tm_store nvfs_store = {
	.name = "nvfs",
	.what = "NVFS (SV 3.2): blocks on a pipeline of three nodes",
	.promises = RDA | LIN | DUR | DURN | FENCE | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.servers = NVFS_NODES,
	.knobs = knobs,
	.variants = variants,
	.errors = errors,
	.pm_bytes = nvfs_pm_bytes,
	.regions = nvfs_regions,
	.format = kv_format,
	.recover = nvfs_recover,
	.serve = nvfs_serve,
	.fsck = nvfs_fsck,
	.open = nvfs_open,
	.put = nvfs_put,
	.get = nvfs_get,
	.del = nvfs_del,
};
