/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See octopus_tx.h. */
#include "core/stores/bits.h"
#include "core/stores/octopus_tx/octopus_tx.h"

static const struct tm_knob knobs[] = {
	[MODE] = {"mode", "collect_dispatch two_phase",
		  "who logs: the coordinator, which writes what is new into the participant's "
		  "items; or both"},
	[COMMIT_BYTE] =
		{"commit_byte", "first last",
		 "when the coordinator commits: before anything is in place, or when all is"},
	[DISPATCH_FLUSH] = {"dispatch_flush", "cpu read none",
			    "what makes dispatched items durable: the participant flushes them; a "
			    "READ after each WRITE; nothing"},
	[LOG_FENCE] = {"log_fence", "each last none",
		       "fences of the log: after the entry and after its commit byte; after that "
		       "only; or none, and the coordinator's own items are not flushed"},
	[BUG] = KV_BUG_KNOB(OCTX_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"two_phase", "mode=two_phase", "two-phase commit: the participant logs as well", 0},
	{"literal", "commit_byte=last dispatch_flush=read log_fence=none",
	 "the public code: the commit byte comes last, and nothing waits for a flush", 0},
	{"read_behind", "dispatch_flush=read",
	 "the coordinator READs after its WRITEs, which suffices without DDIO", 0},
	KV_BUG_VARIANTS(OCTX_BUGS)};

/* Client 1 is of the second server, whose transaction changes an item of the first one's; client 2
 * is of the first one. */
static const struct tm_workload workloads[] = {
	{"other-server",
	 "k1 160",
	 {"put k1 160", "get k1, get k1, put k1 160, get k1"},
	 "a client of the other server is there before, between and after"},
	{"T-del",
	 "k1 160, k2 160",
	 {"T{del k1, put k2 160}", "T{get k1, get k2}, T{get k2, del k2}"},
	 "a transaction deletes a key"},
	{.name = NULL},
};

const struct tm_store octopus_tx_store = {
	.name = "octopus_tx",
	.what = "Octopus' transactions (SV 3.2, ER 1): collect-dispatch over two servers",
	.promises = RDA | LIN | DUR | NORES | OK | LIVE | FSCK | ATOM | SSER,
	.servers = OCTX_SERVERS,
	.max_vlen = 2048,
	.knobs = knobs,
	.variants = variants,
	.workloads = workloads,
	.pm_bytes = octx_pm_bytes,
	.regions = octx_regions,
	.format = kv_format,
	.recover = octx_recover,
	.serve = octx_serve,
	.fsck = octx_fsck,
	.open = octx_open,
	.put = octx_put,
	.get = octx_get,
	.del = octx_del,
	.txn = octx_transact,
};
