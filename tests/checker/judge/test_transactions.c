/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histories of transactions, in two parts.
 *
 * 1. A table of small histories with the contracts that they break. A transaction is "2-5 x?1 y2":
 *    it begins at 2 and ends at 5, its GET of x returned the value that is called x1, and it puts
 *    y2; x?0: not found; x-: a DEL. "2!5": it was aborted; "2-": it never ended. "#7": the power
 *    fails. The order of the table's text is that of nothing.
 *
 * 2. Random histories, with a fixed seed, of a store that runs one transaction after the other, of
 *    one that reads at another moment than it writes, and with one answer changed: SSER against
 *    the search by a model, ATOM against all orders.
 */
#include "checker/judge/contracts.h"
#include "checker/judge/model_search.h"
#include "checker/judge/transactions.h"
#include "tests/suite.h"

#define TXNS	16
#define STEPS	4
#define KEYS	3
#define UNENDED (1 << 20)

struct step {
	uint8_t kind, key, value; /* enum history_kind; values from 1, 0: absent */
};

struct txn {
	int begun, ended;
	bool aborted, fails; /* it is a power failure */
	unsigned steps;
	struct step step[STEPS];
};

/* --- a history of them --- */

struct moment {
	int at;
	unsigned txn;
	bool end;
};

static int by_time(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

static int32_t put_named(const struct history *h, const uint8_t *names, unsigned key,
			 unsigned value)
{
	if (!value)
		return VALUE_ABSENT;
	for (unsigned i = 0; i < h->ops; i++)
		if (h->op[i].kind == HISTORY_PUT && h->op[i].key == key && names[i] == value)
			return (int32_t)i;
	ck_abort_msg("nobody has put value %u of key %u", value, key);
	return 0;
}

static void make_history(struct history *h, const struct txn *t, unsigned n)
{
	struct moment m[2 * TXNS];
	uint8_t names[TXNS * STEPS];
	int first[TXNS];
	unsigned moments = 0;
	for (unsigned i = 0; i < n; i++) {
		m[moments++] = (struct moment){t[i].begun, i, false};
		if (t[i].ended < UNENDED && !t[i].fails)
			m[moments++] = (struct moment){t[i].ended, i, true};
	}
	qsort(m, moments, sizeof(*m), by_time);
	history_reset(h, KEYS);
	for (unsigned i = 0; i < moments; i++) {
		const struct txn *a = &t[m[i].txn];
		if (a->fails)
			history_crash(h);
		for (unsigned s = 0; s < a->steps && !m[i].end; s++) {
			int op = history_invoke(h, m[i].txn + 1, a->step[s].kind, a->step[s].key);
			names[op] = a->step[s].value;
			if (s)
				history_join(h, op);
			else
				first[m[i].txn] = op;
		}
		for (unsigned s = 0; s < a->steps && m[i].end; s++) {
			const struct step *p = &a->step[s];
			int op = first[m[i].txn] + (int)s;
			bool get = p->kind == HISTORY_GET && !a->aborted;
			history_return(h, op, a->aborted ? -ECANCELED : 0,
				       get ? put_named(h, names, p->key, p->value) : VALUE_ABSENT);
			if (a->aborted)
				history_aborted(h, op);
		}
	}
}

/* --- the table --- */

static unsigned read_row(const char *text, struct txn *t)
{
	unsigned n = 0;
	size_t len;
	for (const char *at = text; *(at += strspn(at, " |")); at += len) {
		struct txn *a = &t[n - !!n];
		char *end, last;
		len = strcspn(at, " ");
		last = at[len - 1];
		if (*at < 'x') {
			a = &t[n++];
			*a = (struct txn){.fails = *at == '#', .ended = UNENDED};
			a->begun = (int)strtol(at + a->fails, &end, 10);
			a->aborted = *end == '!';
			if (end + 1 < at + len)
				a->ended = atoi(end + 1);
			continue;
		}
		a->step[a->steps++] = (struct step){at[1] == '?'  ? HISTORY_GET
						    : last == '-' ? HISTORY_DEL
								  : HISTORY_PUT,
						    (uint8_t)(*at - 'x'),
						    last == '-' ? 0 : (uint8_t)(last - '0')};
	}
	return n;
}

#define SSER TM_BIT(TM_SSER)
#define ATOM TM_BIT(TM_ATOM)

static const struct {
	const char *name, *events;
	unsigned breaks;
	const char *steps; /* of SSER's cycle, or else ATOM's: letters of edges */
} rows[] = {
	{"one after the other", "0-1 x?0 y?0 x1 y1 | 2-3 x?1 y?1 x2 | 4-5 x?2 y?1", 0, ""},
	{"lost update", "0-3 x?0 x1 | 1-4 x?0 x2", SSER, "oo"},
	{"write skew", "0-3 x?0 y?0 x1 | 1-4 x?0 y?0 y1", SSER, "oo"},
	{"fractured read of nothing", "0-1 x1 y1 | 2-3 x?1 y?0", SSER | ATOM, "or"},
	{"fractured read in flight", "0- x1 y1 | 2-3 x?1 y?0", SSER | ATOM, "or"},
	{"fractured read of what came before", "0-1 x1 y1 | 2-3 x2 y2 | 4-5 x?1 y?2", SSER | ATOM,
	 NULL},
	{"two blind writers at a time: one half of each", "0-3 x1 y1 | 1-4 x2 y2 | 5-6 x?1 y?2",
	 SSER | ATOM, NULL},
	{"two blind writers at a time: all of either", "0-3 x1 y1 | 1-4 x2 y2 | 5-6 x?1 y?1", 0,
	 ""},
	{"two blind writers of one key each", "0-3 x1 | 1-4 y2 | 5-6 x?1 y?2", 0, ""},
	{"stale against real time", "0-1 x1 | 2-3 x2 | 4-5 x?1", SSER, NULL},
	{"stale, but serial without the time", "0-1 x1 y1 | 2-3 x?0 y?0", SSER, NULL},
	{"old while it is written", "0-3 x1 y1 | 1-2 x?0 y?0", 0, ""},
	{"half of it, by a later reader", "0- x1 y1 | 2-3 x?1 | 4-5 y?0", SSER | ATOM, NULL},
	{"half of it, and then all", "0- x1 y1 | 2-3 x?0 | 4-5 y?1", 0, ""},
	{"half of it, by a reader at the same time", "0- x1 y1 | 2-5 x?1 | 4-6 y?0", 0, ""},
	{"older than what an earlier reader saw, of one key", "0- x1 | 2-3 x?1 | 4-5 x?0", SSER,
	 NULL},
	{"its first put is seen", "0-1 x1 x2 | 2-3 x?1", SSER | ATOM, NULL},
	{"its last put is seen", "0-1 x1 x2 | 2-3 x?2", 0, ""},
	{"reads its own", "0-1 x1 x?1 y1", 0, ""},
	{"does not read its own", "0-1 x1 | 2-3 x2 x?1", SSER | ATOM, "o"},
	{"aborted, seen", "0!1 x1 | 2-3 x?1", SSER, "a"},
	{"aborted, seen half", "0!1 x1 y1 | 2-3 x?1 y?0", SSER | ATOM, NULL},
	{"aborted, not seen", "0!1 x1 y1 | 2-3 x?0 y?0", 0, ""},
	{"two readers see two orders", "0-9 x1 | 0-8 y1 | 1-2 x?1 y?0 | 3-4 x?0 y?1", SSER, NULL},
	{"two readers see two orders of blind writers",
	 "0-9 x1 y1 | 1-9 x2 y2 | 2-3 x?1 y?1 | 4-5 x?2 y?2 | 6-7 x?1 y?1", SSER, NULL},
	{"the order in which blind writers begin is the wrong one",
	 "2-9 y?0 | 5-33 x1 y1 | 6-15 y3 | 7-34 x2 z4 | 8-36 y?1 z?4 | 14-31 x3 z5 | 16-37 y2 x4 | "
	 "17-32 x?1 | 18-30 z?4 x?2",
	 0, ""},
	{"read by one that waits", "0-9 x1 | 1-2 x?1 y1 | 3-4 y?1 x?0", SSER, NULL},
	{"a DEL says nothing of who", "0-1 x1 y1 | 2-3 x- | 4-5 x?0 y?1", 0, ""},
	{"in flight at the failure: all of it", "0- x1 y1 | #1 | 2-3 x?1 | 4-5 y?1", 0, ""},
	{"in flight at the failure: none of it", "0- x1 y1 | #1 | 2-3 x?0 | 4-5 y?0", 0, ""},
	{"in flight at the failure: half of it", "0- x1 y1 | #1 | 2-3 x?1 | 4-5 y?0", ATOM, NULL},
	{"half of the older one", "0-1 x1 y1 | 2- x2 y2 | #3 | 4-5 x?2 | 6-7 y?1", ATOM, NULL},
	{"all lost", "0-1 x1 y1 | #3 | 4-5 x?0 | 6-7 y?0", 0, ""},
	{"put after the failure", "0- x1 y1 | #1 | 2-3 x2 | 4-5 x?2 | 6-7 y?0", 0, ""},
	{"half of it after the second failure",
	 "0- x1 y1 | #1 | 2-3 x?1 y?1 | #4 | 5-6 x?1 | 7-8 y?0", ATOM, NULL},
	{"two readers see two orders, and each of them all of it",
	 "0-9 x1 y1 | 0-8 y2 z2 | 1-2 x?1 y?2 | 3-4 z?2 y?1", SSER, NULL},
	{"in flight at a failure, older than what came after it",
	 "0- y1 z1 | #1 | 2-3 x2 y2 | #4 | 5-6 x?2 | 7-8 y?1", ATOM, NULL},
	{"lost by a failure, then half overwritten", "0-1 x1 y1 | #2 | 3-4 x?0 x2 | 5-6 x?2 y?0", 0,
	 ""},
};

static void check_steps(const struct transaction_cycle *c, const char *steps)
{
	static const char letters[] = {[EDGE_READ] = 'r',
				       [EDGE_OVERWRITTEN] = 'o',
				       [EDGE_WRITTEN] = 'w',
				       [EDGE_TIME] = 't',
				       [EDGE_ABORTED] = 'a'};
	char text[TRANSACTION_STEPS + 1] = "";
	for (unsigned i = 0; i < c->steps; i++)
		text[i] = letters[c->step[i].edge];
	if (steps)
		ck_assert_str_eq(text, steps);
	else
		ck_assert(c->steps);
}

TESTS(table, ROWS_OF(rows))
{
	struct txn t[TXNS];
	static struct history h;
	struct verdict sser, atom;
	struct transaction_cycle c, part;
	make_history(&h, t, read_row(rows[_i].events, t));
	transactions_sser(&h, &sser, &c);
	transactions_atom(&h, &atom, &part);
	unsigned broken = (sser.broken ? SSER : 0) | (atom.broken ? ATOM : 0);
	ck_assert_msg(broken == rows[_i].breaks, "%s: SSER %d, ATOM %d", rows[_i].name, sser.broken,
		      atom.broken);
	ck_assert(!sser.unsure && !atom.unsure);
	check_steps(sser.broken ? &c : &part, rows[_i].steps);
	for (const struct verdict *v = &sser; v; v = v == &sser ? &atom : NULL)
		ck_assert(!v->broken || h.op[v->op].kind == HISTORY_GET);
}

/* --- random histories --- */

static uint64_t random_state;

static unsigned draw(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 20) % n;
}

/* The store reads at one moment of a transaction, and writes at another. */
static void run_store(struct txn *t, unsigned n, bool serial)
{
	struct moment m[2 * TXNS];
	uint8_t value[KEYS] = {0};
	for (unsigned i = 0; i < n; i++) {
		int end = t[i].ended < UNENDED ? t[i].ended : t[i].begun + 20;
		int at = t[i].begun + 1 + (int)draw((unsigned)(end - t[i].begun - 1));
		int later = at + 1 + (int)draw((unsigned)(end - at));
		m[2 * i] = (struct moment){32 * at + 2 * (int)i, i, false};
		m[2 * i + 1] = (struct moment){32 * (serial ? at : later) + 2 * (int)i + 1, i,
					       true};
	}
	qsort(m, 2 * n, sizeof(*m), by_time);
	for (unsigned i = 0; i < 2 * n; i++) {
		struct txn *a = &t[m[i].txn];
		uint8_t own[KEYS];
		memcpy(own, value, sizeof(own));
		for (unsigned s = 0; s < a->steps; s++) {
			struct step *p = &a->step[s];
			if (p->kind == HISTORY_GET && !m[i].end)
				p->value = own[p->key];
			else if (p->kind == HISTORY_PUT)
				own[p->key] = p->value;
		}
		if (m[i].end && !a->aborted)
			memcpy(value, own, sizeof(value));
	}
}

/* Now and then none of them reads and puts: what each overwrites is not known. */
static unsigned draw_transactions(struct txn *t, unsigned most)
{
	unsigned n = 2 + draw(most - 1), values = 1, wide = 1 + draw(30);
	bool blind = draw(3) == 0;
	for (unsigned i = 0; i < n; i++) {
		int begun = (int)draw(60);
		t[i] = (struct txn){.begun = 32 * begun + 2 * (int)i,
				    .ended = 32 * (begun + 1 + (int)draw(wide)) + 2 * (int)i + 1,
				    .aborted = draw(10) == 0,
				    .steps = 1 + draw(STEPS)};
		if (draw(10) == 0 && !t[i].aborted)
			t[i].ended = UNENDED;
		bool gets = draw(2);
		for (unsigned s = 0; s < t[i].steps; s++)
			t[i].step[s] = (blind ? gets : draw(2))
					       ? (struct step){HISTORY_GET, (uint8_t)draw(KEYS), 0}
					       : (struct step){HISTORY_PUT, (uint8_t)draw(KEYS),
							       (uint8_t)values++};
	}
	return n;
}

/* One answer becomes another one that there could be. */
static void change_answer(struct txn *t, unsigned n)
{
	struct txn *a = &t[draw(n)];
	struct step *get = &a->step[draw(a->steps)];
	const struct txn *b = &t[draw(n)];
	const struct step *put = &b->step[draw(b->steps)];
	if (get->kind != HISTORY_GET)
		return;
	if (draw(3) == 0)
		get->value = 0;
	else if (put->kind == HISTORY_PUT && put->key == get->key && b->begun < a->ended)
		get->value = put->value;
}

/* --- SSER by a model --- */

static bool apply(void *state, const struct tm_event *e)
{
	const struct txn *t = e->call.value;
	uint8_t *value = state;
	for (unsigned s = 0; s < t->steps; s++) {
		const struct step *p = &t->step[s];
		if (p->kind == HISTORY_PUT)
			value[p->key] = p->value;
		else if (e->answered && value[p->key] != p->value)
			return false;
	}
	return true;
}

static bool model_fits(const struct txn *t, unsigned n)
{
	static const struct tm_model model = {.bytes = KEYS, .apply = apply};
	struct model_search s = {.model = &model};
	struct model_set start = {0};
	struct tm_event event[TXNS] = {{0}};
	struct moment m[2 * TXNS];
	const uint8_t nothing[KEYS] = {0};
	unsigned moments = 0;
	bool fits = true;
	for (unsigned i = 0; i < n; i++) {
		event[i].answered = t[i].ended < UNENDED;
		event[i].call.value = &t[i];
		if (t[i].aborted)
			continue;
		m[moments++] = (struct moment){t[i].begun, i, false};
		if (event[i].answered)
			m[moments++] = (struct moment){t[i].ended, i, true};
	}
	qsort(m, moments, sizeof(*m), by_time);
	s.event = event;
	model_set_add(&model, &start, nothing, 0);
	model_begin(&s, &start);
	for (unsigned i = 0; i < moments && fits; i++)
		if (m[i].end)
			fits = model_return(&s, m[i].txn);
		else
			model_invoke(&s, m[i].txn);
	ck_assert(!s.full);
	model_set_free(&start);
	model_set_free(&s.set);
	return fits;
}

/* --- ATOM by all orders --- */

struct orders {
	const struct txn *t;
	unsigned n, at[TXNS]; /* the place of each; 0: before all others */
};

/* The transaction whose value this is; -1: nobody's. *torn: it has put another one there later. */
static int source_of(const struct orders *o, unsigned key, unsigned value, bool *torn)
{
	int source = -1;
	for (unsigned i = 0; i < o->n && value; i++)
		for (unsigned s = 0; s < o->t[i].steps; s++) {
			const struct step *p = &o->t[i].step[s];
			if (p->kind != HISTORY_PUT || p->key != key)
				continue;
			if (source == (int)i)
				*torn = true;
			if (p->value == value)
				source = (int)i;
		}
	return source;
}

static bool puts_to(const struct txn *t, unsigned key)
{
	for (unsigned s = 0; s < t->steps; s++)
		if (t->step[s].kind == HISTORY_PUT && t->step[s].key == key)
			return true;
	return false;
}

static bool tells(const struct txn *t, unsigned step)
{
	for (unsigned s = 0; s < step; s++)
		if (t->step[s].kind == HISTORY_PUT && t->step[s].key == t->step[step].key)
			return false;
	return t->step[step].kind == HISTORY_GET && !t->aborted && t->ended < UNENDED;
}

static bool order_allowed(const struct orders *o)
{
	bool torn;
	for (unsigned i = 0; i < o->n; i++) {
		for (unsigned j = 0; j < o->n; j++)
			if (!o->t[i].aborted && o->t[i].ended < o->t[j].begun &&
			    o->at[i] > o->at[j])
				return false;
		for (unsigned s = 0; s < o->t[i].steps; s++) {
			int source = source_of(o, o->t[i].step[s].key, o->t[i].step[s].value,
					       &torn);
			if (tells(&o->t[i], s) && source >= 0 && o->at[source] > o->at[i])
				return false;
		}
	}
	return true;
}

/* Of those that the reader has seen, each key's value is the last one's. */
static bool reader_fits(const struct orders *o, const struct txn *r)
{
	bool torn;
	for (unsigned a = 0; a < r->steps; a++)
		for (unsigned b = 0; b < r->steps; b++) {
			if (!tells(r, a) || !tells(r, b))
				continue;
			int of = source_of(o, r->step[a].key, r->step[a].value, &torn);
			int seen = source_of(o, r->step[b].key, r->step[b].value, &torn);
			if (seen >= 0 && seen != of && puts_to(&o->t[seen], r->step[a].key) &&
			    (of < 0 || o->at[seen] > o->at[of]))
				return false;
		}
	return true;
}

/* The readers, as bits, that no order from place `at` on fits. */
static unsigned misfits(struct orders *o, unsigned at)
{
	unsigned none = (1u << o->n) - 1;
	if (at > o->n) {
		unsigned bad = 0;
		if (!order_allowed(o))
			return none;
		for (unsigned i = 0; i < o->n; i++)
			bad |= reader_fits(o, &o->t[i]) ? 0 : 1u << i;
		return bad;
	}
	for (unsigned i = 0; i < o->n && none; i++) {
		if (o->at[i])
			continue;
		o->at[i] = at;
		none &= misfits(o, at + 1);
		o->at[i] = 0;
	}
	return none;
}

/* Is it known that a comes before b, by the time and by what was read? a -1: before all others. */
static bool is_before(const struct orders *o, int a, int b, unsigned depth)
{
	bool torn;
	if (a < 0)
		return true;
	if (!o->t[a].aborted && o->t[a].ended < o->t[b].begun)
		return true;
	for (unsigned s = 0; s < o->t[b].steps; s++) {
		const struct step *p = &o->t[b].step[s];
		if (tells(&o->t[b], s) && source_of(o, p->key, p->value, &torn) == a)
			return true;
	}
	for (unsigned via = 0; via < o->n && depth; via++)
		if ((int)via != a && (int)via != b && is_before(o, a, (int)via, depth - 1) &&
		    is_before(o, (int)via, b, depth - 1))
			return true;
	return false;
}

/* Do later readers find all of what earlier ones have seen a part of? */
static bool later_fit(const struct orders *o)
{
	bool torn;
	for (unsigned i = 0; i < o->n * STEPS * o->n * STEPS; i++) {
		unsigned a = i % STEPS, b = i / STEPS % STEPS;
		const struct txn *r = &o->t[i / STEPS / STEPS % o->n],
				 *later = &o->t[i / STEPS / STEPS / o->n];
		if (a >= r->steps || b >= later->steps || !tells(r, a) || !tells(later, b) ||
		    r->ended >= later->begun || r->step[a].key == later->step[b].key)
			continue;
		int seen = source_of(o, r->step[a].key, r->step[a].value, &torn);
		int of = source_of(o, later->step[b].key, later->step[b].value, &torn);
		if (seen >= 0 && seen != of && puts_to(&o->t[seen], later->step[b].key) &&
		    is_before(o, of, seen, 2))
			return false;
	}
	return true;
}

static bool orders_fit(const struct txn *t, unsigned n)
{
	struct orders o = {t, n, {0}};
	for (unsigned i = 0; i < n; i++)
		for (unsigned s = 0; s < t[i].steps; s++) {
			const struct step *p = &t[i].step[s];
			bool torn = false;
			if (p->kind != HISTORY_GET || t[i].aborted || t[i].ended >= UNENDED)
				continue;
			if (tells(&t[i], s)) {
				int source = source_of(&o, p->key, p->value, &torn);
				if (torn || source == (int)i)
					return false;
				continue;
			}
			unsigned own = 0;
			for (unsigned k = 0; k < s; k++)
				if (t[i].step[k].kind == HISTORY_PUT && t[i].step[k].key == p->key)
					own = t[i].step[k].value;
			if (own != p->value)
				return false;
		}
	return !misfits(&o, 1) && later_fit(&o);
}

/* --- they agree --- */

#define SMALL 6 /* all orders are tried */

TESTS(random_histories, 4)
{
	unsigned seen[2][2] = {{0}}; /* SSER, ATOM; broken */
	random_state = UINT64_C(0x9e3779b97f4a7c15) + (unsigned)_i;
	for (unsigned round = 0; round < 4000; round++) {
		static struct history h;
		struct txn t[TXNS];
		struct verdict sser, atom;
		bool serial = draw(2), changed = draw(2);
		unsigned n = draw_transactions(t, _i < 2 ? SMALL : 12);
		run_store(t, n, serial);
		if (changed)
			change_answer(t, n);
		make_history(&h, t, n);
		transactions_sser(&h, &sser, NULL);
		transactions_atom(&h, &atom, NULL);
		ck_assert(!sser.unsure && !atom.unsure);
		ck_assert(!serial || changed || (!sser.broken && !atom.broken));
		ck_assert_msg(sser.broken != model_fits(t, n), "round %u", round);
		if (n <= SMALL)
			ck_assert_msg(atom.broken != orders_fit(t, n), "ATOM, round %u", round);
		seen[0][sser.broken]++;
		seen[1][atom.broken]++;
	}
	for (unsigned c = 0; c < 2; c++)
		ck_assert_msg(seen[c][0] > 200 && seen[c][1] > 50, "%u of %u", seen[c][1],
			      seen[c][0]);
}

/* Long ones: what works is clean, and one stale answer is found. */
TEST(long_histories)
{
	static struct history h;
	struct verdict v;
	for (unsigned round = 0; round < 2; round++) {
		history_reset(&h, KEYS);
		int last[KEYS] = {VALUE_ABSENT, VALUE_ABSENT, VALUE_ABSENT};
		for (unsigned i = 0; i < TRANSACTIONS_MOST - 1; i++) {
			unsigned a = i % KEYS, b = (i + 1) % KEYS;
			int get = history_invoke(&h, 1, HISTORY_GET, a);
			int put = history_invoke(&h, 1, HISTORY_PUT, b);
			history_join(&h, put);
			history_return(&h, get, 0, last[a]);
			history_return(&h, put, 0, VALUE_ABSENT);
			if (i != 500 || !round)
				last[b] = put;
		}
		transactions_sser(&h, &v, NULL);
		ck_assert(!v.unsure && v.broken == (round == 1));
	}
	history_invoke(&h, 1, HISTORY_GET, 0);
	transactions_sser(&h, &v, NULL);
	ck_assert(v.unsure && !v.broken);
}

RUN_TESTS(NULL, NULL)
