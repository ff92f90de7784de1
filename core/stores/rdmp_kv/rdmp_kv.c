/* SPDX-License-Identifier: BSD-3-Clause */
/* The store. See rdmp_kv.h. */
#include "core/stores/bits.h"
#include "core/stores/rdmp_kv/rdmp_kv.h"
#include "core/stores/kv_small.h"

static const struct tm_knob knobs[] = {
	[METHOD] =
		{"method", "sa cc_sa cc_imm cc_adp evaluated",
		 "who makes the value durable and sets its flags: the server; the client commits, "
		 "and the server sets them when it is asked to, or on the Commit's immediate, or "
		 "the Commit's payload does; flags in the client's WRITE, and a READ"},
	[COMMIT] = {"commit", "native read", "how a client commits: read: by a READ of the range"},
	[THRESHOLD] = {"threshold", "0 64 16384",
		       "a value of fewer bytes travels in the request (the hybrid mode)"},
	[OWN_WORD] = {"flags_own_word", "off on", "the flags' word has nothing else in it"},
	[BACKEND] = {"backend", "log_data log none",
		     "where GETs read: in PM; or in DRAM, and what is in PM is a log; or in PM, "
		     "and a table "
		     "is in the log's place"},
	[COPY] = {"copy", "first late",
		  "a client that commits writes the copy in DRAM before the Commit, or after it"},
	[COPY_FLAGS] =
		{"copy_flags", "on off",
		 "off, as in the paper: flags are in the log alone, and a GET looks at none"},
	[KEEP_PREV] = {"keep_prev", "on off",
		       "off: without a log, an entry does not say which object was before"},
	[GET_PREV] = {"get_prev", "on off",
		      "off, as in the paper: a GET is told of the newest object even while its "
		      "value is missing"},
	[RECOVER_VF] = {"recover_vf", "on off",
			"off: recovery leaves VF as the power failure left it"},
	[FREE] = {"free", "never old early",
		  "when an object's room is given to another one while the server lives: never; "
		  "when "
		  "a newer one is durable; when a newer one is begun"},
	[BUG] = KV_BUG_KNOB(RDMP_BUGS),
	[KNOBS] = {NULL, NULL, NULL},
};

static const struct tm_variant variants[] = {
	{"literal", "get_prev=off recover_vf=off",
	 "as in the paper: a GET waits for the newest object, and VF is left to chance", 0},
	{"get_newest", "get_prev=off",
	 "a GET is told of the newest object, and reads it until its VF is set", 0},
	{"hybrid", "threshold=64", "values shorter than a line travel in the request", 0},
	{"all_inline", "threshold=16384", "all values travel in the request", 0},
	{"cc_sa", "method=cc_sa", "the client commits the value, and asks the server for its flags",
	 0},
	{"cc_imm", "method=cc_imm", "the client commits the value with an immediate", 0},
	{"cc_adp", "method=cc_adp", "the client commits the value with its flags as payload", 0},
	{"cc_sa_read", "method=cc_sa commit=read", "as cc_sa, and a READ stands for the Commit", 0},
	{"cc_imm_read", "method=cc_imm commit=read", "as cc_imm, likewise", 0},
	{"cc_adp_read", "method=cc_adp commit=read", "as cc_adp, likewise", 0},
	{"evaluated", "method=evaluated",
	 "CC-ADP as the paper measured it: the flags are written with the value, then a READ", 0},
	{"own_word", "flags_own_word=on", "the flags' word has nothing else in it", 0},
	{"log_in_pm", "backend=log", "GETs read a copy in DRAM", 0},
	{"log_in_pm_cc", "backend=log method=cc_adp", "likewise, and the client writes both", 0},
	{"log_in_pm_literal", "backend=log method=cc_adp copy=late copy_flags=off",
	 "likewise: the copy after the Commit, and flags in the log alone", 0},
	{"no_log", "backend=none", "a table in PM, and no log", 0},
	{"no_log_literal", "backend=none keep_prev=off",
	 "likewise, and an entry has nothing to go back to", 0},
	{"no_log_cc_adp", "backend=none method=cc_adp",
	 "without a log, and the server does not learn of a PUT's end", 0},
	{"free_old", "free=old", "an object's room is free when a newer one is durable", 0},
	{"free_early", "free=early", "an object's room is free when a newer one is begun", 0},
	KV_BUG_VARIANTS(RDMP_BUGS)};

static const struct tm_shape shapes[] = {
	{.name = "hybrid"},
	{.name = "all_inline"},
	{.name = "cc_imm"},
	{.name = "cc_adp"},
	{.name = "log_in_pm_cc"},
	{.name = "no_log"},
	{.name = "calls=fail", .often = "w1"},
	{.name = NULL},
};

const struct tm_store rdmp_kv_store = {
	.name = "rdmp_kv",
	.what = "RDMP-KV (RK III): flags after the value, the server persists both",
	.in_default_campaign = true,
	.promises = RDA | LIN | DUR | BUF | MONO | KEEP | NORES | OK | LIVE | FSCK,
	.knobs = knobs,
	.variants = variants,
	.shapes = shapes,
	.pm_bytes = rdmp_pm_bytes,
	.regions = rdmp_regions,
	.format = kv_format,
	.recover = rdmp_recover,
	.serve = rdmp_serve,
	.fsck = rdmp_fsck,
	.open = rdmp_open,
	.put = rdmp_put,
	.get = rdmp_get,
	.del = rdmp_del,
};
