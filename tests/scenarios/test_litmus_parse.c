/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests are read as docs/litmus.md says: every statement, the layout of locations, the
 * precedence of operators; every error at its place; and no input, however broken, does harm.
 */
#include "core/verbs_compat.h"
#include "scenarios/litmus.h"
#include "tests/suite.h"

static struct litmus_test test;
static struct input_error error;

static int parse(const char *text)
{
	litmus_free(&test);
	return litmus_parse(&test, text, strlen(text), &error);
}

static void parse_good(const char *text)
{
	int rc = parse(text);
	ck_assert_msg(!rc, "%u:%u: %s", error.line, error.column, error.message);
}

static const char everything[] = "(* a comment over\n"
				 "   two lines *) litmus All+of-it.1\n"
				 "\"What it  shows,\n"
				 "\t in two lines. \"\n"
				 "config domain=mhp ddio=off // two knobs\n"
				 "config mtu=256\n"
				 "{\n"
				 "  qp q A B;\n"
				 "  x@B = 3;\n"
				 "  a[16]@B = 0x10;\n"
				 "  dram y@A = 7;\n"
				 "  b[2]@A = 1, 2;\n"
				 "  x2@B after x;\n"
				 "  x3[6]@B = 9 after x2;\n"
				 "  z@A\n"
				 "}\n"
				 " P0@A                        | P1@B                  ;\n"
				 " z = 1                       | x = 0xffffffffffffffff ;\n"
				 " z = r1 + 5                  | r1 = a[3]             ;\n"
				 " b[1] = r2                   | r2 = 7                ;\n"
				 " r3 = r4 + 1                 | await x = r1          ;\n"
				 " r0 = xchg z 1               | r0 = cas x r1 + 2 r3  ;\n"
				 " r15 = faa b[1] r2           | mfence                ;\n"
				 " sfence                      | lfence                ;\n"
				 " clflush z                   | clflushopt a          ;\n"
				 " clwb b[0..1]                | clwb a[2..15]         ;\n"
				 " put q x <- z                | put q b[0..1] <- a[4..5] ;\n"
				 " put q a <- r1 + 1           | putimm q y <- x       ;\n"
				 " putimm q a[1] <- 5 0x7      | putimm q y <- r1 8    ;\n"
				 " get q b <- a[0..1]          | send q a              ;\n"
				 " send q r1                   | recv q                ;\n"
				 " cas q z <- a[2] 1 r2        | r4 = recv q a[0..7]   ;\n"
				 " faa q b[1] <- x r1 + 3      | recv q x              ;\n"
				 " awrite q x <- y             | awrite q y <- 4       ;\n"
				 " flush q a                   | flush q all global    ;\n"
				 " flush q a[3] global         | flush q all           ;\n"
				 " fenced flush q x persistent | poll q                ;\n"
				 " fenced put q x <- 1         | r5 = poll q           ;\n"
				 " unsignaled fenced get q z <- x | if r1 = 2 x = 1    ;\n"
				 " if r0 != 3 (* why *) fenced\n"
				 "                  put q x <- z | r6 = a ;\n"
				 "observe y, P0:r1, crash:x3[5]\n"
				 "exists (P1 : r0=1 /\\ 0:r1 != 2)\n"
				 "never ~(x=1 -> true) \\/\n"
				 "   a[3]=4\n"
				 "forall crash:x = 0 // the end";

/* --- what a file says --- */

TEST(header)
{
	parse_good(everything);
	ck_assert_str_eq(test.name, "All+of-it.1");
	ck_assert_str_eq(test.doc, "What it shows, in two lines.");
	ck_assert_int_eq(test.hw.domain, DOMAIN_MHP);
	ck_assert(test.hw.ddio == DDIO_OFF);
	ck_assert_uint_eq(test.hw.mtu, 256);
	ck_assert_uint_eq(test.hw.store_buffer, 8);
	ck_assert_uint_eq(test.hw.ack_early, hardware_default.ack_early);
	parse_good("litmus t config store_buffer=0 { } P0@A ; exists true");
	ck_assert_uint_eq(test.hw.store_buffer, 0);
	ck_assert_ptr_null(test.doc);
	ck_assert_uint_eq(test.pool_bytes, 64);
}

TEST(locations)
{
	static const struct {
		const char *name, *host;
		unsigned words, off;
		bool dram;
		uint64_t first, last;
	} want[] = {
		{"x", "B", 1, 0, false, 3, 3},	 {"a", "B", 16, 64, false, 16, 16},
		{"y", "A", 1, 192, true, 7, 7},	 {"b", "A", 2, 256, false, 1, 2},
		{"x2", "B", 1, 8, false, 0, 0},	 {"x3", "B", 6, 16, false, 9, 9},
		{"z", "A", 1, 320, false, 0, 0},
	};
	parse_good(everything);
	ck_assert_uint_eq(test.locations, ROWS_OF(want));
	for (unsigned i = 0; i < ROWS_OF(want); i++) {
		const struct litmus_location *l = &test.location[i];
		ck_assert_str_eq(l->name, want[i].name);
		ck_assert_str_eq(test.host[l->host], want[i].host);
		ck_assert_uint_eq(l->words, want[i].words);
		ck_assert_uint_eq(l->off, want[i].off);
		ck_assert_int_eq(l->dram, want[i].dram);
		ck_assert_uint_eq(l->initial[0], want[i].first);
		ck_assert_uint_eq(l->initial[l->words - 1], want[i].last);
	}
	ck_assert_uint_eq(test.pool_bytes, 384);
	ck_assert_uint_eq(test.hosts, 2);
	ck_assert_uint_eq(test.qps, 1);
	ck_assert_str_eq(test.qp[0].name, "q");
	ck_assert_str_eq(test.host[test.qp[0].host[0]], "A");
	ck_assert_str_eq(test.host[test.qp[0].host[1]], "B");
}

/* A location of more than a line goes on in the next; the one after it stands in its last line. */
TEST(after)
{
	parse_good("litmus t { a[9]@A; b@A; c[7]@A = 1 after a; d@A after b } P0@A ; exists true");
	ck_assert_uint_eq(test.location[1].off, 128);
	ck_assert_uint_eq(test.location[2].off, 72);
	ck_assert_uint_eq(test.location[3].off, 136);
	ck_assert_uint_eq(test.pool_bytes, 192);
	/* After the first of three is after the second. */
	parse_good("litmus t { a@A; b@A after a; c@A after a } P0@A ; exists true");
	ck_assert_uint_eq(test.location[2].off, 16);
}

/* A statement as text: operands that do not matter are left out. */
static void tell_range(const struct litmus_range *range, char *buf)
{
	sprintf(buf + strlen(buf), " %s[%u,%u]", test.location[range->location].name, range->first,
		range->words);
}

static void tell_expr(const struct litmus_expr *e, char *buf)
{
	buf += strlen(buf);
	if (e->has_reg)
		sprintf(buf, " r%u+%llu", e->reg, (unsigned long long)e->number);
	else
		sprintf(buf, " %llu", (unsigned long long)e->number);
}

static const char *tell(const struct litmus_statement *s)
{
	static char buf[200];
	static const char *const names[LITMUS_OPS] = {
		"store",   "nt",	 "copy", "load",   "set",    "await",
		"xchg",	   "cas",	 "faa",	 "mfence", "sfence", "lfence",
		"clflush", "clflushopt", "clwb", NULL,	   "poll",   "recv"};
	static const char *const operands[LITMUS_OPS] = {"te",	"te",	"tf",  "Rf", "Re", "fe",
							 "Rfe", "RfeE", "Rfe", "",   "",   "",
							 "f",	"f",	"f",   NULL, "qr", "qTr"};
	static const struct {
		const char *name, *operands;
	} requests[] = {
		[IBV_WR_RDMA_WRITE] = {"put", "qts"},
		[IBV_WR_RDMA_WRITE_WITH_IMM] = {"putimm", "qtsi"},
		[IBV_WR_RDMA_READ] = {"get", "qtf"},
		[IBV_WR_SEND] = {"send", "qs"},
		[IBV_WR_ATOMIC_CMP_AND_SWP] = {"rcas", "qtfeE"},
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = {"rfaa", "qtfe"},
		[IBV_WR_ATOMIC_WRITE] = {"awrite", "qts"},
		[IBV_WR_FLUSH] = {"flush", "qa"},
	};
	bool is_request = s->op == LITMUS_REQUEST;
	const char *name = is_request ? requests[s->wr].name : names[s->op];
	sprintf(buf, "%s%s%s", s->fenced ? "F " : "", s->unsignaled ? "U " : "", name);
	if (s->guarded)
		sprintf(buf, "if r%u%s%llu %s%s", s->guard_reg,
			s->guard_equal ? "=" : "!=", (unsigned long long)s->guard_number,
			s->fenced ? "F " : "", name);
	for (const char *p = is_request ? requests[s->wr].operands : operands[s->op]; *p; p++) {
		if (*p == 'R' || (*p == 'r' && s->has_reg))
			sprintf(buf + strlen(buf), " r%u", s->reg);
		if (*p == 't' || (*p == 'T' && s->has_to) || (*p == 'a' && !s->all))
			tell_range(&s->to, buf);
		if (*p == 'a')
			sprintf(buf + strlen(buf), "%s%s", s->all ? " all" : "",
				s->persistent ? " persistent" : " global");
		if (*p == 'f' || (*p == 's' && !s->inlined))
			tell_range(&s->from, buf);
		if (*p == 'e' || (*p == 's' && s->inlined))
			tell_expr(&s->expr, buf);
		if (*p == 'E')
			tell_expr(&s->expr2, buf);
		if (*p == 'i')
			sprintf(buf + strlen(buf), " imm%u", s->imm);
	}
	return buf;
}

TEST(statements)
{
	static const char *const want[2][LITMUS_STATEMENTS] = {
		{"store z[0,1] 1",
		 "store z[0,1] r1+5",
		 "store b[1,1] r2+0",
		 "set r3 r4+1",
		 "xchg r0 z[0,1] 1",
		 "faa r15 b[1,1] r2+0",
		 "sfence",
		 "clflush z[0,1]",
		 "clwb b[0,2]",
		 "put x[0,1] z[0,1]",
		 "put a[0,1] r1+1",
		 "putimm a[1,1] 5 imm7",
		 "get b[0,2] a[0,2]",
		 "send r1+0",
		 "rcas z[0,1] a[2,1] 1 r2+0",
		 "rfaa b[1,1] x[0,1] r1+3",
		 "awrite x[0,1] y[0,1]",
		 "flush a[0,16] persistent",
		 "flush a[3,1] global",
		 "F flush x[0,1] persistent",
		 "F put x[0,1] 1",
		 "F U get z[0,1] x[0,1]",
		 "if r0!=3 F put x[0,1] z[0,1]"},
		{"store x[0,1] 18446744073709551615",
		 "load r1 a[3,1]",
		 "set r2 7",
		 "await x[0,1] r1+0",
		 "cas r0 x[0,1] r1+2 r3+0",
		 "mfence",
		 "lfence",
		 "clflushopt a[0,16]",
		 "clwb a[2,14]",
		 "put b[0,2] a[4,2]",
		 "putimm y[0,1] x[0,1] imm0",
		 "putimm y[0,1] r1+0 imm8",
		 "send a[0,16]",
		 "recv",
		 "recv a[0,8] r4",
		 "recv x[0,1]",
		 "awrite y[0,1] 4",
		 "flush all global",
		 "flush all persistent",
		 "poll",
		 "poll r5",
		 "if r1=2 store x[0,1] 1",
		 "load r6 a[0,1]"},
	};
	parse_good(everything);
	ck_assert_uint_eq(test.threads, 2);
	for (unsigned t = 0; t < 2; t++) {
		unsigned n = 0;
		for (; want[t][n]; n++)
			ck_assert_str_eq(tell(&test.thread[t].statement[n]), want[t][n]);
		ck_assert_uint_eq(test.thread[t].statements, n);
		ck_assert_str_eq(test.host[test.thread[t].host], t ? "B" : "A");
	}
	ck_assert_str_eq(test.thread[0].statement[22].text, "if r0 != 3 fenced put q x <- z");
	ck_assert_uint_eq(test.thread[0].statement[22].line, 40);
	ck_assert_uint_eq(test.thread[0].statement[22].column, 2);
	ck_assert_str_eq(test.thread[1].statement[0].text, "x = 0xffffffffffffffff");
	ck_assert_uint_eq(test.thread[1].statement[0].column, 32);
}

TEST(conditions)
{
	static const char *const places[] = {"y", "P0:r1", "crash:x3[5]", "P1:r0",
					     "x", "a[3]",  "crash:x"};
	char buf[64];
	parse_good(everything);
	ck_assert_uint_eq(test.observeds, ROWS_OF(places));
	for (unsigned i = 0; i < ROWS_OF(places); i++) {
		ck_assert_int_eq(litmus_place_print(&test, &test.observed[i], buf, sizeof(buf)),
				 (int)strlen(places[i]));
		ck_assert_str_eq(buf, places[i]);
	}
	ck_assert_uint_eq(test.conditions, 3);
	ck_assert_int_eq(test.condition[0].quantifier, LITMUS_EXISTS);
	ck_assert_int_eq(test.condition[1].quantifier, LITMUS_NEVER);
	ck_assert_int_eq(test.condition[2].quantifier, LITMUS_FORALL);
	ck_assert(!test.condition[0].crash && !test.condition[1].crash && test.condition[2].crash);
	ck_assert_str_eq(test.condition[0].text, "exists (P1 : r0=1 /\\ 0:r1 != 2)");
	ck_assert_str_eq(test.condition[1].text, "never ~(x=1 -> true) \\/ a[3]=4");
	ck_assert_str_eq(test.condition[2].text, "forall crash:x = 0");
	ck_assert_uint_eq(test.condition[1].line, 44);
}

/* --- what conditions mean --- */

/* Bit v of `when`: is the formula true for a, b, c = the bits of v, a the highest? */
static const struct {
	const char *formula;
	unsigned when;
} formulas[] = {
	{"true", 0xff},
	{"x=1", 0xf0},
	{"x!=1", 0x0f},
	{"~x=1", 0x0f},
	{"~~x=1", 0xf0},
	{"x=1 /\\ y=1", 0xc0},
	{"x=1 \\/ y=1", 0xfc},
	{"x=1 -> y=1", 0xcf},
	{"x=1 /\\ y=1 \\/ z=1", 0xea},
	{"z=1 \\/ x=1 /\\ y=1", 0xea},
	{"x=1 /\\ (y=1 \\/ z=1)", 0xe0},
	{"x=1 -> y=1 -> z=1", 0xbf},
	{"(x=1 -> y=1) -> z=1", 0xba},
	{"x=1 \\/ y=1 -> z=1", 0xab},
	{"~x=1 /\\ y=1", 0x0c},
	{"~(x=1 /\\ y=1)", 0x3f},
	{"x=1 -> ~y=1 \\/ z=1 /\\ true", 0xbf},
	{"((x=1)) /\\ y=1 /\\ ~(z=1)", 0x40},
	{"x=2", 0},
};

TESTS(formula, ROWS_OF(formulas))
{
	char text[300];
	snprintf(text, sizeof(text),
		 "litmus t { x@A; y@A; z@A } P0@A ; observe x, y, z forall true exists %s never "
		 "true",
		 formulas[_i].formula);
	parse_good(text);
	ck_assert_uint_eq(test.conditions, 3);
	for (unsigned v = 0; v < 8; v++) {
		uint64_t value[LITMUS_OBSERVED] = {v >> 2 & 1, v >> 1 & 1, v & 1};
		ck_assert_msg(litmus_holds(&test, &test.condition[1], value) ==
				      (formulas[_i].when >> v & 1),
			      "%s for %u", formulas[_i].formula, v);
		ck_assert(litmus_holds(&test, &test.condition[2], value));
	}
}

/* Registers that no condition names together with what is left do not tell crash outcomes apart. */
TEST(places)
{
	static const struct {
		const char *conditions, *final, *crash; /* a letter a place: does it belong? */
	} cases[] = {
		{"exists (x=1 /\\ P0:r1=0)", "yy", "ny"},
		{"observe crash:x exists (x=1 /\\ P0:r1=0)", "nyy", "yny"},
		{"exists (crash:x=1 /\\ P0:r1=0)", "ny", "yy"},
		{"observe P0:r2, x exists (crash:x=1 /\\ P0:r1=0) forall P0:r1=0", "yyny", "nnyy"},
		{"exists P0:r1=0 forall (crash:x=1) never P0:r2=0", "yny", "nyn"},
	};
	char text[300];
	bool belongs[LITMUS_OBSERVED];
	for (unsigned i = 0; i < ROWS_OF(cases); i++) {
		snprintf(text, sizeof(text), "litmus t { x@A } P0@A ; %s", cases[i].conditions);
		parse_good(text);
		ck_assert_uint_eq(test.observeds, strlen(cases[i].final));
		for (unsigned crash = 0; crash < 2; crash++) {
			const char *want = crash ? cases[i].crash : cases[i].final;
			litmus_places(&test, crash, belongs);
			for (unsigned p = 0; p < LITMUS_OBSERVED; p++)
				ck_assert_msg(belongs[p] == (p < test.observeds && want[p] == 'y'),
					      "%s: place %u", cases[i].conditions, p);
		}
	}
}

/* --- errors --- */

#define INIT	"litmus t { qp q A B; qp p B C; x@B; a[16]@B; dram d@B; y@A; b[2]@A; c@C }\n"
#define PROGRAM INIT " P0@A | P1@B ;\n"
#define END	" ; exists true"

static const struct {
	const char *text;
	unsigned line, column;
	const char *message; /* a part of it */
} errors[] = {
	{"", 1, 1, "the end of the file; expected litmus"},
	{"  lithmus t", 1, 3, "'lithmus'; expected litmus"},
	{"litmus ;", 1, 8, "';'; expected the name of the test"},
	{"litmus t \"doc", 1, 10, "a string without end"},
	{"litmus t (* doc", 1, 10, "a comment without end"},
	{"litmus t\n\"a\x01\"", 2, 3, "byte 0x01"},
	{"litmus t\n\"\xc3\xa4\" $", 2, 5, "'$'; expected"},
	{"litmus t \xc3", 1, 10, "byte 0xc3"},
	{"litmus t\n  bogus { }", 2, 3, "'bogus'; expected a string, config or {"},
	{"litmus t config domane=dmp", 1, 17, "no knob 'domane'; expected one of: domain ddio"},
	{"litmus t config domain=dnp", 1, 24, "'dnp' for domain; expected one of: dmp mhp wsp"},
	{"litmus t config domain dmp", 1, 24, "'dmp'; expected ="},
	{"litmus t config ddio=on\nconfig ddio=on", 2, 8, "ddio twice"},
	{"litmus t { x@A", 1, 15, "the end of the file; expected ;"},
	{"litmus t { x }", 1, 14, "'}'; expected @"},
	{"litmus t { x@ }", 1, 15, "'}'; expected a host"},
	{"litmus t { x@A = ; }", 1, 18, "';'; expected a number"},
	{"litmus t { x@A = 1, 2; }", 1, 21, "more values than words of x; expected 1"},
	{"litmus t { x[3]@A = 1, 2; }", 1, 25, "';'; expected as many values as words"},
	{"litmus t { x[0]@A; }", 1, 14, "'0'; expected a number of words from 1 to 512"},
	{"litmus t { x@A; qp x A B; }", 1, 20, "'x' twice"},
	{"litmus t { r3@A; }", 1, 12, "'r3' is a word of the language"},
	{"litmus t { dram crash@A; }", 1, 17, "'crash' is a word of the language"},
	{"litmus t { a2345678901234567890123456789012@A; }", 1, 12,
	 "has 32 characters; expected at most 31"},
	{"litmus t { x@A = 18446744073709551616; }", 1, 18, "'18446744073709551616' is too large"},
	{"litmus t { x@A = 0x; }", 1, 18, "'0x'; expected a number"},
	{"litmus t { x@A = -1; }", 1, 18, "'-'; expected"},
	{"litmus t { x@A after y; }", 1, 22, "'y'; expected a location, but there are none"},
	{"litmus t { x@A; y@B after x; }", 1, 27,
	 "'x' is in PM of host A; expected a location in the same"},
	{"litmus t { x[8]@A; y@A after x; }", 1, 30, "the line of 'x' has room for 0 more words"},
	{"litmus t { qp q A A; x@A }", 1, 19, "'A' twice; expected another host"},
	{"litmus t { x@A; fails A; fails B }", 1, 32, "expected one host that fails alone"},
	{"litmus t { x@A; fails B } P0@A ; exists true", 1, 23, "host B has neither"},
	{"litmus t { x@A; fails ; }", 1, 23, "expected a host"},
	{"litmus t { x@A; fails A } P0@A ; exists (P0:r0=0 /\\ x=0)", 1, 53,
	 "'x' is in memory of host A, which fails; expected crash:x"},
	{"litmus t { qp q A; }", 1, 18, "';'; expected a host"},
	{"litmus t { qp q A B; x@A } P0@A ; exists true", 1, 19, "host B has neither"},
	/* the table */
	{INIT "exists true", 2, 1, "'exists'; expected P0"},
	{INIT "P0@A | P0@B ;", 2, 8, "'P0'; expected P1"},
	{INIT "P0 ;", 2, 4, "';'; expected @"},
	{INIT "P0@A P1@B ;", 2, 6, "'P1'; expected | and the next thread"},
	{PROGRAM "y = 1 ; exists true", 3, 7, "fewer columns than threads; expected 2"},
	{PROGRAM "y = 1 | x = 1 | y = 1 ; exists true", 3, 15,
	 "more columns than threads; expected 2"},
	{PROGRAM "| | ; exists true", 3, 3, "more columns than threads; expected 2"},
	{PROGRAM "y = 1 y = 2 | ;", 3, 7, "'y'; expected | at the end of the cell"},
	{PROGRAM "y = 1 | x = 1 exists true", 3, 15, "'exists'; expected ; at the end of the row"},
	{PROGRAM "y = 1 | x = 1 ;", 3, 16, "the end of the file; expected a condition"},
	/* statements */
	{PROGRAM "z = 1 |" END, 3, 1,
	 "'z'; expected nt, copy, await, mfence, sfence, lfence, clflush, clflushopt, clwb, "
	 "poll, recv, a request such as put, or a location: x, a, d, y, b, c"},
	{PROGRAM "x = 1 |" END, 3, 1, "x is on host B; expected a location of host A"},
	{PROGRAM "y = r01 |" END, 3, 5, "'r01'; expected a register"},
	{PROGRAM "y = r1 + r2 |" END, 3, 10, "'r2'; expected a number"},
	{PROGRAM "y == 1 |" END, 3, 4, "'='; expected a number or a register"},
	{PROGRAM "1 = y |" END, 3, 1, "'1'; expected a statement"},
	{PROGRAM "y[1] = 1 |" END, 3, 3, "'1'; expected a word from 0 to 0"},
	{PROGRAM "b[0..1] = 1 |" END, 3, 1, "2 words; expected one"},
	{PROGRAM "clwb b[1..0] |" END, 3, 11, "'0'; expected a word from 1 to 1"},
	{PROGRAM "clwb b[1 |" END, 3, 10, "'|'; expected ]"},
	{PROGRAM "r1 = put |" END, 3, 6, "'put'; expected xchg, cas"},
	{PROGRAM "xchg y 1 |" END, 3, 1, "'xchg'; expected a register and = before it"},
	{PROGRAM "r1 = faa y |" END, 3, 12, "'|'; expected a number or a register"},
	{PROGRAM "put x <- 1 |" END, 3, 5, "'x'; expected a queue pair with an end on host A: q"},
	{PROGRAM "put q x <- a |" END, 3, 12, "a is on host B; expected a location of host A"},
	{PROGRAM "put q x <- b |" END, 3, 12,
	 "'b': 2 of 1 words; expected ranges of the same length"},
	{PROGRAM "put q a[0..1] <- 1 |" END, 3, 7, "2 words for one value"},
	{PROGRAM "put q x -> 1 |" END, 3, 9, "'->'; expected <-"},
	{PROGRAM "put q x <- |" END, 3, 12, "'|'; expected a location, a number or a register"},
	{PROGRAM "putimm q x <- 1 0x100000000 |" END, 3, 17,
	 "expected an immediate value from 0 to 4294967295"},
	{PROGRAM "get q b <- x |" END, 3, 12, "'x': 1 words for 2"},
	{PROGRAM "cas q y <- a[0..1] 1 2 |" END, 3, 12, "2 words; expected one"},
	{PROGRAM "flush q all everywhere |" END, 3, 13,
	 "'everywhere'; expected | at the end of the cell"},
	{PROGRAM "fenced poll q |" END, 3, 8, "'poll'; expected a request after the prefix"},
	{PROGRAM "unsignaled y = 1 |" END, 3, 12, "'y'; expected a request after the prefix"},
	{PROGRAM "fenced fenced put q x <- 1 |" END, 3, 8, "'fenced'; expected the prefix once"},
	{PROGRAM "if y = 1 y = 1 |" END, 3, 4, "'y'; expected a register"},
	{PROGRAM "if r1 + 1 y = 1 |" END, 3, 7, "'+'; expected = or !="},
	{PROGRAM "if r1 = 1 if r2 = 1 y = 1 |" END, 3, 11,
	 "'if'; expected one `if` in a statement"},
	{PROGRAM "if r1 = 1 |" END, 3, 11, "'|'; expected a statement"},
	{PROGRAM "recv q 7 |" END, 3, 8, "'7'; expected | at the end"},
	/* conditions */
	{PROGRAM "exists", 3, 7, "the end of the file; expected a place"},
	{PROGRAM "exists z=1", 3, 8, "'z'; expected a location: x, a"},
	{PROGRAM "exists P2:r1=1", 3, 8, "'P2'; expected a thread, P0 to P1"},
	{PROGRAM "exists P1:x=1", 3, 11, "'x'; expected a register"},
	{PROGRAM "exists r1=1", 3, 8, "'r1'; expected a place"},
	{PROGRAM "exists crash:d=1", 3, 14, "'d' is in DRAM"},
	{PROGRAM "exists crash x=1", 3, 14, "'x'; expected :"},
	{PROGRAM "exists a[16]=1", 3, 10, "'16'; expected a word from 0 to 15"},
	{PROGRAM "exists a[0..1]=1", 3, 11, "'..'; expected ]"},
	{PROGRAM "exists x<-1", 3, 9, "'<-'; expected = or !="},
	{PROGRAM "exists x=y", 3, 10, "'y'; expected a number"},
	{PROGRAM "exists x=1 /\\ crash:x=1", 3, 15,
	 "'crash'; expected memory before a power failure"},
	{PROGRAM "exists x=1 y=1", 3, 12,
	 "'y'; expected an operator, exists, never, forall or the end"},
	{PROGRAM "exists x=1 /\\", 3, 14, "the end of the file; expected a place"},
	{PROGRAM "observe", 3, 8, "the end of the file; expected a place"},
	{PROGRAM "observe x", 3, 10, "the end of the file; expected a condition"},
	{PROGRAM "observe x, exists true", 3, 12, "'exists'; expected a location"},
};

TESTS(wrong, ROWS_OF(errors))
{
	int rc = parse(errors[_i].text);
	ck_assert_msg(rc == -EINVAL, "accepted: %s", errors[_i].text);
	ck_assert_msg(error.line == errors[_i].line && error.column == errors[_i].column &&
			      strstr(error.message, errors[_i].message),
		      "%s\ngives  %u:%u: %s\nwanted %u:%u: %s", errors[_i].text, error.line,
		      error.column, error.message, errors[_i].line, errors[_i].column,
		      errors[_i].message);
}

/* --- limits: as much as is allowed is read, one more is an error --- */

/* "before", `n` times `each` with its number in the place of #, "after" */
static int parse_many(const char *before, const char *each, unsigned n, const char *after)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fputs(before, out);
	for (unsigned i = 0; i < n; i++)
		for (const char *p = each; *p; p++)
			if (*p == '#')
				fprintf(out, "%u", i);
			else
				fputc(*p, out);
	fputs(after, out);
	fclose(out);
	int rc = parse(text);
	free(text);
	return rc;
}

#define T "litmus t { qp q A B; x@A; z[64]@B } P0@A | P1@B ; "

static const struct {
	const char *before, *each, *after;
	unsigned limit;
	const char *message;
} limits[] = {
	{"litmus t {", "x#@A;", "} P0@A ; exists true", 32, "more than 32 locations"},
	{"litmus t { x@A; y@B;", "qp q# A B;", "} P0@A ; exists true", 8,
	 "more than 8 queue pairs"},
	{"litmus t {", "x#@H#;", "} P0@H0 ; exists true", 8, "more than 8 hosts"},
	{"litmus t { } P0@A", "| P#@A", "; exists true", 0, "'P0'; expected P1"},
	{T, "x = # | ; ", "exists true", 32, "more than 32 statements of P0"},
	{T, "exists P0:r0 = # ", "", 8, "more than 8 conditions"},
	{T "observe P0:r0", ", z[#]", " exists true", 47, "more than 48 places"},
	{T "exists ", "(", "", 0, "the end of the file"},
	{T "exists x=1", " /\\ P0:r0 = #", "", 127, "more than 256 atoms and operators"},
};

TESTS(limit, ROWS_OF(limits))
{
	unsigned n = limits[_i].limit;
	int rc = parse_many(limits[_i].before, limits[_i].each, n, limits[_i].after);
	if (n)
		ck_assert_msg(!rc, "%s: %u:%u: %s", limits[_i].message, error.line, error.column,
			      error.message);
	rc = parse_many(limits[_i].before, limits[_i].each, n + 1, limits[_i].after);
	ck_assert_int_eq(rc, -EINVAL);
	ck_assert_msg(strstr(error.message, limits[_i].message), "%s", error.message);
}

/* Threads; and parentheses, of which a million would exhaust the stack. */
TEST(nested)
{
	parse_good("litmus t { } P0@A|P1@A|P2@A|P3@A|P4@A|P5@A|P6@A|P7@A ; exists P7:r0=0");
	ck_assert_int_eq(
		parse("litmus t { } P0@A|P1@A|P2@A|P3@A|P4@A|P5@A|P6@A|P7@A|P8@A ; exists true"),
		-EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "more than 8 threads"));
	ck_assert_int_eq(parse_many(T "exists ", "(", 1000000, ""), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "more than 64 ( and ~"));
	ck_assert_int_eq(parse_many(T "exists ", "~", 1000000, ""), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "more than 64 ( and ~"));
	ck_assert_int_eq(parse_many(T "exists true", "-> true", 1000000, ""), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error.message, "more than 256 atoms and operators"));
}

/* Long texts are cut, not run over. */
TEST(cut)
{
	ck_assert_int_eq(parse_many(T "x = 1", "          ", 50, "| ; exists x=1"), 0);
	ck_assert_str_eq(test.thread[0].statement[0].text, "x = 1");
	ck_assert_int_eq(parse_many(T "if r1 = ", "0", 100, " x = 1 | ; exists x=1"), 0);
	ck_assert_uint_eq(strlen(test.thread[0].statement[0].text),
			  sizeof(test.thread[0].statement[0].text) - 1);
	ck_assert_int_eq(parse_many(T "exists x=1", " /\\ x=1", 100, ""), 0);
	ck_assert_uint_eq(strlen(test.condition[0].text), sizeof(test.condition[0].text) - 1);
}

/* --- garbage --- */

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* What was read is in range, whatever it was. */
static void check_range(const struct litmus_range *range)
{
	ck_assert_uint_lt(range->location, LITMUS_LOCATIONS);
	if (range->words)
		ck_assert_uint_le(range->first + range->words,
				  test.location[range->location].words);
}

static void check_good(void)
{
	uint64_t value[LITMUS_OBSERVED] = {0};
	char buf[100];
	ck_assert(test.conditions && test.threads && test.pool_bytes % 64 == 0);
	for (unsigned i = 0; i < test.locations; i++)
		ck_assert_uint_le(test.location[i].off + test.location[i].words * 8u,
				  test.pool_bytes);
	for (unsigned t = 0; t < test.threads; t++) {
		for (unsigned i = 0; i < test.thread[t].statements; i++) {
			const struct litmus_statement *s = &test.thread[t].statement[i];
			ck_assert_uint_lt(s->op, LITMUS_OPS);
			ck_assert_uint_lt(s->qp, LITMUS_QPS);
			check_range(&s->from);
			check_range(&s->to);
		}
	}
	for (unsigned i = 0; i < test.observeds; i++)
		litmus_place_print(&test, &test.observed[i], buf, sizeof(buf));
	for (unsigned c = 0; c < test.conditions; c++)
		litmus_holds(&test, &test.condition[c], value);
}

/* Change, remove, repeat or insert a few bytes, or move a piece of the text. */
static size_t mutate(char *text, size_t len, size_t room, uint64_t *seed)
{
	static const char bytes[] = "{}()[];|@=<->/\\~:.,+\"*x0Pr1 \n\xc3\x01";
	for (unsigned n = 1 + (unsigned)next_random(seed) % 4; n; n--) {
		size_t at = next_random(seed) % len, piece = 1 + next_random(seed) % 12;
		char byte = bytes[next_random(seed) % (sizeof(bytes) - 1)];
		if (piece > len - at)
			piece = len - at;
		switch (next_random(seed) % 4) {
		case 0:
			text[at] = byte;
			break;
		case 1:
			if (len - piece < 2)
				break;
			memmove(text + at, text + at + piece, len - at - piece);
			len -= piece;
			break;
		case 2:
			if (len + piece > room)
				break;
			memmove(text + at + piece, text + at, len - at);
			len += piece;
			break;
		default:
			if (len + 1 > room)
				break;
			memmove(text + at + 1, text + at, len - at);
			text[at] = byte;
			len++;
		}
	}
	return len;
}

TEST(garbage)
{
	static const char small[] = PROGRAM "y = 1 | r1 = x ; put q x <- y | clwb x ; exists "
					    "(P1:r1=1 /\\ ~x=1) forall crash:x=0";
	uint64_t seed = 1;
	unsigned good = 0;
	for (unsigned i = 0; i < 20000; i++) {
		const char *from = i % 2 ? small : everything;
		size_t len = strlen(from), room = len + 64;
		/* As long as its text, so that reading after its end is seen. */
		char *text = malloc(room), *exact;
		memcpy(text, from, len);
		len = i % 16 == 15 ? next_random(&seed) % len : mutate(text, len, room, &seed);
		exact = malloc(len ? len : 1);
		memcpy(exact, text, len);
		litmus_free(&test);
		if (!litmus_parse(&test, exact, len, &error)) {
			check_good();
			good++;
		} else {
			ck_assert(error.line && error.column && error.message[0]);
			ck_assert_uint_lt(strlen(error.message), sizeof(error.message));
		}
		free(exact);
		free(text);
	}
	ck_assert_uint_gt(good, 100); /* it is not all nonsense */
}

static void free_test(void)
{
	litmus_free(&test);
}

RUN_TESTS(NULL, free_test)
