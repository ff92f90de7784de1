/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judging by a store's model and by its own judge. Random histories of PUTs, GETs and DELETEs are
 * judged twice: by a model of a table of keys and values, and by the judge that knows what holds of
 * any keys and values. LIN, DUR and BUF must be the same. Then histories of a counter, by hand; and
 * models and judges that crash, or never end.
 */
#include "checker/judge/contracts.h"
#include "checker/world/own_judge.h"
#include "checker/world/world.h"
#include "faultinject/random_source.h"
#include "tests/checker/explore/budget.h"

#define KEYS 2
#define VLEN 8

/* --- a model of keys and values --- */

struct table {
	uint8_t there[KEYS];
	uint8_t value[KEYS][VLEN];
};

static bool table_apply(void *state, const struct tm_event *e)
{
	struct table *t = state;
	unsigned k = (unsigned)(e->call.key[0].name[1] - '1');
	ck_assert_uint_lt(k, KEYS);
	switch (e->operation) {
	case TM_PUT:
		ck_assert_uint_eq(e->call.vlen, VLEN);
		t->there[k] = 1;
		memcpy(t->value[k], e->call.value, VLEN);
		return true;
	case TM_DEL:
		t->there[k] = 0;
		memset(t->value[k], 0, VLEN);
		return true;
	default:
		if (!e->answered)
			return true;
		if (e->error == -ENOENT)
			return !t->there[k];
		return t->there[k] && e->len == VLEN && !memcmp(t->value[k], e->answer, VLEN);
	}
}

static const struct tm_model table = {.bytes = sizeof(struct table), .apply = table_apply};

static int no_run(void *client, const struct tm_call *call, struct tm_answer *answer)
{
	return 0;
}

static const struct tm_call_type calls[] = {{.name = "add", .value = true, .run = no_run},
					    {.name = "read", .run = no_run},
					    {.name = NULL}};

struct bench {
	struct tm_store store;
	struct setup setup;
	struct history *h;
	struct own_judge *own;
	struct judge *judge; /* by machine */
};

static struct bench b; /* of a test */

static void close_bench(void)
{
	if (!b.own)
		return;
	own_judge_free(b.own);
	free(b.judge);
	history_free(b.h);
	workload_free(&b.setup.w);
	b.own = NULL;
}

/* In the place of an earlier one. */
static void open_bench(const struct tm_model *model,
		       void (*judge)(const struct tm_history *, struct tm_judgement *))
{
	close_bench();
	memset(&b, 0, sizeof(b));
	b.store = (struct tm_store){.calls = calls, .model = model, .judge = judge};
	b.setup.store = &b.store;
	b.setup.own = true;
	b.setup.w.calls = calls;
	b.setup.w.clients = 3;
	ck_assert_int_eq(workload_key_add(&b.setup.w, "k1", 2, -1), 0);
	ck_assert_int_eq(workload_key_add(&b.setup.w, "k2", 2, -1), 1);
	b.h = calloc(1, sizeof(*b.h));
	b.own = own_judge_new(&b.setup);
	b.judge = calloc(WORLDS, sizeof(*b.judge));
	ck_assert(b.h && b.own && b.judge);
	ck_assert_int_eq(history_keep_details(b.h), 0);
	history_reset(b.h, KEYS);
}

/* --- random histories --- */

/* What happens takes effect at random, mostly as it should. */
struct player {
	uint64_t random;
	int32_t now[KEYS]; /* the PUT whose value is there, or VALUE_ABSENT */
	int open[4];	   /* by client: its operation, or -1 */
	bool done[4];	   /* it has had its effect */
	int32_t got[4];
	uint16_t nth;
};

static unsigned draw(struct player *p, unsigned n)
{
	return (unsigned)(random_next(&p->random) % n);
}

static void begin(struct player *p, unsigned client)
{
	struct history *h = b.h;
	static const enum history_kind kinds[] = {HISTORY_PUT, HISTORY_GET, HISTORY_PUT,
						  HISTORY_GET, HISTORY_DEL};
	enum history_kind kind = kinds[draw(p, 5)];
	unsigned key = draw(p, KEYS);
	struct history_detail d = {0};
	d.value.client = (uint8_t)client;
	d.value.nth = ++p->nth;
	d.value.key = (uint16_t)key;
	d.value.len = kind == HISTORY_PUT ? VLEN : 0;
	p->open[client] = history_invoke_detailed(h, client, kind, key, &d);
	p->done[client] = false;
	p->got[client] = VALUE_UNKNOWN;
}

static void take_effect(struct player *p, unsigned client)
{
	const struct history_op *o = &b.h->op[p->open[client]];
	if (p->done[client])
		return;
	p->done[client] = true;
	if (o->kind == HISTORY_GET)
		p->got[client] = p->now[o->key];
	else
		p->now[o->key] = o->kind == HISTORY_PUT ? p->open[client] : VALUE_ABSENT;
}

/* Some GET of the key now and then returns any value that was ever there. */
static int32_t mistaken(struct player *p, unsigned key)
{
	const struct history *h = b.h;
	int32_t value = VALUE_ABSENT;
	for (unsigned i = 0, n = 1; i < h->ops; i++)
		if (h->op[i].kind == HISTORY_PUT && h->op[i].key == key && draw(p, n++) == 0)
			value = (int32_t)i;
	return value;
}

static void end(struct player *p, unsigned client, int error)
{
	struct history *h = b.h;
	int op = p->open[client];
	int32_t value = p->got[client];
	if (!error)
		take_effect(p, client);
	if (h->op[op].kind == HISTORY_GET && !error) {
		value = draw(p, 6) ? p->got[client] : mistaken(p, h->op[op].key);
		if (value >= 0) {
			const struct history_detail *of = &h->detail[value];
			uint8_t bytes[VLEN];
			workload_value(of->value.client, of->value.nth, of->value.key, bytes, VLEN);
			ck_assert_int_eq(history_answer(h, op, bytes, VLEN), 0);
		}
	}
	history_return(h, op, error, value);
	p->open[client] = -1;
}

static void crash(struct player *p)
{
	for (unsigned c = 1; c <= 3; c++) {
		if (p->open[c] >= 0 && draw(p, 2))
			take_effect(p, c);
		p->open[c] = -1;
	}
	/* Now and then something is lost. */
	for (unsigned k = 0; k < KEYS; k++)
		if (draw(p, 4) == 0)
			p->now[k] = mistaken(p, k);
	history_crash(b.h);
}

static void play(struct player *p, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		unsigned client = 1 + draw(p, 3);
		if (p->open[client] < 0)
			begin(p, client);
		else if (draw(p, 3) == 0)
			take_effect(p, client);
		else
			end(p, client, draw(p, 10) ? 0 : -EIO);
	}
}

static void read_all(struct player *p)
{
	for (unsigned k = 0; k < KEYS; k++) {
		struct history_detail d = {0};
		p->open[0] = history_invoke_detailed(b.h, 4, HISTORY_GET, k, &d);
		p->done[0] = false;
		end(p, 0, 0);
	}
}

static unsigned counted[3];

static void same(uint64_t seed, unsigned machine)
{
	static const enum tm_contract contract[] = {TM_LIN, TM_DUR, TM_BUF};
	struct verdict plain[TM_CONTRACTS] = {0}, own[TM_CONTRACTS] = {0};
	unsigned want = machine ? TM_BIT(TM_LIN) | TM_BIT(TM_DUR) | TM_BIT(TM_BUF) : TM_BIT(TM_LIN);
	contracts_judge(b.h, want, NULL, plain);
	own_judge_prepare(b.own, &b.judge[machine], b.h);
	own_judge_recovered(b.own, &b.judge[machine], b.h, want, own);
	for (unsigned i = 0; i < 3; i++) {
		unsigned c = contract[i];
		if (!(want & TM_BIT(c)))
			continue;
		ck_assert_msg(plain[c].broken == own[c].broken, "seed %lu, contract %u: %d and %d",
			      (unsigned long)seed, c, plain[c].broken, own[c].broken);
		ck_assert(!own[c].unsure);
		counted[i] += own[c].broken;
	}
}

TEST(as_of_any_keys_and_values)
{
	const uint64_t histories = rounds(2000);
	memset(counted, 0, sizeof(counted));
	for (uint64_t seed = 1; seed <= histories; seed++) {
		open_bench(&table, NULL);
		struct player p = {.random = seed,
				   .now = {VALUE_ABSENT, VALUE_ABSENT},
				   .open = {-1, -1, -1, -1}};
		play(&p, 4 + draw(&p, 20));
		same(seed, 0);
		crash(&p);
		struct history_mark mark = history_mark(b.h);
		read_all(&p);
		same(seed, 1);
		history_rewind(b.h, &mark);
		read_all(&p);
		same(seed, 1);
		crash(&p);
		read_all(&p);
		same(seed, 2);
	}
	ck_assert_msg(counted[0] > histories / 60 && counted[1] > histories / 60 &&
			      counted[2] > histories / 60,
		      "broken: %u %u %u", counted[0], counted[1], counted[2]);
}

/* --- a counter --- */

static bool count_apply(void *state, const struct tm_event *e)
{
	uint64_t *n = state;
	if (e->type == &calls[1])
		return !e->answered || (e->len == 8 && !memcmp(e->answer, n, 8));
	(*n)++;
	return true;
}

static void count_from(void *state, const struct tm_params *params)
{
	*(uint64_t *)state = params->keys;
}

static const struct tm_model counter = {.bytes = 8, .apply = count_apply};
static const struct tm_model from_keys = {.bytes = 8, .apply = count_apply, .init = count_from};

static int add(unsigned client, int error)
{
	struct history_detail d = {.call = 0, .value = {.client = 1, .len = 8}};
	int op = history_invoke_detailed(b.h, client, HISTORY_CALL, 0, &d);
	if (error <= 0) {
		if (!error)
			ck_assert_int_eq(history_answer(b.h, op, "", 0), 0);
		history_return(b.h, op, error, VALUE_UNKNOWN);
	}
	return op;
}

static int reads(unsigned client, uint64_t n)
{
	struct history_detail d = {.call = 1};
	int op = history_invoke_detailed(b.h, client, HISTORY_CALL, 0, &d);
	ck_assert_int_eq(history_answer(b.h, op, &n, sizeof(n)), 0);
	history_return(b.h, op, 0, VALUE_UNKNOWN);
	return op;
}

static struct verdict judge(unsigned machine, enum tm_contract contract)
{
	struct verdict v[TM_CONTRACTS] = {0};
	own_judge_prepare(b.own, &b.judge[machine], b.h);
	own_judge_recovered(b.own, &b.judge[machine], b.h, TM_BIT(contract), v);
	return v[contract];
}

/* What a reader sees after a power failure that caught one of three additions in flight. */
TEST(a_counter)
{
	static const struct {
		uint64_t n;
		bool dur, buf;
	} seen[] = {{0, true, false},
		    {1, true, false},
		    {2, false, false},
		    {3, false, false},
		    {4, true, true}};
	open_bench(&counter, NULL);
	add(1, 0);
	add(1, 0);
	reads(2, 2);
	ck_assert(!judge(0, TM_LIN).broken);
	add(1, 1);
	history_crash(b.h);
	struct history_mark mark = history_mark(b.h);
	for (unsigned i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		int op = reads(4, seen[i].n);
		struct verdict dur = judge(1, TM_DUR);
		ck_assert_int_eq(dur.broken, seen[i].dur);
		ck_assert_int_eq(dur.op, dur.broken ? op : -1);
		ck_assert_int_eq(judge(1, TM_BUF).broken, seen[i].buf);
		history_rewind(b.h, &mark);
	}
	/* What failed may have taken effect, once; in one order for all. */
	reads(4, 3);
	add(4, -EIO);
	history_crash(b.h);
	mark = history_mark(b.h);
	for (uint64_t n = 2; n <= 5; n++) {
		reads(4, n);
		ck_assert_int_eq(judge(2, TM_DUR).broken, n != 3 && n != 4);
		history_rewind(b.h, &mark);
	}
	reads(4, 4);
	int late = reads(4, 3);
	ck_assert_int_eq(judge(2, TM_DUR).op, late);
}

TEST(begins_as_the_model_says)
{
	open_bench(&from_keys, NULL);
	b.setup.params.keys = 7;
	add(1, 0);
	reads(1, 8);
	ck_assert(!judge(0, TM_LIN).broken);
	int op = reads(1, 1);
	ck_assert(judge(0, TM_LIN).broken);
	ck_assert_int_eq(judge(0, TM_LIN).op, op);
}

/* More operations are open than can be followed: nothing is claimed. */
TEST(too_many_are_open)
{
	open_bench(&counter, NULL);
	for (unsigned i = 0; i < 70; i++)
		add(1 + i % 60, 1);
	reads(1, 500);
	struct verdict v = judge(0, TM_LIN);
	ck_assert(v.unsure && !v.broken);
}

/* --- a judge --- */

static void sees(const struct tm_history *h, struct tm_judgement *judgement)
{
	ck_assert_uint_eq(h->events, 3);
	ck_assert_uint_eq(h->failures, 1);
	ck_assert_uint_eq(h->clients, 3);
	ck_assert_int_eq(h->failed[0], 3);
	const struct tm_event *e = h->event;
	ck_assert(e[0].type == &calls[0] && e[0].answered && e[0].call.vlen == 8);
	ck_assert(e[1].type == &calls[0] && !e[1].answered && e[1].ended < 0 && e[1].begun == 2);
	ck_assert(e[2].type == &calls[1] && e[2].answered && e[2].life == 1 && e[2].client == 4);
	ck_assert(e[2].len == 8 && e[2].answer[0] == 42);
	judgement->broken(judgement, 2, "%u was read", e[2].answer[0]);
	judgement->broken(judgement, 0, "and this does not count");
}

TEST(a_judge_sees_all)
{
	open_bench(NULL, sees);
	add(1, 0);
	add(2, 1);
	history_crash(b.h);
	reads(4, 42);
	struct verdict v = judge(1, TM_OWN);
	ck_assert(v.broken);
	ck_assert_int_eq(v.op, 2);
	ck_assert_str_eq(own_judge_why(b.own), "42 was read");
}

TEST(failures_of_operations)
{
	open_bench(&counter, NULL);
	add(1, -EIO);
	ck_assert(!judge(0, TM_OK).broken);
	int op = add(1, -EIO);
	history_unexplained(b.h, op);
	ck_assert(judge(0, TM_OK).broken);
	ck_assert_int_eq(judge(0, TM_OK).op, op);
}

RUN_TESTS(NULL, close_bench)
