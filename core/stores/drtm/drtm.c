/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See drtm.h. */
#include "core/stores/bits.h"
#include "core/stores/drtm/drtm.h"

static const struct tm_knob knobs[] = {
	[LOCKS] = {"locks", "on off", "remote records are locked or leased"},
	[CONFIRM] = {"confirm", "on off", "leases are looked at once more before the commit"},
	[MARGIN] = {"margin", "on off", "leases are taken to differ by as much as clocks may"},
	[FALLBACK] = {"fallback", "late first",
		      "all records are locked, and there is no region: when a transaction was "
		      "aborted three times; or at once"},
	[LOCAL_LOCK] = {"local_lock", "rdma cpu",
			"by what a server locks its own records then: its NIC; or its CPU"},
	[LOG_POINT] = {"log_point", "in_htm after",
		       "the log is written in the region; or after it, and persisted"},
	[BUG] = KV_BUG_KNOB(DRTM_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"saved", "domain=wsp", "caches and the NIC's buffers are flushed when the power fails", 0},
	{"fallback", "fallback=first domain=wsp", "all records are locked, without HTM", 0},
	{"no_locks", "locks=off domain=wsp", "remote records are neither locked nor leased", SSER},
	{"no_confirm", "confirm=off domain=wsp", "leases may have ended before the commit", SSER},
	KV_BUG_VARIANTS(DRTM_BUGS)};

/* Client 1 is of the first server, client 2 of the second. */
static const struct tm_workload workloads[] = {
	{"between",
	 "k2 160",
	 {"put k2 160, get k2", "get k2, put k2 160, get k2"},
	 "a record is written by both servers"},
	{"T-del",
	 "k1 160, k2 160",
	 {"T{del k1, put k2 160}", "T{get k1, get k2}, T{get k2, del k2}"},
	 "a transaction deletes a key"},
	{.name = NULL},
};

const struct tm_store drtm_store = {
	.name = "drtm",
	.what = "DrTM (SV 3.3): transactions over two servers, by HTM and RDMA",
	.promises = RDA | LIN | DUR | NORES | OK | LIVE | FSCK | ATOM | SSER,
	.servers = DRTM_SERVERS,
	.max_vlen = 1024,
	.knobs = knobs,
	.variants = variants,
	.workloads = workloads,
	.pm_bytes = drtm_pm_bytes,
	.regions = drtm_regions,
	.format = kv_format,
	.recover = drtm_recover,
	.serve = drtm_serve,
	.fsck = drtm_fsck,
	.open = drtm_open,
	.put = drtm_put,
	.get = drtm_get,
	.del = drtm_del,
	.txn = drtm_txn,
};
