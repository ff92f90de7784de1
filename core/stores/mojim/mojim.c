/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See mojim.h. */
#include "core/stores/bits.h"
#include "core/stores/mojim/mojim.h"

static const struct tm_knob knobs[] = {
	[MODE] = {"mode", "sync async syncsec",
		  "when msync returns: the mirror's NIC has the record; the primary has persisted "
		  "the "
		  "ranges"},
	[PRIMARY_FLUSH] = {"primary_flush", "on off",
			   "the primary persists what it stores, although the mirror gets it"},
	[COMMIT_MARK] = {"commit_mark", "on off",
			 "the mirror applies records that end with their mark"},
	[MIRROR_LOST] = {"mirror_lost", "flush go_on",
			 "what a primary does first that has lost its mirror: it flushes its area"},
	[MIRROR_FLUSH] = {"mirror_flush", "each never", "the mirror persists what it applies"},
	[BUG] = KV_BUG_KNOB(MOJIM_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "primary_flush=off", "M-sync: durable at the mirror alone", 0},
	{"async", "mode=async", "M-async: durable at the primary, at the mirror later", 0},
	{"syncsec", "mode=syncsec", "M-syncsec: a backup has it before msync returns", 0},
	KV_BUG_VARIANTS(MOJIM_BUGS)};

static unsigned servers_of(const struct tm_params *params)
{
	return params->knob[MODE] == MODE_SYNCSEC ? 3 : 2;
}

const struct tm_store mojim_store = {
	.name = "mojim",
	.what = "Mojim (SV 3.4): a primary's area and its mirror",
	.promises = RDA | LIN | DUR | DURN | AGREE | FENCE | ATOM | SSER | NORES | OK | LIVE | FSCK,
	.servers = 3,
	.losses = 2, /* of three */
	.naps = true,
	.servers_of = servers_of,
	.knobs = knobs,
	.variants = variants,
	.pm_bytes = mojim_pm_bytes,
	.regions = mojim_regions,
	.format = kv_format,
	.recover = mojim_recover,
	.serve = mojim_serve,
	.fsck = mojim_fsck,
	.dump = mojim_dump,
	.open = mojim_open,
	.put = mojim_put,
	.get = mojim_get,
	.del = mojim_del,
	.txn = mojim_txn,
};
