/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The baselines, CA without persistence, Forca, and SAW with IMM and RPC: what each breaks and
 * keeps, workload, found by the explorer; and that their structural checks notice a pool that was
 * damaged.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/explore/campaign.h"
#include "checker/judge/names.h"
#include "core/stores/bits.h"
#include "scenarios/stores.h"
#include "tests/checker/setups.h"
#include "tests/suite.h"
#include "faultinject/random_source.h"

#define ALL_BUT_OK (RDA | LIN | DUR | BUF | MONO | KEEP | NORES | LIVE | FSCK)
/* Octopus's Persistent Put: what is replaced is torn, and a dead client keeps its lock. */
#define PERSISTENT (LIN | DUR | BUF | MONO | KEEP | NORES | FSCK)

static const struct {
	unsigned runs;
	const char *store, *knobs, *workload;
	unsigned broken, kept;
} table[] = {
	/* Without persistence: the place is known before the value is there, and nothing is
	   flushed. */
	{300, "ca", "", "w", RDA | DUR, LIVE | FSCK},
	{300, "ca", "", "w-r", RDA, LIVE | FSCK},
	{300, "ca", "domain=wsp", "w", RDA, DUR | LIVE | FSCK},
	{300, "ca", "", "wr", MONO, LIVE | FSCK},
	{300, "ca", "", "w1w2", BUF, LIVE | FSCK},
	{300, "ca", "", "dr", NORES, LIVE | FSCK},
	{300, "ca", "", "new-w1-w2", RDA, LIVE | FSCK},
	{300, "ca", "line_torn=prefix", "new-w1-w2", RDA, LIVE | FSCK},
	/* Forca: what a GET returns stays; a PUT is durable once a client has read it. */
	{300, "forca", "ack_early=off", "w-rr", DUR, RDA | LIN | MONO | KEEP | NORES | LIVE | FSCK},
	{300, "forca", "ack_early=off", "w-w-r", DUR,
	 RDA | LIN | MONO | KEEP | NORES | LIVE | FSCK},
	{300, "forca", "ack_early=off", "wdw", DUR, RDA | LIN | MONO | KEEP | NORES | LIVE | FSCK},
	{300, "forca", "ack_early=off", "ww-r", DUR, RDA | LIN | MONO | KEEP | NORES | LIVE | FSCK},
	{300, "forca", "ack_early=off line_torn=prefix", "new-w1-w2r2", DUR,
	 RDA | LIN | MONO | KEEP | LIVE | FSCK},
	{300, "forca", "", "w1w2r2", DUR | BUF, RDA | MONO | KEEP | LIVE | FSCK},
	{300, "forca", "domain=wsp", "w-w", 0, RDA | DUR | BUF | MONO | KEEP | LIVE | FSCK},
	{300, "forca", "", "w-rr", LIN, RDA | MONO | KEEP | LIVE | FSCK},
	{300, "forca", "cache_valid=on ack_early=off", "w-rr", DUR,
	 RDA | LIN | MONO | KEEP | LIVE | FSCK},
	{300, "forca", "cache_valid=on ack_early=off", "ww-r", DUR,
	 RDA | LIN | MONO | KEEP | LIVE | FSCK},
	{4000, "forca", "timeout=1ms ack_early=off", "w-rr", LIN, RDA | MONO | KEEP | LIVE | FSCK},
	/* Its collector, as the public code has it, and with what that takes (claim H-C1). */
	{300, "forca", "collect=each qp=separate ack_early=off", "dw-r", RDA, LIVE},
	{300, "forca",
	 "cache_valid=on timeout=1ms collect=each late=dropped readers=lease ack_early=off", "ww-r",
	 DUR, RDA | LIN | MONO | KEEP | LIVE | FSCK},
	/* SAW, IMM and RPC: what is acknowledged is durable; what a READ saw beside it need not
	   be (claim P20). */
	{300, "saw_imm", "", "ww", 0, ALL_BUT_OK},
	{300, "saw_imm", "", "w-r", 0, RDA | LIN | BUF | KEEP | LIVE | FSCK},
	{300, "saw_imm", "method=imm", "w-r", 0, RDA | LIN | BUF | KEEP | LIVE | FSCK},
	{300, "saw_imm", "get=request", "w-r", 0, ALL_BUT_OK},
	{300, "saw_imm", "method=rpc", "new-w1-w2", 0, ALL_BUT_OK},
	{300, "saw_imm", "ddio=off", "wdw", 0, ALL_BUT_OK},
	{300, "saw_imm", "persist=off", "w", DUR, LIVE | FSCK},
	{300, "saw_imm", "method=imm imm_offset=bytes8", "ww", RDA | LIVE, 0},
	{300, "saw_imm", "reuse=at_once", "ww-r", RDA, BUF | KEEP | LIVE | FSCK},
	{300, "saw_imm", "reuse=lease", "ww-r", 0, RDA | LIN | BUF | KEEP | LIVE | FSCK},
	{300, "saw_imm", "method=rpc persist=off", "dr", NORES, LIVE | FSCK},
	/* RDMP-KV: its flags say what is durable, if GETs are told of whole objects (claims P45 to
	   P51). */
	{300, "rdmp_kv", "", "ww-r", 0, ALL_BUT_OK},
	{300, "rdmp_kv", "line_torn=prefix dma_order=any", "w-r.1500", 0, ALL_BUT_OK},
	{300, "rdmp_kv", "threshold=64", "ww-r.mixed", 0, ALL_BUT_OK},
	{300, "rdmp_kv", "ddio=off", "wdw", 0, ALL_BUT_OK},
	{4000, "rdmp_kv", "get_prev=off", "w-r", RDA | LIVE, DUR | MONO | KEEP | NORES | FSCK},
	{300, "rdmp_kv", "get_prev=off recover_vf=off", "w", LIVE | DUR, RDA | FSCK},
	{300, "rdmp_kv", "free=early", "w-w", DUR | KEEP, LIVE},
	{300, "rdmp_kv", "free=old", "ww-r", RDA, DUR | MONO | KEEP | LIVE | FSCK},
	/* Redo Logging: the log alone keeps it. Read After Write: memory is not reached with DDIO
	   (claims P23, P24, H-W2, RL3, RL5). */
	{300, "redo_log", "", "ww-r", 0, ALL_BUT_OK},
	{300, "redo_log", "ring=small line_torn=prefix", "w1w2w2w2w2", 0, ALL_BUT_OK},
	{300, "redo_log", "order=pointer_first", "new-w1-w2", 0, ALL_BUT_OK},
	{300, "redo_log", "method=raw", "w-r", DUR, RDA | LIN | MONO | KEEP | LIVE | FSCK},
	{300, "redo_log", "method=raw ddio=off", "w-w", 0, ALL_BUT_OK},
	{300, "redo_log", "method=raw ddio=off replay=first", "w-w", DUR, RDA | LIN | FSCK},
	/* Pilaf: with a new place for each pair, flushes and an undo slot what is acknowledged
	   stays; as the paper has it, nothing does (claims P52 to P55). */
	{300, "pilaf", "", "ww", 0, ALL_BUT_OK},
	{300, "pilaf", "line_torn=any", "wdw", 0, ALL_BUT_OK},
	{300, "pilaf", "crowd=on", "new-w1w2", 0, ALL_BUT_OK},
	{300, "pilaf", "", "w-r", 0, RDA | LIN | BUF | KEEP | NORES | LIVE | FSCK},
	{300, "pilaf", "delete=key_first", "wdw", 0, ALL_BUT_OK},
	{300, "pilaf", "place=in_place", "w", KEEP | DUR, RDA | LIVE | FSCK},
	{300, "pilaf", "place=in_place flush=none", "dr", DUR | NORES, RDA | LIVE},
	{300, "pilaf", "no_crc2=on", "ww-r", KEEP | DUR, RDA | LIVE | FSCK},
	{300, "pilaf", "probe_unbounded=on", "dr", LIVE, RDA | FSCK},
	/* RFP: a header says that all of its payload is there, and which request it answers (claims
	   P93, P94, RF1 to RF5). */
	{300, "rfp", "", "ww-r", 0, ALL_BUT_OK},
	{300, "rfp", "line_torn=prefix dma_order=any", "w-r.1500", 0, ALL_BUT_OK},
	{300, "rfp", "put_reply=write", "wdw", 0, ALL_BUT_OK},
	{300, "rfp", "fresh=clear hybrid=off", "ww-r", 0, ALL_BUT_OK},
	{300, "rfp", "request=one_write", "wr", RDA, LIVE | FSCK},
	{300, "rfp", "fresh=taken", "wr", RDA, FSCK},
	{300, "rfp", "persist=off", "w", DUR, LIVE | FSCK},
	/* HERD: requests are executed once, and a CRC says that one is whole (claims P56 to P58,
	   HD1 to HD5). */
	{300, "herd", "", "ww-r", 0, ALL_BUT_OK},
	{300, "herd", "dma_order=relaxed", "wr", 0, ALL_BUT_OK},
	{300, "herd", "request=imm backend=tx line_torn=prefix", "wdw", 0, ALL_BUT_OK},
	{300, "herd", "poll_front=on check=word", "w-r", RDA, LIVE | FSCK},
	{300, "herd", "numbers=off", "wr", RDA, FSCK},
	{300, "herd", "persist=off", "w", DUR, LIVE | FSCK},
	/* HydraDB: an item stays as it is until its leases have ended (claims P90, P91, HY1 to
	   HY5). */
	{300, "hydradb", "", "ww-rr", 0, ALL_BUT_OK},
	{300, "hydradb", "line_torn=prefix", "wdw", 0, ALL_BUT_OK},
	{300, "hydradb", "whole=crc dma_order=any", "w-r.1500", 0, ALL_BUT_OK},
	{300, "hydradb", "crowd=on pointers=none", "new-w1w2", 0, ALL_BUT_OK},
	{300, "hydradb", "persist=off", "w", DUR, LIVE},
	/* Nessie: clients flush, and one that READs a marked word flushes it; as the paper has it,
	   nothing stays (claims P83 to P85, H-NE1 to H-NE7). */
	{300, "nessie", "", "ww-r", 0, ALL_BUT_OK},
	{300, "nessie", "", "new-w-w", 0, ALL_BUT_OK},
	{300, "nessie", "line_torn=any share=tight", "wdw", 0, ALL_BUT_OK},
	{300, "nessie", "crowd=on", "new-w1w2", 0, ALL_BUT_OK},
	{300, "nessie", "reads=visible", "w-r", DUR | MONO, RDA | LIN | NORES | LIVE | FSCK},
	{300, "nessie", "flush_by=flush ddio=off", "w-r", 0, ALL_BUT_OK},
	{300, "nessie", "flush_by=flush", "w", DUR, RDA | LIN | LIVE},
	{300, "nessie", "flush=none", "w", DUR | FSCK, RDA | LIN},
	/* Octopus-KV: in place, so RDA breaks whatever is flushed (claims P18, P21, OC1 to OC5). */
	{300, "octopus", "", "w", RDA | DUR, LIN | FSCK},
	{300, "octopus", "persist=cpu", "ww-r", RDA, PERSISTENT},
	{300, "octopus", "persist=cpu", "wdw", RDA, PERSISTENT},
	{300, "octopus", "persist=cpu domain=mhp", "w", RDA, PERSISTENT},
	{300, "octopus", "persist=read ddio=off", "ww", RDA, PERSISTENT},
	{300, "octopus", "persist=cpu lease=on", "w-r", RDA | NORES, DUR | MONO | KEEP | LIVE},
	{300, "octopus", "lock=early ack_early=off", "w-r", RDA | DUR, LIN | LIVE | FSCK},
	{300, "octopus", "free=at_once", "w1r2-w2r1", DUR | FSCK, LIN},
};

TESTS(contracts, ROWS_OF(table))
{
	struct setup s;
	struct explorer ex;
	struct random_source random = {0};
	make_whole_setup(&s, store_find(table[_i].store), NULL, table[_i].knobs,
			 table[_i].workload);
	ck_assert_int_eq(explore_open(&ex, &s, &campaign_default.limits), 0);
	for (uint64_t run = 0; run < table[_i].runs; run++) {
		random.taken.n = 0;
		if (run)
			random_start(&random, campaign_default.seed * 1000003 + run,
				     campaign_default.deviations);
		ck_assert_int_eq(explore_run(&ex, run ? &random.source : NULL, &random.taken), 0);
	}
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		ck_assert_msg(!(table[_i].kept & TM_BIT(c)) || !ex.failure[c].found,
			      "%s %s, %s: %s breaks: %s", table[_i].store, table[_i].knobs,
			      table[_i].workload, contract_name(c), ex.failure[c].text);
		ck_assert_msg(!(table[_i].broken & TM_BIT(c)) || ex.failure[c].found,
			      "%s %s, %s: %s holds", table[_i].store, table[_i].knobs,
			      table[_i].workload, contract_name(c));
	}
	deviations_free(&random.taken);
	explore_close(&ex);
	setup_free(&s);
}

/* --- the structural checks --- */

struct listener {
	struct tm_fsck fsck;
	unsigned defects;
	char text[200];
};

static void hear(struct tm_fsck *fsck, const char *fmt, ...)
{
	struct listener *l = (struct listener *)fsck;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	l->defects++;
}

/* Where a used entry is in the loaded pool: the first line with a key. */
static uint8_t *entry_of(const struct setup *s)
{
	for (size_t at = 0; at < s->region[0].len; at += 64)
		if (s->image[at])
			return s->image + at;
	ck_abort_msg("no entry");
}

/* A byte of the entry, or of a region's first line that is in use, is changed; or the entry is
 * moved to another slot. */
static const struct {
	const char *store, *region; /* NULL: the entry */
	unsigned at;
	uint8_t to;
	const char *words;
} damage[] = {
	{"ca", NULL, 0x01, 0x00, "no such key"},
	{"ca", NULL, 0x00, 'b', "no such key"},
	{"ca", "moved", 0, 0, "does not lead to it"},
	{"ca", NULL, 0x27, 0x7f, "outside of the log"},
	{"forca", NULL, 0x01, 0x00, "no key"},
	{"forca", NULL, 0x00, 'b', "does not lead"},
	{"forca", NULL, 0x20, 0x7f, "outside of the pool"},
	{"forca", "meta", 0x00, 0x01, "not before it"},
	{"forca", "meta", 0x18, 0x07, "no such state"},
	{"forca", "meta", 0x08, 0x7f, "outside"},
	{"forca", "meta", 0x14, 0x00, "CRC does not agree"},
};

TESTS(structure, ROWS_OF(damage))
{
	struct setup s;
	struct explorer ex;
	struct listener l = {.fsck.bad = hear};
	make_whole_setup(&s, store_find(damage[_i].store), NULL, "", "w");
	ck_assert_int_eq(explore_open(&ex, &s, &campaign_default.limits), 0); /* loads s.image */
	struct tm_env env = {.params = &s.params, .pm = s.image, .pm_len = s.pm_len};
	s.store->fsck(&env, &l.fsck);
	ck_assert_msg(!l.defects, "%s", l.text);
	uint8_t *line = entry_of(&s);
	bool moved = damage[_i].region && !strcmp(damage[_i].region, "moved");
	if (moved) {
		uint8_t *other = line > s.image ? s.image : s.image + 64;
		memcpy(other, line, 64);
		memset(line, 0, 64);
	} else if (damage[_i].region) {
		ck_assert_str_eq(s.region[1].name, damage[_i].region);
		line = s.image + s.region[1].off + 64; /* the first meta */
		line[0x18] = 1;			       /* valid: its CRC counts */
	}
	if (!moved)
		line[damage[_i].at] = damage[_i].to;
	s.store->fsck(&env, &l.fsck);
	ck_assert_uint_ge(l.defects, 1);
	ck_assert_msg(strstr(l.text, damage[_i].words) != NULL, "%s", l.text);
	explore_close(&ex);
	setup_free(&s);
}

int main(void)
{
	return run_suite(listed_suite("baselines", NULL, NULL));
}
