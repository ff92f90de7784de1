/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims: the file that is compiled in is good and complete; a table of bad ones with the line and
 * the words of each error; the verdicts, also of expectations that are wrong, which must be
 * noticed; and that what breaks can be made small and breaks again.
 */
#include "checker/hunt/claims.h"
#include "checker/judge/names.h"
#include "checker/trace/replay.h"
#include "tests/checker/explore/budget.h"
#include "tests/checker/setups.h"

static const struct claim_budget budget = {.seed = 1, .states = UINT64_MAX};

/* Of a test; each is freed when the next one is read. */
static struct claims c;
static struct claim_result sum;

static void free_claims(void)
{
	claims_free(&c);
}

static void read_good(const char *text)
{
	struct claims_error where;
	free_claims();
	int rc = claims_read(&c, text, &where);
	ck_assert_msg(!rc, "line %u: %s", where.text.line, where.text.message);
}

/* A claim with one case. */
static void read_case(const char *test)
{
	char text[512];
	snprintf(text, sizeof(text), "claim X\nsource nowhere\nsays nothing\ncase %s\n", test);
	read_good(text);
	ck_assert_uint_eq(c.claims, 1);
	ck_assert_uint_eq(c.claim[0].tests, 1);
}

/* All workloads of the case, as the command runs them. */
static void run_case(const struct claim_budget *b)
{
	const struct claim_case *test = &c.claim[0].test[0];
	memset(&sum, 0, sizeof(sum));
	for (unsigned w = 0; w < (test->kind == CLAIM_FAIL ? 1 : test->workloads); w++) {
		struct claim_result one = {0};
		claim_run(test, w, b, &one);
		claim_add(&sum, &one);
	}
}

/* --- the file that is compiled in --- */

TEST(compiled_in)
{
	static const char *const ids[] = {
		"P1",	 "P2",	  "P3",	   "P4",    "P5",    "P6",    "P7",    "P28",	"P29",
		"P30",	 "P31",	  "P32",   "P33",   "P34",   "P35",   "P36",   "P37",	"P38",
		"P39",	 "P40",	  "P41",   "P42",   "P43",   "P44",   "H-F1",  "H-F2",	"H-F3",
		"H-F5",	 "H-F6",  "H-F7",  "H-F8",  "H-F10", "H-F11", "H-F12", "H-F14", "H-F15",
		"H-F17", "H-F18", "H-F20", "H-F21", "H-E1",  "H-E2",  "H-E4",  "H-E5",	"H-E6",
		"H-E7",	 "H-E8",  "H-E9",  "H-E10", "H-E11", "H-E12", "H-E14", "H-E16",
	};
	read_good(NULL);
	for (unsigned i = 0; i < ROWS_OF(ids); i++)
		ck_assert_msg(claim_find(&c, ids[i]) != NULL, "%s is missing", ids[i]);
	/* A claim about several stores has its cases from their own files. */
	const struct claim *p1 = claim_find(&c, "P1");
	ck_assert_str_eq(p1->file, "core/stores/claims.txt");
	ck_assert_uint_ge(p1->tests, 4);
	ck_assert_str_ne(p1->test[0].file, p1->test[1].file);
}

/* --- reading --- */

TEST(reads)
{
	read_good("# a comment\n\n"
		  "workload mine : k1 160, k2 - : put k1 8, get k2 : del k1\n"
		  "claim A\nsource EF 1\nsays one\n"
		  "case pass RDA,LIN erda/sure timeout=1ms crash=off ddio=off : mine w-r : 7\n"
		  "case count DUR efactory/default,one_flush : w\n"
		  "claim\tB\n  source ER 2\nsays two: with a colon\nopen not yet\nnote well\n"
		  "knob breaks LIN erda/sure crash=off timeout=1ms repair=cond : mine : 9\n"
		  "knob cures DUR efactory ack_early=off domain=wsp : w\n");
	ck_assert_uint_eq(c.claims, 2);
	const struct claim *a = claim_find(&c, "A"), *b = claim_find(&c, "B");
	ck_assert_uint_eq(a->tests, 3);
	const struct claim_case *test = &a->test[0];
	ck_assert_int_eq(test->kind, CLAIM_PASS);
	ck_assert_uint_eq(test->contracts, TM_BIT(TM_RDA) | TM_BIT(TM_LIN));
	ck_assert_uint_eq(test->runs, 7);
	ck_assert_uint_eq(test->line, 7);
	ck_assert_str_eq(test->file, "claims.txt");
	ck_assert_str_eq(test->config.variant, "sure");
	ck_assert_str_eq(test->config.name, "timeout=1ms crash=off ddio=off");
	ck_assert(test->no_crash && !a->test[1].no_crash);
	ck_assert(test->config.setup.hw.ddio == DDIO_OFF);
	ck_assert_uint_eq(test->workloads, 2);
	ck_assert_uint_eq(test->workload[0].clients, 2);
	ck_assert_uint_eq(workload_ops(&test->workload[0]), 3);
	ck_assert_int_eq(a->test[1].kind, CLAIM_COUNT);
	ck_assert_str_eq(a->test[1].config.name, "default");
	ck_assert_str_eq(a->test[1].config.variant, "default");
	ck_assert_str_eq(a->test[2].config.variant, "one_flush");
	ck_assert_uint_eq(a->test[2].line, 8);
	ck_assert_ptr_null(a->open);
	ck_assert_str_eq(b->source, "ER 2");
	ck_assert_str_eq(b->says, "two: with a colon");
	ck_assert_str_eq(b->open, "not yet");
	ck_assert_str_eq(b->note, "well");
	ck_assert_uint_eq(c.knobs, 2);
	const struct claim_knob *breaks = &c.knob[0], *cures = &c.knob[1];
	ck_assert(breaks->kind == KNOB_BREAKS && cures->kind == KNOB_CURES);
	ck_assert_str_eq(breaks->store->name, "erda");
	ck_assert_str_eq(breaks->knob, "repair=cond");
	ck_assert_uint_eq(breaks->test.runs, 9);
	ck_assert_str_eq(breaks->test.workload[0].name, "mine");
	/* Without it: all the others. */
	struct setup left = breaks->test.without, right = breaks->test.config.setup;
	const char *expected;
	ck_assert_int_ne(memcmp(&left.params, &right.params, sizeof(left.params)), 0);
	ck_assert_int_eq(setup_knob(&left, "repair", "cond", &expected), 0);
	ck_assert_int_eq(memcmp(&left.params, &right.params, sizeof(left.params)), 0);
	ck_assert_ptr_null(cures->store);
	ck_assert_str_eq(cures->knob, "domain=wsp");
	ck_assert_int_eq(cures->test.without.hw.domain, DOMAIN_DMP);
	ck_assert(!cures->test.without.hw.ack_early);
}

#define HEAD "claim A\nsource s\nsays y\n"

static const struct {
	const char *text;
	unsigned line;
	const char *words;
} bad_texts[] = {
	{"", 0, "expected at least one claim"},
	{"claims A\n", 1, "expected claim, source, says, case"},
	{"source EF 1\n", 1, "expected a claim above it"},
	{"case pass RDA erda : w\n", 1, "expected a claim above it"},
	{"claim\n", 1, "expected \"claim ID\""},
	{"claim A B\n", 1, "expected \"claim ID\""},
	{HEAD "case pass RDA erda : w\nclaim A\n", 5, "claim A twice"},
	{HEAD "claim B\n", 1, "claim A: expected source, says, and at least one case or open"},
	{"claim A\nsource s\ncase pass RDA erda : w\n", 1, "expected source, says"},
	{HEAD "source t\n", 4, "source twice"},
	{HEAD "note\n", 4, "expected a sentence after note"},
	{HEAD "case\n", 4, "expected pass, fail or count"},
	{HEAD "case passes RDA erda : w\n", 4, "\"passes\": expected pass, fail or count"},
	{HEAD "case pass RDX erda : w\n", 4, "\"RDX\": expected contracts of RDA LIN"},
	{HEAD "case pass , erda : w\n", 4, "expected contracts of RDA LIN"},
	{HEAD "case pass RDA : w\n", 4, "\"\": expected a store"},
	{HEAD "case pass RDA erd : w\n", 4, "\"erd\": expected a store"},
	{HEAD "case pass RDA erda/none : w\n", 4, "\"none\": expected a variant of erda"},
	{HEAD "case pass RDA erda/sure,none : w\n", 4, "\"none\": expected a variant of erda"},
	{HEAD "case pass RDA erda bg_blocks=on : w\n", 4, "erda: switch \"bg_blocks\""},
	{HEAD "case pass RDA erda ddio : w\n", 4, "switch \"ddio\": expected NAME=VALUE"},
	{HEAD "case pass RDA erda ddio=maybe : w\n", 4, "expected on off any"},
	{HEAD "case pass RDA erda\n", 4, "expected workloads"},
	{HEAD "case pass RDA erda :\n", 4, "expected workloads"},
	{HEAD "case pass RDA erda : nothing\n", 4, "workload \"nothing\": expected"},
	{HEAD "case pass RDA erda : ycsb-a:keys=2\n", 4, "expected a number of runs"},
	{HEAD "case pass RDA erda search=2+ : w\n", 4, "switch \"search\""},
	{HEAD "case pass RDA erda search=9 : w\n", 4, "switch \"search\""},
	{HEAD "case pass RDA erda : w : many\n", 4, "\"many\": expected a number of runs"},
	{HEAD "case pass RDA erda : w : 0\n", 4, "\"0\": expected a number of runs"},
	{HEAD "case pass RDA erda : w : 5 : 6\n", 4, "\"5\": expected a number of runs"},
	{HEAD "case pass RDA ca : w-c\n", 4, "workload w-c: ca cleans no log"},
	{"workload x\n", 1, "expected \"workload NAME : KEYS : CLIENT...\""},
	{"workload x y : k1 8 : get k1\n", 1, "the name one word"},
	{"workload x : k1 8\n", 1, "workload x: expected"},
	{"workload x : k1 8 : gte k1\n", 1, "workload x: expected"},
	{"workload x : k1 : get k1\n", 1, "workload x: expected"},
	{"workload x : k1 8 : get k1\nworkload x : k1 8 : get k1\n", 2, "workload x twice"},
	{"knob flips LIN erda repair=cond : w\n", 1, "\"flips\": expected breaks or cures"},
	{"knob breaks LIN erde repair=cond : w\n", 1, "\"erde\": expected a store"},
	{"knob breaks LIX erda repair=cond : w\n", 1, "\"LIX\": expected contracts of"},
	{"knob breaks LIN erda repair=sometimes : w\n", 1,
	 "expected cond+recheck+age cond+recheck"},
	{"knob cures LIN erda : w\n", 1, "expected a switch"},
	{"knob cures LIN erda crash=off : w\n", 1, "expected a switch"},
	{"knob cures LIN erda repair=cond\n", 1, "expected workloads"},
};

TESTS(bad_text, ROWS_OF(bad_texts))
{
	struct claims_error where;
	int rc = claims_read(&c, bad_texts[_i].text, &where);
	ck_assert_msg(rc == -EINVAL, "%d for: %s", rc, bad_texts[_i].text);
	ck_assert_msg(where.text.line == bad_texts[_i].line &&
			      strstr(where.text.message, bad_texts[_i].words),
		      "line %u: %s, for: %s", where.text.line, where.text.message,
		      bad_texts[_i].text);
	ck_assert_ptr_null(c.text); /* nothing to free */
}

/* --- verdicts --- */

TEST(judges)
{
	struct claim_case pass = {.kind = CLAIM_PASS}, fail = {.kind = CLAIM_FAIL},
			  count = {.kind = CLAIM_COUNT};
	struct claim_result held = {0}, broke = {.broken = true}, part = {.part = true},
			    error = {.error = -EIO};
	ck_assert_int_eq(claim_judge(&pass, &held), CLAIM_AS_EXPECTED);
	ck_assert_int_eq(claim_judge(&pass, &broke), CLAIM_DIFFERS);
	ck_assert_int_eq(claim_judge(&pass, &part), CLAIM_UNSURE);
	ck_assert_int_eq(claim_judge(&pass, &error), CLAIM_UNSURE);
	ck_assert_int_eq(claim_judge(&fail, &held), CLAIM_DIFFERS);
	ck_assert_int_eq(claim_judge(&fail, &broke), CLAIM_AS_EXPECTED);
	ck_assert_int_eq(claim_judge(&fail, &part), CLAIM_UNSURE);
	ck_assert_int_eq(claim_judge(&fail, &error), CLAIM_UNSURE);
	ck_assert_int_eq(claim_judge(&count, &held), CLAIM_AS_EXPECTED);
	ck_assert_int_eq(claim_judge(&count, &broke), CLAIM_AS_EXPECTED);
	ck_assert_int_eq(claim_judge(&count, &error), CLAIM_UNSURE);
}

TEST(adds)
{
	struct claim_result sum = {0};
	const struct claim_result late = {
		.broken = true, .contract = TM_DUR, .workload = 2, .run = 7, .states = 10};
	const struct claim_result early = {
		.broken = true, .contract = TM_RDA, .workload = 1, .run = 9, .states = 1};
	const struct claim_result part = {.workload = 0, .part = true, .states = 5};
	claim_add(&sum, &late);
	claim_add(&sum, &early);
	claim_add(&sum, &part);
	ck_assert(sum.broken && sum.part);
	ck_assert_uint_eq(sum.workload, 1);
	ck_assert_uint_eq(sum.contract, TM_RDA);
	ck_assert_uint_eq(sum.run, 9);
	ck_assert_uint_eq(sum.states, 16);
}

/* Expectations, right and wrong, and what running them says. */
static const struct {
	const char *test;
	enum claim_verdict verdict;
} runs[] = {
	{"fail DUR erda : w", CLAIM_AS_EXPECTED},
	{"pass DUR erda : w", CLAIM_DIFFERS},
	{"pass RDA erda : w : 20", CLAIM_AS_EXPECTED},
	{"fail RDA erda : w : 20", CLAIM_DIFFERS},
	{"fail RDA,DUR erda : w : 20", CLAIM_AS_EXPECTED},
	{"pass RDA,DUR erda : w : 20", CLAIM_DIFFERS},
	{"fail KEEP erda : w ww : 20", CLAIM_AS_EXPECTED}, /* the second workload breaks it */
	{"pass KEEP erda : w ww : 20", CLAIM_DIFFERS},
	{"count KEEP erda : w ww : 20", CLAIM_AS_EXPECTED},
	{"fail DUR erda crash=off : w : 20", CLAIM_DIFFERS},
	{"fail KEEP erda search=0 : ww", CLAIM_AS_EXPECTED},
	{"pass KEEP erda search=0 : w", CLAIM_AS_EXPECTED}, /* the plain run is all there is */
	{"pass RDA erda search=2 : w-w : 2", CLAIM_UNSURE},
	{"fail LIN efactory/get_head_only crash=off : w-r", CLAIM_AS_EXPECTED},
	{"pass FSCK efactory : new-w : 20", CLAIM_AS_EXPECTED},
	{"pass FSCK efactory/key_unflushed : new-w : 20", CLAIM_DIFFERS},
	{"fail FSCK efactory bug=key_unflushed domain=wsp : w : 20", CLAIM_DIFFERS},
};

TESTS(runs_cases, ROWS_OF(runs))
{
	read_case(runs[_i].test);
	run_case(&budget);
	ck_assert_msg(claim_judge(&c.claim[0].test[0], &sum) == runs[_i].verdict, "%s",
		      runs[_i].test);
}

/* A budget that ends before the runs do leaves open what was not seen. */
TEST(small_budget)
{
	const struct claim_budget small = {.seed = 1, .states = 3};
	read_case("pass RDA erda : w-w : 50");
	run_case(&small);
	ck_assert(sum.part);
	ck_assert_int_eq(claim_judge(&c.claim[0].test[0], &sum), CLAIM_UNSURE);
}

TEST(counts)
{
	read_case("count DUR efactory : w ww : 30");
	run_case(&budget);
	ck_assert_uint_eq(sum.runs, 60);
	ck_assert_uint_gt(sum.broken_states, 0);
	ck_assert_uint_lt(sum.broken_states, sum.states);
	read_case("count DUR efactory domain=wsp : w : 30");
	run_case(&budget);
	ck_assert_uint_eq(sum.broken_states, 0);
	ck_assert_uint_gt(sum.states, 0);
}

TEST(smallest)
{
	struct broken_run run;
	read_case("fail KEEP erda : w www : 50");
	run_case(&budget);
	ck_assert_int_eq(claim_smallest(&c.claim[0].test[0], &sum, &budget, true, &run), 0);
	ck_assert_uint_eq(workload_ops(&run.setup.w), 2);
	ck_assert_ptr_nonnull(strstr(run.text, "k1"));
	ck_assert(replayed(&run.setup, &run.path, TM_KEEP)->verdict[TM_KEEP].broken);
	broken_run_free(&run);
}

/* --- switches --- */

/* Lines, right and wrong, and whether running them agrees. */
static const struct {
	const char *line;
	bool as_said;
} flips[] = {
	{"breaks FSCK erda flips=lazy : wc", true},
	{"cures FSCK erda flips=lazy : wc", false},
	{"breaks RDA erda flips=lazy : w : 20", false}, /* breaks on neither side */
	{"breaks DUR erda flips=lazy : w : 20", false}, /* on both */
	{"cures DUR remotelog/w2 ddio=off : w", true},
	{"breaks FSCK remotelog/cw3 domain=mhp iio_in_mhp=off ddio=any : w", true},
	{"breaks DUR remotelog/w2 ddio=off : w : 20", false},
	{"breaks RDA erda old_zero=on verify_obj_key=off : new-w1-w2r2", true},
	{"breaks RDA erda verify_obj_key=off : new-w1-w2r2 : 20", false},
	{"breaks NORES erda/sure calls=fail : w", true},
};

TEST(runs_lines)
{
	char text[2048] = "claim X\nsource s\nsays y\nopen z\n";
	unsigned line[ROWS_OF(flips)], lines = 0;
	for (unsigned i = 0; i < ROWS_OF(flips); i++) {
		if (!in_share((int)i))
			continue;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "knob %s\n",
			 flips[i].line);
		line[lines++] = i;
	}
	read_good(text);
	ck_assert_uint_eq(c.knobs, lines);
	struct sensitivity f = {.claims = &c, .how.jobs = 2, .seed = 1};
	ck_assert_int_eq(sensitivity_run(&f), 0);
	for (unsigned i = 0; i < lines; i++)
		ck_assert_msg(f.result[i].held == flips[line[i]].as_said, "%s: %s in %s, run %llu",
			      flips[line[i]].line, contract_name(f.result[i].contract),
			      f.result[i].workload, (unsigned long long)f.result[i].run);
	free(f.result);
}

RUN_TESTS(NULL, free_claims)
