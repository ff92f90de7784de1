/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histories and the contracts over them, in three parts.
 *
 * 1. A table of tiny histories, each with a name and the contracts that it breaks; it
 *    breaks no other. One token is one event, or a whole operation:
 *
 *	x1	a PUT of key x, acknowledged; its value is called x1
 *	x?1	a GET of x that returned x1;  x?0: not found;  x?*: a foreign value;
 *		x?y1: the value of another key's PUT
 *	x-	a DEL of x, acknowledged; x-a, x-b where there are several
 *	T(	the operation T is invoked        T)	it returns
 *	T!	it returns with an error; alone: invoked, and returned with an error
 *	T%	likewise, and nothing explains the error
 *	T~	a GET is invoked and never returns
 *	T^	not an event: T was durable and current before the last power failure
 *	#	a power failure
 *
 * 2. Random small histories, with a fixed seed: the judge's memory against the judgement
 *    from scratch, and both against the definitions of contracts.c taken literally (try
 *    every order of operations, every moment, every pair).
 *
 * 3. Long histories of a register that works, and one that loses something.
 */
#include "checker/judge/contracts.h"
#include "checker/judge/names.h"
#include "core/stores/bits.h"
#include "tests/suite.h"

#define ALL CONTRACTS_OF_HISTORY

struct row {
	const char *name, *events;
	unsigned breaks;
};

static const struct row rows[] = {
	/* RDA */
	{"nothing happened", "", 0},
	{"never put, not found", "x?0", 0},
	{"read what was put", "x1 x?1", 0},
	{"torn value", "x1 x?*", RDA},
	{"another key's value (H-E9)", "x1 y1 y?x1", RDA},
	{"torn value after a crash", "x1 # x?*", RDA},
	{"previous version while the newest is half there (P28, P40)", "x1 x2( x?1 x?1", 0},
	{"a GET that fails says nothing", "x1 x?0!", 0},

	/* LIN */
	{"acknowledged, not found", "x1 x?0", LIN | DUR | BUF},
	{"stale read after an ack (H-E1, P29)", "x1 x2 x?1", LIN | DUR | BUF},
	{"slow writer rolled back (P29)", "x1 x2( x?1 x2) x?1", LIN | DUR | BUF},
	{"slow writer, then visible", "x1 x2( x?1 x2) x?2", 0},
	{"in flight may be seen", "x1 x2( x?2 x?2", 0},
	{"in flight seen, then gone", "x1 x2( x?2 x?1", LIN | DUR | BUF},
	{"two writers, either last: 1", "x1( x2( x1) x2) x?1", 0},
	{"two writers, either last: 2", "x1( x2( x1) x2) x?2", 0},
	{"two writers, both last", "x1( x2( x1) x2) x?1 x?2", LIN | DUR | BUF},
	{"two readers disagree on the order", "x1( x2( x?1 x?2 x?1 x1) x2)", LIN | DUR | BUF},
	{"two readers see both orders", "x1( x2( x?1 x?2 x1) x2) x?2", 0},
	{"reader over two PUTs may return the old", "x1 x?1( x2 x3 x?1)", 0},
	{"reader over two PUTs may return the middle", "x1 x?2( x2 x3 x?2)", 0},
	{"reader over two PUTs may not return the one before the old", "x1 x2 x?1( x3 x?1)",
	 LIN | DUR | BUF},
	{"GET that began before the PUT it returns", "x?1( x1( x?1) x1)", 0},
	{"failed PUT may be there, before it failed", "x1 x2( x?2 x2!", 0},
	{"failed PUT may be absent", "x1 x2! x?1", 0},
	{"deleted, not found", "x1 x- x?0", 0},
	{"DEL in flight: still there, then not", "x1 x-( x?1 x?0 x-)", 0},
	{"DEL in flight: gone, then back", "x1 x-( x?0 x?1", LIN | DUR | BUF},
	{"two DELs in flight explain two absences", "x1( x-a( x-b( x?0 x?1 x?0", 0},
	{"put again after a DEL", "x1 x- x2 x?2", 0},
	{"keys are independent", "x1 y1 x?1 y?1", 0},

	/* DUR and BUF */
	{"acked and there", "x1 # x?1", 0},
	{"acked PUT lost (P33, P41)", "x1 # x?0", DUR},
	{"acked update lost", "x1 x2 # x?1", DUR},
	{"two acked updates lost", "x1 x2 x3 # x?1", DUR},
	{"in flight at the crash: there", "x1 x2( # x?2", 0},
	{"in flight at the crash: not there", "x1 x2( # x?1", 0},
	{"failed before the crash: not there", "x1 x2! # x?1", 0},
	{"two in flight at the crash: either", "x1 x2( x3( # x?3", 0},
	{"two in flight at the crash: neither, absent", "x1( x2( # x?0", 0},
	{"read after recovery does not change its mind", "x1 x2( # x?1 x?2", DUR},
	{"two concurrent acked: either", "x1( x2( x1) x2) # x?1", 0},
	{"two concurrent acked, one seen last", "x1( x2( x1) x2) x?2 # x?1", DUR | MONO},
	{"first lost, second kept", "x1 y1 # x?0 y?1", DUR | BUF},
	{"second lost, first kept", "x1 y1 # x?1 y?0", DUR},
	{"both lost", "x1 y1 # x?0 y?0", DUR},
	{"order between keys, with a GET (H-F15)", "x1 y1 y?1 # x?0 y?1", DUR | BUF},
	{"concurrent: first lost, second kept", "x1( y1( x1) y1) # x?0 y?1", DUR},
	{"first seen later, second kept", "x1( y1( x?1 x1) y1) # x?0 y?1", DUR | MONO},
	{"first in flight only: no order", "x1( y1 # x?0 y?1", 0},
	{"first in flight but seen before the second", "x1( x?1 y1 # x?0 y?1", DUR | BUF | MONO},
	{"three keys, prefix", "x1 y1 z1 # x?1 y?1 z?0", DUR},
	{"three keys, hole", "x1 y1 z1 # x?1 y?0 z?1", DUR | BUF},
	{"old value with a new one of the other key", "x1 y1 x2 y2 # x?1 y?2", DUR | BUF},
	{"new value with an old one of the other key", "x1 y1 x2 y2 # x?2 y?1", DUR},
	{"not a state of any moment: two lost updates apart", "x1 x2 y1 y2 # x?1 y?1", DUR | BUF},
	{"a moment inside a long PUT", "x1 x2( y1 y2 x2) # x?2 y?0", DUR},
	{"recovered value is the first GET's", "x1 y1 # x?0 y?0 x7( x?7 y?0", DUR},
	{"not the recovered value: deleted since", "x1 y1 # x- x?0 y?1", 0},
	{"a DEL in flight that is needed later", "x9 y1 x-( y2 x1 x?1 x-) x?0 # x?0 y?1",
	 DUR | BUF},
	{"a DEL in flight that is not", "x9 y1 x-( y2 x1 x?1 x-) # x?0 y?1", DUR},

	/* MONO */
	{"seen, then older (P32)", "x1 x2 x?2 # x?1", DUR | MONO},
	{"seen in flight, then older (P32)", "x1 x2( x?2 # x?1", DUR | MONO},
	{"seen, then absent", "x1 x?1 # x?0", DUR | MONO},
	{"seen, still there (P38)", "x1 x?1 # x?1", 0},
	{"seen, newer in flight is there", "x1 x?1 x2( # x?2", 0},
	{"seen, an unseen newer is lost", "x1 x?1 x2 # x?1", DUR},
	{"concurrent with the seen one", "x1( x2( x1) x2) x?2 # x?1", DUR | MONO},
	{"concurrent with the seen one, seen early", "x1( x2( x?2 x1) x2) # x?1", 0},
	{"seen, then deleted", "x1 x?1 x- # x?0", 0},
	{"seen, DEL in flight", "x1 x?1 x-( # x?0", 0},
	{"seen after a DEL, then absent", "x- x1 x?1 # x?0", DUR | MONO},
	{"absence seen, then the old value", "x1 x- x?0 # x?1", DUR | NORES},
	{"order by a third value", "x1( x2( x?1 x?2 x3( x?3 # x?1", DUR | MONO},
	{"closure: 1 before 2 before 3", "x1( x2 x3( x?3( x1) x?2 x?3) # x?1", DUR | MONO},
	{"seen after the first crash, gone after the second", "x1( # x?1 # x?0", DUR | MONO},
	{"lost at the first crash, put again, fine", "x1( # x?0 x2 # x?2", 0},
	{"not durable at the first crash, back after the second", "x1( # x?0 # x?1", DUR},
	{"older after the second crash only", "x1 x2 x?2 # x?2 # x?1", DUR | MONO},

	/* KEEP */
	{"W W in flight, then absent (P31)", "x0( x0) x0^ x1( x2( # x?0", DUR | KEEP},
	{"W W in flight, older kept (P37)", "x9 x9^ x1( x2( # x?9", 0},
	{"W W in flight, newer (P37)", "x9 x9^ x1( x2( # x?2", 0},
	{"durable in flight, then older", "x9 x1( x1^ # x?9", KEEP},
	{"durable in flight, then the deleted", "x9 x- x1( x1^ # x?9", DUR | KEEP | NORES},
	{"durable, concurrent one there", "x1( x2( x1) x2) x1^ # x?2", 0},
	{"durable, then an acked one lost", "x1 x1^ x2 # x?1", DUR},
	{"durable DEL, then the old value", "x1 x- x-^ # x?1", DUR | KEEP | NORES},
	{"durable DEL, absent", "x1 x- x-^ # x?0", 0},
	{"durable after a DEL, absent", "x1 x- x2 x2^ # x?0", DUR | KEEP},
	{"durable, DEL in flight, absent", "x1 x1^ x-( # x?0", 0},
	{"floor of one key does not bind another", "x1 x1^ y1 # x?1 y?0", DUR},
	{"put after recovery", "x1 x1^ # x2 x?2", 0},
	{"deleted after recovery", "x1 x1^ # x- x?0", 0},

	/* NORES */
	{"deleted, then back without a crash (H-E10)", "x1 x- x?1", LIN | DUR | BUF | NORES},
	{"deleted, then back after a crash (H-F17)", "x1 x- # x?1", DUR | NORES},
	{"DEL in flight, still there", "x1 x-( # x?1", 0},
	{"failed DEL, still there", "x1 x-! x?1 # x?1", 0},
	{"PUT concurrent with the DEL, there", "x1( x- x1) x?1", 0},
	{"PUT in flight at the DEL, there", "x1( x- x?1", 0},
	{"PUT in flight but seen before the DEL, back", "x1( x?1 x- # x?1", DUR | NORES},
	{"GET began before the DEL returned", "x1 x-( x?1( x-) x?1)", 0},
	{"failed PUT shows up", "x1! x?1", NORES},
	{"failed PUT shows up after a crash", "x1! # x?1", NORES},
	{"failed PUT shows up in a GET that began before", "x1( x?1( x1! x?1)", 0},
	{"deleted after recovery, then back", "x1 # x?1 x- x?1", DUR | NORES},
	{"deleted, put again after recovery", "x1 x- # x?0 x2 x?2", 0},

	/* OK, and DUR of what cannot be read */
	{"a PUT fails unexplained", "x1%", OK},
	{"a DEL fails unexplained", "x1 x-% x?1", OK},
	{"a GET fails unexplained", "x1 x?1%", OK},
	{"the first to fail is explained, the second not", "x1! x2%", OK},
	{"a PUT that fails unexplained shows up", "x1% x?1", OK | NORES},
	{"fails in a crash: was not to return", "x1( # x?0", 0},
	{"failed unexplained before the crash", "x1 x?1% # x?1", OK},
	{"acked, unreadable after the crash", "x1 # x?1%", OK | DUR},
	{"acked, unreadable for a reason", "x1 # x?1!", 0},
	{"acked update, unreadable", "x1 x2 x?2 # x?1%", OK | DUR},
	{"in flight, unreadable", "x1( # x?1%", OK},
	{"in flight after an acked one, unreadable", "x1 x2( # x?1%", OK | DUR},
	{"in flight but seen, unreadable", "x1( x?1 # x?0%", OK | DUR},
	{"deleted, unreadable", "x1 x- # x?0%", OK},
	{"DEL in flight, unreadable", "x1 x-( # x?1%", OK},
	{"another key unreadable", "x1 y1( # x?1 y?1%", OK},
	{"unreadable until deleted after recovery", "x1 # x- x?1%", OK},
	{"unreadable while the DEL after recovery is in flight", "x1 # x-( x?1% x-)", OK},
	{"unreadable, then deleted", "x1 # x?1% x-", OK | DUR},
	{"unreadable after a further PUT", "x1 # x2 x?2%", OK | DUR},
	{"unreadable after the second crash only", "x1( # x?1 # x?0%", OK | DUR},
	{"lost at the first crash, unreadable after the second", "x1 # x?0 # x?1%", OK | DUR},
	{"put and unreadable after recovery, was absent", "# x1 x?1%", OK},
	{"acked, a GET never returns after the crash", "x1 # x?1~", DUR},
	{"acked and durable, a GET never returns", "x1 x1^ # x?1~", DUR | KEEP},
	{"in flight and durable, a GET never returns", "x1( x1^ # x?1~", KEEP},
	{"durable, DEL in flight, a GET never returns", "x1 x1^ x-( # x?0~", 0},
	{"durable, then deleted, a GET never returns", "x1 x1^ x- # x?0~", 0},
	{"in flight, a GET never returns", "x1( # x?1~", 0},
	{"never put, a GET never returns", "y1 # x?0~", 0},
	{"a GET never returns after a further PUT", "x1 # x2 x?2~", DUR},
	{"another key's GET never returns", "x1 y1 # x?1 y?1~", DUR},
	{"deleted after recovery, a GET never returns", "x1 # x- x?0~", 0},
};

static int fail_row(const struct row *row, const char *what)
{
	ck_abort_msg("'%s' (%s): %s", row->name, row->events, what);
	return -1;
}

/* Operations by the text that names them. */
struct names {
	struct {
		char text[16];
		int op;
	} name[32];
	unsigned names;
};

static int name_find(const struct names *n, const char *text)
{
	for (unsigned i = n->names; i-- > 0;)
		if (!strcmp(n->name[i].text, text))
			return n->name[i].op;
	return -1;
}

static int row_invoke(struct history *h, struct names *n, const char *text)
{
	enum history_kind kind = text[1] == '?'	  ? HISTORY_GET
				 : text[1] == '-' ? HISTORY_DEL
						  : HISTORY_PUT;
	int op = history_invoke(h, 1 + n->names, kind, text[0] - 'x');

	ck_assert_int_ge(op, 0);
	snprintf(n->name[n->names].text, sizeof(n->name[0].text), "%s", text);
	n->name[n->names++].op = op;
	return op;
}

static void row_return(struct history *h, const struct names *n, const char *text, int error)
{
	int32_t value = VALUE_ABSENT;
	char put[16];

	if (text[1] == '?' && text[2] == '*') {
		value = VALUE_FOREIGN;
	} else if (text[1] == '?' && text[2] != '0') {
		snprintf(put, sizeof(put), text[2] >= 'x' ? "%.0s%s" : "%.1s%s", text, text + 2);
		value = name_find(n, put);
		ck_assert_msg(value >= 0, "no such PUT: %s", put);
	}
	history_return(h, name_find(n, text), error, value);
}

static void row_play(const struct row *row, struct history *h, int32_t *lower_bound)
{
	struct names n = {.names = 0};
	char events[128], *save = NULL;

	history_reset(h, 3);
	lower_bound[0] = lower_bound[1] = lower_bound[2] = VALUE_ABSENT;
	snprintf(events, sizeof(events), "%s", row->events);
	for (char *t = strtok_r(events, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		char how = t[strlen(t) - 1];

		if (*t == '#') {
			history_crash(h);
			continue;
		}
		if (strchr("()!%^~", how))
			t[strlen(t) - 1] = 0;
		else
			how = 0;
		if (how == '^') {
			lower_bound[t[0] - 'x'] = name_find(&n, t);
			continue;
		}
		if (how == 0 || strchr("(~", how) || (strchr("!%", how) && name_find(&n, t) < 0))
			row_invoke(h, &n, t);
		if (how == '~')
			history_never_returns(h, name_find(&n, t));
		else if (how != '(')
			row_return(h, &n, t, how == '!' || how == '%' ? -5 : 0);
		if (how == '%')
			history_unexplained(h, name_find(&n, t));
	}
}

static unsigned broken(const struct verdict *out)
{
	unsigned bits = 0;

	for (unsigned c = TM_RDA; c < TM_LIVE; c++)
		bits |= out[c].broken ? TM_BIT(c) : 0;
	return bits;
}

static void bits_name(unsigned bits, char *text, size_t len)
{
	text[0] = 0;
	for (unsigned c = TM_RDA; c < TM_LIVE; c++)
		if (bits & TM_BIT(c))
			snprintf(text + strlen(text), len - strlen(text), " %s", contract_name(c));
}

TESTS(tiny_histories, sizeof(rows) / sizeof(rows[0]))
{
	const struct row *row = &rows[_i];
	int32_t lower_bound[3];
	struct history h = {0};
	struct verdict out[TM_CONTRACTS];
	char got[64], want[64];

	row_play(row, &h, lower_bound);
	contracts_judge(&h, ALL, lower_bound, out);
	bits_name(broken(out), got, sizeof(got));
	bits_name(row->breaks, want, sizeof(want));
	if (broken(out) != row->breaks) {
		char what[160];

		snprintf(what, sizeof(what), "breaks%s, not%s", got, want);
		fail_row(row, what);
	}
	for (unsigned c = TM_RDA; c < TM_LIVE; c++) {
		ck_assert(!out[c].unsure);
		if (out[c].broken)
			ck_assert(c == TM_OK ? h.op[out[c].op].error != 0
					     : h.op[out[c].op].kind == HISTORY_GET);
		else
			ck_assert(out[c].op == -1 && out[c].against == -1);
	}
}

/* The pairs with which a failure is explained: the texts of the two operations. */
TEST(pairs)
{
	static const struct {
		struct row row;
		enum tm_contract contract;
		int op, against; /* in the order of invocations */
	} told[] = {
		{{"acked update lost", "x1 x2 # x?1", 0}, TM_DUR, 2, 1},
		{{"seen, then older", "x1 x2 x?2 # x?1", 0}, TM_MONO, 3, 2},
		{{"seen, then older, second key", "y1 x1 x2 x?2 # y?1 x?1", 0}, TM_MONO, 5, 3},
		{{"durable, then older", "x1 x2( x2^ # x?1", 0}, TM_KEEP, 2, 1},
		{{"deleted, then back", "x1 x- # x?1", 0}, TM_NORES, 2, 1},
		{{"failed, then there", "x1! # x?1", 0}, TM_NORES, 1, 0},
		{{"second without the first", "x1 y1 # x?0 y?1", 0}, TM_BUF, 3, 2},
		{{"stale", "x1 x2 x?2 x?1 x?1", 0}, TM_LIN, 3, 1},
		{{"seen in flight only", "x1 x2( x?2 # x?1", 0}, TM_DUR, 3, 2},
		{{"seen in flight only, third version", "x9 x1 x2( x?2 # x?1", 0}, TM_DUR, 4, 3},
		{{"seen in flight after a DEL", "x1 x- x2( x?2 # x?0", 0}, TM_DUR, 4, 3},
		{{"foreign", "x1 y1 y?x1", 0}, TM_RDA, 2, 0},
		{{"changed its mind", "x1 x2( # x?1 x?2", 0}, TM_DUR, 3, 2},
		{{"fails", "x1 x2 x3% x?2%", 0}, TM_OK, 2, -1},
		{{"cannot be read", "x1 y1 x2 x3( # y?1 x?2%", 0}, TM_DUR, 5, 2},
		{{"never returns", "x1 y1 x2 x3( # y?1 x?2~", 0}, TM_DUR, 5, 2},
	};
	struct verdict out[TM_CONTRACTS];
	struct history h = {0};
	int32_t lower_bound[3];

	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		row_play(&told[i].row, &h, lower_bound);
		contracts_judge(&h, ALL, lower_bound, out);
		ck_assert(out[told[i].contract].broken);
		ck_assert_msg(out[told[i].contract].op == told[i].op, "%s: op %d", told[i].row.name,
			      out[told[i].contract].op);
		ck_assert_msg(out[told[i].contract].against == told[i].against, "%s: against %d",
			      told[i].row.name, out[told[i].contract].against);
	}
}

TEST(others_are_left_untouched)
{
	const struct row row = {"", "x1 x2 x?2 # x?1", 0};
	struct verdict out[TM_CONTRACTS];
	struct history h = {0};
	int32_t lower_bound[3];

	memset(out, 0x55, sizeof(out));
	row_play(&row, &h, lower_bound);
	contracts_judge(&h, DUR, NULL, out);
	ck_assert(out[TM_DUR].broken && out[TM_DUR].op == 3);
	for (unsigned c = 0; c < TM_CONTRACTS; c++)
		if (c != TM_DUR)
			ck_assert_int_eq(out[c].op, 0x5555);
}

/*
 * The definitions, literally.
 */

/* An operation that stands in an order: its time, and what it reads or writes. */
struct span {
	int from, to;
	bool get, must;
	int32_t value;
	int epoch;
};

#define SPANS 40

/* Try every order in which the operations not in `done` may come. */
static bool orders(const struct span *s, unsigned n, uint64_t done, int32_t value, int epoch)
{
	int bound = INT32_MAX;
	bool left = false;

	for (unsigned i = 0; i < n; i++) {
		if (done >> i & 1 || !s[i].must)
			continue;
		left = true;
		bound = s[i].to < bound ? s[i].to : bound;
	}
	if (!left)
		return true;
	for (unsigned i = 0; i < n; i++) {
		if (done >> i & 1 || s[i].from > bound || s[i].epoch < epoch)
			continue;
		if (s[i].get && s[i].value != value)
			continue;
		if (orders(s, n, done | UINT64_C(1) << i, s[i].value, s[i].epoch))
			return true;
	}
	return false;
}

static bool fits_key(const struct history *h, const struct history_op *g)
{
	return g->value == VALUE_ABSENT || (g->value >= 0 && h->op[g->value].key == g->key);
}

static bool counts(const struct history *h, const struct history_op *g)
{
	return g->kind == HISTORY_GET && g->returned >= 0 && g->error == 0 && fits_key(h, g);
}

static bool acked(const struct history_op *o)
{
	return o->kind != HISTORY_GET && o->returned >= 0 && o->error == 0;
}

/* Operations of the first epochs, in doubled positions so that there is room between. */
static unsigned spans(const struct history *h, unsigned key, unsigned epochs, struct span *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];
		bool get = o->kind == HISTORY_GET, must = get || acked(o);

		if (o->key != key || o->epoch >= epochs || (get && !counts(h, o)))
			continue;
		ck_assert(n < SPANS - 1);
		s[n++] = (struct span){.from = 2 * o->invoked,
				       .to = must ? 2 * o->returned : INT32_MAX,
				       .get = get,
				       .must = must,
				       .value = o->value,
				       .epoch = o->epoch};
	}
	return n;
}

static bool literal_lin(const struct history *h, unsigned epochs)
{
	struct span s[SPANS];

	for (unsigned key = 0; key < h->keys; key++)
		if (!orders(s, spans(h, key, epochs, s), 0, VALUE_ABSENT, 0))
			return false;
	return true;
}

/* The value with which the key came out of the first power failure. */
static bool recovered(const struct history *h, unsigned key, int32_t *value)
{
	int32_t update = INT32_MAX;

	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];

		if (o->key != key || o->epoch != 1)
			continue;
		if (o->kind != HISTORY_GET && o->invoked < update)
			update = o->invoked;
	}
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];

		if (o->key == key && o->epoch == 1 && counts(h, o) && o->returned < update) {
			*value = o->value;
			return true;
		}
	}
	return false;
}

static bool literal_buf(const struct history *h)
{
	int moments = h->epoch ? h->crash_at[0] : 0;

	for (int t = 0; t <= moments; t++) {
		bool all = true;

		for (unsigned key = 0; key < h->keys && all; key++) {
			struct span s[SPANS];
			unsigned n = spans(h, key, 1, s);
			int32_t value;

			if (h->epoch && recovered(h, key, &value))
				s[n++] = (struct span){2 * t - 1, 2 * t - 1, true, true, value, 0};
			all = orders(s, n, 0, VALUE_ABSENT, 0);
		}
		if (all)
			return true;
	}
	return false;
}

/* before[a][b]: update a must precede update b, by what came before the epoch. */
struct order {
	bool before[64][64];
};

static void literal_order(const struct history *h, unsigned key, unsigned epoch, struct order *r)
{
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < h->ops; i++)
		for (unsigned k = 0; k < h->ops; k++) {
			const struct history_op *a = &h->op[i], *b = &h->op[k];
			int ca = a->kind == HISTORY_DEL ? (int)i : a->value;
			int cb = b->kind == HISTORY_DEL ? (int)k : b->value;

			if (a->key != key || b->key != key || a->epoch >= epoch ||
			    b->epoch >= epoch)
				continue;
			if (a->kind == HISTORY_GET ? !counts(h, a) : !acked(a))
				continue;
			if (b->kind == HISTORY_GET && !counts(h, b))
				continue;
			/* Where acknowledged is not visible, a GET of another version proves
			 * nothing. */
			if (!h->ack_visible && a->kind != HISTORY_GET && b->kind == HISTORY_GET)
				continue;
			if (ca >= 0 && cb >= 0 && ca != cb && a->returned < b->invoked)
				r->before[ca][cb] = true;
		}
	for (unsigned via = 0; via < h->ops; via++)
		for (unsigned a = 0; a < h->ops; a++)
			for (unsigned b = 0; b < h->ops; b++)
				r->before[a][b] |= r->before[a][via] && r->before[via][b];
}

/* Is the answer of GET g older than `than` in every order? */
static bool literal_older(const struct history *h, const struct order *r,
			  const struct history_op *g, int than)
{
	if (g->value >= 0)
		return g->value != than && r->before[g->value][than] && !r->before[than][g->value];
	for (unsigned d = 0; d < h->ops; d++) {
		const struct history_op *o = &h->op[d];

		if (o->kind != HISTORY_DEL || o->key != g->key || o->invoked > g->returned)
			continue;
		if (o->epoch == g->epoch || (int)d == than || !r->before[d][than] ||
		    r->before[than][d])
			return false;
	}
	return true;
}

static unsigned literal_reads(const struct history *h, unsigned at, const int32_t *lower_bound)
{
	const struct history_op *g = &h->op[at];
	struct order r;
	unsigned bits = 0;

	if (!counts(h, g))
		return g->kind == HISTORY_GET && g->returned >= 0 && g->error == 0 ? RDA : 0;
	literal_order(h, g->key, g->epoch, &r);
	for (unsigned i = 0; i < h->ops; i++) {
		const struct history_op *o = &h->op[i];

		if (o->key != g->key)
			continue;
		if (o->epoch < g->epoch && counts(h, o) && o->value >= 0 &&
		    literal_older(h, &r, g, o->value))
			bits |= MONO;
		if (o->kind != HISTORY_DEL || !acked(o) || o->returned > g->invoked || g->value < 0)
			continue;
		for (unsigned k = 0; k < h->ops; k++)
			if (h->op[k].value == g->value &&
			    (acked(&h->op[k]) || counts(h, &h->op[k])) &&
			    h->op[k].returned < o->invoked)
				bits |= NORES;
	}
	if (g->value >= 0 && h->op[g->value].error && h->op[g->value].returned < g->invoked)
		bits |= NORES;
	if (h->epoch && g->epoch == h->epoch && lower_bound[g->key] >= 0 &&
	    literal_older(h, &r, g, lower_bound[g->key]))
		bits |= KEEP;
	return bits;
}

/* A GET that fails unexplained after a power failure, though there is no order of what came before
 * it that leaves its key absent, and no DEL since can have taken it away. */
static bool literal_unreadable(const struct history *h, unsigned at)
{
	const struct history_op *g = &h->op[at];
	struct span s[SPANS];
	unsigned n = spans(h, g->key, g->epoch, s);

	if (g->kind != HISTORY_GET || !g->unexplained || !g->epoch)
		return false;
	for (unsigned i = 0; i < h->ops; i++)
		if (h->op[i].kind == HISTORY_DEL && h->op[i].key == g->key &&
		    h->op[i].epoch == g->epoch && h->op[i].invoked < g->returned)
			return false;
	s[n++] = (struct span){.from = 2 * h->crash_at[g->epoch - 1],
			       .to = 2 * h->crash_at[g->epoch - 1],
			       .get = true,
			       .must = true,
			       .value = VALUE_ABSENT,
			       .epoch = g->epoch};
	return !orders(s, n, 0, VALUE_ABSENT, 0);
}

static unsigned literal(const struct history *h, const int32_t *lower_bound)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < h->ops; i++) {
		bits |= literal_reads(h, i, lower_bound);
		bits |= h->op[i].unexplained ? OK : 0;
		bits |= literal_unreadable(h, i) ? DUR : 0;
	}
	if (!literal_lin(h, 1))
		bits |= LIN;
	if (!literal_lin(h, h->epoch + 1u))
		bits |= DUR;
	if (!literal_buf(h))
		bits |= BUF;
	return bits;
}

/*
 * Random histories.
 */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 20) % n;
}

static int32_t random_value(const struct history *h, unsigned key)
{
	int32_t seen[64];
	unsigned n = 0;

	if (random_below(60) == 0)
		return VALUE_FOREIGN;
	for (unsigned i = 0; i < h->ops; i++)
		if (h->op[i].kind == HISTORY_PUT && (h->op[i].key == key || random_below(100) == 0))
			seen[n++] = i;
	if (n == 0 || random_below(5) == 0)
		return VALUE_ABSENT;
	return seen[random_below(2) ? n - 1 : random_below(n)]; /* the newest, often */
}

#define CLIENTS 4

/* One step of one client. `gets`: nothing but GETs are invoked. */
static void random_step(struct history *h, int *open, bool gets, bool concurrent)
{
	unsigned c = random_below(concurrent ? CLIENTS : 1), kind = random_below(8);
	int op = open[c];

	if (op >= 0 && random_below(20) == 0) { /* this client dies; another takes its place */
		open[c] = -1;
	} else if (op >= 0) {
		history_return(h, op, random_below(10) == 0 ? -5 : 0,
			       random_value(h, h->op[op].key));
		if (h->op[op].error && random_below(3) == 0)
			history_unexplained(h, op);
		open[c] = -1;
	} else {
		kind = gets || kind < 3 ? HISTORY_GET : kind == 3 ? HISTORY_DEL : HISTORY_PUT;
		open[c] = history_invoke(h, c + 1, kind, random_below(h->keys));
	}
}

static void random_steps(struct history *h, unsigned steps, bool gets, bool concurrent)
{
	int open[CLIENTS] = {-1, -1, -1, -1};

	for (unsigned i = 0; i < steps; i++)
		random_step(h, open, gets, concurrent);
}

static void random_floor(const struct history *h, int32_t *lower_bound)
{
	for (unsigned key = 0; key < h->keys; key++) {
		lower_bound[key] = VALUE_ABSENT;
		for (unsigned i = 0; h->epoch && i < h->ops; i++)
			if (h->op[i].kind != HISTORY_GET && h->op[i].key == key &&
			    h->op[i].epoch < h->epoch && random_below(3) == 0)
				lower_bound[key] = i;
	}
}

static void show(const struct history *h)
{
	for (unsigned i = 0; i < h->ops; i++)
		fprintf(stderr, "%2u: epoch %u %s key %u value %d [%d, %d] error %d\n", i,
			h->op[i].epoch, (const char *[]){"PUT", "GET", "DEL"}[h->op[i].kind],
			h->op[i].key, h->op[i].value, h->op[i].invoked, h->op[i].returned,
			h->op[i].error);
}

static void same_verdict(const struct history *h, const struct verdict *a, const struct verdict *b)
{
	for (unsigned c = TM_RDA; c < TM_LIVE; c++) {
		if (a[c].broken == b[c].broken && a[c].unsure == b[c].unsure &&
		    a[c].op == b[c].op && a[c].against == b[c].against)
			continue;
		show(h);
		ck_abort_msg("%s: remembered %d %d/%d, from scratch %d %d/%d", contract_name(c),
			     a[c].broken, a[c].op, a[c].against, b[c].broken, b[c].op,
			     b[c].against);
	}
}

TESTS(random_histories, 4)
{
	unsigned seen[TM_LIVE][2] = {{0}};
	static struct judge j;
	struct history h = {0};

	random_state = UINT64_C(0x9e3779b97f4a7c15) + _i;
	judge_reset(&j);
	for (unsigned round = 0; round < 4000; round++) {
		unsigned crashes = random_below(4), images = crashes ? 1 + random_below(6) : 1;
		bool concurrent = random_below(4) != 0;
		struct history_mark mark;

		history_reset(&h, 1 + random_below(2));
		h.ack_visible = random_below(2);
		for (unsigned e = 0; e < crashes; e++) {
			random_steps(&h, random_below(crashes > 2 ? 6 : 14),
				     e > 0 && random_below(2), concurrent);
			history_crash(&h);
		}
		mark = history_mark(&h);
		judge_prepare(&j, &h);
		for (unsigned i = 0; i < images; i++) {
			struct verdict remembered[TM_CONTRACTS], scratch[TM_CONTRACTS];
			int32_t lower_bound[2];
			unsigned want;

			random_steps(&h, random_below(crashes ? 8 : 16), crashes && random_below(3),
				     random_below(4) == 0);
			random_floor(&h, lower_bound);
			judge_recovered(&j, &h, ALL, lower_bound, remembered);
			contracts_judge(&h, ALL, lower_bound, scratch);
			same_verdict(&h, remembered, scratch);
			want = literal(&h, lower_bound);
			if (want != broken(scratch)) {
				show(&h);
				ck_abort_msg("round %u: breaks %#x, by definition %#x", round,
					     broken(scratch), want);
			}
			for (unsigned c = TM_RDA; c < TM_LIVE; c++)
				seen[c][want >> c & 1]++;
			ck_assert(want & DUR || !(want & BUF));
			ck_assert(want & BUF || !(want & LIN));
			ck_assert(want & DUR || !(want & MONO)); /* so MONO never cries wolf */
			history_rewind(&h, &mark);
			ck_assert(h.hash == mark.hash && h.ops == mark.ops);
		}
	}
	for (unsigned c = TM_RDA; c < TM_ATOM; c++) /* those of transactions: test_transactions.c */
		ck_assert_msg(seen[c][0] > 100 && seen[c][1] > 100,
			      "%s: holds %u, broken %u: a weak test", contract_name(c), seen[c][0],
			      seen[c][1]);
}

TEST(hash_and_rewind)
{
	struct history h = {0}, g = {0};
	struct history_mark mark, later;
	int put, get;

	history_reset(&h, 2);
	history_reset(&g, 3);
	ck_assert(h.hash != g.hash);
	put = history_invoke(&h, 1, HISTORY_PUT, 0);
	get = history_invoke(&h, 2, HISTORY_GET, 0);
	mark = history_mark(&h);
	history_return(&h, get, 0, put);
	history_return(&h, put, 0, put);
	later = history_mark(&h);
	history_invoke(&h, 2, HISTORY_GET, 1);
	history_crash(&h);
	history_rewind(&h, &mark);
	ck_assert_int_eq(h.op[get].returned, -1);
	ck_assert_int_eq(h.op[get].value, VALUE_UNKNOWN);
	ck_assert_int_eq(h.op[put].returned, -1);
	ck_assert(h.epoch == 0 && h.clock == 2 && h.ops == 2);
	history_return(&h, put, 0, put); /* the other order: another history */
	history_return(&h, get, 0, put);
	ck_assert(h.hash != later.hash);
	history_rewind(&h, &mark);
	history_return(&h, get, 0, put);
	history_return(&h, put, 0, put);
	ck_assert(h.hash == later.hash);
	history_rewind(&h, &mark);
	history_return(&h, get, 0, VALUE_ABSENT);
	history_return(&h, put, 0, put);
	ck_assert(h.hash != later.hash);
	while (h.ops < HISTORY_OPS)
		ck_assert_int_ge(history_invoke(&h, 1, HISTORY_GET, 1), 0);
	ck_assert_int_eq(history_invoke(&h, 1, HISTORY_GET, 1), -ENOSPC);
}

/*
 * Long histories: each operation takes effect at one random moment of its time.
 */
struct worker {
	int op, effect; /* effect: it has had its own */
	int32_t value;
};

static void long_history(struct history *h, unsigned keys, unsigned clients, unsigned ops,
			 int32_t *now)
{
	struct worker w[TM_MAX_CLIENTS];

	history_reset(h, keys);
	for (unsigned key = 0; key < keys; key++)
		now[key] = VALUE_ABSENT;
	for (unsigned c = 0; c < clients; c++)
		w[c].op = -1;
	while (h->ops < ops) {
		unsigned c = random_below(clients), kind = random_below(16);
		const struct history_op *o = w[c].op < 0 ? NULL : &h->op[w[c].op];

		if (w[c].op < 0) {
			kind = kind < 8 ? HISTORY_GET : kind < 9 ? HISTORY_DEL : HISTORY_PUT;
			w[c].op = history_invoke(h, c + 1, kind,
						 random_below(1 + random_below(keys)));
			w[c].effect = 0;
		} else if (!w[c].effect) {
			if (o->kind != HISTORY_GET)
				now[o->key] = o->value;
			w[c].value = now[o->key];
			w[c].effect = 1;
		} else {
			history_return(h, w[c].op, o->kind != HISTORY_GET && kind == 0 ? -5 : 0,
				       w[c].value);
			w[c].op = -1;
		}
	}
	history_crash(h);
}

TESTS(long_histories, 6)
{
	static const struct {
		unsigned keys, clients, ops;
	} size[] = {{64, 16, 3800}, {64, 4, 4000}, {3, 16, 2000},
		    {1, 4, 4000},   {1, 16, 1000}, {8, 1, 4000}};
	struct verdict out[TM_CONTRACTS];
	static struct judge j;
	static struct history h;
	int32_t now[HISTORY_KEYS];
	struct history_mark mark;
	unsigned mono = 0, buf = 0; /* how many were seen to be broken */

	random_state = 88172645463325252u + _i;
	judge_reset(&j);
	long_history(&h, size[_i].keys, size[_i].clients, size[_i].ops, now);
	mark = history_mark(&h);
	judge_prepare(&j, &h);
	for (unsigned lost = 0; lost <= h.keys; lost++) {
		for (unsigned key = 0; key < h.keys; key++) {
			int op = history_invoke(&h, 1, HISTORY_GET, key);

			history_return(&h, op, 0, key == lost ? VALUE_FOREIGN : now[key]);
		}
		judge_recovered(&j, &h, ALL, NULL, out);
		for (unsigned c = TM_LIN; c < TM_NORES; c++) /* a failed PUT may well be there */
			ck_assert_msg(!out[c].broken && !out[c].unsure,
				      "%s %u: broken %d %d/%d unsure %d", contract_name(c), lost,
				      out[c].broken, out[c].op, out[c].against, out[c].unsure);
		ck_assert(out[TM_RDA].broken == (lost < h.keys));
		history_rewind(&h, &mark);
	}
	for (unsigned key = 0; key < h.keys; key++) { /* all keys, one of them of long ago */
		int first = -1;

		for (unsigned i = 0; i < h.ops && first < 0; i++)
			if (h.op[i].key == key && acked(&h.op[i]) && h.op[i].kind == HISTORY_PUT)
				first = i;
		if (first < 0 || first == now[key] || (unsigned)first > h.ops / 2)
			continue;
		for (unsigned k = 0; k < h.keys; k++)
			history_return(&h, history_invoke(&h, 1, HISTORY_GET, k), 0,
				       k == key ? first : now[k]);
		judge_recovered(&j, &h, ALL, NULL, out);
		ck_assert(out[TM_DUR].broken && !out[TM_LIN].broken && !out[TM_DUR].unsure);
		mono += out[TM_MONO].broken;
		buf += out[TM_BUF].broken;
		history_rewind(&h, &mark);
	}
	ck_assert_uint_ge(mono, h.keys / 2);
	ck_assert_uint_ge(buf, h.keys / 2);
}

/* More open operations than the search has room for: it says so, and does not guess. */
TEST(out_of_room)
{
	struct verdict out[TM_CONTRACTS];
	static struct history h;
	int dels[70];

	history_reset(&h, 2);
	for (unsigned i = 0; i < 70; i++)
		dels[i] = history_invoke(&h, 1 + i, HISTORY_DEL, 0);
	history_return(&h, history_invoke(&h, 90, HISTORY_GET, 0), 0, VALUE_ABSENT);
	for (unsigned i = 0; i < 70; i++)
		history_return(&h, dels[i], 0, VALUE_ABSENT);
	history_crash(&h);
	history_return(&h, history_invoke(&h, 90, HISTORY_GET, 0), 0, VALUE_ABSENT);
	contracts_judge(&h, ALL, NULL, out);
	ck_assert_uint_eq(broken(out), 0);
	ck_assert(out[TM_LIN].unsure && out[TM_DUR].unsure && out[TM_BUF].unsure);
	ck_assert(!out[TM_MONO].unsure);
}

/* Beyond 64 updates of a key: no closure, but no false alarm either. */
TEST(many_updates)
{
	struct verdict out[TM_CONTRACTS];
	static struct history h;
	int put[70];

	for (unsigned flips = 0; flips < 2; flips++) {
		history_reset(&h, 1);
		for (unsigned i = 0; i < 70; i++) {
			put[i] = history_invoke(&h, 1, HISTORY_PUT, 0);
			history_return(&h, put[i], 0, 0);
		}
		if (flips) /* not linearizable: now each of the two is older than the other */
			history_return(&h, history_invoke(&h, 2, HISTORY_GET, 0), 0, put[68]);
		history_return(&h, history_invoke(&h, 2, HISTORY_GET, 0), 0, put[69]);
		history_crash(&h);
		history_return(&h, history_invoke(&h, 3, HISTORY_GET, 0), 0, put[68]);
		contracts_judge(&h, ALL, NULL, out);
		ck_assert_int_eq(out[TM_MONO].broken, !flips);
		ck_assert_int_eq(out[TM_LIN].broken, flips);
		ck_assert(out[TM_DUR].broken);
	}
}

/* Which contracts the explorer judges when. */
TEST(judged_when)
{
	ck_assert_uint_eq(CONTRACTS_IN_RUN, RDA | LIN | NORES | OK | ATOM | SSER | TM_BIT(TM_DURN) |
						    TM_BIT(TM_FENCE) | TM_BIT(TM_OWN));
	ck_assert_uint_eq(CONTRACTS_AFTER_CRASH, RDA | DUR | BUF | MONO | KEEP | NORES | OK | ATOM |
							 TM_BIT(TM_DURN) | TM_BIT(TM_FENCE) |
							 TM_BIT(TM_OWN));
	ck_assert_uint_eq(CONTRACTS_ON_MACHINE, RDA | LIN | DUR | MONO | KEEP | NORES);
	ck_assert_uint_eq(CONTRACTS_IF_LIN, DUR | BUF | TM_BIT(TM_DURN));
	ck_assert_uint_eq(contracts_in_run(1), CONTRACTS_IN_RUN);
	ck_assert_uint_eq(contracts_in_run(2), CONTRACTS_IN_RUN | DUR);
	ck_assert_uint_eq(CONTRACTS_BY_RUNNING,
			  TM_BIT(TM_LIVE) | TM_BIT(TM_FSCK) | TM_BIT(TM_AGREE));
	ck_assert_str_eq(
		contract_names(),
		"RDA LIN DUR BUF MONO KEEP NORES OK ATOM SSER DURN FENCE LIVE FSCK AGREE OWN");
	for (int c = 0; c < TM_CONTRACTS; c++) {
		ck_assert_int_eq(contract_parse(contract_name(c)), c);
		ck_assert_uint_gt(strlen(contract_what(c)), 20);
	}
	ck_assert_int_lt(contract_parse("RD"), 0);
}

RUN_TESTS(NULL, NULL)
