/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See farm.h. */
#include "core/stores/bits.h"
#include "core/stores/farm/farm.h"

static const struct tm_knob knobs[] = {
	[ACK] = {"ack", "cpu flush nic",
		 "what a record's acknowledgement is: the server's CPU has persisted it; an RDMA "
		 "FLUSH has; the NIC has it"},
	[LOG_CRC] = {"log_crc", "on off", "records have a CRC, by which torn ones are recognised"},
	[PERSIST_BEFORE_DROP] = {"persist_before_drop", "on off",
				 "objects are persisted before their records are dropped"},
	[COMMITS] = {"commits", "in_order early_primary report_after_backup",
		     "COMMIT-PRIMARY follows all acknowledgements of COMMIT-BACKUP, and one of its "
		     "own ends the commit; it comes before COMMIT-BACKUP; none is waited for"},
	[SERVES] = {"serves", "recovered early",
		    "regions are open when all transactions are decided; or at once"},
	[LINE_VERSIONS] = {"line_versions", "on off",
			   "a read compares the versions of an object's lines; or looks at its "
			   "head only"},
	[MEMBERSHIP] =
		{"membership", "precise ignored",
		 "a client asks the service, after it has read, whether the same servers lead"},
	[VOTES] = {"votes", "lock no_lock",
		   "in recovery a region that has seen LOCK only votes for what another one has "
		   "seen; or against it"},
	[BUG] = KV_BUG_KNOB(FARM_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "ack=nic log_crc=off persist_before_drop=off",
	 "memory with a battery: what a NIC has acknowledged is durable, and nothing is flushed",
	 0},
	{"nic", "ack=nic", "an acknowledgement is the NIC's; the rest is as by default", 0},
	{"flush", "ack=flush", "records are made durable by RDMA FLUSH; backups' CPUs are idle", 0},
	{"early_primary", "commits=early_primary", "COMMIT-PRIMARY before COMMIT-BACKUP",
	 DURN | DUR | SSER | ATOM},
	{"report_after_backup", "commits=report_after_backup",
	 "reported as committed before a primary has COMMIT-PRIMARY", 0},
	{"serve_early", "serves=early", "a new primary serves before it has recovered",
	 RDA | SSER | DUR | DURN | ATOM},
	{"header_only", "line_versions=off", "a read does not compare the versions of lines", RDA},
	{"no_precise_membership", "membership=ignored",
	 "a client believes what it reads from a server that was removed", 0},
	{"lock_is_no_vote", "votes=no_lock", "recovery aborts where a region has seen LOCK only",
	 0},
	KV_BUG_VARIANTS(FARM_BUGS)};

static const struct tm_workload workloads[] = {
	{"T-del",
	 "k1 160, k2 160",
	 {"T{del k1, put k2 160}", "T{get k1, get k2}, T{get k2, del k2}"},
	 "a transaction deletes a key"},
	{.name = NULL},
};

const struct tm_store farm_store = {
	.name = "farm",
	.what = "FaRM (SV 2.1, 3.3, 3.4): lock-free reads, transactions of clients, two copies",
	.promises = RDA | LIN | DUR | DURN | FENCE | AGREE | NORES | OK | ATOM | SSER | LIVE | FSCK,
	.servers = FARM_SERVERS,
	.max_vlen = 4096,
	.knobs = knobs,
	.variants = variants,
	.workloads = workloads,
	.pm_bytes = farm_pm_bytes,
	.regions = farm_regions,
	.format = farm_format,
	.recover = farm_recover,
	.serve = farm_serve,
	.fsck = farm_fsck,
	.dump = farm_dump,
	.open = farm_open,
	.put = farm_put,
	.get = farm_get,
	.del = farm_del,
	.txn = farm_txn,
};
