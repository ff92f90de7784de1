/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See hydradb_pair.h. */
#include "core/stores/bits.h"
#include "core/stores/hydradb_pair/hydradb_pair.h"

#define BUGS(X) HYDRADB_BUGS(X) PAIR_BUGS(X)

static const struct tm_knob knobs[] = {
	HYDRADB_KNOBS,
	[BUG] = KV_BUG_KNOB(BUGS),
	[REPLICATION] = {"replication", "strict nic relaxed",
			 "when the primary replies: the secondary has acknowledged the record; its "
			 "NIC has; at once"},
	[POINTERS_END] = {"pointers_end", "service own",
			  "a pointer's lease ends no later than the server's own at the "
			  "configuration service; when it ends by itself"},
	[PAIR_KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "check=before persist=off pointers_end=own",
	 "as described, in DRAM: replicas alone keep what was acknowledged", 0},
	{"volatile", "persist=off", "nothing is flushed", 0},
	{"nic", "replication=nic", "the secondary's NIC has what is acknowledged", 0},
	{"own_end", "pointers_end=own", "a pointer outlives the lease of the server that gave it",
	 0},
	{"relaxed", "replication=relaxed", "the secondary has it some time later", 0},
	KV_BUG_VARIANTS(PAIR_BUGS)};

const struct tm_store hydradb_pair_store = {
	.name = "hydradb_pair",
	.what = "HydraDB (SV 3.1), a primary and a secondary",
	.promises = RDA | LIN | DUR | DURN | AGREE | FENCE | BUF | MONO | NORES | OK | LIVE | FSCK,
	.servers = 2,
	.knobs = knobs,
	.variants = variants,
	.naps = true,
	.pm_bytes = hydradb_pm_bytes,
	.regions = hydradb_regions,
	.format = kv_format,
	.recover = hydradb_recover,
	.serve = pair_serve,
	.fsck = hydradb_fsck,
	.dump = pair_dump,
	.open = pair_open,
	.put = hydradb_put,
	.get = hydradb_get,
	.del = hydradb_del,
};
