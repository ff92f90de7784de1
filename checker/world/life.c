/* SPDX-License-Identifier: BSD-3-Clause */
/* See life.h. */
#include "checker/world/life.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "checker/world/world_client.h"
#include "faultinject/random_source.h"

/* Values of lives: no workload's client has PUTs of such numbers. */
#define LIFE_CLIENT   TM_MAX_CLIENTS
#define LIFE_LAST_NTH (UINT16_MAX - 1)

static unsigned number(const struct world *w, unsigned client)
{
	return w->setup->w.clients + 1 + client;
}

void life_init(struct world *w)
{
	for (unsigned k = 0; k < LIFE_CLIENTS; k++) {
		char name[ACTOR_NAME];
		snprintf(name, sizeof(name), "c%u", number(w, k));
		actor_init(&w->life.who[k], name);
	}
}

void life_begin(struct world *w)
{
	struct life *life = &w->life;
	life->on = life->second = false;
	life->puts = life->asked = 0;
	memset(life->busy, 0, sizeof(life->busy));
	memset(life->nth, 0, sizeof(life->nth));
	/* The reader has got every key. */
	life->nth[0][OP_GET] = (uint16_t)world_keys_read(w);
	life->nth[0][OP_CALL] = (uint16_t)setup_looks(w->setup);
}

/* --- values --- */

/* Slot of the next PUT. */
static unsigned slot_of(const struct world *w)
{
	return w->machine * LIFE_OPS + w->life.puts;
}

void life_value_name(const struct world *w, struct history_detail *detail)
{
	detail->value.client = LIFE_CLIENT;
	detail->value.nth = (uint16_t)(LIFE_LAST_NTH - slot_of(w));
}

const uint8_t *life_value(struct world *w, const struct workload_op *op)
{
	struct life *life = &w->life;
	assert(life->puts < LIFE_OPS);
	unsigned slot = slot_of(w);
	struct life_put *put = &life->put[life->puts++];
	*put = (struct life_put){.op = (int32_t)w->history->ops - 1,
				 .key = op->key,
				 .vlen = op->vlen,
				 .bytes = sim_alloc(w->sim, op->vlen)};
	workload_value(LIFE_CLIENT, LIFE_LAST_NTH - slot, op->key, put->bytes, op->vlen);
	return put->bytes;
}

int32_t life_value_read(const struct world *w, unsigned key, const uint8_t *bytes, size_t len)
{
	for (; w->machine; w--)
		for (unsigned i = 0; i < w->life.puts; i++) {
			const struct life_put *put = &w->life.put[i];
			if (put->key == key && put->vlen == len && !memcmp(put->bytes, bytes, len))
				return put->op;
		}
	return VALUE_FOREIGN;
}

/* --- what is done --- */

unsigned life_client(const struct world *w, const struct choice_point *at)
{
	return at->who == &w->life.who[1];
}

static bool has_txns(const struct setup *s)
{
	return s->store->txn && s->w.keys > 1 && setup_puts(s);
}

unsigned life_kinds(const struct setup *s)
{
	return life_answers(s->w.keys, has_txns(s), setup_calls(s));
}

unsigned life_draw(const struct setup *s, const struct choice_point *at, unsigned client,
		   uint64_t *random)
{
	/* Mostly updates: they are what goes wrong. */
	static const uint8_t verbs[] = {LIFE_PUT, LIFE_PUT, LIFE_PUT,	   LIFE_PUT,
					LIFE_PUT, LIFE_PUT, LIFE_PUT_LONG, LIFE_PUT_LONG,
					LIFE_DEL, LIFE_DEL, LIFE_GET};
	uint64_t draw = random_next(random);
	bool idle = client ? draw % 3 : at->a > 1 && draw % 3 == 0;
	draw /= 3;
	if (idle)
		return 0;
	if (s->store->clean && draw % 6 == 0)
		return LIFE_CLEAN;
	draw /= 6;
	unsigned calls = setup_calls(s);
	if (calls && (!setup_puts(s) || draw % 2))
		return LIFE_CALLS + (unsigned)(draw / 2 % calls);
	if (calls)
		draw /= 2;
	if (has_txns(s) && draw % 3 == 0)
		return life_txn(draw / 3 % 4 ? LIFE_TXN_PUT : LIFE_TXN_GET,
				(unsigned)(draw / 12 % s->w.keys));
	if (has_txns(s))
		draw /= 3;
	enum life_verb verb = verbs[draw % sizeof(verbs)];
	draw /= sizeof(verbs);
	return life_answer(verb, (unsigned)(draw % s->w.keys));
}

/* Its operations are one transaction. */
static void ask_txn(struct world *w, unsigned k, unsigned answer)
{
	const struct setup *s = w->setup;
	for (unsigned i = 0; i < LIFE_TXN_OPS; i++) {
		struct workload_op *op = &w->life.op[k][i];
		*op = (struct workload_op){
			.kind = (answer - LIFE_TXNS) % LIFE_TXN_VERBS ? OP_GET : OP_PUT,
			.txn = i ? TXN_NEXT : TXN_FIRST,
			.key = (uint16_t)(((answer - LIFE_TXNS) / LIFE_TXN_VERBS + i) % s->w.keys)};
		op->vlen = op->kind == OP_PUT ? s->life_vlen : 0;
		op->nth = ++w->life.nth[k][op->kind];
	}
}

/* What client `k` does in this round. False: nothing. */
static bool ask(struct world *w, unsigned round, unsigned k)
{
	const struct setup *s = w->setup;
	struct life *life = &w->life;
	struct workload_op *op = life->op[k];
	struct choice_point at = {
		.kind = CHOICE_LIFE, .who = &life->who[k], .occurrence = 1, .a = round};
	unsigned calls = setup_calls(s);
	unsigned answer = sim_choose(w->sim, &at, life_kinds(s));
	if (!answer)
		return false;
	/* A store without PUTs takes what means a key for one of its own operations; so does each
	 * what means a key that there is not, or it takes that for a transaction. */
	if (life_is_keyed(answer) ? !s->store->put || life_key(answer) >= s->w.keys
				  : life_is_txn(answer) && !has_txns(s))
		answer = has_txns(s) ? life_txn(answer % LIFE_TXN_VERBS, answer % s->w.keys)
				     : LIFE_CALLS + (answer - LIFE_KEYED) % calls;
	life->asked += life_is_txn(answer) ? LIFE_TXN_OPS : 1;
	if (life->asked > LIFE_OPS)
		return false;
	if (life_is_txn(answer)) {
		ask_txn(w, k, answer);
		return true;
	}
	*op = (struct workload_op){.kind = OP_CLEAN};
	if (answer >= LIFE_CALLS) {
		op->kind = OP_CALL;
		op->call = (uint8_t)(answer - LIFE_CALLS);
		if (!s->w.keys && workload_op_keys(&s->w, op))
			return false;
		for (unsigned i = 0; i < workload_op_keys(&s->w, op); i++)
			op->keys[i] = (uint16_t)(i % s->w.keys);
		op->vlen = workload_op_valued(&s->w, op) ? s->life_vlen : 0;
	} else if (answer >= LIFE_KEYED) {
		static const uint8_t kinds[LIFE_VERBS] = {OP_PUT, OP_PUT, OP_GET, OP_DEL};
		enum life_verb verb = life_verb(answer);
		op->kind = kinds[verb];
		op->key = (uint16_t)life_key(answer);
		op->vlen = verb == LIFE_PUT	   ? s->life_vlen
			   : verb == LIFE_PUT_LONG ? (uint32_t)s->params.max_vlen
						   : 0;
	}
	op->nth = ++life->nth[k][op->kind];
	return true;
}

/* Nothing disturbs a recovered store: if an update fails, the store does not work any more. */
static void do_op(struct world_client *c, unsigned k, uint8_t *buf)
{
	struct world *w = c->world;
	const struct workload_op *op = w->life.op[k];
	unsigned at = w->history->ops;
	if (op->txn) {
		int error = client_txn(c, op, LIFE_TXN_OPS);
		if (error)
			world_refused(w, "txn", error, "after recovery, a transaction fails: ");
		return;
	}
	client_do(c, op, buf);
	if (op->kind == OP_CLEAN && w->result.ok_broken)
		world_trouble(w, true, "%s", w->result.ok_why);
	if (op->kind != OP_PUT && op->kind != OP_DEL)
		return;
	while (w->history->op[at].client != c->number)
		at++;
	int error = w->history->op[at].error;
	if (error && !(op->kind == OP_DEL && error == -ENOENT))
		world_refused(w, op->kind == OP_PUT ? "put" : "del", error,
			      "after recovery, %s %s fails: ",
			      op->kind == OP_PUT ? "PUT" : "DELETE", w->setup->w.key[op->key].name);
}

static void second_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	struct life *life = &w->life;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	client_open(c);
	life->second = true;
	for (;;) {
		sim_wake(w->sim, &life->second);
		while (!life->busy[1]) {
			sim_idle_on(w->sim, &life->busy[1]);
			sim_yield(w->sim);
		}
		do_op(c, 1, buf);
		life->busy[1] = false;
	}
}

/* Both are ready before either begins. */
static void start_second(struct world *w)
{
	struct life *life = &w->life;
	unsigned n = number(w, 1);
	if (!life->second) {
		w->client[n] = (struct world_client){.world = w, .number = n, .op = -1};
		sim_spawn(w->sim, n, NULL, second_main, &w->client[n]);
	}
	while (!life->second) {
		sim_idle_on(w->sim, &life->second);
		sim_yield(w->sim);
	}
	life->busy[1] = true;
	sim_wake(w->sim, &life->busy[1]);
}

static bool one_round(struct world_client *reader, unsigned round, uint8_t *buf)
{
	struct world *w = reader->world;
	struct life *life = &w->life;
	bool first = ask(w, round, 0), second = ask(w, round, 1);
	if (!first && !second)
		return false;
	life->on = true;
	if (second)
		start_second(w);
	if (first)
		do_op(reader, 0, buf);
	while (life->busy[1]) {
		sim_idle_on(w->sim, &life->second);
		sim_yield(w->sim);
	}
	sim_sleep(w->sim, AFTERMATH_NS);
	return true;
}

bool life_run(struct world_client *reader, uint8_t *buf)
{
	struct world *w = reader->world;
	struct choice_point end = {.kind = CHOICE_CRASH, .a = CRASH_AT_END};
	unsigned round = 1;
	while (round <= LIFE_ROUNDS && one_round(reader, round, buf))
		round++;
	if (round == 1)
		return false;
	client_read_keys(reader, w->life.nth[0][OP_GET], w->life.nth[0][OP_CALL], buf);
	sim_power_fails(w->sim, &end);
	for (unsigned i = 0; i < w->setup->servers && w->setup->store->fsck_at_rest; i++)
		if (w->serving >> i & 1)
			world_fsck(w, i, "a life");
	return true;
}
