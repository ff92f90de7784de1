/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces: written, read and written again for both stores; what hand-edited traces
 * may look like; a table of bad ones with the line and the words of each error; and
 * saving where it must fail.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "checker/judge/history.h"
#include "checker/trace/trace.h"
#include "core/stores/efactory/efactory.h"
#include "core/stores/erda/erda.h"
#include "tests/suite.h"

/* --- helpers --- */

/* Of a test. */
static struct trace t;
static struct input_error err;

static const struct tm_store *const stores[] = {&efactory_store, &erda_store};

static const struct tm_store *find_store(const char *name)
{
	for (unsigned i = 0; i < ROWS_OF(stores); i++)
		if (!strcmp(stores[i]->name, name))
			return stores[i];
	return NULL;
}

static int read_bytes(const char *text, size_t len, struct trace *t, struct input_error *err)
{
	FILE *in = tmpfile();
	ck_assert_ptr_nonnull(in);
	ck_assert_uint_eq(fwrite(text, 1, len, in), len);
	rewind(in);
	int rc = trace_read_file(in, t, find_store, err);
	fclose(in);
	return rc;
}

static void read_good(const char *text, struct trace *t)
{
	struct input_error err;
	int rc = read_bytes(text, strlen(text), t, &err);
	ck_assert_msg(rc == 0, "line %u: %s\n%s", err.line, err.message, text);
	ck_assert_uint_eq(err.line, 0);
}

/* To be freed. */
static char *written(const struct setup *s, const struct deviations *d, enum tm_contract contract,
		     const char *verdict)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	ck_assert_int_eq(trace_write(out, s, d, contract, verdict), 0);
	fclose(out);
	return text;
}

static char *print(const struct trace *t)
{
	return written(&t->setup, &t->deviations, t->contract, t->verdict);
}

/* A text that is not a trace. */
static void refused(const char *text, size_t len, unsigned line, const char *message)
{
	struct trace t;
	struct input_error err;
	ck_assert_int_eq(read_bytes(text, len, &t, &err), -EINVAL);
	ck_assert_msg(err.line == line && strstr(err.message, message), "%s\nline %u: %s",
		      len < 4096 ? text : "a long text", err.line, err.message);
	for (const char *p = err.message; *p; p++)
		ck_assert(isprint((unsigned char)*p));
	ck_assert_ptr_null(t.setup.store);
	ck_assert_uint_eq(t.deviations.n, 0);
}

static void assert_prints(const char *text, const char *want)
{
	struct trace t;
	read_good(text, &t);
	char *got = print(&t);
	ck_assert_str_eq(got, want);
	free(got);
	trace_free(&t);
}

#define CONFIG                                                                          \
	"config domain=dmp ddio=on rqwrb=dram transport=ib mtu=1024 dma_order=left "    \
	"read_order=left "                                                              \
	"line_torn=off iio_in_mhp=on ack_early=on rkey_reuse=off flush_covers_send=on " \
	"store_buffer=0\n"
#define HEAD   "tidemark-trace 1\nstore erda\n"
#define BODY   "keys k1 160, k2 -\nclient 1: put k1 96, put k1 96\nclient 2: get k1\n"
#define BROKEN "broken MONO: client 2 read k1=v2 before the crash; after recovery k1=v1\n"
#define POWER  "deviate c2 c2.get1 power after return 1: fails\n"

/* --- there and back --- */

/* One deviation of each kind, through two power failures. */
static const char *const deviations[] = {
	"c1 c1.put1 before store 3: delay for ever",
	"server/verifier - before flush 1: delay 5ms",
	"c1/qp1 c1.put2 message 2 packet 1 try 1: delay 2us",
	"c1/qp1 c1.put2 message 2 packet 1 try 2 copy 1: lose",
	"server/qp1 c1.put1#2 message 1 ack 0 try 1: duplicate",
	"server/qp1 c1.put2 landing message 2 packet 0 line 1: delay 8us",
	"server/qp1 c1.put2 order message 2 packet 0 landed 0: 1 ahead",
	"server/qp2 c2.get1 reading message 1 packet 0 line 1 try 2: delay 100ns",
	"server/qp1 c1.put2 draining message 2 packet 0 line 40: delay 30us",
	"c1 c1.put1 cache: write back all",
	"c2 c2.get1 power after return 1: fails",
	"line table+0x0: version 0 of 2",
	"line table+0x40: version 1 of 3 cut after word 5",
	"server - before store 9: delay 100ms",
	"c3 - life 1: put key 2",
	"c4 - life 1: clean",
	"c3 - life 2: del key 1",
	"c4 - life 2: put key 1 long",
	"c3 - life 3: get key 2",
	"c4 - life 3: put key 1 and the next",
	"server - power before fence 1: fails",
	"line table+0x0 at crash 2: version 0 of 1",
	"- - power at end: fails",
	"line table+0x0 at crash 3: version 0 of 1",
	"c3/qp1 c3.get2 message 1 packet 0 try 1: lose",
};

static char *full_trace(const char *store, const char *variant, const char *knob,
			const char *verdict)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fprintf(out, "tidemark-trace 1\nstore %s\nvariant %s\n" CONFIG "%s" BODY, store, variant,
		knob);
	for (unsigned i = 0; i < ROWS_OF(deviations); i++)
		fprintf(out, "deviate %s\n", deviations[i]);
	fprintf(out, "%s", verdict);
	fclose(out);
	return text;
}

static const struct {
	const char *store, *variant, *knob, *verdict;
} full[] = {
	{"erda", "default", "", BROKEN},
	{"erda", "default", "knob repair=cond\nknob seg=small\n", "broken KEEP\n"},
	{"erda", "two_stores", "knob repair=cond\n", "broken none\n"},
	{"erda", "two_stores", "knob confirm=off\nknob bug=none\n", "broken none: all is well\n"},
	{"efactory", "default", "", "broken FSCK: entry 1: a flag: ahead of its data\n"},
	{"efactory", "get_no_crc", "knob timeout=1ms\n",
	 "broken RDA: 100% mixed, \"quotes\" and 'more'\n"},
};

TESTS(round_trip, ROWS_OF(full))
{
	char *text = full_trace(full[_i].store, full[_i].variant, full[_i].knob, full[_i].verdict);

	read_good(text, &t);
	ck_assert_str_eq(t.setup.store->name, full[_i].store);
	ck_assert_str_eq(t.setup.variant, full[_i].variant);
	ck_assert_uint_eq(t.setup.w.clients, 2);
	ck_assert_int_eq(t.setup.w.key[0].loaded, 160);
	ck_assert_ptr_nonnull(t.setup.image);
	ck_assert_uint_eq(t.deviations.n, ROWS_OF(deviations));
	ck_assert_uint_eq(t.deviations.d[1].line, t.deviations.d[0].line + 1);
	char *again = print(&t);
	ck_assert_str_eq(again, text);
	free(again);
	free(text);
	trace_free(&t);
}

/* Every variant of every store. */
TESTS(variants, ROWS_OF(stores))
{
	for (const struct tm_variant *v = stores[_i]->variants; v->name; v++) {
		char *text = full_trace(stores[_i]->name, v->name, "", BROKEN);
		assert_prints(text, text);
		free(text);
	}
}

/* Every value of every knob, of store and hardware. */
TESTS(knobs, ROWS_OF(stores))
{
	struct setup s;
	struct deviations none = {0};
	const char *expected;

	for (unsigned k = 0; stores[_i]->knobs[k].name || hardware_knob(k)->name; k++)
		for (unsigned hardware = 0; hardware < 2; hardware++) {
			const char *name = hardware ? hardware_knob(k)->name : NULL, *values = "";
			if (hardware && name)
				values = hardware_knob(k)->values;
			for (unsigned i = 0; !hardware && i <= k && stores[_i]->knobs[i].name; i++)
				if (i == k) {
					name = stores[_i]->knobs[k].name;
					values = stores[_i]->knobs[k].values;
				}
			while (name && *values) {
				char value[64];
				size_t n = strcspn(values, " ");
				snprintf(value, sizeof(value), "%.*s", (int)n, values);
				values += n + (values[n] != '\0');
				setup_init(&s, stores[_i]);
				ck_assert_int_eq(setup_knob(&s, name, value, &expected), 0);
				ck_assert_int_eq(
					workload_parse_client(&s.w, 1, "put k1 40", &expected), 0);
				ck_assert_int_eq(setup_finish(&s), 0);
				char *text = written(&s, &none, TM_DUR, "lost");
				read_good(text, &t);
				ck_assert_mem_eq(t.setup.params.knob, s.params.knob,
						 sizeof(s.params.knob));
				ck_assert_mem_eq(&t.setup.hw, &s.hw, sizeof(s.hw));
				ck_assert_int_eq(t.contract, TM_DUR);
				ck_assert_str_eq(t.verdict, "lost");
				trace_free(&t);
				setup_free(&s);
				free(text);
			}
		}
}

TEST(contracts)
{
	for (int c = 0; c < TM_CONTRACTS; c++) {
		char text[512];
		ck_assert_int_eq(contract_parse(contract_name((enum tm_contract)c)), c);
		ck_assert_ptr_nonnull(strstr(contract_names(), contract_name((enum tm_contract)c)));
		snprintf(text, sizeof(text), HEAD "variant default\n" CONFIG BODY "broken %s: x\n",
			 contract_name((enum tm_contract)c));
		assert_prints(text, text);
	}
	ck_assert_int_eq(contract_parse(""), -EINVAL);
	ck_assert_int_eq(contract_parse("mono"), -EINVAL);
	ck_assert_int_eq(contract_parse("MONOX"), -EINVAL);
}

/* --- by hand --- */

static const char plain[] = HEAD "variant default\n" CONFIG BODY POWER BROKEN;

TEST(edited)
{
	/* Comments, blanks, CRLF, and all that has a default left out. */
	assert_prints(
		"tidemark-trace 1 \r\n\r\n# seen on a Tuesday, caf\xc3\xa9\r\n  store   "
		"erda\t\r\n" BODY
		"  # the power\n\tdeviate  c2   c2.get1 power\tafter return 1: fails  \r\n" BROKEN
		"\n# the end\n",
		plain);
	/* Several knobs in a line; clients in any order, one left out, one without operations. */
	assert_prints(HEAD "knob seg=small heads=2\nclient 3: get k2\nclient 1:\n"
			   "broken none\n",
		      HEAD "variant default\n" CONFIG
			   "knob seg=small\nknob heads=2\nkeys k2 -\nclient 1:\n"
			   "client 2:\nclient 3: get k2\nbroken none\n");
	/* A knob set back to what it is anyway. */
	assert_prints(HEAD "knob seg=large\n" BODY POWER BROKEN, plain);
}

/* A verdict is one line of printable text, whatever it was. */
TEST(verdicts)
{
	static const struct {
		const char *verdict, *line;
	} cases[] = {
		{NULL, "broken DUR\n"},
		{"", "broken DUR\n"},
		{" \n", "broken DUR\n"},
		{"two\nlines\tand \x1b[31m", "broken DUR: two lines and ?[31m\n"},
	};
	char longer[2 * TRACE_VERDICT_SIZE];

	read_good(plain, &t);
	for (unsigned i = 0; i < ROWS_OF(cases); i++) {
		char *text = written(&t.setup, &t.deviations, TM_DUR, cases[i].verdict);
		ck_assert_str_eq(strstr(text, "broken"), cases[i].line);
		free(text);
	}
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	char *text = written(&t.setup, &t.deviations, TM_DUR, longer);
	trace_free(&t);
	read_good(text, &t);
	ck_assert_uint_eq(strlen(t.verdict), TRACE_VERDICT_SIZE - 1);
	free(text);
	trace_free(&t);
}

/* The longest workload that a run can have. */
TEST(large)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	fputs(HEAD "variant default\n" CONFIG "keys user0000000000000000000000000007 8\nclient 1: ",
	      out);
	for (int i = 0; i < HISTORY_OPS - (2 + LIFE_OPS) * SETUP_POWER_FAILURES - 1; i++)
		fprintf(out, "%sput user0000000000000000000000000007 8", i ? ", " : "");
	fputs("\nbroken none\n", out);
	fclose(out);
	ck_assert_uint_gt(len, 65536);
	assert_prints(text, text);
	free(text);
}

/* --- bad traces --- */

#define KEYS8(p)	p "1 -, " p "2 -, " p "3 -, " p "4 -, " p "5 -, " p "6 -, " p "7 -, " p "8 -"
#define DEV(words)	HEAD BODY POWER "deviate " words "\n" BROKEN
#define NO_POWER(words) HEAD BODY "deviate " words "\n" BROKEN

static const struct {
	const char *text;
	unsigned line;
	const char *message;
} bad[] = {
	/* the version */
	{"", 0, "an empty file; expected \"tidemark-trace 1\""},
	{"\n", 1, "not a trace: the first line is ''; expected \"tidemark-trace 1\""},
	{"store erda\n", 1, "not a trace: the first line is 'store erda'"},
	{"\x7f"
	 "ELF\x02\x01\n",
	 1, "not a trace: the first line is '?ELF"},
	{"tidemark-trace 2\nstore erda\n", 1, "'tidemark-trace 2': this program reads version 1"},
	/* the end */
	{"tidemark-trace 1", 1, "truncated: no \"broken\" line at the end"},
	{HEAD BODY, 5, "truncated: no \"broken\" line"},
	{HEAD BODY POWER "broken MONO: client 2 re", 7, "truncated: the last line has no end"},
	{HEAD BODY POWER BROKEN "# to be continued", 8, "truncated: the last line has no end"},
	{HEAD BODY BROKEN POWER, 7, "'deviate' after 'broken'; expected nothing more"},
	{HEAD BODY BROKEN BROKEN, 7, "a second 'broken' line; the first is line 6"},
	/* places that are taken away */
	{HEAD "without erda/log.c:nowhere:pmem_persist\n", 3,
	 "there is no such place (any more); expected one of those that `tidemark ablate erda` "
	 "shows"},
	{HEAD "without erda/client.c:entry_is:rt_check\nwithout erda/client.c:entry_is:rt_check\n",
	 4, "twice; the first is on line 3"},
	/* words and their order */
	{HEAD "stores erda\n", 3, "'stores'; expected store, build, variant, config"},
	{HEAD "0123456789012345678901234567890123456789x y\n", 3,
	 "'0123456789012345678901234567890123456789...'"},
	{"tidemark-trace 1\nvariant default\n", 2,
	 "'variant' before 'store'; expected \"store NAME\" first"},
	{HEAD "store erda\n", 3, "a second 'store' line; the first is line 2"},
	{HEAD "build 12\n", 3, "build '12'; expected 16 digits of a hexadecimal number"},
	{HEAD "variant default\nbuild 0123456789abcdef\n", 4,
	 "'build' after 'variant'; expected before it"},
	{HEAD "knob seg=small\nvariant default\n", 4, "'variant' after 'knob'; expected before it"},
	{HEAD "variant\n", 3, "nothing after 'variant'"},
	/* names */
	{"tidemark-trace 1\nstore edra\n", 2, "store 'edra'; expected one of those"},
	{"tidemark-trace 1\nstore erda efactory\n", 2, "'efactory' after the store"},
	{HEAD "variant fast\n", 3,
	 "variant 'fast'; expected one of erda's that `tidemark list` shows"},
	{HEAD "variant 01234567890123456789012345678901234567890123456789\n", 3,
	 "variant '0123456789012345678901234567890123456789...'"},
	{HEAD "config domain\n", 3, "'domain'; expected NAME=VALUE"},
	{HEAD "config dommain=dmp\n", 3, "config 'dommain'; expected one of: domain ddio"},
	{HEAD "config domain=adr\n", 3, "config domain='adr'; expected one of: dmp mhp wsp"},
	{HEAD "config mtu=1024 mtu=512\n", 3, "config mtu twice"},
	{HEAD "knob repairs=cond\n", 3, "knob 'repairs'; expected one of erda's"},
	{HEAD "knob repair=never\n", 3,
	 "knob repair='never'; expected one of: cond+recheck+age cond+recheck"},
	{HEAD "knob bug=ladybird\n", 3, "knob bug='ladybird'; expected one of: none crc_unchecked"},
	{HEAD "knob seg=small\nknob seg=large\n", 4, "knob seg twice; the first is on line 3"},
	{HEAD BODY "broken\tMONOS: x\n", 6, "contract 'MONOS'; expected one of: RDA LIN "},
	{HEAD BODY "broken MONO x\n", 6, "'x' after MONO; expected \": \" and a sentence"},
	/* the workload */
	{HEAD "keys k1\n", 3, "keys 'k1'; expected KEY LENGTH, or KEY -"},
	{HEAD "keys k1 8, k1 9\n", 3, "expected each key once"},
	{HEAD "keys k1 65537\n", 3, "length from 0 to 65536"},
	{HEAD "keys k1#1 8\n", 3, "expected a key of 1 to 32"},
	{HEAD "client\n", 3, "nothing after 'client'"},
	{HEAD "client 1 put k1 8\n", 3,
	 "client '1 put k1 8'; expected \"client N: OPERATIONS\", N from 1 to 16"},
	{HEAD "client 0: put k1 8\n", 3, "N from 1 to 16"},
	{HEAD "client 4294967297: put k1 8\n", 3, "N from 1 to 16"},
	{HEAD "client 1: get k1\nclient 1: get k2\n", 4, "client 1 twice; the first is on line 3"},
	{HEAD "client 1: cas k1 8\n", 3,
	 "client 1: 'cas k1 8'; expected an operation: put, get, del, clean, leave, die or pause"},
	{HEAD "client 1: put k1\n", 3, "expected put KEY LENGTH"},
	{HEAD "client 1: get k1,\n", 3, "expected an operation"},
	{HEAD BROKEN, 3,
	 "broken without a client; expected a line such as \"client 1: put k1 96\""},
	{HEAD "client 1:\nbroken none\n", 3, "a workload without keys"},
	{HEAD
	 "keys " KEYS8("a") "," KEYS8("b") "," KEYS8("c") "," KEYS8("d") "," KEYS8("e") "," KEYS8(
		 "f") "," KEYS8("g") "," KEYS8("h") ", i -\nclient 1: get i\nbroken none\n",
	 4, "65 keys; expected at most 64"},
	/* deviations: more of them in the test of deviations */
	{DEV("c2 c2.get1 cache"), 7,
	 "'c2 c2.get1 cache'; expected \"WHO OPERATION POINT: ANSWER\""},
	{DEV("c2 c2.gets1 cache: write back all"), 7, "expected an operation such as"},
	{DEV("c2 c2.get1 caches: write back all"), 7, "expected a point such as"},
	{DEV("c2 c2.get1 cache: write back all # really"), 7, "expected \"write back all\""},
	{DEV("line log+0x7: version 0 of 2"), 7, "expected the name of a line"},
	{DEV("line log+0x40000000: version 0 of 2"), 7, "expected the name of a line"},
	{NO_POWER("line log+0x0: version 0 of 2"), 6,
	 "a line of power failure 1; expected after that power failure"},
	{DEV("line log+0x0 at crash 2: version 0 of 2"), 7, "a line of power failure 2"},
	{DEV("line log+0x0: version 0 of 2\ndeviate line log+0x0: version 1 of 2"), 8,
	 "deviates twice at one point; the first is on line 7"},
	{NO_POWER("c1 c1.put1 cache: write back all\ndeviate c1 c1.put1 cache: write back dirty "
		  "line 1"),
	 7, "deviates twice at one point; the first is on line 6"},
	{DEV("c1 c1.put3 cache: write back all"), 7, "c1.put3 is no operation of this trace"},
	{DEV("c1 c1.open65 cache: write back all"), 7, "c1.open65 is no operation"},
	{DEV("server c5.get1 before store 1: delay 2us"), 7, "c5.get1 is no operation"},
	{DEV("c5 c1.put1 before store 1: delay 2us"), 7,
	 "'c5' is not in this trace; expected \"c1\" to \"c4\""},
	{DEV("servers c1.put1 before store 1: delay 2us"), 7, "'servers' is not in this trace"},
	{DEV("server - power before fence 1: fails\ndeviate server - power before fence 1: fails\n"
	     "deviate server - power before fence 1: fails"),
	 9, "a power failure more than 3"},
	/* bytes */
	{HEAD "# \x1b[31m\n", 3, "byte 0x1b at column 3; expected printable ASCII"},
	{HEAD "client 1: get k\xc3\xa4\n", 3, "byte 0xc3 at column 16; expected printable ASCII"},
	{HEAD "client 1: get k1\rclient 2: get k1\n", 3, "byte 0x0d at column 17"},
	{"\xef\xbb\xbf" HEAD, 1, "not a trace"},
};

TESTS(bad_traces, ROWS_OF(bad))
{
	refused(bad[_i].text, strlen(bad[_i].text), bad[_i].line, bad[_i].message);
}

TEST(nul_bytes)
{
	static const char inside[] = HEAD "client 1: get k\0"
					  "1\n",
			  first[] = "tidemark-trace 1\0\n";

	refused(inside, sizeof(inside) - 1, 3, "a NUL byte at column 16; expected text");
	refused(first, sizeof(first) - 1, 1, "");
}

/* `len` bytes are a trace up to a limit, and refused beyond. */
static void up_to(const char *text, size_t len, bool good, unsigned line, const char *message)
{
	struct trace t;
	struct input_error err;
	if (!good) {
		refused(text, len, line, message);
		return;
	}
	ck_assert_int_eq(read_bytes(text, len, &t, &err), 0);
	trace_free(&t);
}

/* Long lines, and long files of short lines, up to what is allowed and beyond. */
TEST(long_lines)
{
	size_t limit = TRACE_LINE_MAX, room = 4u << 20, tail = strlen(BODY BROKEN),
	       head = strlen(HEAD);
	static const size_t more[] = {0, 1, 1000000 - TRACE_LINE_MAX, (3u << 20) - TRACE_LINE_MAX};
	char *text = malloc(room);

	for (unsigned i = 0; i < ROWS_OF(more); i++) {
		memset(text, '#', room);
		memcpy(text, HEAD, head);
		text[head + limit + more[i]] = '\n';
		memcpy(text + head + limit + more[i] + 1, BODY BROKEN, tail);
		up_to(text, head + limit + more[i] + 1 + tail, !more[i], 3,
		      "a line of more than 262144 bytes");
	}
	for (size_t len = TRACE_FILE_MAX; len <= TRACE_FILE_MAX + 1; len++) {
		memset(text, '\n', room);
		memcpy(text, HEAD BODY BROKEN, head + tail);
		up_to(text, len, len == TRACE_FILE_MAX, 0,
		      "more than 1048576 bytes; expected a trace");
	}
	free(text);
}

/* Between this beginning and this end a line is repeated: too often. */
static const struct {
	const char *begins, *repeated, *ends;
	int times;
	unsigned line;
	const char *message;
} too_large[] = {
	{"tidemark-trace 1\nstore efactory\nclient 1: get k1", ", get k1", "\nbroken none\n",
	 HISTORY_OPS, 3, "expected at most 4096 operations of all clients together"},
	{"tidemark-trace 1\nstore efactory\nclient 1: get k1", ", get k1", "\nbroken none\n",
	 HISTORY_OPS - 1, 3, "4120 operations, those of loading and of reading back included"},
	{HEAD BODY, "deviate c1 c1.put1 before store %d: delay 2us\n", BROKEN, TRACE_DEVIATIONS + 1,
	 6 + TRACE_DEVIATIONS, "more than 4096 deviations"},
};

TESTS(too_many_of_something, ROWS_OF(too_large))
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fputs(too_large[_i].begins, out);
	for (int i = 0; i < too_large[_i].times; i++)
		fprintf(out, too_large[_i].repeated, i);
	fputs(too_large[_i].ends, out);
	fclose(out);
	refused(text, len, too_large[_i].line, too_large[_i].message);
	free(text);
}

/* Each beginning of a trace is an error, and nothing worse. */
TEST(every_prefix)
{
	char *text = full_trace("erda", "two_stores", "knob repair=cond\n", BROKEN);

	for (size_t len = 0; len < strlen(text); len++)
		if (read_bytes(text, len, &t, &err) != -EINVAL || !*err.message)
			ck_abort_msg("the first %zu bytes", len);
	free(text);
}

/* Each byte in turn is another one: an error, or a trace that can be written. */
TEST(every_byte)
{
	static const char other[] = "0 \n:9#\xff";
	char *text = full_trace("efactory", "get_no_crc", "", BROKEN);
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		char was = text[i];
		text[i] = other[i % (sizeof(other) - 1)];
		int rc = read_bytes(text, len, &t, &err);
		if (rc && (rc != -EINVAL || !*err.message))
			ck_abort_msg("byte %zu: error %d, '%s'", i, rc, err.message);
		if (!rc) {
			free(print(&t));
			trace_free(&t);
		}
		text[i] = was;
	}
	free(text);
}

/* --- files --- */

static char folder[64];

static void make_folder(void)
{
	strcpy(folder, "/tmp/tidemark-trace-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Number of names in the folder; removes all of them. */
static unsigned empty_folder(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;
	ck_assert_ptr_nonnull(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char path[512];
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		ck_assert_int_eq(remove(path), 0);
		n++;
	}
	closedir(dir);
	return n;
}

static void remove_folder(void)
{
	empty_folder();
	rmdir(folder);
}

static int save(const char *path)
{
	struct trace t;
	read_good(plain, &t);
	int rc = trace_save(path, &t.setup, &t.deviations, t.contract, t.verdict);
	trace_free(&t);
	return rc;
}

static void in_folder(const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", folder, name);
}

TEST(saves)
{
	char path[128];

	in_folder("a.trace", path);
	for (int times = 0; times < 2; times++) { /* the second one replaces the first */
		ck_assert_int_eq(save(path), 0);
		ck_assert_int_eq(trace_read(path, &t, find_store, &err), 0);
		char *text = print(&t);
		ck_assert_str_eq(text, plain);
		free(text);
		trace_free(&t);
	}
	ck_assert_uint_eq(empty_folder(), 1);
}

TEST(saves_beside_leftovers)
{
	char path[128], left[160];

	in_folder("a.trace", path);
	snprintf(left, sizeof(left), "%s.tmp.%ld.0", path, (long)getpid());
	fclose(fopen(left, "w"));
	ck_assert_int_eq(save(path), 0);
	ck_assert_int_eq(access(left, F_OK), 0); /* not ours */
	ck_assert_uint_eq(empty_folder(), 2);
}

/* A full disk, as a file size limit makes one: the old trace stays, nothing else does. */
TEST(disk_full)
{
	char path[128];
	struct rlimit before, small = {100, 100};

	in_folder("a.trace", path);
	ck_assert_int_eq(save(path), 0);
	read_good(plain, &t);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	int rc = trace_save(path, &t.setup, &t.deviations, TM_DUR, "another");
	setrlimit(RLIMIT_FSIZE, &before);
	trace_free(&t);
	ck_assert_int_eq(rc, -EFBIG);
	ck_assert_int_eq(trace_read(path, &t, find_store, &err), 0);
	ck_assert_int_eq(t.contract, TM_MONO);
	trace_free(&t);
	ck_assert_uint_eq(empty_folder(), 1);
}

/* Written to a device that is always full: the error comes with the flush. */
TEST(device_full)
{
	FILE *out = fopen("/dev/full", "w");

	if (!out)
		return;
	read_good(plain, &t);
	setvbuf(out, NULL, _IONBF, 0);
	ck_assert_int_eq(trace_write(out, &t.setup, &t.deviations, t.contract, t.verdict), -ENOSPC);
	fclose(out);
	trace_free(&t);
	ck_assert_int_eq(save("/dev/full"), -EEXIST); /* not replaced */
	ck_assert_int_eq(access("/dev/full", F_OK), 0);
}

TEST(unwritable)
{
	char path[128];

	ck_assert_int_eq(save(folder), -EISDIR);
	in_folder("no/such/folder", path);
	ck_assert_int_eq(save(path), -ENOENT);
	ck_assert_uint_eq(empty_folder(), 0);
	if (geteuid() == 0)
		return; /* root writes everywhere */
	in_folder("a.trace", path);
	ck_assert_int_eq(chmod(folder, 0500), 0);
	ck_assert_int_eq(save(path), -EACCES);
	ck_assert_int_eq(chmod(folder, 0700), 0);
	ck_assert_uint_eq(empty_folder(), 0);
}

TEST(unreadable)
{
	char path[128];

	in_folder("a.trace", path);
	ck_assert_int_eq(trace_read(path, &t, find_store, &err), -ENOENT);
	ck_assert_uint_eq(err.line, 0);
	ck_assert_str_eq(err.message, "cannot be opened: No such file or directory");
	trace_free(&t); /* no harm */
	ck_assert_int_eq(trace_read(folder, &t, find_store, &err), -EISDIR);
	ck_assert_str_eq(err.message, "reading failed: Is a directory");
	if (geteuid() == 0)
		return; /* root reads everything */
	ck_assert_int_eq(save(path), 0);
	ck_assert_int_eq(chmod(path, 0), 0);
	ck_assert_int_eq(trace_read(path, &t, find_store, &err), -EACCES);
	ck_assert_str_eq(err.message, "cannot be opened: Permission denied");
}

RUN_TESTS(make_folder, remove_folder)
