/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RemoteLog under the explorer: which methods are sound in which configuration, as a
 * table. A row is searched as a campaign searches it; one that must break is searched
 * until it does, one that must hold to the end of a small budget: the store has few
 * places where the power can fail, and rows that break show that the search finds them.
 *
 * The oracles are RP's tables and text, worked out by hand: DUR breaks where an append
 * that was reported durable can be lost, FSCK where the tail can be durable without its
 * record.
 */
#include <stdio.h>
#include <string.h>
#include "checker/explore/campaign.h"
#include "checker/judge/names.h"
#include "core/stores/bits.h"
#include "scenarios/stores.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"
#include "tests/suite.h"
#include "faultinject/random_source.h"

#define RUNS_HOLDS  100
#define RUNS_BREAKS 4000
#define FEW_STATES  500	 /* where the power is not what matters */
#define RING_STATES 5000 /* of a ring that holds: it has many more */

/* The contracts that break, a bit each. The search goes on until all of `want` have; `holds`: some
 * must
 * not. */
static unsigned broken(const char *method, const char *knobs, const char *workload, unsigned want,
		       bool holds, uint64_t states)
{
	static struct explorer ex;
	struct explore_limits limits = campaign_default.limits;
	struct random_source random = {0};
	struct setup s;
	unsigned found = 0;
	char switches[256];

	snprintf(switches, sizeof(switches), "method=%s %s", method, knobs);
	make_whole_setup(&s, store_find("remotelog"), NULL, switches, workload);
	limits.states = states;
	/* The papers speak of a server that fails once. Its later lives are test_life's. */
	limits.life_every = 0;
	ck_assert_msg(!explore_open(&ex, &s, &limits), "%s", ex.why);
	for (uint64_t run = 0; run < RUNS_BREAKS && explore_more(&ex); run++) {
		if ((found & want) == want && (!holds || run >= RUNS_HOLDS))
			break;
		if (run)
			random_start(&random, campaign_default.seed * 1000003 + run,
				     campaign_default.deviations);
		ck_assert_int_eq(explore_run(&ex, run ? &random.source : NULL, &random.taken), 0);
		for (unsigned k = 0; k < TM_CONTRACTS; k++)
			found |= ex.failure[k].found ? TM_BIT(k) : 0;
	}
	ck_assert_uint_gt(ex.counts.states, 0);
	explore_close(&ex);
	setup_free(&s);
	deviations_free(&random.taken);
	return found;
}

static void judge(const char *method, const char *knobs, const char *workload, unsigned looked_at,
		  unsigned want, uint64_t states)
{
	unsigned got = broken(method, knobs, workload, want, looked_at != want, states) & looked_at;

	for (unsigned k = 0; k < TM_CONTRACTS; k++)
		ck_assert_msg(!((got ^ want) & TM_BIT(k)), "%s %s, %s: %s %s", method, knobs,
			      workload, contract_name(k), got & TM_BIT(k) ? "breaks" : "holds");
}

/* --- what the papers claim --- */

static const struct claim {
	const char *name, *methods, *knobs, *workload;
	unsigned looked_at, want; /* contracts; those that break */
} claims[] = {
	{"completed is not visible: the server's CPU", "w3", "get=server", "w-rr", LIN, LIN},
	{"... where it is", "w3", "get=server ack_early=off", "w-rr", LIN, 0},
	{"IB: completed has arrived", "w3 i3 s4 cw4 ci4 cs4", "domain=wsp rqwrb=pm", "ww",
	 DUR | FSCK, 0},
	{"iWARP: completed may not have left", "w3 i3 s4 cw4 ci4 cs4",
	 "domain=wsp rqwrb=pm transport=iwarp", "w", DUR | FSCK, DUR},
	{"visible in order is not durable in order", "cw3 ci3", "ddio=off", "w", DUR | FSCK, FSCK},
	{"... with the buffers inside MHP it is", "cw3 ci3", "ddio=off domain=mhp", "ww",
	 DUR | FSCK, 0},
	{"... outside it is not", "cw3 ci3", "ddio=off domain=mhp iio_in_mhp=off", "w", DUR | FSCK,
	 FSCK},
	{"a posted write overtakes a flush", "cw2p", "ddio=off", "w", DUR | FSCK, FSCK},
	{"an atomic write, a wait, a fence do not", "cw2 cw2c cw2f", "ddio=off", "ww", DUR | FSCK,
	 0},
	{"... by reads", "cw2 cw2c cw2f", "ddio=off flush=read", "ww", DUR | FSCK, 0},
	{"... where a flush drains", "cw2 w2 i2 ci2", "ddio=off domain=mhp iio_in_mhp=off", "ww",
	 DUR | FSCK, 0},
	{"with ddio nothing does", "cw2 cw2c cw2f", "ddio=on", "w", DUR | FSCK, DUR | FSCK},
	{"a write of several lines can be torn", "w2", "crc=off ddio=off", "ww", RDA, RDA},
	{"... a line of it at 8 bytes", "w2", "crc=off ddio=off line_torn=prefix", "ww.8", RDA,
	 RDA},
	{"... or not", "w2", "crc=off ddio=off", "ww.8", RDA, 0},
	{"... and a checksum tells", "w2", "ddio=off line_torn=prefix", "ww", RDA | DUR | FSCK, 0},
	{"a read flushes", "w2 i2", "ddio=off flush=read", "ww", DUR, 0},
	{"... not what another connection wrote", "w2 i2", "ddio=off flush=read_other_qp", "w", DUR,
	 DUR},
	{"... nor waits for it to land", "w2 i2", "domain=mhp flush=read_other_qp", "w", DUR, DUR},
	{"a message on another connection does not push what it is about", "w1", "qps=two", "w",
	 DUR, DUR},
	{"... nor if it waits for completed", "w1", "qps=two_wait", "w", DUR, DUR},
	{"... where that is not visible", "w1 cw1", "qps=two_wait ack_early=off", "ww", DUR | FSCK,
	 0},
	{"... and the record may come after its tail", "cw1", "qps=two", "w", FSCK, FSCK},
	{"... and one that has the record need not", "s1 i1 cs1 ci1", "qps=two", "ww", DUR | FSCK,
	 0},
	{"... and is not flushed by the other connection", "s3", "ddio=off rqwrb=pm qps=two", "w",
	 DUR, DUR},
	{"receive buffers in PM", "s3 cs3", "ddio=off rqwrb=pm", "ww", DUR | FSCK, 0},
	{"... that nobody looks into", "s3 cs3", "ddio=off rqwrb=pm scan_buffers=off", "w",
	 DUR | FSCK, DUR},
	{"... that a flush does not cover", "s3", "ddio=off rqwrb=pm flush_covers_send=off", "w",
	 DUR | FSCK, DUR},
	{"receive buffers in DRAM", "s3 s4 cs3 cs4", "domain=wsp", "w", DUR | FSCK, DUR},
	{"the message's sender reads stale data", "s3", "ddio=off rqwrb=pm", "wr", LIN, LIN},
	{"several messages wait in buffers", "s3 cs3", "ddio=off rqwrb=pm", "www", DUR | FSCK, 0},
	{"... of two clients", "s3 cs3", "ddio=off rqwrb=pm", "ww-w", DUR | FSCK, 0},
	{"a tail of 16 bytes has no atomic write", "cw2", "ddio=off tail=16", "w", DUR | FSCK,
	 FSCK},
	{"... so it waits", "cw2c cw2f ci2", "ddio=off tail=16", "ww", DUR | FSCK, 0},
	{"... and can be torn", "cw2c", "ddio=off tail=16 line_torn=prefix", "w", FSCK, FSCK},
	{"... where 8 bytes cannot", "cw2c", "ddio=off line_torn=prefix", "w", FSCK, 0},
	{"... by a server that flushes", "ci1 cw1", "tail=16", "ww", DUR | FSCK, 0},
	{"... not by one that copies it, with two stores", "cs1", "tail=16", "w", FSCK, FSCK},
};

TESTS(claim, ROWS_OF(claims))
{
	const struct claim *c = &claims[_i];
	char text[100], *save = NULL;

	if (!in_share(_i))
		return;
	snprintf(text, sizeof(text), "%s", c->methods);
	for (char *method = strtok_r(text, " ", &save); method; method = strtok_r(NULL, " ", &save))
		judge(method, c->knobs, c->workload, c->looked_at, c->want,
		      campaign_default.states);
}

/* --- a ring --- */

static const struct claim ring_claims[] = {
	{"a lap and more", "w1 i1 s1 cw1 ci1 cs1", "slots=2", "www", DUR | FSCK | RDA, 0},
	{"... one-sided", "w2 i2 cw2 cw2c ci2", "slots=2 ddio=off", "www", DUR | FSCK | RDA, 0},
	{"... by messages", "s3 cs3", "slots=2 ddio=off rqwrb=pm", "www", DUR | FSCK | RDA, 0},
	{"... of two clients", "w1 s1 cw1", "slots=2", "ww-w", DUR | FSCK | RDA, 0},
	{"two keys in the table", "w1 cw1 s1", "slots=2", "w1w2w2w2w2", DUR | FSCK | RDA, 0},
	{"the deleted", "w1 s1", "slots=2", "wdw", DUR | FSCK | RDA, 0},
	{"lines can be cut", "w1 s1 cw1", "slots=2 line_torn=prefix", "www", DUR | FSCK | RDA, 0},
	{"what is collected is still told of", "w1 cw1 i1", "slots=2", "new-ww", LIVE, 0},
	{"a number that is not compared", "w1 s1 w2", "slots=2 seq=unchecked ddio=off", "www", DUR,
	 DUR},
	{"... in a log that is no ring", "w1 s1 w2", "seq=unchecked ddio=off", "www", DUR, 0},
	{"... in one whose lap is not over", "w1", "slots=16 seq=unchecked", "www", DUR, 0},
	{"the head before the table", "w1 cw1 s1", "slots=2 bug=gc_early", "ww", FSCK, FSCK},
	{"... loses a value", "w1", "slots=2 bug=gc_early", "dr", DUR, DUR},
	{"the table before the record", "w1 cw1", "slots=2 bug=gc_dirty", "ww", FSCK, FSCK},
	{"clients before the head", "w2", "slots=2 ddio=off bug=room_early", "www", DUR, DUR},
	{"a buffer before the record", "s3 cs3", "ddio=off rqwrb=pm bug=repost_early", "www", DUR,
	 DUR},
};

TESTS(ring, ROWS_OF(ring_claims))
{
	const struct claim *c = &ring_claims[_i];
	char text[100], *save = NULL;

	if (!in_share(_i))
		return;
	snprintf(text, sizeof(text), "%s", c->methods);
	for (char *method = strtok_r(text, " ", &save); method; method = strtok_r(NULL, " ", &save))
		judge(method, c->knobs, c->workload, c->looked_at, c->want,
		      c->want ? campaign_default.states : RING_STATES);
}

/* --- every method --- */

/* What breaks of it in DMP with DDIO, receive buffers in DRAM. */
static const struct method {
	const char *name;
	unsigned dmp;
} methods[] = {
	{"w1", 0},	     {"w1n", DUR},	   {"w2", DUR},		 {"w3", DUR},
	{"i1", 0},	     {"i2", DUR},	   {"i3", DUR},		 {"s1", 0},
	{"s2", DUR},	     {"s3", DUR},	   {"s4", DUR},		 {"cw1", 0},
	{"cw2", DUR | FSCK}, {"cw2p", DUR | FSCK}, {"cw2c", DUR | FSCK}, {"cw2f", DUR | FSCK},
	{"cw3", DUR | FSCK}, {"cw4", DUR | FSCK},  {"ci1", 0},		 {"ci2", DUR | FSCK},
	{"ci3", DUR | FSCK}, {"ci4", DUR | FSCK},  {"cs1", 0},		 {"cs1x", FSCK},
	{"cs2", DUR | FSCK}, {"cs3", DUR},	   {"cs4", DUR},	 {"wc", 0},
	{"cwc", 0},	     {"cwcp", FSCK},
};

TESTS(method_in_dmp, ROWS_OF(methods))
{
	if (!in_share(_i))
		return;
	judge(methods[_i].name, "", "w", DUR | FSCK | RDA, methods[_i].dmp,
	      campaign_default.states);
}

/* All are sound where all that the NIC has received survives. */
TESTS(method_in_wsp, ROWS_OF(methods))
{
	if (!in_share(_i))
		return;
	judge(methods[_i].name, "domain=wsp rqwrb=pm", "wdw", DUR | FSCK | RDA, 0,
	      campaign_default.states);
}

/* An append ends before the server has applied it. */
static bool is_late(const char *method)
{
	return !strcmp(method, "s3") || !strcmp(method, "s4") || !strcmp(method, "cs3") ||
	       !strcmp(method, "cs4");
}

/* Two writers at a time, records of several packets: no append gets lost or mixed up. */
TESTS(method_works, ROWS_OF(methods))
{
	bool late = is_late(methods[_i].name);

	judge(methods[_i].name, "domain=wsp rqwrb=pm ack_early=off", "w-w.1500",
	      RDA | FSCK | (late ? 0 : LIN), 0, FEW_STATES);
	judge(methods[_i].name, "domain=wsp rqwrb=pm ack_early=off get=server", "w1-w2r2",
	      RDA | FSCK | (late ? 0 : LIN), 0, FEW_STATES);
}

/* Many laps of a ring, readers beside writers: what is looked for in log and table is found. */
TESTS(method_in_ring, ROWS_OF(methods))
{
	const char *const workloads[] = {"w-rr", "ycsb-a:clients=2,keys=4,ops=40,vlen=100"};
	const char *const knobs[] = {"slots=2", "slots=4", "slots=4 get=server"};
	bool late = is_late(methods[_i].name);

	if (!in_share(_i))
		return;
	for (unsigned w = 0; w < 2; w++)
		for (unsigned k = 0; k < 3; k++) {
			char text[100];

			snprintf(text, sizeof(text), "domain=wsp rqwrb=pm ack_early=off %s",
				 knobs[k]);
			judge(methods[_i].name, text, workloads[w], RDA | FSCK | (late ? 0 : LIN),
			      0, FEW_STATES);
		}
}

int main(void)
{
	return run_suite(listed_suite("remotelog", NULL, NULL));
}
