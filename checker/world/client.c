/* SPDX-License-Identifier: BSD-3-Clause */
/* A client: its process, its operations, and what the history notes of them. */
#include "checker/world/world_client.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/world/checker_mutant.h"
#include "checker/world/explained.h"
#include "core/rnic/host/store_calls.h"
#include "core/rnic/rnic.h"
#include "core/text/error_name.h"

#define OPEN_TRIES 16 /* of a client that cannot connect, for a reason that was injected */

/* --- the history --- */

/* Each machine has clients of the same numbers, and they have other values. */
static uint16_t value_number(const struct world *w, const struct workload_op *op)
{
	return (uint16_t)(w->machine ? 0x8000 + w->machine * 0x1000 + op->nth % 0x1000 : op->nth);
}

static struct history_detail detail_of(const struct world *w, unsigned client,
				       const struct workload_op *op)
{
	struct history_detail d = {.call = op->call};
	memcpy(d.key, op->keys, sizeof(d.key));
	d.value.client = (uint8_t)client;
	d.value.nth = op->kind == OP_CALL ? value_number(w, op) : op->nth;
	d.value.key = op->kind == OP_CALL ? WORKLOAD_CALL_KEY(op->call) : op->key;
	d.value.same = op->same;
	d.value.len = workload_op_valued(&w->setup->w, op) ? op->vlen : 0;
	if (w->machine && op->kind == OP_PUT)
		life_value_name(w, &d);
	return d;
}

void world_value(const struct history_detail *d, uint8_t *out)
{
	if (d->value.same)
		workload_value_same(d->value.same, d->value.key, out, d->value.len);
	else
		workload_value(d->value.client, d->value.nth, d->value.key, out, d->value.len);
}

int world_note_invoke(struct world *w, unsigned client, enum history_kind kind,
		      const struct workload_op *op)
{
	if (!w->history->detail)
		return history_invoke(w->history, client, kind, op->key);
	const struct history_detail detail = detail_of(w, client, op);
	return history_invoke_detailed(w->history, client, kind, op->key, &detail);
}

static void keep_event(struct world_gets *gets, unsigned event)
{
	assert(gets->events < 2 * WORLD_GETS);
	gets->event[gets->events++] = (uint16_t)event;
}

static void keep_begin(struct world_client *c, const struct workload_op *op)
{
	struct world_gets *gets = &c->world->gets;
	assert(gets->n < WORLD_GETS && c->number > c->world->setup->w.clients);
	c->get = gets->n++;
	struct world_get *get = &gets->get[c->get];
	*get = (struct world_get){.op = *op,
				  .client = (uint16_t)(c->number - c->world->setup->w.clients - 1)};
	/* Where one key is named, the bytes of the others may be anything; all are compared. */
	for (unsigned k = workload_op_keys(&c->world->setup->w, op); k < TM_CALL_KEYS; k++)
		get->op.keys[k] = 0;
	keep_event(gets, 2 * c->get);
}

/* What a GET or a CALL returns. */
static void keep_answer(struct world_client *c, int error, size_t len, const uint8_t *bytes)
{
	struct world_gets *gets = &c->world->gets;
	struct world_get *get = &gets->get[c->get];
	if (!gets->kept)
		return;
	get->error = error;
	get->len = (uint32_t)len;
	get->at = gets->bytes;
	if (error || len > gets->longest)
		return;
	memcpy(gets->byte + gets->bytes, bytes, len);
	gets->bytes += (uint32_t)len;
}

void client_keep_return(struct world_client *c, const struct history_op *op)
{
	struct world_gets *gets = &c->world->gets;
	struct world_get *get = &gets->get[c->get];
	if (get->op.kind == OP_PUT || get->op.kind == OP_DEL || op->aborted)
		get->error = op->error;
	get->aborted = op->aborted;
	get->returned = op->returned >= 0;
	get->unexplained = op->unexplained;
	keep_event(gets, 2 * c->get + 1);
}

static int invoke(struct world_client *c, enum history_kind kind, const struct workload_op *what)
{
	struct world *w = c->world;
	assert(c->op < 0 && !c->done); /* a client has one operation at a time */
	int op = world_note_invoke(w, c->number, kind, what);
	if (op < 0) {
		fprintf(stderr, "tidemark: more operations than a history holds (%d)\n",
			HISTORY_OPS);
		_Exit(70);
	}
	c->op = op;
	if (w->gets.kept)
		keep_begin(c, what);
	sim_repeat_news(w->sim);
	return op;
}

/* A store that does not wait for a reply may return what it takes for one. */
static int sane_error(int error)
{
	return error > 0 || error < INT16_MIN ? -EPROTO : error;
}

/* ": the value of c1.put2": what a GET has returned. */
static void say_value(const struct world *w, int32_t value, char *out, size_t n)
{
	char name[64] = "";
	if (value >= 0)
		world_op_name(w->setup, w->history, value, name, sizeof(name));
	snprintf(out, n, ": %s%s",
		 value >= 0		 ? "the value of "
		 : value == VALUE_ABSENT ? "not found"
					 : "bytes that no PUT of this key wrote",
		 name);
}

static void returned(struct world_client *c, int error, int32_t value)
{
	struct world *w = c->world;
	int op = c->op;
	assert(op >= 0 && !c->done);
	error = sane_error(error);
	c->op = -1;
	sim_repeat_news(w->sim);
	c->lost = error && error != -ENOTUNIQ && connection_is_lost(w, c->number);
	/* A client whose server has died does not know what became of its operation: in the history
	 * it never returns. */
	if (!c->lost)
		history_return(w->history, op, error, value);
	if (error && error != -ENOTUNIQ &&
	    !error_explained(w, c->number, history_operation(w->history->op[op].kind), error))
		history_unexplained(w->history, op);
	if (w->gets.kept)
		client_keep_return(c, &w->history->op[op]);
	sim_mix(w->sim, (uint64_t)op << 32 | (uint32_t)error, (uint32_t)value);
	if (sim_tracing(w->sim)) {
		char what[128] = "";
		if (w->history->op[op].kind == HISTORY_GET && !error)
			say_value(w, value, what, sizeof(what));
		if (w->history->op[op].kind == HISTORY_CALL && !error)
			history_show_answer(w->history, op, what, sizeof(what));
		const char *between = !*what || *what == ':' ? "" : ": ";
		const struct traced about = {.kind = TRACED_RETURN};
		if (error == -ENOTUNIQ)
			sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "%s",
					"returns 0: bytes that more than one PUT writes");
		else
			sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "returns %s%s%s",
					error_name(error).text, between, what);
	}
	sim_power_fails_here(w->sim, CRASH_AFTER_RETURN);
}

/* --- operations --- */

int32_t client_value_of(const struct world *w, unsigned key, const uint8_t *bytes, size_t len)
{
	int32_t value = VALUE_FOREIGN;
	int v = setup_find_value(w->setup, key, bytes, len);
	for (; v >= 0; v = setup_next_value(w->setup, v, bytes, len))
		if (w->op_of_value[v] >= 0)
			value = w->setup->value[v].shared ? VALUE_UNKNOWN : w->op_of_value[v];
	return value == VALUE_FOREIGN ? life_value_read(w, key, bytes, len) : value;
}

/* A GET's answer: its error for the history, and whose value it returned. */
static int get_says(const struct world *w, unsigned key, const struct world_get *get,
		    const uint8_t *bytes, int32_t *value)
{
	const struct setup *s = w->setup;
	*value = get->error == -ENOENT ? VALUE_ABSENT : VALUE_UNKNOWN;
	if (get->error)
		return get->error == -ENOENT ? 0 : sane_error(get->error);
	*value = get->len <= s->params.max_vlen ? client_value_of(w, key, bytes, get->len)
						: VALUE_FOREIGN;
	if (*value == VALUE_FOREIGN && CHECKER_MUTANT(s, FOREIGN_IS_ABSENT))
		*value = VALUE_ABSENT;
	return *value == VALUE_UNKNOWN ? -ENOTUNIQ : 0;
}

/* An answer is there before the operation has returned. */
static void note_answer(struct world *w, int op, const void *bytes, size_t len)
{
	if (w->history->detail && history_answer(w->history, op, bytes, len)) {
		fprintf(stderr, "tidemark: out of memory\n");
		_Exit(70);
	}
}

void client_get(struct world_client *c, const struct workload_op *what, uint8_t *buf)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	struct world_get get = {0};
	unsigned key = what->key;
	size_t len = 0;
	int32_t value;
	int op = invoke(c, HISTORY_GET, what);
	sim_forget_failed_call(w->sim);
	get.error = s->store->get(c->handle, s->w.key[key].name, s->w.key[key].klen, buf,
				  s->params.max_vlen, &len);
	get.len = len <= s->params.max_vlen ? (uint32_t)len : s->params.max_vlen + 1;
	int error = get_says(w, key, &get, buf, &value);
	/* Nothing disturbs the link of a recovered store: an error there is the store's. */
	if (w->machine && get.error && get.error != -ENOENT)
		world_refused(w, "get", get.error,
			      "after recovery, GET %s fails: ", s->w.key[key].name);
	if (!get.error)
		note_answer(w, op, buf, len <= s->params.max_vlen ? len : s->params.max_vlen);
	keep_answer(c, get.error, get.len, buf);
	returned(c, error, value);
}

static const char *const op_says[OP_KINDS] = {[OP_PUT] = "PUT ",    [OP_GET] = "GET ",
					      [OP_DEL] = "DELETE ", [OP_CLEAN] = "clean the log",
					      [OP_LEAVE] = "leave", [OP_DIE] = "the process dies",
					      [OP_PAUSE] = "pause"};

/* "GET k1", "T{GET k1, PUT k2}" */
static void trace_begin(const struct world *w, const struct workload_op *op, unsigned n)
{
	const struct setup *s = w->setup;
	const struct traced about = {.kind = TRACED_CALL};
	char text[TM_TXN_OPS * (TM_MAX_KEY + 8) + 100];
	size_t len = 0;
	for (unsigned i = 0; i < n; i++, op++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
					!op->txn ? ""
					: i	 ? ", "
						 : "T{",
					op->kind == OP_CALL ? s->store->calls[op->call].name
							    : op_says[op->kind]);
		for (unsigned k = 0; k < workload_op_keys(&s->w, op); k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						op->kind == OP_CALL ? " " : "",
						s->w.key[op->keys[k]].name);
		if (op->kind == OP_CALL && op->vlen)
			snprintf(text + len, sizeof(text) - len, " %u bytes", (unsigned)op->vlen);
	}
	if (op[-1].txn)
		snprintf(text + len, sizeof(text) - len, "}");
	sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "%s", text);
}

/* --- operations of the store's own --- */

/* What the operation asks for. A value is in the simulation's memory. */
static struct tm_call call_of(struct world *w, unsigned client, const struct workload_op *op)
{
	const struct setup *s = w->setup;
	const struct history_detail detail = detail_of(w, client, op);
	struct tm_call call = {.vlen = op->vlen};
	uint8_t *value = sim_alloc(w->sim, op->vlen + 1);
	for (unsigned k = 0; k < workload_op_keys(&s->w, op); k++) {
		call.key[k].name = s->w.key[op->keys[k]].name;
		call.key[k].len = s->w.key[op->keys[k]].klen;
	}
	world_value(&detail, value);
	call.value = workload_op_valued(&s->w, op) ? value : NULL;
	return call;
}

/* The store runs it. -errno; what it answers stays in the simulation's memory. */
int client_run_call(struct world_client *c, const struct workload_op *op, struct tm_answer **answer)
{
	struct world *w = c->world;
	const struct tm_call call = call_of(w, c->number, op);
	if (!c->answer)
		c->answer = sim_alloc(w->sim, sizeof(*c->answer));
	*answer = c->answer;
	memset(*answer, 0, sizeof(**answer));
	sim_forget_failed_call(w->sim);
	int error = sane_error(w->setup->store->calls[op->call].run(c->handle, &call, *answer));
	return (*answer)->len > TM_MAX_ANSWER ? -EOVERFLOW : error;
}

/* `looks`: the operation is one that looks at the recovered store. */
int client_call(struct world_client *c, const struct workload_op *op, bool looks)
{
	struct world *w = c->world;
	struct world_get get = {0};
	struct tm_answer *answer;
	int number = invoke(c, HISTORY_CALL, op);
	if (looks && sim_tracing(w->sim))
		trace_begin(w, op, 1);
	get.error = client_run_call(c, op, &answer);
	get.len = get.error ? 0 : (uint32_t)answer->len;
	if (w->machine && get.error)
		world_refused(w, "run", get.error,
			      "after recovery, %s fails: ", w->setup->store->calls[op->call].name);
	if (!get.error)
		note_answer(w, number, answer->bytes, answer->len);
	keep_answer(c, get.error, get.len, answer->bytes);
	returned(c, get.error, VALUE_UNKNOWN);
	return get.error;
}

unsigned world_keys_read(const struct world *w)
{
	return w->setup->store->get ? w->setup->w.keys : 0;
}

void world_begins(struct world *w, const struct world_get *get)
{
	static const uint8_t kinds[OP_KINDS] = {[OP_PUT] = HISTORY_PUT,
						[OP_GET] = HISTORY_GET,
						[OP_DEL] = HISTORY_DEL,
						[OP_CALL] = HISTORY_CALL};
	const unsigned client = w->setup->w.clients + 1 + get->client;
	int op = world_note_invoke(w, client, kinds[get->op.kind], &get->op);
	assert(op >= 0 && w->machine);
	if (get->op.kind == OP_PUT)
		life_value(w, &get->op);
	if (get->joined)
		history_join(w->history, op);
}

void world_returns(struct world *w, int op, const struct world_get *get, const uint8_t *bytes)
{
	const bool is_get = get->op.kind == OP_GET;
	int32_t value = VALUE_UNKNOWN;
	assert(op >= 0 && (unsigned)op < w->history->ops);
	if (!get->returned) {
		if (get->unexplained)
			history_never_returns(w->history, op);
		return;
	}
	int error = is_get ? get_says(w, get->op.key, get, bytes + get->at, &value) : get->error;
	if (!get->error && (is_get || get->op.kind == OP_CALL))
		note_answer(w, op, bytes + get->at,
			    get->len <= w->gets.longest ? get->len : w->gets.longest);
	history_return(w->history, op, error, value);
	if (get->aborted)
		history_aborted(w->history, op);
	if (get->unexplained)
		history_unexplained(w->history, op);
}

/* --- what a workload asks for --- */

/* The client's process ends; a new one comes with its next operation. */
static void go_away(struct world_client *c, bool dies)
{
	struct world *w = c->world;
	if (c->away)
		return;
	c->lost = false;
	if (dies) {
		sim_inject(w->sim, c->number, SIM_INJECTED_DEATH);
		sim_end_others(w->sim);
	}
	/* A client that leaves waits until its NIC has sent everything; for one that dies the
	 * kernel closes all objects. */
	sim_sleep(w->sim, CLOSE_NS);
	/* If a packet was held up, it may be too late for what that was to do. */
	if (sim_disturbed(w->sim))
		sim_inject(w->sim, c->number, SIM_INJECTED_DEATH);
	sim_end_others(w->sim);
	rnic_close(c->env->verbs);
	c->away = true;
}

/* No key changes: nothing for the history. */
int client_clean(struct world_client *c)
{
	struct world *w = c->world;
	const struct tm_store *store = w->setup->store;
	assert(!c->apart);
	c->apart = TM_CLEAN;
	int error = store->clean ? sane_error(store->clean(c->handle)) : -ENOSYS;
	c->apart = 0;
	c->lost = error && connection_is_lost(w, c->number);
	sim_mix(w->sim, OP_CLEAN, (uint32_t)error);
	if (sim_tracing(w->sim))
		sim_trace(w->sim, sim_actor(w->sim), 0, "returns %s", error_name(error).text);
	if (error && store->clean)
		world_failed(w, c->number, TM_CLEAN, error);
	return error;
}

/* Note that a PUT begins. Its bytes. */
static const uint8_t *begin_put(struct world_client *c, const struct workload_op *op)
{
	struct world *w = c->world;
	int at = invoke(c, HISTORY_PUT, op);
	if (w->machine)
		return life_value(w, op);
	const struct setup_value *v = setup_put_value(w->setup, c->number, op->nth);
	w->op_of_value[v - w->setup->value] = at;
	return v->bytes;
}

/* Every second client watches the configuration, and goes to another primary at once. The others
 * go when the one that they are connected to does not do what they ask. */
static bool must_move(const struct world_client *c)
{
	return c->number % 2 && !c->away && c->primary != sim_config(c->world->sim)->primary;
}

/* n operations begin, which are one to the store and have the label of the `named`th. */
static void begin_op(struct world_client *c, const struct workload_op *op, unsigned n,
		     unsigned named)
{
	const struct world *w = c->world;
	const struct op_label label = {(uint8_t)c->number, op[named].kind, op[named].nth};
	actor_label(sim_actor(w->sim), label);
	sim_begin(w->sim);
	if (must_move(c)) {
		client_open(c);
		actor_label(sim_actor(w->sim), label);
	}
	sim_forget_failed_call(w->sim);
	if (sim_tracing(w->sim))
		trace_begin(w, op, n);
}

static void end_op(const struct world_client *c, const struct workload_op *op, int error)
{
	struct world *w = c->world;
	pmem_cache_pressure(w->pm);
	if (w->between)
		w->between(w->between_arg, w, op, error);
}

/* --- transactions --- */

/* What is asked for, and where answers go. */
static struct tm_txn make_txn(struct world *w, const struct workload_op *op, unsigned n)
{
	const struct setup *s = w->setup;
	struct tm_txn txn = {.ops = n};
	assert(n <= TM_TXN_OPS);
	for (unsigned i = 0; i < n; i++, op++) {
		const bool put = op->kind == OP_PUT;
		txn.op[i] = (struct tm_txn_op){
			.put = put,
			.del = op->kind == OP_DEL,
			.key = s->w.key[op->key].name,
			.klen = s->w.key[op->key].klen,
			.vlen = put ? op->vlen : 0,
			.answer = put ? NULL : sim_alloc(w->sim, s->params.max_vlen),
			.cap = put ? 0 : s->params.max_vlen};
	}
	return txn;
}

/* All of its operations begin. The first one in the history. */
static int begin_txn(struct world_client *c, const struct workload_op *op, struct tm_txn *txn)
{
	struct world *w = c->world;
	const int first = (int)w->history->ops;
	for (unsigned i = 0; i < txn->ops; i++, op++) {
		if (op->kind == OP_PUT)
			txn->op[i].value = begin_put(c, op);
		else
			invoke(c, op->kind == OP_DEL ? HISTORY_DEL : HISTORY_GET, op);
		if (i)
			history_join(w->history, c->op);
		if (w->gets.kept)
			w->gets.get[c->get].joined = i > 0;
		c->op = -1;
	}
	return first;
}

/* One of its operations has ended. */
static void end_txn_op(struct world_client *c, int at, const struct tm_txn *txn, unsigned i,
		       int error)
{
	struct world *w = c->world;
	const struct tm_txn_op *o = &txn->op[i];
	const bool gets = !o->put && !o->del && !error && !txn->aborted;
	const struct world_get get = {.error = o->found ? 0 : -ENOENT, .len = (uint32_t)o->vlen};
	int32_t value = VALUE_UNKNOWN;
	char what[128] = "";
	int own = txn->aborted ? -ECANCELED : error;
	if (gets)
		own = get_says(w, w->history->op[at].key, &get, o->answer, &value);
	if (w->gets.kept) {
		c->get += i > 0;
		if (!o->put && !o->del)
			keep_answer(c, gets ? get.error : own, get.len, o->answer);
	}
	if (gets && o->found)
		note_answer(w, at, o->answer, o->vlen < o->cap ? o->vlen : o->cap);
	history_return(w->history, at, own, value);
	if (txn->aborted)
		history_aborted(w->history, at);
	else if (error &&
		 !error_explained(w, c->number, history_operation(w->history->op[at].kind), error))
		history_unexplained(w->history, at);
	if (w->gets.kept)
		client_keep_return(c, &w->history->op[at]);
	sim_mix(w->sim, (uint64_t)at << 32 | (uint32_t)own, (uint32_t)value);
	if (!sim_tracing(w->sim) || !gets)
		return;
	say_value(w, value, what, sizeof(what));
	sim_trace(w->sim, sim_actor(w->sim), 0, "GET %s%s", (const char *)o->key,
		  own ? ": bytes that more than one PUT writes" : what);
}

int client_txn(struct world_client *c, const struct workload_op *op, unsigned n)
{
	struct world *w = c->world;
	const struct traced about = {.kind = TRACED_RETURN};
	unsigned named = 0;
	while (named < n - 1 && op[named].kind != OP_PUT)
		named++;
	named = op[named].kind == OP_PUT ? named : 0;
	begin_op(c, op, n, named);
	struct tm_txn txn = make_txn(w, op, n);
	int first = begin_txn(c, op, &txn);
	c->op = first + (int)named;
	if (w->gets.kept)
		c->get -= n - 1; /* the first one's */
	int error = sane_error(w->setup->store->txn(c->handle, &txn));
	txn.aborted &= !error;
	c->op = -1;
	sim_repeat_news(w->sim);
	c->lost = error && connection_is_lost(w, c->number);
	for (unsigned i = 0; i < n && !c->lost; i++)
		end_txn_op(c, first + (int)i, &txn, i, error);
	if (sim_tracing(w->sim))
		sim_trace_event(w->sim, sim_actor(w->sim), 0, &about, "returns %s",
				txn.aborted ? "0: aborted" : error_name(error).text);
	sim_power_fails_here(w->sim, CRASH_AFTER_RETURN);
	end_op(c, op, error);
	return error;
}

void client_do(struct world_client *c, const struct workload_op *op, uint8_t *buf)
{
	struct world *w = c->world;
	const struct setup *s = w->setup;
	const struct workload_key *key = workload_op_keyed(op->kind) ? &s->w.key[op->key] : NULL;
	int error = 0;
	begin_op(c, op, 1, 0);
	switch (op->kind) {
	case OP_PUT: {
		const uint8_t *value = begin_put(c, op);
		error = s->store->put(c->handle, key->name, key->klen, value, op->vlen);
		returned(c, error, c->op);
		break;
	}
	case OP_GET:
		client_get(c, op, buf);
		break;
	case OP_CALL:
		error = client_call(c, op, false);
		break;
	case OP_CLEAN:
		error = client_clean(c);
		break;
	case OP_LEAVE:
	case OP_DIE:
		go_away(c, op->kind == OP_DIE);
		break;
	case OP_PAUSE:
		sim_sleep(w->sim, choice_delay_ns(DELAY_5MS));
		break;
	default:
		invoke(c, HISTORY_DEL, op);
		error = s->store->del(c->handle, key->name, key->klen);
		returned(c, error, VALUE_ABSENT);
	}
	end_op(c, op, error);
}

/* --- its process --- */

void client_open(struct world_client *c)
{
	struct world *w = c->world;
	if (!c->env || c->away) {
		struct ibv_context *before = c->env ? c->env->verbs : NULL;
		c->env = sim_alloc(w->sim, sizeof(*c->env));
		*c->env = world_environment(w, c->number, before);
		if (before)
			sim_new_process(w->sim, c->number);
		sim_construct(w->sim);
		c->away = false;
	}
	for (unsigned tries = 1;; tries++) {
		if (c->opens)
			sim_connects_again(w->sim, c->number);
		actor_label(sim_actor(w->sim),
			    (struct op_label){(uint8_t)c->number, OP_OPEN, ++c->opens});
		c->life = world_server_ends(w);
		c->primary = sim_config(w->sim)->primary;
		c->lost = false;
		bool down = !world_serves(w);
		sim_take_refused(w->sim, c->number);
		sim_forget_failed_call(w->sim);
		int error = w->setup->store->open(c->env, &c->handle);
		if (!error)
			return;
		/* A client that asks before a server listens may be told so only when it does. */
		bool lost = connection_is_lost(w, c->number) ||
			    (down && sim_take_refused(w->sim, c->number));
		if (!lost && (!w->booted || w->machine || tries == OPEN_TRIES ||
			      !error_explained(w, c->number, TM_OPEN, error))) {
			world_refused(w, "open", error, "a client cannot connect: ");
			world_failed(w, c->number, TM_OPEN, error);
			sim_abandon(w->sim, SIM_DONE);
		}
		if (!lost)
			sim_sleep(w->sim, AFTERMATH_NS);
		while (!world_serves(w)) {
			sim_idle_on(w->sim, &w->serving);
			sim_yield(w->sim);
		}
	}
}

unsigned client_operations(const struct world_client *c)
{
	const struct world *w = c->world;
	return c->number <= w->setup->w.clients ? w->setup->w.client[c->number - 1].ops : 0;
}

/* The operations of a client that it has not begun. */
void client_go_on(struct world_client *c, uint8_t *buf)
{
	struct world *w = c->world;
	const struct workload_op *op = w->setup->w.client[c->number - 1].op;
	while (c->next < client_operations(c)) {
		const struct workload_op *next = &op[c->next];
		if (c->lost || (c->away && (workload_op_keyed(next->kind) ||
					    next->kind == OP_CALL || next->kind == OP_CLEAN)))
			client_open(c);
		unsigned txn = workload_txn_size(&w->setup->w, c->number, c->next);
		c->next += txn ? txn : 1;
		if (txn)
			client_txn(c, next, txn);
		else
			client_do(c, next, buf);
	}
	assert(!c->dead && c->op < 0);
	c->done = true;
	world_client_ended(w);
}

/* A client's message has reached a server: for FENCE. */
static void note_reached(void *arg, struct op_label op, unsigned server)
{
	struct world *w = arg;
	const struct history *h = w->history;
	int at = w->client[op.client].op; /* mostly; else it is late */
	if (at < 0 || !op_label_equal(world_op_label(h, at), op))
		for (at = (int)h->ops - 1; at >= 0; at--)
			if (op_label_equal(world_op_label(h, at), op))
				break;
	if (at >= 0)
		history_reaches(w->history, at, server, sim_config(w->sim)->members >> server & 1);
}

void client_main(void *arg)
{
	struct world_client *c = arg;
	struct world *w = c->world;
	uint8_t *buf = sim_alloc(w->sim, w->setup->params.max_vlen);
	const struct workload_op *op = w->setup->w.client[c->number - 1].op;
	c->away = client_operations(c) && (op->kind == OP_LEAVE || op->kind == OP_DIE);
	if (!c->away)
		client_open(c);
	assert(w->opened < w->setup->w.clients && !w->booted);
	if (++w->opened == w->setup->w.clients) {
		/* All are connected: from here on things may go differently. */
		sim_source(w->sim, CHECKER_MUTANT(w->setup, PLAIN_ONLY) ? NULL : w->source);
		if (CHECKER_MUTANT(w->setup, TASKS_NEVER_HELD) && w->source)
			w->source->skip[CHOICE_STEP] = UINT32_MAX;
		if (w->source && w->source->touched)
			pmem_watch(w->pm);
		if (w->observer)
			sim_set_observer(w->sim, world_observe, w);
		if (w->setup->servers > 1)
			sim_set_reaches(w->sim, note_reached, w);
		w->booted = true;
		sim_wake(w->sim, &w->booted);
	}
	while (!w->booted) {
		sim_idle_on(w->sim, &w->booted);
		sim_yield(w->sim);
	}
	client_go_on(c, buf);
}
